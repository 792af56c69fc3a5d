"""Which way to run two models on one GPU, by rule.

Candidates are the ways that run both models and give their answers. Of those whose makespan is not slower than the
shortest (paired per block, beyond the noise floor), the rule takes the one on which the critical model waits least
(median latency); ways whose intervals overlap with its own are named beside it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from octopus_study.measure.statistics import Interval, compare, median_interval, noise_floor, ratio_interval
from octopus_study.measure.statistics import unpaired_ratio_interval as unpaired
from octopus_study.report.derive.samples import AGAIN, groups, origin, pivot
from octopus_study.report.labels import CONCURRENCY_ARMS, human
from octopus_study.report.numbers import Number, make_number
from octopus_study.report.runs import Run

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

CANDIDATES = (
    "sequential",
    "two-streams",
    "two-threads",
    "cuda-graphs",
    "pipeline",
    "two-processes",
    "two-processes-mps",
)
PATTERN = "pipeline"  # the published recommendation
CRITICAL, OTHER = "latency_visual_odometry", "latency_satellite_matching"
NOTE = "shortest makespan within noise, then the least median latency of the critical model"


def recommendations(run: Run, base: str) -> Iterator[Number]:
    """Yield ``<scope>.concurrency.recommended.<goal>``, names of ways, and what the published pattern lacks to the best
    of the others."""
    for group, rows in groups(run, quantity="makespan"):
        table = _candidates(rows, base)
        named = [name for name in CANDIDATES if name in table]
        if len(named) < 2:
            continue
        where = (origin(run, group.dataset), group.selector())
        shortest = _shortest(table, named, base)
        goals = {"makespan": shortest}
        critical, other = _samples(run, CRITICAL, named), _samples(run, OTHER, named)
        memory = _memory(run, named)
        goals |= {"critical": _least(critical), "other": _least(other), "memory": _least(memory)}
        goals["whole"] = _least({name: critical[name] for name in shortest if name in critical})
        for goal, found in goals.items():
            if found:
                key = f"{run.scope}.{run.study}.recommended.{goal}"
                text = "; ".join(human(CONCURRENCY_ARMS, name) for name in found)
                note = (
                    NOTE
                    if goal == "whole"
                    else "the first is the best, the others are not told apart from it"
                )
                yield make_number(key, *where, "text", math.nan, text=text, note=note)
        yield from _pattern(run, where, table, critical)


def _candidates(rows: pd.DataFrame, base: str) -> pd.DataFrame:
    """Return the makespans of the ways whose answers are those of the models alone, and the base again."""
    right = rows[~rows["answer"].str.startswith("different")]
    table = pivot(right)
    return table[[name for name in table if name in (*CANDIDATES, f"{base}{AGAIN}")]]


def _shortest(table: pd.DataFrame, named: list[str], base: str) -> list[str]:
    """Return the way with the least median makespan, then those that are not slower than it."""
    again = f"{base}{AGAIN}"
    twice = table[[base, again]].dropna() if {base, again} <= set(table.columns) else table[:0]
    floor = noise_floor(twice[base], twice[again]) if len(twice) else math.nan
    ranked = sorted(named, key=lambda name: table[name].median())
    best = ranked[0]
    found = [best]
    for name in ranked[1:]:
        both = table[[name, best]].dropna()
        if len(both) and compare(both[name], both[best], floor).verdict != "slower":
            found.append(name)
    return found


def _samples(run: Run, quantity: str, named: list[str]) -> dict[str, np.ndarray]:
    rows = run.rows[(run.rows["quantity"] == quantity) & run.rows["value"].notna()]
    found = {str(name): chosen["value"].to_numpy() for name, chosen in rows.groupby("method", sort=False)}
    return {name: found[name] for name in named if name in found}


def _memory(run: Run, named: list[str]) -> dict[str, np.ndarray]:
    return _samples(run, "device_delta", named)


def _least(samples: dict[str, np.ndarray]) -> list[str]:
    """Return the way with the least median, then those whose interval reaches into its own."""
    if not samples:
        return []
    known: dict[str, Interval] = {name: median_interval(values) for name, values in samples.items()}
    ranked = sorted(known, key=lambda name: known[name].value)
    limit = known[ranked[0]].high
    if math.isnan(limit):
        limit = known[ranked[0]].value
    return [name for name in ranked if _low(known[name]) <= limit]


def _low(interval: Interval) -> float:
    return interval.value if math.isnan(interval.low) else interval.low


def _pattern(
    run: Run,
    where: tuple[tuple[str, str, str, str], str],
    table: pd.DataFrame,
    critical: dict[str, np.ndarray],
) -> Iterator[Number]:
    """Yield makespan and critical latency of the published pattern / those of the best of the other ways."""
    prefix = f"{run.scope}.{run.study}.recommended.{PATTERN}"
    others = [name for name in CANDIDATES if name in table and name != PATTERN]
    if PATTERN in table and others:
        best = min(others, key=lambda name: table[name].median())
        both = table[[PATTERN, best]].dropna()
        if len(both) > 1:
            ratio = ratio_interval(both[PATTERN], both[best])[:3]
            note = f"{PATTERN} / {best}, median of per-block ratios"
            yield make_number(f"{prefix}.makespan", *where, "ratio", *ratio, note=note)
    waits = {name: values for name, values in critical.items() if name != PATTERN}
    if PATTERN in critical and waits:
        best = _least(waits)[0]
        ratio = unpaired(critical[PATTERN], waits[best])[:3]
        note = f"medians of {CRITICAL}: {PATTERN} / {best}"
        yield make_number(f"{prefix}.latency", *where, "ratio", *ratio, note=note)
