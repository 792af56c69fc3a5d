"""Two models on one GPU: how much of the shorter model hides behind the longer one, and what copies ahead and
processes gain or take."""

import textwrap
from collections.abc import Iterable, Iterator
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from octopus_study.measure.statistics import MIN_BLOCKS, median_interval, ratio_interval
from octopus_study.names import AGAIN, CONCURRENCY_ARMS, CONCURRENCY_MODELS, CONCURRENCY_PAIRS
from octopus_study.report import captions
from octopus_study.report.charts import bars, style
from octopus_study.report.charts.palette import BLACK, CONCURRENCY_COLORS
from octopus_study.report.frame import Frame, Key, Number, Source, joined, make_number, make_text
from octopus_study.report.measured import floor_of
from octopus_study.report.missing import by_reason, footer, measured_runs, no_run, with_reasons
from octopus_study.report.runs import DataFrame, Run
from octopus_study.report.samples import Group, by_block, groups, paired, pivot
from octopus_study.report.selector import either, where
from octopus_study.report.study import Chart, StudyReport
from octopus_study.report.tables import cells
from octopus_study.report.tables.spec import Spec
from octopus_study.report.tables.writers import MISSING
from octopus_study.report.view import View, views
from octopus_study.units import significant

STUDY, PAIR, BASE = "concurrency", "two-models", "sequential"
ALONE = tuple(f"{model}-alone" for model in CONCURRENCY_MODELS)
_NO_TIMES = "No run of the study concurrency that is shown ran two models."
_ROW = 0.19  # inches
no_times = partial(with_reasons, study=STUDY, sentence=_NO_TIMES)
Columns = tuple[str, str, str]  # workload, method, quantity
STREAMS, BEST = ("two-streams", "two-threads"), "best-streams"
FETCH, NO_FETCH, PATTERN = "prefetch", "no-prefetch", "pipeline"
PROCESSES, PROCESSES_MPS, FIRST = "two-processes", "two-processes-mps", "first-alone"
# What is compared: number -> workload and quantity, and the two ways, of which the first is over, or less, the second.
RATIOS: dict[Columns, tuple[str, str, str, str]] = {
    **{
        ("arms" if pair == PAIR else pair, name, "over_sequential"): (pair, "makespan", name, BASE)
        for pair in (PAIR, *CONCURRENCY_PAIRS)
        for name in CONCURRENCY_ARMS
        if name not in (BASE, *ALONE)
    },
    **{
        ("one-model", name, f"over_{other}"): ("one-model", "makespan", name, other)
        for name, other in (("two-threads", FIRST), ("batch", "two-threads"), ("batch", PROCESSES))
    },
    ("arms", "two-threads", f"over_{PROCESSES}"): (PAIR, "makespan", "two-threads", PROCESSES),
    ("latency.visual-odometry", PATTERN, "over_alone"): (PAIR, "latency_visual_odometry", PATTERN, ALONE[0]),
}
DIFFERENCES: dict[Columns, tuple[str, str, str, str]] = {
    (FETCH, "", "overlap_gain"): (PAIR, "makespan", BASE, FETCH),  # copies beside kernels
    (FETCH, "", "pinned_gain"): (PAIR, "makespan", NO_FETCH, BASE),  # memory that the GPU reads by itself
}
# Time in kernels of a traced run, and the share of it in those with a block for every multiprocessor.
FILLED_BY = ("kernel_time", "kernel_filled")


def makespan(view: View, method: str, pair: str = PAIR) -> Key:
    """Return the key of the time until both results of a frame pair are there."""
    return view.key(pair, 2, method, quantity="makespan", layer="host")


def timed(view: View) -> dict[str, Number]:
    """Return the makespans of a machine, each model alone first; none where it never ran both."""
    numbers = {method: view.get(makespan(view, method)) for method in CONCURRENCY_ARMS}
    known = {method: number for method, number in numbers.items() if number}
    return known if known.keys() - set(ALONE) else {}


def _key(run: Run, columns: Columns) -> Key:
    workload, method, quantity = columns
    return run.key(workload, method=method, quantity=quantity)


def _number(run: Run, columns: Columns, source: Source, unit: str, interval: Iterable[float], note: str = "") -> Number:
    return make_number(_key(run, columns), source, unit, *interval, note=note)


def _makespans(run: Run, **equal: str) -> Iterator[tuple[Group, DataFrame]]:
    for group, rows in groups(run, quantity="makespan", **equal):
        table = pivot(rows)
        if len(table) > 1:
            yield group, table


def floors(run: Run) -> Iterator[Number]:
    """Yield by how much one after the other differs from itself: as a time, and in parts of the shorter model, as
    overlaps are."""
    twice = (BASE, f"{BASE}{AGAIN}")
    for group, table in _makespans(run):
        floor = floor_of(table, BASE)
        if floor == floor:
            key, source = group.key(run, BASE).derive("noise_floor"), group.rows_of(run, " and ".join(twice))
            yield make_number(key, source, "fraction", floor, note=" against ".join(twice))
        if len(whole := paired(table, *ALONE, *twice)) >= MIN_BLOCKS:
            apart = (whole[twice[0]] - whole[twice[1]]) / whole[list(ALONE)].min(axis=1)
            _, low, high = median_interval(apart)[:3]
            source = group.rows_of(run, " and ".join((*twice, *ALONE)))
            note = "(makespan - makespan again) / min(T1, T2), the farther end of the interval of its median"
            floor = (max(abs(low), abs(high)),)
            yield _number(run, ("arms", BASE, "overlap_noise_floor"), source, "fraction", floor, note)


def shares(run: Run) -> Iterator[Number]:
    """Yield times of one way over those of another, and what one way takes more than another, in milliseconds."""
    for group, rows in groups(run, layer="host"):
        table = pivot(rows)
        for columns, (workload, quantity, first, second) in (RATIOS | DIFFERENCES).items():
            both = paired(table, first, second)
            if (group.workload, group.quantity) != (workload, quantity) or len(both) < 2:
                continue
            source = group.rows_of(run, f"{first} and {second}")
            if columns in DIFFERENCES:
                note = f"{first} - {second}, median over blocks"
                less = both[first] - both[second]
                yield _number(run, columns, source, "ms", median_interval(less), note)
                continue
            note = f"median of per-block ratios, {first} / {second}"
            ratio = ratio_interval(both[first], both[second])
            yield _number(run, columns, source, "ratio", ratio, note)
            if columns == ("arms", "two-streams", "over_sequential"):
                over, note = ratio.moved(-1), f"over_sequential - 1: {note}"
                yield _number(run, (*columns[:2], "overhead"), source, "fraction", over, note)


def overlaps(run: Run) -> Iterator[Number]:
    """Yield which part of the shorter model each way hides."""
    for group, table in _makespans(run, workload=PAIR):
        for method in (name for name in CONCURRENCY_ARMS if name in table and name not in ALONE):
            whole = paired(table, *ALONE, method)
            if len(whole) > 1:
                alone = whole[list(ALONE)]
                hidden = (alone.sum(axis=1) - whole[method]) / alone.min(axis=1)
                note = "(T1 + T2 - makespan) / min(T1, T2), median over blocks"
                source = group.rows_of(run, " and ".join((method, *ALONE)))
                columns = ("arms", method, "overlap")
                yield _number(run, columns, source, "fraction", median_interval(hidden), note)


def best_streams(run: Run) -> Iterator[Number]:
    """Yield the arm of two streams with the least makespan, and its shares: a claim that streams give nothing must
    hold for the best of them."""
    known = {number.key: number for number in (*shares(run), *overlaps(run))}
    arms = [known.get(_key(run, ("arms", name, "over_sequential"))) for name in STREAMS]
    if not (arms := [ratio for ratio in arms if ratio]):
        return
    best, source = min(arms, key=lambda ratio: ratio.value), joined(*arms)
    yield make_text(run.key("arms", method=BEST), source, CONCURRENCY_ARMS[best.method], best.note)
    for quantity in ("over_sequential", "overlap"):
        if found := known.get(best.key.but(quantity=quantity)):
            note = f"{best.method}, of {' and '.join(STREAMS)} the one with the least makespan: {found.note}"
            chosen = either([source.selector, found.selector])
            yield found.named(found.key.but(method=BEST))._replace(note=note, selector=chosen)


def precondition(run: Run) -> Iterator[Number]:
    """Yield how much of each model's time alone a kernel runs that has a block for every multiprocessor, and the lesser
    share: kernels that leave multiprocessors idle are not the ones that the claims on streams are about."""
    note = "time in kernels with a block for every multiprocessor / median makespan alone, median over traced runs"
    found: dict[str, Number] = {}
    for method in ALONE:
        rows = run.rows[(run.rows["method"] == method) & run.rows["value"].notna()]
        traces = rows[rows["quantity"].isin(FILLED_BY)].pivot(index="block", columns="quantity", values="value")
        alone = by_block(rows[rows["quantity"] == "makespan"])
        if traces.shape[1] == len(FILLED_BY) and len(traces.dropna()) and len(alone):
            times = traces.dropna().prod(axis=1) / median_interval(alone).value
            columns = ("precondition", method.removesuffix("-alone"), "filled")
            source = run.from_rows("n/a", _traced(method))
            found[method] = _number(run, columns, source, "fraction", median_interval(times), note)
    yield from found.values()
    if len(found) == len(ALONE):
        least = min(found.values(), key=lambda number: number.value)
        said = f"the lesser of both models, {least.method}: {note}"
        both = least.named(_key(run, ("precondition", "", "filled")))
        yield both._replace(note=said, selector=_traced(*ALONE))


def _traced(*methods: str) -> str:
    traces = where(workload=PAIR, method=methods, quantity=FILLED_BY, layer="device")
    return either([traces, where(workload=PAIR, method=methods, quantity="makespan", layer="host")])


def memory(run: Run) -> Iterator[Number]:
    """Yield what a process takes of the GPU for its context; and what two take with MPS, as a multiple of what they
    take without: their contexts alone, the server's own included, and all of it with the models loaded."""
    rows = run.rows[(run.rows["layer"] == "memory") & run.rows["value"].notna()]
    contexts = {str(name): by_block(chosen) for name, chosen in rows.groupby("method")}
    if "process" in contexts:
        source = run.from_rows(str(rows["dataset"].iloc[0]), "quantity=process_context, method=process")
        middle = median_interval(contexts["process"]).scaled(1e-6)
        yield _number(run, ("context", "process", ""), source, "MB", middle)
    clients, alone = (contexts.get(name, np.empty(0)) for name in ("process-mps", "process"))
    if len(clients) > 1 and len(alone) > 1:
        note = "server and two contexts with MPS / two contexts without; one reading with MPS, so no interval"
        source = run.from_rows("n/a", "layer=memory, quantity=process_context, method=process and process-mps")
        ratio = float(clients.sum() / (len(clients) * alone.mean()))
        yield _number(run, ("mps", "", "context_ratio"), source, "ratio", (ratio,), note)
    if {PROCESSES, PROCESSES_MPS} <= contexts.keys():
        ratio = float(contexts[PROCESSES_MPS].iloc[0] / contexts[PROCESSES].iloc[0])
        note = "device memory, models loaded, with MPS / without; one reading each, so no interval"
        source = run.from_rows("n/a", f"layer=memory, method={PROCESSES} and {PROCESSES_MPS}")
        yield _number(run, ("mps", "", "memory_ratio"), source, "ratio", (ratio,), note)


def _absent(frame: Frame) -> str:
    return f"Two models on one GPU. {no_times(frame) if frame.shown(STUDY) else no_run(STUDY)}"


def _time(view: View, key: Key) -> str:
    mark = cells.different_mark(view.get(key), view.reasons)
    return f"{cells.time_text(view.frame, key, view.reasons)}{mark}"


def _timed_keys(view: View, *pairs: str) -> list[Key]:
    keys = [makespan(view, name, pair) for pair in pairs for name in CONCURRENCY_ARMS]
    return [key for key in keys if view.text(key)] if timed(view) else []


def _latency(model: str):
    """Say the median latency of a model; alone it is the makespan."""
    return lambda view, key: (
        MISSING if key.method in ALONE else cells.number_text(view.frame, key.but(quantity=f"latency_{model}"))
    )


_ARM = {"workload": "arms", "n": None, "layer": ""}
WAYS = Spec(
    study=STUDY,
    first="Way",
    label=lambda view, key: CONCURRENCY_ARMS[key.method],
    cases=lambda view: _timed_keys(view, PAIR),
    columns={
        "Makespan": _time,
        "Ratio": cells.interval(**_ARM, quantity="over_sequential"),
        "Hidden": cells.interval(**_ARM, quantity="overlap"),
        "Odometry": _latency("visual_odometry"),
        "Matching": _latency("satellite_matching"),
        "Busy": cells.text(quantity="kernel_busy", layer="device"),
        "Streams overlap": cells.text(quantity="kernel_overlap", layer="device"),
        "Memory": cells.text(quantity="device_delta", layer="memory"),
    },
    caption=captions.TABLES["concurrency"],
    absent=_absent,
    widths=("auto", "1.4fr", "1.5fr", "1.5fr", *("0.9fr",) * 5),
)
SESSIONS = Spec(
    study=STUDY,
    first="Way",
    label=lambda view, key: f"{CONCURRENCY_PAIRS[key.workload]}: {CONCURRENCY_ARMS[key.method]}",
    cases=lambda view: _timed_keys(view, *CONCURRENCY_PAIRS),
    columns={"Makespan": _time, "Ratio": cells.interval(n=None, layer="", quantity="over_sequential")},
    caption=captions.TABLES["concurrency_sessions"],
    absent=_absent,
)


def draw_makespans(frame: Frame) -> Figure:
    """Draw the time until both results are there, one panel per machine, between the longer model and the sum of
    both."""
    shown = [view for view in views(frame, STUDY) if timed(view)]
    if not shown:
        return style.empty(no_times(frame))
    heights = [0.75 + _ROW * len(timed(view)) for view in shown]
    result, parts, legend = style.stacked(heights, 0.25, " ".join(filter(None, map(_note, shown))))
    axes = [part.subplots(1, 1, squeeze=False)[0][0] for part in parts]
    for axis, view in zip(axes, shown, strict=True):
        axis.set_title(view.name)
        _draw_panel(axis, view)
    style.legend_of(legend, axes, 2)
    return result


def _note(view: View) -> str:
    """Name the ways that a machine lacks, with the reasons."""
    reasons = {name: view.reason(makespan(view, method)) for method, name in CONCURRENCY_ARMS.items()}
    said = by_reason((name, why) for name, why in reasons.items() if why)
    return f"No time on {view.name}. {said}." if said else ""


def _draw_panel(axis: Axes, view: View) -> None:
    numbers = timed(view)
    for place, (method, number) in enumerate(numbers.items()):
        bars.bar(axis, place, number, height=0.74, color=CONCURRENCY_COLORS[method])
        share = _share_text(view.get(view.key("arms", method=method, quantity="overlap")))
        bars.beside(axis, place, bars.end_of(number), f"{number.text}{share}", bbox=style.BEHIND)
    alone = [numbers[name].value for name in ALONE if name in numbers]
    bounds = (("The longer model alone", "--", max), ("Sum of both models alone", ":", sum))
    for label, line, of in bounds if len(alone) == len(ALONE) else ():
        axis.axvline(of(alone), color=BLACK, linestyle=line, linewidth=1.0, label=label, zorder=2.5)
    bars.names(axis, [textwrap.fill(CONCURRENCY_ARMS[name], 30) for name in numbers], edge=0.45, fontsize=7)
    # Room for the words behind the longest bar.
    axis.set_xlim(0, 1.42 * max(number.value for number in numbers.values()))
    axis.set_xlabel("Time per frame pair (ms)")


def _share_text(number: Number | None) -> str:
    """Say which part of the shorter model was hidden, where both ran."""
    if number is None:
        return ""
    share = f"{significant(100 * abs(number.value), 2)} %"
    if number.low > 0:
        return f", {share} hidden"
    return f", {share} lost" if number.high < 0 else ", nothing hidden"


REPORT = StudyReport(
    numbers=(floors, shares, overlaps, best_streams, precondition, memory),
    of_runs=(measured_runs,),
    compares=lambda group, other: False,
    tables={"concurrency": WAYS, "concurrency_sessions": SESSIONS},
    figures={
        "concurrency_makespan": Chart(
            draw_makespans, captions.FIGURES["concurrency_makespan"], footer=footer(STUDY, "measured")
        )
    },
)
