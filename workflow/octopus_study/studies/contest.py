"""One comparison: check every contender's answer on poisoned memory, then time them in paired blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from octopus.kernels import reference
from octopus_study.measure import Budget, Case, Clock, Method, Row, again, check_answers, run_paired
from octopus_study.peers.job import CropJob
from octopus_study.studies.context import Context

# An answer is the same if it is within 1/1000 of the range of the pixel values, before the division by std.
TOLERANCE_LEVELS = 0.255
BASE = "octopus"


class Entry(NamedTuple):
    """One contender: its name, what is timed, whether it gives the job's result, and why that may differ."""

    name: str
    run: Callable[[], object]
    answers: bool = True
    why_different: str = ""


class ReferenceCrops:
    """The right answer for any boxes of one frame, each box computed once by `kernels.reference` in float64."""

    def __init__(
        self,
        frame: NDArray[np.uint8],
        size: tuple[int, int],
        mean: tuple[float, ...],
        std: tuple[float, ...],
    ) -> None:
        self._frame, self._size = frame, size
        self._mean, self._std = np.array(mean), np.array(std)
        self._known: dict[bytes, NDArray[np.float32]] = {}

    def of(self, boxes: NDArray[np.int32]) -> NDArray[np.float32]:
        """Crops of `boxes`, (N, C, height, width) float32."""
        result = np.empty((len(boxes), self._frame.shape[2], *self._size), np.float32)
        for index, box in enumerate(boxes):
            result[index] = self._one(box)
        return result

    def _one(self, box: NDArray[np.int32]) -> NDArray[np.float32]:
        key = box.tobytes()
        if key not in self._known:
            crop = reference.crop_resize(self._frame, box[None], self._size, self._mean, self._std)
            self._known[key] = crop[0].astype(np.float32)
        return self._known[key]


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
