"""Study `power`: time and energy of a batch, from the same windows, by number of objects and method.

Two layers. `back_to_back`: frame after frame without a pause, which is how the source measured. `paced`: frames at a
fixed rate, the device idle in between, as a camera does; a method that can't keep the rate has no number there.
In a round every method has one window, in a fresh random order; idle windows stand before and behind each number of
objects. A frame is the way from boxes on the host to the synchronised result.

No sensor, or one that fails the power-on test: no energy. Then every row says what was looked at.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial

import numpy as np

from octopus_study.baselines.availability import Unavailable
from octopus_study.measure import Case, Method, Row, unavailable
from octopus_study.measure.rows import describe
from octopus_study.power.energy import window_energy
from octopus_study.power.selftest import SYSTEM_CLOCK, TimeSource
from octopus_study.power.session import NoUsableSensor, PowerSession, open_session
from octopus_study.power.source import SensorError
from octopus_study.power.windows import Stretch, Window, back_to_back, idle, paced, rate_missed, stretch
from octopus_study.status import NO_ANSWER, Answer
from octopus_study.studies.comparison import BASE, Comparison, Part
from octopus_study.studies.context import Context
from octopus_study.studies.crops import ReferenceCrops, reference_of
from octopus_study.studies.power.methods import AGAIN, LIBRARIES, NAMES, make_methods
from octopus_study.studies.power.rounds import Rounds, Watch
from octopus_study.studies.power.rows import (
    BACK_TO_BACK,
    ENERGY,
    HOST,
    IDLE,
    PACED,
    Level,
    Place,
    Span,
    Taken,
    idle_level,
    idle_rows,
    method_rows,
    trace_rows,
)

log = logging.getLogger(__name__)

Opener = Callable[[str], AbstractContextManager[PowerSession]]
STUDY, WORKLOAD = "power", "visdrone"
# What sampling costs: frames of the smallest batch, whose time is the host's, with the sampler and without it.
TURNS, TURN = 5, Stretch(seconds=1.0, settle_seconds=0.3, tail_seconds=0.0)
IDLE_SETTLE_SECONDS = 3.0  # boards are back at their idle power 1 to 2 s after a load


def plan(context: Context, opener: Opener = open_session, clock: TimeSource = SYSTEM_CLOCK) -> list[Part]:
    """One part, since one session reads the sensor throughout: both layers of every number of objects. Tests give an
    `opener` of simulated sessions, and with it a clock."""
    settings, comparisons = context.config.power, []
    for count in settings.counts:
        case = _case(context, count)
        beside = (*NAMES, *LIBRARIES) if count in settings.again_counts else NAMES
        names = (*beside, AGAIN) if count in settings.again_counts else beside
        comparisons.append(Comparison(case, ENERGY, BACK_TO_BACK, names, "mJ"))
        if count in settings.paced_counts:
            comparisons.append(Comparison(case, ENERGY, PACED, beside, "mJ"))
    return [Part(partial(_measure, opener, clock), tuple(comparisons))]


def _case(context: Context, count: int) -> Case:
    return Case(STUDY, context.workload.dataset, WORKLOAD, count)


def _measure(opener: Opener, clock: TimeSource, context: Context, part: Part) -> Iterator[Row]:
    try:
        with opener(context.device) as session:
            yield from _Sweep(context, session, clock).rows(part)
    except NoUsableSensor as error:
        context.notes["power"] = {
            "sensor": None,
            "reason": str(error),
            "looked_at": error.looked,
            "selftests": [attempt.selftest.record() for attempt in error.attempts if attempt.selftest],
        }
        log.warning("no energy is measured: %s", error)
        raise Unavailable(str(error)) from error


class _Sweep:
    """The measurement with a sensor that may be believed."""

    def __init__(self, context: Context, session: PowerSession, clock: TimeSource) -> None:
        self.context, self.session, self.clock = context, session, clock
        self.settings = context.config.power
        self.proof = session.selftest.proof()
        self.scope = self.proof.scope
        self.trace = session.selftest.trace
        self.zero_ns = self.trace.samples[0].at_ns
        self.spans = [Span(p.start_ns, p.end_ns, 0, "self-test") for p in session.selftest.phases]
        update, averaged = session.selftest.update_seconds, session.source.averaged_seconds
        self.work = stretch(self.settings.window_seconds, self.settings.settle_seconds, update, averaged)
        self.rest = stretch(self.settings.idle_seconds, IDLE_SETTLE_SECONDS, update, averaged)
        self.watch = Watch(context.throttle)
        self.lost = ""  # why the sampler ended; nothing is measured from then on

    def rows(self, part: Part) -> Iterator[Row]:
        """Measure every number of objects; whatever fails is a row, and what was measured before is kept."""
        counts = self.settings.counts
        # Windows of methods that can't keep the frame rate are left out later.
        windows = self.settings.windows * sum(len(comparison.methods) for comparison in part.comparisons)
        minutes = (windows * sum(self.work) + 2 * len(counts) * sum(self.rest)) / 60
        log.info("power: about %.0f minutes, sensor %s", minutes, self.scope)
        reference = reference_of(self.context)
        for number, count in enumerate(counts, 1):
            log.info("%d objects, %d of %d", count, number, len(counts))
            layers = [one for one in part.comparisons if one.case.n == count]
            try:
                rows = self._count_rows(layers, reference)
            except Exception as error:  # a number of objects that fails is a row, never the end of the study
                log.warning("%d objects: %s", count, error)
                rows = _gaps(layers, describe(error))
            yield from rows
        self.context.notes["power"] = self._notes()
        yield from trace_rows(_case(self.context, 0), self.trace, self.spans, self.zero_ns)

    def _count_rows(self, layers: Sequence[Comparison], reference: ReferenceCrops) -> list[Row]:
        case = layers[0].case
        if self.lost:
            return _gaps(layers, self.lost)
        methods, answers = make_methods(self.context, case.n, reference)
        around, measured = [self._idle(case.n)], {}
        for comparison in layers:
            chosen = [method for method in methods if method.name in comparison.methods]
            made = {method.name for method in chosen}
            failed = {name: answers[name].reason for name in comparison.methods if name not in made}
            for name in comparison.methods if comparison.layer == PACED else ():
                if slow := measured[BACK_TO_BACK].too_slow(name, self.settings.frame_rate):
                    failed[name] = slow
            measured[comparison.layer] = self._rounds(comparison, chosen, failed)
        around.append(self._idle(case.n))
        level, rows = idle_level(around), []
        for block, taken in enumerate(around):
            if taken.window.seconds:
                rows += idle_rows(self._place(case, IDLE, IDLE, NO_ANSWER)._replace(block=block), taken)
        if isinstance(level.net, str):
            log.warning("%d objects: no net energies: %s", case.n, level.net)
        for comparison in layers:
            rows += self._layer_rows(comparison, measured[comparison.layer], answers, level)
        if case.n == min(self.settings.counts) and not self.lost:
            rows += self._sampling_rows(case, methods[0])
        return rows

    def _rounds(self, comparison: Comparison, methods: Sequence[Method], failed: dict[str, str]) -> Rounds:
        """Give every method but those that failed before a window in each round."""
        count, layer = comparison.case.n, comparison.layer
        rounds = Rounds(self.settings.windows, failed, self.lost)
        while rounds.wanted and any(method.name not in failed for method in methods):
            number, windows, slowed = rounds.tried, {}, ""
            seed = [self.context.seed, count, len(layer), number]
            for index in np.random.default_rng(seed).permutation(len(methods)):
                method = methods[index]
                if method.name in failed or self.lost:
                    continue
                try:
                    windows[method.name] = self._window(count, layer, method)
                except Exception as error:  # any failure of a method is a row, never the end of the study
                    log.warning("%s, %d objects: %s", method.name, count, error)
                    failed[method.name] = describe(error)
                slowed = slowed or self.watch.slowed()
            rounds.add(number, windows, slowed)
            rounds.lost = self.lost
        return rounds

    def _window(self, count: int, layer: str, method: Method) -> Taken:
        make, rate = partial(back_to_back, method.run), self.settings.frame_rate
        if layer == PACED:
            make = partial(paced, method.run, rate)
        self.watch.restart()
        window = make(lasting=self.work, clock=self.clock)
        taken = self._taken(window, count, method.name, self.watch.capped())
        if layer == PACED and (missed := rate_missed(window, rate)):
            return taken._replace(energy=None, why=f"frame-rate: {missed}")
        return taken

    def _idle(self, count: int) -> Taken:
        """Let the device do nothing, unless the sampler has ended."""
        if self.lost:
            now = self.clock.monotonic_ns()
            return Taken(Window(now, now, 0, 0), None, self.lost)
        return self._taken(idle(self.rest, self.clock), count, IDLE, None)

    def _taken(self, window: Window, count: int, method: str, capped: float | None) -> Taken:
        """Fetch what was sampled meanwhile, and cut the window out of it."""
        self.spans.append(Span(window.start_ns, window.end_ns, count, method))
        margin = round(max(1.0, self.work.tail_seconds) * 1e9)
        try:
            self._collect()
            # The trace is cut first, so that a long study stays quick.
            part = self.trace.between(window.start_ns - margin, window.end_ns + margin)
            return Taken(window, window_energy(window, part, self.proof), "", capped)
        except SensorError as error:
            log.warning("%s, %d objects: %s", method, count, error)
            return Taken(window, None, error.full, capped)

    def _collect(self) -> None:
        try:
            self.trace = self.trace.joined(self.session.sampler.collect())
        except SensorError as error:
            self.lost = str(error)
            raise

    def _place(self, case: Case, method: str, layer: str, answer: str) -> Place:
        return Place(case, method, layer, 0, answer, self.zero_ns, self.scope)

    def _layer_rows(
        self, comparison: Comparison, rounds: Rounds, answers: dict[str, Answer], level: Level
    ) -> list[Row]:
        """Rows of a layer: each method's windows, or one row that says why there are none."""
        (case, layer), rows = (comparison.case, comparison.layer), []
        for name in comparison.methods:
            if missing := rounds.why_none(name):
                rows += comparison.gaps(missing, [name])
                continue
            place = self._place(case, name, layer, answers[name])
            rows += method_rows(place, rounds.of(name), rounds.least, level, rounds.lost)
        return [*rows, rounds.discarded_row(case, layer, self.watch.readable)]

    def _sampling_rows(self, case: Case, method: Method) -> list[Row]:
        """A frame's time while the sampler reads and while it waits, in turns, of which another begins each time."""
        rows: list[Row] = []
        try:
            for block in range(TURNS):
                for sampled in (bool(block % 2), not block % 2):
                    (self.session.sampler.resume if sampled else self.session.sampler.pause)()
                    window = back_to_back(method.run, TURN, self.clock)
                    name = f"{BASE}-sampled" if sampled else f"{BASE}-unsampled"
                    rows.append(case.row(name, HOST, "time_per_frame", "ms", window.frame_ms, block=block))
        except Exception as error:  # it is worth knowing, but not worth the windows before it
            log.warning("what sampling costs: %s", error)
            rows.append(unavailable(case, f"{BASE}-sampled", HOST, "sampling_cost", "fraction", describe(error)))
        try:
            self.session.sampler.resume()
        except SensorError as error:
            self.lost = str(error)
        return rows

    def _notes(self) -> dict[str, object]:
        session = self.session
        return {
            "sensor": session.spec.kind,
            "scope": self.scope,
            "accuracy": session.source.accuracy,
            "source": session.source.facts(),
            "sampler": session.sampler.facts(),
            "selftest": session.selftest.record(),
            "looked_at": {attempt.spec.kind: attempt.reason or "used" for attempt in session.attempts},
            "window_seconds": self.work.seconds,
            "settle_seconds": self.work.settle_seconds,
            "tail_seconds": self.work.tail_seconds,
            "idle_seconds": self.rest.seconds,
            "idle_settle_seconds": self.rest.settle_seconds,
            "failed_readings": len(self.trace.failures),
            "sampler_ended": self.lost or None,
        }


def _gaps(layers: Sequence[Comparison], reason: str) -> list[Row]:
    return [row for comparison in layers for row in comparison.gaps(reason)]
