"""A GPU whose memory is the host's, for a process of its own: uploads are copies, launches go to Numba's simulator.

Everything between a call of `octopus.images` and the kernel is what runs on a real one. `install` must come before the
kernels are imported.
"""

from __future__ import annotations

import ctypes
import os
import threading
from types import SimpleNamespace

os.environ["NUMBA_ENABLE_CUDASIM"] = "1"

import numpy as np

TYPES = {"float32": np.float32, "float16": np.float16, "bfloat16": np.uint16, "uint8": np.uint8}


class Stream:
    """A stream, on which everything is done at once."""

    handle = 0

    def record(self, event):
        event.recorded += 1

    def wait(self, other):
        """Nothing is ever pending."""

    def sync(self):
        """Nothing is ever pending."""


class Event:
    """Counts what happens to it."""

    is_done = True

    def __init__(self):
        self.recorded = self.waited = 0

    def sync(self):
        self.waited += 1


class Gpu:
    """What the library is given instead of a GPU, and what it did there.

    Attributes
    ----------
    uploads : list of int
        Bytes of each copy.
    launches : list of str
        Names of kernels.
    allocated : int
        How often memory was reserved, also page-locked.
    capturing : bool
        Whether launches and copies are kept for `replay` instead of being done.
    """

    def __init__(self):
        self.memory, self.uploads, self.launches, self.work = {}, [], [], []
        self.allocated, self.capturing = 0, False
        self.stream = Stream()

    def array(self, shape, dtype):
        """Memory of the GPU, such as a caller's."""
        self.allocated += 1
        array = np.full(max(int(np.prod(shape)), 1), 77, dtype)
        self.memory[array.ctypes.data] = array
        return array[: int(np.prod(shape))].reshape(shape)

    def allocate(self, nbytes, stream=None):
        array = self.array((max(nbytes, 1),), np.uint8)
        return SimpleNamespace(
            handle=array.ctypes.data, array=array, set_deallocation_stream=lambda stream: None
        )

    def copy(self, to, source, nbytes, stream=None):
        def do():
            ctypes.memmove(to, source, nbytes)

        self.uploads.append(nbytes)
        self._do(do)

    def submit(self, kernel, geometry, stream, arguments, shared=0):
        function, kinds = kernel
        values = arguments.values()

        def do():
            given = [
                self.pointed(v, kind) if kind is not None else v
                for v, kind in zip(values, kinds, strict=True)
            ]
            function[geometry[0], geometry[3]](*given)

        self.launches.append(function.fn.__name__)
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
        raise AssertionError(f"a kernel was given {address}, which is nobody's memory")

    def replay(self):
        """Do what was captured, again."""
        for do in self.work:
            do()

    def _do(self, do):
        if self.capturing:
            self.work.append(do)
        else:
            do()


class OnGpu:
    """An array of the pretended GPU as a caller has it."""

    def __init__(self, gpu, array):
        self.array = gpu.array(array.shape, array.dtype)
        self.array[...] = array

    @property
    def __cuda_array_interface__(self):
        return self.array.__array_interface__ | {"strides": self.array.strides}


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
    from octopus.arrays import staging, streams
    from octopus.backends.cuda import device, memory
    from octopus.images import cuda, plan, upload, work

    BlockThread.start = start
    gpu = Gpu()
    here = SimpleNamespace(device_id=0, default_stream=gpu.stream, create_event=Event)
    for module in (device, memory, plan_memory, staging, streams):
        module.current = lambda: here
    for module in (device, streams, upload):
        module.is_capturing = lambda stream: gpu.capturing
    for module in (device, backends.cuda, memory, upload):
        module.stream_of = lambda stream=None: gpu.stream
    streams.driver = lambda: SimpleNamespace(cuCtxGetDevice=lambda: (0, 0))
    backends.cuda.missing, backends.cuda.require = lambda: None, lambda: None
    memory.allocate, memory.copy, memory.free_bytes = gpu.allocate, gpu.copy, lambda: 1 << 40
    memory.pinned = lambda shape, dtype: gpu.array(shape, dtype)
    cuda._capability = lambda: (7, 5)  # no tensor cores for bytes: the kernel for them is no Python
    cuda.function_of, cuda.submit = lambda kernel: kernel, gpu.submit
    cuda._simple_kernel, cuda._padding_kernel = _simple_kernel, _padding_kernel
    assert plan and work
    return gpu


def _simple_kernel(name, *parts):
    from numba import cuda

    from octopus.kernels.cuda import images

    out = TYPES[parts[5]]
    return cuda.jit(images.build(*parts[:-1])), [np.int64, np.int32, None, out] + [None] * 17


def _padding_kernel(dtype, capability):
    from numba import cuda

    from octopus.kernels.cuda import images

    kinds = [np.int64, np.int32, None, None, None, TYPES[dtype], np.int32]
    return cuda.jit(images.build_padding(dtype)), kinds
