"""What the machine itself costs and allows: launches, bandwidth, memory per method, the first crop of a process."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable

import numpy as np

from octopus.backends import cpu
from octopus.backends.cuda import memory as cuda_memory
from octopus_study.measure import Case, Method, Row, memory_rows, run_paired, unavailable
from octopus_study.measure.bandwidth import MIB, bandwidth_rows
from octopus_study.studies.context import Context

log = logging.getLogger(__name__)

FIRST_CROP_RUNS = 5
FIRST_CROP = (
    "import time; t = time.perf_counter(); from octopus_study.studies.first_crop import main; main(t, {!r})"
)
TIMEOUT_S = 120


def launch_rows(context: Context) -> list[Row]:
    """Time of 1, 2, 4, … launches that do nothing and one synchronisation; the overhead is the slope over their number.

    The kernels are empty but take the arguments of the real ones, since passing them is part of every launch.
    """
    launchers = _gpu_launchers() if context.device == "cuda" else _cpu_launchers(context)
    found = []
    for count in context.config.stage_timing.launches:
        case = Case(context.study, context.workload.dataset, "launch-overhead", count)
        methods = [Method(name, _repeat(launch, count)) for name, launch in launchers.items()]
        found += run_paired(
            case, "launch_series", "ms", methods, context.host_clock(), context.budget, "n/a", context.seed
        )
    return found


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
    free = cuda_memory.free_bytes() if on_gpu else cpu.free_bytes()
    nbytes = min(1024 * MIB if on_gpu else 256 * MIB, free // 4 // MIB * MIB)
    return bandwidth_rows(
        context.study, context.workload.dataset, nbytes, context.device, context.kernel_clocks()[0],
        context.budget, context.seed,
    )  # fmt: skip


def memory(context: Context) -> list[Row]:
    """The four lines of each method, each in a process of its own."""
    count = min(max(context.config.stage_timing.counts), 1000)
    case = Case(context.study, context.workload.dataset, "visdrone", count)
    kwargs = {
        "device": context.device,
        "count": count,
        "size": list(context.config.crop.size),
        "frame_shape": list(context.workload.frame.shape),
    }
    found = []
    for method in ("octopus", "published", "n-launches"):
        log.info("memory of %s", method)
        found += memory_rows(
            case,
            method,
            "octopus_study.studies.memory_targets:probe",
            kwargs={"method": method, **kwargs},
            meter="cuda" if context.device == "cuda" else "rss",
        )
    return found


def cold_start(context: Context) -> list[Row]:
    """From the start of `import octopus` to the first crop in a fresh process, kernels compiled before."""
    case = Case(context.study, context.workload.dataset, "visdrone", 1)
    found = []
    for repetition in range(-1, FIRST_CROP_RUNS):  # the first fills the cache and is not kept
        try:
            elapsed = _first_crop(context.device)
        except (subprocess.SubprocessError, ValueError) as error:
            return [unavailable(case, "octopus", "cold_start", "first_crop", "ms", str(error))]
        if repetition >= 0:
            found.append(case.row("octopus", "cold_start", "first_crop", "ms", elapsed, block=repetition))
    return found


def _first_crop(device: str) -> float:
    command = [sys.executable, "-c", FIRST_CROP.format(device)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=TIMEOUT_S)
    return float(done.stdout)
