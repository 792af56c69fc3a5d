"""A ragged batch as one array with room for its longest item."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus.arrays.results import check_memory, result_memory
from octopus.arrays.views import ArrayView, dtype_name, view
from octopus.backends import cpu
from octopus.errors import InputError, shown


def padded(values: ArrayView, sides: NDArray[np.int64], fill: Any) -> Any:
    """The values of items of these sides (N, D) as one array, see `RaggedBatch.to_padded`."""
    held = _held(fill, values.dtype)
    longest = sides.max(axis=0, initial=0).tolist()
    needed = math.prod((len(sides), *longest)) * values.dtype.itemsize
    check_memory(needed, cpu.free_bytes(), "the host", "pad fewer items at once")
    result = result_memory(values, (len(sides), *longest), dtype_name(values.dtype), None)
    array = view(result, "result").numpy()
    array[...] = held
    inside = np.ones((len(sides), *[1] * len(longest)), bool)
    for axis, longest_side in enumerate(longest, start=1):
        places = np.arange(longest_side).reshape([-1 if a == axis else 1 for a in range(array.ndim)])
        inside = inside & (places < sides[:, axis - 1].reshape([-1] + [1] * len(longest)))
    array[inside] = values.numpy()  # both in C order, item by item
    return result


def sides_of(offsets: NDArray[np.int64], inner: tuple[int, ...]) -> NDArray[np.int64]:
    """Shapes (N, D) of items that differ in their first side alone."""
    lengths = np.diff(offsets) // math.prod(inner)
    return np.column_stack([lengths, *[np.full(len(lengths), side) for side in inner]])


def _held(fill: Any, dtype: np.dtype) -> np.ndarray:
    """The fill value in the batch's dtype; floats may round it, but not to infinity."""
    given = np.asarray(fill)
    fits = given.ndim == 0 and given.dtype.kind in ("biufc" if dtype.kind == "c" else "biuf")
    with np.errstate(over="ignore", invalid="ignore"):
        held = given.astype(dtype) if fits else given
    rounded = dtype.kind in "fc" and fits and np.isfinite(held) == np.isfinite(given)
    if not fits or not (rounded or held == given):
        raise InputError(f"{dtype} can't hold the fill value {shown(fill)}")
    return held
