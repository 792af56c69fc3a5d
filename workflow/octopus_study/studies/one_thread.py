"""Octopus beside OpenCV with one CPU thread each."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from octopus_study.baselines.fused import Octopus
from octopus_study.baselines.opencv import ONE_THREAD
from octopus_study.data.workload import sample_boxes
from octopus_study.measure import Case, Row
from octopus_study.studies.comparison import Comparison, Part
from octopus_study.studies.context import Context
from octopus_study.studies.crops import ReferenceCrops, checked_rows, crop_job, every_checked

METHODS = (Octopus, *ONE_THREAD)


def part(case: Case, crops: ReferenceCrops, boxes: NDArray[np.int32] | None = None) -> Part:
    """The comparison on `case.n` boxes, without `boxes` of the pool."""
    comparison = Comparison(case, "end_to_end", "host", tuple(kind.name for kind in METHODS))
    return Part(partial(_measure, crops=crops, boxes=boxes), (comparison,))


def _measure(context: Context, part: Part, crops: ReferenceCrops, boxes: NDArray[np.int32] | None) -> list[Row]:
    context.require_room(part.case.n)
    if boxes is None:
        boxes = sample_boxes(context.workload.pool, part.case.n, context.seed)
    job = crop_job(context, boxes)
    methods = [kind(job).timed() for kind in METHODS]
    with context.threads(1):
        every = every_checked(part.case.n)
        right = crops.of(job.boxes[::every])
        return checked_rows(context, part.comparisons, job, methods, right, every=every)
