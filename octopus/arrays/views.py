"""Arrays of other libraries: what they hold, and where; nothing is copied.

Understood are NumPy arrays, torch tensors, CuPy and Numba arrays, `DeviceArray`, images of Pillow, and whatever else
offers `__cuda_array_interface__` or DLPack.
"""

from __future__ import annotations

import ctypes
import math
import sys
from dataclasses import dataclass, replace
from functools import lru_cache
from os import PathLike
from typing import Any

import numpy as np

from octopus.backends.cuda.device import LEGACY
from octopus.errors import InputError, shown_type

_NO_BYTES = ctypes.c_char * 0
MOST_STEP = 1 << 48  # bytes: no address space is larger


@dataclass(slots=True)
class ArrayView:
    """Memory of an array, whoever owns it."""

    pointer: int  # address of the first element, in host or device memory
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in bytes
    dtype: np.dtype
    device: str  # "cpu" or "cuda"
    family: str  # library a result should come from: numpy, torch, cupy, numba, octopus or other
    owner: Any  # the array itself, which keeps the memory alive; None if only the kind of array matters
    ordinal: int | None = None  # number of the GPU, where the library tells it
    after: int | None = None  # handle of the stream on which the producer may still be writing

    @property
    def layout(self) -> tuple[Any, ...]:
        """What the checks of an array look at: all but its address."""
        return self.shape, self.strides, self.dtype, self.device

    @property
    def unowned(self) -> ArrayView:
        """The same without the array, which need not stay alive then."""
        return ArrayView(  # a fifth of the time of `replace`, in each call with images
            self.pointer, self.shape, self.strides, self.dtype, self.device, self.family, None, self.ordinal, self.after
        )

    @property
    def planes(self) -> tuple[ArrayView, ...]:
        """All pieces of memory that the values lie in: of most arrays one."""
        return (self,)

    def packed_at(self, pointer: int) -> ArrayView:
        """A contiguous copy on the GPU, as `arrays.plan.Stage` puts it at an address there."""
        return replace(self, pointer=pointer, strides=c_strides(self.shape, self.dtype), device="cuda")

    def part(self, first: int, last: int) -> ArrayView:
        # On a GPU the owner keeps memory alive, and may have no parts.
        owner = self.owner if self.owner is None or self.device == "cuda" else self.owner[first:last]
        pointer = self.pointer + first * self.strides[0]
        return replace(self, pointer=pointer, shape=(last - first, *self.shape[1:]), owner=owner)

    @property
    def contiguous(self) -> bool:
        expected = c_strides(self.shape, self.dtype)
        # The stride of an axis of length 1 is never used, and libraries put anything there.
        return math.prod(self.shape) == 0 or all(
            side == 1 or found == right for side, found, right in zip(self.shape, self.strides, expected, strict=True)
        )

    @property
    def extent(self) -> tuple[int, int]:
        """Addresses of the first byte and of the one after the last; the same twice if there are no elements."""
        below, above = _reach(self.shape, self.strides, self.dtype.itemsize)
        return self.pointer + below, self.pointer + above

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    def numpy(self) -> np.ndarray:
        """The same memory as a NumPy array; for arrays in host memory alone."""
        if isinstance(self.owner, np.ndarray):
            return self.owner
        return self.owner.detach().numpy() if self.family == "torch" else np.from_dlpack(self.owner)


def head_of(array: Any, count: int) -> Any:
    """The first items of an array of any library, as an object of its own, without a copy."""
    library = family(array)
    if library == "torch" and array.shape[0] == count:
        return array.detach()  # quicker than a slice
    return array.head(count) if library == "octopus" else array[:count]


@lru_cache(maxsize=64)
def dtype_name(dtype: np.dtype) -> str:
    """`dtype.name`, which NumPy puts together anew at every access."""
    return dtype.name


@lru_cache(maxsize=256)
def _reach(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> tuple[int, int]:
    """Bytes from an array's address to its first byte and to the one after its last."""
    if not math.prod(shape):
        return 0, 0
    steps = [(side - 1) * step for side, step in zip(shape, strides, strict=True)]
    return sum(step for step in steps if step < 0), sum(step for step in steps if step > 0) + itemsize


@lru_cache(maxsize=256)
def c_strides(shape: tuple[int, ...], dtype: np.dtype) -> tuple[int, ...]:
    strides, step = [], dtype.itemsize
    for side in reversed(shape):
        strides.append(step)
        step *= side
    return tuple(reversed(strides))


def view(array: Any, name: str) -> ArrayView:
    """Describe an array without copying it; a view is returned as it is. Errors call it by its `name`."""
    if isinstance(array, ArrayView):
        return array
    if isinstance(array, np.ndarray):
        if isinstance(array, np.ma.MaskedArray):
            raise InputError(
                f"{name} is a masked array, whose mask would be ignored; fill its holes first: .filled(value)"
            )
        return ArrayView(address_of(array), array.shape, array.strides, array.dtype, "cpu", "numpy", array)
    library = family(array)
    if library == "octopus":
        strides = c_strides(array.shape, array.dtype)
        return ArrayView(array.pointer, array.shape, strides, array.dtype, "cuda", library, array, array.ordinal)
    if library == "torch":
        return _view_torch(array, name)
    if hasattr(array, "__cuda_array_interface__"):
        return _view_interface(array, name)
    if hasattr(array, "__dlpack__"):
        return _view_dlpack(array, name)
    from octopus.arrays.pillow import Raster, is_pillow, rasters

    if is_pillow(type(array)):
        (array,) = rasters([array], name)
    if isinstance(array, Raster):
        return view(array.array, name)
    why = ""
    if name.startswith(("frame", "image")):
        why = ", which is what cv2.imread gives for a file that it can't read" if array is None else ""
        why = "; octopus.integrations.loader.read decodes files" if isinstance(array, (str, bytes, PathLike)) else why
    raise InputError(
        f"{name} is {shown_type(array)}{why}; "
        "pass a NumPy array, a torch tensor, an image of Pillow, or any array with DLPack or __cuda_array_interface__"
    )


def address_of(array: np.ndarray) -> int:
    """Of the first element; NumPy's own ways to tell it take three times as long as asking for the buffer."""
    try:
        return ctypes.addressof(_NO_BYTES.from_buffer(array))  # type: ignore[arg-type]
    except (TypeError, ValueError):  # read-only, with gaps, or of a dtype that buffers don't know
        return int(array.__array_interface__["data"][0])


def view_of(array: Any, name: str) -> ArrayView:
    """The same for arguments that may also be lists or tuples, such as boxes or a frame index."""
    if isinstance(array, (list, tuple)):
        try:
            array = np.asarray(array) if len(array) else np.empty(0, int)
        except ValueError:
            raise InputError(f"{name} must be an array, found rows of different length") from None
    return view(array, name)


def host_numbers(value: Any, name: str) -> np.ndarray:
    """A number or a few, of any library or in lists, as a NumPy array; of objects if they are no numbers."""
    if family(value) == "numpy" or not hasattr(value, "shape"):
        if isinstance(value, np.ma.MaskedArray):
            view(value, name)  # says what to do instead
        try:
            return np.asarray(value)
        except (TypeError, ValueError, RuntimeError):
            return np.empty((), object)
    found = view(value, name)
    if found.device != "cpu":
        raise InputError(f"{name} is on the GPU, and reading it would wait; pass numbers that are on the host")
    return found.numpy()


def family(array: Any) -> str:
    return _family_of(type(array))  # type: ignore[arg-type]


@lru_cache(maxsize=256)
def _family_of(kind: type[Any]) -> str:
    torch = sys.modules.get("torch")
    if torch is not None and issubclass(kind, torch.Tensor):  # also its subclasses
        return "torch"
    root = kind.__module__.partition(".")[0]
    if root == "octopus":
        return root if hasattr(kind, "release_on") else "other"
    return root if root in ("numpy", "cupy", "numba") else "other"


def torch_model(tensor: Any, name: str) -> ArrayView:
    """View of a tensor of torch without the tensor: dtype, side and GPU; raises `InputError` if it can't be read."""
    on_gpu = tensor.is_cuda
    if not on_gpu and tensor.device.type != "cpu":
        raise InputError(f"{name} lies on {tensor.device}; move it to the CPU or a CUDA device")
    if tensor.requires_grad:
        raise InputError(f"{name} requires grad, but no gradient passes through Octopus; pass it with .detach()")
    dtype = _numpy_dtype(tensor.dtype)
    if dtype is None:
        text = str(tensor.dtype).removeprefix("torch.")
        raise InputError(f"{name} has the dtype {text}, which NumPy doesn't know; convert it first")
    if type(tensor).__name__ == "FakeTensor" or recorded():
        raise InputError(_describe_unreadable(tensor, name))
    if tensor.is_neg() or (dtype.kind == "c" and tensor.is_conj()):
        raise InputError(
            f"{name} is a view of values that are to be negated or conjugated when read; pass "
            f"{name}.resolve_neg().resolve_conj()"
        )
    side, ordinal = ("cuda", tensor.get_device()) if on_gpu else ("cpu", None)
    return ArrayView(0, (), (), dtype, side, "torch", None, ordinal)


def _view_torch(tensor: Any, name: str) -> ArrayView:
    found, shape = torch_model(tensor, name), tuple(tensor.shape)
    try:
        if tensor.is_contiguous():
            found.strides = c_strides(shape, found.dtype)
        else:
            found.strides = tuple(step * found.dtype.itemsize for step in tensor.stride())
        found.pointer = tensor.data_ptr()
    except RuntimeError as error:
        raise InputError(_describe_unreadable(tensor, name)) from error
    found.shape, found.owner = shape, tensor
    return found


def recorded() -> bool:
    """Whether torch writes down what is done to tensors, to do it again to others: our work would be left out."""
    inner = getattr(sys.modules.get("torch"), "_C", None)
    if inner is None:
        return False
    if inner._len_torch_dispatch_stack():
        tracer = sys.modules.get("torch.fx.experimental.proxy_tensor")
        return tracer is not None and tracer.get_proxy_mode() is not None
    return bool(inner._is_tracing())


def _describe_unreadable(tensor: Any, name: str) -> str:
    layout = str(getattr(tensor, "layout", "torch.strided"))
    if layout != "torch.strided":
        return f"{name} is a tensor of the layout {layout}, not a dense one; make it dense first: .to_dense()"
    return (
        f"{name} is {shown_type(tensor)} without values in memory, or recorded, as torch.compile, torch.export, "
        "make_fx, torch.jit.trace and torch.func (vmap, grad) do it; call Octopus outside of them, on tensors that "
        "hold values"
    )


@lru_cache(maxsize=64)
def _numpy_dtype(torch_dtype: Any) -> np.dtype | None:
    try:
        return np.dtype(str(torch_dtype).removeprefix("torch."))
    except TypeError:
        return None


def _check_steps(shape: tuple[int, ...], strides: tuple[int, ...], name: str) -> None:
    """No memory reaches so far; some libraries export the step of a flipped axis so (cupy#10172)."""
    if any(side > 1 and abs(step) >= MOST_STEP for side, step in zip(shape, strides, strict=True)):
        raise InputError(f"{name} of shape {shape} has impossible strides of {strides} bytes; pass a contiguous copy")


def _view_interface(array: Any, name: str) -> ArrayView:
    interface = array.__cuda_array_interface__
    shape, dtype = tuple(interface["shape"]), np.dtype(interface["typestr"])
    strides = tuple(interface.get("strides") or c_strides(shape, dtype))
    _check_steps(shape, strides, name)
    library = family(array)
    ordinal = array.device.id if library == "cupy" else None
    after = None if library == "cupy" else interface.get("stream")  # CuPy: its current stream is used anyway
    return ArrayView(interface["data"][0], shape, strides, dtype, "cuda", library, array, ordinal, after)


def _view_dlpack(array: Any, name: str) -> ArrayView:
    kind, ordinal = (int(value) for value in array.__dlpack_device__())
    if kind in (1, 3):  # kDLCPU, kDLCUDAHost
        try:
            host = np.from_dlpack(array)
        except (BufferError, RuntimeError, TypeError, ValueError) as error:
            raise InputError(f"{name} can't be read by DLPack: {error}; pass a NumPy array") from error
        return ArrayView(host.ctypes.data, host.shape, host.strides, host.dtype, "cpu", "other", host)
    if kind not in (2, 13):  # kDLCUDA, kDLCUDAManaged
        raise InputError(f"{name} lies on a device of DLPack type {kind}; move it to the CPU or a CUDA device")
    from cuda.core.utils import StridedMemoryView

    # The producer orders its work before the legacy default stream, on which ours waits.
    memory = StridedMemoryView.from_dlpack(array, stream_ptr=LEGACY)
    shape, dtype = tuple(memory.shape), memory.dtype
    strides = c_strides(shape, dtype)
    if memory.strides:  # which DLPack counts in elements
        strides = tuple(step * dtype.itemsize for step in memory.strides)
    _check_steps(shape, strides, name)
    return ArrayView(memory.ptr, shape, strides, dtype, "cuda", "other", memory, ordinal, LEGACY)
