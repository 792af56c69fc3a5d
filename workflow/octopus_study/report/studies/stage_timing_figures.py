"""Figures of the stage timing study: stages, scaling, and what launches cost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from octopus_study.names import BOUND, METHODS, QUANTITIES, SHORT_METHODS, SUBJECT, human
from octopus_study.report.charts import bars, lines, style
from octopus_study.report.charts.palette import (
    BLACK,
    LIGHT,
    METHOD_COLORS,
    METHOD_MARKERS,
    STAGE_COLORS,
    VERMILION,
)
from octopus_study.report.charts.spec import Chart
from octopus_study.report.frame import PUBLISHED, Frame, Key, Number
from octopus_study.report.studies.stage_timing_numbers import SAVINGS, STUDY
from octopus_study.report.text import quantity_text
from octopus_study.report.view import KERNEL, View, views

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

N = 1000  # boxes where a table or a figure shows one number of them
JETSON = "Jetson Orin Nano"
_KERNELS = ("crop_resize", "normalize", "crop_resize_normalize")


def stage_key(view: View, n: int, method: str, quantity: str) -> Key:
    """Return the key of a stage's time, on VisDrone boxes where it was measured."""
    if view.machine == PUBLISHED:
        return view.key(n=n, method=method, quantity=quantity)
    layer = KERNEL if quantity in _KERNELS else "host"
    return view.key("visdrone", n, method, quantity=quantity, layer=layer)


def counts(view: View, quantity: str = "end_to_end") -> list[int]:
    """Return the counts at which a quantity was measured for Octopus, ascending."""
    numbers = view.select(workload="visdrone", method=SUBJECT, quantity=quantity)
    return sorted({number.n for number in numbers if number.known})


_PARTS = {
    SUBJECT: ("build_metadata", "upload_metadata", "crop_resize_normalize"),
    "published": ("build_metadata", "upload_metadata", "crop_resize", "normalize"),
}
_PUBLISHED_COUNTS = (100, 500, 1000, 2000)


class Bar(NamedTuple):
    """One stacked bar: a count, a method, and the microseconds per box of each part."""

    n: int
    method: str
    parts: dict[str, float]


def stage_breakdown(frame: Frame) -> Figure:
    """Draw one row per machine: the stages of one launch at the left, with N launches at the right."""
    sources = [View(frame, PUBLISHED, STUDY), *views(frame, STUDY)]
    result, axes = style.new_figure(0.7 + 1.75 * len(sources), len(sources), 2)
    for (stages, whole), view in zip(axes, sources, strict=True):
        shown = _shown_counts(view)
        _stack(stages, [bar for n in shown for bar in _stages(view, n)], QUANTITIES)
        _stack(whole, [bar for n in shown for bar in _whole(view, n)], {})
        name = f"{JETSON}, as published" if view.machine == PUBLISHED else view.name
        stages.set_title(f"{name}: stages")
        whole.set_title("End to end")
    for axis in axes[-1]:
        axis.set_xlabel("Time per box (µs; each panel has its own scale)")
    style.bottom_legend(list(axes[:, 0]), 3)
    return result


def _shown_counts(view: View) -> list[int]:
    """Return the published counts that a run has; a quick run has none of them and shows its own."""
    if view.machine == PUBLISHED:
        return list(_PUBLISHED_COUNTS)
    measured = counts(view)
    return [n for n in _PUBLISHED_COUNTS if n in measured] or measured[: len(_PUBLISHED_COUNTS)]


def per_box(view: View, n: int, method: str, quantity: str) -> float:
    """Return microseconds per box, NaN where there is no number."""
    return view.frame.value(stage_key(view, n, method, quantity)) * 1000 / n


def _stages(view: View, n: int) -> Iterator[Bar]:
    """Yield the stages; what end to end takes beyond them is submission, synchronisation and gaps."""
    for method, stages in _PARTS.items():
        times = {stage: per_box(view, n, method, stage) for stage in stages}
        parts = {stage: time for stage, time in times.items() if time == time}
        rest = per_box(view, n, method, "end_to_end") - sum(parts.values())
        if parts:
            yield Bar(n, method, parts | ({"rest": rest} if rest > 0 else {}))


def _whole(view: View, n: int) -> Iterator[Bar]:
    for method in (SUBJECT, "published", "n-launches"):
        time = per_box(view, n, method, "end_to_end")
        if time == time:
            yield Bar(n, method, {method: time})


def _stack(axis: Axes, shown: list[Bar], names: dict[str, str]) -> None:
    colors = STAGE_COLORS | METHOD_COLORS
    labels = names | {"rest": "Submission, synchronisation, gaps"}
    place, ticks, previous = 0.0, {}, None
    for bar in shown:
        place += 0.45 if previous not in (None, bar.n) else 0.0
        end = bars.stack(axis, place, bar.parts, colors, height=0.85, labels=labels)
        bars.beside(axis, place, end, quantity_text(end, "us"), gap=3, fontsize=6)
        count = f"n = {bar.n}   " if previous != bar.n else ""
        ticks[place] = f"{count}{SHORT_METHODS[bar.method]}"
        place, previous = place + 1, bar.n
    axis.set_yticks(list(ticks), list(ticks.values()), fontsize=6)
    axis.invert_yaxis()
    axis.margins(x=0.14)
    bars.plain(axis)


def scaling(frame: Frame) -> Figure:
    """Draw one panel per machine; the time of all boxes is n times that of one, so it needs no panel."""
    machines = views(frame, STUDY)
    result, axes = style.new_figure(2.9, 1, len(machines))
    for axis, view in zip(axes[0], machines, strict=True):
        _scaling(axis, view)
        style.title(axis, view.name)
        axis.set_xlabel("Boxes")
    axes[0, 0].set_ylabel("Time per box (µs)")
    style.bottom_legend(list(axes[0]), 3)
    return result


def _scaling(axis: Axes, view: View) -> None:
    whole, kernel = {"quantity": "end_to_end", "layer": "host"}, {"quantity": _KERNELS[-1], "layer": KERNEL}
    for method in (SUBJECT, "published", "n-launches", "n-launches-fused"):
        look = {"marker": METHOD_MARKERS[method], "linestyle": "-"}
        _line(axis, view, view.key("visdrone", None, method, **whole), label=METHODS[method], **look)
    for method, label, dashes in (
        (SUBJECT, "Octopus, kernel alone", "--"),
        (BOUND, "Write bound (fills the output)", ":"),
    ):
        key = view.key("visdrone", None, method, **kernel)
        _line(axis, view, key, label=label, marker="", linestyle=dashes)
    for method in (SUBJECT, "opencv", "opencv-inplace", "opencv-table", "opencv-frame"):
        look = {"marker": METHOD_MARKERS[method], "linestyle": "", "markerfacecolor": "white"}
        key = view.key("visdrone-1thread", None, method, **whole)
        _line(axis, view, key, label=f"{METHODS[method].partition(' (')[0]}, one thread", **look)
    lines.counts(axis, counts(view), fontsize=6.5)
    style.plain_log(axis.yaxis)


def _line(axis: Axes, view: View, key: Key, **look: object) -> None:
    points = [(n, number) for n in counts(view) if (number := view.get(key.but(n=n)))]
    lines.line(axis, points, lambda n: 1000 / n, color=METHOD_COLORS[key.method], capsize=2, **look)


# From both kinds of N launches down to Octopus: a time, or a saving between two times.
_BARS = {
    "n-launches": "N launches",
    "launches": "saved by one launch",
    "fusion": "saved by fusing",
    SUBJECT: "Octopus",
    "launches-fused": "saved by one launch",
    "n-launches-fused": "N launches, fused",
}


def launch_overhead(frame: Frame) -> Figure:
    """Draw one row per machine: the series of launches at the left, the parts of the savings at the right."""
    machines = views(frame, STUDY)
    result, axes = style.new_figure(0.6 + 1.2 * len(machines), len(machines), 2, width_ratios=(1, 1.3))
    for (series, waterfall), view in zip(axes, machines, strict=True):
        _series(series, view)
        _waterfall(waterfall, view)
        series.set_title(view.name)
    axes[-1, 0].set_xlabel("Launches of an empty kernel")
    axes[-1, 1].set_xlabel("Time (ms)")
    style.bottom_legend(list(axes[:, 1]), 1)
    return result


def _series(axis: Axes, view: View) -> None:
    numbers = view.select(workload="launch-overhead", quantity="launch_series", layer="host")
    for method in dict.fromkeys(number.method for number in numbers):
        _launches(axis, view, sorted((n for n in numbers if n.method == method), key=lambda number: number.n))
    axis.set(ylabel="Time (µs)")
    lines.counts(axis, [1, 4, 16, 64, 256])
    low, high = axis.get_ylim()
    axis.set_ylim(low / 2, 10 * high)  # room for the legend
    style.plain_log(axis.yaxis)
    axis.legend(loc="upper left", fontsize=6.5, borderaxespad=0.2, handlelength=1.4)


def _launches(axis: Axes, view: View, numbers: list[Number]) -> None:
    """Draw the times of series of launches, and the line through them."""
    method = numbers[0].method
    color, key = (
        METHOD_COLORS.get(method, BLACK),
        view.key("launch-overhead", method=method, quantity="slope"),
    )
    launches, times = np.array([number.n for number in numbers]), [1000 * number.value for number in numbers]
    axis.errorbar(launches, times, yerr=style.errors(numbers, 1000), fmt="o", color=color)
    fit = view.frame.value(key.but(quantity="intercept")) + view.frame.value(key) * launches
    label = f"{human(METHODS, method)}: slope {view.text(key)}"
    axis.plot(launches[fit > 0], fit[fit > 0], color=color, label=label)


def _waterfall(axis: Axes, view: View) -> None:
    """Draw times as full bars and savings between them; what slope times launches explains is hatched."""
    n = N if N in counts(view) else max(counts(view), default=N)
    times = {
        method: view.frame.value(stage_key(view, n, method, "end_to_end"))
        for method in ("n-launches", "published", SUBJECT, "n-launches-fused")
    }
    if not np.isfinite(list(times.values())).all():
        axis.set_axis_off()
        return
    for place, name in enumerate(_BARS):
        saving = view.key("visdrone", n, "saving", quantity=name) if name in SAVINGS else None
        high, low = (times[method] for method in SAVINGS[name]) if saving else (times[name], 0.0)
        color = LIGHT if saving else METHOD_COLORS[name]
        axis.barh(place, high - low, left=low, height=0.7, color=color, edgecolor=BLACK, linewidth=0.5)
        if saving:
            _explained(axis, place, high, view.frame.value(saving.derive("expected")))
        text = quantity_text(-view.frame.value(saving) if saving else high, "ms")
        bars.beside(axis, place, max(low, high), text, gap=3, fontsize=6)
    bars.listed(axis, list(_BARS.values()), fontsize=6.5)
    axis.set_xlim(0, 1.25 * max(times.values()))
    axis.set_title(f"End to end, {n} boxes")


def _explained(axis: Axes, place: float, high: float, expected: float) -> None:
    """Hatch from the slower time downwards what the launches saved should cost by their slope."""
    if expected == expected:
        look = {"facecolor": "none", "edgecolor": VERMILION, "hatch": "/////", "linewidth": 0.5}
        label = "Slope of the launch \u00d7 launches saved"
        axis.barh(place, -expected, left=high, height=0.7, label=label, **look)


CHARTS = {
    "stage_breakdown": Chart(
        stage_breakdown,
        "Where the time of a box goes: the stages of one launch, stacked, and end to end beside N launches. Each stage "
        "is timed alone, so their sum may exceed the end-to-end time.",
    ),
    "scaling": Chart(
        scaling,
        "Time per box over the number of boxes, with intervals of 95 % and the time that writing the output takes.",
    ),
    "launch_overhead": Chart(
        launch_overhead,
        "Cost of a launch as the slope over a series of empty kernels with the real argument lists, and the savings "
        "from N launches to Octopus; hatched is what the launches saved should cost by that slope.",
    ),
}
