"""Checks of a `RaggedBatch`, whose parts must fit each other, and of the parameters of operations on it."""

import math
import operator
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from octopus.arrays.checks import INT32_MAX, check_tensor
from octopus.arrays.views import ArrayView, dtype_name, view
from octopus.errors import InputError, shown, shown_type

OFFSET_DTYPES = ("int32", "int64")  # of offsets in GPU memory, which are taken as they are
INT64_MAX = 2**63 - 1
NAMES = {"multiply": ("gain",), "normalize": ("mean", "1 / std"), "threshold": ("level",), "gamma": ("exponent",)}

Element = TypeVar("Element", bound=np.generic)


def sealed(array: NDArray[Element]) -> NDArray[Element]:
    """A read-only view of an array that nothing else refers to; NumPy refuses to make such a view writeable again."""
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
    if values.device == "cpu":
        raise InputError("offsets in GPU memory need values in GPU memory, found values on the host")
    if None not in (values.ordinal, offsets.ordinal) and values.ordinal != offsets.ordinal:
        raise InputError(f"values are on GPU {values.ordinal}, offsets on GPU {offsets.ordinal}")


def check_shapes(count: int, shapes: np.ndarray) -> None:
    if count != len(shapes):
        raise InputError(f"{len(shapes)} shapes need {len(shapes) + 1} offsets, found {count + 1}")
    if (shapes < 0).any():
        raise InputError(f"item {int(np.argmax((shapes < 0).any(axis=1)))} has a negative side")
    if shapes.size and int(shapes.max()) ** shapes.shape[1] > INT64_MAX:  # else no product can overflow
        elements = [math.prod(shape) for shape in shapes.tolist()]
        if max(elements) > INT64_MAX:
            raise InputError(f"item {int(np.argmax(elements))} has more elements than any memory")


def check_offsets(size: int, offsets: np.ndarray, shapes: np.ndarray | None) -> None:
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
    if (offsets[1:] < offsets[:-1]).any():
        item = int(np.argmax(offsets[1:] < offsets[:-1]))
        raise InputError(f"offsets must not fall: item {item} runs from {offsets[item]} to {offsets[item + 1]}")


def checked_parameters(
    operation: str, values: Sequence[Any], items: int, device: str
) -> list[NDArray[np.float32] | ArrayView]:
    """All parameters of an operation that works on a device: one float32 per item, as an array or a view on the GPU."""
    names = NAMES.get(operation, ())
    if len(values) != len(names):
        told = f" ({', '.join(names)})" if names else ""
        raise InputError(f"{operation} takes {len(names)} parameters{told}, found {len(values)}")
    found = [_parameter(name, value, items) for name, value in zip(names, values, strict=True)]
    if device == "cpu" and any(isinstance(each, ArrayView) for each in found):
        raise InputError("a parameter is in GPU memory but the batch is on the CPU; copy it to the host")
    return found


def _parameter(name: str, value: Any, items: int) -> NDArray[np.float32] | ArrayView:
    found = _described(name, value)
    if found.device == "cuda":
        if found.shape != (items,) or dtype_name(found.dtype) != "float32" or not found.contiguous:
            raise InputError(
                f"the {name} in GPU memory must be {items} contiguous float32, one per item, found {found.dtype} of "
                f"shape {found.shape}"
            )
        return found
    # A copy: page-locked memory of the caller's would be read after the call has returned.
    return np.array(np.broadcast_to(_single(name, found, items), (items,)), order="C")


def _single(name: str, found: ArrayView, items: int) -> NDArray[np.float32]:
    """Numbers on the host in float32, one or one per item."""
    numbers = found.numpy()
    if numbers.shape not in ((), (items,)) or numbers.dtype.kind not in "biuf":
        raise InputError(
            f"the {name} must be one number or {items}, one per item, found {numbers.dtype} of shape {numbers.shape}"
        )
    _refuse(name, ~np.isfinite(numbers), "is not a finite number")
    with np.errstate(over="ignore"):
        single: NDArray[np.float32] = np.asarray(numbers.astype(np.float32))
    _refuse(name, ~np.isfinite(single), "leaves the range of float32")
    return single


def inverse_std(value: Any, items: int, stream: Any = None) -> Any:
    """1 / std as `normalize` wants it: on the host checked; on the GPU made there, on the stream if there is one."""
    found = _described("std", value)
    if found.device == "cuda":
        return _inverse_there(found, stream)
    single = _single("std", found, items)
    _refuse("std", single <= 0, "is not positive; leave constant items as they are by giving them 1")
    with np.errstate(over="ignore"):
        inverse = np.float32(1) / single
    _refuse("std", ~np.isfinite(inverse), "is too small for float32 to hold its inverse")
    return inverse


def _described(name: str, value: Any) -> ArrayView:
    if isinstance(value, (int, float, list, tuple, np.number)):
        try:
            value = np.asarray(value)
        except (ValueError, TypeError, RuntimeError) as error:
            raise InputError(f"the {name} must be one number, or one per item: {error}") from None
    if value is None or isinstance(value, (str, bytes, dict)):
        raise InputError(f"the {name} must be one number, or one per item, found {shown(value)}")
    check_tensor(value, f"the {name}")
    return view(value, f"the {name}")


def _refuse(name: str, wrong: NDArray[np.bool_], why: str) -> None:
    if wrong.any():
        where = f" of item {int(np.argmax(wrong))}" if wrong.ndim else ""
        raise InputError(f"the {name}{where} {why}")


def _inverse_there(found: ArrayView, stream: Any) -> Any:
    current: Any = nullcontext()  # else the library queues its work there, so that the kernel behind it needn't wait
    if stream is not None and found.family == "torch":
        import torch

        current = torch.cuda.stream(torch.cuda.ExternalStream(int(stream.handle), found.owner.device))
    elif stream is not None and found.family == "cupy":
        import cupy

        current = cupy.cuda.ExternalStream(int(stream.handle))
    with current:
        try:
            return 1.0 / found.owner
        except TypeError:
            raise InputError(
                f"std on the GPU is {shown_type(found.owner)}, which can't be inverted there; give a tensor of "
                "torch, an array of CuPy, or numbers on the host"
            ) from None
