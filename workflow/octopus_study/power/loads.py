"""The known load of the power-on test: bursts that keep the whole device busy and depend on no study."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from octopus import backends
from octopus_study.measure.bandwidth import MIB, fill

BURST_SECONDS = 0.02
_MOST_FILLS = 1 << 14
_GPU_BYTES = 1024 * MIB
# Within the last-level cache of most machines, so that the threads compute rather than wait for memory.
_CPU_BYTES = 16 * MIB


def known_load(device: str) -> Callable[[], object]:
    """Return a function that keeps a device (``auto``, ``cpu``, ``cuda``) busy for 20 to 40 ms and returns when it is
    done: it fills an array of up to 1 GiB on the GPU, of 16 MiB with all threads on the CPU, again and again."""
    if backends.resolve(device) == "cuda":
        return _gpu_load()
    once = fill(np.zeros(_CPU_BYTES // 4, np.float32))
    return _burst(once, lambda: None)


def _gpu_load() -> Callable[[], object]:
    from octopus.backends.cuda import stream_of
    from octopus.backends.cuda.memory import DeviceArray, free_bytes

    nbytes = min(_GPU_BYTES, free_bytes() // 8)
    target: Any = DeviceArray((nbytes // 4,), np.float32)
    return _burst(fill(target), stream_of(None).sync)


def _burst(once: Callable[[], object], wait: Callable[[], object]) -> Callable[[], object]:
    """Repeat a call so often that a burst lasts `BURST_SECONDS` to twice as long; the count is found here."""

    def repeat(count: int) -> float:
        start = time.perf_counter()
        for _ in range(count):
            once()
        wait()
        return time.perf_counter() - start

    repeat(1)  # compiles, and maps the memory
    count = 1
    # The quickest of three, so that a moment in which the machine did something else doesn't end the search.
    while min(repeat(count) for _ in range(3)) < BURST_SECONDS and count < _MOST_FILLS:
        count *= 2
    return lambda: repeat(count)
