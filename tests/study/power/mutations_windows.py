"""Misuse of a sensor that is itself healthy: energies without its test, or net of an idle that moved."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from bench import Bench, Device
from fake_sensors import FakeBoard
from planting import Plant, board, planted_in

from octopus_study.power.energy import WindowEnergy, idle_power, window_energy
from octopus_study.power.selftest import PassedTest
from octopus_study.power.windows import Stretch, Window, back_to_back, idle

PLANTS: dict[str, Plant] = {}
planted = planted_in(PLANTS)


def idle_window(bench: Bench, proof: PassedTest, scope: str = "gpu_board") -> WindowEnergy:
    """Return the energy of an idle window on the bench, of a trace that names a scope."""
    bench.collect()
    window: Window = idle(Stretch(5.0, 2.0, 0.5), bench)
    return window_energy(window, replace(bench.collect(), scope=scope), proof)


@planted("no-test")
def _(folder: Path, patch: pytest.MonkeyPatch) -> object:
    return idle_window(board(), PassedTest("gpu_board"))


@planted("test-of-another")
def _(folder: Path, patch: pytest.MonkeyPatch) -> object:
    bench = board()
    return idle_window(bench, bench.test().proof(), "module_vdd_in")


@planted("freezes-later")
def _(folder: Path, patch: pytest.MonkeyPatch) -> object:
    still: list[float] = []

    def spoil(fake: FakeBoard, seconds: float) -> None:
        fake.broken["nvmlDeviceGetTotalEnergyConsumption"] = "Not Supported"
        fake.watts = still[0] if still else fake.watts

    bench = board(spoil=spoil)
    proof = bench.test().proof()
    still.append(250.0)
    bench.sleep(0.2)
    bench.collect()
    window = back_to_back(bench.load, Stretch(5.0, 1.0, 0.5), bench)
    return window_energy(window, bench.collect(), proof)


@planted("moving-idle")
def _(folder: Path, patch: pytest.MonkeyPatch) -> object:
    device = Device(125.5, 480.0, noise=1.5)
    bench = board(device)
    proof = bench.test().proof()
    before = idle_window(bench, proof)
    device.idle *= 1.1
    return idle_power(before, idle_window(bench, proof))
