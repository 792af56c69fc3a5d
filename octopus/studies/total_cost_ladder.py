"""The ladder of unfair baselines, shown as what it is: against these anything looks fast."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from octopus.measure import Budget, Case, Method, Row, again, run_paired
from octopus.peers.mapping import Arena
from octopus.peers.mapping_ladder import baselines
from octopus.studies.context import Context

CPU_IMAGES = 100
SECONDS = 60  # for the least number of blocks; one thread per image takes seconds per run


def ladder_rows(context: Context, case: Case, shapes: NDArray[np.int64]) -> list[Row]:
    """Kernel times of one thread per image and of a linear search per pixel, beside Octopus.

    A CPU does the first images alone: its linear searches would take minutes.
    """
    shapes = shapes if context.device == "cuda" else shapes[:CPU_IMAGES]
    arena = Arena("blur3x3", shapes, "uint8", context.device, context.seed)
    octopus = arena.kernel("block_search")
    answers, kept = {}, None
    answers["octopus"], kept = arena.check(octopus, kept)
    methods = [Method("octopus", octopus)]
    for name, run in baselines(arena).items():
        answers[name], kept = arena.check(run, kept)
        methods.append(Method(name, run))
    methods.append(again(methods[0]))
    answers[methods[-1].name] = answers["octopus"]
    limits = context.config.measure.model_dump() | {"max_seconds": 1.0, "give_up_seconds": SECONDS}
    case = case._replace(workload=f"{case.workload}-ladder", n=len(shapes))
    clock = context.kernel_clocks()[0]
    found = run_paired(
        case, "kernel", "ms", methods, clock, Budget(**limits), answers, context.seed, "octopus"
    )
    return [*found, case.row("batch", "deterministic", "elements", "count", arena.total)]
