"""Each version of the kernel from the published passes to it, on GPUs alone, by events with a cold L2."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from octopus_study.baselines.fused import OctopusOnGpu
from octopus_study.baselines.published import Published
from octopus_study.measure import Method, Row
from octopus_study.measure.bandwidth import fill
from octopus_study.studies.arena.workloads import VISDRONE, arena_budget, boxes_of, case_of, shared_count, uniform_boxes
from octopus_study.studies.comparison import Comparison, Part, compare
from octopus_study.studies.context import Context
from octopus_study.studies.crops import ReferenceCrops, check, crop_job

QUANTITY = "crop_resize_normalize"
LARGE_SIDE = 320  # boxes that are shrunk: every source row is read, and two results share none
CHECKED = 50  # crops that are compared with the reference
# Each version's means, as `KernelVersion` takes them.
VERSIONS: dict[str, tuple[int, bool, bool] | None] = {
    "one-pass": None,
    "streamed": (1, False, False),
    "prefetched": (1, False, True),
    "paired": (2, False, True),
}


def parts(context: Context, crops: ReferenceCrops) -> Iterator[Part]:
    """The versions on boxes of the data set and on large ones."""
    methods, count = ("two-passes", *VERSIONS, "octopus", "write-bound"), shared_count(context)
    for workload in ("ladder", "ladder-large"):
        comparison = Comparison(case_of(context, workload, count), QUANTITY, "device", methods)
        yield Part(partial(_versions, crops=crops), (comparison,))


def _versions(context: Context, part: Part, crops: ReferenceCrops) -> list[Row]:
    from octopus_study.studies.arena.versions import KernelVersion

    context.require_room(part.case.n)
    boxes = boxes_of(context, VISDRONE, part.case.n)
    if part.case.workload == "ladder-large":
        height, width, _ = context.workload.frame.shape
        side = min(LARGE_SIDE, width, height)
        boxes = uniform_boxes(part.case.n, width, height, side, context.seed)
    job, every = crop_job(context, boxes), -(-len(boxes) // CHECKED)
    published = Published(job)
    versions = [KernelVersion(job, name, means) for name, means in VERSIONS.items()]
    methods = [
        job.method("two-passes", published.kernels, published.why_different),
        *(version.timed(version.kernels) for version in (*versions, OctopusOnGpu(job))),
        Method("write-bound", fill(job.out)),
    ]
    answers = check(job, methods, crops.of(boxes[::every]), every)
    return compare(context, part.comparisons[0], methods, answers, budget=arena_budget(context))
