"""Figures of the stage timing study: stages, what launches cost, and the published values beside the measured ones."""

from itertools import zip_longest

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from octopus_study.names import BLACK, GREY, METHODS, QUANTITIES, SHORT_METHODS, SUBJECT, VERMILION, human
from octopus_study.report import captions
from octopus_study.report.charts import bars, lines, style
from octopus_study.report.charts.palette import MACHINE_COLORS, MACHINE_MARKERS, METHOD_COLORS, STAGE_COLORS
from octopus_study.report.charts.spec import Chart
from octopus_study.report.frame import PUBLISHED, Frame, Key
from octopus_study.report.text import quantity_text
from octopus_study.report.view import KERNEL, View, views

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
            end = bars.stack(axis, place, parts, STAGE_COLORS, height=0.85, labels=labels)
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
    axis.set(ylabel="Time (µs)")
    lines.counts(axis, [1, 4, 16, 64, 256])
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
                look = {"facecolor": "none", "edgecolor": VERMILION, "hatch": "/////", "linewidth": 0.5}
                label = "Slope of the launch \u00d7 launches beyond one"
                axis.barh(place, -expected.value, left=time.value, height=0.7, label=label, **look)
    bars.listed(axis, [SHORT_METHODS[method] for method in methods], fontsize=6.5)
    axis.margins(x=0.14)
    axis.set_title(f"End to end, {n} boxes")


def published_comparison(frame: Frame) -> Figure:
    """Draw stages, and speed-ups over N launches; hollow marks are published, filled ones measured."""
    result, (row,) = style.new_figure(2.6, 1, 2)
    stages, speedups = row
    jetson = View(frame, PUBLISHED, STUDY)
    hollow = {"color": BLACK, "markerfacecolor": "white", "markersize": 6}
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
            speedups.plot(list(known), list(known.values()), marker + dashes, color=color)
    stages.set_yticks(places, [name for *_, name in _COMPARED])
    stages.invert_yaxis()
    stages.set(xscale="log", xlabel="Time per box (µs)", title=f"Stages, {N} boxes")
    style.plain_log(stages.xaxis)
    speedups.axhline(1, color=GREY, linewidth=0.8)
    speedups.set(xscale="log", yscale="log", xlabel="Boxes (dashed: Octopus)", title="Speed-up over N launches")
    style.plain_log(speedups.xaxis, narrow=True)
    style.plain_log(speedups.yaxis)
    style.bottom_legend([stages], 2)
    return result


CHARTS = {
    "stage_breakdown": Chart(stage_breakdown, captions.FIGURES["stage_breakdown"]),
    "launch_overhead": Chart(launch_overhead, captions.FIGURES["launch_overhead"]),
    "published_comparison": Chart(published_comparison, captions.FIGURES["published_comparison"]),
}
