"""A bench in simulated time: the files or calls of a real source follow a device, while the time passes."""

import math
from collections.abc import Callable
from dataclasses import replace

from synthetic_power import Machine

from octopus_study.power.selftest import SelfTest, power_on_test
from octopus_study.power.source import PowerSource, Sample


class Bench(Machine):
    """A machine whose sampler reads a real source.

    Parameters
    ----------
    apply : callable
        Told on each beat the seconds since the beginning and whether the device works; moves the sensor.
    open_source : callable
        Opens the source, when the sensor has moved once.
    """

    def __init__(self, apply: Callable[[float, bool], None], open_source: Callable[[], PowerSource], **settings: int):
        super().__init__(**settings)
        self._apply = apply
        apply(0.0, False)
        self.source = open_source()
        self.scope = self.source.scope
        self.load = self.frame(40, 2 * self.idle_watts)

    def read(self) -> Sample:
        self._apply(self.seconds, self.watts > self.idle_watts)
        return replace(self.source.read(), at_ns=self.now_ns, took_ns=1_000_000)

    def test(self) -> SelfTest:
        """Run the power-on test of the source."""
        return power_on_test(self.source, self.collect, self.load, clock=self)


def ripple(seconds: float, size: float) -> float:
    """Return a small signal that never repeats within a test, so that no run differs from another."""
    return size * (math.sin(17.3 * seconds) + math.sin(41.9 * seconds + 1.0)) / 2


class Device:
    """Draws idle or load watts, reached by an exponential within about a second."""

    def __init__(self, idle: float = 10.0, load: float = 30.0, lag_seconds: float = 0.2, noise: float = 0.05) -> None:
        self.idle, self.load, self.lag, self.noise = idle, load, lag_seconds, noise
        self.level, self.joules, self._at = idle, 0.0, 0.0

    def watts(self, seconds: float, working: bool) -> float:
        """Move to a time and return the power there."""
        passed, self._at = seconds - self._at, seconds
        target = self.load if working else self.idle
        self.level += (target - self.level) * (1 - math.exp(-passed / self.lag))
        watts = self.level + ripple(seconds, self.noise)
        self.joules += watts * passed
        return watts
