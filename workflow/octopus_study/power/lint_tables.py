"""What the linter reads: stored tables of powers and energies in one form, whatever their layout and units."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from octopus_study.errors import MeasureError
from octopus_study.measure.rows import COLUMNS, HEADERS, KEY, read_rows
from octopus_study.units import sizes

LAYERS = ("back_to_back", "paced")
IDLE, TRACE = "idle", "trace"
SCOPES = ("gpu_board", "module_vdd_in", "cpu_package")
WINDOW_KEY = ["n", "method", "layer", "block"]
RELATIVE = ("fraction", "percent", "ratio")
_PUBLISHED = {"quantity", "value", "unit", "source"}
_UNITS = {kind: sizes(kind) for kind in ("power", "energy", "time")}
# Beginnings of the study's quantities -> their unit; the first that fits counts.
_RESULT_UNITS = {
    "power_capped": "fraction",
    "energy_uncertainty": "fraction",
    "energy_per_frame": "mJ",
    "window_energy": "J",
    "power": "W",
}


class Finding(NamedTuple):
    """Why a table is refused: the id of the check, and what it saw."""

    check: str
    message: str

    def __str__(self) -> str:
        return f"{self.check}: {self.message}"


@dataclass(frozen=True)
class Table:
    """A stored table.

    Attributes
    ----------
    rows : DataFrame
        As they are in the file, values as numbers.
    measured : bool
        Result rows of this artifact, with provenance; otherwise a published table.
    record : mapping
        What the provenance says of power; empty where there is none.
    frame_rate : float or None
        Frames per second that the provenance says were asked of paced windows.
    """

    rows: pd.DataFrame
    measured: bool
    record: Mapping[str, Any]
    frame_rate: float | None = None

    @cached_property
    def scopes(self) -> list[str]:
        """What the powers and energies of result rows are those of, as their names say; "" where one doesn't."""
        names = self.rows.loc[self.rows["value"].notna(), "quantity"].unique()
        return sorted({_scope(name) for name in names if _is_electrical(name) and name != "power_capped"})

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

    def named(self, name: str, *layers: str) -> pd.DataFrame:
        """Return the rows with a value of a quantity of the study, without the scope, in some layers."""
        rows = self.rows[self.rows["layer"].isin(layers) & self.rows["value"].notna()]
        names = (name, *(f"{name}_{scope}" for scope in self.scopes))
        return rows[rows["quantity"].isin(names)]

    @cached_property
    def windows(self) -> pd.DataFrame:
        """Windows with an energy, one per row: n, method, layer, block, and a column per quantity without scope."""
        return self._pivot(*LAYERS).dropna(subset="energy_per_frame").reset_index(drop=True)

    @cached_property
    def idle_windows(self) -> pd.DataFrame:
        """Idle windows, in the form of `windows`; block 0 is before a count, 1 behind it."""
        idle = self._pivot(IDLE)
        return idle[(idle["method"] == IDLE)].dropna(subset="power_mean").reset_index(drop=True)

    def _pivot(self, *layers: str) -> pd.DataFrame:
        rows = self.rows[self.rows["layer"].isin(layers) & self.rows["value"].notna()]
        names = rows["quantity"].map(lambda name: name.removesuffix(f"_{_scope(name)}"))
        table = (
            rows.assign(quantity=names)
            .pivot(index=WINDOW_KEY, columns="quantity", values="value")
            .reset_index()
        )
        wanted = ["time_per_frame", "frames", "window", "window_start", "power_mean", "energy_per_frame"]
        wanted += ["energy_per_frame_net", "window_energy_counter", "window_energy_integral"]
        return table.reindex(columns=[*WINDOW_KEY, *wanted])

    @cached_property
    def trace(self) -> tuple[np.ndarray, np.ndarray]:
        """The stored trace: seconds since its zero, ascending, and watts."""
        rows = self.named("power", TRACE).sort_values("block")
        return rows["block"].to_numpy() / 1000, rows["value"].to_numpy()

    @cached_property
    def loads(self) -> pd.DataFrame:
        """Powers under load: n, method, layer, block, and `low`, `high` in watts."""
        if not self.measured:
            powers = self._published("power")
            return powers[powers["method"] != IDLE]
        rows = self.named("power_mean", *LAYERS)
        return rows[WINDOW_KEY].assign(low=rows["value"], high=rows["value"])

    @cached_property
    def idle(self) -> pd.DataFrame:
        """Idle powers, in the form of `loads`."""
        if not self.measured:
            powers = self._published("power")
            return powers[powers["method"] == IDLE]
        rows = self.idle_windows
        return rows[WINDOW_KEY].assign(low=rows["power_mean"], high=rows["power_mean"])

    @cached_property
    def arms(self) -> pd.DataFrame:
        """Per n and method: `time` in s and `power` and `energy` in W and J per frame, back to back, medians."""
        if self.measured:
            rows = self.windows[self.windows["layer"] == LAYERS[0]]
            times, energies = rows["window"] / rows["frames"], rows["energy_per_frame"] / 1e3
            rows = rows[["n", "method"]].assign(time=times, power=rows["power_mean"], energy=energies)
            return rows.groupby(["n", "method"]).median()
        parts = {kind: self._published(kind) for kind in _UNITS}
        exact = {kind: part[part["low"] == part["high"]] for kind, part in parts.items()}
        columns = {kind: part.groupby(["n", "method"])["low"].median() for kind, part in exact.items()}
        return pd.DataFrame(columns, dtype=np.float64).query(f"method != '{IDLE}'")

    def _published(self, kind: str) -> pd.DataFrame:
        """Return a published quantity in watts, joules or seconds, as `low` and `high`."""
        rows, factors = self.rows[self.rows["quantity"] == kind], _UNITS[kind]
        if not {"n", "method"} <= set(rows.columns):
            rows = rows[:0].assign(n=0, method="")
        scale = rows["unit"].map(factors).astype(np.float64)  # no rows: pandas on pyarrow would keep strings
        low, high = (rows["value"].fillna(rows[end]) * scale for end in ("low", "high"))
        found = rows[["n", "method"]].assign(layer="", block=0, low=low.fillna(high), high=high.fillna(low))
        return found.dropna(subset="low")


def read_table(path: str | Path) -> Table | None:
    """Read a table; None where it holds neither powers nor energies.

    Raises
    ------
    MeasureError
        There is no such file, it is neither of result rows nor a published table, or it repeats result rows.
    """
    path = Path(path)
    if not path.is_file():
        raise MeasureError(f"There is no table {path} to check.")
    header = path.read_text(encoding="utf-8").partition("\n")[0].strip().split(",")
    if tuple(header) in HEADERS:
        rows = read_rows(path)
        if rows.duplicated([*KEY]).any():
            raise MeasureError(f"{path} repeats rows; `octopus validate` says which.")
        found = _provenance(path.with_suffix(".json"))
        rate = _within(found, "config", "values", "power", "frame_rate")
        table = Table(rows, True, _within(found, "extra", "power") or {}, rate)
    elif set(header) >= _PUBLISHED:
        rows = pd.read_csv(path)
        numbers = {name: pd.to_numeric(rows.get(name), errors="coerce") for name in ("value", "low", "high")}
        table = Table(rows.assign(**numbers), False, {})
    else:
        raise MeasureError(
            f"{path} has the columns {header}; the linter reads result rows ({', '.join(COLUMNS)}) and published "
            f"tables (with {', '.join(sorted(_PUBLISHED))})."
        )
    return table if any(map(_is_electrical, table.rows["quantity"].unique())) else None


def wrong_units(table: Table) -> pd.DataFrame:
    """Return the rows whose unit is not one of their quantity."""
    pairs = table.rows[["quantity", "unit"]].drop_duplicates()
    fits = _fits_result if table.measured else _fits_published
    bad = {(q, u) for q, u in pairs.itertuples(index=False) if _is_electrical(q) and not fits(q, u)}
    keys = pd.Series(zip(table.rows["quantity"], table.rows["unit"], strict=True), index=table.rows.index)
    return table.rows[keys.isin(bad)]


def _fits_result(quantity: str, unit: str) -> bool:
    return unit == next(each for start, each in _RESULT_UNITS.items() if quantity.startswith(start))


def _fits_published(quantity: str, unit: str) -> bool:
    if unit in RELATIVE:
        return quantity not in _UNITS
    return unit in _UNITS["power" if quantity.startswith("power") else "energy"]


def _is_electrical(quantity: str) -> bool:
    return str(quantity).startswith(("power", "energy", "window_energy"))


def _scope(quantity: str) -> str:
    return next((scope for scope in SCOPES if quantity.endswith(f"_{scope}")), "")


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
