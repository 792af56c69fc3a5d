"""The one loop that times everything: paired blocks, random order, until the ratios are known."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from octopus.errors import InputError
from octopus_study.measure._samples import PER_MS, Question, Samples, discarded_row, method_rows
from octopus_study.measure.blocks import WARM_UP_RUNS, Blocks
from octopus_study.measure.clocks import Clock
from octopus_study.measure.methods import Method
from octopus_study.measure.rows import Case, Row
from octopus_study.measure.statistics import median_interval, ratio_interval
from octopus_study.status import Answer, MethodStatus, as_answer

log = logging.getLogger(__name__)

_CHECK_GROWTH = 1.1  # the stop rule is looked at each time that there are 10 % more blocks


@dataclass(frozen=True)
class Budget:
    """How long one comparison may take, and when it is good enough."""

    min_blocks: int = 20  # blocks that are always wanted. Fewer than 20 make every verdict ambiguous.
    max_blocks: int = 200  # blocks that are tried at most, the discarded ones included
    min_seconds: float = 0.5  # least time measured in all, over methods and blocks
    # Wall time after which a comparison that has its `min_blocks` ends, well known or not
    max_seconds: float = 4.0
    # Wall time after which it ends in any case; with fewer than 20 blocks its verdict is ambiguous
    give_up_seconds: float = 120.0
    target_halfwidth: float = 0.02  # stop when every ratio to the base is known within this fraction
    warm_up_runs: int = WARM_UP_RUNS  # of each method; 0 of those that have just run

    def __post_init__(self) -> None:
        if not 1 <= self.min_blocks <= self.max_blocks:
            raise InputError(
                f"A budget needs 1 <= min_blocks <= max_blocks, found {self.min_blocks}, {self.max_blocks}."
            )
        if min(self.min_seconds, self.max_seconds, self.give_up_seconds, self.target_halfwidth) < 0:
            raise InputError(f"The limits of a budget must not be negative, found {self}.")

    def shared_by(self, processes: int) -> Budget:
        """Return what each of several processes may take, so that together they take no longer than this. An interval
        over all of them is narrower than one process's own by the root of their number."""
        if processes == 1:
            return self
        return replace(
            self,
            min_blocks=math.ceil(self.min_blocks / processes),
            max_blocks=math.ceil(self.max_blocks / processes),
            min_seconds=self.min_seconds / processes,
            max_seconds=self.max_seconds / processes,
            target_halfwidth=self.target_halfwidth * math.sqrt(processes),
        )


def run_paired(
    case: Case,
    quantity: str,
    unit: str,
    methods: Sequence[Method],
    clock: Clock,
    budget: Budget,
    answers: Mapping[str, str] | str,
    seed: int,
    base: str | None = None,
    *,
    wall: Callable[[], float] = time.monotonic,
) -> list[Row]:
    """Time `methods` against each other in paired blocks; one that is entered twice (`again`) gives the noise floor.

    In a block every method runs once, in an order drawn afresh from the seed. A block during which the clock reports
    throttling is discarded whole; its number is left out. A block in which a method raises is dropped, that method
    becomes one ``unavailable`` row, and the others go on. Per method there are its kept blocks or that one row, and one
    row ``discarded_blocks``.

    `answers` are from `check_answers`, or one word for all (``n/a``) where there is nothing to check; a method whose
    answer is unavailable is not run. `base` is the method to which ratios are formed for the stop rule; without it, or
    when it fails, the medians themselves must be known to `target_halfwidth`. `wall` gives seconds, for the limit;
    tests give their own.
    """
    question = Question(case, quantity, unit, clock.layer)
    verdicts = checked_verdicts(question, methods, answers, base)
    samples = Samples(failed=unavailable_answers(verdicts))
    alive = [method for method in methods if method.name not in samples.failed]
    _Comparison(question, alive, clock, seed, samples, budget, base, wall).measure()
    level = logging.WARNING if samples.throttled else logging.INFO
    log.log(level, "%s: %s", question, samples.summary())
    return [
        *method_rows(question, methods, verdicts, budget.min_blocks, samples),
        discarded_row(question, clock, samples),
    ]


def checked_verdicts(
    question: Question, methods: Sequence[Method], answers: Mapping[str, str] | str, base: str | None
) -> dict[str, Answer]:
    """Refuse what would give rows that mean nothing, and return the answer of each method."""
    names = [method.name for method in methods]
    if question.unit not in PER_MS:
        raise InputError(f"{question}: a clock gives times, in {', '.join(PER_MS)}; found the unit {question.unit!r}.")
    if not names or len(set(names)) != len(names):
        raise InputError(f"{question}: methods need different names and at least one; found {names}.")
    if base is not None and base not in names:
        raise InputError(f"{question}: the base {base!r} is none of the methods {names}.")
    verdicts = dict.fromkeys(names, answers) if isinstance(answers, str) else dict(answers)
    unchecked = [name for name in names if name not in verdicts]
    if unchecked:
        raise InputError(f"{question}: check the answers before timing; none was given for {unchecked}.")
    return {name: as_answer(said) for name, said in verdicts.items()}


def unavailable_answers(verdicts: Mapping[str, Answer]) -> dict[str, str]:
    """Return why methods can't run, of those that can't."""
    return {name: said.reason for name, said in verdicts.items() if said.status == MethodStatus.UNAVAILABLE}


@dataclass
class _Comparison(Blocks):
    """One comparison under way."""

    budget: Budget
    base: str | None
    wall: Callable[[], float]

    def measure(self) -> None:
        """Fill the samples block by block until the stop rule or a limit ends it."""
        self.warm_up(self.budget.warm_up_runs)
        started, check_at = self.wall(), self.budget.min_blocks
        while not self._ended(started):
            self.samples.tried += 1
            self.block(self.samples.tried - 1)
            if self.samples.kept >= check_at:
                if self._known():
                    self.samples.ended = f"known within {self.budget.target_halfwidth:.1%}"
                    return
                check_at = math.ceil(self.samples.kept * _CHECK_GROWTH)

    def _ended(self, started: float) -> bool:
        """Tell whether a limit is reached, and note which."""
        if not self.alive:
            self.samples.ended = "no method is left"
        elif self.samples.tried >= self.budget.max_blocks:
            self.samples.ended = f"stopped at the limit of {self.budget.max_blocks} blocks"
        else:
            enough = self.samples.kept >= self.budget.min_blocks
            limit = self.budget.max_seconds if enough else self.budget.give_up_seconds
            if self.wall() - started >= limit:
                self.samples.ended = f"stopped at the limit of {limit:g} s"
        return bool(self.samples.ended)

    def _known(self) -> bool:
        """Apply the stop rule: enough measured time, and intervals that are narrow enough."""
        series = {name: self.samples.series(name) for name in self.samples.times}
        if sum(float(values.sum()) for values in series.values()) / 1e3 < self.budget.min_seconds:
            return False
        others = [name for name in series if name != self.base]
        if self.base in series and others:
            base = series[self.base]
            intervals = [ratio_interval(series[name], base) for name in others]
        else:
            intervals = [median_interval(values) for values in series.values()]
        return all(found.relative_halfwidth <= self.budget.target_halfwidth for found in intervals)
