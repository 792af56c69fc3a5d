"""Study `stage_timing`: where the time of a batch of crops goes, by stage, method and number of objects.

The workload is the published one: boxes of VisDrone-DET val on its first frame, to 224 x 224 float32 NCHW with mean and
standard deviation. The boxes start on the host, the frame lies where it is processed.
"""

from __future__ import annotations

import logging

import numpy as np
from numpy.typing import NDArray

from octopus_study.data.workload import sample_boxes
from octopus_study.measure import Case, Row, unavailable
from octopus_study.measure.bandwidth import fill
from octopus_study.peers.fused import NLaunchesFused, Octopus, OctopusOnGpu
from octopus_study.peers.job import CropJob, make_job
from octopus_study.peers.published import WHY_DIFFERENT, NLaunches, Published
from octopus_study.studies import machine_limits
from octopus_study.studies.contest import Entry, ReferenceCrops, check, compare
from octopus_study.studies.context import Context

log = logging.getLogger(__name__)
STUDY = "stage_timing"
WORKLOAD = "visdrone"
Crops = NDArray[np.float32]
IN_PLACE = "the CPU reads the boxes where they are"


def rows(context: Context) -> list[Row]:
    """All rows of the study; progress goes to the log."""
    settings = context.config.crop
    expected = ReferenceCrops(context.workload.frame, settings.size, settings.mean, settings.std)
    found = []
    for count in context.counts(context.config.stage_timing):
        log.info("%d objects", count)
        found += _count_rows(context, count, expected)
    if context.device == "cpu":
        found += _one_thread(context, expected)
    found += machine_limits.launch_rows(context)
    found += machine_limits.bandwidth(context)
    found += machine_limits.memory(context)
    found += machine_limits.cold_start(context)
    return found


def one_thread_count(context: Context) -> int:
    """Objects of the single-threaded comparison: 1000 as published, or what the configuration has."""
    return min(max(context.config.stage_timing.counts), 1000)


def _job(context: Context, count: int) -> CropJob:
    settings = context.config.crop
    boxes = sample_boxes(context.workload.pool, count, context.seed)
    return make_job(context.workload.frame, boxes, settings.size, settings.mean, settings.std, context.device)


def _case(context: Context, count: int, workload: str = WORKLOAD) -> Case:
    return Case(STUDY, context.workload.dataset, workload, count)


def _count_rows(context: Context, count: int, expected: ReferenceCrops) -> list[Row]:
    case = _case(context, count)
    missing = context.shortage(count)
    if missing:
        return _missing(context, case, missing)
    job = _job(context, count)
    right = expected.of(job.boxes)
    fused = (OctopusOnGpu if job.on_gpu else Octopus)(job)
    published = Published(job)
    found = _end_to_end(context, case, job, right, fused, published)
    found += _kernels(context, case, job, right, fused, published)
    del right
    found += _stages(context, case, job, fused, published)
    return found


def _missing(context: Context, case: Case, why: str) -> list[Row]:
    """One row for each comparison and method that a batch without room would have had."""
    kernels = [clock.layer for clock in context.kernel_clocks()]
    expected = [
        ("end_to_end", "host", name) for name in ("octopus", "published", "n-launches", "n-launches-fused")
    ]
    for layer in kernels:
        expected += [
            ("crop_resize_normalize", layer, name) for name in ("octopus", "published", "write-bound")
        ]
    expected += [
        (quantity, "host", name)
        for quantity in ("build_metadata", "upload_metadata")
        for name in ("octopus", "published")
    ]
    expected += [(quantity, kernels[0], "published") for quantity in ("crop_resize", "normalize")]
    return [unavailable(case, name, layer, quantity, "ms", why) for quantity, layer, name in expected]


def _end_to_end(
    context: Context, case: Case, job: CropJob, right: Crops, fused: Octopus, published: Published
) -> list[Row]:
    """From boxes on the host to the synchronised result."""
    separate, separate_fused = NLaunches(job), NLaunchesFused(job)
    entries = [
        Entry(fused.name, fused.run),
        Entry(published.name, published.run, why_different=WHY_DIFFERENT),
        Entry(separate.name, separate.run, why_different=WHY_DIFFERENT),
        Entry(separate_fused.name, separate_fused.run),
    ]
    answers = check(job, entries, right)
    return compare(context, case, "end_to_end", entries, context.host_clock(), answers)


def _kernels(
    context: Context, case: Case, job: CropJob, right: Crops, fused: Octopus, published: Published
) -> list[Row]:
    """The work on the device alone, beside the time to write the same output."""
    entries = [
        Entry(fused.name, fused.kernel if job.on_gpu else fused.run),
        Entry(published.name, published.kernels, why_different=WHY_DIFFERENT),
        Entry("write-bound", fill(job.out), answers=False),
    ]
    answers = check(job, entries, right)
    found = []
    for clock in context.kernel_clocks():
        found += compare(context, case, "crop_resize_normalize", entries, clock, answers)
    return found


def _stages(context: Context, case: Case, job: CropJob, fused: Octopus, published: Published) -> list[Row]:
    """Each stage by itself: metadata, its upload, and the published passes."""
    host = context.host_clock()
    built = [Entry(fused.name, fused.build), Entry(published.name, published.build)]
    found = compare(context, case, "build_metadata", built, host)
    if isinstance(fused, OctopusOnGpu):
        uploads = [Entry(fused.name, fused.upload), Entry(published.name, published.upload)]
        found += compare(context, case, "upload_metadata", uploads, host)
    else:
        found += [
            unavailable(case, name, "host", "upload_metadata", "ms", IN_PLACE)
            for name in (fused.name, published.name)
        ]
    clock = context.kernel_clocks()[0]
    for quantity, run in (("crop_resize", published.crop_resize), ("normalize", published.normalize)):
        found += compare(context, case, quantity, [Entry(published.name, run)], clock)
    return found


def _one_thread(context: Context, expected: ReferenceCrops) -> list[Row]:
    """Octopus against OpenCV with one thread each, on the published number of objects."""
    from octopus_study.peers.opencv import OpenCv, OpenCvInPlace

    count = one_thread_count(context)
    case = _case(context, count, f"{WORKLOAD}-1thread")
    missing = context.shortage(count)
    if missing:
        names = ("octopus", "opencv", "opencv-inplace")
        return [unavailable(case, name, "host", "end_to_end", "ms", missing) for name in names]
    job = _job(context, count)
    contenders = [Octopus(job), OpenCv(job), OpenCvInPlace(job)]
    entries = [Entry(contender.name, contender.run) for contender in contenders]
    with context.threads(1):
        answers = check(job, entries, expected.of(job.boxes))
        return compare(context, case, "end_to_end", entries, context.host_clock(), answers)
