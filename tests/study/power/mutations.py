"""Every mis-reading of the catalogue, planted in a healthy sensor, and the healthy sensors themselves."""

from __future__ import annotations

from pathlib import Path

import mutations_counters
import mutations_hwmon
import mutations_tables
import mutations_windows
import pytest
from bench import Bench
from fake_sensors import FakeBoard, RaplTree
from planting import Plant, board, jetson, package

from octopus_study.errors import MeasureError
from octopus_study.power.lint import lint_file

PLANTS: dict[str, Plant] = {
    **mutations_hwmon.PLANTS,
    **mutations_counters.PLANTS,
    **mutations_windows.PLANTS,
    **mutations_tables.PLANTS,
}


def without_counter(fake: FakeBoard, seconds: float) -> None:
    fake.broken["nvmlDeviceGetTotalEnergyConsumption"] = "Not Supported"


def untouched(tree: RaplTree, seconds: float) -> None:
    pass


FULL_SOON = {"energy_uj": 250_000_000, "range_uj": 300_000_000}
HEALTHY: dict[str, Plant] = {
    "INA3221 of a Jetson": lambda folder, patch: jetson(folder),
    "NVML with instantaneous power": lambda folder, patch: board(),
    "NVML with averaged power alone": lambda folder, patch: board(instant=False),
    "NVML without a counter": lambda folder, patch: board(spoil=without_counter),
    "RAPL": lambda folder, patch: package(folder, patch, untouched),
    "RAPL whose counter is full within the test": lambda folder, patch: package(
        folder, patch, untouched, **FULL_SOON
    ),
}


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
