"""The arena's other kinds of results on a CPU, on one thread: bytes in both layouts, and antialiased.

Each beside what users would pick instead: whole levels for a model that normalises itself, by OpenCV; antialiased ones,
as a training set was made, by Pillow.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from octopus_study.baselines.availability import make_all
from octopus_study.baselines.fused import Octopus
from octopus_study.baselines.job import TOLERANCE_LEVELS, CropJob, make_job, plain
from octopus_study.baselines.method import CropMethod
from octopus_study.baselines.opencv import OpenCvDirect, OpenCvSplit
from octopus_study.baselines.pillow import Pillow, PillowSimd
from octopus_study.measure import Row
from octopus_study.reference import crops as reference
from octopus_study.studies.comparison import BASE, Comparison, Part
from octopus_study.studies.context import Context
from octopus_study.studies.crops import checked_rows

MOST = 100  # boxes: a batch in bytes takes milliseconds, and a core run has no more
# Levels, from a reference that is not rounded. Octopus rounds once, behind everything.
OWN_TOLERANCE = 0.5 + TOLERANCE_LEVELS
# OpenCV has weights of 11 bits, Pillow rounds between its passes: a level that lies near the middle of two may become
# either, so that they may be one level from what the reference is rounded to.
TOLERANCE = 0.5 + 1


class Kind(NamedTuple):
    """A kind of results."""

    options: Mapping[str, Any]  # of Octopus, beside whole levels
    baselines: tuple[type[CropMethod], ...]


_NHWC = {"layout": "NHWC"}
KINDS = {
    "uint8": Kind({"layout": "NCHW"}, (OpenCvSplit,)),
    "uint8-nhwc": Kind(_NHWC, (OpenCvDirect,)),
    "antialias": Kind(_NHWC | {"antialias": True}, (Pillow, PillowSimd)),
}


def parts(context: Context, workload: str, boxes: NDArray[np.int32]) -> Iterator[Part]:
    """Every kind on the first boxes of a workload."""
    boxes = boxes[:MOST]
    for name, kind in KINDS.items():
        case = context.case(f"{workload}-{name}-1thread", len(boxes))
        methods = (BASE, *(baseline.name for baseline in kind.baselines))
        comparison = Comparison(case, "end_to_end", "host", methods)
        yield Part(partial(_measure, kind=kind, boxes=boxes), (comparison,))


def _measure(context: Context, part: Part, kind: Kind, boxes: NDArray[np.int32]) -> list[Row]:
    context.require_room(len(boxes))
    job = byte_job(context, boxes, kind.options["layout"])
    affine = np.array(job.mean), np.array(job.std)
    right = reference.crop_resize(job.frame, boxes, job.size, *affine, **kind.options).astype(np.float32)
    own = {BASE: partial(Octopus, job, dtype="uint8", **kind.options)}
    with context.threads(1):
        made, missing = make_all(own | {each.name: partial(each, job) for each in kind.baselines})
        methods = [
            replace(method.timed(), tolerance=OWN_TOLERANCE if name == BASE else TOLERANCE)
            for name, method in made.items()
        ]
        return checked_rows(context, part.comparisons, job, methods, right, missing)


def byte_job(context: Context, boxes: NDArray[np.int32], layout: str) -> CropJob:
    """The job of a batch in whole levels, which are not normalised."""
    frame, size = context.workload.frame, context.config.crop.size
    return make_job(frame, boxes, size, *plain(frame), "cpu", np.uint8, layout)
