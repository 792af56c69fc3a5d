"""What the linter asks of the windows of result rows: are they whole, long and many enough, and do they agree with
the trace, the counter and the idle power that lie beside them in the same file?"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pandas as pd

from octopus_study.power.energy import MOST_DRIFT
from octopus_study.power.judges import AGREEMENT
from octopus_study.power.lint_tables import IDLE, LAYERS, WINDOW_KEY, Table
from octopus_study.power.windows import LEAST_RATE, LEAST_SECONDS, LEAST_UPDATES

LEAST_WINDOWS = 5
# Two roads to one energy, both from stored rows: they differ by rounding and by what lies between two updates.
SAME = 0.02
LEAST_POINTS = 2
_NEEDED = ("time_per_frame", "frames", "window", "window_start", "power_mean")


def _whole(table: Table) -> str:
    """Time, frames, power and energy are of the same window, and none of them is missing."""
    rows = table.windows
    for name in _NEEDED:
        if lacking := int(rows[name].isna().sum()):
            return f"{lacking} windows with an energy have no {name}"
    spent = rows["window_energy_counter"].fillna(rows["window_energy_integral"])
    if lacking := int(spent.isna().sum()):
        return f"{lacking} windows have neither a counted nor an integrated energy"
    back = rows[rows["layer"] == LAYERS[0]]
    return differs(
        back, back["time_per_frame"] * back["frames"] / 1e3, back["window"], "frames don't fill their window"
    ) or differs(
        rows,
        rows["energy_per_frame"] * rows["frames"] / 1e3,
        spent,
        "energies per frame are of another window",
    )


def _counters(table: Table) -> str:
    rows = _all_windows(table).dropna(subset=["window_energy_counter", "window_energy_integral"])
    said = "counted energies are not those of the integral"
    return differs(rows, rows["window_energy_counter"], rows["window_energy_integral"], said, AGREEMENT)


def _length(table: Table) -> str:
    update = table.selftest.get("update_seconds") or 0.0
    least = max(LEAST_SECONDS, LEAST_UPDATES * update)
    rows = _all_windows(table)
    short = rows[rows["window"] < least - 1e-6]
    if short.empty:
        return ""
    first = short.iloc[0]
    return f"{len(short)} windows are shorter than {least:.3g} s, the first {first['window']:.3g} s ({row_name(first)})"


def _rate(table: Table) -> str:
    """At a fixed rate of frames, so many were made."""
    if table.frame_rate is None:
        return ""
    rows = table.windows[table.windows["layer"] == LAYERS[1]]
    rates = rows["frames"] / rows["window"]
    slow = rows[rates < LEAST_RATE * table.frame_rate]
    if slow.empty:
        return ""
    first = slow.iloc[0]
    return (
        f"{len(slow)} of {len(rows)} windows at {table.frame_rate:g} frames/s have fewer frames, the first "
        f"{rates[slow.index[0]]:.3g} frames/s ({row_name(first)})"
    )


def _count(table: Table) -> str:
    sizes = table.windows.groupby(WINDOW_KEY[:3]).size()
    few = sizes[sizes < LEAST_WINDOWS]
    if few.empty:
        return ""
    n, method, layer = few.index[0]
    return (
        f"{len(few)} arms have fewer than {LEAST_WINDOWS} windows with an energy, the first {few.iloc[0]} "
        f"(n={n}, {method}, {layer})"
    )


def _trace(table: Table) -> str:
    """Integrate the stored trace again over each window.

    Readings of the moment meet frames at a fixed rate always in the same phases, so they can't check the mean of those
    windows, for which there is no integral either; of others they know it as well as another sensor of the same board.
    """
    rows = _all_windows(table).dropna(subset=["window", "window_start"])
    counted = rows["window_energy_integral"].isna() & rows["window_energy_counter"].notna()
    apart = not counted.all()  # else the trace is the counter's own
    rows = rows[~((rows["layer"] == LAYERS[1]) & (counted & apart | table.momentary))]
    if rows.empty:
        return ""
    at, watts = table.trace
    spans = list(zip(rows["window_start"], rows["window_start"] + rows["window"], strict=True))
    seen = np.array([_points(at, start, end) for start, end in spans])
    poor = rows[(seen < LEAST_POINTS) & (rows["layer"] != IDLE).to_numpy() | (seen < 0)]
    if len(poor):
        return f"{len(poor)} windows are not in the stored trace, the first {row_name(poor.iloc[0])}"
    stored = rows["window_energy_integral"].fillna(rows["window_energy_counter"])
    again = pd.Series([_integral(at, watts, start, end) for start, end in spans], index=rows.index)
    said = "energies are not those of the stored trace"
    other = counted[rows.index] & apart | table.momentary  # one sensor's energy, another one's trace
    return differs(rows, stored, again, said, other.map({True: AGREEMENT, False: SAME}))


def _points(at: np.ndarray, start: float, end: float) -> int:
    """Count the values of a trace within a window; -1 where the trace doesn't reach around it."""
    if not len(at) or at[0] > start + 1 or at[-1] < end - 1:
        return -1
    return int(np.searchsorted(at, end, "right") - np.searchsorted(at, start, "left"))


def _integral(at: np.ndarray, watts: np.ndarray, start: float, end: float) -> float:
    """Return the joules of a part of a trace by the trapezoid rule, its ends interpolated."""
    inside = slice(np.searchsorted(at, start, "right"), np.searchsorted(at, end, "left"))
    times = np.concatenate(([start], at[inside], [end]))
    return float(np.trapezoid(np.interp(times, at, watts), times))


def _drift(table: Table) -> str:
    rows = table.windows.dropna(subset="energy_per_frame_net")
    drift = rows["n"].map(_idle_power(table)["drift"])
    wrong = rows[~(drift <= MOST_DRIFT)]
    if wrong.empty:
        return ""
    n = wrong.iloc[0]["n"]
    by = drift[wrong.index[0]]
    said = "idle is not known before and behind" if math.isnan(by) else f"idle drifted by {by:.1%}"
    return f"{len(wrong)} energies are net of idle although {said} (n={n})"


def _net(table: Table) -> str:
    rows = table.windows.dropna(subset="energy_per_frame_net")
    idle = rows["n"].map(_idle_power(table)["watts"]) * rows["window"] / rows["frames"] * 1e3
    # The net energy may be near nothing, so its error counts as a part of the gross one.
    said = "net energies are not gross less idle"
    return differs(rows, rows["energy_per_frame_net"] + idle, rows["energy_per_frame"], said)


def _idle_power(table: Table) -> pd.DataFrame:
    """Return per n the mean idle power in watts and its drift from before to behind."""
    levels = table.idle_windows.pivot(index="n", columns="block", values="power_mean").reindex(columns=[0, 1])
    return pd.DataFrame({"watts": levels.mean(axis=1), "drift": (levels[1] / levels[0] - 1).abs()})


def _all_windows(table: Table) -> pd.DataFrame:
    return pd.concat([table.windows, table.idle_windows], ignore_index=True)


def differs(
    rows: pd.DataFrame, found: pd.Series, expected: pd.Series, said: str, most: float | pd.Series = SAME
) -> str:
    """Say how many values are farther than `most` from what is expected; empty when none is."""
    apart = found / expected - 1
    wrong = apart[apart.abs() > most]
    if wrong.empty:
        return ""
    worst = wrong.abs().idxmax()
    return (
        f"{len(wrong)} of {len(rows)} {said}, the worst by {wrong[worst]:+.1%} ({row_name(rows.loc[worst])})"
    )


def row_name(row: pd.Series) -> str:
    """Name a row by what tells it apart."""
    parts = [f"n={row['n']}" if "n" in row else "", str(row.get("method", "")), str(row.get("layer", ""))]
    parts += [str(row[name]) for name in ("quantity",) if name in row]
    parts.append(f"block {row['block']}" if row.get("layer") else "")
    return ", ".join(part for part in parts if part)


WINDOW_CHECKS: dict[str, Callable[[Table], str]] = {
    "same-window": _whole,
    "counter-agrees": _counters,
    "trace-agrees": _trace,
    "window-length": _length,
    "frame-rate": _rate,
    "window-count": _count,
    "idle-drift": _drift,
    "net-of-idle": _net,
}
