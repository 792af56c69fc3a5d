"""The GPU's clocks while a study measures, in MHz: read between blocks, so that no timed run sees it."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

from octopus_study.measure import _nvml

PERIOD_S = 1.0  # a reading takes some microseconds to milliseconds; one in a second costs a study nothing
_CLOCKS = {"sm_mhz": "NVML_CLOCK_SM", "memory_mhz": "NVML_CLOCK_MEM"}


class ClockRates:
    """Readings of the SM and memory clock; the watchers of throttling ask for one after each block.

    Parameters
    ----------
    now : callable
        Seconds; tests give their own.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._next = -float("inf")
        self._readings: dict[str, list[int]] = {name: [] for name in _CLOCKS}

    def read(self) -> None:
        """Read both clocks, unless they were read within the last second."""
        if self._now() < self._next:
            return
        self._next = self._now() + PERIOD_S
        for name, kind in _CLOCKS.items():
            value = _nvml.read("nvmlDeviceGetClockInfo", kind)
            if value is not None:
                self._readings[name].append(int(value))

    def summary(self) -> dict[str, Any]:
        """Return ``readings`` and, per clock, ``median``, ``min`` and ``max`` in MHz; None where it was never read."""
        return {"readings": max(map(len, self._readings.values()))} | {
            name: {"median": float(statistics.median(found)), "min": min(found), "max": max(found)} if found else None
            for name, found in self._readings.items()
        }
