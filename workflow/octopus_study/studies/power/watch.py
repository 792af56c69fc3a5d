"""Was the device slowed down during a window, and was it its power cap?

Heat and hardware brakes make a window a measurement of the room: its round is thrown away. The power cap is different:
a board that a load drives to its limit stays there, and a user of that load gets just that. Such a window is kept,
since its time and its energy are of the same stretch, and its rows say for how much of it the cap held.
"""

from __future__ import annotations

import time

from octopus_study.measure import CpuThrottle, GpuThrottle, _nvml

_POWER_REASONS = ("power cap", "power limit")


class Watch:
    """Asked after each window.

    Parameters
    ----------
    throttle : GpuThrottle or CpuThrottle
    """

    def __init__(self, throttle: GpuThrottle | CpuThrottle) -> None:
        self._throttle, self._is_gpu = throttle, isinstance(throttle, GpuThrottle)
        self.readable = throttle.readable
        self.restart()

    def restart(self) -> None:
        """Forget what was until now."""
        self._throttle()
        self._capped_ns, self._at_ns = self._lost_to_cap(), time.monotonic_ns()

    def slowed(self) -> str:
        """Say what but the power cap slowed the device down since the last call; empty when nothing did."""
        reasons = (self._throttle() or "").split(", ")
        return ", ".join(one for one in reasons if one and not one.startswith(_POWER_REASONS))

    def capped(self) -> float | None:
        """Return the share of the time since the last call in which the power cap held; None where it isn't told."""
        before, since = self._capped_ns, self._at_ns
        self._capped_ns, self._at_ns = self._lost_to_cap(), time.monotonic_ns()
        if before is None or self._capped_ns is None:
            return None
        return min(1.0, (self._capped_ns - before) / max(self._at_ns - since, 1))

    def _lost_to_cap(self) -> int | None:
        """Return for how long the power policy has held the clocks down, in nanoseconds since the driver was loaded."""
        if not self._is_gpu:
            return None
        status = _nvml.read("nvmlDeviceGetViolationStatus", "NVML_PERF_POLICY_POWER")
        return None if status is None else int(status.violationTime)
