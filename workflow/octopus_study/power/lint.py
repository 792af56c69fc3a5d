"""The results linter: stored tables of powers and energies are read again, and one that can't be true is refused.

The power-on test stops a wrong sensor before an energy is measured. The linter is the second line. It asks only whether
the numbers of a table can be what their names say, and so it also judges tables whose making nobody saw. A voltage that
was read as a power shows in the table itself: the load draws less than idle, and energy is a constant times time.

Two layouts are read: result rows of the study `power`, with the provenance beside them, and published tables
(``n, method, quantity, value, low, high, unit, source``). A table with neither powers nor energies has no findings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from octopus_study.power.checks import Check, by_id
from octopus_study.power.judges import HIGHEST_SHARE, LOWEST_SHARE, PASSED
from octopus_study.power.lint_tables import LAYERS, SCOPES, Finding, Table, read_table, wrong_units
from octopus_study.power.lint_windows import WINDOW_CHECKS, differs, row_name

LEAST_RATIOS, LEAST_DEVIATION = 4, 0.01
# No board that this artifact runs on idles below or works above this; it only serves tables without a known limit.
PLAUSIBLE_WATTS = (0.1, 2000.0)
# At a fixed frame rate a quick method leaves the device idle nearly all the time; idle is known no better than this.
PACED_TOLERANCE = 0.01
# Means of a sensor that stands still differ by rounding alone: a load that draws so little more draws as much as idle.
SAME_POWER = 1e-6
# Without these the record is not that of a power-on test, whatever it says.
_TOLD_BY_LOAD = ("distinct-values", "rises", "load-above-idle")
_AGAIN = "-again"


def lint_file(path: str | Path) -> list[Finding]:
    """Check a stored table.

    Parameters
    ----------
    path : path
        ``data/results/<machine>/power.csv`` with its provenance beside it, or a published table.

    Returns
    -------
    list of Finding
        One per check that refuses the table; empty where it is accepted. Where units or scopes are wrong, nobody
        knows what the numbers are, and nothing else is asked.

    Raises
    ------
    MeasureError
        There is no such file, or its layout is unknown.
    """
    table = read_table(path)
    if table is None:
        return []
    further = WINDOW_CHECKS if table.measured else {}
    return list(_ask(table, MEANING)) or list(_ask(table, {**CONTENT, **further}))


def _ask(table: Table, asked: Mapping[str, Callable[[Table], str]]) -> Iterator[Finding]:
    for check, ask in asked.items():
        if message := ask(table):
            yield Finding(check, message)


def _units(table: Table) -> str:
    wrong = wrong_units(table)
    if wrong.empty:
        return ""
    row = wrong.iloc[0]
    return f"{len(wrong)} rows have a unit of something else, the first {row['quantity']} in {row['unit']}"


def _scope(table: Table) -> str:
    if not table.measured or len(table.scopes) == 0:
        return ""
    if "" in table.scopes:
        return f"the name of a power or energy doesn't end in what it is that of ({', '.join(SCOPES)})"
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


def _missing(table: Table) -> str:
    quantity, value = table.rows["quantity"], table.rows["value"]
    absolute = table.rows["unit"].isin(("W", "mW", "µW", "uW", "J", "mJ", "µJ", "uJ", "ms", "s"))
    # Net of idle may be about nothing, and the trace may begin with a window.
    may_be_zero = quantity.str.contains("_net") | (quantity == "window_start")
    if table.measured:
        silent = table.rows[value.isna() & ~table.rows["answer"].str.startswith("unavailable: ")]
        if len(silent):
            return f"{len(silent)} values are missing without a reason, the first {row_name(silent.iloc[0])}"
    zero = table.rows[absolute & ~may_be_zero & (value <= 0)]
    if zero.empty:
        return ""
    first = zero.iloc[0]
    return (
        f"{len(zero)} values are 0 or less, the first {row_name(first)}: {first['value']:g} {first['unit']}"
    )


def _range(table: Table) -> str:
    limit = table.limit
    low, high = PLAUSIBLE_WATTS if limit is None else (LOWEST_SHARE * limit, HIGHEST_SHARE * limit)
    powers = pd.concat([table.loads, table.idle])
    wrong = powers[(powers["low"] < low) | (powers["high"] > high)]
    if wrong.empty:
        return ""
    first = wrong.iloc[0]
    shown = first["high"] if first["high"] > high else first["low"]
    plausible = f"plausible are {low:.3g} to {high:.4g} W"
    return f"{len(wrong)} of {len(powers)} powers, the first {shown:.4g} W ({row_name(first)}); {plausible}"


def _above_idle(table: Table) -> str:
    loads, idle = table.loads, table.idle
    if idle.empty:
        return "idle was not measured" if table.measured and len(loads) else ""
    groups = {n: rows for n, rows in idle.groupby("n")}
    paced = loads["layer"] == LAYERS[1]
    least = np.array(
        [_least_load(groups.get(n, idle), each) for n, each in zip(loads["n"], paced, strict=True)]
    )
    low = loads["low"].to_numpy() <= least
    wrong = loads[low]
    if wrong.empty:
        return ""
    first, level = wrong.iloc[0], least[low][0]
    return (
        f"{len(wrong)} of {len(loads)} powers under load are below idle or equal it, the first {first['low']:.4g} W "
        f"({row_name(first)}) against {level:.4g} W"
    )


def _least_load(idle: pd.DataFrame, paced: bool) -> float:
    """Return what a load must exceed: any idle window, or at a fixed frame rate nearly the lower one."""
    return float(
        idle["low"].min() * (1 - PACED_TOLERANCE) if paced else idle["high"].max() * (1 + SAME_POWER)
    )


def _product(table: Table) -> str:
    if table.measured:
        rows = table.windows
        expected = rows["power_mean"] * rows["window"] / rows["frames"] * 1e3
        return differs(rows, rows["energy_per_frame"], expected, "energies are not power times time")
    arms = table.arms.dropna().reset_index()
    return differs(arms, arms["energy"], arms["power"] * arms["time"], "energies are not power times time")


def _identity(table: Table) -> str:
    if table.measured and not _power_on(table):
        return ""
    logs = np.array(list(_log_ratios(table.arms)))
    if len(logs) < LEAST_RATIOS or (spread := float(logs.std(ddof=1))) >= LEAST_DEVIATION:
        return ""
    return (
        f"energy is a constant times time: over {len(logs)} pairs of arms log(energy ratio / time ratio) deviates by "
        f"{spread:.2g} only, and no power-on test was passed"
    )


def _log_ratios(arms: pd.DataFrame) -> Iterator[float]:
    """Yield log(energy ratio / time ratio) of the methods at each n; of a single method's n where there is but one."""
    powers = (arms["energy"] / arms["time"]).fillna(arms["power"]).dropna()
    powers = powers[[not name.endswith(_AGAIN) for name in powers.index.get_level_values("method")]]
    table = np.log(powers).unstack("method")
    if table.shape[1] == 1:
        only = table.iloc[:, 0]
        yield from only.iloc[1:] - only.iloc[0]
    for one, other in combinations(table.columns, 2):
        yield from (table[one] - table[other]).dropna()


# What the numbers are; where this is wrong, nothing else is asked.
MEANING: dict[str, Callable[[Table], str]] = {"typed-units": _units, "scope": _scope}
CONTENT: dict[str, Callable[[Table], str]] = {
    "power-on-test": _power_on,
    "load-above-idle": _above_idle,
    "identity": _identity,
    "plausible-range": _range,
    "missing-not-zero": _missing,
    "power-times-time": _product,
}
# Every check of the linter, for the docs: those it shares with earlier stages, and those of stored tables alone.
LINT_CHECKS: tuple[Check, ...] = tuple(map(by_id, (*MEANING, *CONTENT, *WINDOW_CHECKS)))
