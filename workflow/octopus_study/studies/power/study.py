"""Study `power`: time and energy of a batch, from the same windows, by number of objects and method.

Two layers. `back_to_back`: frame after frame without a pause, which is how the source measured. `paced`: frames at a
fixed rate, the device idle in between, as a camera does; a method that can't keep the rate has no number there.
In a round every method has one window, in a fresh random order; idle windows stand before and behind each number of
objects. A frame is the way from boxes on the host to the synchronised result.

No sensor, or one that fails the power-on test: no energy. Then every row says what was looked at.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial

import numpy as np

from octopus_study.measure import Case, Row, unavailable
from octopus_study.measure.rows import describe
from octopus_study.power.energy import WindowEnergy, window_energy
from octopus_study.power.selftest import SystemClock, TimeSource
from octopus_study.power.session import NoUsableSensor, PowerSession, open_session
from octopus_study.power.source import SensorError
from octopus_study.power.windows import Window, back_to_back, idle, paced, rate_missed, stretch
from octopus_study.studies.contest import BASE, ReferenceCrops
from octopus_study.studies.context import Context
from octopus_study.studies.power.arms import AGAIN, METHODS, Arm, make_arms, names, shortage
from octopus_study.studies.power.rounds import Round, Rounds
from octopus_study.studies.power.rows import (
    BACK_TO_BACK,
    HOST,
    IDLE,
    PACED,
    Level,
    Place,
    Span,
    Taken,
    arm_rows,
    idle_level,
    idle_rows,
    missing_rows,
    reason,
    trace_rows,
)
from octopus_study.studies.power.sampling import sampling_rows
from octopus_study.studies.power.watch import Watch

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
        self.lost = ""  # why the sampler ended; nothing is measured from then on

    def rows(self) -> list[Row]:
        """Measure every number of objects; whatever fails is a row, and what was measured before is kept."""
        counts = self.settings.counts
        log.info("power: about %.0f minutes, sensor %s", sum(map(self._minutes, counts)), self.scope)
        crop = self.context.config.crop
        expected = ReferenceCrops(self.context.workload.frame, crop.size, crop.mean, crop.std)
        found: list[Row] = []
        for number, count in enumerate(counts, 1):
            log.info("%d objects, %d of %d: %.1f minutes", count, number, len(counts), self._minutes(count))
            try:
                found += self._count_rows(count, expected)
            except Exception as error:  # a number of objects that fails is a row, never the end of the study
                log.warning("%d objects: %s", count, error)
                found += _nothing(self.context, count, describe(error))
        self.context.notes["power"] = self._notes()
        return [*found, *trace_rows(_case(self.context, 0), self.trace, self.spans, self.zero_ns)]

    def _count_rows(self, count: int, expected: ReferenceCrops) -> list[Row]:
        why = self.lost or shortage(self.context, count)
        if why:
            return list(_nothing(self.context, count, why))
        arms = make_arms(self.context, count, expected)
        around, groups = [self._idle(count)], {}
        for layer in layers(self.context, count):
            failed = {}
            if layer == PACED:
                arms = [arm for arm in arms if arm.name != AGAIN]
                failed = _too_slow(arms, groups[BACK_TO_BACK][1], self.settings.frame_rate)
            groups[layer] = arms, self._rounds(count, layer, arms, failed)
        around.append(self._idle(count))
        level, found = idle_level(around), self._idle_rows(count, around)
        if isinstance(level.net, str):
            log.warning("%d objects: no net energies: %s", count, level.net)
        for layer, (chosen, rounds) in groups.items():
            found += self._layer_rows(count, layer, chosen, rounds, level)
        if count == min(self.settings.counts) and not self.lost:
            found += self._sampling_rows(count, arms[0])
        return found

    def _rounds(self, count: int, layer: str, arms: Sequence[Arm], failed: dict[str, str]) -> Rounds:
        """Give every arm but those that failed before a window in each round."""
        rounds = Rounds(self.settings.windows, failed=failed, lost=self.lost)
        while rounds.wanted and any(arm.name not in failed for arm in arms):
            number = rounds.tried
            seed = [self.context.seed, count, len(layer), number]
            found, slowed = Round(number), ""
            for index in np.random.default_rng(seed).permutation(len(arms)):
                arm = arms[index]
                if arm.name not in failed and not self.lost:
                    self._window(count, layer, arm, found, failed)
                    slowed = slowed or self.watch.slowed()
            rounds.add(found, slowed)
            rounds.lost = self.lost
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
            log.warning("%s, %d objects: %s", arm.name, count, error)
            failed[arm.name] = describe(error)
            return
        taken = self._taken(window, count, arm.name, self.watch.capped())
        if layer == PACED and (why := rate_missed(window, self.settings.frame_rate)):
            taken = taken._replace(energy=None, why=f"frame-rate: {why}")
        found.windows[arm.name] = taken

    def _idle(self, count: int) -> Taken:
        """Let the device do nothing, unless nobody would see it."""
        if self.lost:
            now = self.clock.monotonic_ns()
            return Taken(Window(now, now, 0, 0), None, self.lost)
        return self._taken(idle(self.rest, self.clock), count, IDLE, None)

    def _taken(self, window: Window, count: int, method: str, capped: float | None) -> Taken:
        """Fetch what was sampled meanwhile, and cut the window out of it."""
        self.spans.append(Span(window.start_ns, window.end_ns, count, method))
        try:
            self._collect()
            return Taken(window, self._energy(window), "", capped)
        except SensorError as error:
            log.warning("%s, %d objects: %s", method, count, error)
            return Taken(window, None, reason(error), capped)

    def _collect(self) -> None:
        try:
            self.trace = self.trace.joined(self.session.sampler.collect())
        except SensorError as error:
            self.lost = str(error)
            raise

    def _energy(self, window: Window) -> WindowEnergy:
        """The energy of a window; the trace is cut first, so that a long study stays quick."""
        margin = round(max(1.0, self.work.tail_seconds) * 1e9)
        part = self.trace.between(window.start_ns - margin, window.end_ns + margin)
        return window_energy(window, part, self.session.proof)

    def _idle_rows(self, count: int, around: Sequence[Taken]) -> list[Row]:
        found = []
        for block, taken in enumerate(around):
            if taken.window.seconds:
                place = Place(_case(self.context, count), IDLE, IDLE, block, "n/a", self.zero_ns)
                found += idle_rows(place, taken, self.scope)
        return found

    def _layer_rows(
        self, count: int, layer: str, arms: Sequence[Arm], rounds: Rounds, level: Level
    ) -> list[Row]:
        """Rows of a layer: each arm's windows, or one row that says why there are none."""
        case, found = _case(self.context, count), []
        for arm in arms:
            if why := rounds.why_none(arm.name):
                found += missing_rows(case, [arm.name], [layer], why)
                continue
            place = Place(case, arm.name, layer, 0, arm.answer, self.zero_ns)
            found += arm_rows(place, rounds.of(arm.name), rounds.least, self.scope, level, rounds.lost)
        return [*found, rounds.discarded_row(case, layer, self.watch.readable)]

    def _sampling_rows(self, count: int, arm: Arm) -> list[Row]:
        """Rows of what sampling costs, as far as it goes."""
        case, found = _case(self.context, count), []
        try:
            found.extend(sampling_rows(case, self.session, arm.frame, self.clock))
            self._collect()
        except (
            Exception
        ) as error:  # what sampling costs is worth knowing, but not worth the windows before it
            log.warning("what sampling costs: %s", error)
            where = f"{BASE}-sampled", HOST, "sampling_cost", "fraction"
            found.append(unavailable(case, *where, describe(error)))
        return found

    def _notes(self) -> dict[str, object]:
        session = self.session
        return {
            "sensor": session.spec.kind,
            "scope": self.scope,
            "accuracy": session.source.accuracy,
            "source": session.source.facts(),
            "sampler": session.sampler.facts(),
            "selftest": session.selftest.record(),
            "looked_at": {each.spec.kind: each.reason or "used" for each in session.attempts},
            "window_seconds": self.work.seconds,
            "settle_seconds": self.work.settle_seconds,
            "tail_seconds": self.work.tail_seconds,
            "idle_seconds": self.rest.seconds,
            "idle_settle_seconds": self.rest.settle_seconds,
            "failed_readings": len(self.trace.failures),
            "sampler_ended": self.lost or None,
        }

    def _minutes(self, count: int) -> float:
        """What a number of objects will take; windows of methods that can't keep the frame rate are left out later."""
        arms = len(names(self.context, count))
        windows = arms + (len(METHODS) if PACED in layers(self.context, count) else 0)
        one, resting = (
            each.seconds + each.settle_seconds + each.tail_seconds for each in (self.work, self.rest)
        )
        return (windows * self.settings.windows * one + 2 * resting) / 60


def _too_slow(arms: Sequence[Arm], rounds: Rounds, rate: float) -> dict[str, str]:
    """Why arms can't keep a rate, by their windows back to back."""
    limit, found = 1e3 / rate, {}
    for arm in arms:
        took = rounds.frame_ms(arm.name)
        if why := rounds.why_none(arm.name):
            found[arm.name] = why
        elif not took < limit:
            found[arm.name] = f"one frame takes {took:.3g} ms; at {rate:g} frames/s there are {limit:.1f} ms"
    return found
