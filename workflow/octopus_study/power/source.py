"""What a power sensor gives: samples with their own times, or a reason why there are none."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from octopus_study.power.quantities import MilliJoule, MilliVolt, RefusedError, Watt


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
