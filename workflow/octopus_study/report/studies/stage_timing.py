"""Stage timing: where the time of a box goes, and what launches cost."""

from collections.abc import Callable, Iterator
from itertools import zip_longest

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from octopus_study.measure.dependence import process_count
from octopus_study.measure.line import slope
from octopus_study.measure.statistics import median_interval, unpaired_ratio_interval
from octopus_study.names import BLACK, GREY, METHODS, QUANTITIES, SAVING_STEPS, SHORT_METHODS, SUBJECT, human
from octopus_study.report import captions
from octopus_study.report.charts import bars, style
from octopus_study.report.charts.palette import MACHINE_COLORS, MACHINE_MARKERS, METHOD_COLORS, STAGE_COLORS
from octopus_study.report.frame import PUBLISHED, Frame, Key, Number, joined, make_number, published
from octopus_study.report.published import derived
from octopus_study.report.runs import Run
from octopus_study.report.samples import blocks, by_block, groups
from octopus_study.report.selector import where
from octopus_study.report.study import Chart, StudyReport
from octopus_study.report.tables import cells
from octopus_study.report.tables.spec import Spec
from octopus_study.report.tables.writers import Table
from octopus_study.report.text import quantity_text
from octopus_study.report.view import KERNEL, View, every_view, views

STUDY = "stage_timing"
N = 1000  # boxes where a table or a figure shows one number of them
JETSON = "Jetson Orin Nano"
_KERNELS = ("crop_resize", "normalize", "crop_resize_normalize")
_PARTS = {
    SUBJECT: ("build_metadata", "upload_metadata", "crop_resize_normalize"),
    "published": ("build_metadata", "upload_metadata", "crop_resize", "normalize"),
}
_PUBLISHED_COUNTS = (100, 500, 1000, 2000)
_COMPARED = [(name, "published", QUANTITIES[name]) for name in _PARTS["published"]] + [
    ("end_to_end", "published", "End to end, one launch"),
    ("end_to_end", "n-launches", "End to end, N launches"),
    ("end_to_end", SUBJECT, "End to end, Octopus"),
]
OUTPUT_BYTES = 3 * 224 * 224 * 4
# What is saved -> the slower and the faster method, which differ in their launches alone; launches per box of the
# slower one, of as many as one; and who makes them on a GPU.
_SAVINGS = {
    "launches": ("n-launches", "published", 2, "numba-dispatch"),
    "launches-fused": ("n-launches-fused", "octopus", 1, "cuda-core-launch"),
}
_ON_CPU = "kernel-call"
# What published claims say of growth with the number of boxes: (quantity, from, to).
_GROWTHS = (
    ("build_metadata", 500, 2000),
    ("crop_resize", 500, 2000),
    ("upload_metadata", 100, 2000),
    ("end_to_end over n-launches", 100, 1000),
)


def stage_key(view: View, n: int, method: str, quantity: str) -> Key:
    """Return the key of a stage's time, on VisDrone boxes where it was measured."""
    if view.machine == PUBLISHED:
        return view.key(n=n, method=method, quantity=quantity)
    layer = KERNEL if quantity in _KERNELS else "host"
    return view.key("visdrone", n, method, quantity=quantity, layer=layer)


def counts(view: View) -> list[int]:
    """Return the counts at which Octopus was timed end to end, ascending."""
    numbers = view.select(workload="visdrone", method=SUBJECT, quantity="end_to_end")
    return sorted({number.n for number in numbers if number.known})


def per_box(view: View, n: int, method: str, quantity: str) -> float:
    """Return microseconds per box, NaN where there is no number."""
    return view.frame.value(stage_key(view, n, method, quantity)) * 1000 / n


def launch_costs(run: Run) -> Iterator[Number]:
    """Yield slope and intercept of the line through the times of each series of launches."""
    series = run.rows[(run.rows["quantity"] == "launch_series") & run.rows["value"].notna()]
    for method, rows in series.groupby("method", sort=False):
        if rows["n"].nunique() > 1:
            fit = slope(rows["n"], rows["value"] * 1000, blocks=rows["block"])
            key = run.key("launch-overhead", method=str(method))
            source = run.from_rows("n/a", f"quantity=launch_series, method={method}")
            note = "line of Theil and Sen through the medians"
            count, processes = int(rows.groupby("n").size().min()), process_count(by_block(rows))
            rests = (count, processes, processes == 1)
            yield make_number(key.but(quantity="slope"), source, "us", *fit[:3], *rests, note=note)
            yield make_number(key.but(quantity="intercept"), source, "us", fit.intercept)


def savings(run: Run) -> Iterator[Number]:
    """Yield what each step saves, paired per block."""
    for group, rows in groups(run, workload="visdrone", quantity="end_to_end", layer="host"):
        table, source = blocks(rows), group.rows_of(run)
        for name, (slower, faster, *_) in _SAVINGS.items():
            if len(table) and {slower, faster} <= set(table.columns):
                key = run.key(group.workload, group.n, "saving", quantity=name)
                gained = table[slower] - table[faster]
                saved = median_interval(gained)
                note = f"{slower} - {faster}, median of per-block differences"
                yield make_number(key, source, "ms", *saved, note=note)
                if name == "launches":
                    each, key = saved.scaled(1000 / group.n), key.but(quantity="per_object")
                    yield make_number(key, source, "us", *each, note="saving by launches / n")


def explained(frame: Frame) -> Iterator[Number]:
    """Yield slope x launches saved and its share of the saving, with the ends that both intervals allow."""
    for view in every_view(frame, STUDY):
        for saved in (one for name in _SAVINGS for one in view.select(method="saving", quantity=name)):
            if launch := _launch(view, saved.quantity):
                launches = _SAVINGS[saved.quantity][2] * (saved.n - 1)
                middle, low, high = (end * launches / 1000 for end in (launch.value, launch.low, launch.high))
                source, note = joined(saved, launch), f"slope of {launch.method} x launches saved"
                expected = (middle, low, high, launch.blocks)
                yield make_number(saved.key.derive("expected"), source, "ms", *expected, note=note)
                if saved.low > 0:
                    share = (middle / saved.value, low / saved.high, high / saved.low)
                    rests, note = (saved.blocks, saved.processes), f"{note} / saving"
                    yield make_number(saved.key.derive("explained"), source, "fraction", *share, *rests, note=note)


def _launch(view: View, saving: str) -> Number | None:
    """Return the slope of the launches that a saving saves: of their launcher, or of a CPU's calls."""
    launchers = (_SAVINGS[saving][-1], _ON_CPU)
    slopes = (view.get(view.key("launch-overhead", method=one, quantity="slope")) for one in launchers)
    return next(filter(None, slopes), None)


def metadata_overhead(frame: Frame) -> Iterator[Number]:
    """Yield (build + upload) / end to end of the published kernels, with the ends that all three intervals allow: they
    are separate measurements."""
    quantities = ["build_metadata", "upload_metadata", "end_to_end"]
    for view in every_view(frame, STUDY):
        for whole in view.select(method="published", quantity="end_to_end", layer="host"):
            parts = [part for name in quantities if (part := view.get(whole.key.but(quantity=name)))]
            if len(parts) == len(quantities):
                build, upload, time = parts
                share = (build.value + upload.value) / time.value
                ends = ((build.low + upload.low) / time.high, (build.high + upload.high) / time.low)
                count = min((part.blocks for part in parts if part.blocks), default=None)
                key = whole.key.but(quantity="metadata_overhead", layer="")
                yield make_number(key, joined(*parts), "fraction", share, *ends, count, note="ratio of medians")


def bandwidths(run: Run) -> Iterator[Number]:
    """Yield the bandwidth limits at the largest buffer, where caches help least."""
    rows = run.rows[(run.rows["quantity"] == "bandwidth") & run.rows["value"].notna()]
    largest = rows[rows["n"] == rows.groupby("method")["n"].transform("max")]
    for method, part in largest.groupby("method", sort=False):
        values = by_block(part)
        source = run.from_rows("n/a", f"quantity=bandwidth, method={method}, n={int(part['n'].iloc[0])}")
        key, limit = run.key("bandwidth", method=str(method)), median_interval(values)
        yield make_number(key, source, "GB/s", *limit)


def growths(run: Run) -> Iterator[Number]:
    """Yield by which factor a value of the published kernels at one number of boxes exceeds that at another; a speed-up
    is a ratio per block."""
    for quantity, few, many in _GROWTHS:
        timed, _, other = quantity.partition(" over ")
        layer = "device" if timed == "crop_resize" else "host"
        samples = {}
        for group, rows in groups(run, workload="visdrone", quantity=timed, layer=layer):
            table = blocks(rows)
            if len(table) and {"published", other or "published"} <= set(table.columns):
                samples[group.n] = table[other] / table["published"] if other else table["published"]
        if few in samples and many in samples:
            name = f"speedup_over_{other}" if other else timed
            key = run.key("visdrone", method="growth", quantity=name, layer=f"n{few}", derived=f"n{many}")
            chosen = where(workload="visdrone", n=(few, many), quantity=timed, layer=layer)
            note = f"median at n={many} / median at n={few}"
            grown = unpaired_ratio_interval(samples[many], samples[few])
            yield make_number(key, run.from_rows(group.dataset, chosen), "ratio", *grown, note=note)


def bounds(frame: Frame) -> Iterator[Number]:
    """Yield the published kernels as a multiple of the write-only bound: the output (float32, three channels) over the
    memory bandwidth stated for the Jetson."""
    bandwidth = frame.find(published("machines", "jetson-orin-nano", "memory_bandwidth"))
    for crop in frame.select(PUBLISHED, STUDY, method="published", quantity="crop_resize") if bandwidth else ():
        passes = (crop, frame[crop.key.but(quantity="normalize")])
        times = sum(part.value for part in passes) / (crop.n * OUTPUT_BYTES / (bandwidth.value * 1e6))
        note = f"{OUTPUT_BYTES} bytes per crop at {bandwidth.text}"
        about = {"n": crop.n, "quantity": "times_write_bound", "note": note}
        yield derived(passes, "jetson-orin-nano", "ratio", times, **about)


# The stages in the order of the way of a box, and who is shown in each.
_STAGES = {
    "build_metadata": ("published", "octopus"),
    "upload_metadata": ("published", "octopus"),
    "crop_resize": ("published",),
    "normalize": ("published",),
    "crop_resize_normalize": ("published", "octopus"),
    "end_to_end": ("n-launches", "n-launches-fused", "published", "octopus"),
}


def stages(frame: Frame) -> Table:
    """Return every stage at 1000 boxes: the published Jetson values beside each machine."""
    machines = views(frame, STUDY)
    sources, rows = [View(frame, PUBLISHED, STUDY), *machines], []
    for quantity, methods in _STAGES.items():
        for method in methods:
            keys = [stage_key(view, N, method, quantity) for view in sources]
            differs = any(number.differs for key in keys if (number := frame.find(key)))
            name = f"{human(SHORT_METHODS, method)}{f' {cells.DIFFERENT}' if differs else ''}"
            times = [cells.time_text(frame, key, view.reasons) for view, key in zip(sources, keys, strict=True)]
            rows.append([human(QUANTITIES, quantity), name, *times])
    caption = captions.TABLES["stage_timing"].format(
        n=N, wide=cells.WIDE_NOTE, different=cells.DIFFERENT_NOTE, reasons=machines[0].reasons.note if machines else ""
    )
    header = ["Stage", "Method", f"{JETSON}, as published", *(view.title for view in machines)]
    return Table(caption, header, rows, (0, 1), ("auto", "auto", *("1fr" for _ in sources)))


def _of_launch(say: Callable[[Number], str]) -> cells.Cell:
    return lambda view, key: say(_launch(view, key.quantity))


LAUNCH_OVERHEAD = Spec(
    study=STUDY,
    first="From … to",
    label=lambda view, key: human(SAVING_STEPS, key.quantity),
    cases=lambda view: [
        key
        for key in (view.key("visdrone", N, "saving", quantity=name) for name in _SAVINGS)
        if view.get(key.derive("expected"))
    ],
    columns={
        "Launch": _of_launch(lambda launch: human(METHODS, launch.method)),
        "Slope": _of_launch(cells.with_interval),
        "Saved": lambda view, key: str(_SAVINGS[key.quantity][2] * (N - 1)),
        "Expected": cells.text(derived="expected"),
        "Measured": cells.text(),
        "Share": cells.interval(derived="explained"),
    },
    caption=captions.TABLES["launch_overhead"].format(n=N),
    text_columns=(0, 1),
)


def stage_breakdown(frame: Frame) -> Figure:
    """Draw a panel per machine: the stages of one launch, stacked."""
    sources = [View(frame, PUBLISHED, STUDY), *views(frame, STUDY)]
    result, axes = style.new_figure(0.7 + 1.6 * -(-len(sources) // 2), -(-len(sources) // 2), 2)
    for axis, view in zip_longest(axes.flat, sources):
        if view is None:
            axis.set_visible(False)
            continue
        published = view.machine == PUBLISHED
        # A quick run has none of the published counts and shows its own.
        shown = [n for n in _PUBLISHED_COUNTS if published or n in counts(view)] or counts(view)[:4]
        _stack(axis, {(n, method): _stages(view, n, method) for n in shown for method in _PARTS})
        style.title(axis, f"{JETSON}, as published" if published else view.name)
        axis.set_xlabel("Time per box (µs; each panel has its own scale)")
    style.bottom_legend(list(axes.flat), 3)
    return result


def _stages(view: View, n: int, method: str) -> dict[str, float]:
    """Return the stages; what end to end takes beyond them is submission, synchronisation and gaps."""
    parts = {stage: per_box(view, n, method, stage) for stage in _PARTS[method]}
    parts = {stage: time for stage, time in parts.items() if time == time}
    rest = per_box(view, n, method, "end_to_end") - sum(parts.values())
    return parts | ({"rest": rest} if parts and rest > 0 else {})


def _stack(axis: Axes, shown: dict[tuple[int, str], dict[str, float]]) -> None:
    """Draw a stacked bar of microseconds for each count and method that has any, counts a little apart."""
    labels = QUANTITIES | {"rest": "Submission, synchronisation, gaps"}
    place, ticks, previous = 0.0, {}, None
    for (n, method), parts in shown.items():
        if parts:
            place += 0.45 if previous not in (None, n) else 0.0
            end = 0.0
            for stage, time in parts.items():
                axis.barh(place, time, 0.85, left=end, color=STAGE_COLORS[stage], label=labels[stage])
                end += time
            bars.beside(axis, place, end, quantity_text(end, "us"), gap=3, fontsize=6)
            ticks[place] = f"{f'n = {n}   ' if previous != n else ''}{SHORT_METHODS[method]}"
            place, previous = place + 1, n
    axis.set_yticks(list(ticks), list(ticks.values()), fontsize=6)
    axis.invert_yaxis()
    axis.margins(x=0.14)
    bars.plain(axis)


def launch_overhead(frame: Frame) -> Figure:
    """Draw one row per machine: series of launches at the left, times of N launches and of one at the right."""
    machines = views(frame, STUDY)
    result, axes = style.new_figure(0.6 + 1.2 * len(machines), len(machines), 2, width_ratios=(1, 1.3))
    for (series, whole), view in zip(axes, machines, strict=True):
        _series(series, view)
        _savings(whole, view)
        series.set_title(view.name)
    axes[-1, 0].set_xlabel("Launches of an empty kernel")
    axes[-1, 1].set_xlabel("Time (ms)")
    style.bottom_legend(list(axes[:, 1]), 1)
    return result


def _series(axis: Axes, view: View) -> None:
    """Draw the times of each series of launches, and the line through them."""
    numbers = view.select(workload="launch-overhead", quantity="launch_series", layer="host")
    for method in dict.fromkeys(number.method for number in numbers):
        known = sorted((one for one in numbers if one.method == method), key=lambda one: one.n)
        color, launches = METHOD_COLORS.get(method, BLACK), np.array([number.n for number in known])
        times = [1000 * number.value for number in known]
        axis.errorbar(launches, times, yerr=style.errors(known, 1000), fmt="o", color=color)
        slope = view.key("launch-overhead", method=method, quantity="slope")
        fit = view.frame.value(slope.but(quantity="intercept")) + view.frame.value(slope) * launches
        label = f"{human(METHODS, method)}: slope {view.text(slope)}"
        axis.plot(launches[fit > 0], fit[fit > 0], color=color, label=label)
    axis.set(xscale="log", yscale="log", ylabel="Time (µs)")
    axis.set_xticks([1, 4, 16, 64, 256], ["1", "4", "16", "64", "256"])
    axis.set_xticks([], minor=True)
    low, high = axis.get_ylim()
    axis.set_ylim(low / 2, 10 * high)  # room for the legend
    style.plain_log(axis.yaxis)
    axis.legend(loc="upper left", fontsize=6.5, borderaxespad=0.2, handlelength=1.4)


def _savings(axis: Axes, view: View) -> None:
    """Draw times; of N launches is hatched what those beyond one should cost by their slope."""
    n = N if N in counts(view) else max(counts(view), default=N)
    methods = {"n-launches": "launches", "published": "", "n-launches-fused": "launches-fused", SUBJECT: ""}
    for place, (method, saving) in enumerate(methods.items()):
        time = view.get(stage_key(view, n, method, "end_to_end"))
        if time:
            axis.barh(place, time.value, height=0.7, color=METHOD_COLORS[method], edgecolor=BLACK, linewidth=0.5)
            bars.beside(axis, place, time.value, time.text, gap=3, fontsize=6)
            expected = view.get(view.key("visdrone", n, "saving", quantity=saving, derived="expected"))
            if expected:
                look = {"facecolor": "none", "edgecolor": "black", "hatch": "/////", "linewidth": 0.5}
                label = "Slope of the launch \u00d7 launches beyond one"
                axis.barh(place, -min(expected.value, time.value), left=time.value, height=0.7, label=label, **look)
    axis.set_yticks(range(len(methods)), [SHORT_METHODS[method] for method in methods], fontsize=6.5)
    axis.invert_yaxis()
    axis.grid(axis="y", visible=False)
    axis.margins(x=0.14)
    axis.set_title(f"End to end, {n} boxes")


def published_comparison(frame: Frame) -> Figure:
    """Draw stages, and speed-ups over N launches; hollow marks are published, filled ones measured."""
    result, (row,) = style.new_figure(2.6, 1, 2)
    stages, speedups = row
    jetson = View(frame, PUBLISHED, STUDY)
    hollow = {"color": BLACK, "markerfacecolor": "white", "markersize": 5.5, "markeredgewidth": 0.8, "zorder": 3}
    places = range(len(_COMPARED))
    times = [per_box(jetson, N, method, quantity) for quantity, method, _ in _COMPARED]
    stages.plot(times, places, "P", label=f"{JETSON}, published", **hollow)
    numbers = jetson.select(method="published", quantity="speedup_over_n-launches")
    points = sorted((number.n, number.value) for number in numbers)
    speedups.plot(*zip(*points, strict=True), "P-", **hollow)
    machines = views(frame, STUDY)
    for index, (view, marker, color) in enumerate(zip(machines, MACHINE_MARKERS, MACHINE_COLORS, strict=False)):
        # A little below each other, so that machines of equal speed don't hide one another.
        beside = [place + 0.2 * (index - (len(machines) - 1) / 2) for place in places]
        times = [per_box(view, N, method, quantity) for quantity, method, _ in _COMPARED]
        stages.plot(times, beside, marker, color=color, markersize=4, label=view.name)
        for method, dashes in (("published", "-"), (SUBJECT, "--")):
            keys = {n: stage_key(view, n, method, "end_to_end").speedup("n-launches") for n in counts(view)}
            known = {n: number.value for n, key in keys.items() if (number := view.get(key))}
            speedups.plot(list(known), list(known.values()), marker + dashes, color=color, markersize=4)
    stages.set_yticks(places, [name for *_, name in _COMPARED])
    stages.invert_yaxis()
    stages.set(xscale="log", xlabel="Time per box (µs)", title=f"Stages, {N} boxes")
    style.plain_log(stages.xaxis)
    speedups.axhline(1, color=GREY, linewidth=0.8, zorder=1)
    speedups.set(xscale="log", yscale="log", xlabel="Boxes (dashed: Octopus)", title="Speed-up over N launches")
    style.plain_log(speedups.xaxis, narrow=True)
    style.plain_log(speedups.yaxis)
    style.bottom_legend([stages], 2)
    return result


REPORT = StudyReport(
    numbers=(launch_costs, savings, bandwidths, growths),
    of_published=(bounds,),
    of_all=(explained, metadata_overhead),
    per_object=("build_metadata",),
    tables={"stage_timing": stages, "launch_overhead": LAUNCH_OVERHEAD},
    figures={
        "stage_breakdown": Chart(stage_breakdown, captions.FIGURES["stage_breakdown"]),
        "launch_overhead": Chart(launch_overhead, captions.FIGURES["launch_overhead"]),
        "published_comparison": Chart(published_comparison, captions.FIGURES["published_comparison"]),
    },
)
