"""A driver of CUDA whose functions are Python's: what a prepared launch hands to the real one, without a GPU.

The machine code of `kernels.cpu.launches` runs as it does on a GPU and calls these by their addresses.
"""

from __future__ import annotations

import ctypes
import threading
from types import SimpleNamespace

import numpy as np
from numba import types

from octopus.arrays import launch
from octopus.arrays.views import ArrayView

LONG = ctypes.c_int64
UNKNOWN = 999  # CUDA_ERROR_UNKNOWN
KINDS = {
    types.int32: ctypes.c_int32,
    types.uint32: ctypes.c_uint32,
    types.int64: ctypes.c_int64,
    types.float32: ctypes.c_float,
    types.float64: ctypes.c_double,
}


class Launched(SimpleNamespace):
    """One launch.

    Attributes
    ----------
    kernel : object
        As `function_of` was given it.
    grid, block : tuple of 3 int
    shared, stream : int
    most : int
        Shared memory that was asked for when the kernel's handle was.
    values : tuple
        Of the arguments, by the types of the kernel's `signature`.
    count : int
        Of the arguments that were given.
    tail : int
        Address of the argument behind them, for kernels that have an array by value.
    content : bytes
        Of that array, for kernels that have `tail_bytes`.
    thread : int
        Which launched.
    """


class PretendedDriver:
    """In the place of the driver's functions.

    Attributes
    ----------
    launches : list of Launched
    copies : list of (to, nbytes, content)
        To the GPU.
    device : int
        Which GPU is current.
    captured : set of int
        Handles of streams whose work goes into a graph.
    statuses : dict
        What `launch` and `copy` answer, by these names; else 0.
    does : callable
        Given each `Launched`, in the place of the kernel.
    errors : list of Exception
        Of functions that were called: those answer `UNKNOWN`, since machine code passes no exception on.
    """

    def __init__(self) -> None:
        self.launches, self.copies, self.device, self.captured, self.statuses = [], [], 0, set(), {}
        self.does, self.errors = lambda made: None, []
        self._kernels, self._most = [], {}
        pointer, status = ctypes.POINTER(ctypes.c_int32), ctypes.c_int32
        self._kept = (
            ctypes.CFUNCTYPE(status, *[LONG] * 11)(self._guarded(self._launch)),
            ctypes.CFUNCTYPE(status, pointer)(self._guarded(self._device)),
            ctypes.CFUNCTYPE(status, LONG, pointer)(self._guarded(self._capturing)),
            ctypes.CFUNCTYPE(status, *[LONG] * 4)(self._guarded(self._copy)),
        )

    def functions(self) -> tuple[int, ...]:
        """As `backends.cuda.launch.functions`."""
        return tuple(ctypes.cast(kept, ctypes.c_void_p).value for kept in self._kept)

    def function_of(self, kernel: object, shared: int = 0) -> int:
        """As `backends.cuda.launch.function_of`; a kernel has a `signature`, types of Numba."""
        self._kernels.append(kernel)
        self._most[len(self._kernels) - 1] = shared
        return len(self._kernels) - 1

    def _guarded(self, function):
        def call(*given):
            try:
                return function(*given)
            except Exception as error:
                self.errors.append(error)
                return UNKNOWN

        return call

    def _launch(self, function, *rest):
        *geometry, shared, stream, parameters, extra = rest
        assert extra == 0
        kernel = self._kernels[function]
        signature = kernel if isinstance(kernel, tuple) else kernel.signature
        addresses = ctypes.cast(parameters, ctypes.POINTER(LONG))
        values = tuple(
            KINDS.get(kind, ctypes.c_uint64).from_address(addresses[number]).value
            for number, kind in enumerate(signature)
        )
        count = 1
        while addresses[count] == addresses[count - 1] + 8:  # they lie one after the other, all else apart
            count += 1
        made = Launched(
            kernel=kernel, grid=tuple(geometry[:3]), block=tuple(geometry[3:]), shared=shared, stream=stream,
            most=self._most.get(function, 0), values=values, count=count, tail=addresses[len(signature)],
            thread=threading.get_ident(),
        )  # fmt: skip
        made.content = ctypes.string_at(made.tail, getattr(kernel, "tail_bytes", 0)) if made.tail else b""
        if status := self.statuses.get("launch", 0):
            return status
        self.launches.append(made)
        self.does(made)
        return 0

    def _device(self, ordinal):
        ordinal[0] = self.device
        return 0

    def _capturing(self, stream, state):
        state[0] = stream in self.captured
        return 0

    def _copy(self, to, source, nbytes, stream):
        self.copies.append((to, nbytes, ctypes.string_at(source, nbytes)))
        return self.statuses.get("copy", 0)


def install(monkeypatch, *modules) -> PretendedDriver:
    """Put a pretended driver in the place of the real one, also for `modules` that look for a kernel's handle."""
    from octopus.backends.cuda import launch as of_driver

    driver = PretendedDriver()
    monkeypatch.setattr(of_driver, "functions", driver.functions)
    for module in modules:
        monkeypatch.setattr(module, "function_of", driver.function_of)
        monkeypatch.setattr(module, "current", lambda: SimpleNamespace(device_id=0), raising=False)
    assert launch
    return driver


QUEUE = SimpleNamespace(handle=1, sync=lambda: None, wait=lambda other: None)


class Memory:
    """A `DeviceArray` in memory of the host."""

    def __init__(self, shape, dtype, *, stream=None):
        self.array = np.full(shape, 77, dtype)
        self.shape, self.dtype, self.nbytes = self.array.shape, self.array.dtype, self.array.nbytes
        self.pointer = self.array.ctypes.data
        self.__cuda_array_interface__ = self.array.__array_interface__

    def copy_from_host(self, array, stream=None):
        self.array[...] = array
        return self


def at(address, shape, dtype, strides=None):
    """An array on memory whose address is known."""
    nbytes = sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + 1 if strides else np.prod(shape)
    block = (ctypes.c_uint8 * int(nbytes * np.dtype(dtype).itemsize)).from_address(address)
    return np.ndarray(shape, dtype, block, strides=strides)


def there(array):
    """An array as if it were on the GPU."""
    return ArrayView(array.ctypes.data, array.shape, array.strides, array.dtype, "cuda", "other", array)


def in_host_memory(monkeypatch, module, does):
    """Install a driver whose kernels do as is said, and whose GPU, an H200 with one stream, has the host's memory."""
    from octopus import backends
    from octopus.arrays import memory as plan_memory
    from octopus.arrays import streams
    from octopus.backends.cuda import device, memory

    driver = install(monkeypatch, module)
    driver.does = does
    here = SimpleNamespace(device_id=0, properties=SimpleNamespace(multiprocessor_count=132))
    for user in (module, device, plan_memory):
        monkeypatch.setattr(user, "current", lambda: here, raising=False)
    monkeypatch.setattr(memory, "DeviceArray", Memory)
    monkeypatch.setattr(memory, "copy", lambda to, source, nbytes, stream: ctypes.memmove(to, source, nbytes))
    monkeypatch.setattr(memory, "free_bytes", lambda: 1 << 30)
    monkeypatch.setattr(device, "compute_capability", lambda: (9, 0))
    monkeypatch.setattr(backends, "resolve", lambda name: "cuda" if name == "auto" else name)
    monkeypatch.setattr(streams, "stream_for", lambda *_: QUEUE)
    monkeypatch.setattr(streams, "check_ordinals", lambda *_: None)
    return driver
