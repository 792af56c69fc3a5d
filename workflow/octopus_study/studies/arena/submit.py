"""What calls cost when nobody else is there: a run's host time with boxes on the GPU, and a whole batch of a detector.

In the arena's large comparisons the contenders' threads and caches are alive beside each other; here Octopus is alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from octopus import CropPlan
from octopus_study.measure import Case, HostClock, Row, unavailable
from octopus_study.peers.availability import Unavailable, need
from octopus_study.peers.job import CropJob, make_job
from octopus_study.studies.arena.own import FusedPlan, OneCall
from octopus_study.studies.arena.workloads import VISDRONE, boxes_of
from octopus_study.studies.contest import Entry, compare
from octopus_study.studies.context import Context

QUANTITY, ALONE = "submit", "end_to_end_alone"
SERIES = 32  # calls in a row, few enough that the driver's queue never fills


class SubmitClock(HostClock):
    """Host time of one call out of a series; the GPU's work is waited for outside."""

    def time(self, run: Callable[[], object]) -> float:
        """Milliseconds per call."""
        self.synchronize()
        start = time.perf_counter_ns()
        for _ in range(SERIES):
            run()
        elapsed = time.perf_counter_ns() - start
        self.synchronize()
        return elapsed / SERIES / 1e6


def rows(context: Context) -> list[Row]:
    """One comparison for each number of boxes; a machine without a GPU has none."""
    if context.device != "cuda":
        return []
    return [row for count in context.config.arena.counts for row in _count_rows(context, count)]


def _count_rows(context: Context, count: int) -> list[Row]:
    case = Case(context.study, context.workload.dataset, VISDRONE, count)
    crop = context.config.crop
    boxes = boxes_of(context, VISDRONE, count)
    if context.shortage(2 * count):
        return []
    job = make_job(context.workload.frame, boxes, crop.size, crop.mean, crop.std, context.device)
    entries, gaps = [Entry("octopus", _own(job))], []
    try:
        entries.append(Entry("octopus-torch", _torch(job)))
    except Unavailable as error:
        gaps.append(unavailable(case, "octopus-torch", "host", QUANTITY, "ms", str(error)))
    host = context.host_clock()
    clock = SubmitClock(host.synchronize, host.throttle)
    budget = context.budget_within(context.config.arena.max_seconds)
    found = compare(context, case, QUANTITY, entries, clock, "n/a", budget)
    return [*found, *gaps, *compare(context, case, ALONE, _whole(job), host, "n/a", budget)]


def _whole(job: CropJob) -> list[Entry]:
    """From boxes on the host to the synchronised result, by a plan and by `crop_resize` itself."""
    return [Entry(kind.name, kind(job).run) for kind in (FusedPlan, OneCall)]


def _own(job: CropJob) -> Callable[[], object]:
    """Frame, boxes and result in memory of Octopus."""
    from octopus.backends.cuda.memory import upload

    return _run(job, job.device_frame, upload(job.boxes.astype(np.float32)))


def _torch(job: CropJob) -> Callable[[], object]:
    """The same in tensors of torch."""
    torch = need("torch", "PyTorch", "pip install 'octopus[peers]'")
    if not torch.cuda.is_available():
        raise Unavailable(f"PyTorch {torch.__version__} finds no GPU")
    frame = torch.as_tensor(job.device_frame, device="cuda")
    return _run(job, frame, torch.from_numpy(job.boxes.astype(np.float32)).cuda())


def _run(job: CropJob, frame: Any, boxes: Any) -> Callable[[], object]:
    plan = CropPlan(frame, job.count, job.size, mean=job.mean, std=job.std)
    return lambda: plan.run(frame, boxes)
