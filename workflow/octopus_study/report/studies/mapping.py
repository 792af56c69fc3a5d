"""Mapping strategies, who owns which element of a ragged batch: kernels of each strategy, and the tuner."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from octopus_study.measure.statistics import median_interval
from octopus_study.names import DISTRIBUTIONS, SUBJECT, facts, human
from octopus_study.report.charts.spec import Chart
from octopus_study.report.frame import Frame, Key, Number, joined, make_number, published
from octopus_study.report.machines import kind
from octopus_study.report.measured import floor_of, share_of_bound, speedup, spread
from octopus_study.report.missing import no_run
from octopus_study.report.runs import Run, cached
from octopus_study.report.samples import Group, by_block, groups, pivot
from octopus_study.report.studies import mapping_figure
from octopus_study.report.studies.mapping_figure import PAIRS, STUDY, pair_of, timed
from octopus_study.report.study import StudyReport
from octopus_study.report.tables import cells
from octopus_study.report.tables.cells import Cell
from octopus_study.report.tables.spec import Spec, beside
from octopus_study.report.tables.writers import MISSING, Table
from octopus_study.report.text import quantity_text
from octopus_study.report.view import View, views
from octopus_study.units import significant

OPERATION, COPY = "multiply", "copy-bound"
# As the source sorts them.
CLASSES = {
    "memory-bound": ("multiply", "normalize", "threshold"),
    "compute-bound": ("gamma", "blur3x3", "blur5x5-sobel"),
}
AGAINST_SEARCH = (SUBJECT, "thread-search")
BEYOND = 0.02  # a gain or a loss counts beyond this and beyond noise
OVER = {
    "lookup": "over A",
    "thread-search": "over B",
    "block-metadata": "over C",
    "block-metadata-tuned": "over C, tuned",
}


class Ratio(NamedTuple):
    """The ratio of two strategies in one comparison, with its verdict."""

    group: Group
    number: Number
    verdict: Number


def compares(group: Group, other: str) -> bool:
    """Octopus is compared by its kernels alone, and with what takes several elements per thread, as it does."""
    return group.quantity == "kernel" and not other.endswith("-scalar")


def _pairs(run: Run) -> dict[str, tuple[str, str]]:
    return {width: pair_of(width, kind(run) == "gpu") for width in PAIRS}


@cached
def _ratios(run: Run, pair: tuple[str, str]) -> Iterator[Ratio]:
    """Yield time of the other / time of the method in every comparison that has both."""
    for group, rows in groups(run, quantity="kernel", unit="ms"):
        table = pivot(rows) if set(pair) <= set(rows["method"]) else rows[:0]
        if len(table) > 1 and set(pair) <= set(table.columns):
            numbers = tuple(speedup(run, group, table, pair, floor_of(table)))
            if numbers:
                yield Ratio(group, *numbers)


def gains(run: Run) -> Iterator[Number]:
    """Yield block metadata against the search at equal width; the comparisons of Octopus every study has."""
    for pair in _pairs(run).values():
        for ratio in _ratios(run, pair):
            yield from (ratio.number, ratio.verdict)


def copy_shares(run: Run) -> Iterator[Number]:
    """Yield the share of the copy bound that Octopus reaches."""
    for group, rows in groups(run, quantity="kernel", unit="ms"):
        yield from share_of_bound(run, group, pivot(rows), SUBJECT, COPY)


def ranges(run: Run) -> Iterator[Number]:
    """Yield ``memory-bound.<distribution>.<method>.range_over_<other>``: the least and the greatest ratio over the
    operations in float32 and numbers of items; ``all`` stands for all distributions."""
    for pair in (*_pairs(run).values(), AGAINST_SEARCH):
        ratios = [one for one in _ratios(run, pair) if _within(one.group, CLASSES["memory-bound"])]
        for name in (*DISTRIBUTIONS, "all"):
            chosen = [one.number for one in ratios if name in ("all", facts(STUDY, one.group.workload).distribution)]
            if chosen:
                values = [number.value for number in chosen]
                key = run.key(f"memory-bound.{name}", method=pair[0], derived="range", other=pair[1])
                source = joined(*chosen)._replace(dataset="n/a")
                yield spread(key, source, values, float(np.median(values)), "medians of per-block ratios")


def counts(run: Run) -> Iterator[Number]:
    """Yield ``<class>.<width>.faster`` and ``slower``: in how many comparisons block metadata gain or lose against a
    search of their width."""
    note = f"by their verdicts, and by more than {100 * BEYOND:g} %"
    for width, pair in _pairs(run).items():
        for name, operations in CLASSES.items():
            chosen = [one for one in _ratios(run, pair) if _within(one.group, operations)]
            for verdict in ("faster", "slower") if chosen else ():
                found = [one for one in chosen if one.verdict.text == verdict and _beyond(one.number.value)]
                source = joined(*(one.verdict for one in chosen))._replace(dataset="n/a")
                key = run.key(f"{name}.{width}", quantity=verdict)
                text = f"{len(found)} of {len(chosen)}"
                yield make_number(key, source, "count", len(found), text=text, note=note)


def _beyond(ratio: float) -> bool:
    return max(ratio, 1 / ratio) > 1 + BEYOND


def _within(group: Group, operations: tuple[str, ...]) -> bool:
    of = facts(STUDY, group.workload)
    return of.operation in operations and of.dtype == "float32"


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


def tuner_numbers(run: Run) -> Iterator[Number]:
    """Yield what a probe of the tuner takes."""
    rows = run.rows[(run.rows["quantity"] == "tuner_probe") & run.rows["value"].notna()]
    if len(rows):
        source = run.from_rows("n/a", "quantity=tuner_probe, layer=host")
        interval = median_interval(by_block(rows))
        yield make_number(run.key(method="tuner", quantity="probe"), source, "ms", *interval)


def kernels(view: View) -> list[Key]:
    """Return the kernel of Octopus on each batch whose elements a machine counted."""
    batches = view.cases("batch", "elements", ("deterministic",), order=list(DISTRIBUTIONS))
    columns = {"quantity": "kernel", "layer": view.kernel_layer}
    return [view.key(f"{key.workload}-{OPERATION}", key.n, SUBJECT, **columns) for key in batches]


def _elements(view: View, key: Key) -> str:
    """Say the elements of a kernel's batch in millions."""
    batch = facts(STUDY, key.workload).distribution
    number = view.get(view.key(batch, key.n, "batch", quantity="elements", layer="deterministic"))
    return f"{significant(number.value / 1e6)} M" if number else MISSING


def _batch(view: View, key: Key) -> str:
    return f"{human(DISTRIBUTIONS, facts(STUDY, key.workload).distribution)}, {quantity_text(key.n, 'count')}"


def _c_over_b(width: str) -> Cell:
    """Say block metadata over a search by every thread, both of one width."""

    def cell(view: View, key: Key) -> str:
        method, other = pair_of(width, view.is_gpu)
        return cells.speedup_text(view.frame, key.but(method=method), other)

    return cell


KERNELS = Spec(
    study=STUDY,
    first="Items",
    label=_batch,
    cases=kernels,
    columns={
        "Elements": _elements,
        "Octopus": cells.time(),
        "Of copy": cells.text(derived="share", other=COPY),
        **{head: cells.speedup(other) for other, head in OVER.items()},
        "C over B": _c_over_b("vector"),
        "C over B, one element": _c_over_b("scalar"),
        "Floor": cells.floor(),
    },
    caption="Who owns which element: kernels that multiply float32 elements by their item's gain. Time of Octopus "
    "(block search), its share of the copy bound, and its speed-ups over A (lookup table), B (search by every thread) "
    "and C (block metadata), all with several elements per thread, with the verdict where it isn't faster. C over B, "
    "like for like: several elements per thread in both, or one in both, as published. "
    f"Medians, {cells.WIDE_NOTE}; floor: difference of Octopus to itself. A dash: not measured in "
    "these rows.",
    absent=f"Mapping strategies. {no_run(STUDY)}",
    widths=("1.6fr", "1.1fr", "1.2fr", *("1fr",) * 8),
)


def tuner(frame: Frame) -> Table:
    """What the tuner takes, and the comparisons that it decides, beside the published ones."""
    probe = frame.text(published("auto_tuner", "all", "tuner", "probe_time"))
    lines = [(["Probe", probe], lambda view: view.text(view.key(method="tuner", quantity="probe"), MISSING))]
    for name, operation in (("multiply", "multiply"), ("blur", "blur3x3")):
        gain = frame.text(published("auto_tuner", name, "block-metadata", "speedup_over_thread_search"))
        for width, each, printed in (("scalar", "one element", gain), ("vector", "several elements", MISSING)):
            label = f"C over B, {each}, {name}, VisDrone, most items"
            lines.append(([label, printed], _most_items(operation, width)))
    caption = (
        "What the tuner's probe takes. C over B: block metadata over a search by every thread, both with one element "
        "per thread, as published, or both with several."
    )
    return beside(views(frame, STUDY), ["", "Jetson Orin Nano, published"], lines, caption, no_run(STUDY))


def _most_items(operation: str, width: str) -> Callable[[View], str]:
    def cell(view: View) -> str:
        keys = timed(view, "visdrone", operation)
        return _c_over_b(width)(view, keys[-1]) if keys else MISSING

    return cell


REPORT = StudyReport(
    numbers=(gains, copy_shares, ranges, counts, table_size, tuner_numbers),
    compares=compares,
    tables={"mapping": KERNELS, "tuner": tuner},
    figures={
        "mapping_scaling": Chart(
            mapping_figure.scaling,
            caption="What a search by every thread and a lookup table cost against Octopus, over the number of items.",
        )
    },
)
