"""Stored tables that hold something else than energies, each otherwise whole and consistent."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from lint_defects import DEFECTS
from planting import Plant, planted_in

PUBLISHED = Path(__file__).parents[3] / "data" / "published"
# Mis-readings that are a defect of a stored run.
STORED = {
    "volts-in-the-column": "millivolts_in_a_power",
    "two-scopes": "idle_of_another_scope",
    "no-record": "no_record",
    "late-frames": "frames_that_come_late",
    "silent-gap": "gap_without_a_reason",
    "power-of-another-run": "power_of_another_run",
    "time-of-another-run": "time_of_another_run",
    "trace-of-another-run": "trace_of_another_run",
    "short-windows": "windows_of_two_seconds",
    "few-windows": "four_windows",
    "idle-from-elsewhere": "net_of_an_idle_from_elsewhere",
}
PLANTS: dict[str, Plant] = {
    "voltage-table": lambda folder, patch: PUBLISHED / "power_voltage_misread.csv",
    "voltage-table-relabelled": lambda folder, patch: PUBLISHED / "power_voltage_relabelled.csv",
    **{
        name: lambda folder, patch, make=DEFECTS[defect].make: make().write(folder)
        for name, defect in STORED.items()
    },
}
planted = planted_in(PLANTS)


@planted("power-by-name")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Path:
    """15 W, whatever ran; idle measured, so that nothing else is wrong."""
    rows: list[tuple[int, str, str, float, str]] = [(0, "idle", "power", 5.7, "W")]
    for n in (50, 500, 1000, 2000):
        for method, per_box in (("one-launch", 0.2), ("n-launches", 0.245)):
            time = n * per_box + 1
            rows += [(n, method, "time", time, "ms"), (n, method, "power", 15.0, "W")]
            rows.append((n, method, "energy", 15.0 * time, "mJ"))
    table = pd.DataFrame(rows, columns=["n", "method", "quantity", "value", "unit"])
    folder.mkdir(parents=True, exist_ok=True)
    table.assign(low=np.nan, high=np.nan, source="made up").to_csv(folder / "power.csv", index=False)
    return folder / "power.csv"
