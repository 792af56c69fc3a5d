"""Arrays for results, of the library that the caller's arrays come from, and copies of the caller's on the host."""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from octopus.arrays import streams
from octopus.arrays.checks import check_tensor
from octopus.arrays.memory import ADVICE, check_memory
from octopus.arrays.views import ArrayView, family, view
from octopus.backends import cpu
from octopus.backends.cuda import memory
from octopus.backends.cuda.device import current
from octopus.errors import InputError, OutOfMemoryError

UNASKED_BYTES = 1 << 26  # a result of so few is made without asking how much memory is free
BFLOAT16 = "bfloat16"  # a dtype that torch has and NumPy has not


def itemsize(dtype: str) -> int:
    """Bytes of an element of a dtype of results."""
    return 2 if dtype == BFLOAT16 else np.dtype(dtype).itemsize


def result_view(array: Any, name: str) -> ArrayView:
    """View of memory for results; elements of bfloat16 are seen as uint16, their bits."""
    if family(array) == "torch" and str(array.dtype) == f"torch.{BFLOAT16}":
        import torch

        check_tensor(array, name)
        return replace(view(array.view(torch.int16), name), dtype=np.dtype(np.uint16), owner=array)
    return view(array, name)


def result_memory(model: ArrayView, shape: tuple[int, ...], dtype: str, stream: Any) -> Any:
    """Uninitialised memory of the library of `model`, on its side.

    Raises
    ------
    OutOfMemoryError
        Says how much is needed, and free where that can be told.
    """
    if dtype == BFLOAT16 and model.family != "torch":
        raise InputError(
            f"dtype=bfloat16 makes tensors of torch, but the arrays are of {model.family}; ask for float32 or "
            "float16, or pass tensors"
        )
    try:
        return empty_like_family(model, shape, dtype, stream)
    except Exception as error:  # every library raises a class of its own
        if "memory" not in str(error).lower() and not isinstance(error, MemoryError):
            raise
        needed = math.prod(shape) * itemsize(dtype)
        raise OutOfMemoryError(f"{needed:,} bytes are needed for the result: {error}") from error


def check_host_memory(needed: int, where: str = "the host", advice: str = ADVICE) -> None:
    """Refuse what doesn't fit on the host. The system is asked about large amounts alone, since that takes time."""
    if needed > UNASKED_BYTES:
        check_memory(needed, cpu.free_bytes(), where, advice)


def empty_like_family(model: ArrayView, shape: tuple[int, ...], dtype: str, stream: Any = None) -> Any:
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
    return memory.DeviceArray(shape, dtype, stream=stream)


def torch_device(model: ArrayView) -> Any:
    """Where torch would put an array beside this one."""
    import torch

    return torch.device(model.device, model.ordinal) if model.device == "cuda" else torch.device("cpu")


def _empty_torch(model: ArrayView, shape: tuple[int, ...], dtype: str, stream: Any) -> Any:
    import torch

    device = torch_device(model)
    own = (
        device.type == "cpu"
        or stream is None
        or streams.is_current(stream, torch.cuda.current_stream(device).cuda_stream)
    )
    with nullcontext() if own else torch.cuda.stream(torch.cuda.ExternalStream(int(stream.handle), device)):
        return torch.empty(shape, dtype=getattr(torch, dtype), device=device)


def _empty_cupy(shape: tuple[int, ...], dtype: str, stream: Any) -> Any:
    import cupy

    own = stream is None or streams.is_current(stream, cupy.cuda.get_current_stream().ptr)
    with nullcontext() if own else cupy.cuda.ExternalStream(int(stream.handle)):
        return cupy.empty(shape, dtype)


def host_copy(array: Any) -> np.ndarray:
    """An array in GPU memory as a NumPy array; waits for the GPU."""
    library = family(array)
    if library == "torch":
        copied: np.ndarray = array.detach().cpu().numpy()
    elif library == "cupy":
        copied = array.get()
    elif library in ("numba", "octopus"):
        copied = array.copy_to_host()
    else:
        found = view(array, "offsets")
        current().sync()  # the array's library may use any stream
        given = memory.DeviceArray(found.shape, found.dtype, buffer=array, pointer=found.pointer)
        copied = given.copy_to_host()
    return copied
