"""Ratios of methods, paired per block, with their verdicts and the noise floor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from octopus_study.measure.statistics import Comparison, compare, noise_floor, ratio_interval
from octopus_study.report.derive.samples import AGAIN, Group, groups, origin, pivot
from octopus_study.report.numbers import Number, make_number
from octopus_study.report.runs import Run

if TYPE_CHECKING:
    import pandas as pd

SUBJECT = "octopus"
BOUND = "write-bound"
# The source documents' own comparison: their one launch against their N launches.
PUBLISHED_PAIR = ("published", "n-launches")


def comparisons(run: Run) -> Iterator[Number]:
    """Yield speed-ups of Octopus over every other method of a group, multiples of the bound, and noise
    floors."""
    for group, rows in groups(run):
        if not {SUBJECT, PUBLISHED_PAIR[0]} & set(rows["method"]) or rows["unit"].iloc[0] != "ms":
            continue
        table = pivot(rows)
        if len(table) < 2:
            continue
        floor = floor_of(table)
        yield from _noise(run, group, table, floor)
        for method, other in _pairs(table):
            yield from speedup(run, group, table, (method, other), floor)
        for method in (SUBJECT, PUBLISHED_PAIR[0]):
            yield from share_of_bound(run, group, table, method, BOUND)


def floor_of(table: pd.DataFrame) -> float:
    """Return the noise floor of a group's blocks; NaN where Octopus was not entered twice."""
    again = f"{SUBJECT}{AGAIN}"
    if not {SUBJECT, again} <= set(table.columns):
        return float("nan")
    both = table[[SUBJECT, again]].dropna()
    return noise_floor(both[SUBJECT], both[again]) if len(both) else float("nan")


def _pairs(table: pd.DataFrame) -> list[tuple[str, str]]:
    others = [
        name
        for name in table.columns
        if name != SUBJECT and not name.startswith(BOUND) and not name.endswith(AGAIN)
    ]
    pairs = [(SUBJECT, other) for other in others] if SUBJECT in table else []
    return [*pairs, PUBLISHED_PAIR] if set(PUBLISHED_PAIR) <= set(table.columns) else pairs


def _noise(run: Run, group: Group, table: pd.DataFrame, floor: float) -> Iterator[Number]:
    again = f"{SUBJECT}{AGAIN}"
    if {SUBJECT, again} <= set(table.columns):
        where = (f"{group.prefix(run, SUBJECT)}.noise_floor", origin(run, group.dataset), group.selector())
        if floor != floor:
            few = f"unavailable: {len(table)} blocks are too few"
            yield make_number(*where, "fraction", floor, text=few, note=few)
            return
        yield make_number(*where, "fraction", floor, note=f"{SUBJECT} against {again}, paired per block")


def speedup(
    run: Run, group: Group, table: pd.DataFrame, pair: tuple[str, str], floor: float
) -> Iterator[Number]:
    """Yield the speed-up (time of the other / time of the method) and the verdict as a text, over the blocks that
    both have."""
    method, other = pair
    both = table[[method, other]].dropna()
    if len(both) < 2:
        return
    result: Comparison = compare(both[method], both[other], floor)
    prefix, where = group.prefix(run, method), origin(run, group.dataset)
    selector = group.selector(f"{method} and {other}")
    # The inverse of a median of ratios is not the median of the inverses when the number of blocks is even.
    times = ratio_interval(both[other], both[method])
    note = "median of per-block ratios"
    yield make_number(f"{prefix}.speedup_over_{other}", where, selector, "ratio", *times[:3], note=note)
    key, text = f"{prefix}.verdict_over_{other}", result.verdict
    yield make_number(key, where, selector, "text", float("nan"), text=text, note=result.text)


def share_of_bound(run: Run, group: Group, table: pd.DataFrame, method: str, bound: str) -> Iterator[Number]:
    """Yield time / time to write the output, and its inverse, the share of the write bound; nothing where one of
    the two was not measured."""
    both = table[[method, bound]].dropna() if {method, bound} <= set(table.columns) else table[:0]
    if len(both) < 2:
        return
    ratio = ratio_interval(both[method], both[bound])
    prefix, rest = group.prefix(run, method), (origin(run, group.dataset), group.selector(method))
    note = "median of per-block ratios"
    yield make_number(f"{prefix}.times_{bound}", *rest, "ratio", *ratio[:3], note=note)
    share = (1 / ratio.value, 1 / ratio.high, 1 / ratio.low)
    yield make_number(f"{prefix}.share_of_{bound}", *rest, "fraction", *share, note=f"1 / times_{bound}")
