"""Mapping strategies, who owns which element of a ragged batch: kernels of each strategy, and the tuner."""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from octopus_study.measure.statistics import median_interval
from octopus_study.names import DISTRIBUTIONS, OPERATIONS, PUBLISHED_MACHINES, SUBJECT, facts, human
from octopus_study.names import STRATEGIES as LABELS
from octopus_study.report import captions
from octopus_study.report.charts import style
from octopus_study.report.charts.palette import BLACK, METHOD_COLORS, METHOD_MARKERS, SKY, YELLOW
from octopus_study.report.frame import Frame, Key, Number, joined, make_number, published
from octopus_study.report.machines import kind
from octopus_study.report.measured import floor_of, share_of_bound, speedup, spread
from octopus_study.report.missing import no_run
from octopus_study.report.runs import Run, cached
from octopus_study.report.samples import Group, by_block, groups, pivot
from octopus_study.report.selector import either, where
from octopus_study.report.study import Chart, StudyReport
from octopus_study.report.tables import cells
from octopus_study.report.tables.spec import Spec, beside
from octopus_study.report.tables.writers import MISSING, Table
from octopus_study.report.text import quantity_text
from octopus_study.report.view import KERNEL, View, views
from octopus_study.units import significant

STUDY = "mapping"
EVEN = "even"
UNEVEN = tuple(name for name in DISTRIBUTIONS if name != EVEN)
NO_TIMES = "No run of the study mapping that is shown timed a kernel."
# Like for like: block metadata against a search by every thread, both with as many elements per thread; as published,
# that is one.
PAIRS = {"scalar": ("block-metadata-scalar", "thread-search-scalar"), "vector": ("block-metadata", "thread-search")}
_BANDS = {"t4": SKY, "jetson-orin-nano": YELLOW}
# What a line is called -> its pair, or the width of block metadata and search; whose look it has; dashes.
_LINES: dict[str, tuple[tuple[str, str] | str, str, str]] = {
    "D (Octopus) over A": ((SUBJECT, "lookup"), "lookup", "-"),
    "D (Octopus) over B": ((SUBJECT, "thread-search"), "thread-search", "-"),
    "D (Octopus) over C": ((SUBJECT, "block-metadata"), SUBJECT, "-"),
    "C over B": ("vector", "block-metadata", "--"),
    "C over B, one element in both (as published)": ("scalar", "block-metadata-scalar", "--"),
}
OPERATION, COPY = "multiply", "copy-bound"
# As the source sorts them.
CLASSES = {
    "memory-bound": ("multiply", "normalize", "threshold"),
    "compute-bound": ("gamma", "blur3x3", "blur5x5-sobel"),
}
AGAINST_SEARCH = (SUBJECT, "thread-search")
AGAINST_TABLE = ("block-metadata", "lookup")
# What the tuner chooses among, whether it is for stencils, and how much more than the fastest counts as well chosen.
STRATEGIES = ("octopus", "thread-search", "block-metadata", "block-metadata-tuned", "lookup")
CHOICES = {False: "choice_pointwise", True: "choice_stencil"}
STENCILS = ("blur3x3", "blur5x5-sobel")
REGRET = 1.1
BEYOND = 0.02  # a gain or a loss counts beyond this and beyond noise
OVER = {
    "lookup": "over A",
    "thread-search": "over B",
    "block-metadata": "over C",
    "block-metadata-tuned": "over C, tuned",
}


def pair_of(width: str, is_gpu: bool) -> tuple[str, str]:
    """Return block metadata and the search of one width. A CPU reads owners one by one, whatever the search does."""
    method, other = PAIRS[width]
    return (method if is_gpu else "block-metadata", other)


def timed(view: View, distribution: str, operation: str = "multiply") -> list[Key]:
    """Return the kernels of Octopus on a distribution, by ascending number of items."""
    return view.cases(SUBJECT, "kernel", (KERNEL,), order=[f"{distribution}-{operation}"])


def measured(frame: Frame) -> list[View]:
    """Return the machines that timed a kernel."""
    return [view for view in views(frame, STUDY) if any(timed(view, name) for name in UNEVEN)]


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
    """Yield block metadata against the search at equal width, and against the table; the comparisons of Octopus every
    study has."""
    for pair in (*_pairs(run).values(), AGAINST_TABLE):
        for ratio in _ratios(run, pair):
            yield from (ratio.number, ratio.verdict)


def copy_shares(run: Run) -> Iterator[Number]:
    """Yield the share of the copy bound that Octopus reaches."""
    for group, rows in groups(run, quantity="kernel", unit="ms"):
        yield from share_of_bound(run, group, pivot(rows), SUBJECT, COPY)


def ranges(run: Run) -> Iterator[Number]:
    """Yield ``memory-bound.<distribution>.<method>.range_over_<other>``: the least and the greatest ratio over the
    operations in float32 and numbers of items; ``all`` stands for all distributions of uneven sizes."""
    for pair in (*_pairs(run).values(), AGAINST_SEARCH):
        ratios = [one for one in _ratios(run, pair) if _within(one.group, CLASSES["memory-bound"])]
        for name in (*UNEVEN, "all"):
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
                found = [one.number.value for one in chosen if one.verdict.text == verdict]
                found = [ratio for ratio in found if max(ratio, 1 / ratio) > 1 + BEYOND]
                source = joined(*(one.verdict for one in chosen))._replace(dataset="n/a")
                key = run.key(f"{name}.{width}", quantity=verdict)
                text = f"{len(found)} of {len(chosen)}"
                yield make_number(key, source, "count", len(found), text=text, note=note)


def _within(group: Group, operations: tuple[str, ...]) -> bool:
    of = facts(STUDY, group.workload)
    return of.operation in operations and of.dtype == "float32" and of.distribution != EVEN


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


def regrets(run: Run) -> Iterator[Number]:
    """Yield ``tuner.worst``, the greatest ratio of a case: time of the strategy that the tuner chose for a batch / time
    of the fastest, the median over its choices; and ``tuner.within``, the share of cases where it is 1.1 at most."""
    chosen = run.rows[run.rows["quantity"].isin(CHOICES.values())]
    picks = {key: list(rows["method"]) for key, rows in chosen.groupby(["workload", "n", "quantity"])}
    layer, found = "device" if kind(run) == "gpu" else "host", []
    for group, rows in groups(run, quantity="kernel", layer=layer, unit="ms"):
        of, table = facts(STUDY, group.workload), pivot(rows)
        names = [name for name in STRATEGIES if name in table]
        choice = CHOICES[of.operation in STENCILS]
        batch = picks.get((of.distribution, group.n, choice))
        if batch and len(names) > 1 and {*batch} <= {*names}:
            times = table[names].median()
            regret = float(np.median([times[name] for name in batch]) / times.min())
            place = {"n": group.n, "quantity": "kernel", "layer": layer, "method": names}
            chose = where(workload=of.distribution, n=group.n, quantity=choice)
            source = run.from_rows(group.dataset, either((where(workload=group.workload, **place), chose)))
            note = "medians over blocks, and over choices"
            found.append(make_number(group.key(run, "tuner").derive("regret"), source, "ratio", regret, note=note))
    if found:
        within = sum(number.value <= REGRET for number in found)
        key, source = run.key(method="tuner", quantity="within"), joined(*found)._replace(dataset="n/a")
        yield make_number(key, source, "ratio", within / len(found), text=f"{within} of {len(found)}")
        worst = max(found, key=lambda number: number.value)
        yield worst.named(run.key(method="tuner", quantity="worst"))


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


def _c_over_b(width: str) -> cells.Cell:
    """Say block metadata over a search by every thread, both of one width."""

    def cell(view: View, key: Key) -> str:
        method, other = pair_of(width, view.is_gpu)
        return cells.speedup_text(view.frame, key.but(method=method), other)

    return cell


KERNELS = Spec(
    study=STUDY,
    first="Items",
    label=lambda view, key: (
        f"{human(DISTRIBUTIONS, facts(STUDY, key.workload).distribution)}, {quantity_text(key.n, 'count')}"
    ),
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
    caption=captions.TABLES["mapping"].format(wide=cells.WIDE_NOTE),
    absent=f"Mapping strategies. {no_run(STUDY)}",
    widths=("1.6fr", "1.1fr", "1.2fr", *("1fr",) * 8),
)


def tuner(frame: Frame) -> Table:
    """What the tuner takes, and the comparisons that it decides, beside the published ones."""
    probe = frame.text(published("auto_tuner", "all", "tuner", "probe_time"))
    lines = [
        (["Probe", probe], _tuner_cell("probe")),
        (["Choices within 10 % of the fastest", MISSING], _tuner_cell("within")),
        (["Worst choice over the fastest", MISSING], _tuner_cell("worst")),
    ]
    for name, operation in (("multiply", "multiply"), ("blur", "blur3x3")):
        gain = frame.text(published("auto_tuner", name, "block-metadata", "speedup_over_thread_search"))
        for width, each, printed in (("scalar", "one element", gain), ("vector", "several elements", MISSING)):
            label = f"C over B, {each}, {name}, VisDrone, most items"
            lines.append(([label, printed], _most_items(operation, width)))
    first = ["", "Jetson Orin Nano, published"]
    return beside(views(frame, STUDY), first, lines, captions.TABLES["tuner"], no_run(STUDY))


def _tuner_cell(quantity: str) -> Callable[[View], str]:
    return lambda view: view.text(view.key(method="tuner", quantity=quantity), MISSING)


def _most_items(operation: str, width: str) -> Callable[[View], str]:
    def cell(view: View) -> str:
        keys = timed(view, "visdrone", operation)
        return _c_over_b(width)(view, keys[-1]) if keys else MISSING

    return cell


def when(frame: Frame) -> Table:
    """Which strategy is the fastest, by how large the items are, how many, and what is done with them."""
    lines = [
        ([human(DISTRIBUTIONS, name), human(OPERATIONS, operation), amount], _fastest(name, operation, place))
        for name in DISTRIBUTIONS
        for operation in ("multiply", "blur3x3")
        for amount, place in (("fewest", 0), ("most", -1))
    ]
    first = ["Items", "Operation", "How many"]
    return beside(views(frame, STUDY), first, lines, captions.TABLES["when"], no_run(STUDY))


def _fastest(distribution: str, operation: str, place: int) -> Callable[[View], str]:
    def cell(view: View) -> str:
        keys = timed(view, distribution, operation)
        times: dict[str, float] = {}
        for name in STRATEGIES if keys else ():
            time, letter = view.frame.value(keys[place].but(method=name)), human(LABELS, name)[0]
            times[letter] = min(times.get(letter, math.inf), time)  # C has two sizes of blocks
        known = sorted((time, letter) for letter, time in times.items() if math.isfinite(time))
        if len(known) < 2:
            return MISSING
        return f"{known[0][1]}, {significant(known[1][0] / known[0][0])}\u00d7 over {known[1][1]}"

    return cell


def scaling(frame: Frame) -> Figure:
    """Draw what each other strategy costs against Octopus, and a search by every thread against block metadata of its
    width, over the number of items; one row of panels per machine, one panel per distribution; bands are
    published for C over B."""
    shown = measured(frame)
    if not shown:
        return style.empty(NO_TIMES)
    note = " ".join(filter(None, (_note(view) for view in shown)))
    result, parts, legend = style.stacked(style.per_machine(1.95, len(shown)), 0.45, note)
    # A line needs two points.
    panels = [name for name in DISTRIBUTIONS if any(len(timed(view, name)) > 1 for view in shown)]
    drawn = []
    for part, view in zip(parts, shown, strict=True):
        axes = part.subplots(1, len(panels), squeeze=False, sharey=True)[0]
        style.heading(part, f"{view.name}: multiply, float32")
        for axis, name in zip(axes, panels, strict=True):
            _draw_ratios(axis, view, name)
        axes[0].set(yscale="log", ylabel="Ratio of times")
        low, high = axes[0].get_ylim()
        axes[0].set_ylim(min(low, 0.8), max(high, 4.0))
        style.near_log(axes[0].yaxis)
        drawn += list(axes)
    style.legend_of(legend, drawn, 3, fontsize=6.8)
    return result


def _note(view: View) -> str:
    """Name the lines and panels that a machine's rows lack."""
    keys = [key for name in UNEVEN for key in timed(view, name)]
    pairs = {label: _pair(view, line[0]) for label, line in _LINES.items()}
    missing = [
        label
        for label, (method, other) in pairs.items()
        if not any(view.get(key.but(method=method).speedup(other)) for key in keys)
    ]
    missing += [human(DISTRIBUTIONS, name) for name in DISTRIBUTIONS if not timed(view, name)]
    return f"Not in the rows of {view.name}: {'; '.join(missing)}." if missing else ""


def _pair(view: View, pair: tuple[str, str] | str) -> tuple[str, str]:
    return pair_of(pair, view.is_gpu) if isinstance(pair, str) else pair


def _draw_ratios(axis: Axes, view: View, distribution: str) -> None:
    for machine, color in _BANDS.items():
        gain = published("block_metadata_gain", machine, "memory-bound", "speedup_over_thread_search")
        band, label = view.frame[gain], f"C over B, {human(PUBLISHED_MACHINES, machine)}, published"
        axis.axhspan(band.low, band.high, color=color, alpha=0.35, linewidth=0, label=label)
    axis.axhline(1, color=BLACK, linewidth=0.7)
    axis.set_title(human(DISTRIBUTIONS, distribution), fontsize=8, fontweight="normal")
    axis.set(xscale="log", xlabel="Items")
    keys = timed(view, distribution)
    counts = [key.n for key in keys]
    named = [n for n in counts if 2 * n not in counts and n / 1.5 not in counts]  # labels need room
    axis.set_xticks(named, [f"{n // 1000} K" if n >= 1000 else str(n) for n in named])
    axis.set_xticks([], minor=True)
    axis.set_visible(bool(keys))
    if not keys:
        return
    for label, (pair, named, dashes) in _LINES.items():
        method, other = _pair(view, pair)
        numbers = [(key.n, view.get(key.but(method=method).speedup(other))) for key in keys]
        look = {"color": METHOD_COLORS[named], "marker": METHOD_MARKERS[named], "linestyle": dashes}
        if known := {n: number for n, number in numbers if number}:
            values, spans = [number.value for number in known.values()], style.errors(list(known.values()))
            axis.errorbar(list(known), values, yerr=spans, label=label, linewidth=1.1, capsize=1.5, **look)
    axis.set_xlim(min(counts) / 1.4, max(counts) * 1.4)


REPORT = StudyReport(
    numbers=(gains, copy_shares, ranges, counts, table_size, regrets, tuner_numbers),
    compares=compares,
    tables={"mapping": KERNELS, "when": when, "tuner": tuner},
    figures={"mapping_scaling": Chart(scaling, caption=captions.FIGURES["mapping_scaling"])},
)
