"""What the pipelines' methods have in common, and how they are made, checked and timed."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus_study.baselines.availability import make_all
from octopus_study.baselines.method import JobMethod
from octopus_study.measure import Clock, Row, check_answers
from octopus_study.studies.comparison import Comparison, Part, compare
from octopus_study.studies.context import Context

CHECKED = 1 << 22  # values of an answer that are compared, spread over all of it


class Step(JobMethod):
    """One way to do a pipeline's step, from what the pipeline has to a tensor that its next step takes."""

    def result(self, every: int = 1) -> NDArray[np.float32]:
        """What the last run made, on the host, thinned where it is much."""
        rows: NDArray[np.float32] = thinned(self.made).float().cpu().numpy()
        return rows


def thinned(array: Any) -> Any:
    """Every so many of an array's or a tensor's entries, so that they are no more values than are compared."""
    step = -(-math.prod(array.shape) // CHECKED)
    return array[:: step | 1]  # odd, so that of neighbours in a merged patch each has its turn


def compared(
    context: Context,
    comparison: Comparison,
    steps: Mapping[str, Step],
    missing: Mapping[str, str],
    right: Callable[[Any], NDArray[np.float32]],
    clock: Clock | None = None,
) -> list[Row]:
    """Check each step against its right answer, and time them."""
    methods = [step.timed() for step in steps.values()]
    answers: dict[str, str] = {}
    for step, method in zip(steps.values(), methods, strict=True):
        step.poison()
        answers |= check_answers([method], right(step))
    budget = context.budget_within(context.config.pipelines.max_seconds)
    return compare(context, comparison, methods, answers, missing, clock=clock, budget=budget)


def steps_of(
    part: Part, context: Context, makers: Mapping[str, Callable[[], Step]]
) -> tuple[dict[str, Step], dict[str, str]]:
    """The steps that this process measures, and why others aren't available."""
    wanted = {
        name: make
        for name, make in makers.items()
        if any(context.measures(comparison.key, name) for comparison in part.comparisons)
    }
    return make_all(wanted)
