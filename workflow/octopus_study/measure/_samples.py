"""What a comparison has measured so far, and the rows that are made of it."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from octopus_study.measure.clocks import Clock
from octopus_study.measure.methods import Method
from octopus_study.measure.rows import Case, Row, unavailable
from octopus_study.units import sizes

log = logging.getLogger(__name__)

DISCARDED = "discarded_blocks"
PER_MS = {unit: round(1e-3 / size, 9) for unit, size in sizes("time").items()}


class Question(NamedTuple):
    """What is being measured, for rows and for log lines."""

    case: Case
    quantity: str
    unit: str
    layer: str

    def __str__(self) -> str:
        case = self.case
        of = f", {case.input}" if case.input else ""
        return f"{case.study} {self.quantity} ({self.layer}, {case.dataset}/{case.workload}, n={case.n}{of})"


@dataclass
class Samples:
    """Milliseconds per method and block, and what went wrong on the way."""

    times: dict[str, dict[int, float]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    throttled: list[str] = field(default_factory=list)
    tried: int = 0
    ended: str = ""

    @property
    def kept(self) -> int:
        """Number of blocks that count; all surviving methods have the same ones."""
        return len(next(iter(self.times.values()), ()))

    def series(self, name: str) -> np.ndarray:
        """Return the times of a method in the order of its blocks, shape (kept,), ms."""
        return np.array(list(self.times[name].values()))

    def summary(self) -> str:
        """Say how the comparison went, for the log."""
        lost = f", {len(self.throttled)} throttled and discarded" if self.throttled else ""
        return f"{self.kept} blocks{lost}; {self.ended}"

    def drop(self, name: str, why: str) -> None:
        """Take a method out; its earlier times are not used, since it didn't live to the end."""
        self.times.pop(name, None)
        self.failed[name] = why
        log.warning("%s: taken out, %s", name, why)


def method_rows(
    question: Question, methods: Sequence[Method], verdicts: Mapping[str, str], min_blocks: int, samples: Samples
) -> list[Row]:
    """Make the rows of each method: its kept blocks, or one that says why there are none."""
    case, quantity, unit, layer = question
    too_few = _too_few(min_blocks, samples)
    rows: list[Row] = []
    for method in methods:
        why = samples.failed.get(method.name) or too_few
        if why:
            rows.append(unavailable(case, method.name, layer, quantity, unit, why))
            continue
        for block, elapsed in samples.times[method.name].items():
            value, answer = elapsed * PER_MS[unit], verdicts[method.name]
            rows.append(case.row(method.name, layer, quantity, unit, value, block=block, answer=answer))
    return rows


def _too_few(min_blocks: int, samples: Samples) -> str | None:
    """Say why there is no number although the methods ran, or None."""
    if samples.throttled and samples.kept < min_blocks:
        return (
            f"{samples.kept} blocks are left of the {min_blocks} needed: "
            f"{len(samples.throttled)} were discarded, throttled ({samples.throttled[-1]})"
        )
    if not samples.kept:
        return f"no block was completed ({samples.ended})"
    return None


def discarded_row(question: Question, clock: Clock, samples: Samples) -> Row:
    """Count the throttled blocks of this quantity, or say that this machine doesn't tell."""
    case, quantity, _, layer = question
    if not getattr(clock, "watches_throttling", True):
        why = "throttling can't be read on this machine"
        return unavailable(case, quantity, layer, DISCARDED, "count", why)
    return case.row(quantity, layer, DISCARDED, "count", len(samples.throttled))
