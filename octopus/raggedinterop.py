"""Ragged batches from and to other libraries: nested tensors of torch and list arrays of Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from octopus.errors import InputError, MissingPackageError
from octopus.interop import c_strides, family, view

INT32_MAX = 2**31 - 1


class Jagged(NamedTuple):
    """What a nested tensor says beside its values.

    Attributes
    ----------
    offsets : torch.Tensor, (N + 1,)
        Counted in rows, on the tensor's device. Torch combines only nested tensors that share this very object.
    shape : tuple of int
        Of the values as torch has them: rows, then the sides that all items share.
    shortest, longest : int or None
        Rows of the shortest and longest item, where torch knew them already.
    """

    offsets: Any
    shape: tuple[int, ...]
    shortest: int | None
    longest: int | None


def need(module: str, product: str, install: str) -> Any:
    """Import a package that Octopus doesn't depend on.

    Raises
    ------
    MissingPackageError
        It is not installed, or what it links to is missing.
    """
    try:
        return import_module(module)
    except (ImportError, OSError) as error:
        raise MissingPackageError(
            f"this needs {product}, which can't be imported ({error}): {install}"
        ) from error


def _torch() -> Any:
    return need("torch", "PyTorch", "pip install torch")


def _arrow() -> Any:
    return need("pyarrow", "Arrow", "pip install pyarrow")


def joined(items: Sequence[Any]) -> tuple[Any, np.ndarray]:
    """Items one after the other in a new flat array, of torch if they are, and their shapes (N, D)."""
    items = list(items)
    if not items:
        raise InputError("an empty list has no dtype; use RaggedBatch.from_arrays(values, shapes)")
    tensors = {family(item) == "torch" for item in items}
    if len(tensors) > 1:
        raise InputError("items must come from one library, found torch tensors and others")
    if tensors == {True}:
        return _joined_tensors(items)
    arrays = [np.asarray(item) for item in items]
    _check_alike({(array.dtype.name, array.ndim) for array in arrays})
    return np.concatenate([array.ravel() for array in arrays]), _shapes(arrays)


def _joined_tensors(items: list[Any]) -> tuple[Any, np.ndarray]:
    devices = sorted({str(item.device) for item in items})
    if len(devices) > 1:
        raise InputError(f"items must be on one device, found {devices}")
    _check_alike({(str(item.dtype).removeprefix("torch."), item.ndim) for item in items})
    # A batch holds no graph; joined as they are, parameters would make one.
    return _torch().cat([item.detach().reshape(-1) for item in items]), _shapes(items)


def _check_alike(kinds: set[tuple[str, int]]) -> None:
    if len(kinds) > 1:
        raise InputError(f"items must share dtype and dimensions, found {sorted(kinds)}")


def _shapes(items: list[Any]) -> np.ndarray:
    return np.array([tuple(item.shape) for item in items], np.int64).reshape(len(items), items[0].ndim)


def part(values: Any, start: int, stop: int, shape: tuple[int, ...]) -> Any:
    """Elements of a flat array as an array of a shape, without a copy."""
    if family(values) == "octopus":
        from octopus.backends.cuda.memory import DeviceArray

        pointer = values.pointer + start * c_strides((1,), values.dtype)[0]
        return DeviceArray(shape, values.dtype, buffer=values, pointer=pointer)
    if not hasattr(values, "__getitem__") or not hasattr(values, "reshape"):
        raise InputError(
            f"a {type(values).__name__} can't be cut into items; make it a NumPy array or a tensor"
        )
    return values[start:stop].reshape(shape)


def host_copy(array: Any) -> np.ndarray:
    """An array in GPU memory as a NumPy array; waits for the GPU."""
    library = family(array)
    if library == "torch":
        return array.detach().cpu().numpy()
    if library == "cupy":
        return array.get()
    if library in ("numba", "octopus"):
        return array.copy_to_host()
    from octopus.backends.cuda.device import current
    from octopus.backends.cuda.memory import DeviceArray

    found = view(array, "offsets")
    current().sync()  # the array's library may use any stream
    return DeviceArray(found.shape, found.dtype, buffer=array, pointer=found.pointer).copy_to_host()
