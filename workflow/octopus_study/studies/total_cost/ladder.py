"""The ladder of unfair baselines, shown as what it is: against these anything looks fast."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from octopus_study.measure import Case, Row
from octopus_study.peers.ragged_job import RaggedJob
from octopus_study.studies.contest import BASE, Entry, compare
from octopus_study.studies.context import Context
from octopus_study.studies.total_cost.ladder_methods import baselines

CPU_IMAGES = 100
SECONDS = 1.0  # once there is the least number of blocks
GIVE_UP_SECONDS = 60.0  # without it; one thread per image takes seconds per run


def ladder_rows(context: Context, case: Case, shapes: NDArray[np.int64]) -> list[Row]:
    """Kernel times of one thread per image and of a linear search per pixel, beside Octopus.

    A CPU does the first images alone: its linear searches would take minutes.
    """
    shapes = shapes if context.device == "cuda" else shapes[:CPU_IMAGES]
    job = RaggedJob("blur3x3", shapes, "uint8", context.device, context.seed)
    entries = [Entry(BASE, job.kernel("block_search"))]
    entries += [Entry(name, run) for name, run in baselines(job).items()]
    answers, kept = {}, None
    for entry in entries:
        answers[entry.name], kept = job.check(entry.run, kept)
    case = case._replace(workload=f"{case.workload}-ladder", n=len(shapes))
    budget = replace(context.budget_within(SECONDS), give_up_seconds=GIVE_UP_SECONDS)
    found = compare(context, case, "kernel", entries, context.kernel_clocks()[0], answers, budget)
    return [*found, case.row("batch", "deterministic", "elements", "count", job.total)]
