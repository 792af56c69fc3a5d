"""Launch a kernel with as little work on the host as the driver allows.

`cuda.core.launch` looks at the type of every argument at every call. A kernel that is launched again and again has the
same arguments but for a few addresses and numbers, so that `ArgumentBlock` keeps them in memory as the driver reads
them, and a launch is two writes and one call.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from octopus.backends.cuda.device import current, driver
from octopus.backends.cuda.memory import check

UNASKED_SHARED_BYTES = 48 << 10  # of shared memory, which any kernel may have
TAIL = "octopus_tail"  # in PTX, the name of an argument that is an array by value
TAIL_ALIGNMENT = 16


class ArgumentBlock:
    """The arguments of a kernel, laid out as C would, and the list of their addresses that the driver wants.

    Parameters
    ----------
    kinds : str
        One letter of the module `struct` per argument: Q for a pointer, i, q, f.
    tail_bytes : int
        Length of one more argument, an array by value; kernels without it don't look there.

    Attributes
    ----------
    tail : ndarray, (tail_bytes // 4,), float32
        That array.
    """

    def __init__(self, kinds: str, tail_bytes: int = 0) -> None:
        self._offsets = _offsets(kinds)
        self.kinds = kinds
        tail = -(-self._offsets[-1] // TAIL_ALIGNMENT) * TAIL_ALIGNMENT
        self._memory = np.zeros(tail + tail_bytes, np.uint8)
        self.tail = self._memory[tail:].view(np.float32)
        base = self._memory.ctypes.data
        places = [*self._offsets[:-1], tail]
        self._addresses = np.array([base + offset for offset in places], np.uint64)
        self.address = int(self._addresses.ctypes.data)

    def values(self) -> tuple:
        """What is there now, argument by argument."""
        layout = struct.Struct(_native(self.kinds, 0))
        return layout.unpack_from(self._memory.data)

    def writer(self, first: int, count: int) -> Any:
        """A function that writes the values of `count` neighbouring arguments from number `first` on."""
        layout = struct.Struct(_native(self.kinds[first : first + count], self._offsets[first]))
        offset, memory = self._offsets[first], self._memory.data
        pack = layout.pack_into
        return lambda *values: pack(memory, offset, *values)


def _offsets(kinds: str) -> list[int]:
    """Where each argument starts, at a multiple of its own size, and where all end."""
    offsets, end = [], 0
    for kind in kinds:
        size = struct.calcsize(kind)
        start = -(-end // size) * size
        offsets.append(start)
        end = start + size
    return [*offsets, end]


def _native(kinds: str, start: int) -> str:
    """The format of arguments that begin at `start`, with the gaps that alignment leaves between them."""
    text, end = "=", start
    for kind in kinds:
        size = struct.calcsize(kind)
        at = -(-end // size) * size
        text += "x" * (at - end) + kind
        end = at + size
    return text


def submit(
    function: Any, geometry: tuple[int, ...], stream: Any, arguments: ArgumentBlock, shared: int = 0
) -> None:
    """Queue a kernel on a stream; the driver has read the arguments when this returns.

    Parameters
    ----------
    function
        From `function_of`.
    geometry : tuple of 6 int
        Grid and block.
    stream : cuda.core.Stream
    arguments : ArgumentBlock
    shared : int
        Bytes of shared memory beside what the kernel declares itself; more than 48 KiB need `function_of` to know.
    """
    result = driver().cuLaunchKernel(function, *geometry, shared, stream.handle, arguments.address, 0)
    if result[0]:
        check(result)


def function_of(kernel: Any, shared: int = 0) -> Any:
    """The driver's handle of a kernel of `cuda.core`, which may take `shared` bytes of shared memory at a launch."""
    api, handle = driver(), int(kernel.handle)
    if shared > UNASKED_SHARED_BYTES:
        name = api.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        check(api.cuKernelSetAttribute(name, shared, api.CUkernel(handle), current().device_id))
    return api.CUfunction(handle)
