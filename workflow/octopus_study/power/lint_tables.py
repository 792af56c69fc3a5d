"""What the linter reads: stored tables of powers and energies in one form, whatever their layout and units."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from octopus_study.errors import MeasureError
from octopus_study.measure.rows import COLUMNS, KEY, read_rows
from octopus_study.units import sizes

LAYERS = ("back_to_back", "paced")
IDLE, TRACE = "idle", "trace"
WINDOW_KEY = ["n", "method", "layer", "block"]
UNITS = {kind: sizes(kind) for kind in ("power", "energy", "time")}
_RELATIVE = ("fraction", "percent", "ratio")
_PUBLISHED = {"quantity", "value", "unit", "source"}
# Beginnings of the study's quantities -> their unit; the first that fits counts.
_RESULT_UNITS = {
    "power_capped": "fraction",
    "energy_uncertainty": "fraction",
    "energy_per_frame": "mJ",
    "window_energy": "J",
    "power": "W",
}
_COLUMNS = (
    *("time_per_frame", "frames", "window", "window_start", "power_mean", "energy_per_frame"),
    *("energy_per_frame_net", "window_energy_counter", "window_energy_integral"),
)


@dataclass(frozen=True)
class Table:
    """A stored table."""

    rows: pd.DataFrame  # as they are in the file, values as numbers
    measured: bool  # result rows of this artifact, with provenance; otherwise a published table
    record: Mapping[str, Any]  # what the provenance says of power; empty where there is none
    frame_rate: float | None = None  # frames per second that the provenance says were asked of paced windows

    @cached_property
    def scopes(self) -> list[str]:
        """What the powers and energies of result rows are those of; "" where one doesn't say it."""
        rows = self.rows[self.rows["value"].notna() & (self.rows["quantity"] != "power_capped")]
        return sorted(rows.loc[_electrical(rows["quantity"]), "scope"].unique())

    @property
    def selftest(self) -> Mapping[str, Any]:
        """The record of the power-on test; empty where there is none."""
        return self.record.get("selftest") or {}

    @property
    def limit(self) -> float | None:
        """Watts that the sensor can't exceed, where the power-on test recorded them."""
        return self.selftest.get("limit_w")

    @property
    def momentary(self) -> bool:
        """Whether the stored trace is of readings of the moment, while the driver's own mean was integrated."""
        source = self.record.get("source") or {}
        return source.get("integrated", "power") not in ("power", source.get("power"))

    def _known(self, *layers: str) -> pd.DataFrame:
        return self.rows[self.rows["layer"].isin(layers) & self.rows["value"].notna()]

    def _pivot(self, *layers: str) -> pd.DataFrame:
        table = self._known(*layers).pivot(index=WINDOW_KEY, columns="quantity", values="value")
        return table.reindex(columns=_COLUMNS).reset_index()

    @cached_property
    def windows(self) -> pd.DataFrame:
        """Windows with an energy, one per row: n, method, layer, block, and a column per quantity."""
        return self._pivot(*LAYERS).dropna(subset="energy_per_frame").reset_index(drop=True)

    @cached_property
    def idle_windows(self) -> pd.DataFrame:
        """Idle windows, in the form of `windows`; block 0 is before a count, 1 behind it."""
        idle = self._pivot(IDLE)
        return idle[(idle["method"] == IDLE)].dropna(subset="power_mean").reset_index(drop=True)

    @cached_property
    def all_windows(self) -> pd.DataFrame:
        """Windows under load and idle."""
        return pd.concat([self.windows, self.idle_windows], ignore_index=True)

    @cached_property
    def trace(self) -> tuple[np.ndarray, np.ndarray]:
        """The stored trace: seconds since its zero, ascending, and watts."""
        rows = self._known(TRACE)
        rows = rows[rows["quantity"] == "power"].sort_values("block")
        return rows["block"].to_numpy() / 1000, rows["value"].to_numpy()

    @cached_property
    def loads(self) -> pd.DataFrame:
        """Powers under load: n, method, layer, block, and `low`, `high` in watts."""
        if not self.measured:
            return self._published("power").query(f"method != '{IDLE}'")
        rows = self._known(*LAYERS)
        return _powers(rows[rows["quantity"] == "power_mean"].rename(columns={"value": "power_mean"}))

    @cached_property
    def idle(self) -> pd.DataFrame:
        """Idle powers, in the form of `loads`."""
        if not self.measured:
            return self._published("power").query(f"method == '{IDLE}'")
        return _powers(self.idle_windows)

    @cached_property
    def arms(self) -> pd.DataFrame:
        """Per n and method: `time` in s and `power` and `energy` in W and J per frame, back to back, medians."""
        if self.measured:
            rows = self.windows[self.windows["layer"] == LAYERS[0]]
            times, energies = rows["window"] / rows["frames"], rows["energy_per_frame"] / 1e3
            rows = rows[["n", "method"]].assign(time=times, power=rows["power_mean"], energy=energies)
            return rows.groupby(["n", "method"]).median()
        parts = {kind: self._published(kind) for kind in UNITS}
        exact = {kind: part[part["low"] == part["high"]] for kind, part in parts.items()}
        columns = {kind: part.groupby(["n", "method"])["low"].median() for kind, part in exact.items()}
        return pd.DataFrame(columns, dtype=np.float64).query(f"method != '{IDLE}'")

    def _published(self, kind: str) -> pd.DataFrame:
        """Return a published quantity in watts, joules or seconds, as `low` and `high`."""
        rows = self.rows[self.rows["quantity"] == kind]
        scale = rows["unit"].map(UNITS[kind]).astype(np.float64)  # no rows: pandas on pyarrow would keep strings
        low, high = (rows["value"].fillna(rows[end]) * scale for end in ("low", "high"))
        return rows[WINDOW_KEY].assign(low=low.fillna(high), high=high.fillna(low)).dropna(subset="low")

    @cached_property
    def wrong_units(self) -> pd.DataFrame:
        """The rows of powers and energies whose unit is not one of their quantity."""
        rows = self.rows[_electrical(self.rows["quantity"])]
        fits = cache(_fits_result if self.measured else _fits_published)
        return rows[[not fits(*each) for each in zip(rows["quantity"].tolist(), rows["unit"].tolist(), strict=True)]]


def _powers(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[WINDOW_KEY].assign(low=rows["power_mean"], high=rows["power_mean"])


def _electrical(quantity: pd.Series) -> pd.Series:
    return quantity.astype(str).str.startswith(("power", "energy", "window_energy"))


def _fits_result(quantity: str, unit: str) -> bool:
    return unit == next(each for start, each in _RESULT_UNITS.items() if quantity.startswith(start))


def _fits_published(quantity: str, unit: str) -> bool:
    if unit in _RELATIVE:
        return quantity not in UNITS
    return unit in UNITS["power" if quantity.startswith("power") else "energy"]


def read_table(path: str | Path) -> Table | None:
    """Read a table of result rows or a published one; None where it holds neither powers nor energies."""
    path = Path(path)
    if not path.is_file():
        raise MeasureError(f"There is no table {path} to check.")
    header = path.read_text(encoding="utf-8").partition("\n")[0].strip().split(",")
    if tuple(header) == COLUMNS:
        rows = read_rows(path)
        if rows.duplicated([*KEY]).any():
            raise MeasureError(f"{path} repeats rows; `octopus validate` says which.")
        found = _provenance(path.with_suffix(".json"))
        rate = _within(found, "config", "values", "power", "frame_rate")
        table = Table(rows, True, _within(found, "extra", "power") or {}, rate)
    elif set(header) >= _PUBLISHED:
        rows = pd.read_csv(path).assign(layer="", block=0)
        rows = rows if {"n", "method"} <= set(rows.columns) else rows.assign(n=0, method="")
        numbers = {name: pd.to_numeric(rows.get(name), errors="coerce") for name in ("value", "low", "high")}
        table = Table(rows.assign(**numbers), False, {})
    else:
        raise MeasureError(
            f"{path} has the columns {header}; the linter reads result rows ({', '.join(COLUMNS)}) and published "
            f"tables (with {', '.join(sorted(_PUBLISHED))}). Measure the study again, or name another table."
        )
    return table if _electrical(table.rows["quantity"]).any() else None


def _provenance(path: Path) -> Any:
    """Read the provenance; one that can't be read says nothing."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _within(content: Any, *names: str) -> Any:
    """Return what stands under these names; None where one of them isn't there."""
    for name in names:
        content = content.get(name) if isinstance(content, Mapping) else None
    return content
