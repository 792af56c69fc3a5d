"""What only the mapping study knows: who gains from which strategy and where, what several elements per thread add,
shares of the copy bound, and how the project's own targets ended."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from octopus_study.measure.dependence import LAYERS
from octopus_study.measure.statistics import median_interval
from octopus_study.names import DISTRIBUTIONS, OPERATIONS, SUBJECT, human
from octopus_study.report.frame import Number, Source, joined, make_number, make_text
from octopus_study.report.machines import kind
from octopus_study.report.measured import floor_of, share_of_bound, speedup, spread
from octopus_study.report.runs import Run, once
from octopus_study.report.samples import Group, by_block, groups, heeded, pivot
from octopus_study.report.text import quantity_text

COPY = "copy-bound"
# As the source sorts them.
CLASSES = {
    "memory-bound": ("multiply", "normalize", "threshold"),
    "compute-bound": ("gamma", "blur3x3", "blur5x5-sobel"),
}
POINTWISE = (*CLASSES["memory-bound"], "gamma")
# Like for like: block metadata against a search by every thread, both with as many elements per thread; as published,
# that is one.
PAIRS = {
    "scalar": ("block-metadata-scalar", "thread-search-scalar"),
    "vector": ("block-metadata", "thread-search"),
}
# What several elements per thread add to one strategy.
WIDENED = (
    ("lookup", "lookup-scalar"),
    ("thread-search", "thread-search-scalar"),
    ("block-metadata", "block-metadata-scalar"),
)
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


def pair_of(width: str, is_gpu: bool) -> tuple[str, str]:
    """Return block metadata and the search of one width. A CPU reads owners one by one, whatever the search does."""
    method, other = PAIRS[width]
    return (method if is_gpu else "block-metadata", other)


def _pairs(run: Run) -> dict[str, tuple[str, str]]:
    return {width: pair_of(width, kind(run) == "gpu") for width in PAIRS}


@once
def _ratios(run: Run, pair: tuple[str, str]) -> Iterator[Ratio]:
    """Yield time of the other / time of the method in every comparison that has both."""
    for group, rows in groups(run, quantity="kernel", unit="ms"):
        table = pivot(rows) if set(pair) <= set(rows["method"]) else rows[:0]
        if len(table) > 1 and set(pair) <= set(table.columns):
            floor = floor_of(table)
            numbers = tuple(speedup(run, group, table, pair, floor))
            if numbers:
                ratio, verdict = numbers
                yield Ratio(group, ratio, verdict, floor)


def gains(run: Run) -> Iterator[Number]:
    """Yield block metadata against the search at equal width, and each strategy against itself with one element per
    thread; the comparisons of Octopus every study has."""
    for pair in (*_pairs(run).values(), *WIDENED):
        for ratio in _ratios(run, pair):
            yield from (ratio.number, ratio.verdict)


def copy_shares(run: Run) -> Iterator[Number]:
    """Yield the share of the copy bound that Octopus reaches."""
    for group, rows in groups(run, quantity="kernel", unit="ms"):
        yield from share_of_bound(run, group, pivot(rows), SUBJECT, COPY)


def ranges(run: Run) -> Iterator[Number]:
    """Yield ``<class>.<distribution>.<method>.range_over_<other>``: the least and the greatest ratio over the
    operations of a class in float32 and numbers of items; ``all`` stands for all distributions."""
    for pair in (*_pairs(run).values(), *WIDENED, AGAINST_SEARCH):
        ratios = list(_ratios(run, pair))
        for name, operations in CLASSES.items():
            chosen = [one for one in ratios if _within(one.group, operations)]
            for distribution in (*DISTRIBUTIONS, "all"):
                yield from _range(run, (name, distribution), pair, chosen)


def _range(run: Run, where: tuple[str, str], pair: tuple[str, str], ratios: list[Ratio]) -> Iterator[Number]:
    name, distribution = where
    chosen = [
        one.number for one in ratios if distribution in ("all", kind_of(one.group.workload).distribution)
    ]
    values = [number.value for number in chosen]
    if values:
        key = run.key(f"{name}.{distribution}", method=pair[0], derived="range", other=pair[1])
        source = joined(*chosen)._replace(dataset="n/a")
        yield spread(key, source, values, float(np.median(values)), "medians of per-block ratios")


def appears(run: Run) -> Iterator[Number]:
    """Yield ``<class>.<width>.appears``: in how many comparisons block metadata gain or lose against a search of their
    width, beyond noise and two percent, and where most."""
    for width, pair in _pairs(run).items():
        ratios = list(_ratios(run, pair))
        for name, operations in CLASSES.items():
            chosen = [one for one in ratios if _within(one.group, operations)]
            if chosen:
                source = joined(*(one.verdict for one in chosen))._replace(dataset="n/a")
                note = f"by their verdicts, and by more than {100 * SLOWER_BY:g} %"
                key = run.key(f"{name}.{width}", quantity="appears")
                yield make_text(key, source, _gained_and_lost(chosen), note)


def _gained_and_lost(ratios: list[Ratio]) -> str:
    """Say how many comparisons of all are faster, how many slower, and where most."""
    faster = [one for one in ratios if one.verdict.text == "faster" and one.number.value > 1 + SLOWER_BY]
    slower = [
        one for one in ratios if one.verdict.text == "slower" and one.number.value < 1 / (1 + SLOWER_BY)
    ]
    said = []
    for word, found, far in (("faster", faster, max), ("slower", slower, min)):
        text = f"{word} in {len(found)} of {len(ratios)} comparisons"
        if found:
            most = far(found, key=lambda one: one.number.value)
            text += f", most in {place(most.group)} ({most.number.text})"
        said.append(text)
    return "; ".join(said)


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
            values = [by_block(case) for _, case in rows.groupby(["workload", "n", "method"])]
            source = run.from_rows("n/a", f"quantity={quantity}")
            note = f"greatest of {len(values)} medians"
            key = run.key(method="tuner", quantity=name)
            slowest = max(values, key=lambda case: float(case.median()))
            greatest = median_interval(slowest)
            note = heeded(note, slowest, timed=rows["layer"].iloc[0] in LAYERS)
            blocks = greatest.count if greatest.count > 1 else None
            yield make_number(key, source, str(rows["unit"].iloc[0]), *greatest[:3], blocks, note=note)


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
