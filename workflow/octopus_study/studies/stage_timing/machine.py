"""What the machine itself costs and allows: launches, and the bandwidth of its memory."""

from collections.abc import Callable, Iterator

import numpy as np

from octopus.backends.cuda import memory as cuda_memory
from octopus_study.baselines.availability import free_bytes
from octopus_study.measure import Method, Row
from octopus_study.measure.bandwidth import MIB, bandwidth_rows
from octopus_study.studies.comparison import Comparison, Part, compare
from octopus_study.studies.context import Context

LAUNCHERS = {"cuda": ("cuda-core-launch", "numba-dispatch"), "cpu": ("kernel-call",)}


def shared_count(context: Context) -> int:
    """Objects of what is measured at one size only: 1000 as published, or what the configuration has."""
    return min(max(context.config.stage_timing.counts), 1000)


def launch_parts(context: Context) -> Iterator[Part]:
    """Time of 1, 2, 4, … launches that do nothing and one synchronisation; the overhead is the slope over their number.
    The kernels are empty but take the arguments of the real ones, since passing them is part of every launch."""
    for count in context.config.stage_timing.launches:
        case = context.case("launch-overhead", count)
        yield Part(_launches, (Comparison(case, "launch_series", "host", LAUNCHERS[context.device]),))


def _launches(context: Context, part: Part) -> list[Row]:
    launchers = _gpu_launchers() if context.device == "cuda" else _cpu_launchers(context)
    methods = [Method(name, _repeat(launch, part.case.n)) for name, launch in launchers.items()]
    return compare(context, part.comparisons[0], methods)


def _repeat(launch: Callable[[], object], count: int) -> Callable[[], None]:
    def series() -> None:
        for _ in range(count):
            launch()

    return series


def _gpu_launchers() -> dict[str, Callable[[], object]]:
    from numba import cuda

    from octopus_study.kernels.cuda import published
    from octopus_study.measure.cuda import LaunchProbe

    array = cuda_memory.DeviceArray((1, 1, 1, 1), np.uint8)
    pointers, integers, floats = array.pointer, [np.int32(1)] * 4, [np.float32(1)] * 8
    fused = (pointers, *integers[:3], pointers, pointers, *integers, *floats)
    frame = cuda.as_cuda_array(cuda_memory.DeviceArray((1, 1, 1), np.uint8), sync=False)
    metadata = cuda.as_cuda_array(cuda_memory.DeviceArray((1, 8), np.int32), sync=False)
    crops = cuda.as_cuda_array(array, sync=False)
    dispatch = published.empty[1, 1]
    return {
        "cuda-core-launch": LaunchProbe("empty", *fused),
        "numba-dispatch": lambda: dispatch(frame, metadata, crops, 0),
    }


def _cpu_launchers(context: Context) -> dict[str, Callable[[], object]]:
    from octopus_study.kernels.cpu import probes

    flags = np.zeros(context.thread_count, np.uint8)
    return {"kernel-call": lambda: probes.empty(flags)}


def bandwidth(context: Context) -> list[Row]:
    """Write, read and copy bandwidth with buffers of many times the cache, within a quarter of the free memory."""
    on_gpu = context.device == "cuda"
    nbytes = min(1024 * MIB if on_gpu else 256 * MIB, free_bytes(context.device) // 4 // MIB * MIB)
    return bandwidth_rows(
        context.study, context.workload.dataset, nbytes, context.device, context.clock(context.kernel_layer),
        context.budget, context.seed,
    )  # fmt: skip
