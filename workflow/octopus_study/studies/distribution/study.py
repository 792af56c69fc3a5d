"""Study `distribution`: what the spread of box sizes does to padding and to speed.

Four published generators draw boxes on a 3840 x 2160 frame (their rows say `synthetic`, since no detector found these
boxes), the fifth workload is the real pool on its own frame.
"""

from collections.abc import Callable, Iterator

import cv2
import numpy as np
from numpy.typing import NDArray

from octopus_study.baselines.availability import Unavailable
from octopus_study.baselines.fused import Octopus, OctopusOnGpu
from octopus_study.baselines.job import CropJob
from octopus_study.baselines.published import Published
from octopus_study.data import distributions
from octopus_study.data.workload import sample_boxes
from octopus_study.measure import Case, Method, Row
from octopus_study.measure.bandwidth import fill
from octopus_study.studies.comparison import Comparison, Part
from octopus_study.studies.context import Context
from octopus_study.studies.crops import checked_rows, crop_job, every_checked, padding_rows, reference_of

VISDRONE = "visdrone"
SWITCHED_OFF = "not measured in this run (distribution.times is false)"
SAME_ON_CPU = "on a CPU the two passes are the whole way, see crop_resize_normalize"
KERNELS, WHOLE = "crop_resize_normalize", "end_to_end"
GENERATORS: dict[str, Callable[..., NDArray[np.int32]]] = {
    "uniform": distributions.uniform,
    "long-tail": distributions.long_tail,
    "bimodal": distributions.bimodal,
    "temporal": distributions.long_tail,  # its frame 0
}


def plan(context: Context) -> list[Part]:
    """A part for each workload: kernels, and the whole way."""
    return [_part(context, workload) for workload in context.config.distribution.workloads]


def _part(context: Context, workload: str) -> Part:
    settings = context.config.distribution
    dataset = context.workload.dataset if workload == VISDRONE else "synthetic"
    case = context.case(workload, settings.count, dataset=dataset)
    comparisons = (
        Comparison(case, KERNELS, context.kernel_layer, ("octopus", "published", "write-bound")),
        Comparison(case, WHOLE, "host", ("octopus", "published")),
    )
    return Part(_measure, comparisons)


def _measure(context: Context, part: Part) -> Iterator[Row]:
    frame, boxes = _inputs(context, part.case.workload)
    yield from _sizes(part.case, boxes)
    if part.case.workload == VISDRONE:
        pool = context.workload.pool
        yield from _quantiles(part.case._replace(workload=f"{VISDRONE}-pool", n=len(pool)), pool)
    if not context.config.distribution.times:
        raise Unavailable(SWITCHED_OFF)
    context.require_room(len(boxes))
    yield from _speed(context, part, crop_job(context, boxes, frame))


def _inputs(context: Context, workload: str) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
    """Frame and boxes; the generators' frame is the data set's, enlarged to their size."""
    settings = context.config.distribution
    if workload == VISDRONE:
        return context.workload.frame, sample_boxes(context.workload.pool, settings.count, context.seed)
    frame = cv2.resize(context.workload.frame, settings.frame, interpolation=cv2.INTER_LINEAR)
    return frame, GENERATORS[workload](settings.count, *settings.frame, context.seed)


def _sizes(case: Case, boxes: NDArray[np.int32]) -> list[Row]:
    """What follows from the boxes alone: padding waste and size quantiles."""
    return padding_rows(case, boxes) + _quantiles(case, boxes)


def _quantiles(case: Case, boxes: NDArray[np.int32]) -> list[Row]:
    quantiles = distributions.size_quantiles(boxes)
    return [
        case.row("boxes", "deterministic", quantity, "px", float(value), block=percentile)
        for quantity, column in (("width_quantile", 0), ("height_quantile", 1))
        for percentile, value in enumerate(quantiles[:, column])
    ]


def _speed(context: Context, part: Part, job: CropJob) -> Iterator[Row]:
    """The kernels beside the write bound, and end to end."""
    every = every_checked(len(job.boxes))
    expected = reference_of(context, job.frame).of(job.boxes[::every])
    fused = (OctopusOnGpu if job.on_gpu else Octopus)(job)
    published = Published(job)
    kernels = [fused.timed(fused.kernels), published.timed(published.kernels), Method("write-bound", fill(job.out))]
    whole = [fused.timed(), *([published.timed()] if job.on_gpu else [])]
    missing = {published.name: SAME_ON_CPU}
    for quantity, methods in ((KERNELS, kernels), (WHOLE, whole)):
        yield from checked_rows(context, part.of(quantity), job, methods, expected, missing, every)
