"""Octopus beside OpenCV with the same number of CPU threads."""

from __future__ import annotations

from octopus.backends import cpu
from octopus_study.measure import Case, Row, unavailable
from octopus_study.peers.fused import Octopus
from octopus_study.peers.job import CropJob, make_job
from octopus_study.peers.opencv import OpenCv, OpenCvInPlace
from octopus_study.studies.arena.opencv_threads import OpenCvThreads
from octopus_study.studies.arena.workloads import VISDRONE, boxes_of, shared_count
from octopus_study.studies.contest import Entry, ReferenceCrops, check, compare
from octopus_study.studies.context import Context

THREADS = {1: f"{VISDRONE}-1thread", 2: f"{VISDRONE}-2threads"}
NAMES = ("octopus", "opencv", "opencv-inplace")


def rows(context: Context, expected: ReferenceCrops) -> list[Row]:
    """One comparison per number of threads; all of them on a job that is made once."""
    count = shared_count(context)
    missing = context.shortage(count)
    if missing:
        return [row for threads in THREADS for row in _missing(context, threads, count, missing)]
    crop = context.config.crop
    boxes = boxes_of(context, VISDRONE, count)
    job = make_job(context.workload.frame, boxes, crop.size, crop.mean, crop.std, context.device)
    return [row for threads in THREADS for row in _compared(context, threads, job, expected)]


def _case(context: Context, threads: int, count: int) -> Case:
    return Case(context.study, context.workload.dataset, THREADS[threads], count)


def _missing(context: Context, threads: int, count: int, why: str) -> list[Row]:
    case = _case(context, threads, count)
    return [unavailable(case, name, "host", "end_to_end", "ms", why) for name in NAMES]


def _compared(context: Context, threads: int, job: CropJob, expected: ReferenceCrops) -> list[Row]:
    pool = cpu.pool_size()
    if threads > pool:
        return _missing(context, threads, job.count, f"Numba's pool has {pool} threads here")
    case = _case(context, threads, job.count)
    rivals = [OpenCv(job), OpenCvInPlace(job)]
    if threads > 1:
        rivals = [OpenCvThreads(job, threads, type(rival)) for rival in rivals]
    entries = [Entry(contender.name, contender.run) for contender in (Octopus(job), *rivals)]
    with context.threads(threads):
        answers = check(job, entries, expected.of(job.boxes))
        return compare(context, case, "end_to_end", entries, context.host_clock(), answers)
