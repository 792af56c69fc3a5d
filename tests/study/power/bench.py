"""A bench in simulated time: the files or calls of a real source follow a device, while the time passes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from octopus_study.power.selftest import SelfTest, power_on_test
from octopus_study.power.source import Sample, SensorError
from octopus_study.power.trace import Failure, Trace

STEP_NS = 20_000_000


class Bench:
    """Time, a device that is idle or works, and a sampler of a source.

    Parameters
    ----------
    apply : callable
        Told each 20 ms the seconds since the beginning and whether the device works; moves the sensor.
    """

    def __init__(self, apply: Callable[[float, bool], None], step_ns: int = STEP_NS) -> None:
        self._apply, self._step_ns = apply, step_ns
        self._now_ns = 1_000_000_000
        self._working = False
        self._samples: list[Sample] = []
        self._failures: list[Failure] = []
        self.source: Any = None

    def monotonic_ns(self) -> int:
        return self._now_ns

    def sleep(self, seconds: float) -> None:
        end = self._now_ns + round(seconds * 1e9)
        while self._now_ns < end:
            self._now_ns += self._step_ns
            self._apply((self._now_ns - 1_000_000_000) * 1e-9, self._working)
            self._sample()

    def load(self) -> None:
        """Work for 40 ms."""
        self._working = True
        self.sleep(0.04)
        self._working = False

    def _sample(self) -> None:
        try:
            sample = self.source.read()
        except SensorError as error:
            self._failures.append(Failure(self._now_ns, str(error)))
            return
        self._samples.append(replace(sample, at_ns=self._now_ns, took_ns=1_000_000))

    def collect(self) -> Trace:
        trace = Trace(self.source.scope, tuple(self._samples), tuple(self._failures))
        self._samples, self._failures = [], []
        return trace

    def test(self) -> SelfTest:
        """Run the power-on test on the bench."""
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
