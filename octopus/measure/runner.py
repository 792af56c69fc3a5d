"""The one loop that times everything: paired blocks, random order, until the ratios are known."""

from __future__ import annotations

import gc
import logging
import math
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from octopus.errors import InputError, MeasureError
from octopus.measure.clocks import Clock
from octopus.measure.methods import Method
from octopus.measure.rows import Case, Row, describe, unavailable
from octopus.measure.statistics import median_interval, ratio_interval

log = logging.getLogger(__name__)

DISCARDED = "discarded_blocks"
_PER_MS = {"ns": 1e6, "us": 1e3, "ms": 1.0, "s": 1e-3}
_WARM_UP_RUNS = 2
_CHECK_GROWTH = 1.1  # the stop rule is looked at each time that there are 10 % more blocks
_STOP_RESAMPLES = 400


@dataclass(frozen=True)
class Budget:
    """How long one comparison may take, and when it is good enough.

    Attributes
    ----------
    min_blocks : int
        Blocks that are always wanted. Fewer than 20 make every verdict ambiguous.
    max_blocks : int
        Blocks that are tried at most, the discarded ones included.
    min_seconds : float
        Least time measured in all, over methods and blocks.
    max_seconds : float
        Wall time limit of the comparison after warm-up. It wins over `min_blocks`.
    target_halfwidth : float
        Stop when every ratio to the base is known within this fraction.
    equal_within : float
        Largest difference that is called equal; kept here since it belongs to the same decision.
    """

    min_blocks: int = 20
    max_blocks: int = 200
    min_seconds: float = 0.5
    max_seconds: float = 20.0
    target_halfwidth: float = 0.02
    equal_within: float = 0.02

    def __post_init__(self) -> None:
        if not 1 <= self.min_blocks <= self.max_blocks:
            raise InputError(
                f"A budget needs 1 <= min_blocks <= max_blocks, found {self.min_blocks}, {self.max_blocks}."
            )
        if min(self.min_seconds, self.max_seconds, self.target_halfwidth, self.equal_within) < 0:
            raise InputError(f"The limits of a budget must not be negative, found {self}.")


class Question(NamedTuple):
    """What is being measured, for rows and for log lines."""

    case: Case
    quantity: str
    unit: str
    layer: str

    def __str__(self) -> str:
        study, dataset, workload, n = self.case
        return f"{study} {self.quantity} ({self.layer}, {dataset}/{workload}, n={n})"


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

    def drop(self, name: str, why: str) -> None:
        """Take a method out; its earlier times are not used, since it didn't live to the end."""
        self.times.pop(name, None)
        self.failed[name] = why
        log.warning("%s: taken out, %s", name, why)


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
    """Time `methods` against each other in paired blocks.

    In a block every method runs once, in an order drawn afresh from the seed. A block during which the clock
    reports throttling is discarded whole; its number is left out. A block in which a method raises is
    dropped, that method becomes one ``unavailable`` row, and the others go on.

    Parameters
    ----------
    case, quantity, unit
        Go into the rows. `unit` is a unit of time: ns, us, ms or s.
    methods : sequence of Method
        Contenders; enter one twice (:func:`octopus.measure.again`) for the noise floor.
    clock : Clock
        Gives the times and the layer.
    budget : Budget
        When to stop.
    answers : mapping or str
        From :func:`octopus.measure.check_answers`; one word for all (``n/a``) where there is nothing to
        check. A method whose answer is unavailable is not run.
    seed : int
        Of the order within the blocks.
    base : str, optional
        The method to which ratios are formed for the stop rule. Without it, or when it fails, the medians
        themselves must be known to `target_halfwidth`.
    wall : callable
        Seconds, for the limit; tests give their own.

    Returns
    -------
    list of Row
        Per method its kept blocks or one ``unavailable`` row, and one row ``discarded_blocks``.

    Raises
    ------
    InputError
        An unknown unit or base, methods with one name, or a method without an answer.
    """
    question = Question(case, quantity, unit, clock.layer)
    verdicts = _checked(question, methods, answers, base)
    samples = Samples(failed=_unavailable_answers(verdicts))
    alive = [method for method in methods if method.name not in samples.failed]
    _warm_up(alive, clock, samples)
    _collect(question, alive, clock, budget, seed, base, samples, wall)
    log.info(
        "%s: %d blocks kept, %d discarded; %s", question, samples.kept, len(samples.throttled), samples.ended
    )
    return [*_rows(question, methods, verdicts, budget, samples), _discarded_row(question, clock, samples)]


def _checked(
    question: Question, methods: Sequence[Method], answers: Mapping[str, str] | str, base: str | None
) -> dict[str, str]:
    """Refuse what would give rows that mean nothing, and return the answer of each method."""
    names = [method.name for method in methods]
    if question.unit not in _PER_MS:
        raise InputError(
            f"{question}: a clock gives times, in {', '.join(_PER_MS)}; found the unit {question.unit!r}."
        )
    if not names or len(set(names)) != len(names):
        raise InputError(f"{question}: methods need different names and at least one; found {names}.")
    if base is not None and base not in names:
        raise InputError(f"{question}: the base {base!r} is none of the methods {names}.")
    verdicts = dict.fromkeys(names, answers) if isinstance(answers, str) else dict(answers)
    unchecked = [name for name in names if name not in verdicts]
    if unchecked:
        raise InputError(f"{question}: check the answers before timing; none was given for {unchecked}.")
    return verdicts


def _unavailable_answers(verdicts: Mapping[str, str]) -> dict[str, str]:
    prefix = "unavailable: "
    return {name: said.removeprefix(prefix) for name, said in verdicts.items() if said.startswith(prefix)}


def _warm_up(alive: list[Method], clock: Clock, samples: Samples) -> None:
    """Run each method until compilation, first touches and clocks are out of the way."""
    clock.settle()
    for method in list(alive):
        samples.times[method.name] = {}
        for _ in range(_WARM_UP_RUNS):
            if not _timed(method, clock, samples)[1]:
                alive.remove(method)
                break
    # What was throttled during the warm-up is no block's fault.
    clock.throttled()


def _timed(method: Method, clock: Clock, samples: Samples) -> tuple[float, bool]:
    """Return the time of one run and whether it succeeded; a failing method is dropped from the samples."""
    try:
        elapsed = clock.time(method.run)
        if not (math.isfinite(elapsed) and elapsed > 0):
            raise MeasureError(
                f"the clock gave {elapsed} ms, which is below its resolution or no time at all"
            )
    except Exception as error:  # any failure of a contender is a row, never the end of the study
        samples.drop(method.name, describe(error))
        return math.nan, False
    return elapsed, True


def _collect(
    question: Question,
    alive: list[Method],
    clock: Clock,
    budget: Budget,
    seed: int,
    base: str | None,
    samples: Samples,
    wall: Callable[[], float],
) -> None:
    """Fill the samples block by block until the stop rule or a limit ends it."""
    started, check_at = wall(), budget.min_blocks
    while alive:
        if samples.tried >= budget.max_blocks:
            samples.ended = f"stopped at the limit of {budget.max_blocks} blocks"
            return
        if wall() - started >= budget.max_seconds:
            samples.ended = f"stopped at the limit of {budget.max_seconds:g} s"
            return
        _block(question, alive, clock, seed, samples)
        if samples.kept >= check_at:
            if _enough(budget, base, samples):
                samples.ended = f"known within {budget.target_halfwidth:.1%}"
                return
            check_at = math.ceil(samples.kept * _CHECK_GROWTH)
    samples.ended = "no method is left"


def _block(question: Question, alive: list[Method], clock: Clock, seed: int, samples: Samples) -> None:
    """Run every living method once, and keep the block only if all of it can be trusted."""
    number = samples.tried
    samples.tried += 1
    clock.settle()
    times: dict[str, float] = {}
    with _no_collection():
        for index in block_order(question, seed, number, len(alive)):
            method = alive[index]
            times[method.name], succeeded = _timed(method, clock, samples)
            if not succeeded:
                alive.remove(method)
                return
    reason = clock.throttled()
    if reason:
        samples.throttled.append(reason)
        log.warning("%s: block %d discarded, throttled (%s)", question, number, reason)
        return
    for name, elapsed in times.items():
        samples.times[name][number] = elapsed


def block_order(question: Question, seed: int, number: int, count: int) -> np.ndarray:
    """Return the order, shape (count,), of the methods in block `number`; the same for the same arguments."""
    group = zlib.crc32(repr(tuple(question)).encode())
    return np.random.default_rng([seed, group, number]).permutation(count)


class _no_collection:  # noqa: N801  (a context manager, used like a function)
    """Keep Python's cyclic garbage collector from running within a block."""

    def __enter__(self) -> None:
        self.enabled = gc.isenabled()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        if self.enabled:
            gc.enable()


def _enough(budget: Budget, base: str | None, samples: Samples) -> bool:
    """Apply the stop rule: enough blocks, enough measured time, and intervals that are narrow enough."""
    if samples.kept < budget.min_blocks:
        return False
    series = {name: samples.series(name) for name in samples.times}
    if sum(float(values.sum()) for values in series.values()) / 1e3 < budget.min_seconds:
        return False
    others = [name for name in series if name != base]
    if base in series and others:
        intervals = [ratio_interval(series[name], series[base], resamples=_STOP_RESAMPLES) for name in others]
    else:
        intervals = [median_interval(values, resamples=_STOP_RESAMPLES) for values in series.values()]
    return all(interval.relative_halfwidth <= budget.target_halfwidth for interval in intervals)


def _rows(
    question: Question,
    methods: Sequence[Method],
    verdicts: Mapping[str, str],
    budget: Budget,
    samples: Samples,
) -> list[Row]:
    case, quantity, unit, layer = question
    too_few = _too_few(budget, samples)
    rows: list[Row] = []
    for method in methods:
        why = samples.failed.get(method.name) or too_few
        if why:
            rows.append(unavailable(case, method.name, layer, quantity, unit, why))
            continue
        for block, elapsed in samples.times[method.name].items():
            value, answer = elapsed * _PER_MS[unit], verdicts[method.name]
            rows.append(case.row(method.name, layer, quantity, unit, value, block=block, answer=answer))
    return rows


def _too_few(budget: Budget, samples: Samples) -> str | None:
    """Say why there is no number although the methods ran, or None."""
    if samples.throttled and samples.kept < budget.min_blocks:
        return (
            f"{samples.kept} blocks are left of the {budget.min_blocks} needed: "
            f"{len(samples.throttled)} were discarded, throttled ({samples.throttled[-1]})"
        )
    if not samples.kept:
        return f"no block was completed ({samples.ended})"
    return None


def _discarded_row(question: Question, clock: Clock, samples: Samples) -> Row:
    """Count the throttled blocks of this quantity, or say that this machine doesn't tell."""
    case, quantity, _, layer = question
    if not getattr(clock, "watches_throttling", True):
        why = "throttling can't be read on this machine"
        return unavailable(case, quantity, layer, DISCARDED, "count", why)
    return case.row(quantity, layer, DISCARDED, "count", len(samples.throttled))
