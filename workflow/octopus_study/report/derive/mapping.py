"""What only the mapping study knows: who gains from which strategy and where, shares of the copy bound, and how the
project's own targets ended."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from octopus_study.report.derive.comparisons import SUBJECT, floor_of, share_of_bound, speedup
from octopus_study.report.derive.mapping_model import model_numbers
from octopus_study.report.derive.samples import AGAIN, Group, groups, origin, pivot
from octopus_study.report.labels import DISTRIBUTIONS, OPERATIONS, human
from octopus_study.report.numbers import Number, make_number
from octopus_study.report.runs import Run
from octopus_study.report.text import quantity_text, significant, with_unit

if TYPE_CHECKING:
    import pandas as pd

COPY = "copy-bound"
# As the source sorts them.
MEMORY_BOUND = ("multiply", "normalize", "threshold")
COMPUTE_BOUND = ("gamma", "blur3x3", "blur5x5-sobel")
CLASSES = {"memory-bound": MEMORY_BOUND, "compute-bound": COMPUTE_BOUND}
POINTWISE = (*MEMORY_BOUND, "gamma")
# The published comparison: block metadata against a search by every thread, one element each.
PUBLISHED = ("block-metadata", "thread-search-scalar")
# Pairs beside those of Octopus.
_PAIRS = (
    PUBLISHED,
    ("block-metadata", "thread-search"),
    ("block-metadata", "lookup"),
    ("block-metadata-tuned", "thread-search"),
    ("thread-search", "thread-search-scalar"),
    ("lookup", "lookup-scalar"),
)
# Pairs whose ratios are summed up over operations and numbers of items.
RANGES = (
    PUBLISHED,
    (SUBJECT, "thread-search-scalar"),
    (SUBJECT, "thread-search"),
    (SUBJECT, "lookup"),
    (SUBJECT, "block-metadata"),
)
SLOWER_BY = 0.02
COPY_SHARE = 0.85
BUILD_MS, BUILD_ITEMS = 50.0, 1_000_000
REGRET = 0.05


class Ratio(NamedTuple):
    """The ratio of two strategies in one comparison, with its verdict and noise floor."""

    group: Group
    pair: tuple[str, str]
    number: Number
    verdict: str
    floor: float


class Kind(NamedTuple):
    """What a workload consists of."""

    distribution: str
    operation: str
    dtype: str


def kind_of(workload: str) -> Kind:
    """Take a workload apart: ``large-blur5x5-sobel-uint8`` into its distribution, operation and type."""
    distribution, _, rest = workload.partition("-")
    operation = rest.removesuffix("-uint8")
    return Kind(distribution, operation, "uint8" if operation != rest else "float32")


def mapping_numbers(run: Run) -> Iterator[Number]:
    """Yield the study's derived numbers."""
    ratios: list[Ratio] = []
    shares: list[tuple[Group, Number]] = []
    for group, rows in groups(run, quantity="kernel", unit="ms"):
        table = pivot(rows)
        if len(table) < 2:
            continue
        for number in _shares(run, group, table):
            if number.id.endswith(f".share_of_{COPY}") and f".{SUBJECT}." in number.id:
                shares.append((group, number))
            yield number
        for ratio, numbers in _ratios(run, group, table):
            ratios.append(ratio)
            # Those of Octopus every study has.
            yield from numbers if ratio.pair[0] != SUBJECT else ()
    yield from _ranges(run, ratios)
    yield from _appears(run, ratios)
    yield from _tuner(run)
    yield from _table_size(run)
    yield from _targets(run, ratios, shares)
    yield from model_numbers(run)


def _shares(run: Run, group: Group, table: pd.DataFrame) -> Iterator[Number]:
    for method in table.columns:
        if method != COPY and not str(method).endswith(AGAIN):
            yield from share_of_bound(run, group, table, str(method), COPY)


def _ratios(run: Run, group: Group, table: pd.DataFrame) -> Iterator[tuple[Ratio, list[Number]]]:
    floor = floor_of(table)
    for pair in dict.fromkeys((*_PAIRS, *RANGES)):
        if set(pair) <= set(table.columns):
            found = list(speedup(run, group, table, pair, floor))
            if found:
                yield Ratio(group, pair, found[0], found[1].text, floor), found


def _ranges(run: Run, ratios: list[Ratio]) -> Iterator[Number]:
    """Yield ``<class>.<distribution>.<method>.range_over_<other>``: the least and the greatest ratio over operations
    of a class and numbers of items, in float32; ``all`` stands for all distributions."""
    for name, operations in CLASSES.items():
        for pair in RANGES:
            chosen = [one for one in ratios if one.pair == pair and _within(one.group, operations)]
            for distribution in (*DISTRIBUTIONS, "all"):
                found = [
                    one.number.value
                    for one in chosen
                    if distribution in ("all", kind_of(one.group.workload).distribution)
                ]
                if found:
                    key = f"{run.scope}.{run.study}.{name}.{distribution}.{pair[0]}.range_over_{pair[1]}"
                    yield _range(run, key, found)


def _range(run: Run, key: str, values: list[float]) -> Number:
    low, high = min(values), max(values)
    ends = [significant(low), significant(high)]
    text = with_unit("\u2013".join(dict.fromkeys(ends)), "ratio")
    where = (key, origin(run, "n/a"), f"{len(values)} comparisons")
    note = f"least and greatest of {len(values)} medians of per-block ratios"
    return make_number(*where, "ratio", float(np.median(values)), low, high, text=text, note=note)


def _within(group: Group, operations: tuple[str, ...]) -> bool:
    kind = kind_of(group.workload)
    return kind.operation in operations and kind.dtype == "float32"


def place(group: Group) -> str:
    """Say which comparison is meant: ``multiply of 500 000 tiny items``."""
    kind = kind_of(group.workload)
    operation, items = human(OPERATIONS, kind.operation), human(DISTRIBUTIONS, kind.distribution)
    items = items if kind.distribution == "visdrone" else items.lower()
    dtype = " (uint8)" if kind.dtype == "uint8" else ""
    return f"{operation[0].lower()}{operation[1:]}{dtype} of {quantity_text(group.n, 'count')} {items} items"


def _appears(run: Run, ratios: list[Ratio]) -> Iterator[Number]:
    """Yield in how many comparisons block metadata gain over a search by every thread beyond noise and two percent,
    class by class, and where most."""
    for name, operations in CLASSES.items():
        chosen = [one for one in ratios if one.pair == PUBLISHED and _within(one.group, operations)]
        if not chosen:
            continue
        gains = [one for one in chosen if one.verdict == "faster" and one.number.value > 1 + SLOWER_BY]
        text = f"in {len(gains)} of {len(chosen)} comparisons"
        if gains:
            most = max(gains, key=lambda one: one.number.value)
            text += f", most in {place(most.group)} ({most.number.text})"
        where = (f"{run.scope}.{run.study}.{name}.appears", origin(run, "n/a"), " over ".join(PUBLISHED))
        note = f"verdict faster, and by more than {100 * SLOWER_BY:g} %"
        yield make_number(*where, "text", math.nan, text=text, note=note)


def _table_size(run: Run) -> Iterator[Number]:
    """Yield the bytes of the lookup table per element."""
    found = {
        name: rows.set_index(["workload", "n"])["value"]
        for name, rows in (
            ("bytes", run.rows[(run.rows["quantity"] == "map_bytes") & (run.rows["method"] == "lookup")]),
            ("elements", run.rows[run.rows["quantity"] == "elements"]),
        )
    }
    each = (found["bytes"] / found["elements"]).dropna()
    if len(each):
        where = (
            f"{run.scope}.{run.study}.lookup.bytes_per_element",
            origin(run, "n/a"),
            "map_bytes / elements",
        )
        yield make_number(*where, "bytes", float(each.max()), note=f"greatest of {len(each)}")


def _tuner(run: Run) -> Iterator[Number]:
    """Yield the longest probe and the largest regret of the tuner."""
    for quantity, name in (("tuner_probe", "probe"), ("tuner_regret", "regret")):
        rows = run.rows[(run.rows["quantity"] == quantity) & run.rows["value"].notna()]
        if rows.empty:
            continue
        medians = rows.groupby(["workload", "n", "method"])["value"].median()
        value, unit = float(medians.max()), str(rows["unit"].iloc[0])
        where = (f"{run.scope}.{run.study}.tuner.{name}", origin(run, "n/a"), f"quantity={quantity}")
        yield make_number(*where, unit, value, note=f"greatest of {len(medians)} medians")


def _targets(run: Run, ratios: list[Ratio], shares: list[tuple[Group, Number]]) -> Iterator[Number]:
    """Yield ``target.<name>``: the worst of what was measured, with the outcome by rule."""
    rivals = [one for one in ratios if one.pair == (SUBJECT, "thread-search")]
    if rivals:
        worst = min(rivals, key=lambda one: one.number.value)
        # The whole interval beyond the margin and beyond what a method seems to differ from itself.
        missed = [one for one in rivals if 1 / one.number.high > 1 + SLOWER_BY + _finite(one.floor)]
        time = 1 / worst.number.value
        yield _target(
            run, "not_slower", "ratio", time, _outcome(len(missed), len(rivals)), place(worst.group)
        )
    large = [
        pair
        for pair in shares
        if kind_of(pair[0].workload).distribution == "large" and _within(pair[0], POINTWISE)
    ]
    if large:
        group, least = min(large, key=lambda pair: pair[1].value)
        missed_shares = [number for _, number in large if number.high < COPY_SHARE]
        outcome = _outcome(len(missed_shares), len(large))
        yield _target(run, "copy_share", "fraction", least.value, outcome, place(group))
    yield from _build_target(run)
    for quantity, name, most in (("tuner_regret", "regret", REGRET),):
        rows = run.rows[(run.rows["quantity"] == quantity) & run.rows["value"].notna()]
        if len(rows):
            medians = rows.groupby(["workload", "n"])["value"].median()
            outcome = _outcome(int((medians > most).sum()), len(medians))
            yield _target(run, name, "fraction", float(medians.max()), outcome, "the tuner's choice")


def _build_target(run: Run) -> Iterator[Number]:
    """Yield the time to build block metadata for a million items, in proportion from the most items measured."""
    rows = run.rows[
        (run.rows["quantity"] == "setup")
        & (run.rows["method"] == "block-metadata")
        & run.rows["value"].notna()
    ]
    if rows.empty:
        return
    count = int(rows["n"].max())
    slowest = float(rows[rows["n"] == count].groupby("workload")["value"].median().max())
    value = slowest * BUILD_ITEMS / count
    outcome = _outcome(int(value > BUILD_MS), 1)
    where = f"in proportion from {quantity_text(count, 'count')} items"
    yield _target(run, "build", "ms", value, outcome, where)


def _target(run: Run, name: str, unit: str, value: float, outcome: str, where: str) -> Number:
    key = f"{run.scope}.{run.study}.target.{name}"
    text = f"{outcome}; worst {quantity_text(value, unit)} ({where})"
    return make_number(key, origin(run, "n/a"), where, unit, value, text=text, note=outcome)


def _outcome(missed: int, count: int) -> str:
    return "met" if not missed else f"missed in {missed} of {count}"


def _finite(value: float) -> float:
    return value if math.isfinite(value) else 0.0
