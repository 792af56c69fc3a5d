"""Ratios of methods, paired per block, with their verdicts and the noise floor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from octopus.measure.statistics import Comparison, compare, noise_floor, ratio_interval
from octopus.report.derive.samples import AGAIN, Group, blocks, groups, origin
from octopus.report.numbers import Number, make_number
from octopus.report.runs import Run

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
        table = blocks(rows)
        if len(table) < 2:
            continue
        yield from _noise(run, group, table)
        for method, other in _pairs(table):
            yield from _pair(run, group, table, method, other)
        for method in (SUBJECT, PUBLISHED_PAIR[0]):
            if {method, BOUND} <= set(table.columns):
                yield from _times_bound(run, group, table, method)


def _pairs(table: pd.DataFrame) -> list[tuple[str, str]]:
    others = [name for name in table.columns if name not in (SUBJECT, BOUND) and not name.endswith(AGAIN)]
    pairs = [(SUBJECT, other) for other in others] if SUBJECT in table else []
    return [*pairs, PUBLISHED_PAIR] if set(PUBLISHED_PAIR) <= set(table.columns) else pairs


def _noise(run: Run, group: Group, table: pd.DataFrame) -> Iterator[Number]:
    again = f"{SUBJECT}{AGAIN}"
    if {SUBJECT, again} <= set(table.columns):
        floor = noise_floor(table[SUBJECT], table[again])
        where = (f"{group.prefix(run, SUBJECT)}.noise_floor", origin(run, group.dataset), group.selector())
        if floor != floor:
            few = f"unavailable: {len(table)} blocks are too few"
            yield make_number(*where, "fraction", floor, text=few, note=few)
            return
        yield make_number(*where, "fraction", floor, note=f"{SUBJECT} against {again}, paired per block")


def _pair(run: Run, group: Group, table: pd.DataFrame, method: str, other: str) -> Iterator[Number]:
    """Yield the speed-up (time of the other / time of the method) and the verdict as a text."""
    again = f"{SUBJECT}{AGAIN}"
    floor = (
        noise_floor(table[SUBJECT], table[again]) if {SUBJECT, again} <= set(table.columns) else float("nan")
    )
    result: Comparison = compare(table[method], table[other], floor)
    prefix, where = group.prefix(run, method), origin(run, group.dataset)
    selector = group.selector(f"{method} and {other}")
    # The inverse of a median of ratios is not the median of the inverses when the number of blocks is even.
    speedup = ratio_interval(table[other], table[method])
    yield make_number(
        f"{prefix}.speedup_over_{other}",
        where,
        selector,
        "ratio",
        *speedup[:3],
        note="median of per-block ratios",
    )
    yield make_number(
        f"{prefix}.verdict_over_{other}",
        where,
        selector,
        "text",
        float("nan"),
        text=result.verdict,
        note=result.text,
    )


def _times_bound(run: Run, group: Group, table: pd.DataFrame, method: str) -> Iterator[Number]:
    """Yield time / time to write the output, and its inverse, the share of the write bound."""
    ratio = ratio_interval(table[method], table[BOUND])
    prefix, rest = group.prefix(run, method), (origin(run, group.dataset), group.selector(method))
    yield make_number(
        f"{prefix}.times_{BOUND}", *rest, "ratio", *ratio[:3], note="median of per-block ratios"
    )
    share = (1 / ratio.value, 1 / ratio.high, 1 / ratio.low)
    yield make_number(f"{prefix}.share_of_{BOUND}", *rest, "fraction", *share, note=f"1 / times_{BOUND}")
