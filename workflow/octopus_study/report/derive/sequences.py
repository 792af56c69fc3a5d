"""What only the study of ragged sequences knows: gains of block metadata over each other way, mix by mix and on
average."""

from __future__ import annotations

import math
from collections.abc import Iterator

from octopus_study.report.derive.comparisons import SUBJECT, floor_of, speedup
from octopus_study.report.derive.samples import groups, origin, pivot
from octopus_study.report.derive.total_cost import memory_gains
from octopus_study.report.labels import SEQUENCE_WORKLOADS
from octopus_study.report.numbers import Number, make_number
from octopus_study.report.runs import Run

CHALLENGERS = ("block-metadata", SUBJECT)
OTHERS = ("lookup-published", "lookup-vectorised", "padded", "nested-jagged")


def sequences_numbers(run: Run) -> Iterator[Number]:
    """Yield the study's derived numbers."""
    totals: dict[tuple[str, str], dict[str, float]] = {}
    for group, rows in groups(run, unit="ms"):
        table = pivot(rows)
        if len(table) < 2:
            continue
        floor = floor_of(table)
        for method in CHALLENGERS:
            for other in OTHERS:
                if not {method, other} <= set(table.columns):
                    continue
                found = list(speedup(run, group, table, (method, other), floor))
                if method != SUBJECT:
                    yield from found
                if found and group.quantity == "total":
                    totals.setdefault((method, other), {})[group.workload] = found[0].value
    yield from memory_gains(run, CHALLENGERS, OTHERS[:3])
    yield from _averages(run, totals)


def _averages(run: Run, totals: dict[tuple[str, str], dict[str, float]]) -> Iterator[Number]:
    """Yield the arithmetic mean of the total gains over the five mixes, as the source averages; nothing where a mix
    is missing."""
    for (method, other), gains in totals.items():
        if set(gains) < set(SEQUENCE_WORKLOADS):
            continue
        values = [gains[name] for name in SEQUENCE_WORKLOADS]
        if all(map(math.isfinite, values)):
            key = f"{run.scope}.{run.study}.average.{method}.total_gain_over_{other}"
            where = (origin(run, "synthetic"), f"quantity=total, {len(values)} mixes")
            mean = sum(values) / len(values)
            yield make_number(key, *where, "ratio", mean, note="mean of the mixes' median ratios")
