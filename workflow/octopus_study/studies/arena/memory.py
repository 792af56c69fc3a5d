"""Memory of methods in four lines, each method in a process of its own."""

import logging
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus_study.baselines.fused import HalfPrecision
from octopus_study.baselines.job import CropJob, make_job, plain
from octopus_study.baselines.method import CropMethod
from octopus_study.baselines.registry import make
from octopus_study.measure import Case, MemoryProbe, Row, memory_rows, payload
from octopus_study.measure.memory import MemoryLines, Meter
from octopus_study.studies.comparison import Comparison, Part
from octopus_study.studies.context import Context, empty_caches

log = logging.getLogger(__name__)

TARGET = "octopus_study.studies.arena.memory:probe"
TIMEOUT_S = 300
TIMES = 2  # that each method is measured, so that rows show how far two processes differ


def comparisons(case: Case, methods: tuple[str, ...]) -> tuple[Comparison, ...]:
    """The four lines."""
    lines = MemoryLines._fields
    return tuple(Comparison(case, f"memory_{line}", "memory", methods, "bytes") for line in lines)


def rows(context: Context, part: Part, boxes: NDArray[np.int32], missing: Mapping[str, str]) -> Iterator[Row]:
    """Four rows per method and process; one that `missing` explains gets its reason, and no process is started."""
    meter: Meter = "cuda" if context.device == "cuda" else "rss"
    kwargs = {
        "device": context.device,
        "boxes": boxes.tolist(),
        "size": list(context.config.crop.size),
        "frame_shape": list(context.workload.frame.shape),
    }
    for method in part.comparisons[0].methods:
        if method in missing:
            for comparison in part.comparisons:
                yield from comparison.gaps(missing[method], [method])
            continue
        log.info("memory of %s", method)
        given = {"method": method, **kwargs}
        for block in range(TIMES):
            lines = memory_rows(part.case, method, TARGET, kwargs=given, meter=meter, timeout=TIMEOUT_S)
            yield from (row._replace(block=block) for row in lines if row.value is not None or not block)


def probe(method: str, device: str, boxes: list[list[int]], size: list[int], frame_shape: list[int]) -> MemoryProbe:
    """A method that has run once on one crop, and what it does with all. The sizes of the boxes matter (padding), the
    pixels don't, so that no data are read here."""
    frame, all_boxes = np.zeros(frame_shape, np.uint8), np.array(boxes, np.int32).reshape(-1, 4)
    alive: list[CropMethod] = []

    def run(count: int) -> list[CropMethod]:
        alive[:] = [make(method, _job(frame, all_boxes[:count], (size[0], size[1]), device))]
        alive[0].run()
        if device == "cuda":
            from octopus_study.measure.cuda import synchronize

            synchronize()
        return alive

    run(1)
    has_allocator = alive[0].allocator_peak() is not None
    alive.clear()
    empty_caches(device)
    peak = (lambda: alive[0].allocator_peak() or 0) if has_allocator else None
    kind = np.float16 if method == HalfPrecision.name else np.float32
    result = ((len(all_boxes), frame_shape[2], *size), kind)
    needed = payload(frame, result, ((len(all_boxes), 4), np.float32))
    return MemoryProbe(needed, lambda: run(len(all_boxes)), peak)


class LateResult:
    """A job's result on the GPU whose memory is taken when someone asks for it. Methods that write into memory of their
    own then don't hold the job's as well. On a CPU untouched memory is not resident anyway."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape, self.dtype = shape, np.dtype(np.float32)
        self.nbytes = payload((shape, self.dtype))

    @cached_property
    def _array(self) -> Any:
        from octopus.backends.cuda.memory import DeviceArray

        return DeviceArray(self.shape, self.dtype)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._array, name)


def _job(frame: np.ndarray, boxes: np.ndarray, size: tuple[int, int], device: str) -> CropJob:
    if device == "cpu":
        return make_job(frame, boxes, size, *plain(frame), device)
    from octopus.backends.cuda.memory import upload

    return CropJob(frame, boxes, size, *plain(frame), LateResult((len(boxes), frame.shape[2], *size)), upload(frame))
