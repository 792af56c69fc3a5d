"""Study `total_cost`: setup, upload, kernel and download of one batch of images, and what reuse changes.

The published comparison leaves the table's setup to a loop on the host. Here the table is also made as a good engineer
would make it, by one vectorised call and by a kernel on the device, so that the answer doesn't hang on a slow baseline.
The whole way is timed end to end, beside its stages. The images lie where they are processed.
"""

from __future__ import annotations

import logging

from octopus_study.data.ragged import flickr_shapes
from octopus_study.measure import Case, Clock, Row
from octopus_study.peers.ragged_cost import CostedMethod, Run, methods_for
from octopus_study.peers.ragged_job import RaggedJob
from octopus_study.studies.contest import Entry, compare
from octopus_study.studies.context import Context
from octopus_study.studies.total_cost.ladder import ladder_rows

log = logging.getLogger(__name__)

STUDY = "total_cost"
KERNELS = {"light": "blur3x3", "heavy": "blur5x5_sobel"}
STAGES = ("setup", "upload", "kernel", "download")
FIRST_KERNEL = "light"
DOWNLOADING = ("octopus", "lookup-published")  # enough to see that the result's way back is the same for all
LADDER_MIX = "flickr-500"


def rows(context: Context) -> list[Row]:
    """All rows of the study; progress goes to the log."""
    found: list[Row] = []
    settings = context.config.total_cost
    on_gpu = context.device == "cuda"
    for mix in settings.mixes if on_gpu else settings.mixes_cpu:
        for kernel in settings.kernels if on_gpu else settings.kernels_cpu:
            log.info("%s, %s kernel", mix, kernel)
            found += _case(context, mix, kernel)
    return found


def _case(context: Context, mix: str, kernel: str) -> list[Row]:
    shapes = flickr_shapes(mix, context.seed)
    case = Case(STUDY, "synthetic", f"{mix}-{kernel}", len(shapes))
    job = RaggedJob(KERNELS[kernel], shapes, "uint8", context.device, context.seed)
    found = [case.row("batch", "deterministic", "elements", "count", job.total)]
    methods = methods_for(job)
    answers, kept = {}, None
    for method in methods:
        answers[method.name], kept = job.check(method.total, kept)
        found.append(case.row(method.name, "deterministic", "map_bytes", "bytes", method.map_bytes))
    del kept
    # Setup and copies are those of the mix, whatever the kernel: measured once.
    for stage in (*(STAGES if kernel == FIRST_KERNEL else ("kernel",)), "total"):
        found += _stage(context, case, stage, methods, answers)
    if context.device == "cuda":
        clock = context.kernel_clocks()[0]
        found += _timed(context, case, "kernel", {m.name: m.kernel for m in methods}, clock, answers)
    if mix == LADDER_MIX and kernel == "light" and context.config.total_cost.ladder:
        found += ladder_rows(context, case, shapes)
    return found


def _stage(
    context: Context, case: Case, stage: str, methods: list[CostedMethod], answers: dict[str, str]
) -> list[Row]:
    runs = {method.name: getattr(method, stage) for method in methods}
    runs = {name: run for name, run in runs.items() if run is not None}
    if stage == "download":
        runs = {name: run for name, run in runs.items() if name in DOWNLOADING}
    if not runs:  # on a CPU nothing is copied
        return []
    verdicts = answers if stage == "total" else dict.fromkeys(answers, "n/a")
    return _timed(context, case, stage, runs, context.host_clock(), verdicts)


def _timed(
    context: Context, case: Case, quantity: str, runs: dict[str, Run], clock: Clock, answers: dict[str, str]
) -> list[Row]:
    entries = [Entry(name, run) for name, run in runs.items()]
    budget = context.budget_within(context.config.total_cost.max_seconds)
    return compare(context, case, quantity, entries, clock, answers, budget)
