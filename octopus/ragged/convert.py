"""Ragged batches from and to lists, padded arrays, nested tensors of torch and list arrays of Arrow."""

import math
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from octopus.arrays.checks import INT32_MAX, check_tensor
from octopus.arrays.results import check_memory, result_memory
from octopus.arrays.views import ArrayView, dtype_name, family, view
from octopus.backends import cpu
from octopus.errors import InputError, MissingPackageError, shown, shown_type


class Jagged(NamedTuple):
    """What a nested tensor says beside its values: offsets (N + 1,) counted in rows, on the tensor's device, the shape
    of its values, and the rows of its shortest and longest item where torch knew them already."""

    offsets: Any  # torch combines only nested tensors that share this very object
    shape: tuple[int, ...]
    shortest: int | None
    longest: int | None


def need(module: str, product: str, install: str) -> Any:
    """Import a package that Octopus doesn't depend on; raises `MissingPackageError`, also if what it links to is."""
    try:
        return import_module(module)
    except (ImportError, OSError) as error:
        raise MissingPackageError(f"this needs {product}, which can't be imported ({error}): {install}") from error


ARROW, TORCH = ("pyarrow", "Arrow", "pip install pyarrow"), ("torch", "PyTorch", "pip install torch")


def joined(items: Iterable[Any]) -> tuple[Any, np.ndarray]:
    """Items one after the other in a new flat array, of torch if they are, and their shapes (N, D)."""
    if isinstance(items, (str, bytes, Mapping)) or not hasattr(items, "__iter__") or getattr(items, "ndim", 1) == 0:
        raise InputError(f"from_list takes a list of arrays, found {shown_type(items)}")
    items = list(items)
    if not items:
        raise InputError(
            "an empty list has no dtype; use RaggedBatch.from_arrays(numpy.empty(0, dtype), "
            "numpy.empty((0, D), int)), with items of D dimensions"
        )
    tensors = {family(item) == "torch" for item in items}
    if len(tensors) > 1:
        raise InputError("items must come from one library, found torch tensors and others")
    if tensors == {True}:
        return _joined_tensors(items)
    if any(hasattr(item, "__cuda_array_interface__") for item in items):
        raise InputError("from_list takes NumPy arrays and tensors; join what is on the GPU, then use from_arrays")
    arrays: list[np.ndarray] = []
    for number, item in enumerate(items):
        if isinstance(item, np.ma.MaskedArray):
            raise InputError(f"item {number} is a masked array; fill its holes first: item.filled(...)")
        try:
            arrays.append(np.asarray(item))
        except ValueError:
            raise InputError(f"item {number} must be an array, found rows of different length") from None
    shapes = _shapes(arrays)
    return np.concatenate([array.ravel() for array in arrays]), shapes


def _joined_tensors(items: list[Any]) -> tuple[Any, np.ndarray]:
    devices = sorted({str(item.device) for item in items})
    if len(devices) > 1:
        raise InputError(f"items must be on one device, found {devices}")
    for number, item in enumerate(items):
        check_tensor(item.detach(), f"item {number}")
    shapes = _shapes(items)
    # A batch holds no graph; joined as they are, parameters would make one.
    return need(*TORCH).cat([item.detach().reshape(-1) for item in items]), shapes


def _shapes(items: list[Any]) -> np.ndarray:
    kinds = {(str(item.dtype).removeprefix("torch."), item.ndim) for item in items}
    if len(kinds) > 1:
        raise InputError(f"items must share dtype and dimensions, found {sorted(kinds)}")
    return np.array([tuple(item.shape) for item in items], np.int64).reshape(len(items), items[0].ndim)


def part(values: Any, start: int, stop: int, shape: tuple[int, ...]) -> Any:
    """Elements of a flat array as an array of a shape, without a copy."""
    if family(values) == "octopus":
        return values.part(start, shape)
    if not hasattr(values, "__getitem__") or not hasattr(values, "reshape"):
        raise InputError(f"{shown_type(values)} can't be cut into items; make it a NumPy array or a tensor")
    return values[start:stop].reshape(shape)


def from_torch(nested: Any) -> tuple[Any, Any, Jagged]:
    _check_nested(need(*TORCH), nested)
    source, rows = nested.values(), nested.offsets()
    width = math.prod(source.shape[1:])
    if not width:
        raise InputError(f"items of shape (j, {', '.join(map(str, source.shape[1:]))}) have no elements")
    offsets = rows
    if width > 1:
        fits = source.numel() <= INT32_MAX
        offsets = (rows if fits else rows.long()) * width  # on its device
    known = (getattr(nested, name, None) for name in ("_maybe_min_seqlen", "_maybe_max_seqlen"))
    return source.detach().reshape(-1), offsets, Jagged(rows, tuple(source.shape), *known)


def _check_nested(torch: Any, nested: Any) -> None:
    if not isinstance(nested, torch.Tensor) or not nested.is_nested:
        raise InputError(
            f"from_torch takes a nested tensor, found {shown_type(nested)}; for tensors use RaggedBatch.from_list"
        )
    if nested.layout != torch.jagged:
        raise InputError(
            "the nested tensor has the strided layout; use RaggedBatch.from_list(nested.unbind()), or make it with "
            "layout=torch.jagged"
        )
    # Of a ragged side torch knows no number.
    ragged = [axis for axis, side in enumerate(nested.shape) if not isinstance(side, int)]
    if ragged != [1]:
        raise InputError(f"the ragged side must be axis 1 of the nested tensor, found {ragged}; transpose it back")
    if nested.lengths() is not None:
        raise InputError("the nested tensor has holes between its items; close them with nested.contiguous()")


def to_torch(values: Any, offsets: Any, shapes: np.ndarray | None, jagged: Jagged | None) -> Any:
    torch = need(*TORCH)
    flat = _tensor(torch, values, "values")
    parts = jagged or _jagged(torch, flat, offsets, shapes)
    return torch.nested.nested_tensor_from_jagged(
        flat.view(parts.shape), parts.offsets.to(flat.device), min_seqlen=parts.shortest, max_seqlen=parts.longest
    )


def _jagged(torch: Any, flat: Any, offsets: Any, shapes: np.ndarray | None) -> Jagged:
    inner: tuple[int, ...] = ()
    if shapes is not None:
        if not shapes.shape[1] or (shapes[:, 1:] != shapes[:1, 1:]).any():
            raise InputError(
                "a nested tensor of the jagged layout has items of shape (j, ...) that differ in j alone; give torch "
                "the items: torch.nested.nested_tensor(batch.to_list())"
            )
        inner = tuple(shapes[0, 1:].tolist()) if len(shapes) else (0,) * (shapes.shape[1] - 1)
        offsets = np.zeros(len(shapes) + 1, np.int64)
        np.cumsum(shapes[:, 0], out=offsets[1:])
    if not isinstance(offsets, np.ndarray):
        return Jagged(_tensor(torch, offsets, "offsets").long(), (flat.numel(),), None, None)
    lengths = np.diff(offsets)
    known = (int(lengths.min()), int(lengths.max())) if len(lengths) else (None, None)
    return Jagged(torch.from_numpy(offsets.copy()), (int(offsets[-1]), *inner), *known)


def _tensor(torch: Any, array: Any, name: str) -> Any:
    """Any array as a tensor on the same memory."""
    found = view(array, name)
    if found.family == "torch":
        return array
    try:
        if found.device == "cpu":
            return torch.from_numpy(found.numpy())
        return torch.as_tensor(array) if hasattr(array, "__cuda_array_interface__") else torch.from_dlpack(array)
    except TypeError as error:
        raise InputError(f"torch can't take the {name}: {error}") from error


def from_arrow(array: Any) -> tuple[np.ndarray, np.ndarray]:
    arrow = need(*ARROW)
    array = _one_array(arrow, array)
    if arrow.types.is_fixed_size_list(array.type):
        side = array.type.list_size
        offsets, first = np.arange(len(array) + 1, dtype=np.int64) * side, array.offset * side
    else:
        bounds = array.offsets.to_numpy() if len(array) else np.zeros(1, np.int64)
        first = int(bounds[0])
        offsets = bounds.astype(np.int64) - first if first else bounds
    values = array.values[first : first + int(offsets[-1])]  # of a slice too, `values` has all
    if values.null_count:
        raise InputError(f"{values.null_count} elements are null; fill them (pyarrow.compute.fill_null)")
    return values.to_numpy(zero_copy_only=True), offsets


def _one_array(arrow: Any, array: Any) -> Any:
    """An array of lists of pyarrow, from whatever offers Arrow's C interface."""
    if not isinstance(array, (arrow.Array, arrow.ChunkedArray)):
        if hasattr(array, "__arrow_c_array__"):
            array = arrow.array(array)
        elif hasattr(array, "__arrow_c_stream__"):
            array = arrow.chunked_array(array)
        else:
            raise InputError(f"from_arrow takes a list array of Arrow, found {shown_type(array)}")
    if isinstance(array, arrow.ChunkedArray):
        array = array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()
    kind, types = array.type, arrow.types
    if not (types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)):
        raise InputError(
            f"from_arrow takes a list, large list or fixed-size list, found {kind}; cast the array to one of them"
        )
    element = kind.value_type
    if not types.is_integer(element) and not types.is_floating(element):
        nested = "; flatten the inner lists first" if types.is_nested(element) else "; cast them first"
        raise InputError(f"the elements must be integers or floats, found {element}{nested}")
    if array.null_count:
        raise InputError(f"{array.null_count} lists are null; drop them (drop_null) or make them empty")
    return array


def to_arrow(values: Any, offsets: np.ndarray, large: bool) -> Any:
    arrow = need(*ARROW)
    found = view(values, "values")
    if found.device != "cpu":
        raise InputError("to_arrow needs values in host memory, they are on the GPU; copy them to the host first")
    if found.dtype.kind not in "iuf" or found.dtype.itemsize > 8:
        raise InputError(f"to_arrow takes integers and floats of up to 64 bits, found {found.dtype}")
    if not large and offsets[-1] > INT32_MAX:
        raise InputError(f"{offsets[-1]} elements are more than a list array holds; use to_arrow(large=True)")
    kind, bounds = (arrow.LargeListArray, offsets) if large else (arrow.ListArray, offsets.astype(np.int32))
    return kind.from_arrays(arrow.array(bounds), arrow.array(found.numpy()))


def padded(values: ArrayView, offsets: Any, shapes: NDArray[np.int64] | None, inner: tuple[int, ...], fill: Any) -> Any:
    held = _held(fill, values.dtype)
    sides = shapes
    if sides is None:  # items differ in their first side alone
        lengths = np.diff(offsets) // math.prod(inner)
        sides = np.column_stack([lengths, *[np.full(len(lengths), side) for side in inner]])
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
