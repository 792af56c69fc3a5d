"""A GPU whose memory is the host's, for a process of its own: uploads are copies, launches go to Numba's simulator.

Everything between a call of `octopus.images` and the kernel is what runs on a real one, also the machine code of
launches. `install` must come before the kernels are imported.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

os.environ["NUMBA_ENABLE_CUDASIM"] = "1"
sys.path.append(str(Path(__file__).parents[1]))

import fake_torch
import numpy as np
from numba import types
from pretended_driver import PretendedDriver


class Stream:
    """A stream, on which everything is done at once; notes for which others it would wait."""

    def __init__(self, handle=0):
        self.handle, self.waits = handle, []

    def wait(self, other):
        self.waits.append(other.handle)

    def record(self, event):
        """Nothing is ever pending."""

    def sync(self):
        """Nor here."""


class Gpu(PretendedDriver):
    """What the library is given instead of a GPU, and what it did there.

    Attributes
    ----------
    uploads : list of int
        Bytes of each copy that was queued by itself; those by the machine code of a launch are `copies`.
    allocated : int
        How often memory was reserved, also page-locked.
    capturing : bool
        Whether launches and copies are kept for `replay` instead of being done.
    current : int
        Handle of the stream that is torch's current one.
    """

    def __init__(self):
        super().__init__()
        self.memory, self.given_back, self.uploads, self.work = {}, [], [], []
        self.allocated, self.capturing, self.current, self.streams = 0, False, 0, {}
        self.stream, self.does = self.stream_of(), self.run

    def stream_of(self, stream=None):
        """As `backends.cuda.stream_of`."""
        if isinstance(stream, Stream):
            return stream
        return self.streams.setdefault(stream or 0, Stream(stream or 0))

    def array(self, shape, dtype):
        """Memory of the GPU, such as a caller's."""
        self.allocated += 1
        array = np.full(max(int(np.prod(shape)), 1), 77, dtype)
        self.memory[array.ctypes.data] = array
        return array[: int(np.prod(shape))].reshape(shape)

    def tensor(self, array):
        """A tensor of torch on the GPU."""
        made = fake_torch.Tensor(self.array(array.shape, array.dtype), "cuda:0")
        made.array[...] = array
        return made

    def allocate(self, nbytes, stream=None):
        return Buffer(self, self.array((max(nbytes, 1),), np.uint8))

    def copy(self, to, source, nbytes, stream=None):
        def do():
            assert self.pointed(to, np.uint8).size >= nbytes
            ctypes.memmove(to, source, nbytes)

        self.uploads.append(nbytes)
        self._do(do)

    def _copy(self, to, source, nbytes, stream):
        status = super()._copy(to, source, nbytes, stream)
        if not status:
            self.copy(to, source, nbytes)
            self.uploads.pop()
        return status

    def run(self, made):
        """Do what was launched."""
        assert made.count == len(made.values)

        def do():
            given = [
                self.pointed(value, kind.dtype.name) if isinstance(kind, types.CPointer) else value
                for value, kind in zip(made.values, made.kernel.signature, strict=True)
            ]
            made.kernel.function[made.grid[0], made.block[0]](*given)

        self._do(do)

    def pointed(self, address, dtype):
        """The array that begins at an address, to the end of its memory."""
        from numba.cuda.simulator.cudadrv.devicearray import FakeCUDAArray

        for start, array in self.memory.items():
            if start <= address < start + array.nbytes:
                rest = (start + array.nbytes - address) // np.dtype(dtype).itemsize
                pointer = ctypes.cast(address, ctypes.POINTER(ctypes.c_uint8))
                whole = np.ctypeslib.as_array(pointer, (rest * np.dtype(dtype).itemsize,))
                return FakeCUDAArray(whole.view(dtype))
        raise AssertionError(f"a kernel was given {address}, which is no array's memory")

    def replay(self):
        """Do what was captured, again."""
        for do in self.work:
            do()

    def _do(self, do):
        if self.capturing:
            self.work.append(do)
        else:
            do()


class Buffer:
    """Memory that may not be used once it was given back."""

    def __init__(self, gpu, array):
        self.gpu, self.array, self.handle = gpu, array, array.ctypes.data

    def set_deallocation_stream(self, stream):
        """Everything is done by then."""

    def __del__(self):
        self.gpu.given_back.append(self.gpu.memory.pop(self.handle))


class OnGpu:
    """An array of the pretended GPU as a caller has it; `interface` is what else it says of itself."""

    def __init__(self, gpu, array):
        self.array, self.interface = gpu.array(array.shape, array.dtype), {}
        self.array[...] = array

    @property
    def __cuda_array_interface__(self):
        return self.array.__array_interface__ | {"strides": self.array.strides} | self.interface


def start(thread):
    """Start a thread of a block and wait for its end: kernels of images have no barriers, and hundreds of threads at
    once take turns for most of the time."""
    threading.Thread.start(thread)
    thread.join()


def install():
    """Put a pretended GPU in the place of the real one."""
    from numba.cuda.simulator.kernel import BlockThread

    from octopus import backends
    from octopus.arrays import memory as plan_memory
    from octopus.arrays import results, staging, streams
    from octopus.backends.cuda import device, launch, memory
    from octopus.images import cuda, upload

    BlockThread.start = start
    gpu = Gpu()
    here = SimpleNamespace(
        device_id=0, default_stream=gpu.stream, create_event=lambda: SimpleNamespace(is_done=True, sync=int)
    )
    for module in (device, memory, plan_memory, staging, streams, cuda):
        module.current = lambda: here
    for module in (device, plan_memory, streams, upload):
        module.is_capturing = lambda stream: gpu.capturing
    for module in (device, backends.cuda, memory, results):
        module.stream_of = gpu.stream_of
    streams.driver = lambda: SimpleNamespace(cuCtxGetDevice=lambda: (0, gpu.device))
    backends.cuda.missing, backends.cuda.require = lambda: None, lambda: None
    memory.allocate, memory.copy, memory.free_bytes = gpu.allocate, gpu.copy, lambda: 1 << 40
    memory.pinned = lambda shape, dtype: gpu.array(shape, dtype)
    cuda._capability = lambda: (7, 5)  # no tensor cores for bytes: the kernel for them is no Python
    launch.functions, cuda.function_of = gpu.functions, gpu.function_of
    cuda._simple_kernel, cuda._padding_kernel = _simple_kernel, _padding_kernel
    fake_torch.int32, fake_torch.float16 = map(fake_torch.dtype_of, ("int32", "float16"))
    fake_torch.Tensor.is_pinned = lambda tensor: False
    fake_torch.empty = lambda shape, dtype, device: gpu.tensor(np.full(shape, 77, dtype.name))
    fake_torch._C = SimpleNamespace(
        _cuda_getCurrentRawStream=lambda ordinal: gpu.current, _len_torch_dispatch_stack=int, _is_tracing=bool
    )
    sys.modules["torch"] = fake_torch
    return gpu


def _simple_kernel(name, *parts):
    from octopus.kernels.cuda import images

    return _kernel(images.build(*parts[:-1]), images.argument_types(parts[5]))


def _padding_kernel(dtype, capability):
    from octopus.kernels.cuda import images

    return _kernel(images.build_padding(dtype), images.padding_types(dtype))


def _kernel(function, signature):
    from numba import cuda

    return SimpleNamespace(function=cuda.jit(function), signature=signature)
