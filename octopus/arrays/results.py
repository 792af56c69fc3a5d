"""Arrays for results, of the library that the caller's arrays come from, and copies of the caller's on the host."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from octopus.arrays import streams
from octopus.arrays.checks import check_tensor, of_dtype
from octopus.arrays.views import ArrayView, address_of, c_strides, family, view
from octopus.backends import cpu
from octopus.backends.cuda.device import current, stream_of
from octopus.errors import InputError, OutOfMemoryError

ADVICE = "use fewer boxes, a smaller size or float16"
UNASKED_BYTES = 1 << 26  # a result of so few is made without asking how much memory is free
BFLOAT16 = "bfloat16"  # a dtype that torch has and NumPy has not
LEAST_KEPT, MOST_KEPT = (1 << 20, 1 << 28)  # bytes of one result that are kept for the next, and of all that are kept

_kept: list[_Block] = []  # the oldest first


class _Block:
    def __init__(self, nbytes: int) -> None:
        # NumPy asks the system for large pages, torch doesn't: to touch new memory first takes it three times as long.
        self.bytes = np.empty(nbytes, np.uint8)


class _Lease:
    """The base of an array in such memory and of all its views; when they are gone, the memory serves the next result.
    The first write to new memory takes about as long as to compute what goes there."""

    _block: _Block | None = None  # if there is no room for it

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype) -> None:
        nbytes = math.prod(shape) * dtype.itemsize
        self._block = _kept_block(nbytes) or _Block(nbytes)
        self.__array_interface__ = {
            "version": 3, "shape": shape, "typestr": dtype.str, "data": (self._block.bytes.ctypes.data, False),
        }  # fmt: skip

    def __del__(self) -> None:
        if self._block is not None:
            _kept.append(self._block)
        while sum(block.bytes.nbytes for block in tuple(_kept)) > MOST_KEPT:
            _kept.pop(0)


def _kept_block(nbytes: int) -> _Block | None:
    """Memory that is large enough for a result and no more than twice as large; None if there is none."""
    for block in tuple(_kept):
        if nbytes <= block.bytes.nbytes <= 2 * nbytes:
            with suppress(ValueError):  # another thread took it
                _kept.remove(block)
                return block
    return None


def host_memory(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An uninitialised array; of a large one the memory may be that of an earlier result which nothing refers to."""
    kind = np.dtype(dtype)
    if LEAST_KEPT <= math.prod(shape) * kind.itemsize <= MOST_KEPT:
        return np.asarray(_Lease(shape, kind))
    return np.empty(shape, kind)


def check_family(model: ArrayView, dtype: str) -> None:
    if dtype == BFLOAT16 and model.family != "torch":
        raise InputError(
            f"dtype=bfloat16 makes tensors of torch, but the arrays are of {model.family}; ask for float32 or "
            "float16, or pass tensors"
        )


def itemsize(dtype: str) -> int:
    """Bytes of an element of a dtype of results."""
    return np.dtype(stored_dtype(dtype)).itemsize


def stored_dtype(dtype: str) -> str:
    """The dtype as which memory for results of a dtype is seen: bfloat16 as uint16, its bits."""
    return "uint16" if dtype == BFLOAT16 else dtype


def check_out(out: ArrayView, shape: tuple[int, ...], dtype: str, device: str) -> None:
    if out.shape != shape or not of_dtype(out, (stored_dtype(dtype),)) or out.device != device or not out.contiguous:
        layout = "contiguous" if out.contiguous else "not contiguous"
        found = str(out.owner.dtype).removeprefix("torch.") if out.family == "torch" else out.dtype
        raise InputError(
            f"out must be a contiguous {dtype} array of shape {shape} on {device}, "
            f"found {found} of shape {out.shape} on {out.device}, {layout}"
        )
    if device == "cpu" and out.family != "torch" and not out.numpy().flags.writeable:
        raise InputError("out is read-only; pass an array that may be written")


def result_view(array: Any, name: str = "out") -> ArrayView:
    """View of memory for results; elements of bfloat16 are seen as uint16, their bits."""
    if family(array) == "torch" and str(array.dtype) == f"torch.{BFLOAT16}":
        import torch

        check_tensor(array, name)
        return replace(view(array.view(torch.int16), name), dtype=np.dtype(np.uint16), owner=array)
    return view(array, name)


def new_view(array: Any, model: ArrayView, shape: tuple[int, ...], dtype: str) -> ArrayView:
    """View of what `result_memory` made for these arguments, or of its first items: only its address is unknown."""
    if model.family == "torch":
        import torch

        if type(array) is torch.Tensor:
            kind = np.dtype(stored_dtype(dtype))
            strides = c_strides(shape, kind)
            return ArrayView(array.data_ptr(), shape, strides, kind, model.device, model.family, array, model.ordinal)
    return result_view(array, "out")


def result_memory(model: ArrayView, shape: tuple[int, ...], dtype: str, stream: Any) -> Any:
    """Uninitialised memory of the library of `model`, on its side; an `OutOfMemoryError` says how much is needed.
    Libraries hand out device memory in the order of a stream; `stream` (of cuda.core) is the one that will use it, None
    their current one."""
    check_family(model, dtype)
    try:
        return _empty(model, shape, dtype, stream)
    except Exception as error:  # every library raises a class of its own
        if "memory" not in str(error).lower() and not isinstance(error, MemoryError):
            raise
        needed = math.prod(shape) * itemsize(dtype)
        raise OutOfMemoryError(f"{needed:,} bytes are needed for the result: {error}") from error


def _empty(model: ArrayView, shape: tuple[int, ...], dtype: str, stream: Any) -> Any:
    if model.device == "cpu" and model.family != "torch":
        return host_memory(shape, dtype)
    if model.family in ("torch", "cupy"):
        own = model.device == "cpu" or stream is None or streams.is_current(stream, model)
    if model.family == "torch":
        import torch

        kind, device = getattr(torch, dtype), _torch_device(model.device, model.ordinal)
        if model.device == "cpu":
            return torch.from_numpy(host_memory(shape, "int16" if dtype == BFLOAT16 else dtype)).view(kind)
        with nullcontext() if own else torch.cuda.stream(torch.cuda.ExternalStream(int(stream.handle), device)):
            return torch.empty(shape, dtype=kind, device=device)
    if model.family == "cupy":
        import cupy

        with nullcontext() if own else cupy.cuda.ExternalStream(int(stream.handle)):
            return cupy.empty(shape, dtype)
    if model.family == "numba":
        from numba import cuda

        return cuda.device_array(shape, dtype)
    from octopus.backends.cuda.memory import DeviceArray

    return DeviceArray(shape, dtype, stream=stream)


@cache
def _torch_device(device: str, ordinal: int | None) -> Any:
    import torch

    return torch.device(device, ordinal) if device == "cuda" else torch.device("cpu")


def maker(model: ArrayView, shape: tuple[int, ...], dtype: str) -> Callable[[int | None], tuple[Any, int]]:
    """What makes memory as `result_memory` does, and tells its address, given the handle of a stream or None."""
    needed = math.prod(shape) * itemsize(dtype)

    def make(stream: int | None) -> tuple[Any, int]:
        if model.device == "cpu":
            check_host_memory(needed)
        made = result_memory(model, shape, dtype, None if stream is None else stream_of(stream))
        return made, new_view(made, model, shape, dtype).pointer

    if model.family == "numpy" and needed < LEAST_KEPT:

        def make_array(_: int | None) -> tuple[Any, int]:
            made = np.empty(shape, dtype)
            return made, address_of(made)

        return make_array
    if model.family != "torch" or (model.device == "cpu" and needed >= LEAST_KEPT):
        return make
    import torch

    empty = partial(torch.empty, shape, dtype=getattr(torch, dtype), device=_torch_device(model.device, model.ordinal))

    def make_tensor(stream: int | None) -> tuple[Any, int]:
        if stream is not None:
            return make(stream)
        try:
            made = empty()
        except RuntimeError:  # which `make` puts into words
            return make(stream)
        return made, made.data_ptr()

    return make_tensor


def check_memory(needed: int, free: int, where: str, advice: str = ADVICE) -> None:
    if needed > free:
        raise OutOfMemoryError(f"{needed:,} bytes are needed on {where}, {free:,} are free; {advice}")


def check_host_memory(needed: int, where: str = "the host", advice: str = ADVICE) -> None:
    """Refuse what doesn't fit on the host. The system is asked about large amounts alone, since that takes time."""
    if needed > UNASKED_BYTES:
        if needed > cpu.free_bytes():
            _kept.clear()
        check_memory(needed, cpu.free_bytes(), where, advice)


def host_copy(array: Any) -> np.ndarray:
    """An array in GPU memory as a NumPy array; waits for the GPU."""
    library = family(array)
    if library == "torch":
        return array.detach().cpu().numpy()  # type: ignore[no-any-return]
    if library == "cupy":
        return array.get()  # type: ignore[no-any-return]
    if library not in ("numba", "octopus"):
        from octopus.backends.cuda.memory import DeviceArray

        found = view(array, "offsets")
        current().sync()  # the array's library may use any stream
        array = DeviceArray(found.shape, found.dtype, buffer=array, pointer=found.pointer)
    return array.copy_to_host()  # type: ignore[no-any-return]
