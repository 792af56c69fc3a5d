"""Arrays of other libraries: what they hold, where, and results of the same family; nothing is copied.

Understood are NumPy arrays, torch tensors, CuPy and Numba arrays, `DeviceArray`, and whatever else offers
`__cuda_array_interface__` or DLPack.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from octopus.errors import InputError


@dataclass(frozen=True, slots=True)
class ArrayView:
    """Memory of an array, whoever owns it.

    Attributes
    ----------
    pointer : int
        Address of the first element, in host or device memory.
    shape : tuple of int
    strides : tuple of int
        In bytes.
    dtype : numpy.dtype
    device : {"cpu", "cuda"}
    family : {"numpy", "torch", "cupy", "numba", "octopus", "other"}
        Which library a result should come from.
    owner : object
        The array itself; keeps the memory alive.
    """

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype
    device: str
    family: str
    owner: Any

    @property
    def contiguous(self) -> bool:
        """Whether the elements lie in C order without gaps."""
        return math.prod(self.shape) == 0 or self.strides == c_strides(self.shape, self.dtype)

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""
        return math.prod(self.shape) * self.dtype.itemsize

    def numpy(self) -> np.ndarray:
        """The same memory as a NumPy array; for arrays in host memory alone."""
        return self.owner if isinstance(self.owner, np.ndarray) else np.from_dlpack(self.owner)


@cache
def dtype_name(dtype: np.dtype) -> str:
    """`dtype.name`, which NumPy puts together anew at every access."""
    return dtype.name


@cache
def c_strides(shape: tuple[int, ...], dtype: np.dtype) -> tuple[int, ...]:
    """Strides in bytes of a C-contiguous array."""
    strides, step = [], dtype.itemsize
    for side in reversed(shape):
        strides.append(step)
        step *= side
    return tuple(reversed(strides))


def view(array: Any, name: str) -> ArrayView:
    """Describe an array without copying it.

    Parameters
    ----------
    array
        Any array named in the module's docstring.
    name : str
        What the caller calls it, for the error.

    Raises
    ------
    InputError
        If it offers none of the protocols.
    """
    if isinstance(array, np.ndarray):
        return ArrayView(array.ctypes.data, array.shape, array.strides, array.dtype, "cpu", "numpy", array)
    library = family(array)
    if library == "octopus":
        return ArrayView(
            array.pointer,
            array.shape,
            c_strides(array.shape, array.dtype),
            array.dtype,
            "cuda",
            library,
            array,
        )
    if library == "torch":
        return _view_torch(array, name)
    if hasattr(array, "__cuda_array_interface__"):
        return _view_interface(array)
    if hasattr(array, "__dlpack__"):
        return _view_dlpack(array, name)
    raise InputError(
        f"{name} is a {type(array).__name__}; pass a NumPy array, a torch tensor, or any array with DLPack or "
        "__cuda_array_interface__"
    )


def family(array: Any) -> str:
    """The library that an array comes from."""
    root = type(array).__module__.partition(".")[0]
    return root if root in ("numpy", "torch", "cupy", "numba", "octopus") else "other"


def _view_torch(tensor: Any, name: str) -> ArrayView:
    if tensor.device.type not in ("cpu", "cuda"):
        raise InputError(f"{name} lies on {tensor.device}; move it to the CPU or a CUDA device")
    dtype = np.dtype(str(tensor.dtype).removeprefix("torch.").replace("bfloat16", "V2"))
    strides = tuple(step * dtype.itemsize for step in tensor.stride())
    return ArrayView(
        tensor.data_ptr(), tuple(tensor.shape), strides, dtype, tensor.device.type, "torch", tensor.detach()
    )


def _view_interface(array: Any) -> ArrayView:
    interface = array.__cuda_array_interface__
    shape, dtype = tuple(interface["shape"]), np.dtype(interface["typestr"])
    strides = interface.get("strides") or c_strides(shape, dtype)
    return ArrayView(interface["data"][0], shape, tuple(strides), dtype, "cuda", family(array), array)


def _view_dlpack(array: Any, name: str) -> ArrayView:
    kind = int(array.__dlpack_device__()[0])
    if kind in (1, 3):  # kDLCPU, kDLCUDAHost
        host = np.from_dlpack(array)
        return ArrayView(host.ctypes.data, host.shape, host.strides, host.dtype, "cpu", "other", host)
    if kind not in (2, 13):  # kDLCUDA, kDLCUDAManaged
        raise InputError(
            f"{name} lies on a device of DLPack type {kind}; move it to the CPU or a CUDA device"
        )
    from cuda.core.utils import StridedMemoryView

    memory = StridedMemoryView.from_dlpack(array, stream_ptr=-1)
    strides = memory.strides or c_strides_in_elements(memory.shape)
    in_bytes = tuple(step * memory.dtype.itemsize for step in strides)
    return ArrayView(memory.ptr, tuple(memory.shape), in_bytes, memory.dtype, "cuda", "other", memory)


def c_strides_in_elements(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of a C-contiguous array, counted in elements as DLPack does."""
    return c_strides(shape, np.dtype(np.int8))


def empty_like_family(model: ArrayView, shape: tuple[int, ...], dtype: np.dtype, stream: Any = None) -> Any:
    """An uninitialised array of the same library and on the same side as `model`.

    Libraries hand out device memory in the order of a stream; `stream` (of cuda.core) is the one that will use it,
    None their current one.
    """
    if model.family == "torch":
        return _empty_torch(model, shape, dtype, stream)
    if model.device == "cpu":
        return np.empty(shape, dtype)
    if model.family == "cupy":
        return _empty_cupy(shape, dtype, stream)
    if model.family == "numba":
        from numba import cuda

        return cuda.device_array(shape, dtype)
    from octopus.backends.cuda.memory import DeviceArray

    return DeviceArray(shape, dtype, stream=stream)


def _empty_torch(model: ArrayView, shape: tuple[int, ...], dtype: np.dtype, stream: Any) -> Any:
    import torch

    device = model.owner.device
    with _external(torch.cuda.stream, torch.cuda.ExternalStream, stream, device.type == "cuda"):
        return torch.empty(shape, dtype=getattr(torch, dtype.name), device=device)


def _empty_cupy(shape: tuple[int, ...], dtype: np.dtype, stream: Any) -> Any:
    import cupy

    with _external(lambda external: external, cupy.cuda.ExternalStream, stream, True):
        return cupy.empty(shape, dtype)


def _external(enter: Any, wrap: Any, stream: Any, on_gpu: bool) -> Any:
    """A context in which a library's current stream is `stream`; one without effect where there is none."""
    return nullcontext() if stream is None or not on_gpu else enter(wrap(int(stream.handle)))


def current_stream(model: ArrayView) -> Any:
    """The stream on which the array's library queues its work now; None for those without such a notion."""
    if model.device == "cpu":
        return None
    if model.family == "torch":
        import torch

        return torch.cuda.current_stream(model.owner.device)
    if model.family == "cupy":
        import cupy

        return cupy.cuda.get_current_stream()
    return None
