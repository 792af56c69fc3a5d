"""Total cost of one batch, end to end: times of every method, gains over each lookup table, reuse, and the unfair
baselines."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import product

import numpy as np

from octopus_study.names import IMAGE_KERNELS, IMAGE_MIXES, STRATEGIES, SUBJECT
from octopus_study.report.charts.spec import Chart
from octopus_study.report.frame import Frame, Key, Number, joined, make_number, published
from octopus_study.report.machines import kind
from octopus_study.report.measured import floor_of, memory_gains, noise, speedup, spread
from octopus_study.report.missing import no_run
from octopus_study.report.runs import Run
from octopus_study.report.samples import groups, paired, pivot
from octopus_study.report.selector import either
from octopus_study.report.studies import total_cost_figures
from octopus_study.report.studies.total_cost_draws import PUBLISHED_TABLE, Costs, Draws, costs_of, gain
from octopus_study.report.studies.total_cost_figures import METHODS, OWNERS, STUDY, TABLES, WORKLOADS, cases
from octopus_study.report.study import StudyReport
from octopus_study.report.tables import cells
from octopus_study.report.tables.spec import Spec, beside
from octopus_study.report.tables.writers import Table
from octopus_study.report.view import View

LADDER = ("one-thread-per-image", "linear-search")
PUBLISHED_OWNER = OWNERS[0]
LIGHT, HEAVY = IMAGE_KERNELS
SMALLEST = next(iter(IMAGE_MIXES))
NEVER, UNDECIDED = "never", "undecided"
NO_DOWNLOAD = "total_without_download"
# Quantity -> what its gain is called; bytes and kernels are those of one table, however it is filled.
GAINS = {name: name for name in ("setup", "upload", "kernel", "total")}
GAINS |= {"map_bytes": "memory", NO_DOWNLOAD: "without_download"}
# Name -> the published number of uses, by kernel.
USES = {
    "break_even": published("amortisation", "{kernel}", "break_even"),
    "limit": published("stated_limits", "same-batch-repeated", "repetitions"),
}


def gains(run: Run) -> Iterator[Number]:
    """Yield ``gain.<step>.<workload>``, the gains of block metadata built as published over each table, with the noise
    floor; of memory also those built by compiled code; and the least and the greatest of them."""
    ranges: dict[tuple[str, str, str], list[Number]] = {}
    numbers = (*_speedups(run), *memory_gains(run, OWNERS, (PUBLISHED_TABLE,)), *_without_download(run))
    for number in numbers:
        name = GAINS[number.quantity]
        key = run.key(f"gain.{name}.{number.workload}", method=number.method, derived=number.derived)
        if number.other:
            ranges.setdefault((name, number.method, number.other), []).append(number)
            key = key.but(derived="over", other=number.other)
        yield number.named(key)
    for (name, owner, table), chosen in ranges.items():
        values = [number.value for number in chosen]
        key = run.key(f"gain.{name}", method=owner, derived="over", other=table)
        source = joined(*chosen)._replace(dataset="synthetic")
        yield spread(key, source, values, sorted(values)[len(values) // 2], "workloads")


def _speedups(run: Run) -> Iterator[Number]:
    timed = dict.fromkeys(("setup", "upload", "total"), "host")
    timed["kernel"] = "device" if kind(run) == "gpu" else "host"
    for group, rows in groups(run, unit="ms"):
        if timed.get(group.quantity) == group.layer:
            table = pivot(rows)
            yield from noise(run, group, table, floor_of(table))
            for other in TABLES[:1] if group.quantity == "kernel" else TABLES:
                yield from list(speedup(run, group, table, (PUBLISHED_OWNER, other), math.nan))[:1]


def _without_download(run: Run) -> Iterator[Number]:
    """Yield the gains in setup + upload + kernel, as the larger published total."""
    for costs in costs_of(run):
        for table in TABLES:
            if {PUBLISHED_OWNER, table} <= set(costs.once):
                key = (
                    costs.group._replace(quantity=NO_DOWNLOAD).key(run, PUBLISHED_OWNER).derive("gain", table)
                )
                drawn = costs.ratio(table, PUBLISHED_OWNER, 1)
                note = "time / time, medians of each stage"
                source = run.from_rows(costs.group.dataset, drawn.selector)
                yield make_number(key, source, "ratio", *drawn.interval, note=note)


def averages(run: Run) -> Iterator[Number]:
    """Yield ``average.without_download``: the arithmetic mean over the mixes with the light kernel, as the source
    averages; and ``gain.total.<mix>``: the gain with the heavy kernel / with the light one."""
    costs = {one.group.workload: one for one in costs_of(run)}
    mixes = [costs[name] for mix in IMAGE_MIXES if (name := f"{mix}-{LIGHT}") in costs]
    for owner, table in product(OWNERS, TABLES):
        if len(mixes) == len(IMAGE_MIXES) and all({owner, table} <= set(one.once) for one in mixes):
            key = run.key("average.without_download", method=owner, derived="over", other=table)
            drawn = [one.ratio(table, owner, 1) for one in mixes]
            yield _of_draws(run, key, drawn, lambda *gains: np.mean(gains, axis=0))
    pair = (PUBLISHED_OWNER, PUBLISHED_TABLE)
    totals = {
        group.workload: gain(pivot(rows), *pair, group.rows_of(run, " and ".join(pair)).selector)
        for group, rows in groups(run, quantity="total", layer="host", unit="ms")
    }
    for mix in IMAGE_MIXES:
        heavy, light = (totals.get(f"{mix}-{kernel}") for kernel in (HEAVY, LIGHT))
        if heavy and light:
            key = run.key(f"gain.total.{mix}", method=pair[0], derived="heavy", other=pair[1])
            yield _of_draws(run, key, [heavy, light], np.divide)


def _of_draws(run: Run, key: Key, drawn: list[Draws], function: Callable[..., np.ndarray]) -> Number:
    """Return a function of several gains; without an interval where they are not of as many processes."""
    source = run.from_rows("synthetic", either(one.selector for one in drawn))
    same = len({len(one.values) for one in drawn}) == 1
    values = function(*(one.values if same else one.values[:1] for one in drawn))
    found = Draws(values, min(one.blocks for one in drawn), drawn[0].processes)
    note = "from the gains of the workloads"
    interval = found.interval._replace(count=found.blocks if found.blocks > 1 else None)
    return make_number(key, source, "ratio", *interval, note=note)


def download(run: Run) -> Iterator[Number]:
    """Yield ``gain.download``: the result's way back with the table / with Octopus, which is the same array."""
    ratios, chosen = [], []
    for group, rows in groups(run, quantity="download", unit="ms"):
        both = paired(pivot(rows), SUBJECT, PUBLISHED_TABLE)
        if len(both) > 1:
            ratios.append(float((both[PUBLISHED_TABLE] / both[SUBJECT]).median()))
            chosen.append(group.rows_of(run, f"{SUBJECT} and {PUBLISHED_TABLE}").selector)
    if ratios:
        key = run.key("gain.download", method=SUBJECT, derived="over", other=PUBLISHED_TABLE)
        source = run.from_rows("synthetic", either(chosen))
        yield spread(key, source, ratios, float(np.median(ratios)), "mixes")


def ladder_numbers(run: Run) -> Iterator[Number]:
    """Yield ``ladder.<baseline>``: time of an unfair baseline / time of Octopus."""
    for group, rows in groups(run, unit="ms", quantity="kernel"):
        table = pivot(rows)
        for other in LADDER:
            for number in list(speedup(run, group, table, (SUBJECT, other), floor_of(table)))[:1]:
                yield number.named(run.key("ladder", method=other))


def reuse(run: Run, frame: Frame) -> Iterator[Number]:
    """Yield, for the smallest mix and the published table, the uses from which on it is cheaper than block metadata
    built as published; and ``reuse.<name>.<kernel>``: time with it / time with block metadata after the published
    numbers of uses, at most 1 where the table has caught up."""
    smallest = {f"{SMALLEST}-{kernel}": kernel for kernel in IMAGE_KERNELS}
    for costs in costs_of(run):
        kernel = smallest.get(costs.group.workload)
        for owner in OWNERS:
            if kernel and {owner, PUBLISHED_TABLE} <= set(costs.once):
                if owner == PUBLISHED_OWNER:
                    yield _crossover(run, costs)
                for name, pattern in USES.items():
                    number = frame[pattern.format(kernel=kernel)]
                    uses = number.value if number.known else number.low  # of "100+" the lower end
                    drawn = costs.ratio(PUBLISHED_TABLE, owner, uses)
                    note = f"setup + upload + {uses:g} kernels, from medians"
                    place = {"method": PUBLISHED_TABLE, "derived": "over", "other": owner}
                    source = run.from_rows(costs.group.dataset, drawn.selector)
                    key = run.key(f"reuse.{name}.{kernel}", **place)
                    yield make_number(key, source, "ratio", *drawn.interval, note=note)


def _crossover(run: Run, costs: Costs) -> Number:
    """Return the uses from which on the table is the cheaper one: never in nearly all resamples, or undecided."""
    drawn, group = costs.crossover(PUBLISHED_TABLE, PUBLISHED_OWNER), costs.group
    found, note = drawn.interval, "setup + upload + uses * kernel, from medians"
    place = {"derived": "crossover", "other": PUBLISHED_OWNER}
    key, source = (
        run.key(group.workload, int(group.n), PUBLISHED_TABLE, **place),
        run.from_rows(group.dataset, drawn.selector),
    )
    if math.isfinite(found.high) and math.isfinite(found.value):
        return make_number(key, source, "count", *found, note=note)
    text = NEVER if math.isinf(found.low) else UNDECIDED
    return make_number(key, source, "count", math.nan, text=text, note=f"{note}; {text}")


TIMES = Spec(
    study=STUDY,
    first="Images, kernel",
    label=lambda view, key: WORKLOADS[key.workload],
    cases=cases,
    columns={STRATEGIES[name]: cells.time(method=name) for name in METHODS},
    caption="Total cost of one batch of uint8 images, timed end to end: setup, upload, kernel and download of the "
    "result (on a CPU setup and kernel). Light: blur 3\u00d73; heavy: blur 5\u00d75 and Sobel. Medians, "
    f"{cells.WIDE_NOTE}. A dash: not measured in these rows.",
    absent=f"Total cost. {no_run(STUDY)}",
    widths=("1.7fr", *("1.1fr" for _ in METHODS)),
)
# A rung -> its name, and where its number is.
_RUNGS = {
    "one-thread-per-image": ("One thread per image", "ladder", {"method": LADDER[0]}),
    "grid-stride-linear-search": ("Linear search by every thread", "ladder", {"method": LADDER[1]}),
    "grid-stride-lookup-kernel-only": ("Lookup table, kernel alone", "gain.kernel", {}),
    "grid-stride-lookup-with-setup": ("Lookup table with its setup", "gain.without_download", {}),
}
_OF_TABLE = {"method": PUBLISHED_OWNER, "derived": "over", "other": PUBLISHED_TABLE}


def ladder(frame: Frame) -> Table:
    """The ladder of baselines: how much of a gain is the baseline's weakness."""

    def rung(place: str, columns: dict[str, str]) -> Callable[[View], str]:
        workload = place if columns else f"{place}.{SMALLEST}-{LIGHT}"
        return lambda view: cells.number_text(view.frame, view.key(workload, **(columns or _OF_TABLE)))

    lines = [
        ([name, frame.text(published("baseline_ladder", key, "gain"))], rung(place, columns))
        for key, (name, place, columns) in _RUNGS.items()
    ]
    caption = (
        "Baselines from unfair to fair, 500 images, light kernel: time of the baseline / time of Octopus; of the "
        "lookup table and in the published column, time / time of block metadata, both built as published. With its "
        "setup: no download. What a method gains depends on what it is compared with."
    )
    first = ["Baseline", "RTX 4090, published"]
    return beside(total_cost_figures.measured(frame), first, lines, caption, no_run(STUDY))


REPORT = StudyReport(
    numbers=(gains, averages, download, ladder_numbers),
    beside_all=(reuse,),
    compares=lambda group, other: False,
    tables={"total_cost": TIMES, "ladder": ladder},
    figures={
        "total_cost_stack": Chart(
            total_cost_figures.steps,
            "Where the time of one batch goes, method by method: setup, upload, kernel and download.",
        ),
        "amortisation": Chart(
            total_cost_figures.amortisation,
            "When a lookup table pays: time of many uses of one batch, as a multiple of that of Octopus.",
        ),
    },
)
