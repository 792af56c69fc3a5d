"""What the memory can do at most: write-only, read-only and copy, measured in the same run as everything else.

Crop and resize writes far more than it reads, so its bound is the time to write its output; reads and copies
run at other rates and would be the wrong yardstick.
"""

import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from octopus_study.measure.clocks import Clock
from octopus_study.measure.methods import Method
from octopus_study.measure.rows import Case, Row
from octopus_study.measure.runner import Budget, run_paired
from octopus_study.status import NO_ANSWER

MIB = 1 << 20
# How `drain` reads: bytes of a load, loads of a thread at once and how often, and threads of a block.
LOAD, LOADS_AT_ONCE, READ_TURNS, READ_THREADS = 16, 4, 2, 256
MANY_LOADS = 1 << 20
# Bytes that cross the memory interface per byte of the buffer.
TRAFFIC = {"write": 1, "read": 1, "copy": 2}


def fill(out: Any) -> Callable[[], None]:
    """A function that writes every byte of `out` once, as fast as this machine can. On the GPU that is the driver's
    32-bit fill; on the CPU a compiled loop over all threads."""
    if isinstance(out, np.ndarray):
        from octopus_study.kernels.cpu import probes

        flat = out.reshape(-1).view(np.float32)  # bytes, whatever they mean
        return lambda: probes.write(flat, np.float32(1.0))
    return lambda: out.fill_bytes(struct.pack("<f", 1.0))


def copying(nbytes: int, on_gpu: bool) -> Callable[[], object]:
    """A function that reads and writes so many bytes together, as fast as this machine copies."""
    words = max(nbytes // 8, 1)
    if on_gpu:
        from octopus.backends.cuda.memory import DeviceArray, copy

        source, target = (DeviceArray((words,), np.float32).fill_bytes(0) for _ in range(2))
        return lambda: copy(target.pointer, source.pointer, target.nbytes)
    from octopus_study.kernels.cpu import probes

    left, right = (np.ones(words, np.float32) for _ in range(2))
    return lambda: probes.copy(left, right)


def bandwidth_rows(
    study: str, dataset: str, nbytes: int, device: str, clock: Clock, budget: Budget, seed: int
) -> list[Row]:
    """Rows of layer `limit`, quantity `bandwidth`, in GB/s (1e9 bytes crossing the memory interface per second), of a
    buffer of `nbytes`, many times the last-level cache. On a GPU `read` is `drain`."""
    methods = _gpu_methods(nbytes) if device == "cuda" else _cpu_methods(nbytes)
    case = Case(study, dataset, "bandwidth", nbytes // MIB)
    timed = run_paired(case, "bandwidth", "ms", methods, clock, budget, NO_ANSWER, seed)
    return [_as_rate(row, nbytes) for row in timed]


def _as_rate(row: Row, nbytes: int) -> Row:
    row = row._replace(layer="limit")
    if row.quantity != "bandwidth":
        return row
    rate = None if row.value is None else TRAFFIC[row.method] * nbytes / row.value / 1e6
    return row._replace(unit="GB/s", value=rate)


def _cpu_methods(nbytes: int) -> Sequence[Method]:
    from octopus_study.kernels.cpu import probes

    source, target = (np.zeros(nbytes // 4, np.float32) for _ in range(2))
    target.fill(1.0)  # both written once: untouched zero pages would all be the same page
    source.fill(2.0)
    return [
        Method("write", lambda: probes.write(target, np.float32(3.0))),
        Method("read", lambda: probes.read(source)),
        Method("copy", lambda: probes.copy(source, target)),
    ]


def _gpu_methods(nbytes: int) -> Sequence[Method]:
    from octopus.backends.cuda import stream_of
    from octopus.backends.cuda.memory import DeviceArray, copy

    source, target = (DeviceArray((nbytes // 4,), np.float32).fill_bytes(0) for _ in range(2))
    stream = stream_of(None)
    return [
        Method("write", lambda: target.fill_bytes(struct.pack("<f", 3.0))),
        Method("read", drain(source)),
        Method("copy", lambda: copy(target.pointer, source.pointer, nbytes, stream)),
    ]


def drain(source: Any) -> Callable[[], None]:
    """A function that reads a `DeviceArray` of any content as fast as the GPU can, but for a rest of some kilobytes."""
    from cuda.core import LaunchConfig, launch

    from octopus.backends.cuda import stream_of
    from octopus.backends.cuda.memory import DeviceArray
    from octopus_study.measure.cuda import probe_kernel

    loads = source.nbytes // LOAD
    turns = READ_TURNS if loads >= MANY_LOADS else 1  # few bytes need all the threads that there are
    grid = max(loads // (READ_THREADS * LOADS_AT_ONCE * turns), 1)
    whole = np.int64(loads - loads % (grid * READ_THREADS * LOADS_AT_ONCE))
    sink, kernel, stream = DeviceArray((1,), np.uint32), probe_kernel("read_words"), stream_of(None)
    config = LaunchConfig(grid=grid, block=READ_THREADS)
    return lambda: launch(stream, config, kernel, source.pointer, whole, sink.pointer)
