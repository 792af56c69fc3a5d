"""What only the mapping study knows: who gains from which strategy and where, shares of the copy bound, and how the
project's own targets ended."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from octopus_study.report.frame import Number, Source, joined, make_number, make_text
from octopus_study.report.labels import DISTRIBUTIONS, OPERATIONS, human
from octopus_study.report.measured import SUBJECT, floor_of, share_of_bound, speedup, spread
from octopus_study.report.runs import Run
from octopus_study.report.samples import Group, groups, pivot
from octopus_study.report.text import quantity_text

COPY = "copy-bound"
# As the source sorts them.
CLASSES = {
    "memory-bound": ("multiply", "normalize", "threshold"),
    "compute-bound": ("gamma", "blur3x3", "blur5x5-sobel"),
}
POINTWISE = (*CLASSES["memory-bound"], "gamma")
# The published comparison: block metadata against a search by every thread, one element each.
PUBLISHED = ("block-metadata", "thread-search-scalar")
AGAINST_SEARCH = (SUBJECT, "thread-search")
SLOWER_BY = 0.02
COPY_SHARE = 0.85
BUILD_MS, BUILD_ITEMS = 50.0, 1_000_000
REGRET = 0.05


class Ratio(NamedTuple):
    """The ratio of two strategies in one comparison, with its verdict and noise floor."""

    group: Group
    number: Number
    verdict: Number
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


def _ratios(run: Run, pair: tuple[str, str]) -> Iterator[Ratio]:
    """Yield time of the other / time of the method in every comparison that has both."""
    for group, rows in groups(run, quantity="kernel", unit="ms"):
        table = pivot(rows)
        if len(table) > 1 and set(pair) <= set(table.columns):
            floor = floor_of(table)
            numbers = tuple(speedup(run, group, table, pair, floor))
            if numbers:
                yield Ratio(group, *numbers, floor)


def gains(run: Run) -> Iterator[Number]:
    """Yield the published comparison; those of Octopus every study has."""
    for ratio in _ratios(run, PUBLISHED):
        yield from (ratio.number, ratio.verdict)


def copy_shares(run: Run) -> Iterator[Number]:
    """Yield the share of the copy bound that Octopus reaches."""
    for group, rows in groups(run, quantity="kernel", unit="ms"):
        yield from share_of_bound(run, group, pivot(rows), SUBJECT, COPY)


def ranges(run: Run) -> Iterator[Number]:
    """Yield ``memory-bound.<distribution>.<method>.range_over_<other>``: the least and the greatest ratio over the
    memory-bound operations in float32 and numbers of items; ``all`` stands for all distributions."""
    name = "memory-bound"
    for method, other in (PUBLISHED, AGAINST_SEARCH):
        ratios = [one for one in _ratios(run, (method, other)) if _within(one.group, CLASSES[name])]
        for distribution in (*DISTRIBUTIONS, "all"):
            chosen = [
                one.number
                for one in ratios
                if distribution in ("all", kind_of(one.group.workload).distribution)
            ]
            values = [number.value for number in chosen]
            if values:
                key = run.key(f"{name}.{distribution}", method=method, derived="range", other=other)
                source = joined(*chosen)._replace(dataset="n/a")
                middle = float(np.median(values))
                yield spread(key, source, values, middle, "medians of per-block ratios")


def appears(run: Run) -> Iterator[Number]:
    """Yield in how many comparisons block metadata gain over a search by every thread beyond noise and two percent,
    class by class, and where most."""
    ratios = list(_ratios(run, PUBLISHED))
    for name, operations in CLASSES.items():
        chosen = [one for one in ratios if _within(one.group, operations)]
        if not chosen:
            continue
        faster = [one for one in chosen if one.verdict.text == "faster" and one.number.value > 1 + SLOWER_BY]
        text = f"in {len(faster)} of {len(chosen)} comparisons"
        if faster:
            most = max(faster, key=lambda one: one.number.value)
            text += f", most in {place(most.group)} ({most.number.text})"
        source = joined(*(one.verdict for one in chosen))._replace(dataset="n/a")
        note = f"verdict faster, and by more than {100 * SLOWER_BY:g} %"
        yield make_text(run.key(name, quantity="appears"), source, text, note)


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


_TABLE_SIZE = "quantity=map_bytes, method=lookup; or quantity=elements"


def table_size(run: Run) -> Iterator[Number]:
    """Yield the bytes of the lookup table per element."""
    rows = run.rows.set_index(["workload", "n"])
    sizes = rows[(rows["quantity"] == "map_bytes") & (rows["method"] == "lookup")]["value"]
    per_element = (sizes / rows[rows["quantity"] == "elements"]["value"]).dropna()
    if len(per_element):
        key = run.key(method="lookup", quantity="bytes_per_element")
        source, note = run.from_rows("n/a", _TABLE_SIZE), f"greatest of {len(per_element)}"
        yield make_number(key, source, "bytes", float(per_element.max()), note=note)


def tuner(run: Run) -> Iterator[Number]:
    """Yield the longest probe and the largest regret of the tuner."""
    for quantity, name in (("tuner_probe", "probe"), ("tuner_regret", "regret")):
        rows = run.rows[(run.rows["quantity"] == quantity) & run.rows["value"].notna()]
        if len(rows):
            medians = rows.groupby(["workload", "n", "method"])["value"].median()
            source = run.from_rows("n/a", f"quantity={quantity}")
            note = f"greatest of {len(medians)} medians"
            key = run.key(method="tuner", quantity=name)
            yield make_number(key, source, str(rows["unit"].iloc[0]), float(medians.max()), note=note)


def not_slower(run: Run) -> Iterator[Number]:
    """Yield the target that Octopus takes no longer than a search by every thread."""
    ratios = list(_ratios(run, AGAINST_SEARCH))
    if ratios:
        worst = min(ratios, key=lambda one: one.number.value)
        # The whole interval beyond the margin and beyond what a method seems to differ from itself.
        missed = [one for one in ratios if 1 / one.number.high > 1 + SLOWER_BY + np.nan_to_num(one.floor)]
        outcome = (len(missed), len(ratios))
        source = joined(*(one.verdict for one in ratios))
        yield _target(run, source, "not_slower", "ratio", 1 / worst.number.value, outcome, place(worst.group))


def copy_target(run: Run) -> Iterator[Number]:
    """Yield the target of pointwise operations on large items, as a share of the copy bound."""
    shares: list[tuple[Number, Group]] = []
    for group, rows in groups(run, quantity="kernel", unit="ms"):
        if kind_of(group.workload).distribution == "large" and _within(group, POINTWISE):
            numbers = share_of_bound(run, group, pivot(rows), SUBJECT, COPY)
            shares += [(number, group) for number in numbers if number.derived == "share"]
    if shares:
        least, group = min(shares, key=lambda pair: pair[0].value)
        source = joined(*(number for number, _ in shares))
        outcome = (sum(number.high < COPY_SHARE for number, _ in shares), len(shares))
        yield _target(run, source, "copy_share", "fraction", least.value, outcome, place(group))


def build_target(run: Run) -> Iterator[Number]:
    """Yield the time to build block metadata for a million items, in proportion from the most items measured."""
    rows = run.rows[(run.rows["quantity"] == "setup") & (run.rows["method"] == "block-metadata")]
    rows = rows.dropna(subset="value")
    if len(rows):
        count = int(rows["n"].max())
        slowest = float(rows[rows["n"] == count].groupby("workload")["value"].median().max())
        value = slowest * BUILD_ITEMS / count
        source = run.from_rows("n/a", f"quantity=setup, method=block-metadata, n={count}")
        where = f"in proportion from {quantity_text(count, 'count')} items"
        yield _target(run, source, "build", "ms", value, (int(value > BUILD_MS), 1), where)


def regret_target(run: Run) -> Iterator[Number]:
    """Yield the target of the tuner's choice against the best."""
    rows = run.rows[(run.rows["quantity"] == "tuner_regret") & run.rows["value"].notna()]
    if len(rows):
        medians = rows.groupby(["workload", "n"])["value"].median()
        outcome = (int((medians > REGRET).sum()), len(medians))
        source = run.from_rows("n/a", "quantity=tuner_regret")
        yield _target(run, source, "regret", "fraction", float(medians.max()), outcome, "the tuner's choice")


def _target(
    run: Run, source: Source, name: str, unit: str, value: float, outcome: tuple[int, int], where: str
) -> Number:
    """Return ``target.<name>``: the worst of what was measured, with the outcome by rule from (missed, all)."""
    missed, count = outcome
    said = f"missed in {missed} of {count}" if missed else "met"
    text = f"{said}; worst {quantity_text(value, unit)} ({where})"
    key = run.key("target", quantity=name)
    return make_number(key, source._replace(dataset="n/a"), unit, value, text=text, note=said)


NUMBERS = (
    gains,
    copy_shares,
    ranges,
    appears,
    table_size,
    tuner,
    not_slower,
    copy_target,
    build_target,
    regret_target,
)
