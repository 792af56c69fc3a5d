"""Memory of each arena method in four lines, each method in a process of its own."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from octopus_study.measure import Case, MemoryProbe, Row, memory_rows, payload, unavailable
from octopus_study.measure.memory import MemoryLines
from octopus_study.peers import registry
from octopus_study.peers.job import CropJob, make_job
from octopus_study.studies.arena.layers import empty_caches, names
from octopus_study.studies.arena.own import OWN, Contender, HalfPrecision
from octopus_study.studies.arena.workloads import VISDRONE, boxes_of, shared_count
from octopus_study.studies.context import Context

log = logging.getLogger(__name__)

TARGET = "octopus_study.studies.arena.memory:probe"
TIMEOUT_S = 120
SWITCHED_OFF = "not measured in this run (arena.memory is false)"


def rows(context: Context, missing: Mapping[str, str]) -> list[Row]:
    """Four rows per method; a method that `missing` explains gets its reason, and no process is started."""
    count = shared_count(context)
    case = Case(context.study, context.workload.dataset, VISDRONE, count)
    kwargs = {
        "device": context.device,
        "boxes": boxes_of(context, VISDRONE, count).tolist(),
        "size": list(context.config.crop.size),
        "frame_shape": list(context.workload.frame.shape),
    }
    found = []
    for method in names():
        why = missing.get(method, "" if context.config.arena.memory else SWITCHED_OFF)
        if why:
            found += [
                unavailable(case, method, "memory", f"memory_{line}", "bytes", why)
                for line in MemoryLines._fields
            ]
            continue
        log.info("memory of %s", method)
        meter = "cuda" if context.device == "cuda" else "rss"
        arguments = {"method": method, **kwargs}
        found += memory_rows(case, method, TARGET, kwargs=arguments, meter=meter, timeout=TIMEOUT_S)
    return found


def probe(
    method: str, device: str, boxes: list[list[int]], size: list[int], frame_shape: list[int]
) -> MemoryProbe:
    """A method that has run once on one box, and what it does with all of them.

    The sizes of the boxes matter (padding), the pixels don't, so that no data are read here.
    """
    frame, all_boxes = np.zeros(frame_shape, np.uint8), np.array(boxes, np.int32).reshape(-1, 4)

    alive: list[Contender] = []

    def run(count: int) -> list[Contender]:
        alive[:] = [_make(method, _job(frame, all_boxes[:count], (size[0], size[1]), device))]
        alive[0].run()
        if device == "cuda":
            from octopus_study.measure.cuda import synchronize

            synchronize()
        return alive

    run(1)
    has_allocator = getattr(alive[0], "allocator_peak", lambda: None)() is not None
    alive.clear()
    empty_caches(device)
    kind = np.float16 if method == HalfPrecision.name else np.float32
    result = ((len(all_boxes), frame_shape[2], *size), kind)
    needed = payload(frame, result, ((len(all_boxes), 4), np.float32))
    peak = (lambda: alive[0].allocator_peak()) if has_allocator else None
    return MemoryProbe(needed, lambda: run(len(all_boxes)), peak)


class LateResult:
    """A job's result on the GPU whose memory is taken when someone asks for it.

    Methods that write into memory of their own then don't hold the job's as well. On a CPU untouched memory is not
    resident anyway.
    """

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
    channels = frame.shape[2]
    plain = (0.0,) * channels, (1.0,) * channels
    if device == "cpu":
        return make_job(frame, boxes, size, *plain, device)
    from octopus.backends.cuda.memory import upload

    return CropJob(frame, boxes, size, *plain, LateResult((len(boxes), channels, *size)), upload(frame))


def _make(method: str, job: CropJob) -> Contender:
    own = {kind.name: kind for kind in OWN}
    return own[method](job) if method in own else registry.make(method, job)
