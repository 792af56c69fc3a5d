"""Every mis-reading of the catalogue, planted in a healthy sensor, and the healthy sensors themselves."""

from __future__ import annotations

from pathlib import Path

import mutations_counters
import mutations_hwmon
import mutations_tables
import mutations_windows
import pytest
from bench import Bench
from fake_sensors import FakeBoard
from planting import Plant, board, jetson, package, planted_in

from octopus_study.errors import MeasureError
from octopus_study.power.lint import lint_file

PLANTS: dict[str, Plant] = {
    **mutations_hwmon.PLANTS,
    **mutations_counters.PLANTS,
    **mutations_windows.PLANTS,
    **mutations_tables.PLANTS,
}
HEALTHY: dict[str, Plant] = {}
planted = planted_in(HEALTHY)


def refusal(plant: Plant, folder: Path, patch: pytest.MonkeyPatch) -> tuple[str, str] | None:
    """Build what was planted, test it if it is a bench, and lint it if it is a table.

    Returns
    -------
    tuple of str or None
        The check that refused it and the reason; None where nothing did.
    """
    try:
        built = plant(folder, patch)
        if isinstance(built, Path):
            return next(iter(lint_file(built)), None)
        test = built.test() if isinstance(built, Bench) else None
    except MeasureError as error:
        return getattr(error, "check", "none"), str(error)
    return (test.failed[0], test.reason) if test is not None and test.failed else None


@planted("INA3221 of a Jetson")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Bench:
    return jetson(folder)


@planted("NVML with instantaneous power")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Bench:
    return board()


@planted("NVML with averaged power alone")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Bench:
    return board(instant=False)


@planted("NVML without a counter")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Bench:
    def spoil(fake: FakeBoard, seconds: float) -> None:
        fake.broken["nvmlDeviceGetTotalEnergyConsumption"] = "Not Supported"

    return board(spoil=spoil)


@planted("RAPL")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Bench:
    return package(folder, patch, lambda tree, seconds: None)


@planted("RAPL whose counter is full within the test")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Bench:
    return package(folder, patch, lambda tree, seconds: None, energy_uj=250_000_000, range_uj=300_000_000)
