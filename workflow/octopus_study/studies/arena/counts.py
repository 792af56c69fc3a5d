"""What it costs the host to queue a launch for all boxes of which the GPU alone knows how many count, as behind a
detector: by a plan's run and from a CUDA graph. On GPUs alone; a workload's name says how many of the boxes count."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from octopus_study.baselines.fused import Octopus
from octopus_study.baselines.job import CropJob, on_host
from octopus_study.measure import Row
from octopus_study.studies.arena.submit import QUANTITY, SubmitClock
from octopus_study.studies.arena.workloads import VISDRONE, arena_budget, boxes_of, case_of, shared_count
from octopus_study.studies.comparison import Comparison, Part, compare
from octopus_study.studies.context import Context
from octopus_study.studies.crops import ReferenceCrops, check, crop_job

WORKLOAD = "count"
CHECKED = 50  # crops that are compared with the reference


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
        from octopus.backends.cuda.graph import Graph

        super().kernels()  # loads what a capture could not
        self._queue = stream_of(None)
        self._queue.sync()
        stream = current().create_stream()
        run = partial(self.plan.run, self.frame, self._boxes, out=job.out, stream=stream, **self.asked)
        self._graph = Graph(stream, run)

    def kernels(self) -> None:
        self._graph.launch(self._queue)


def parts(context: Context, crops: ReferenceCrops) -> Iterator[Part]:
    """One part for each count."""
    most = shared_count(context)
    for counting in (count for count in context.config.arena.counts if count <= most):
        case = case_of(context, f"{WORKLOAD}-{counting}", most)
        methods = (Counted.name, Replayed.name)
        yield Part(partial(_measure, counting=counting, crops=crops), (Comparison(case, QUANTITY, "host", methods),))


def _measure(context: Context, part: Part, counting: int, crops: ReferenceCrops) -> list[Row]:
    context.require_room(part.case.n)
    boxes = boxes_of(context, VISDRONE, part.case.n)
    job, every = crop_job(context, boxes), max(-(-counting // CHECKED), 1)
    made = [kind(job, counting) for kind in (Counted, Replayed)]
    methods = [method.timed(method.kernels, every) for method in made]
    answers = check(job, methods, crops.of(boxes[:counting:every]))
    host = context.host_clock()
    clock = SubmitClock(host.synchronize, host.throttle)
    return compare(context, part.comparisons[0], methods, answers, clock=clock, budget=arena_budget(context))
