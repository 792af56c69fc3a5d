"""What a power sensor gives: samples with their own times and their trace, or a reason why there are none."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from typing import Any

from octopus_study.power.quantities import MilliJoule, MilliVolt, RefusedError, Watt

MOST_FAILURES = 0.10


class SensorError(RefusedError):
    """A sensor can't be read, or what it gives can't be its power; the message is the reason that results show."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One reading of a source."""

    at_ns: int  # `time.monotonic_ns()` in the middle of the reading; the same clock in every process of a machine
    took_ns: int  # how long the reading took
    power: Watt
    counter: MilliJoule | None  # the energy counter, where the source has one
    # The mean that the driver makes of its own, quicker readings, where it tells that beside `power`. Readings of the
    # moment, ten times a second, meet a load of 30 frames/s always in the same three phases.
    averaged: Watt | None = None


class PowerSource:
    """A sensor that was opened by a successful reading; what can't be read is a `SensorError`."""

    name: str  # ``nvml`` or ``ina3221``
    scope: str  # what the power is the power of: ``gpu_board`` or ``module_vdd_in``
    averaged_seconds: float = 0.0  # over how long the driver averages what it reports as power; 0 where it doesn't
    # How often it is read, where a reading takes a third of that at most; so chosen that readings are in step with
    # frames at no usual rate.
    interval_s: float = 0.019  # five readings of each value of a board that has ten a second
    accuracy: float  # relative systematic error that the maker states; it cancels in ratios of one sensor

    def read(self) -> Sample:
        """Read once; a failed reading is missing, never 0."""
        raise NotImplementedError

    def limit(self) -> Watt:
        """Return the highest power that is plausible: the enforced limit, or the ceiling of such a board."""
        raise NotImplementedError

    def voltages(self) -> Mapping[str, MilliVolt]:
        """Return the bus voltages beside the power, by file; a "power" that equals one of them is a voltage."""
        return {}

    def parts(self) -> Mapping[str, Watt]:
        """Return the powers of rails that this source's rail feeds, by label; none of them can exceed it."""
        return {}

    def facts(self) -> dict[str, Any]:
        """Return what was opened, as plain JSON values, for the provenance."""
        return {"name": self.name, "scope": self.scope, "accuracy": self.accuracy}


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
        at = attrgetter("at_ns")
        chosen = self.samples[bisect_left(self.samples, start_ns, key=at) : bisect_right(self.samples, end_ns, key=at)]
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
