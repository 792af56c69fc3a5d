"""What calls cost the host with no other method beside them, on GPUs alone.

In the arena's large comparisons the methods' threads and caches are alive beside each other; here Octopus is alone: a
run with boxes on the GPU, a whole batch, and a launch for all boxes of which the GPU alone knows how many count, as
behind a detector, by a plan's run and from a CUDA graph. There a workload's name says how many of the boxes count.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus import CropPlan
from octopus_study.baselines.availability import make_all, need_torch
from octopus_study.baselines.fused import Octopus, OneCall
from octopus_study.baselines.job import CropJob, on_host
from octopus_study.measure import HostClock, Method, Row
from octopus_study.measure.cuda import Graph
from octopus_study.studies.arena.workloads import CHECKED, VISDRONE, arena_budget, boxes_of, shared_count
from octopus_study.studies.comparison import Comparison, Part, compare
from octopus_study.studies.context import Context
from octopus_study.studies.crops import ReferenceCrops, checked_rows, crop_job, every_checked

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


class Counted(Octopus):
    """One launch for all boxes, of which the GPU knows how many count."""

    def __init__(self, job: CropJob, counting: int) -> None:
        super().__init__(job)
        from octopus.backends.cuda.memory import upload

        self.counting = counting
        self.asked = {"count": upload(np.array([counting], np.int32))}
        self.prepare()

    def result(self, every: int = 1) -> NDArray[np.float32]:
        """Each `every`-th crop of those that count."""
        return on_host(self.job.out.head(self.counting), every)


class Replayed(Counted):
    """The same from a CUDA graph, whatever the count."""

    name = "octopus-graph"

    def __init__(self, job: CropJob, counting: int) -> None:
        super().__init__(job, counting)
        from octopus.backends.cuda import stream_of
        from octopus.backends.cuda.device import current

        super().kernels()  # loads what a capture could not
        self._queue = stream_of(None)
        self._queue.sync()
        stream = current().create_stream()
        run = partial(self.plan.run, self.frame, self._boxes, out=job.out, stream=stream, **self.asked)
        self._graph = Graph(stream, run)

    def kernels(self) -> None:
        self._graph.launch(self._queue)


def parts(context: Context, crops: ReferenceCrops) -> Iterator[Part]:
    """One part for each number of boxes, and one for each number of those that count."""
    settings, most = context.config.arena, shared_count(context)
    for count in settings.counts:
        case = context.case(VISDRONE, count)
        submit = Comparison(case, QUANTITY, "host", (Octopus.name, TORCH))
        yield Part(_plain, (submit, Comparison(case, ALONE, "host", (Octopus.name, OneCall.name))))
    for counting in (count for count in settings.counts if count <= most):
        case = context.case(f"count-{counting}", most)
        compared = Comparison(case, QUANTITY, "host", (Counted.name, Replayed.name))
        yield Part(partial(_counted, counting=counting, crops=crops), (compared,))


def _plain(context: Context, part: Part) -> list[Row]:
    context.require_room(2 * part.case.n)
    job = crop_job(context, boxes_of(context, VISDRONE, part.case.n))
    runs, missing = make_all({name: partial(_run, job, name) for name in (Octopus.name, TORCH)})
    methods = [Method(name, run) for name, run in runs.items()]
    budget, (submit, alone) = arena_budget(context), part.comparisons
    rows = compare(context, submit, methods, missing=missing, clock=context.host_clock(SubmitClock), budget=budget)
    # From boxes on the host to the synchronised result, by a plan and by `crop_resize` itself.
    whole = [Method(kind.name, kind(job).run) for kind in (Octopus, OneCall)]
    return [*rows, *compare(context, alone, whole, budget=budget)]


def _run(job: CropJob, name: str) -> Callable[[], object]:
    """A run of a plan, with frame and boxes as arrays of the library's own, or as tensors of torch."""
    from octopus.backends.cuda.memory import upload

    arrays: tuple[Any, ...] = job.device_frame, upload(job.boxes.astype(np.float32))
    if name == TORCH:
        arrays = tuple(need_torch("cuda", "baselines").as_tensor(array, device="cuda") for array in arrays)
    frame, boxes = arrays
    plan = CropPlan(frame, job.count, job.size, mean=job.mean, std=job.std)
    return lambda: plan.run(frame, boxes)


def _counted(context: Context, part: Part, counting: int, crops: ReferenceCrops) -> list[Row]:
    context.require_room(part.case.n)
    boxes, every = boxes_of(context, VISDRONE, part.case.n), every_checked(counting, CHECKED)
    job = crop_job(context, boxes)
    methods = [made.timed(made.kernels, every) for made in (Counted(job, counting), Replayed(job, counting))]
    right, clock = crops.of(boxes[:counting:every]), context.host_clock(SubmitClock)
    budget = arena_budget(context)
    return checked_rows(context, part.comparisons, job, methods, right, clock=clock, budget=budget)
