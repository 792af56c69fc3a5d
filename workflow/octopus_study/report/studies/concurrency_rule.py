"""Which way to run two models on one GPU, by rule.

Candidates are the ways that run both models and give their answers. Of those whose makespan is not slower than the
shortest (paired per block, beyond the noise floor), the rule takes the one on which the critical model waits least
(median latency); ways whose intervals overlap with its own are named beside it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from octopus_study.measure.statistics import Interval, compare, median_interval
from octopus_study.names import AGAIN, CONCURRENCY_ARMS, human
from octopus_study.report.frame import Number, make_text
from octopus_study.report.measured import floor_of
from octopus_study.report.runs import Run
from octopus_study.report.samples import by_block, groups, paired, pivot

if TYPE_CHECKING:
    import pandas as pd

BASE = "sequential"
CANDIDATES = (
    BASE,
    "two-streams",
    "two-threads",
    "cuda-graphs",
    "pipeline",
    "two-processes",
    "two-processes-mps",
)
PATTERN = "pipeline"  # the published recommendation
CRITICAL = "latency_visual_odometry"
# Goal -> the quantity of which the least median is sought.
GOALS = {"critical": CRITICAL, "other": "latency_satellite_matching", "memory": "device_delta"}
WHOLE_NOTE = "shortest makespan within noise, then the least median latency of the critical model"
NOTE = "the first is the best, the others are not told apart from it"

Samples = Mapping[str, "pd.Series"]


def recommendations(run: Run) -> Iterator[Number]:
    """Yield names of ways by goal."""
    for group, rows in groups(run, quantity="makespan"):
        table = _candidates(rows)
        methods = [name for name in CANDIDATES if name in table]
        if len(methods) < 2:
            continue
        quantities = " and ".join(("makespan", *GOALS.values()))
        source = run.from_rows(group.dataset, f"workload={group.workload}, quantity={quantities}")
        samples = {goal: _samples(run, quantity, methods) for goal, quantity in GOALS.items()}
        critical, shortest = samples["critical"], _shortest(table, methods)
        best = {"makespan": shortest} | {goal: _least(values) for goal, values in samples.items()}
        best["whole"] = _least({name: critical[name] for name in shortest if name in critical})
        for goal, names in best.items():
            if names:
                text = "; ".join(human(CONCURRENCY_ARMS, name) for name in names)
                note = WHOLE_NOTE if goal == "whole" else NOTE
                yield make_text(run.key("recommended", quantity=goal), source, text, note)


def _candidates(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the makespans of the ways whose answers are those of the models alone, and the base again."""
    table = pivot(rows[~rows["answer"].str.startswith("different")])
    return table[[name for name in table if name in (*CANDIDATES, f"{BASE}{AGAIN}")]]


def _shortest(table: pd.DataFrame, methods: list[str]) -> list[str]:
    """Return the way with the least median makespan, then those that are not slower than it."""
    best, *others = sorted(methods, key=lambda name: table[name].median())
    floor, names = floor_of(table, BASE), [best]
    for name in others:
        both = paired(table, name, best)
        if len(both) and compare(both[name], both[best], floor).verdict != "slower":
            names.append(name)
    return names


def _samples(run: Run, quantity: str, methods: list[str]) -> Samples:
    rows = run.rows[(run.rows["quantity"] == quantity) & run.rows["value"].notna()]
    samples = {str(name): by_block(chosen) for name, chosen in rows.groupby("method", sort=False)}
    return {name: samples[name] for name in methods if name in samples}


def _least(samples: Samples) -> list[str]:
    """Return the way with the least median, then those whose interval reaches into its own."""
    if not samples:
        return []
    intervals: dict[str, Interval] = {name: median_interval(values) for name, values in samples.items()}
    ranked = sorted(intervals, key=lambda name: intervals[name].value)
    best = intervals[ranked[0]]
    limit = best.value if math.isnan(best.high) else best.high
    return [name for name in ranked if _low(intervals[name]) <= limit]


def _low(interval: Interval) -> float:
    return interval.value if math.isnan(interval.low) else interval.low
