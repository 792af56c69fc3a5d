"""Goes as soon as no study uses it: `comparison` and `crops` take its place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from octopus_study.measure import Budget, Case, Clock, Method, Row, again, check_answers, run_paired
from octopus_study.peers.job import TOLERANCE_LEVELS, CropJob
from octopus_study.studies.comparison import BASE
from octopus_study.studies.context import Context
from octopus_study.studies.crops import ReferenceCrops

__all__ = ["BASE", "TOLERANCE_LEVELS", "Entry", "ReferenceCrops", "check", "compare"]


class Entry(NamedTuple):
    """One contender: its name, what is timed, whether it gives the job's result, and why that may differ."""

    name: str
    run: Callable[[], object]
    answers: bool = True
    why_different: str = ""


def check(
    job: CropJob, entries: Sequence[Entry], expected: NDArray[np.float32], every: int = 1
) -> dict[str, str]:
    """The answer of each entry that gives the job's result; the memory is poisoned before each.

    With `every`, `expected` holds each `every`-th crop, and the others are not compared.
    """
    answers = {}
    tolerance = TOLERANCE_LEVELS / max(job.std)  # the strictest channel's, for all
    for entry in entries:
        job.poison()
        result = (lambda: job.result()[::every]) if entry.answers else None
        method = Method(entry.name, entry.run, result, tolerance, entry.why_different)
        answers |= check_answers([method], expected if entry.answers else None)
    return answers


def compare(
    context: Context,
    case: Case,
    quantity: str,
    entries: Sequence[Entry],
    clock: Clock,
    answers: dict[str, str] | str = "n/a",
    budget: Budget | None = None,
) -> list[Row]:
    """Time the entries against each other; the base, where it takes part, is entered twice for the noise floor."""
    methods = [Method(entry.name, entry.run) for entry in entries]
    verdicts = answers if isinstance(answers, str) else dict(answers)
    base = BASE if any(entry.name == BASE for entry in entries) else None
    if base:
        methods.append(again(next(method for method in methods if method.name == base)))
        if not isinstance(verdicts, str):
            verdicts[methods[-1].name] = verdicts[base]
    limits = budget or context.budget
    return run_paired(case, quantity, "ms", methods, clock, limits, verdicts, context.seed, base)
