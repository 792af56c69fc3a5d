"""Mis-readings of NVML and of RAPL: other boards, other scales, counters that don't count."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from bench import Bench, Device
from fake_sensors import FakeBoard, RaplTree
from planting import Plant, board, forbid, package, planted_in

PLANTS: dict[str, Plant] = {}
planted = planted_in(PLANTS)


@planted("initialises-only")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Bench:
    def spoil(fake: FakeBoard, seconds: float) -> None:
        for name in ("TotalEnergyConsumption", "PowerUsage", "EnforcedPowerLimit", "FieldValues"):
            fake.broken[f"nvmlDeviceGet{name}"] = "Not Supported"

    return board(spoil=spoil)


@planted("drops-out")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Bench:
    calls = iter(range(10**6))

    def spoil(fake: FakeBoard, seconds: float) -> None:
        fake.broken.clear()
        if next(calls) % 3 == 2:
            fake.broken["nvmlDeviceGetFieldValues"] = "GPU is lost"

    return board(spoil=spoil)


@planted("zero-for-failed")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Bench:
    calls = iter(range(10**6))

    def spoil(fake: FakeBoard, seconds: float) -> None:
        if next(calls) % 3 == 2:
            fake.watts = 0.0

    return board(spoil=spoil)


@planted("thousand-fold")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Bench:
    return _scaled(1000.0)


@planted("thousandth")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Bench:
    return _scaled(0.001)


def _scaled(factor: float) -> Bench:
    """A board that draws so many times what it does, beside the limit that it has."""
    return board(Device(125.5 * factor, 480.0 * factor, noise=1.5 * factor))


@planted("other-gpu")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Bench:
    return board(Device(70.0, 72.0, noise=0.3))


@planted("constant")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Bench:
    return board(Device(250.0, 250.0, noise=0.0))


@planted("by-state")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Bench:
    return board(Device(70.0, 300.0, lag_seconds=1e-6, noise=0.0))


class _Leak(Device):
    """Grows by 100 when work begins, and keeps 60 of it when the work ends."""

    starts, worked = 0, False

    def watts(self, seconds: float, working: bool) -> float:
        self.starts += working and not self.worked
        self.worked = working
        self.idle = 65.0 + 60.0 * self.starts
        self.load = self.idle + 40.0
        return super().watts(seconds, working)


@planted("leak")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Bench:
    return board(_Leak(65.0, 105.0, noise=0.3))


class _Shared(Device):
    """Another program draws 100 W more until half of the test is over."""

    def watts(self, seconds: float, working: bool) -> float:
        more = 100.0 if seconds < 10.0 else 0.0
        self.idle, self.load = 100.0 + more, 150.0 + more
        return super().watts(seconds, working)


@planted("not-alone")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Bench:
    return board(_Shared(100.0, 150.0))


@planted("counter-reset")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Bench:
    def spoil(fake: FakeBoard, seconds: float) -> None:
        if math.isclose(seconds, 10.5):
            fake.counter_mj = 0

    return board(spoil=spoil)


@planted("counter-elsewhere")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Bench:
    def spoil(fake: FakeBoard, seconds: float) -> None:
        fake.counter_mj = 2_000_000 + round(81_000 * seconds)

    return board(spoil=spoil)


@planted("counter-frozen")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Bench:
    def spoil(fake: FakeBoard, seconds: float) -> None:
        fake.counter_mj = 2_000_000

    return board(spoil=spoil)


@planted("package-reset")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Bench:
    def spoil(tree: RaplTree, seconds: float) -> None:
        if math.isclose(seconds, 10.5):
            tree.energy_uj = 0
            tree.add_joules(0)

    return package(folder, patch, spoil)


@planted("package-forbidden")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Bench:
    forbid(patch, "energy_uj")
    return package(folder, patch, lambda tree, seconds: None)


@planted("package-empty")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Bench:
    return package(folder, patch, lambda tree, seconds: tree.write("energy_uj", ""))


@planted("package-frozen")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Bench:
    return package(folder, patch, lambda tree, seconds: tree.write("energy_uj", 1_000_000))
