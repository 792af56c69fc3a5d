"""One GPU as a worker sees it: its memory, its stream, and what slowed it down."""

from __future__ import annotations

import os
from typing import Any

from numpy.typing import NDArray

from octopus.backends.cuda import memory
from octopus.backends.cuda.device import driver, missing
from octopus_study.measure import GpuThrottle

VISIBLE = "CUDA_VISIBLE_DEVICES"


class Gpu:
    """The GPU of a number, made current in this thread, for good.

    Parameters
    ----------
    ordinal : int
        Among those that this process sees.
    alone : bool
        It is the only one that this process sees, so that NVML can be asked of it.
    """

    name = "cuda"

    def __init__(self, ordinal: int, alone: bool) -> None:
        from cuda.core import Device

        device = Device(ordinal)
        device.set_current()
        self.stream = device.create_stream()
        self.throttled = GpuThrottle() if alone else lambda: None

    def pinned(self, values: NDArray[Any]) -> NDArray[Any]:
        """A copy in page-locked memory."""
        copy = memory.pinned(values.shape, values.dtype)
        copy[...] = values
        return copy

    def place(self, values: NDArray[Any]) -> memory.DeviceArray:
        """A copy on the GPU."""
        there = memory.DeviceArray(values.shape, values.dtype, stream=self.stream)
        there.copy_from_host(values, self.stream)
        self.synchronize()
        return there

    def part(self, there: memory.DeviceArray, start: int, shape: tuple[int, ...]) -> memory.DeviceArray:
        """Some of it from an element on, in a shape."""
        return there.part(start, shape)

    def copy(self, there: memory.DeviceArray, values: NDArray[Any]) -> None:
        """Queue a copy to the GPU."""
        there.copy_from_host(values, self.stream)

    def poison(self, there: memory.DeviceArray) -> None:
        """Overwrite all of it: what nobody writes is seen, NaN in floats."""
        self.synchronize()
        memory.set_bytes(there.pointer, there.nbytes, 0xFF)
        memory.check(driver().cuCtxSynchronize())

    def fetch(self, there: memory.DeviceArray) -> NDArray[Any]:
        """A copy on the host."""
        return there.copy_to_host(stream=self.stream)

    def synchronize(self) -> None:
        """Wait for the stream."""
        self.stream.sync()


def visible_names() -> list[str]:
    """Names of the GPUs that CUDA sees in this process; none without a driver."""
    if missing() is not None:
        return []
    count = int(memory.check(driver().cuDeviceGetCount())[0])
    names = (memory.check(driver().cuDeviceGetName(128, number))[0] for number in range(count))
    return [name.split(b"\0")[0].decode() for name in names]


def only(rank: int) -> str:
    """The value of `VISIBLE` that leaves a process this GPU of those that are visible now."""
    shown = os.environ.get(VISIBLE)
    return shown.split(",")[rank].strip() if shown else str(rank)
