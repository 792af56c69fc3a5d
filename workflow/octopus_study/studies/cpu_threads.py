"""Octopus beside OpenCV with the same number of CPU threads."""

from __future__ import annotations

from functools import partial

from octopus.backends import cpu
from octopus_study.data.workload import sample_boxes
from octopus_study.measure import Case, Row
from octopus_study.peers.availability import Unavailable
from octopus_study.peers.fused import Octopus
from octopus_study.peers.opencv import OpenCv, OpenCvInPlace, OpenCvThreads
from octopus_study.studies.comparison import Comparison, Part
from octopus_study.studies.context import Context
from octopus_study.studies.crops import ReferenceCrops, checked_rows, crop_job

METHODS = (Octopus.name, OpenCv.name, OpenCvInPlace.name)


def part(case: Case, threads: int, crops: ReferenceCrops) -> Part:
    """The comparison on `case.n` boxes of the pool, each method on `threads` threads."""
    comparison = Comparison(case, "end_to_end", "host", METHODS)
    return Part(partial(_measure, threads=threads, crops=crops), (comparison,))


def _measure(context: Context, part: Part, threads: int, crops: ReferenceCrops) -> list[Row]:
    pool = cpu.cores()
    context.require_room(part.case.n)
    if threads > pool:
        raise Unavailable(f"this machine has {pool} cores for it")
    job = crop_job(context, sample_boxes(context.workload.pool, part.case.n, context.seed))
    kinds = (OpenCv, OpenCvInPlace)
    opencv = [kind(job) if threads == 1 else OpenCvThreads(job, threads, kind) for kind in kinds]
    methods = [method.timed() for method in (Octopus(job), *opencv)]
    with context.threads(threads):
        return checked_rows(context, part.comparisons, job, methods, crops.of(job.boxes))
