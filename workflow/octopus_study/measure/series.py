"""The loop for work that comes in steps, such as the frames of a video: every step is a block.

Where :func:`octopus_study.measure.run_paired` repeats one piece of work until its time is known, a series goes
once through steps that all differ, and how the times are spread over them is the result.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from octopus.errors import InputError
from octopus_study.measure._samples import Question, Samples, discarded_row, method_rows
from octopus_study.measure.blocks import Blocks
from octopus_study.measure.clocks import Clock, HostClock
from octopus_study.measure.methods import Method
from octopus_study.measure.rows import Case, Row
from octopus_study.measure.runner import Budget, checked_verdicts, unavailable_answers

log = logging.getLogger(__name__)

TRIES = 3  # times that a step is measured at most, when it was throttled
_SPIN_NS = 2_000_000  # a sleep may end this much too late


def run_series(
    case: Case,
    quantity: str,
    unit: str,
    methods: Sequence[Method],
    steps: int,
    turn: Callable[[int], object],
    clock: Clock,
    budget: Budget,
    answers: Mapping[str, str] | str,
    seed: int,
    *,
    together: bool = True,
    wall: Callable[[], float] = time.monotonic,
) -> list[Row]:
    """Time `methods` on every step of a series; arguments and rows as of :func:`octopus_study.measure.run_paired`.

    A step during which the clock reports throttling is discarded, counted, and measured again after the others, up to
    `TRIES` times in all. A method that raises becomes one ``unavailable`` row, and the others go on. A row's `block` is
    the number of the step; with fewer than the budget's `min_blocks` left there is no number, and after
    `give_up_seconds` a series ends. `turn` gets the number of a step before the methods run on it; not timed. All
    methods do a step `together`, in an order drawn from the seed, before the next comes; or each goes through the whole
    series by itself.
    """
    question = Question(case, quantity, unit, clock.layer)
    verdicts = checked_verdicts(question, methods, answers, None)
    if steps < 1:
        raise InputError(f"{question}: a series needs at least one step, found {steps}.")
    rows, all_throttled = [], Samples()
    for group in [list(methods)] if together else [[method] for method in methods]:
        samples = Samples(failed=unavailable_answers({method.name: verdicts[method.name] for method in group}))
        alive = [method for method in group if method.name not in samples.failed]
        limit = wall() + budget.give_up_seconds
        _Series(question, alive, clock, seed, samples, steps, turn).measure(lambda end=limit: wall() >= end)
        rows += method_rows(question, group, verdicts, budget.min_blocks, samples)
        all_throttled.throttled += samples.throttled
        level = logging.WARNING if samples.throttled else logging.INFO
        log.log(level, "%s: %s: %s", question, ", ".join(method.name for method in group), samples.summary())
    return [*rows, discarded_row(question, clock, all_throttled)]


@dataclass
class _Series(Blocks):
    """One series under way."""

    steps: int
    turn: Callable[[int], object]

    def measure(self, given_up: Callable[[], bool]) -> None:
        """Fill the samples, and try again what could not be trusted."""
        self.turn(0)
        self.warm_up()
        waiting = list(range(self.steps))
        for _ in range(TRIES):
            again = []
            for step in waiting:
                if not self.alive or given_up():
                    break
                self.turn(step)
                if not self.block(step):
                    again.append(step)
            waiting = again
        for name, times in self.samples.times.items():
            self.samples.times[name] = dict(sorted(times.items()))
        self.samples.ended = f"the series has {self.steps} steps"


class PacedClock(HostClock):
    """Wall time of runs that are released each `period_ms`, the machine idle in between (layer ``paced``).

    A run is timed from its release to its synchronised result. One that is released while the run before it is still
    going on has its waiting counted, up to a period: a camera would have dropped an older frame. When the sleep ends
    too late or the measurement itself was slow, which is no fault of the method, the release is put off. Tests give
    their own `now`, in nanoseconds, and `sleep`, which takes seconds.
    """

    def __init__(
        self,
        period_ms: float,
        synchronize: Callable[[], object] | None = None,
        throttle: Callable[[], str | None] | None = None,
        *,
        now: Callable[[], int] = time.perf_counter_ns,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        super().__init__(synchronize, throttle, layer="paced")
        if not period_ms > 0:
            raise InputError(f"a pace needs a period of more than 0 ms, found {period_ms}")
        self._period = round(period_ms * 1e6)
        self._now, self._sleep = now, sleep
        self._release = self._ended = now() - self._period

    def time(self, run: Callable[[], object]) -> float:
        """Wait for the next release, run, and return the milliseconds from that release."""
        release = self._release + self._period
        late = self._ended > release
        release = max(release, self._ended - self._period) if late else self._wait(release)
        run()
        self.synchronize()
        self._release, self._ended = release, self._now()
        return (self._ended - release) / 1e6

    def _wait(self, release: int) -> int:
        """Sleep, then spin until `release`; returns the moment at which it is over."""
        while (left := release - self._now()) > 0:
            if left > _SPIN_NS:
                self._sleep((left - _SPIN_NS) / 1e9)
        return max(release, self._now())
