"""The results linter: stored tables of powers and energies are read again, and one that can't be true is refused.

The power-on test stops a wrong sensor before an energy is measured. The linter is the second line. It asks only whether
the numbers of a table can be what their names say, and so it also judges tables of unknown origin. A voltage that
was read as a power shows in the table itself: the load draws less than idle, and energy is a constant times time.

Two layouts are read: result rows of the study `power`, with the provenance beside them, and published tables
(``n, method, quantity, value, low, high, unit, source``). A table with neither powers nor energies has no findings.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from octopus_study.names import AGAIN
from octopus_study.power.energy import MOST_DRIFT
from octopus_study.power.judges import AGREEMENT, HIGHEST_SHARE, LOWEST_SHARE, PASSED
from octopus_study.power.lint_tables import IDLE, LAYERS, UNITS, WINDOW_KEY, Table, read_table
from octopus_study.power.windows import LEAST_RATE, LEAST_SECONDS, LEAST_UPDATES
from octopus_study.status import MethodStatus

LEAST_RATIOS, LEAST_DEVIATION = 4, 0.01
# No board that this artifact runs on idles below or works above this; it only serves tables without a known limit.
PLAUSIBLE_WATTS = (0.1, 2000.0)
# At a fixed frame rate a quick method leaves the device idle nearly all the time; idle is known no better than this.
PACED_TOLERANCE = 0.01
# Means of a sensor that stands still differ by rounding alone: a load that draws so little more draws as much as idle.
SAME_POWER = 1e-6
LEAST_WINDOWS = 5
# Two ways to one energy, both from stored rows: they differ by rounding and by what lies between two updates.
SAME = 0.02
LEAST_POINTS = 2
# What the numbers are; where this is wrong, nothing else is asked.
MEANING = ("typed-units", "scope")
# Without these the record is not that of a power-on test, whatever it says.
_TOLD_BY_LOAD = ("distinct-values", "rises", "load-above-idle")


class Finding(NamedTuple):
    """Why a table is refused: the id of the rule, and what it saw."""

    check: str
    message: str

    def __str__(self) -> str:
        return f"{self.check}: {self.message}"


def lint_file(path: str | Path) -> list[Finding]:
    """Check a stored table, ``data/results/<machine>/power.csv`` with its provenance beside it or a published one; one
    finding per rule that refuses it. Where units or scopes are wrong, the numbers mean nothing, and nothing else is
    asked."""
    table = read_table(path)
    if table is None:
        return []
    found: list[Finding] = []
    for check, ask in LINTS.items():
        if (check in MEANING or not any(one.check in MEANING for one in found)) and (message := ask(table)):
            found.append(Finding(check, message))
    return found


def _units(table: Table) -> str:
    first = lambda row: f"{row['quantity']} in {row['unit']}"  # noqa: E731
    return _some(table.wrong_units, "rows have a unit of something else", first)


def _scope(table: Table) -> str:
    if not table.measured or len(table.scopes) == 0:
        return ""
    if "" in table.scopes:
        return "a power or energy doesn't say what it is that of"
    return "" if len(table.scopes) == 1 else f"powers of {' and '.join(table.scopes)} in one table"


def _power_on(table: Table) -> str:
    if not table.measured or not table.scopes:
        return ""
    test, scope = table.selftest, table.scopes[0]
    if not test:
        return "the provenance has no record of a power-on test"
    if test.get("passed") is not True:
        return f"the power-on test failed ({test.get('reason') or 'no reason given'})"
    if test.get("scope") != scope:
        return f"the power-on test was of {test.get('scope')}, the powers are of {scope}"
    outcomes = {each.get("id"): each.get("outcome") for each in test.get("checks") or []}
    open_ = [check for check in _TOLD_BY_LOAD if outcomes.get(check) != PASSED]
    return f"the record of the power-on test does not say that it passed {', '.join(open_)}" if open_ else ""


def _above_idle(table: Table) -> str:
    loads, idle = table.loads, table.idle
    if idle.empty:
        return "idle was not measured" if table.measured and len(loads) else ""
    groups = {n: rows for n, rows in idle.groupby("n")}
    near = [groups.get(n, idle) for n in loads["n"]]
    least = [least_load(rows["low"], rows["high"], at) for rows, at in zip(near, loads["layer"], strict=True)]
    wrong = loads.assign(least=least)[loads["low"] <= np.array(least)]
    said = f"of {len(loads)} powers under load are below idle or equal it"
    return _some(wrong, said, lambda row: f"{row['low']:.4g} W against {row['least']:.4g} W")


def least_load(low: Iterable[float], high: Iterable[float], layer: str) -> float:
    """Return the watts that a load must exceed, from bounds of the idle powers beside it: any of them, or at a fixed
    frame rate, where the device is idle nearly all the time, nearly the lowest."""
    return min(low) * (1 - PACED_TOLERANCE) if layer == LAYERS[1] else max(high) * (1 + SAME_POWER)


def _identity(table: Table) -> str:
    if table.measured and not _power_on(table):
        return ""
    logs = np.array(list(log_ratios(table.arms)))
    if len(logs) < LEAST_RATIOS or (spread := float(logs.std(ddof=1))) >= LEAST_DEVIATION:
        return ""
    return (
        f"energy is a constant times time: over {len(logs)} pairs of arms log(energy ratio / time ratio) deviates by "
        f"{spread:.2g} only, and no power-on test was passed"
    )


def log_ratios(arms: pd.DataFrame) -> Iterator[float]:
    """Yield log(energy ratio / time ratio) of the methods at each n; of a single method's n where there is but one."""
    powers = (arms["energy"] / arms["time"]).fillna(arms["power"]).dropna()
    powers = powers[[not name.endswith(AGAIN) for name in powers.index.get_level_values("method")]]
    table = np.log(powers).unstack("method")
    if table.shape[1] == 1:
        only = table.iloc[:, 0]
        yield from only.iloc[1:] - only.iloc[0]
    for one, other in combinations(table.columns, 2):
        yield from (table[one] - table[other]).dropna()


def _range(table: Table) -> str:
    limit = table.limit
    low, high = PLAUSIBLE_WATTS if limit is None else (LOWEST_SHARE * limit, HIGHEST_SHARE * limit)
    powers = pd.concat([table.loads, table.idle])
    wrong = powers[(powers["low"] < low) | (powers["high"] > high)]
    said = f"of {len(powers)} powers are not within the plausible {low:.3g} to {high:.4g} W"
    return _some(wrong, said, lambda row: f"{row['high'] if row['high'] > high else row['low']:.4g} W")


def _missing(table: Table) -> str:
    rows = table.rows
    if table.measured:
        silent = rows[rows["value"].isna() & (rows["status"] != MethodStatus.UNAVAILABLE)]
        if len(silent):
            return _some(silent, "values are missing without a reason")
    absolute = rows["unit"].isin({unit for units in UNITS.values() for unit in units})
    # Net of idle may be about nothing, and the trace may begin with a window.
    may_be_zero = rows["quantity"].str.contains("_net") | (rows["quantity"] == "window_start")
    zero = rows[absolute & ~may_be_zero & (rows["value"] <= 0)]
    return _some(zero, "values are 0 or less", lambda row: f"{row['value']:g} {row['unit']}")


def _product(table: Table) -> str:
    said = "energies are not power times time"
    if table.measured:
        rows = table.windows
        expected = rows["power_mean"] * rows["window"] / rows["frames"] * 1e3
        return _differs(rows, rows["energy_per_frame"], expected, said)
    arms = table.arms.dropna().reset_index()
    return _differs(arms, arms["energy"], arms["power"] * arms["time"], said)


def _whole(table: Table) -> str:
    rows = table.windows
    for name in ("time_per_frame", "frames", "window", "window_start", "power_mean"):
        if lacking := int(rows[name].isna().sum()):
            return f"{lacking} windows with an energy have no {name}"
    spent = rows["window_energy_counter"].fillna(rows["window_energy_integral"])
    if lacking := int(spent.isna().sum()):
        return f"{lacking} windows have neither a counted nor an integrated energy"
    back = rows[rows["layer"] == LAYERS[0]]
    filled, per_window = back["time_per_frame"] * back["frames"], rows["energy_per_frame"] * rows["frames"]
    return _differs(back, filled / 1e3, back["window"], "frames don't fill their window") or _differs(
        rows, per_window / 1e3, spent, "energies per frame are of another window"
    )


def _counters(table: Table) -> str:
    rows = table.all_windows.dropna(subset=["window_energy_counter", "window_energy_integral"])
    said = "counted energies are not those of the integral"
    return _differs(rows, rows["window_energy_counter"], rows["window_energy_integral"], said, AGREEMENT)


def _trace(table: Table) -> str:
    """Integrate the stored trace again over each window. Readings of the moment meet frames at a fixed rate always in
    the same phases, so they can't check the mean of those windows, for which there is no integral either; of others
    they know it as well as another sensor of the same board."""
    rows = table.all_windows.dropna(subset=["window", "window_start"])
    counted = rows["window_energy_integral"].isna() & rows["window_energy_counter"].notna()
    rows = rows[~((rows["layer"] == LAYERS[1]) & (counted | table.momentary))]
    if rows.empty:
        return ""
    at, watts = table.trace
    spans = list(zip(rows["window_start"], rows["window_start"] + rows["window"], strict=True))
    seen = np.array([_points(at, start, end) for start, end in spans])
    poor = rows[(seen < LEAST_POINTS) & (rows["layer"] != IDLE).to_numpy() | (seen < 0)]
    if len(poor):
        return _some(poor, "windows are not in the stored trace")
    stored = rows["window_energy_integral"].fillna(rows["window_energy_counter"])
    again = pd.Series([_integral(at, watts, start, end) for start, end in spans], index=rows.index)
    other = counted[rows.index] | table.momentary  # one sensor's energy, another one's trace
    most = other.map({True: AGREEMENT, False: SAME})
    return _differs(rows, stored, again, "energies are not those of the stored trace", most)


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


def _length(table: Table) -> str:
    least = max(LEAST_SECONDS, LEAST_UPDATES * (table.selftest.get("update_seconds") or 0.0))
    rows = table.all_windows
    short = rows[rows["window"] < least - 1e-6]
    return _some(short, f"windows are shorter than {least:.3g} s", lambda row: f"{row['window']:.3g} s")


def _rate(table: Table) -> str:
    if table.frame_rate is None:
        return ""
    rows = table.windows[table.windows["layer"] == LAYERS[1]]
    rows = rows.assign(rate=rows["frames"] / rows["window"])
    slow = rows[rows["rate"] < LEAST_RATE * table.frame_rate]
    said = f"of {len(rows)} windows at {table.frame_rate:g} frames/s have fewer frames"
    return _some(slow, said, lambda row: f"{row['rate']:.3g} frames/s")


def _count(table: Table) -> str:
    sizes = table.windows.groupby(WINDOW_KEY[:3]).size().reset_index(name="size")
    few = sizes[sizes["size"] < LEAST_WINDOWS]
    said = f"arms have fewer than {LEAST_WINDOWS} windows with an energy"
    return _some(few, said, lambda row: str(row["size"]))


def _drift(table: Table) -> str:
    rows = table.windows.dropna(subset="energy_per_frame_net")
    rows = rows.assign(drift=rows["n"].map(_idle_power(table)["drift"]))
    wrong = rows[~(rows["drift"] <= MOST_DRIFT)]
    said = "energies are net of idle although that drifted or is not known before and behind"
    return _some(wrong, said, lambda row: f"by {row['drift']:.1%}")


def _net(table: Table) -> str:
    rows = table.windows.dropna(subset="energy_per_frame_net")
    idle = rows["n"].map(_idle_power(table)["watts"]) * rows["window"] / rows["frames"] * 1e3
    # The net energy may be near nothing, so its error counts as a part of the gross one.
    gross = rows["energy_per_frame_net"] + idle
    return _differs(rows, gross, rows["energy_per_frame"], "net energies are not gross less idle")


def _idle_power(table: Table) -> pd.DataFrame:
    """Return per n the mean idle power in watts and its drift from before to behind."""
    levels = table.idle_windows.pivot(index="n", columns="block", values="power_mean").reindex(columns=[0, 1])
    return pd.DataFrame({"watts": levels.mean(axis=1), "drift": (levels[1] / levels[0] - 1).abs()})


def _differs(
    rows: pd.DataFrame, found: pd.Series, expected: pd.Series, said: str, most: float | pd.Series = SAME
) -> str:
    """Say how many values are farther than `most` from what is expected; empty when none is."""
    apart = found / expected - 1
    wrong = rows.assign(apart=apart)[apart.abs() > most]
    worst_first = wrong.sort_values("apart", key=lambda values: -values.abs())
    return _some(worst_first, f"of {len(rows)} {said}", lambda row: f"by {row['apart']:+.1%}")


def _some(wrong: pd.DataFrame, said: str, first: Callable[[pd.Series], str] = lambda row: "") -> str:
    """Say how many rows are wrong, and of the first one what is; empty where there is none."""
    if wrong.empty:
        return ""
    row = wrong.iloc[0]
    return f"{len(wrong)} {said}, the first {first(row)} ({_name(row)})".replace("  ", " ")


def _name(row: pd.Series) -> str:
    parts = [f"n={row['n']}" if "n" in row else "", *(row.get(name, "") for name in ("method", "layer", "quantity"))]
    return ", ".join(filter(None, [*parts, f"block {row['block']}" if row.get("layer") and "block" in row else ""]))


# By the rule that each asks for, in this order; docs/power.md tells what a rule stops.
LINTS: dict[str, Callable[[Table], str]] = {
    "typed-units": _units,
    "scope": _scope,
    "power-on-test": _power_on,
    "load-above-idle": _above_idle,
    "identity": _identity,
    "plausible-range": _range,
    "missing-not-zero": _missing,
    "power-times-time": _product,
    "same-window": _whole,
    "counter-agrees": _counters,
    "trace-agrees": _trace,
    "window-length": _length,
    "frame-rate": _rate,
    "window-count": _count,
    "idle-drift": _drift,
    "net-of-idle": _net,
}
