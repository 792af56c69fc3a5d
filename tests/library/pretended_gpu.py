"""A GPU that isn't there: its memory is the host's, and its kernels are noted instead of run; all else is as it is."""

from __future__ import annotations

import ctypes
import sys
import threading
from types import SimpleNamespace

import fake_torch
import numpy as np
import pretended_driver
from numba import types

from octopus.arrays import memo, results, streams
from octopus.arrays.launch import words_of
from octopus.backends.cuda import compile, device
from octopus.backends.cuda import launch as of_driver
from octopus.backends.cuda.device import LEGACY
from octopus.crop import api, launch

LETTERS = {types.int32: "i", types.int64: "q", types.float32: "f"}


class OnGpu:
    """An array of which nothing can be asked but where it lies, and who still writes to it; on memory of the host."""

    def __init__(self, array, stream=None):
        self.array, self.pointer, self.shape, self.stream = array, array.ctypes.data, array.shape, stream

    @property
    def __cuda_array_interface__(self):
        return {**self.array.__array_interface__, "version": 3, "stream": self.stream}


def memory(shape, dtype=np.uint8, shift=0):
    """Memory that lies so many bytes behind a multiple of 256."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    made = np.zeros(size + 512, np.uint8)
    first = -made.ctypes.data % 256 + shift
    return made[first : first + size].view(dtype).reshape(shape)


class Stream:
    """A stream of cuda.core, for which the host never has to wait."""

    def __init__(self, handle, waits):
        self.handle, self._waits = handle, waits

    def wait(self, other):
        self._waits.append((self.handle, other.handle))

    def sync(self):
        pass


class PretendedGpu(pretended_driver.PretendedDriver):
    """What the driver, `cuda.bindings` and a device of `cuda.core` are asked for.

    Attributes
    ----------
    waits : list of (int, int)
        Handles of a stream and of the one that it waits for.
    freed : set of int
        Addresses of memory that was given back and is nobody's.
    meanwhile : dict of callables
        Called once each: "device" at the next question which GPU is current, "launch" before the next launch.
    """

    device_id, compute_capability, memory_resource = 0, (9, 0), None
    properties = SimpleNamespace(multiprocessor_count=132, l2_cache_size=50 << 20)  # of an H200

    def __init__(self):
        super().__init__()
        self.waits, self.freed, self.meanwhile, self._streams = [], set(), {}, {}
        self.default_stream = self.stream(LEGACY)

    def stream(self, handle, owner=None):
        handle = handle or LEGACY
        return self._streams.setdefault(handle, Stream(handle, self.waits))

    def set_current(self):
        pass

    def allocate(self, nbytes, stream):
        made = Buffer(memory(nbytes), self.freed)
        self.freed.discard(made.handle)
        return made

    def load(self, name, build):
        """In the place of `compile.load`."""
        function, signature = build()
        assert function.__code__.co_argcount == len(signature)
        tail = getattr(function, "tail_bytes", 0)
        made = SimpleNamespace(name=name, signature=signature, tail_bytes=tail, handle=len(self._kernels))
        self._kernels.append(made)
        return made

    def words_of(self, kinds, values):
        """Of the kernel that was asked for last, whose types the arguments must have."""
        assert kinds == "".join(LETTERS.get(kind, "Q") for kind in self._kernels[self._asked].signature)
        return words_of(kinds, values)

    def bindings(self):
        """In the place of the module `cuda.bindings.driver`."""

        def address_of(name, version, flags):
            assert (version, flags) == (of_driver.VERSION, LEGACY)
            return 0, self.functions()[of_driver.FUNCTIONS.index(name.decode())]

        def function_of(handle):
            self._asked = handle
            return 0, handle

        def copy(to, source, nbytes, stream):
            ctypes.memmove(to, source, nbytes)
            return (self._copy(to, source, nbytes, stream),)

        return SimpleNamespace(
            cuGetProcAddress=address_of, cuKernelGetFunction=function_of, cuMemcpyAsync=copy, CUkernel=int,
            cuCtxGetDevice=lambda: (0, self.device), cuMemGetInfo=lambda: (0, 1 << 40, 1 << 40),
            cuStreamIsCapturing=lambda handle: (0, handle in self.captured),
            CUdriverProcAddress_flags=SimpleNamespace(CU_GET_PROC_ADDRESS_LEGACY_STREAM=LEGACY),
            CUresult=lambda status: SimpleNamespace(name=f"error {status}"),
        )  # fmt: skip

    def _device(self, ordinal):
        self.meanwhile.pop("device", int)()
        return super()._device(ordinal)

    def _launch(self, *given):
        self.meanwhile.pop("launch", int)()
        return super()._launch(*given)


class Buffer:
    """Memory of a device."""

    def __init__(self, place, freed):
        self.handle, self._place, self._freed = place.ctypes.data, place, freed

    def set_deallocation_stream(self, stream):
        pass

    def __del__(self):
        self._freed.add(self.handle)


def installed(monkeypatch):
    """Put one in the place of the real one, as long as the generator waits; nothing of `crop_resize` is kept before."""
    made = PretendedGpu()
    caches = device.driver, of_driver.functions, launch._stream_kernel, launch._plain_kernel
    for cached in caches:
        cached.cache_clear()
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "cuda.bindings", SimpleNamespace(driver=made.bindings()))
        device.driver()  # which remembers it
    for module, name, value in (
        (device, "missing", lambda: None),
        (device, "_thread", SimpleNamespace(device=made)),
        (device, "_stream_type", lambda: Stream),
        (device, "_wrap", made.stream),
        (compile, "load", made.load),
        (launch, "words_of", made.words_of),
        (api, "_thread", threading.local()),
    ):
        monkeypatch.setattr(module, name, value)
    yield made
    for cached in caches:
        cached.cache_clear()
    assert not made.errors


def torch_installed(monkeypatch):
    """As `installed`, with tensors of `fake_torch`; `handle` is of its stream, `used` has those that it was told of."""
    caches = streams._torch_handle, results._torch_device
    for made in installed(monkeypatch):
        before, made.handle, made.used = memo.modes[:], 7, []
        inner = {name: int for name in ("_len_torch_dispatch_stack", "_is_tracing")}
        inner["_cuda_getCurrentRawStream"] = lambda ordinal, made=made: made.handle
        cuda = SimpleNamespace(ExternalStream=lambda handle, device: handle)
        monkeypatch.setattr(fake_torch, "_C", SimpleNamespace(**inner), raising=False)
        monkeypatch.setattr(fake_torch, "cuda", cuda, raising=False)
        used = made.used.append
        monkeypatch.setattr(
            fake_torch.Tensor, "record_stream", lambda _, stream, used=used: used(stream), raising=False
        )
        monkeypatch.setitem(sys.modules, "torch", fake_torch)
        monkeypatch.setattr(memo, "_tensors", set())
        for cached in caches:
            cached.cache_clear()
        yield made
        memo.modes[:] = before
        for cached in caches:
            cached.cache_clear()
