"""Samples of one sensor over time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from octopus_study.power.quantities import MilliJoule, Watt
from octopus_study.power.source import Sample, SensorError

MOST_FAILURES = 0.10


@dataclass(frozen=True)
class Failure:
    """A reading that failed: when, and why. It is missing from the trace, never 0."""

    at_ns: int
    reason: str


@dataclass(frozen=True)
class Trace:
    """The samples of one source in ascending time, and the readings that failed."""

    scope: str
    samples: tuple[Sample, ...]
    failures: tuple[Failure, ...] = ()

    def between(self, start_ns: int, end_ns: int) -> Trace:
        """Return what was read from `start_ns` to `end_ns`, both included."""
        times = [sample.at_ns for sample in self.samples]
        chosen = self.samples[bisect_left(times, start_ns) : bisect_right(times, end_ns)]
        failed = tuple(each for each in self.failures if start_ns <= each.at_ns <= end_ns)
        return Trace(self.scope, chosen, failed)

    @property
    def fails_often(self) -> bool:
        """Whether more than a tenth of the readings failed."""
        return len(self.failures) > MOST_FAILURES * (len(self.samples) + len(self.failures))

    @property
    def zeros(self) -> int:
        """How many powers are 0 or less: no board draws that, and a failed reading given as 0 pulls a mean down."""
        powers = [power for each in self.samples for power in (each.power, each.averaged) if power is not None]
        return sum(not power.watts > 0 for power in powers)

    def joined(self, later: Trace) -> Trace:
        """Return this trace with a later one behind it."""
        return Trace(self.scope, self.samples + later.samples, self.failures + later.failures)

    def power_updates(self) -> list[tuple[int, Watt]]:
        """Return times and powers where the sensor gave a new value; between two updates it only repeats itself."""
        return _changes([(s.at_ns, s.power) for s in self.samples])

    def counter_updates(self) -> list[tuple[int, MilliJoule]]:
        """Return times and states where the energy counter advanced."""
        return _changes([(s.at_ns, s.counter) for s in self.samples if s.counter is not None])


def _changes(points: Sequence[tuple[int, object]]) -> list:
    """Keep the first point and each whose value differs from the one before it."""
    return [*points[:1], *(later for earlier, later in pairwise(points) if later[1] != earlier[1])]


def require_samples(trace: Trace) -> Trace:
    """Return the trace; `SensorError` where nothing was read, with the reason."""
    if trace.samples:
        return trace
    why = trace.failures[-1].reason if trace.failures else "no reading was made"
    raise SensorError(f"{trace.scope}: {why}")
