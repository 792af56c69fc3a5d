"""What a `RaggedBatch` is checked for: its parts are sound and fit each other."""

from __future__ import annotations

import math
import operator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from octopus.arrays.checks import INT32_MAX, check_tensor
from octopus.arrays.views import ArrayView, view
from octopus.errors import InputError, shown

OFFSET_DTYPES = ("int32", "int64")  # of offsets in GPU memory, which are taken as they are
INT64_MAX = 2**63 - 1

Element = TypeVar("Element", bound=np.generic)


def sealed(array: NDArray[Element]) -> NDArray[Element]:
    """A read-only view of an array that nobody else has; NumPy refuses to make such a view writeable again."""
    array.setflags(write=False)
    return array.view()


def whole(name: str, value: Any) -> int:
    """An integer from 1 to 2**31 - 1: of Python, of NumPy, or an array of any library without dimensions; neither a
    boolean nor a float without a fraction."""
    try:
        found = 0 if _is_boolean(value) else operator.index(value)
    except (TypeError, ValueError, RuntimeError):
        found = 0
    if not 1 <= found <= INT32_MAX:
        raise InputError(f"{name} must be a whole number, at least 1 and at most 2**31 - 1, found {shown(value)}")
    return found


def _is_boolean(value: Any) -> bool:
    return isinstance(value, bool) or str(getattr(value, "dtype", "")).endswith("bool")


def item_number(index: Any, count: int) -> int:
    """The place of an item, counted from the first."""
    try:
        if _is_boolean(index):
            raise TypeError
        place = operator.index(index)
    except TypeError:
        raise InputError(
            f"the index of an item is one integer, found {shown(index)}; to_list() makes a list to cut"
        ) from None
    if not -count <= place < count:
        raise IndexError(f"item {place} of a batch of {count}")
    return range(count)[place]


def flat_view(values: Any) -> ArrayView:
    """View of the values: numbers, flat and contiguous."""
    if getattr(values, "is_nested", False):
        raise InputError("values must be a flat array, found a nested tensor; use RaggedBatch.from_torch")
    check_tensor(values, "values")
    found = view(values, "values")
    if len(found.shape) != 1 or not found.contiguous:
        raise InputError(f"values must be a flat, contiguous array, found {found.shape} by {found.strides} bytes")
    if found.dtype.kind not in "biufc" or not found.dtype.isnative:
        raise InputError(f"values must be numbers in the machine's byte order, found {found.dtype}")
    return found


def integers(array: Any, name: str, dimensions: int) -> NDArray[np.int64]:
    """An array of integers on the host as int64, perhaps the caller's own."""
    if isinstance(array, np.ma.MaskedArray):
        raise InputError(f"{name} is a masked array; fill its holes first: .filled(value)")
    try:
        array = np.asarray(array)
    except (TypeError, ValueError, RuntimeError) as error:  # rows of different length, memory of a GPU
        raise InputError(f"{name} must be an integer array on the host: {error}") from None
    if array.ndim != dimensions or (array.size and array.dtype.kind not in "iu"):
        raise InputError(
            f"{name} must be an integer array of {dimensions} dimension(s), found {array.dtype} of shape {array.shape}"
        )
    result: NDArray[np.int64] = array.astype(np.int64, copy=False)
    return result


def kept(array: Any, name: str, dimensions: int) -> NDArray[np.int64]:
    """The same as a copy that stays as it was checked."""
    return sealed(np.array(integers(array, name, dimensions), order="C"))


def kept_offsets(offsets: Any, values: ArrayView) -> Any:
    """Offsets as NumPy's int64, a copy, or as given if they are in GPU memory."""
    found = None if isinstance(offsets, (list, tuple)) else view(offsets, "offsets")
    on_host = found is None or found.device == "cpu"
    kept_ones = kept(offsets if found is None else found.numpy(), "offsets", 1) if on_host else offsets
    if found is not None and not on_host:
        if len(found.shape) != 1 or not found.contiguous or found.dtype.name not in OFFSET_DTYPES:
            raise InputError(
                "offsets in GPU memory must be a contiguous array of one dimension, int32 or int64, found "
                f"{found.dtype} of shape {found.shape}"
            )
        check_sides(values, found)
    if not kept_ones.shape[0]:
        raise InputError("no offsets; a batch without items has the offsets [0]")
    return kept_ones


def check_sides(values: ArrayView, offsets: ArrayView) -> None:
    """A GPU that has the offsets must have the values, too."""
    if values.device == "cpu":
        raise InputError("offsets in GPU memory need values in GPU memory, found values on the host")
    if None not in (values.ordinal, offsets.ordinal) and values.ordinal != offsets.ordinal:
        raise InputError(f"values are on GPU {values.ordinal}, offsets on GPU {offsets.ordinal}")


def check_shapes(count: int, shapes: np.ndarray) -> None:
    """There must be a shape for each of `count` items, of sides that can be."""
    if count != len(shapes):
        raise InputError(f"{len(shapes)} shapes need {len(shapes) + 1} offsets, found {count + 1}")
    if (shapes < 0).any():
        raise InputError(f"item {int(np.argmax((shapes < 0).any(axis=1)))} has a negative side")
    if shapes.size and int(shapes.max()) ** shapes.shape[1] > INT64_MAX:  # else no product can overflow
        elements = [math.prod(shape) for shape in shapes.tolist()]
        if max(elements) > INT64_MAX:
            raise InputError(f"item {int(np.argmax(elements))} has more elements than any memory")


def check_offsets(size: int, offsets: np.ndarray, shapes: np.ndarray | None) -> None:
    """Offsets on the host must cut `size` values into items of these shapes."""
    if offsets[0] != 0 or offsets[-1] != size:
        raise InputError(f"offsets run from {offsets[0]} to {offsets[-1]}; they must run from 0 to the {size} values")
    if shapes is None:
        check_rising(offsets)
        return
    lengths = np.diff(offsets)
    wrong = (offsets[1:] < offsets[:-1]) | (lengths != shapes.prod(axis=1))  # a difference may overflow
    if wrong.any():
        item = int(np.argmax(wrong))
        raise InputError(f"item {item} has shape {tuple(shapes[item].tolist())} but {lengths[item]} values")


def check_rising(offsets: NDArray[np.integer]) -> None:
    """No item may end before it begins."""
    if (offsets[1:] < offsets[:-1]).any():
        item = int(np.argmax(offsets[1:] < offsets[:-1]))
        raise InputError(f"offsets must not fall: item {item} runs from {offsets[item]} to {offsets[item + 1]}")
