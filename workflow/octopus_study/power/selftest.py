"""The power-on test: no energy is measured before the sensor was seen to follow a known load.

Idle, load, idle, load. A sensor that isn't one (a voltage, a frozen value, another device) doesn't rise and fall with
the load, whatever its file is named. The test needs no knowledge of what went wrong: every such mistake has one
signature, a power that doesn't follow the work. What each check measured stays in the record, and only a test that
passed gives the proof without which `octopus_study.power.energy` computes nothing.
"""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from octopus_study.power.judges import FAILED, IDLE, LOAD, Evidence, Phase, Verdict, judge, levels
from octopus_study.power.quantities import Watt
from octopus_study.power.source import PowerSource, SensorError, Trace

ORDER = (IDLE, LOAD, IDLE, LOAD)
_LOOK_NS = 100_000_000
_MADE_HERE = object()


class TimeSource:
    """The time of a test, on the clock of the samples: the machine's own; a simulation has another."""

    monotonic_ns = staticmethod(time.monotonic_ns)
    sleep = staticmethod(time.sleep)


SYSTEM_CLOCK = TimeSource()


class Timing(NamedTuple):
    """How long the parts of the test last: what is left out at the beginning of each phase, longer by the time over
    which the sensor averages, and what is judged. Boards reach their level 0.5 to 1 s after a change, and are back at
    idle 1 to 2 s after a load."""

    settle_seconds: float = 2.0
    phase_seconds: float = 3.0


class PassedTest:
    """Proof that the sensor of a scope passed the power-on test; :meth:`SelfTest.proof` alone makes it."""

    __slots__ = ("_scope",)

    def __init__(self, scope: str, made: object = None) -> None:
        if made is not _MADE_HERE:
            why = "a proof comes from a power-on test that passed, and from nothing else"
            raise SensorError(why, "power-on-test")
        self._scope = scope

    @property
    def scope(self) -> str:
        """What the tested power is the power of."""
        return self._scope


@dataclass(frozen=True)
class SelfTest:
    """What the power-on test saw and decided."""

    scope: str
    source: Mapping[str, Any]  # facts of the source
    limit: Watt
    verdicts: Mapping[str, Verdict]  # by id of the rule, in their order
    phases: tuple[Phase, ...]
    trace: Trace  # all that was read, between the phases too
    # median time between two values of the sensor, of the slower one where it gives power and counter
    update_seconds: float | None

    @property
    def failed(self) -> tuple[str, ...]:
        """The ids of the checks that failed, the first one most telling."""
        return tuple(check for check, verdict in self.verdicts.items() if verdict.outcome == FAILED)

    @property
    def reason(self) -> str:
        """Why the test failed, beginning with the id of a check; empty where it passed."""
        if not self.failed:
            return ""
        first, *others = self.failed
        also = f" (also failed: {', '.join(others)})" if others else ""
        return f"{first}: {self.verdicts[first].detail}{also}"

    def proof(self) -> PassedTest:
        """Return what lets energies be computed; `SensorError` with the test's reason where it failed."""
        if self.failed:
            raise SensorError(f"the power-on test failed: {self.reason}", self.failed[0])
        return PassedTest(self.scope, _MADE_HERE)

    def record(self) -> dict[str, Any]:
        """Return the test as plain JSON values, for the provenance; times in seconds since its first sample."""
        samples = self.trace.samples
        zero = samples[0].at_ns if samples else 0
        return {
            "passed": not self.failed,
            "reason": self.reason,
            "scope": self.scope,
            "source": dict(self.source),
            "limit_w": self.limit.watts,
            "checks": [{"id": check, **verdict._asdict()} for check, verdict in self.verdicts.items()],
            "phases": [_phase_record(phase, zero) for phase in self.phases],
            "samples": len(samples),
            "failures": len(self.trace.failures),
            "update_seconds": self.update_seconds,
            "read_seconds": statistics.median(s.took_ns for s in samples) * 1e-9 if samples else None,
        }


def power_on_test(
    source: PowerSource,
    collect: Callable[[], Trace],
    load: Callable[[], object],
    *,
    clock: TimeSource = SYSTEM_CLOCK,
    timing: Timing | None = None,
) -> SelfTest:
    """Make the device idle, work, idle and work, and judge whether the sensor followed.

    The source is read now and then for what lies beside the power: voltages and other rails. `collect` returns the
    samples since its last call, of a sampler that runs meanwhile; `load` is a burst of work of 10 to 50 ms, see
    :func:`octopus_study.power.loads.known_load`.
    """
    timing = timing or Timing()
    settle = timing.settle_seconds + source.averaged_seconds
    limit, spans = source.limit(), []
    load()  # compiles, and wakes the device, so that the first idle phase is as warm as the second
    collect()  # what was read until now belongs to no phase
    trace = Trace(source.scope, ())
    for name in ORDER:
        work = load if name == LOAD else None
        _pass_time(clock, settle, work)
        watch, start = _Watch(source, clock), clock.monotonic_ns()
        _pass_time(clock, timing.phase_seconds, work, watch.look)
        spans.append((name, start, clock.monotonic_ns(), watch.seen()))
        trace = trace.joined(collect())
    phases = tuple(
        Phase(name, start, end, tuple(power for _, power in levels(trace.between(start, end))), *beside)
        for name, start, end, beside in spans
    )
    verdicts = judge(Evidence(trace, phases, limit))
    return SelfTest(source.scope, source.facts(), limit, verdicts, phases, trace, _update_seconds(trace, phases))


def _pass_time(
    clock: TimeSource, seconds: float, work: Callable[[], object] | None, look: Callable[[], None] = lambda: None
) -> None:
    end = clock.monotonic_ns() + round(seconds * 1e9)
    while (left := end - clock.monotonic_ns()) > 0:
        if work is None:
            clock.sleep(min(left, _LOOK_NS) * 1e-9)
        else:
            work()
        look()


class _Watch:
    """Reads what lies beside the power, ten times a second; a reading that fails is missing."""

    def __init__(self, source: PowerSource, clock: TimeSource) -> None:
        self._source, self._clock = source, clock
        self._next_ns = clock.monotonic_ns()
        self._voltages: dict[str, list[float]] = {}
        self._parts: dict[str, list[Watt]] = {}
        self._wholes: list[Watt] = []

    def look(self) -> None:
        """Read, if it is time to."""
        now = self._clock.monotonic_ns()
        if now < self._next_ns:
            return
        self._next_ns = now + _LOOK_NS
        with suppress(SensorError):
            for name, voltage in self._source.voltages().items():
                self._voltages.setdefault(name, []).append(voltage.value)
        with suppress(SensorError):  # apart from the voltages, which are evidence without the parts too
            parts = self._source.parts()
            if parts:
                self._wholes.append(self._source.read().power)
                for label, power in parts.items():
                    self._parts.setdefault(label, []).append(power)

    def seen(self) -> tuple[dict[str, float], dict[str, Watt], Watt | None]:
        """Return the means of what was read."""
        voltages = {name: statistics.fmean(values) for name, values in self._voltages.items()}
        parts = {label: Watt.mean(values) for label, values in self._parts.items()}
        return voltages, parts, Watt.mean(self._wholes) if self._wholes else None


def _update_seconds(trace: Trace, phases: tuple[Phase, ...]) -> float | None:
    """Return the median time between two values of the slower one of power and counter, which windows wait for. Of the
    power under load alone, where two equal values in a row are rare; a counter never repeats itself."""
    powers: list[int] = []
    for phase in phases:
        if phase.name == LOAD:
            powers += _gaps(trace.between(phase.start_ns, phase.end_ns).power_updates())
    counts = _gaps(trace.counter_updates()[1:])  # the first state is no advance
    medians = [statistics.median(gaps) for gaps in (powers, counts) if gaps]
    return max(medians) * 1e-9 if medians else None


def _gaps(updates: Sequence[tuple[int, object]]) -> list[int]:
    return [later - earlier for (earlier, _), (later, _) in pairwise(updates)]


def _phase_record(phase: Phase, zero_ns: int) -> dict[str, Any]:
    return {
        "phase": phase.name,
        "start_seconds": (phase.start_ns - zero_ns) * 1e-9,
        "end_seconds": (phase.end_ns - zero_ns) * 1e-9,
        "mean_w": phase.mean if phase.levels else None,
        "deviation_w": phase.deviation if phase.levels else None,
        "levels": len(phase.levels),
        "voltages_mv": dict(phase.voltages),
        "parts_w": {label: power.watts for label, power in phase.parts.items()},
    }
