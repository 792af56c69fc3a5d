"""What a `RaggedBatch` is checked for: its parts are sound and fit each other."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from octopus.arrays.views import ArrayView, view
from octopus.errors import InputError

OFFSET_DTYPES = ("int32", "int64")  # of offsets in GPU memory, which are taken as they are
INT64_MAX = 2**63 - 1


def flat_view(values: Any) -> ArrayView:
    """View of the values; raises `InputError` unless they are numbers, flat and contiguous."""
    if getattr(values, "is_nested", False):
        raise InputError("values must be a flat array, found a nested tensor; use RaggedBatch.from_torch")
    found = view(values, "values")
    if len(found.shape) != 1 or not found.contiguous:
        raise InputError(
            f"values must be a flat, contiguous array, found {found.shape} by {found.strides} bytes"
        )
    if found.dtype.kind not in "biufc" or not found.dtype.isnative:
        raise InputError(f"values must be numbers in the machine's byte order, found {found.dtype}")
    return found


def integers(array: Any, name: str, dimensions: int) -> np.ndarray:
    """An array on the host as int64; raises `InputError` unless it holds integers and has so many dimensions."""
    array = np.asarray(array)
    if array.ndim != dimensions or (array.size and not np.issubdtype(array.dtype, np.integer)):
        raise InputError(
            f"{name} must be an integer array of {dimensions} dimension(s), found {array.dtype} of shape {array.shape}"
        )
    result: np.ndarray = array.astype(np.int64, copy=False)
    return result


def kept_offsets(offsets: Any, values: ArrayView) -> Any:
    """Offsets as NumPy's int64, or as given if they are in GPU memory."""
    if isinstance(offsets, (list, tuple)):
        offsets = np.asarray(offsets)
    found = view(offsets, "offsets")
    if found.device == "cpu":
        array = integers(found.numpy(), "offsets", 1)
        if not array.size:
            raise InputError("no offsets; a batch without items has the offsets [0]")
        return array
    if len(found.shape) != 1 or not found.contiguous or found.dtype.name not in OFFSET_DTYPES:
        raise InputError(
            "offsets in GPU memory must be a contiguous array of one dimension, int32 or int64, found "
            f"{found.dtype} of shape {found.shape}"
        )
    if not found.shape[0]:
        raise InputError("no offsets; a batch without items has the offsets [0]")
    check_sides(values, found)
    return offsets


def check_sides(values: ArrayView, offsets: ArrayView) -> None:
    """Raise `InputError` if a GPU that has the offsets doesn't have the values."""
    if values.device == "cpu":
        raise InputError("offsets in GPU memory need values in GPU memory, found values on the host")
    if None not in (values.ordinal, offsets.ordinal) and values.ordinal != offsets.ordinal:
        raise InputError(f"values are on GPU {values.ordinal}, offsets on GPU {offsets.ordinal}")


def check_shapes(count: int, shapes: np.ndarray) -> None:
    """Raise `InputError` unless there is a shape for each of `count` items, of sides that can be."""
    if count != len(shapes):
        raise InputError(f"{len(shapes)} shapes need {len(shapes) + 1} offsets, found {count + 1}")
    if (shapes < 0).any():
        raise InputError(f"item {int(np.argmax((shapes < 0).any(axis=1)))} has a negative side")
    if shapes.size and int(shapes.max()) ** shapes.shape[1] > INT64_MAX:  # else no product can overflow
        elements = [math.prod(shape) for shape in shapes.tolist()]
        if max(elements) > INT64_MAX:
            raise InputError(f"item {int(np.argmax(elements))} has more elements than any memory")


def check_offsets(size: int, offsets: np.ndarray, shapes: np.ndarray | None) -> None:
    """Raise `InputError` unless offsets on the host cut `size` values into items of these shapes."""
    if offsets[0] != 0 or offsets[-1] != size:
        raise InputError(
            f"offsets run from {offsets[0]} to {offsets[-1]}; they must run from 0 to the {size} values"
        )
    lengths = np.diff(offsets)
    wrong = lengths < 0 if shapes is None else lengths != shapes.prod(axis=1)
    if not wrong.any():
        return
    item = int(np.argmax(wrong))
    if shapes is None:
        raise InputError(
            f"offsets must not fall: item {item} runs from {offsets[item]} to {offsets[item + 1]}"
        )
    raise InputError(f"item {item} has shape {tuple(shapes[item].tolist())} but {lengths[item]} values")


def held_fill(fill: float, dtype: np.dtype) -> np.ndarray:
    """The fill value in the batch's dtype."""
    try:
        held = np.asarray(fill).astype(dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{dtype} can't hold the fill value {fill!r}") from error
    exact = dtype.kind in "fc" or held == np.asarray(fill)
    if not exact:
        raise InputError(f"{dtype} can't hold the fill value {fill!r}")
    return held
