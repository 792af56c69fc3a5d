"""The operations of `octopus.ops`."""

from typing import Any, Unpack

from octopus.arrays import streams
from octopus.arrays.checks import check_known
from octopus.arrays.memo import dynamo_disabled
from octopus.arrays.views import view
from octopus.kernels.operations import OPERATIONS
from octopus.ragged.batch import RaggedBatch
from octopus.ragged.check import inverse_std
from octopus.ragged.plan import Options, RaggedPlan

__all__ = ["OPERATIONS", "blur3x3", "blur5x5_sobel", "gamma", "multiply", "normalize", "threshold"]


@dynamo_disabled
def multiply(batch: RaggedBatch, gain: Any, *, out: Any = None, **options: Unpack[Options]) -> RaggedBatch:
    """`value * gain`, with a gain per item.

    Parameters
    ----------
    batch : RaggedBatch
        T float32 or uint8 elements in N items of any shapes.
    gain : float or array (N,)
        One number for all items, or one per item; on the host, or float32 on the GPU with the batch.
    out : array, (T,), optional
        Takes the result, and is of its dtype; flat, contiguous, writeable, on the batch's side. May be the values.
    **options
        `strategy`, `threshold`, `device` and `stream` as in `octopus.RaggedPlan`: who works on which element, elements
        per block of "block_metadata", where to work, and the CUDA stream (for work on a GPU only; default: the current
        one of the batch's library).

    Returns
    -------
    RaggedBatch
        Of the items' shapes and dtype.

    Raises
    ------
    InputError
        For another dtype, numbers that are not finite in float32 or not one per item, or an `out` that can't be
        written.
    DeviceError, OutOfMemoryError
        As `octopus.RaggedPlan`.

    Examples
    --------
    >>> import numpy as np
    >>> batch = RaggedBatch.from_offsets(np.array([1, 2, 3], np.float32), [0, 1, 3])
    >>> multiply(batch, [10, 0.5], device="cpu").values.tolist()
    [10.0, 1.0, 1.5]
    """
    return _run("multiply", batch, (gain,), out, options)


@dynamo_disabled
def normalize(batch: RaggedBatch, mean: Any, std: Any, *, out: Any = None, **options: Unpack[Options]) -> RaggedBatch:
    """`(value - mean) / std` in float32, with mean and standard deviation per item; else as `multiply`.

    The division is a multiplication by the inverse, which differs from it in the last bit. Numbers are in the unit of
    the values: 0 to 255 for uint8. A standard deviation on the host must be positive; one on the GPU must be of torch
    or CuPy, and nothing checks whether it is. `out` is float32, and may be the values if they are, too.

    Returns
    -------
    RaggedBatch
        float32, of the items' shapes.

    Examples
    --------
    >>> import numpy as np
    >>> batch = RaggedBatch.from_offsets(np.array([1, 2, 6], np.float32), [0, 1, 3])
    >>> normalize(batch, 1, [1, 2], device="cpu").values.tolist()
    [0.0, 0.5, 2.5]
    """
    check_known("normalize", options, Options.__annotations__)
    stream = options.get("stream")
    queue = None if stream is None else streams.stream_for(view(batch.values, "values"), None, stream)
    plan = RaggedPlan("normalize", batch, **options)
    return plan.run(batch, mean, inverse_std(std, len(batch), queue), out=out, stream=stream)


@dynamo_disabled
def threshold(batch: RaggedBatch, level: Any, *, out: Any = None, **options: Unpack[Options]) -> RaggedBatch:
    """1 where a value is above its item's level, else 0; levels in the unit of the values. Else as `multiply`.

    Returns
    -------
    RaggedBatch
        Of the items' shapes and dtype.

    Examples
    --------
    >>> import numpy as np
    >>> batch = RaggedBatch.from_offsets(np.array([1, 2, 3], np.uint8), [0, 1, 3])
    >>> threshold(batch, [0.5, 2], device="cpu").values.tolist()
    [1, 0, 1]
    """
    return _run("threshold", batch, (level,), out, options)


@dynamo_disabled
def gamma(batch: RaggedBatch, exponent: Any, *, out: Any = None, **options: Unpack[Options]) -> RaggedBatch:
    """`value ** exponent` of values from 0 to 1, an exponent per item; else as `multiply`.

    For uint8 `255 * (value / 255) ** exponent`. Negative values become NaN unless the exponent is whole, and 0 to the
    power of a negative exponent is infinite. On a GPU a result is off by up to 2.4e-7 * (1 + |exponent| *
    max(1, |log2(value)|)) of itself, so that a byte that nearly lies between two may become the other one.

    Returns
    -------
    RaggedBatch
        Of the items' shapes and dtype.

    Examples
    --------
    >>> import numpy as np
    >>> batch = RaggedBatch.from_offsets(np.array([0, 51, 255], np.uint8), [0, 1, 3])
    >>> gamma(batch, [1, 0.5], device="cpu").values.tolist()
    [0, 114, 255]
    """
    return _run("gamma", batch, (exponent,), out, options)


@dynamo_disabled
def blur3x3(batch: RaggedBatch, *, out: Any = None, **options: Unpack[Options]) -> RaggedBatch:
    """Mean of the 3 x 3 pixels around each; beyond the border of its image the nearest pixel counts.

    Takes N images (height, width), each of up to 2**31 - 1 pixels; `out` must lie apart from the values. Else as
    `multiply`.

    Returns
    -------
    RaggedBatch
        Of the items' shapes and dtype.

    Examples
    --------
    >>> import numpy as np
    >>> batch = RaggedBatch.from_list([np.array([[0, 9, 0]], np.float32)])
    >>> blur3x3(batch, device="cpu")[0].tolist()
    [[3.0, 3.0, 3.0]]
    """
    return _run("blur3x3", batch, (), out, options)


@dynamo_disabled
def blur5x5_sobel(batch: RaggedBatch, *, out: Any = None, **options: Unpack[Options]) -> RaggedBatch:
    """Mean of the 5 x 5 pixels around each, plus 4/25 of the L1 norm of Sobel's gradient; else as `blur3x3`.

    Returns
    -------
    RaggedBatch
        Of the items' shapes and dtype.

    Examples
    --------
    >>> import numpy as np
    >>> batch = RaggedBatch.from_list([np.array([[5, 5, 5]], np.float32)])
    >>> blur5x5_sobel(batch, device="cpu")[0].tolist()
    [[5.0, 5.0, 5.0]]
    """
    return _run("blur5x5_sobel", batch, (), out, options)


def _run(operation: str, batch: RaggedBatch, numbers: tuple[Any, ...], out: Any, options: Options) -> RaggedBatch:
    check_known(operation, options, Options.__annotations__)
    plan = RaggedPlan(operation, batch, **options)
    return plan.run(batch, *numbers, out=out, stream=options.get("stream"))
