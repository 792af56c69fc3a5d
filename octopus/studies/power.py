"""Study `power`: time and energy of a batch, from the same windows, by number of objects and method.

Two layers. `back_to_back`: frame after frame without a pause, which is how the source measured. `paced`: frames at a
fixed rate, the device idle in between, as a camera does; a method that can't keep the rate has no number there.
In a round every method has one window, in a fresh random order; idle windows stand before and behind each number of
objects. A frame is the way from boxes on the host to the synchronised result.

No sensor, or one that fails the power-on test: no energy. Then every row says what was looked at.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial

import numpy as np

from octopus.measure import Case, Row
from octopus.measure.rows import describe
from octopus.power.energy import WindowEnergy, idle_power, window_energy
from octopus.power.quantities import Watt
from octopus.power.selftest import SystemClock, TimeSource
from octopus.power.session import NoUsableSensor, PowerSession, open_session
from octopus.power.source import SensorError
from octopus.power.windows import Window, back_to_back, idle, paced, stretch
from octopus.studies.contest import ReferenceCrops
from octopus.studies.context import Context
from octopus.studies.power_arms import AGAIN, METHODS, Arm, make_arms, names
from octopus.studies.power_rounds import Round, Rounds
from octopus.studies.power_rows import (
    BACK_TO_BACK,
    IDLE,
    PACED,
    Place,
    Span,
    missing_rows,
    trace_rows,
    window_rows,
)
from octopus.studies.power_sampling import sampling_rows
from octopus.studies.power_watch import Watch

log = logging.getLogger(__name__)

Opener = Callable[[str], AbstractContextManager[PowerSession]]
STUDY, WORKLOAD = "power", "visdrone"
IDLE_SETTLE_SECONDS = 3.0  # boards are back at their idle power 1 to 2 s after a load


def rows(context: Context, opener: Opener = open_session, clock: TimeSource | None = None) -> list[Row]:
    """All rows of the study; progress goes to the log.

    Parameters
    ----------
    context : Context
    opener : callable
        Gives a session for a device; tests give a simulated one, and with it a clock.
    clock : TimeSource, optional
    """
    try:
        with opener(context.device) as session:
            return _Sweep(context, session, clock or SystemClock()).rows()
    except NoUsableSensor as error:
        log.warning("no energy is measured: %s", error)
        context.notes["power"] = {
            "sensor": None,
            "reason": str(error),
            "looked_at": error.looked,
            "selftests": [each.selftest.record() for each in error.attempts if each.selftest],
        }
        return [row for count in context.config.power.counts for row in _nothing(context, count, str(error))]


def layers(context: Context, count: int) -> list[str]:
    """Return the layers that a number of objects has."""
    return [BACK_TO_BACK, *([PACED] if count in context.config.power.paced_counts else [])]


def _case(context: Context, count: int) -> Case:
    return Case(STUDY, context.workload.dataset, WORKLOAD, count)


def _nothing(context: Context, count: int, why: str) -> Iterator[Row]:
    for layer in layers(context, count):
        methods = METHODS if layer == PACED else names(context, count)
        yield from missing_rows(_case(context, count), methods, [layer], why)


class _Sweep:
    """The measurement with a sensor that may be believed."""

    def __init__(self, context: Context, session: PowerSession, clock: TimeSource) -> None:
        self.context, self.session, self.clock = context, session, clock
        self.settings = context.config.power
        self.scope = session.proof.scope
        self.trace = session.selftest.trace
        self.zero_ns = self.trace.samples[0].at_ns
        self.spans = [Span(p.start_ns, p.end_ns, 0, "self-test") for p in session.selftest.phases]
        update, averaged = session.selftest.update_seconds, session.source.averaged_seconds
        self.work = stretch(self.settings.window_seconds, self.settings.settle_seconds, update, averaged)
        self.rest = stretch(self.settings.idle_seconds, IDLE_SETTLE_SECONDS, update, averaged)
        self.watch = Watch(context.throttle)

    def rows(self) -> list[Row]:
        """Measure every number of objects; whatever fails is a row, and what was measured before is kept."""
        log.info("power: about %.0f minutes, sensor %s", self._minutes(), self.scope)
        crop = self.context.config.crop
        expected = ReferenceCrops(self.context.workload.frame, crop.size, crop.mean, crop.std)
        found: list[Row] = []
        for count in self.settings.counts:
            try:
                found += self._count_rows(count, expected)
            except Exception as error:  # a number of objects that fails is a row, never the end of the study
                log.warning("%d objects: %s", count, error)
                found += _nothing(self.context, count, describe(error))
        self.context.notes["power"] = self._notes()
        case, period = _case(self.context, 0), self.session.selftest.update_seconds
        return [*found, *trace_rows(case, self.trace, self.spans, self.zero_ns, period)]

    def _count_rows(self, count: int, expected: ReferenceCrops) -> list[Row]:
        short = self.context.shortage(count)
        if short:
            return list(_nothing(self.context, count, short))
        arms = make_arms(self.context, count, expected)
        log.info("%d objects: %s", count, ", ".join(arm.name for arm in arms))
        self._collect()
        before = self._idle(count)
        groups = [(BACK_TO_BACK, self._rounds(count, BACK_TO_BACK, arms, {}))]
        if PACED in layers(self.context, count):
            slow = _too_slow(arms, groups[0][1], self.settings.frame_rate)
            groups.append(
                (PACED, self._rounds(count, PACED, [arm for arm in arms if arm.name != AGAIN], slow))
            )
        after = self._idle(count)
        self._collect()
        found = self._idle_rows(count, (before, after))
        level = self._idle_power(before, after)
        for layer, rounds in groups:
            found += self._layer_rows(count, layer, arms, rounds, level)
        if count == min(self.settings.counts):
            found += sampling_rows(_case(self.context, count), self.session, arms[0].frame, self.clock)
            self._collect()
        return found

    def _rounds(self, count: int, layer: str, arms: Sequence[Arm], failed: dict[str, str]) -> Rounds:
        """Give every arm but those that failed before a window in each round."""
        rounds = Rounds(self.settings.windows, failed=failed)
        while rounds.wanted and len(rounds.failed) < len(arms):
            number = rounds.tried
            seed = [self.context.seed, count, len(layer), number]
            found, slowed = Round(number, {}, {}), ""
            for index in np.random.default_rng(seed).permutation(len(arms)):
                if arms[index].name not in rounds.failed:
                    self._window(count, layer, arms[index], found, rounds.failed)
                    slowed = slowed or self.watch.slowed()
            rounds.add(found, slowed)
        return rounds

    def _window(self, count: int, layer: str, arm: Arm, found: Round, failed: dict[str, str]) -> None:
        """Let one arm work, and note its window or why it failed."""
        make = partial(back_to_back, arm.frame)
        if layer == PACED:
            make = partial(paced, arm.frame, self.settings.frame_rate)
        self.watch.restart()
        try:
            window = make(lasting=self.work, clock=self.clock)
        except Exception as error:  # any failure of a method is a row, never the end of the study
            failed[arm.name] = describe(error)
            return
        found.windows[arm.name] = self._mark(window, count, arm.name)
        found.capped[arm.name] = self.watch.capped()

    def _idle(self, count: int) -> Window:
        return self._mark(idle(self.rest, self.clock), count, IDLE)

    def _mark(self, window: Window, count: int, method: str) -> Window:
        self.spans.append(Span(window.start_ns, window.end_ns, count, method))
        return window

    def _collect(self) -> None:
        self.trace = self.trace.joined(self.session.sampler.collect())

    def _energy(self, window: Window) -> WindowEnergy:
        """The energy of a window; the trace is cut first, so that a long study stays quick."""
        margin = round(max(1.0, self.work.tail_seconds) * 1e9)
        part = self.trace.between(window.start_ns - margin, window.end_ns + margin)
        return window_energy(window, part, self.session.proof)

    def _idle_power(self, before: Window, after: Window) -> Watt | str:
        """The idle power around the windows, or why it isn't known."""
        try:
            return idle_power(self._energy(before), self._energy(after))
        except SensorError as error:
            log.warning("no net energies: %s", error)
            return str(error)

    def _idle_rows(self, count: int, windows: Sequence[Window]) -> list[Row]:
        found = []
        for block, window in enumerate(windows):
            place = Place(_case(self.context, count), IDLE, IDLE, block, "n/a", self.zero_ns)
            found += window_rows(place, window, self._energy, self.scope, None)[0]
        return found

    def _layer_rows(
        self, count: int, layer: str, arms: Sequence[Arm], rounds: Rounds, level: Watt | str
    ) -> list[Row]:
        """Rows of a layer: each arm's windows, or one row that says why there are none."""
        case, found = _case(self.context, count), []
        for arm in arms:
            if layer == PACED and arm.name == AGAIN:
                continue
            if arm.name in rounds.failed:
                found += missing_rows(case, [arm.name], [layer], rounds.failed[arm.name])
            elif rounds.too_few:
                found += missing_rows(case, [arm.name], [layer], rounds.too_few)
            else:
                for each in rounds.kept:
                    place = Place(case, arm.name, layer, each.number, arm.answer, self.zero_ns)
                    window = each.windows[arm.name]
                    found += window_rows(place, window, self._energy, self.scope, level)[0]
                    found += each.capped_rows(place)
        return [*found, rounds.discarded_row(case, layer, self.watch.readable)]

    def _notes(self) -> dict[str, object]:
        session = self.session
        return {
            "sensor": session.spec.kind,
            "scope": self.scope,
            "source": session.source.facts(),
            "sampler": session.sampler.facts(),
            "selftest": session.selftest.record(),
            "looked_at": {each.spec.kind: each.reason or "used" for each in session.attempts},
            "window_seconds": self.work.seconds,
            "settle_seconds": self.work.settle_seconds,
            "tail_seconds": self.work.tail_seconds,
            "failed_readings": len(self.trace.failures),
        }

    def _minutes(self) -> float:
        """What the sweep will take, frames longer than a window aside."""
        one = self.work.seconds + self.work.settle_seconds + self.work.tail_seconds
        resting = self.rest.seconds + self.rest.settle_seconds + self.rest.tail_seconds
        arms = [len(names(self.context, n)) * len(layers(self.context, n)) for n in self.settings.counts]
        return (sum(arms) * self.settings.windows * one + 2 * len(arms) * resting) / 60


def _too_slow(arms: Sequence[Arm], rounds: Rounds, rate: float) -> dict[str, str]:
    """Why arms can't keep a rate, by their windows back to back."""
    limit, found = 1e3 / rate, dict(rounds.failed)
    for arm in arms:
        took = rounds.frame_ms(arm.name)
        if arm.name != AGAIN and arm.name not in found and not took < limit:
            found[arm.name] = (
                f"one frame takes {took:.3g} ms; at {rate:g} frames/s there are {limit:.1f} ms"
                if math.isfinite(took)
                else rounds.too_few
            )
    return found
