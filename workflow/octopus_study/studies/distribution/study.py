"""Study `distribution`: what the spread of box sizes does to padding and to speed.

Four published generators draw boxes on a 3840 x 2160 frame (their rows say `synthetic`, since no detector found these
boxes), the fifth workload is the real pool on its own frame.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import cv2
import numpy as np
from numpy.typing import NDArray

from octopus_study.data import distributions
from octopus_study.data.workload import sample_boxes
from octopus_study.measure import Case, Row, unavailable
from octopus_study.measure.bandwidth import fill
from octopus_study.peers.fused import Octopus, OctopusOnGpu
from octopus_study.peers.job import CropJob, make_job
from octopus_study.peers.published import WHY_DIFFERENT, Published
from octopus_study.studies.contest import Entry, ReferenceCrops, check, compare
from octopus_study.studies.context import Context

log = logging.getLogger(__name__)
STUDY = "distribution"
VISDRONE = "visdrone"
FRAME_CHECK = 10  # of each frame of the temporal workload every 10th crop is compared with the reference
SAME_ON_CPU = "on a CPU the two passes are the whole way, see crop_resize_normalize"
Crops = NDArray[np.float32]
GENERATORS: dict[str, Callable[..., NDArray[np.int32]]] = {
    "uniform": distributions.uniform,
    "long-tail": distributions.long_tail,
    "bimodal": distributions.bimodal,
    "temporal": distributions.long_tail,  # its frame 0
}


def rows(context: Context) -> list[Row]:
    """All rows of the study; progress goes to the log."""
    found = []
    for workload in context.config.distribution.workloads:
        log.info("workload %s", workload)
        frame, boxes = _inputs(context, workload)
        case = Case(STUDY, _dataset(context, workload), workload, len(boxes))
        found += _sizes(case, boxes)
        missing = context.shortage(len(boxes))
        if missing:
            found += _missing(context, case, missing)
            continue
        found += _speed(context, case, _job(context, frame, boxes))
        if workload == "temporal":
            found += _frame_times(context, case, frame)
    return found


def _dataset(context: Context, workload: str) -> str:
    return context.workload.dataset if workload == VISDRONE else "synthetic"


def _inputs(context: Context, workload: str) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
    """Frame and boxes; the generators' frame is the data set's, enlarged to their size."""
    settings = context.config.distribution
    if workload == VISDRONE:
        return context.workload.frame, sample_boxes(context.workload.pool, settings.count, context.seed)
    frame = cv2.resize(context.workload.frame, settings.frame, interpolation=cv2.INTER_LINEAR)
    return frame, GENERATORS[workload](settings.count, *settings.frame, context.seed)


def _job(context: Context, frame: NDArray[np.uint8], boxes: NDArray[np.int32]) -> CropJob:
    crop = context.config.crop
    return make_job(frame, boxes, crop.size, crop.mean, crop.std, context.device)


def _sizes(case: Case, boxes: NDArray[np.int32]) -> list[Row]:
    """What follows from the boxes alone: padding waste and size quantiles."""
    waste = distributions.padding_waste(boxes)
    exact = [
        case.row("padding", "deterministic", "actual_bytes", "bytes", waste.actual_bytes),
        case.row("padding", "deterministic", "padded_bytes", "bytes", waste.padded_bytes),
        case.row("padding", "deterministic", "padding_waste", "fraction", waste.fraction),
    ]
    quantiles = distributions.size_quantiles(boxes)
    return exact + [
        case.row("boxes", "deterministic", quantity, "px", float(value), block=percentile)
        for quantity, column in (("width_quantile", 0), ("height_quantile", 1))
        for percentile, value in enumerate(quantiles[:, column])
    ]


def _speed(context: Context, case: Case, job: CropJob) -> list[Row]:
    """The kernels beside the write bound, and end to end."""
    crop = context.config.crop
    expected = ReferenceCrops(job.frame, crop.size, crop.mean, crop.std).of(job.boxes)
    fused = (OctopusOnGpu if job.on_gpu else Octopus)(job)
    published = Published(job)
    kernels = [
        Entry(fused.name, fused.kernel if job.on_gpu else fused.run),
        Entry(published.name, published.kernels, why_different=WHY_DIFFERENT),
        Entry("write-bound", fill(job.out), answers=False),
    ]
    answers = check(job, kernels, expected)
    clock = context.kernel_clocks()[0]
    found = compare(context, case, "crop_resize_normalize", kernels, clock, answers)
    return found + _end_to_end(context, case, job, expected, fused, published)


def _missing(context: Context, case: Case, why: str) -> list[Row]:
    """One row for each comparison and method that a workload without room would have had."""
    kernel = context.kernel_clocks()[0].layer
    expected = [("crop_resize_normalize", kernel, name) for name in ("octopus", "published", "write-bound")]
    expected += [("end_to_end", "host", name) for name in ("octopus", "published")]
    if case.workload == "temporal":
        frames = range(context.config.distribution.frames)
        expected += [("frame_time", "host", f"octopus/frame-{index}") for index in frames]
    return [unavailable(case, name, layer, quantity, "ms", why) for quantity, layer, name in expected]


def _end_to_end(
    context: Context, case: Case, job: CropJob, expected: Crops, fused: Octopus, published: Published
) -> list[Row]:
    whole = [Entry(fused.name, fused.run)]
    missing = []
    if job.on_gpu:
        whole.append(Entry(published.name, published.run, why_different=WHY_DIFFERENT))
    else:
        missing.append(unavailable(case, published.name, "host", "end_to_end", "ms", SAME_ON_CPU))
    answers = check(job, whole, expected)
    return missing + compare(context, case, "end_to_end", whole, context.host_clock(), answers)


def _frame_times(context: Context, case: Case, frame: NDArray[np.uint8]) -> list[Row]:
    """The same plan over successive frames whose boxes jitter: does the time jitter with them?"""
    settings = context.config.distribution
    sequence = distributions.temporal(settings.count, *settings.frame, settings.frames, context.seed)
    first = _job(context, frame, sequence[0])
    fused = Octopus(first)
    entries = [
        Entry(f"octopus/frame-{index}", _on_boxes(fused, boxes)) for index, boxes in enumerate(sequence)
    ]
    answers = {}
    crop = context.config.crop
    for entry, boxes in zip(entries, sequence, strict=True):
        expected = ReferenceCrops(frame, crop.size, crop.mean, crop.std).of(boxes[::FRAME_CHECK])
        answers |= check(first, [entry], expected, FRAME_CHECK)
    return compare(context, case, "frame_time", entries, context.host_clock(), answers)


def _on_boxes(fused: Octopus, boxes: NDArray[np.int32]) -> Callable[[], object]:
    job = fused.job
    return lambda: fused.plan.run(job.working_frame, boxes, out=job.out)
