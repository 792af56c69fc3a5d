"""How many of the boxes count is known to the GPU alone, as behind a detector: one launch for all that there may be,
and what others do, who wait for the number.

On GPUs alone. The boxes are always as many; a workload's name says how many of them count.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from octopus_study.measure import Method, Row
from octopus_study.peers.fused import Octopus
from octopus_study.peers.job import CropJob, on_host
from octopus_study.studies.arena.submit import ALONE, SubmitClock
from octopus_study.studies.arena.submit import QUANTITY as SUBMIT
from octopus_study.studies.arena.workloads import VISDRONE, arena_budget, boxes_of, case_of, shared_count
from octopus_study.studies.comparison import Comparison, Part, compare
from octopus_study.studies.context import Context
from octopus_study.studies.crops import ReferenceCrops, check, crop_job
from octopus_study.studies.trace import count_waits

QUANTITY, WORKLOAD = "kernel", "count"
CHECKED = 50  # crops that are compared with the reference


class Counted(Octopus):
    """One launch for all boxes, of which the GPU knows how many count."""

    def __init__(self, job: CropJob, counting: int) -> None:
        super().__init__(job)
        from octopus.backends.cuda.memory import upload

        self.counting = counting
        self._count = upload(np.array([counting], np.int32))
        self.asked = {"count": self._count}
        self.prepare()

    def result(self, every: int = 1) -> NDArray[np.float32]:
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


class Known(Counted):
    """As many boxes as count, which the host knows: what the launch for all is measured by."""

    name = "octopus-known"

    def kernels(self) -> None:
        self._launch(self.counting)

    def _launch(self, count: int) -> None:
        self.plan.run(self.frame, self._boxes.head(count), out=self.job.out.head(count))


class ReadBack(Known):
    """The count copied to the host, which waits for it, then as many boxes: what has to be done without `count`."""

    name = "octopus-read-back"

    def kernels(self) -> None:
        self._launch(int(self._count.copy_to_host()[0]))


DEVICE, HOST, WHOLE = (Counted, Replayed, Known), (Counted, Replayed), (Counted, Replayed, ReadBack)
WAITS = "host_waits"


def parts(context: Context, crops: ReferenceCrops) -> Iterator[Part]:
    """One part for each count, none among them: what items beyond it cost."""
    most = shared_count(context)
    for counting in (0, *(count for count in context.config.arena.counts if count <= most)):
        case = case_of(context, f"{WORKLOAD}-{counting}", most)
        comparisons = (
            Comparison(case, quantity, layer, tuple(kind.name for kind in kinds))
            for quantity, layer, kinds in (
                (QUANTITY, "device", DEVICE), (SUBMIT, "host", HOST), (ALONE, "host", WHOLE),
            )
        )  # fmt: skip
        waits = Comparison(case, WAITS, "deterministic", tuple(kind.name for kind in WHOLE), "count")
        yield Part(partial(_measure, counting=counting, crops=crops), (*comparisons, waits))


def _measure(context: Context, part: Part, counting: int, crops: ReferenceCrops) -> Iterator[Row]:
    context.require_room(part.case.n)
    boxes = boxes_of(context, VISDRONE, part.case.n)
    job, every = crop_job(context, boxes), max(-(-counting // CHECKED), 1)
    made = {kind.name: kind(job, counting) for kind in (*DEVICE, ReadBack)}
    methods = {name: method.timed(method.kernels, every) for name, method in made.items()}
    answers = check(job, list(methods.values()), crops.of(boxes[:counting:every]))
    host, budget = context.host_clock(), arena_budget(context)
    clocks = context.clock("device"), SubmitClock(host.synchronize, host.throttle), host
    *timings, waits = part.comparisons
    for comparison, clock in zip(timings, clocks, strict=True):
        timed: list[Method] = [methods[name] for name in comparison.methods]
        judged = {name: answers[name] for name in comparison.methods}
        yield from compare(context, comparison, timed, judged, clock=clock, budget=budget)
    for name in waits.methods if context.measures(waits.key) else ():
        yield part.case.row(name, waits.layer, WAITS, waits.unit, count_waits(made[name].kernels))
