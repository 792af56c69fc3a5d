"""Total cost of one batch, end to end: times of every method, gains over each lookup table, reuse, and the unfair
baselines."""

import math
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from octopus_study.measure.dependence import PROCESS_BLOCKS, blocks_of, by_process, process_count
from octopus_study.measure.statistics import Interval, mean_interval
from octopus_study.names import COST_PARTS, IMAGE_KERNELS, IMAGE_MIXES, STRATEGIES, SUBJECT, facts
from octopus_study.report import captions
from octopus_study.report.charts import bars, style
from octopus_study.report.charts.palette import BLACK, BLUE, COST_COLORS, VERMILION
from octopus_study.report.frame import Frame, Key, Number, joined, make_number, published
from octopus_study.report.machines import kind
from octopus_study.report.measured import floor_of, memory_gains, noise, speedup, spread
from octopus_study.report.missing import no_run
from octopus_study.report.runs import DataFrame, Run, Samples, cached
from octopus_study.report.samples import RESAMPLES, Group, blocks, groups, paired, pivot
from octopus_study.report.selector import either, where
from octopus_study.report.study import Chart, StudyReport
from octopus_study.report.tables import cells
from octopus_study.report.tables.spec import Spec, beside
from octopus_study.report.tables.writers import MISSING, Table
from octopus_study.report.text import quantity_text
from octopus_study.report.view import View, views

STUDY = "total_cost"
NO_TIMES = "No run of the study total_cost that is shown timed anything."
OWNERS = ("block-metadata-published", "block-metadata")  # built by a loop, as published, or by compiled code
PUBLISHED_TABLE, SAME_TABLE = "lookup-published", "lookup-vectorised"
TABLES = (PUBLISHED_TABLE, SAME_TABLE, "lookup-device")
METHODS = (*TABLES, "thread-search", *OWNERS, SUBJECT)
WORKLOADS = {f"{mix}-{kernel}": f"{name}, {kernel}" for kernel in IMAGE_KERNELS for mix, name in IMAGE_MIXES.items()}
# The smallest and the largest mix, with both kernels; the table has all.
_PANELS = [f"{mix}-{kernel}" for mix in ("photos-500", "photos-1000-8k") for kernel in IMAGE_KERNELS]
_METHOD = 0.2  # inches
_USES = (1, 2, 5, 10, 20, 53, 100, 151, 200, 500, 1000)
# Lines: the table, the looks, whose colour.
_REUSED = {PUBLISHED_TABLE: "-", "lookup-device": ":"}
_KERNEL_COLORS = dict(zip(IMAGE_KERNELS, (BLUE, VERMILION), strict=True))
LADDER = ("one-thread-per-image", "linear-search", "block-per-image")
PUBLISHED_OWNER = OWNERS[0]
LIGHT, HEAVY = IMAGE_KERNELS
SMALLEST = next(iter(IMAGE_MIXES))
NO_DOWNLOAD = "total_without_download"
# Quantity -> what its gain is called; bytes and kernels are those of one table, however it is filled.
GAINS = {name: name for name in ("setup", "upload", "kernel", "total")}
OF_SUBJECT = ("kernel", "total")  # of which the gains of Octopus over the tables are told too
GAINS |= {"map_bytes": "memory", NO_DOWNLOAD: "without_download"}
# Name -> the published number of uses, by kernel.
USES = {
    "break_even": published("amortisation", "{kernel}", "break_even"),
    "limit": published("stated_limits", "same-batch-repeated", "repetitions"),
}


def cases(view: View) -> list[Key]:
    """Return the total time of Octopus in each workload that was measured."""
    return view.cases(SUBJECT, "total", ("host",), order=list(WORKLOADS))


def measured(frame: Frame) -> list[View]:
    """Return the machines that measured some workload."""
    return [view for view in views(frame, STUDY) if cases(view)]


def parts(frame: Frame, case: Key, method: str) -> dict[str, float]:
    """Return the milliseconds of each step of a method. Setup and copies are those of the mix with its light kernel;
    the way back is the same for all methods, and the way there for both tables that are filled on the host."""
    case = case.but(method=method, layer="host")
    mix = case.but(workload=case.workload.replace("-heavy", "-light"))
    keys = {step: [mix.but(quantity=step)] for step in ("setup", "upload", "download")}
    keys["kernel"] = [case.but(quantity="kernel")]
    keys["upload"] += [keys["upload"][0].but(method=PUBLISHED_TABLE)] if method == SAME_TABLE else []
    keys["download"].append(keys["download"][0].but(method=SUBJECT))
    found = {step: [frame.value(key) for key in keys[step]] for step in COST_PARTS}
    known = {step: [value for value in values if value == value] for step, values in found.items()}
    return {step: values[0] for step, values in known.items() if values}


class Draws(NamedTuple):
    """A value as measured, then of resampled blocks or, where several processes measured, of each of them,
    (1 + draws,); blocks, processes and rows that it rests on."""

    values: np.ndarray
    blocks: int
    processes: int = 1
    selector: str = ""

    @property
    def interval(self) -> Interval:
        """The value with its interval (95 %)."""
        value, draws = float(self.values[0]), self.values[1:]
        if self.blocks < 2 or not draws.size:
            return Interval(value, math.nan, math.nan, self.blocks, self.processes)
        if self.processes == 1:
            low, high = np.quantile(draws, (0.025, 0.975), method="inverted_cdf")
        else:
            value, low, high = np.exp(mean_interval(np.log(draws))[:3])
        rests = (self.blocks, self.processes, self.processes == 1)
        return Interval(float(value), float(low), float(high), *rests)


class Costs(NamedTuple):
    """What the methods cost on one workload: milliseconds before the first kernel (`once`) and of each kernel, by
    method, (1 + draws,); those of the kernels by block; the fewest blocks of any stage."""

    group: Group
    once: dict[str, np.ndarray]
    each: dict[str, np.ndarray]
    kernels: DataFrame
    blocks: int

    def ratio(self, table: str, method: str, uses: float) -> Draws:
        """Return time with a table / time with a method after so many uses."""
        times = [self.once[name] + uses * self.each[name] for name in (table, method)]
        return self._draws(times[0] / times[1], table, method)

    def _draws(self, values: np.ndarray, *methods: str) -> Draws:
        place, mix = {"n": self.group.n, "layer": "host", "method": methods}, _light(self.group.workload)
        there = dict.fromkeys((*methods, *[PUBLISHED_TABLE] * (SAME_TABLE in methods)))
        rests = (
            where(workload=mix, quantity="setup", **place),
            where(workload=mix, quantity="upload", **place | {"method": there}),
            where(workload=self.group.workload, quantity="kernel", **place),
        )
        return Draws(values, self.blocks, process_count(self.kernels), either(rests))


def draw(table: DataFrame | Samples) -> np.ndarray:
    """Return medians over the blocks, (1 + draws, ...): as measured, then of blocks drawn with replacement, whole, so
    that methods stay paired; or of each process where several measured."""
    values = table.to_numpy()
    parts = by_process(values, blocks_of(table))
    if len(parts) > 1:
        drawn = np.stack([np.median(part, axis=0) for part in parts])
    else:
        chosen = np.random.default_rng(0).integers(0, len(values), (RESAMPLES, len(values)))
        drawn = np.median(values[chosen], axis=1)
    return np.concatenate([np.median(values, axis=0)[None], drawn])


def gain(table: DataFrame, method: str, other: str, selector: str) -> Draws | None:
    """Return time of the other / time of the method over the blocks that both have; None where they are too few."""
    both = paired(table, method, other)
    return Draws(draw(both[other] / both[method]), len(both), process_count(both), selector) if len(both) > 1 else None


def together(*tables: DataFrame) -> list[DataFrame]:
    """Return the blocks of those processes that measured all of some tables."""
    common = set.intersection(*({*(table.index // PROCESS_BLOCKS)} for table in tables))
    return [table[(table.index // PROCESS_BLOCKS).isin(common)] for table in tables]


@cached
def costs_of(run: Run) -> Iterator[Costs]:
    """Yield what each method costs on the workloads whose kernels the host timed. Setup and upload are those of the mix
    with its light kernel; a table's upload takes as long, whether one call filled it or a loop."""
    stages = {
        (group.workload, group.quantity): blocks(rows)
        for group, rows in groups(run, layer="host", unit="ms")
        if group.quantity in ("setup", "upload", "kernel")
    }
    for group, _ in groups(run, quantity="kernel", layer="host"):
        mix = _light(group.workload)
        found = [stages.get((mix, "setup")), stages[group.workload, "kernel"], stages.get((mix, "upload"))]
        shown = together(*(stage for stage in found if stage is not None))
        if found[0] is not None and min(map(len, shown)):
            once, each, *uploads = (dict(zip(map(str, stage), draw(stage).T, strict=True)) for stage in shown)
            for upload in uploads:
                if PUBLISHED_TABLE in upload:
                    upload.setdefault(SAME_TABLE, upload[PUBLISHED_TABLE])
                once = {name: times + upload.get(name, 0.0) for name, times in once.items()}
            both = [name for name in each if name in once]
            once, each = ({name: one[name] for name in both} for one in (once, each))
            yield Costs(group, once, each, shown[1], min(map(len, shown)))


def _light(workload: str) -> str:
    return workload.replace("-heavy", "-light")


def compares(group: Group, other: str) -> bool:
    """Octopus is compared with the unfair baselines, and by the way back of its result."""
    ladder = group.workload.endswith("-ladder") or other in LADDER
    return ladder or (other == PUBLISHED_TABLE and group.quantity == "download")


def gains(run: Run) -> Iterator[Number]:
    """Yield ``gain.<step>.<workload>``, the gains of block metadata built as published over each table, with the noise
    floor; of memory also those built by compiled code; the least and the greatest of them; and the gains of Octopus."""
    ranges: dict[tuple[str, str, str], list[Number]] = {}
    numbers = (*_speedups(run), *memory_gains(run, OWNERS, (PUBLISHED_TABLE,)), *_without_download(run))
    for number in numbers:
        name = GAINS[number.quantity]
        key = run.key(f"gain.{name}.{number.workload}", method=number.method, derived=number.derived)
        if number.other:
            if number.method != SUBJECT:
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
                for owner in (PUBLISHED_OWNER, *[SUBJECT] * (group.quantity in OF_SUBJECT)):
                    yield from list(speedup(run, group, table, (owner, other), math.nan))[:1]


def _without_download(run: Run) -> Iterator[Number]:
    """Yield the gains in setup + upload + kernel, as the larger published total."""
    for costs in costs_of(run):
        for owner, table in product((PUBLISHED_OWNER, SUBJECT), TABLES):
            if {owner, table} <= set(costs.once):
                key = costs.group._replace(quantity=NO_DOWNLOAD).key(run, owner).derive("gain", table)
                drawn = costs.ratio(table, owner, 1)
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


def reuse(run: Run, frame: Frame) -> Iterator[Number]:
    """Yield ``reuse.<name>.<kernel>``: time with the published table / time with block metadata after the published
    numbers of uses, on the smallest mix; at most 1 where the table has caught up."""
    kernels = {f"{SMALLEST}-{kernel}": kernel for kernel in IMAGE_KERNELS}
    for costs in costs_of(run):
        kernel = kernels.get(costs.group.workload)
        for owner, (name, pattern) in product(OWNERS, USES.items()):
            if kernel and {owner, PUBLISHED_TABLE} <= set(costs.once):
                number = frame[pattern.format(kernel=kernel)]
                uses = number.value if number.known else number.low  # of "100+" the lower end
                drawn = costs.ratio(PUBLISHED_TABLE, owner, uses)
                note = f"setup + upload + {uses:g} kernels, from medians"
                key = run.key(f"reuse.{name}.{kernel}", method=PUBLISHED_TABLE, derived="over", other=owner)
                source = run.from_rows(costs.group.dataset, drawn.selector)
                yield make_number(key, source, "ratio", *drawn.interval, note=note)


TIMES = Spec(
    study=STUDY,
    first="Images, kernel",
    label=lambda view, key: WORKLOADS[key.workload],
    cases=cases,
    columns={STRATEGIES[name]: cells.time(method=name) for name in METHODS},
    caption=captions.TABLES["total_cost"].format(wide=cells.WIDE_NOTE),
    absent=f"Total cost. {no_run(STUDY)}",
    widths=("1.7fr", *("1.1fr" for _ in METHODS)),
)
# A rung's name -> where its gain is published, and what is measured: a baseline, or a step and the table.
_RUNGS: dict[str, tuple[tuple[str, str], tuple[str, ...]]] = {
    "One thread per image": (("baseline_ladder", "one-thread-per-image"), LADDER[:1]),
    "Linear search by every thread": (("baseline_ladder", "grid-stride-linear-search"), LADDER[1:2]),
    "Table: kernel alone": (("baseline_ladder", "grid-stride-lookup-kernel-only"), ("kernel", PUBLISHED_TABLE)),
    "Table: and its setup": (("baseline_ladder", "grid-stride-lookup-with-setup"), (NO_DOWNLOAD, PUBLISHED_TABLE)),
    "Table: and download": (("pipeline_gain", "total"), ("total", PUBLISHED_TABLE)),
    "The same, table built on the GPU": (("", ""), ("total", TABLES[-1])),
}


def ladder(frame: Frame) -> Table:
    """The ladder of baselines: how much of a gain is the baseline's weakness; that of block metadata as published, and
    that of Octopus."""
    place, shown = f"{SMALLEST}-{LIGHT}", measured(frame)

    def cell(view: View, owner: str, measured: tuple[str, ...]) -> str:
        if len(measured) == 1:
            keys = view.cases(SUBJECT, "kernel", ("device",), order=[f"{place}-ladder"])
            known = keys and owner == SUBJECT
            return cells.number_text(view.frame, keys[0].speedup(*measured)) if known else MISSING
        step, table = measured
        key = view.key(f"gain.{GAINS.get(step, step)}.{place}", method=owner, derived="over", other=table)
        return cells.number_text(view.frame, key)

    def rung(measured: tuple[str, ...]) -> Callable[[View], list[str]]:
        return lambda view: [cell(view, owner, measured) for owner in (PUBLISHED_OWNER, SUBJECT)]

    lines = [
        ([name, frame.text(published(*source, "gain"), MISSING) if all(source) else MISSING], rung(measured))
        for name, (source, measured) in _RUNGS.items()
    ]
    caption = captions.TABLES["ladder"]
    first = ["Baseline", "RTX 4090, published"]
    return beside(shown, first, lines, caption, no_run(STUDY), heads=("{}: C", "D"), widths=(("2.2fr", "1.2fr"), "1fr"))


def steps(frame: Frame) -> Figure:
    """Draw one row of panels per machine: the time of each step of each method, and of the whole."""
    shown = measured(frame)
    if not shown:
        return style.empty(NO_TIMES)
    heights = style.per_machine(0.95 + _METHOD * len(METHODS), len(shown))
    result, places, below = style.stacked(heights, 0.25, " ".join(filter(None, map(_note, shown))))
    drawn: list[Axes] = []
    for place, view in zip(places, shown, strict=True):
        style.heading(place, view.name)
        drawn += _panels(place, view)
    ends = [end for axis in drawn for end in axis.get_xlim()]
    for axis in drawn:
        axis.set_xlim(min(ends), max(ends))
        style.plain_log(axis.xaxis, narrow=True)
        axis.xaxis.set_major_locator(LogLocator(numticks=4))
        axis.xaxis.set_minor_locator(LogLocator(numticks=99))
        axis.grid(True, axis="x", which="both")
    style.legend_of(below, drawn, 5, fontsize=6.8)
    return result


def draw_reuse(frame: Frame) -> Figure:
    """Draw, per machine, time with a lookup table / time with block metadata as published over how often the smallest
    mix is used, without download; crosses stand where the source says that the table has caught up."""
    shown = measured(frame)
    if not shown:
        return style.empty(NO_TIMES)
    result, (part,), below = style.stacked([1.75], 0.45)
    axes = part.subplots(1, len(shown), squeeze=False, sharey=True)[0]
    for axis, view in zip(axes, shown, strict=True):
        axis.axhline(1, color=BLACK, linewidth=0.7)
        for kernel in IMAGE_KERNELS:
            _reused(axis, view, kernel)
        axis.set(xscale="log", yscale="log", xlabel="Uses of one batch")
        axis.annotate(view.name, (0.97, 0.9), xycoords="axes fraction", ha="right", fontsize=8, fontweight="bold")
        style.plain_log(axis.xaxis, narrow=True)
        style.plain_log(axis.yaxis)
    axes[0].set_ylabel("Ratio of times")
    style.legend_of(below, list(axes), 3, fontsize=6.8)
    return result


def _reused(axis: Axes, view: View, kernel: str) -> None:
    case = next((key for key in cases(view) if key.workload == f"{next(iter(IMAGE_MIXES))}-{kernel}"), None)
    color = _KERNEL_COLORS[kernel]
    uses = view.frame.value(published("amortisation", kernel, "break_even"))
    axis.plot(uses, 1, "x", color=color, label=f"Published: caught up, {kernel}")
    owner = case and parts(view.frame, case, OWNERS[0])
    for table, dashes in _REUSED.items() if case else ():
        step = parts(view.frame, case, table)
        if owner and {"setup", "kernel"} <= {*step} and {"setup", "kernel"} <= {*owner}:
            first, second = (each["setup"] + each.get("upload", 0) for each in (step, owner))
            ratios = [(first + n * step["kernel"]) / (second + n * owner["kernel"]) for n in _USES]
            axis.plot(_USES, ratios, dashes, color=color, label=f"{STRATEGIES[table]}, {kernel}")


def _panels(part: Any, view: View) -> list[Axes]:
    keys = [key for key in cases(view) if key.workload in _PANELS] or cases(view)[:4]
    keys.sort(key=lambda key: list(WORKLOADS).index(key.workload) % len(IMAGE_MIXES))
    methods = _timed(view, keys)
    axes = part.subplots(1, len(keys), squeeze=False)[0]
    for place, (axis, key) in enumerate(zip(axes, keys, strict=True)):
        _steps(axis, view.frame, key, methods)
        bars.names(axis, [STRATEGIES[name] if place == 0 else "" for name in methods], fontsize=6.5)
        axis.set_title(_name(key.workload), fontsize=7.2, fontweight="normal")
    part.supxlabel("Time (ms)", fontsize=7.5)
    return list(axes)


def _name(workload: str) -> str:
    of = facts(STUDY, workload)
    return f"{IMAGE_MIXES[of.distribution]},\n{IMAGE_KERNELS[of.operation]}"


def _timed(view: View, keys: list[Key]) -> list[str]:
    known = [{name: parts(view.frame, key, name) for name in METHODS} for key in keys]
    return [name for name in METHODS if any({"kernel", "setup"} <= set(one[name]) for one in known)]


def _note(view: View) -> str:
    """Name the methods that a machine lacks."""
    timed = _timed(view, cases(view))
    missing = [STRATEGIES[name] for name in METHODS if name not in timed]
    return f"Not on {view.name}: {'; '.join(missing)}." if missing else ""


def _steps(axis: Axes, frame: Frame, case: Key, methods: list[str]) -> None:
    for place, method in enumerate(methods):
        for step, time in parts(frame, case, method).items():
            axis.plot(time, place, "o", color=COST_COLORS[step], markeredgewidth=0, label=COST_PARTS[step])
        total = frame.value(case.but(method=method))
        if math.isfinite(total):
            axis.plot(total, place, "|", color=BLACK, markersize=9, label="The whole, end to end")
            bars.beside(axis, place, 1, quantity_text(total, "ms"), fontsize=6, xycoords=axis.get_yaxis_transform())
    axis.set(xscale="log")


REPORT = StudyReport(
    numbers=(gains, averages),
    beside_all=(reuse,),
    compares=compares,
    tables={"total_cost": TIMES, "ladder": ladder},
    figures={
        "total_cost_stack": Chart(steps, captions.FIGURES["total_cost_stack"]),
        "total_cost_reuse": Chart(draw_reuse, captions.FIGURES["total_cost_reuse"]),
    },
)
