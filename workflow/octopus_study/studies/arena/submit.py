"""What calls cost with no other method beside them: a run's host time with boxes on the GPU, and a whole batch.

In the arena's large comparisons the methods' threads and caches are alive beside each other; here Octopus is alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from octopus import CropPlan
from octopus_study.baselines.availability import make_all, need_torch
from octopus_study.baselines.fused import Octopus, OneCall
from octopus_study.baselines.job import CropJob
from octopus_study.measure import HostClock, Method, Row
from octopus_study.studies.arena.workloads import VISDRONE, arena_budget, boxes_of, case_of
from octopus_study.studies.comparison import Comparison, Part, compare
from octopus_study.studies.context import Context
from octopus_study.studies.crops import crop_job

QUANTITY, ALONE = "submit", "end_to_end_alone"
TORCH = "octopus-torch"
SERIES = 32  # calls in a row, few enough that the driver's queue never fills


class SubmitClock(HostClock):
    """Host time of one call out of a series; the GPU's work is waited for outside."""

    def time(self, run: Callable[[], object]) -> float:
        self.synchronize()
        start = time.perf_counter_ns()
        for _ in range(SERIES):
            run()
        elapsed = time.perf_counter_ns() - start
        self.synchronize()
        return elapsed / SERIES / 1e6


def parts(context: Context) -> Iterator[Part]:
    """One part for each number of boxes."""
    for count in context.config.arena.counts:
        case = case_of(context, VISDRONE, count)
        submit = Comparison(case, QUANTITY, "host", (Octopus.name, TORCH))
        yield Part(_measure, (submit, Comparison(case, ALONE, "host", (Octopus.name, OneCall.name))))


def _measure(context: Context, part: Part) -> list[Row]:
    context.require_room(2 * part.case.n)
    job = crop_job(context, boxes_of(context, VISDRONE, part.case.n))
    runs, missing = make_all({name: partial(_run, job, name) for name in (Octopus.name, TORCH)})
    methods = [Method(name, run) for name, run in runs.items()]
    host, budget = context.host_clock(), arena_budget(context)
    submit, alone = part.comparisons
    clock = SubmitClock(host.synchronize, host.throttle)
    rows = compare(context, submit, methods, missing=missing, clock=clock, budget=budget)
    # From boxes on the host to the synchronised result, by a plan and by `crop_resize` itself.
    whole = [Method(kind.name, kind(job).run) for kind in (Octopus, OneCall)]
    return [*rows, *compare(context, alone, whole, clock=host, budget=budget)]


def _run(job: CropJob, name: str) -> Callable[[], object]:
    """A run of a plan, with frame and boxes as arrays of the library's own, or as tensors of torch."""
    from octopus.backends.cuda.memory import upload

    arrays: tuple[Any, ...] = job.device_frame, upload(job.boxes.astype(np.float32))
    if name == TORCH:
        arrays = tuple(need_torch("cuda", "baselines").as_tensor(array, device="cuda") for array in arrays)
    frame, boxes = arrays
    plan = CropPlan(frame, job.count, job.size, mean=job.mean, std=job.std)
    return lambda: plan.run(frame, boxes)
