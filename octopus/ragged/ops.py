"""Operations on batches whose items all differ in size, each in one launch.

>>> import numpy as np
>>> from octopus import RaggedBatch, ops
>>> batch = RaggedBatch.from_list([np.ones((2, 3), np.float32), np.full((1, 2), 4, np.float32)])
>>> ops.multiply(batch, [10.0, 0.5], device="cpu").to_list()[1]
array([[2., 2.]], dtype=float32)

All take float32 or uint8 elements, on the host or on the GPU, and return a batch on the same side, of the same library.
Results are of the elements' dtype (uint8: rounded half to even and saturated), those of `normalize` float32. Parameters
are one number, or one per item. The keyword arguments `strategy`, `threshold`, `device` and `stream` are those of
`octopus.RaggedPlan`, `out` is that of its `run`; a plan used again saves what is built here at each call.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from octopus.errors import InputError
from octopus.kernels.operations import OPERATIONS
from octopus.ragged.batch import RaggedBatch
from octopus.ragged.plan import RaggedPlan

__all__ = ["OPERATIONS", "blur3x3", "blur5x5_sobel", "gamma", "multiply", "normalize", "threshold"]


def multiply(batch: RaggedBatch, gain: Any, *, out: Any = None, **options: Any) -> RaggedBatch:
    """`value * gain`, with a gain per item."""
    return _apply("multiply", batch, gain, out=out, **options)


def normalize(batch: RaggedBatch, mean: Any, std: Any, *, out: Any = None, **options: Any) -> RaggedBatch:
    """`(value - mean) / std` in float32, with mean and standard deviation per item.

    The division is a multiplication by the inverse, which differs from it in the last bit.

    Raises
    ------
    InputError
        Also if a standard deviation on the host is 0.
    """
    on_host = isinstance(std, (int, float, list, tuple, np.ndarray, np.number))
    if on_host and not np.all(np.asarray(std)):
        raise InputError("std must not be 0; leave constant items as they are by giving them 1")
    inverse = np.float32(1) / np.asarray(std, np.float32) if on_host else 1.0 / std
    return _apply("normalize", batch, mean, inverse, out=out, **options)


def threshold(batch: RaggedBatch, level: Any, *, out: Any = None, **options: Any) -> RaggedBatch:
    """1 where a value is above its item's level, else 0."""
    return _apply("threshold", batch, level, out=out, **options)


def gamma(batch: RaggedBatch, exponent: Any, *, out: Any = None, **options: Any) -> RaggedBatch:
    """`value ** exponent` of values from 0 to 1, for uint8 `255 * (value / 255) ** exponent`, an exponent per item."""
    return _apply("gamma", batch, exponent, out=out, **options)


def blur3x3(batch: RaggedBatch, *, out: Any = None, **options: Any) -> RaggedBatch:
    """Mean of the 3 x 3 pixels around each; beyond the border of its image the nearest pixel counts."""
    return _apply("blur3x3", batch, out=out, **options)


def blur5x5_sobel(batch: RaggedBatch, *, out: Any = None, **options: Any) -> RaggedBatch:
    """Mean of the 5 x 5 pixels around each, plus 4/25 of the L1 norm of Sobel's gradient; border as in `blur3x3`."""
    return _apply("blur5x5_sobel", batch, out=out, **options)


def _apply(
    operation: str, batch: RaggedBatch, *parameters: Any, out: Any, stream: Any = None, **options: Any
) -> RaggedBatch:
    plan = RaggedPlan(operation, batch, stream=stream, **options)
    return plan.run(batch, *parameters, out=out, stream=stream)
