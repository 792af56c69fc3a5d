"""A GPU that isn't there: its memory is the host's, its driver is Python's, and its kernels do what a test says.

All between a public call and the kernel is what runs on a real one, also the machine code of prepared launches, which
calls the driver's functions by their addresses. In a process with `NUMBA_ENABLE_CUDASIM` kernels run in the simulator.
"""

from __future__ import annotations

import ctypes
import math
import sys
import threading
import weakref
from types import SimpleNamespace
from typing import Any

import fake_torch
import numpy as np

from octopus.arrays import memo, results, streams
from octopus.backends import cuda as of_cuda
from octopus.backends.cuda import compile, device
from octopus.backends.cuda.device import LEGACY
from octopus.crop import api
from octopus.crop import cuda as of_crops
from octopus.images import calls
from octopus.images import cuda as of_images
from octopus.ragged import plan as of_ragged
from octopus.tiles import api as of_tiles

LONG, UNKNOWN = ctypes.c_int64, 999  # CUDA_ERROR_UNKNOWN
KINDS = {
    "int32": (ctypes.c_int32, np.int32), "uint32": (ctypes.c_uint32, np.uint32), "int64": (LONG, np.int64),
    "float32": (ctypes.c_float, np.float32), "float64": (ctypes.c_double, np.float64),
}  # fmt: skip


class OnGpu:
    """An array of which nothing can be asked but where it lies, and who still writes to it; on memory of the host."""

    def __init__(self, array: np.ndarray, stream: int | None = None) -> None:
        self.array, self.pointer, self.shape, self.stream = array, array.ctypes.data, array.shape, stream

    def __len__(self) -> int:
        return len(self.array)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        strides = {"strides": self.array.strides}
        return {**self.array.__array_interface__, **strides, "version": 3, "stream": self.stream}


def memory(shape: Any, dtype: Any = np.uint8, shift: int = 0) -> np.ndarray:
    """Memory that lies so many bytes behind a multiple of 256."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    made = np.zeros(size + 512, np.uint8)
    first = -made.ctypes.data % 256 + shift
    return made[first : first + size].view(dtype).reshape(shape)


def at(address: int, shape: Any, dtype: Any, strides: Any = None) -> np.ndarray:
    """An array on memory whose address is known."""
    nbytes = sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + 1 if strides else math.prod(shape)
    block = (ctypes.c_uint8 * int(nbytes * np.dtype(dtype).itemsize)).from_address(address)
    return np.ndarray(shape, dtype, block, strides=strides)


class Stream:
    """A stream of cuda.core, for which the host never has to wait."""

    def __init__(self, handle: int, waits: list) -> None:
        self.handle, self._waits, self.recorded = handle, waits, []

    def wait(self, other: Any) -> None:
        self._waits.append((self.handle, other.handle))

    def record(self, event: Any) -> None:
        self.recorded.append(event)
        event.handle = self.handle

    def sync(self) -> None:
        pass


class Buffer:
    """Memory of a device."""

    def __init__(self, place: np.ndarray, gpu: PretendedGpu) -> None:
        self.handle, self._place, self._gpu = place.ctypes.data, place, gpu

    def set_deallocation_stream(self, stream: Any) -> None:
        """Memory here is freed at once, whatever the stream."""

    def __del__(self) -> None:
        self._gpu.known.pop(self.handle, None)
        self._gpu.freed.add(self.handle)


class PretendedGpu:
    """What the driver, `cuda.bindings` and a device of `cuda.core` are asked for: an H200.

    Attributes
    ----------
    launches : list of SimpleNamespace
        `kernel`, `grid`, `block`, `shared`, `stream`, `values` of the arguments by the types of the kernel's signature,
        `content` in bytes of an argument that is an array by value, and the `thread` that launched.
    copies : list of (to, nbytes, content)
        By the driver; `uploads` has the bytes of those that no launch made.
    waits : list of (int, int)
        Handles of a stream and of the one that it waits for.
    captured : set of int
        Handles of streams whose work goes into a graph, which is `work` then, for `replay`.
    known, freed : dict, set
        Bytes of memory by its address, and addresses of memory that was given back.
    statuses : dict
        What the driver answers to "launch" and "copy"; else 0.
    meanwhile : dict of callables
        Called once each: "device" at the next question which GPU is current, "launch" before the next launch.
    does : callable
        Given each launch, in the place of the kernel.
    errors : list of Exception
        Of functions that were called: those answer `UNKNOWN`, since machine code passes no exception on.
    """

    device_id, memory_resource, name = 0, None, "NVIDIA H200"
    properties = SimpleNamespace(
        multiprocessor_count=132, l2_cache_size=50 << 20, max_shared_memory_per_block_optin=227 << 10
    )

    def __init__(self, capability: tuple[int, int] = (9, 0)) -> None:
        self.compute_capability, self.device, self.does = capability, 0, lambda made: None
        self.launches, self.copies, self.uploads, self.waits, self.work = [], [], [], [], []
        self.captured, self.freed, self.known, self.errors = set(), set(), {}, []
        self.statuses, self.meanwhile, self._streams, self.kernels, self.allocated = {}, {}, {}, [], 0
        self._pinned = {}
        self.default_stream = self.stream(LEGACY)
        pointer, status = ctypes.POINTER(ctypes.c_int32), ctypes.c_int32
        self._functions = (
            ctypes.CFUNCTYPE(status, *[LONG] * 11)(self._guarded(self._launch)),
            ctypes.CFUNCTYPE(status, pointer)(self._guarded(self._device)),
            ctypes.CFUNCTYPE(status, LONG, pointer)(self._guarded(self._capturing)),
            ctypes.CFUNCTYPE(status, *[LONG] * 4)(self._guarded(self._copy)),
        )

    def put(self, array: np.ndarray, stream: int | None = None) -> OnGpu:
        """A copy of an array of any strides, with all memory that it is a view of."""
        array = whole = np.asarray(array)
        while isinstance(whole.base, np.ndarray):
            whole = whole.base
        there = memory(whole.nbytes)
        there[:] = np.frombuffer(whole.tobytes("A"), np.uint8)
        self.known[there.ctypes.data] = there.nbytes
        offset = array.ctypes.data - whole.ctypes.data
        made = OnGpu(np.ndarray(array.shape, array.dtype, there, offset, array.strides), stream)
        weakref.finalize(made, self.known.pop, there.ctypes.data, None)
        return made

    # What cuda.core offers.
    def stream(self, handle: int, owner: Any = None) -> Stream:
        return self._streams.setdefault(handle or LEGACY, Stream(handle or LEGACY, self.waits))

    def create_stream(self) -> Stream:
        return self.stream(1000 + len(self._streams))

    def create_event(self) -> SimpleNamespace:
        return SimpleNamespace(is_done=True, sync=int, handle=0)

    def set_current(self) -> None:
        pass

    def sync(self) -> None:
        pass

    def allocate(self, nbytes: int, stream: Any) -> Buffer:
        self.allocated += 1
        made = Buffer(memory(nbytes), self)
        self.known[made.handle] = nbytes
        self.freed.discard(made.handle)
        return made

    def load(self, name: str, build: Any, *sources: Any) -> SimpleNamespace:
        """In the place of `compile.load`."""
        function = build()
        names, signature = function.arguments
        assert function.__code__.co_varnames[: function.__code__.co_argcount] == names
        made = SimpleNamespace(name=name, function=function, signature=signature, handle=len(self.kernels))
        made.tail_bytes, made.shared = getattr(function, "tail_bytes", 0), 0
        self.kernels.append(made)
        return made

    def bindings(self) -> SimpleNamespace:
        """In the place of the module `cuda.bindings.driver`."""

        def address_of(name, version, flags):
            assert (version, flags) == (compile.VERSION, LEGACY)
            return 0, ctypes.cast(self._functions[compile.FUNCTIONS.index(name.decode())], ctypes.c_void_p).value

        def function_of(handle):
            return 0, handle

        def copy(to, source, nbytes, stream):
            self.uploads.append(nbytes)
            return (self._copy(to, source, nbytes, int(stream)),)

        def fill(to, value, nbytes, stream):
            self._do(int(stream), lambda: ctypes.memset(to, value, nbytes))
            return (0,)

        def lock(nbytes, flags):
            self.allocated += 1
            made = memory(nbytes)
            self._pinned[made.ctypes.data] = made
            return 0, made.ctypes.data

        def ask(function, name, nbytes):
            self.kernels[function].shared = nbytes
            return (0,)

        attribute = SimpleNamespace(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES=8)
        return SimpleNamespace(
            cuGetProcAddress=address_of, cuKernelGetFunction=function_of, cuMemcpyAsync=copy, CUkernel=int,
            cuMemsetD8Async=fill, cuMemHostAlloc=lock, cuMemFreeHost=self._pinned.pop, cuFuncSetAttribute=ask,
            cuCtxGetDevice=lambda: (0, self.device), cuMemGetInfo=lambda: (0, 1 << 40, 1 << 40),
            cuStreamIsCapturing=lambda handle: (0, handle in self.captured), CUfunction_attribute=attribute,
            CUdriverProcAddress_flags=SimpleNamespace(CU_GET_PROC_ADDRESS_LEGACY_STREAM=LEGACY),
            CUresult=lambda status: SimpleNamespace(name=f"error {status}"),
        )  # fmt: skip

    # What the machine code of a launch calls.
    def _guarded(self, function: Any) -> Any:
        def call(*given):
            try:
                return function(*given)
            except Exception as error:
                self.errors.append(error)
                return UNKNOWN

        return call

    def _launch(self, function, *rest):
        self.meanwhile.pop("launch", int)()
        *geometry, shared, stream, parameters, extra = rest
        kernel = self.kernels[function]
        addresses = ctypes.cast(parameters, ctypes.POINTER(LONG))
        values = tuple(
            KINDS[kind][0].from_address(addresses[n]).value if kind in KINDS
            else ctypes.c_uint64.from_address(addresses[n]).value for n, kind in enumerate(kernel.signature)
        )  # fmt: skip
        count = 1
        while addresses[count] == addresses[count - 1] + 8:  # they lie one after the other, all else apart
            count += 1
        assert extra == 0 and count == len(values) and shared <= max(kernel.shared, 48 << 10)
        content = ctypes.string_at(addresses[count], kernel.tail_bytes) if kernel.tail_bytes else b""
        made = SimpleNamespace(
            kernel=kernel, grid=tuple(geometry[:3]), block=tuple(geometry[3:]), shared=shared, stream=stream,
            values=values, content=content, thread=threading.get_ident(),
        )  # fmt: skip
        if status := self.statuses.get("launch", 0):
            return status
        self.launches.append(made)
        self._do(stream, lambda: self.does(made))
        return 0

    def _device(self, ordinal):
        self.meanwhile.pop("device", int)()
        ordinal[0] = self.device
        return 0

    def _capturing(self, stream, state):
        state[0] = stream in self.captured
        return 0

    def _copy(self, to, source, nbytes, stream):
        self.copies.append((to, nbytes, ctypes.string_at(source, nbytes)))
        if status := self.statuses.get("copy", 0):
            return status
        self._do(stream, lambda: ctypes.memmove(to, source, nbytes))
        return 0

    def _do(self, stream: int, what: Any) -> None:
        if stream in self.captured:
            self.work.append(what)
        else:
            what()

    def replay(self) -> None:
        """Do what was captured, again."""
        for do in self.work:
            do()


class Anywhere:
    """Elements before and behind an address, in any memory that is known."""

    def __init__(self, address: int, dtype: np.dtype, known: dict[int, int]) -> None:
        self.itemsize, self.arrays = dtype.itemsize, []
        for start, nbytes in known.items():
            first = -((address - start) // dtype.itemsize)
            count = (start + nbytes - address) // dtype.itemsize - first
            if count > 0:
                there = at(address + first * dtype.itemsize, (count,), dtype)
                self.arrays.append((first, first + count, there))

    def __getitem__(self, index: Any) -> Any:
        several = isinstance(index, slice)
        first, last = (index.start, index.stop) if several else (index, index + 1)
        for start, stop, array in self.arrays:
            if start <= first and last <= stop:
                return array[first - start : last - start] if several else array[first - start]
        raise AssertionError(f"a kernel read elements {first} to {last}, which are in no array's memory")


class SimulatedGpu(PretendedGpu):
    """One whose kernels run in Numba's simulator, on memory of which they may not leave what they were given."""

    def __init__(self, capability: tuple[int, int] = (9, 0)) -> None:
        super().__init__(capability)
        self.does, self.content = self.run, b""

    def run(self, made: SimpleNamespace) -> None:
        """Do what was launched."""
        from numba import cuda

        given = [
            KINDS[kind][1](value) if kind in KINDS else self.pointed(value, kind[1:])
            for value, kind in zip(made.values, made.kernel.signature, strict=True)
        ]
        if made.kernel.name.startswith("varied"):  # whose frames and boxes count from the first
            for number in (0, 3):
                kind = made.kernel.signature[number][1:]
                given[number] = Anywhere(made.values[number], np.dtype(kind), self.known)
        self.content = np.frombuffer(made.content, np.float32)
        cuda.jit(made.kernel.function)[made.grid, made.block, 0, made.shared](*given)

    def tail_floats(self, item: int) -> tuple:
        """In the place of the instruction of `ptx`."""
        return tuple(self.content[4 * item : 4 * item + 4])

    def pointed(self, address: int, dtype: str) -> Any:
        """The array that begins at an address, to the end of its memory; at 0 and at an end one not to be read."""
        from numba.cuda.simulator.cudadrv.devicearray import FakeCUDAArray

        size = np.dtype(dtype).itemsize
        for start, nbytes in list(self.known.items()):
            if start <= address < start + max(nbytes, 1):
                return FakeCUDAArray(at(address, ((start + nbytes - address) // size,), dtype))
        ends = {start + nbytes for start, nbytes in list(self.known.items())}
        assert not address or address in ends, f"a kernel was given {address}, which is no array's memory"
        return FakeCUDAArray(np.full(1 << 12, 77, dtype))  # what kernels read there must not matter


CACHES = (
    device.driver, compile.functions, of_crops._kernel, of_crops._varied_kernel, of_tiles._cuda_kernel,
    of_ragged._cuda_kernel, of_images.kernel_for,
)  # fmt: skip


def forget(caches: Any) -> None:
    for cached in caches:
        cached.cache_clear()


def put_in(monkeypatch: Any, made: PretendedGpu) -> PretendedGpu:
    """Put a GPU in the place of the real one; nothing that calls keep is kept from before."""
    forget(CACHES)
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "cuda.bindings", SimpleNamespace(driver=made.bindings()))
        device.driver()  # which remembers it
    for module, name, value in (
        (device, "missing", lambda: None), (of_cuda, "missing", lambda: None), (of_cuda, "require", lambda: None),
        (device, "_thread", SimpleNamespace(device=made)), (device, "_stream_type", lambda: Stream),
        (device, "_wrap", made.stream), (compile, "load", made.load),
        (api, "_thread", api._Memo()), (calls, "_thread", threading.local()),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)
    return made


def installed(monkeypatch: Any) -> Any:
    """A fixture: a pretended GPU, as long as the generator waits."""
    made = put_in(monkeypatch, PretendedGpu())
    yield made
    forget(CACHES)
    assert not made.errors


def torch_installed(monkeypatch: Any) -> Any:
    """As `installed`, with tensors of `fake_torch`; `handle` is of its stream, `used` has those that it was told of."""
    for made in installed(monkeypatch):
        yield from put_torch_in(monkeypatch, made)


def put_torch_in(monkeypatch: Any, made: PretendedGpu) -> Any:
    """Tensors of `fake_torch` in the place of torch's, on a pretended GPU."""
    caches = streams._torch_handle, results._torch_device
    before, made.handle, made.used = memo.modes[:], 7, []
    inner = {name: int for name in ("_len_torch_dispatch_stack", "_is_tracing")}
    inner["_cuda_getCurrentRawStream"] = lambda ordinal: made.handle
    stream = SimpleNamespace(ExternalStream=lambda handle, device: handle)
    monkeypatch.setattr(fake_torch, "_C", SimpleNamespace(**inner), raising=False)
    monkeypatch.setattr(fake_torch, "cuda", stream, raising=False)
    used = made.used.append
    monkeypatch.setattr(fake_torch.Tensor, "record_stream", lambda _, stream: used(stream), raising=False)
    monkeypatch.setitem(sys.modules, "torch", fake_torch)
    monkeypatch.setattr(memo, "_tensors", set())
    forget(caches)
    yield made
    memo.modes[:] = before
    forget(caches)
