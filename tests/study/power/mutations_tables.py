"""Stored tables that hold something else than energies, each otherwise whole and consistent."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from planting import Plant, planted_in
from synthetic_power import PowerRun, power_run

PLANTS: dict[str, Plant] = {}
planted = planted_in(PLANTS)
ROOT = Path(__file__).parents[3]


def stored(folder: Path, run: PowerRun) -> Path:
    """Write a run and return its table."""
    return run.write(folder)


@planted("voltage-table")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Path:
    return ROOT / "data/published/power_voltage_misread.csv"


@planted("voltage-table-relabelled")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Path:
    return ROOT / "data/published/power_voltage_relabelled.csv"


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


@planted("volts-in-the-column")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Path:
    run = power_run()
    run.rows.loc[run.select(quantity="power_mean_gpu_board"), "unit"] = "mV"
    return stored(folder, run)


@planted("two-scopes")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Path:
    run = power_run()
    idle = run.select(layer="idle")
    names = run.rows["quantity"].str.replace("gpu_board", "module_vdd_in")
    run.rows["quantity"] = run.rows["quantity"].where(~idle, names)
    return stored(folder, run)


@planted("no-record")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Path:
    run = power_run()
    run.power["selftest"] = None
    return stored(folder, run)


@planted("late-frames")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Path:
    run = power_run(frame_rate=25.0)
    run.frame_rate = 30.0
    return stored(folder, run)


@planted("silent-gap")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Path:
    run = power_run()
    gap = run.rows.index[run.select(quantity="energy_uncertainty_gpu_board")][0]
    run.rows.loc[gap, "value"] = np.nan
    return stored(folder, run)


@planted("power-of-another-run")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Path:
    run = power_run()
    run.scale(1.05, quantity="power_mean_gpu_board", method="octopus")
    return stored(folder, run)


@planted("time-of-another-run")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Path:
    run = power_run()
    run.scale(0.8, quantity="time_per_frame", layer="back_to_back", method="octopus")
    return stored(folder, run)


@planted("trace-of-another-run")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Path:
    run = power_run()
    run.scale(1.1, layer="trace")
    return stored(folder, run)


@planted("short-windows")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Path:
    return stored(folder, power_run(window_seconds=3.0, period_seconds=0.02))


@planted("few-windows")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Path:
    return stored(folder, power_run(windows=3))


@planted("idle-from-elsewhere")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Path:
    run = power_run()
    run.scale(1.5, quantity="energy_per_frame_net_gpu_board")
    return stored(folder, run)
