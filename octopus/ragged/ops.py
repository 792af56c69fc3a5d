"""The operations of `octopus.ops`."""

from __future__ import annotations

from typing import Any, Literal

from octopus.arrays import streams
from octopus.arrays.checks import Device
from octopus.arrays.memo import dynamo_disabled
from octopus.arrays.views import view
from octopus.kernels.operations import OPERATIONS
from octopus.ragged import parameters
from octopus.ragged.batch import RaggedBatch
from octopus.ragged.blockmap import Strategy
from octopus.ragged.plan import RaggedPlan

__all__ = ["OPERATIONS", "blur3x3", "blur5x5_sobel", "gamma", "multiply", "normalize", "threshold"]


@dynamo_disabled
def multiply(
    batch: RaggedBatch, gain: Any, *, out: Any = None, strategy: Strategy | Literal["auto"] = "auto",
    threshold: int | None = None, device: Device = "auto", stream: Any = None,
) -> RaggedBatch:  # fmt: skip
    """`value * gain`, with a gain per item.

    Parameters
    ----------
    batch : RaggedBatch
        T float32 or uint8 elements in N items of any shapes.
    gain : float or array (N,)
        A factor for all items, or one per item; on the host, or float32 on the GPU with the batch.
    out : array, (T,), the batch's dtype, optional
        Takes the result; flat, contiguous, writeable, on the batch's side. May be the values.
    strategy, threshold, device, stream
        As in `octopus.RaggedPlan`: who works on which element, elements per block of "block_metadata", where to work,
        and the CUDA stream (for work on a GPU only; default: the current one of the batch's library).

    Returns
    -------
    RaggedBatch
        Of the items' shapes and dtype.

    Raises
    ------
    InputError
        For another dtype, gains that are not finite in float32 or not one per item, or an `out` that can't be written.
    DeviceError, OutOfMemoryError
        As `octopus.RaggedPlan`.

    Examples
    --------
    >>> import numpy as np
    >>> batch = RaggedBatch.from_offsets(np.array([1, 2, 3], np.float32), [0, 1, 3])
    >>> multiply(batch, [10, 0.5], device="cpu").values.tolist()
    [10.0, 1.0, 1.5]
    """
    plan = RaggedPlan("multiply", batch, strategy=strategy, threshold=threshold, device=device, stream=stream)
    return plan.run(batch, gain, out=out, stream=stream)


@dynamo_disabled
def normalize(
    batch: RaggedBatch, mean: Any, std: Any, *, out: Any = None, strategy: Strategy | Literal["auto"] = "auto",
    threshold: int | None = None, device: Device = "auto", stream: Any = None,
) -> RaggedBatch:  # fmt: skip
    """`(value - mean) / std` in float32, with mean and standard deviation per item.

    The division is a multiplication by the inverse, which differs from it in the last bit.

    Parameters
    ----------
    batch : RaggedBatch
        T float32 or uint8 elements in N items of any shapes.
    mean, std : float or array (N,)
        In the unit of the values: 0 to 255 for uint8. One number for all items, or one per item; on the host, or
        float32 on the GPU with the batch, where `std` must be of torch or CuPy and nobody sees whether it is positive.
    out : array, (T,), float32, optional
        Takes the result; flat, contiguous, writeable, on the batch's side. May be the values, if they are float32.
    strategy, threshold, device, stream
        As in `octopus.RaggedPlan`: who works on which element, elements per block of "block_metadata", where to work,
        and the CUDA stream (for work on a GPU only; default: the current one of the batch's library).

    Returns
    -------
    RaggedBatch
        float32, of the items' shapes.

    Raises
    ------
    InputError
        For another dtype, parameters that are not finite in float32 or not one per item, a standard deviation on the
        host that is not positive, or an `out` that can't be written.
    DeviceError, OutOfMemoryError
        As `octopus.RaggedPlan`.

    Examples
    --------
    >>> import numpy as np
    >>> batch = RaggedBatch.from_offsets(np.array([1, 2, 6], np.float32), [0, 1, 3])
    >>> normalize(batch, 1, [1, 2], device="cpu").values.tolist()
    [0.0, 0.5, 2.5]
    """
    plan = RaggedPlan("normalize", batch, strategy=strategy, threshold=threshold, device=device, stream=stream)
    queue = None
    if stream is not None:
        queue = streams.stream_for(view(batch.values, "values"), None, stream)
    inverse = parameters.inverse_std(std, len(batch), queue)
    return plan.run(batch, mean, inverse, out=out, stream=stream)


@dynamo_disabled
def threshold(
    batch: RaggedBatch, level: Any, *, out: Any = None, strategy: Strategy | Literal["auto"] = "auto",
    threshold: int | None = None, device: Device = "auto", stream: Any = None,
) -> RaggedBatch:  # fmt: skip
    """1 where a value is above its item's level, else 0.

    Parameters
    ----------
    batch : RaggedBatch
        T float32 or uint8 elements in N items of any shapes.
    level : float or array (N,)
        In the unit of the values: 0 to 255 for uint8. One number for all items, or one per item; on the host, or
        float32 on the GPU with the batch.
    out : array, (T,), the batch's dtype, optional
        Takes the result; flat, contiguous, writeable, on the batch's side. May be the values.
    strategy, threshold, device, stream
        As in `octopus.RaggedPlan`: who works on which element, elements per block of "block_metadata", where to work,
        and the CUDA stream (for work on a GPU only; default: the current one of the batch's library).

    Returns
    -------
    RaggedBatch
        Of the items' shapes and dtype.

    Raises
    ------
    InputError
        For another dtype, levels that are not finite in float32 or not one per item, or an `out` that can't be written.
    DeviceError, OutOfMemoryError
        As `octopus.RaggedPlan`.

    Examples
    --------
    >>> import numpy as np
    >>> batch = RaggedBatch.from_offsets(np.array([1, 2, 3], np.uint8), [0, 1, 3])
    >>> threshold(batch, [0.5, 2], device="cpu").values.tolist()
    [1, 0, 1]
    """
    plan = RaggedPlan("threshold", batch, strategy=strategy, threshold=threshold, device=device, stream=stream)
    return plan.run(batch, level, out=out, stream=stream)


@dynamo_disabled
def gamma(
    batch: RaggedBatch, exponent: Any, *, out: Any = None, strategy: Strategy | Literal["auto"] = "auto",
    threshold: int | None = None, device: Device = "auto", stream: Any = None,
) -> RaggedBatch:  # fmt: skip
    """`value ** exponent` of values from 0 to 1, an exponent per item.

    For uint8 `255 * (value / 255) ** exponent`. Negative values become NaN unless the exponent is whole, and 0 to the
    power of a negative exponent is infinite. On a GPU a result is off by up to 2.4e-7 * (1 + |exponent| *
    max(1, |log2(value)|)) of itself, so that a byte that nearly lies between two may become the other one.

    Parameters
    ----------
    batch : RaggedBatch
        T float32 or uint8 elements in N items of any shapes.
    exponent : float or array (N,)
        One number for all items, or one per item; on the host, or float32 on the GPU with the batch.
    out : array, (T,), the batch's dtype, optional
        Takes the result; flat, contiguous, writeable, on the batch's side. May be the values.
    strategy, threshold, device, stream
        As in `octopus.RaggedPlan`: who works on which element, elements per block of "block_metadata", where to work,
        and the CUDA stream (for work on a GPU only; default: the current one of the batch's library).

    Returns
    -------
    RaggedBatch
        Of the items' shapes and dtype.

    Raises
    ------
    InputError
        For another dtype, exponents that are not finite in float32 or not one per item, or an `out` that can't be
        written.
    DeviceError, OutOfMemoryError
        As `octopus.RaggedPlan`.

    Examples
    --------
    >>> import numpy as np
    >>> batch = RaggedBatch.from_offsets(np.array([0, 51, 255], np.uint8), [0, 1, 3])
    >>> gamma(batch, [1, 0.5], device="cpu").values.tolist()
    [0, 114, 255]
    """
    plan = RaggedPlan("gamma", batch, strategy=strategy, threshold=threshold, device=device, stream=stream)
    return plan.run(batch, exponent, out=out, stream=stream)


@dynamo_disabled
def blur3x3(
    batch: RaggedBatch, *, out: Any = None, strategy: Strategy | Literal["auto"] = "auto",
    threshold: int | None = None, device: Device = "auto", stream: Any = None,
) -> RaggedBatch:  # fmt: skip
    """Mean of the 3 x 3 pixels around each; beyond the border of its image the nearest pixel counts.

    Parameters
    ----------
    batch : RaggedBatch
        N images (height, width) of float32 or uint8 with T pixels in all, each of up to 2**31 - 1.
    out : array, (T,), the batch's dtype, optional
        Takes the result; flat, contiguous, writeable, on the batch's side. Must not be the values.
    strategy, threshold, device, stream
        As in `octopus.RaggedPlan`: who works on which element, elements per block of "block_metadata", where to work,
        and the CUDA stream (for work on a GPU only; default: the current one of the batch's library).

    Returns
    -------
    RaggedBatch
        Of the items' shapes and dtype.

    Raises
    ------
    InputError
        For items other than images, another dtype, or an `out` that can't be written or shares memory with the values.
    DeviceError, OutOfMemoryError
        As `octopus.RaggedPlan`.

    Examples
    --------
    >>> import numpy as np
    >>> batch = RaggedBatch.from_list([np.array([[0, 9, 0]], np.float32)])
    >>> blur3x3(batch, device="cpu")[0].tolist()
    [[3.0, 3.0, 3.0]]
    """
    plan = RaggedPlan("blur3x3", batch, strategy=strategy, threshold=threshold, device=device, stream=stream)
    return plan.run(batch, out=out, stream=stream)


@dynamo_disabled
def blur5x5_sobel(
    batch: RaggedBatch, *, out: Any = None, strategy: Strategy | Literal["auto"] = "auto",
    threshold: int | None = None, device: Device = "auto", stream: Any = None,
) -> RaggedBatch:  # fmt: skip
    """Mean of the 5 x 5 pixels around each, plus 4/25 of the L1 norm of Sobel's gradient.

    Beyond the border of its image the nearest pixel counts.

    Parameters
    ----------
    batch : RaggedBatch
        N images (height, width) of float32 or uint8 with T pixels in all, each of up to 2**31 - 1.
    out : array, (T,), the batch's dtype, optional
        Takes the result; flat, contiguous, writeable, on the batch's side. Must not be the values.
    strategy, threshold, device, stream
        As in `octopus.RaggedPlan`: who works on which element, elements per block of "block_metadata", where to work,
        and the CUDA stream (for work on a GPU only; default: the current one of the batch's library).

    Returns
    -------
    RaggedBatch
        Of the items' shapes and dtype.

    Raises
    ------
    InputError
        For items other than images, another dtype, or an `out` that can't be written or shares memory with the values.
    DeviceError, OutOfMemoryError
        As `octopus.RaggedPlan`.

    Examples
    --------
    >>> import numpy as np
    >>> batch = RaggedBatch.from_list([np.array([[5, 5, 5]], np.float32)])
    >>> blur5x5_sobel(batch, device="cpu")[0].tolist()
    [[5.0, 5.0, 5.0]]
    """
    plan = RaggedPlan("blur5x5_sobel", batch, strategy=strategy, threshold=threshold, device=device, stream=stream)
    return plan.run(batch, out=out, stream=stream)
