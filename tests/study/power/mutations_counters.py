"""Mis-readings of NVML and of RAPL: other boards, other scales, counters that don't count."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
from bench import Bench, Device
from fake_sensors import FakeBoard, RaplTree
from planting import Plant, board, forbid, package, planted_in


class _Leak(Device):
    """Grows by 100 when work begins, and keeps 60 of it when the work ends."""

    starts, worked = 0, False

    def watts(self, seconds: float, working: bool) -> float:
        self.starts += working and not self.worked
        self.worked = working
        self.idle = 65.0 + 60.0 * self.starts
        self.load = self.idle + 40.0
        return super().watts(seconds, working)


class _Shared(Device):
    """Another program draws 100 W more until half of the test is over."""

    def watts(self, seconds: float, working: bool) -> float:
        more = 100.0 if seconds < 10.0 else 0.0
        self.idle, self.load = 100.0 + more, 150.0 + more
        return super().watts(seconds, working)


def scaled(factor: float) -> Device:
    """What draws so many times what the board does, beside the limit that it has."""
    return Device(125.5 * factor, 480.0 * factor, noise=1.5 * factor)


def third(seconds: float) -> bool:
    """Whether this is a third of the updates, each 100 ms."""
    return round(10 * seconds) % 3 == 2


def all_refused(fake: FakeBoard, seconds: float) -> None:
    for name in ("TotalEnergyConsumption", "PowerUsage", "EnforcedPowerLimit", "FieldValues"):
        fake.broken[f"nvmlDeviceGet{name}"] = "Not Supported"


def lost_at_times(fake: FakeBoard, seconds: float) -> None:
    fake.broken = {"nvmlDeviceGetFieldValues": "GPU is lost"} if third(seconds) else {}


def zero_at_times(fake: FakeBoard, seconds: float) -> None:
    fake.watts = 0.0 if third(seconds) else fake.watts


def reset_once(fake: FakeBoard, seconds: float) -> None:
    fake.counter_mj = 0 if math.isclose(seconds, 10.5) else fake.counter_mj


def counts(watts: float) -> Callable[[FakeBoard, float], None]:
    """A counter of something that draws so much."""
    return lambda fake, seconds: setattr(fake, "counter_mj", 2_000_000 + round(1e3 * watts * seconds))


def package_reset(tree: RaplTree, seconds: float) -> None:
    if math.isclose(seconds, 10.5):
        tree.energy_uj = 0
        tree.add_joules(0)


DEVICES: dict[str, Callable[[], Device]] = {
    "thousand-fold": lambda: scaled(1000.0),
    "thousandth": lambda: scaled(0.001),
    "other-gpu": lambda: Device(70.0, 72.0, noise=0.3),
    "constant": lambda: Device(250.0, 250.0, noise=0.0),
    "by-state": lambda: Device(70.0, 300.0, lag_seconds=1e-6, noise=0.0),
    "leak": lambda: _Leak(65.0, 105.0, noise=0.3),
    "not-alone": lambda: _Shared(100.0, 150.0),
}
BOARDS: dict[str, Callable[[FakeBoard, float], None]] = {
    "initialises-only": all_refused,
    "drops-out": lost_at_times,
    "zero-for-failed": zero_at_times,
    "counter-reset": reset_once,
    "counter-elsewhere": counts(81.0),
    "counter-frozen": counts(0.0),
}
PACKAGES: dict[str, Callable[[RaplTree, float], None]] = {
    "package-reset": package_reset,
    "package-empty": lambda tree, seconds: tree.write("energy_uj", ""),
    "package-frozen": lambda tree, seconds: tree.write("energy_uj", 1_000_000),
}
PLANTS: dict[str, Plant] = {
    **{name: lambda folder, patch, make=make: board(make()) for name, make in DEVICES.items()},
    **{name: lambda folder, patch, spoil=spoil: board(spoil=spoil) for name, spoil in BOARDS.items()},
    **{
        name: lambda folder, patch, spoil=spoil: package(folder, patch, spoil)
        for name, spoil in PACKAGES.items()
    },
}
planted = planted_in(PLANTS)


@planted("package-forbidden")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Bench:
    forbid(patch, "energy_uj")
    return package(folder, patch, lambda tree, seconds: None)
