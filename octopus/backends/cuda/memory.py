"""Device memory: arrays that Octopus owns, copies, and how much is free."""

from __future__ import annotations

import ctypes
import math
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from octopus.backends.cuda.device import current, driver, stream_of
from octopus.errors import OutOfMemoryError

if TYPE_CHECKING:
    from cuda.core import Stream

_NO_MEMORY = 2  # CUDA_ERROR_OUT_OF_MEMORY


class DeviceArray:
    """A C-contiguous array in device memory.

    Torch, CuPy and Numba take it without a copy through `__cuda_array_interface__` (for instance
    `torch.as_tensor(array)` or `numba.cuda.as_cuda_array(array)`).

    Its memory is that of `buffer` from the address `pointer` on, or allocated on `stream` and, unless `release_on`
    names another, given back there. `ordinal` is the number of its GPU, by default of the one in use.
    """

    def __init__(
        self, shape: tuple[int, ...], dtype: Any, *, buffer: Any = None, pointer: int | None = None,
        stream: Stream | None = None, ordinal: int | None = None,
    ) -> None:  # fmt: skip
        self.shape = tuple(map(int, shape))
        self.dtype = np.dtype(dtype)
        self.nbytes = math.prod(self.shape) * self.dtype.itemsize
        self._buffer = allocate(self.nbytes, stream) if buffer is None else buffer
        self.pointer = int(self._buffer.handle) if pointer is None else pointer
        self.ordinal = current().device_id if ordinal is None else ordinal

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Version 3 of the interface; no stream, since the caller knows on which one it was written."""
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.pointer if self.nbytes else 0, False),
            "version": 3,
            "strides": None,
        }

    def __len__(self) -> int:
        return self.shape[0]

    def release_on(self, stream: Stream) -> None:
        """Give the memory back behind the work on `stream`, the last one that uses it."""
        self._buffer.set_deallocation_stream(stream)

    def head(self, count: int) -> DeviceArray:
        """The first `count` items along the first axis, without a copy."""
        return self.part(0, (count, *self.shape[1:]))

    def part(self, start: int, shape: tuple[int, ...]) -> DeviceArray:
        """The elements from the one numbered `start` on as an array of a shape, without a copy."""
        pointer = self.pointer + start * self.dtype.itemsize
        return DeviceArray(shape, self.dtype, buffer=self._buffer, pointer=pointer, ordinal=self.ordinal)

    def fill_bytes(self, value: int | bytes) -> DeviceArray:
        """Queue filling the allocation, also beyond `head`, with a byte (0xFF makes floats NaN), or with 2 or 4."""
        self._buffer.fill(value, stream=current().default_stream)
        return self

    def copy_from_host(self, array: np.ndarray, stream: Stream | None = None) -> DeviceArray:
        """Queue a copy from a C-contiguous host array of the same size; pageable memory is staged by the driver."""
        copy(self.pointer, array.ctypes.data, self.nbytes, stream)
        return self

    def copy_to_host(self, out: np.ndarray | None = None, stream: Stream | None = None) -> np.ndarray:
        """Copy to the host and wait for it."""
        out = np.empty(self.shape, self.dtype) if out is None else out
        copy(out.ctypes.data, self.pointer, self.nbytes, stream)
        stream_of(stream).sync()
        return out


def allocate(nbytes: int, stream: Stream | None = None) -> Any:
    """A buffer from the device's memory pool, in the order of `stream` (default: the default stream)."""
    device = current()
    try:
        return device.allocate(max(int(nbytes), 1), stream=stream or device.default_stream)
    except Exception as error:  # a class of cuda.core's own
        if "OUT_OF_MEMORY" not in str(error):
            raise
        raise OutOfMemoryError(
            f"{nbytes:,} bytes are needed on the GPU, {free_bytes():,} are free; do less at once"
        ) from error


def upload(array: np.ndarray) -> DeviceArray:
    """A new device array with the contents of a host array."""
    array = np.ascontiguousarray(array)
    return DeviceArray(array.shape, array.dtype).copy_from_host(array)


def copy(destination: int, source: int, nbytes: int, stream: Any = None) -> None:
    """Queue a copy between any two addresses, host or device."""
    if nbytes:
        current()  # the driver needs a context, which a thread's first call makes
        check(driver().cuMemcpyAsync(destination, source, nbytes, stream_of(stream).handle))


def pinned(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """A host array in page-locked memory, which the device copies without staging; freed with its last view."""
    current()
    count = int(np.prod(shape, dtype=np.int64))
    nbytes = max(count * np.dtype(dtype).itemsize, 1)
    allocated = driver().cuMemHostAlloc(nbytes, 0)
    if int(allocated[0]) == _NO_MEMORY:
        raise OutOfMemoryError(f"{nbytes:,} bytes of page-locked memory are needed; do less at once")
    address = int(check(allocated)[0])
    block = (ctypes.c_uint8 * nbytes).from_address(address)
    # At the end of the process the driver frees it; by then its library may be gone.
    weakref.finalize(block, driver().cuMemFreeHost, address).atexit = False
    return np.frombuffer(block, dtype, count).reshape(shape)


def free_bytes() -> int:
    """Device memory that can be allocated now, in bytes; what the pool holds unused counts as free."""
    device = current()
    free = check(driver().cuMemGetInfo())[0]
    pool = getattr(device.memory_resource, "attributes", None)
    unused = int(pool.reserved_mem_current) - int(pool.used_mem_current) if pool is not None else 0
    return int(free) + max(unused, 0)


def total_bytes() -> int:
    """All memory of the device, in bytes."""
    current()
    return int(check(driver().cuMemGetInfo())[1])


def check(result: tuple) -> tuple:
    """Values of a `cuda.bindings` call; raises `RuntimeError` with the driver's words if it failed."""
    status = result[0]
    if status:
        raise RuntimeError(f"the CUDA driver answers {driver().CUresult(status).name}")
    return result[1:]
