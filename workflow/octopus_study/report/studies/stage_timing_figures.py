"""Figures of the stage timing study: stages, scaling, the published values beside the measured ones, and launches."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from octopus_study.report.charts import bars, lines, style
from octopus_study.report.charts.palette import (
    BLACK,
    GREY,
    LIGHT,
    MACHINE_COLORS,
    MACHINE_MARKERS,
    METHOD_COLORS,
    METHOD_MARKERS,
    STAGE_COLORS,
    VERMILION,
)
from octopus_study.report.frame import PUBLISHED, Frame, Key, Number, published
from octopus_study.report.labels import METHODS, PUBLISHED_MACHINES, QUANTITIES, SHORT_METHODS, human
from octopus_study.report.measured import BOUND, SUBJECT
from octopus_study.report.text import quantity_text
from octopus_study.report.view import KERNEL, View, views

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STUDY = "stage_timing"
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


def _per_box(view: View, n: int, method: str, quantity: str) -> float:
    """Return microseconds per box, NaN where there is no number."""
    return view.frame.value(stage_key(view, n, method, quantity)) * 1000 / n


def _stages(view: View, n: int) -> Iterator[Bar]:
    """Yield the stages; what end to end takes beyond them is submission, synchronisation and gaps."""
    for method, stages in _PARTS.items():
        times = {stage: _per_box(view, n, method, stage) for stage in stages}
        parts = {stage: time for stage, time in times.items() if time == time}
        rest = _per_box(view, n, method, "end_to_end") - sum(parts.values())
        if parts:
            yield Bar(n, method, parts | ({"rest": rest} if rest > 0 else {}))


def _whole(view: View, n: int) -> Iterator[Bar]:
    for method in (SUBJECT, "published", "n-launches"):
        time = _per_box(view, n, method, "end_to_end")
        if time == time:
            yield Bar(n, method, {method: time})


def _stack(axis: Axes, shown: list[Bar], names: dict[str, str]) -> None:
    colors = STAGE_COLORS | METHOD_COLORS
    labels = names | {"rest": "Submission, synchronisation, gaps"}
    place, ticks, previous = 0.0, {}, None
    for bar in shown:
        place += 0.45 if previous not in (None, bar.n) else 0.0
        end = bars.stack(axis, place, bar.parts, colors, height=0.85, labels=labels)
        bars.beside(axis, place, end, quantity_text(end, "us"), gap=3, fontsize=5.8)
        count = f"n = {bar.n}   " if previous != bar.n else ""
        ticks[place] = f"{count}{SHORT_METHODS[bar.method]}"
        place, previous = place + 1, bar.n
    axis.set_yticks(list(ticks), list(ticks.values()), fontsize=5.8)
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
    for method in (SUBJECT, "opencv", "opencv-inplace"):
        look = {"marker": METHOD_MARKERS[method], "linestyle": "", "markerfacecolor": "white"}
        key = view.key("visdrone-1thread", None, method, **whole)
        _line(axis, view, key, label=f"{METHODS[method]}, one thread", **look)
    lines.counts(axis, counts(view), fontsize=6.5)
    style.plain_log(axis.yaxis)


def _line(axis: Axes, view: View, key: Key, **look: object) -> None:
    points = [(n, number) for n in counts(view) if (number := view.get(key.but(n=n)))]
    lines.line(axis, points, lambda n: 1000 / n, color=METHOD_COLORS[key.method], capsize=2, **look)


_COMPARED = (
    ("build_metadata", "published", QUANTITIES["build_metadata"]),
    ("upload_metadata", "published", QUANTITIES["upload_metadata"]),
    ("crop_resize", "published", QUANTITIES["crop_resize"]),
    ("normalize", "published", QUANTITIES["normalize"]),
    ("end_to_end", "published", "End to end, one launch"),
    ("end_to_end", "n-launches", "End to end, N launches"),
    ("end_to_end", SUBJECT, "End to end, Octopus"),
)


class Look(NamedTuple):
    """How a machine is drawn."""

    view: View
    marker: str
    color: str


def published_comparison(frame: Frame) -> Figure:
    """Draw four panels; hollow marks are published, filled ones measured, hatched ones the published kernels
    measured here."""
    looks = list(map(Look, views(frame, STUDY), MACHINE_MARKERS, MACHINE_COLORS))
    result, axes = style.new_figure(4.5, 2, 2)
    _compared(axes[0, 0], frame, looks)
    _speedups(axes[0, 1], frame, looks)
    _bounds(axes[1, 0], frame, looks)
    _bandwidths(axes[1, 1], frame, looks)
    style.bottom_legend([axes[0, 0], axes[0, 1]], 2)
    return result


def _compared(axis: Axes, frame: Frame, looks: list[Look]) -> None:
    def times(view: View) -> list[float]:
        return [_per_box(view, N, method, quantity) for quantity, method, _ in _COMPARED]

    rows = range(len(_COMPARED))
    hollow = {"color": BLACK, "markerfacecolor": "white", "markersize": 6}
    axis.plot(times(View(frame, PUBLISHED, STUDY)), rows, "P", label=f"{JETSON}, published", **hollow)
    for index, (view, marker, color) in enumerate(looks):
        # A little below each other, so that machines of equal speed don't hide one another.
        beside = [row + 0.2 * (index - (len(looks) - 1) / 2) for row in rows]
        axis.plot(times(view), beside, marker, color=color, markersize=4, label=view.name)
    axis.set_yticks(rows, [name for *_, name in _COMPARED])
    axis.invert_yaxis()
    axis.set(xscale="log", xlabel="Time per box (µs)")
    axis.set_title(f"Stages, {N} boxes")


def _speedups(axis: Axes, frame: Frame, looks: list[Look]) -> None:
    """Draw the speed-up over N launches: of one launch with the published kernels, and of Octopus
    (dashed)."""
    numbers = frame.select(PUBLISHED, STUDY, method="published", quantity="speedup_over_n-launches")
    points = sorted((number.n, number.value) for number in numbers)
    axis.plot(*zip(*points, strict=True), "P-", color=BLACK, markerfacecolor="white", markersize=7)
    for view, marker, color in looks:
        for method, dashes in (("published", "-"), (SUBJECT, "--")):
            keys = {n: stage_key(view, n, method, "end_to_end").speedup("n-launches") for n in counts(view)}
            known = {n: number.value for n, key in keys.items() if (number := view.get(key))}
            axis.plot(list(known), list(known.values()), marker + dashes, color=color)
    axis.axhline(1, color=GREY, linewidth=0.8)
    axis.set(xscale="log", yscale="log", xlabel="Boxes (dashed: Octopus)")
    style.plain_log(axis.xaxis)
    style.plain_log(axis.yaxis)
    axis.set_title("Speed-up over N launches")


class Level(NamedTuple):
    """A bar with its name and what stands beside it."""

    name: str
    value: float
    text: str
    look: dict[str, object]


def _bounds(axis: Axes, frame: Frame, looks: list[Look]) -> None:
    jetson = Key(PUBLISHED, "derived", "jetson-orin-nano", N)
    times, share = frame[jetson.but(quantity="times_write_bound")], "share_of_write_bound"
    text = f"{times.text}, {frame.text(jetson.but(quantity=share))}"
    hollow = {"facecolor": "white", "edgecolor": BLACK}
    levels = [Level(f"{JETSON}, published", times.value, text, hollow)]
    for view, _, color in looks:
        for method, name, look in (
            ("published", "published kernels,\nmeasured here", {"facecolor": LIGHT, "hatch": "/////"}),
            (SUBJECT, "Octopus", {"facecolor": color}),
        ):
            key = stage_key(view, N, method, "crop_resize_normalize")
            if times := view.get(key.derive("times", BOUND)):
                text = f"{times.text}, {view.text(key.derive('share', BOUND))}"
                levels.append(Level(f"{view.name}: {name}", times.value, text, look | {"edgecolor": color}))
    _levels(axis, levels, room=6)
    axis.set_xlabel("Kernel time / bound time, and share of the write bound")
    axis.set_title(f"Distance from the write bound, {N} boxes")


def _bandwidths(axis: Axes, frame: Frame, looks: list[Look]) -> None:
    stated = {
        f"{name}, stated": (frame.value(published("machines", key, "memory_bandwidth")), "white", BLACK)
        for key, name in PUBLISHED_MACHINES.items()
    }
    measured = {
        f"{view.name}, write": (frame.value(view.key("bandwidth", method="write")), color, color)
        for view, _, color in looks
    }
    levels = [
        Level(name, value, f"{value:.4g}", {"color": color, "edgecolor": edge})
        for name, (value, color, edge) in (stated | measured).items()
        if not math.isnan(value)
    ]
    _levels(axis, levels, room=5)
    axis.set_xlabel("Stated or measured (GB/s)")
    axis.set_title("Bandwidth")


def _levels(axis: Axes, levels: list[Level], room: float) -> None:
    """Draw bars on a logarithmic axis from 1 to `room` times the longest."""
    for place, level in enumerate(levels):
        axis.barh(place, level.value, height=0.6, **level.look)
        bars.beside(axis, place, level.value, level.text, gap=3, fontsize=6)
    axis.set_yticks(range(len(levels)), [level.name for level in levels], fontsize=5.8)
    axis.invert_yaxis()
    axis.set(xscale="log")
    axis.set_xlim(1, max(level.value for level in levels) * room)
    style.plain_log(axis.xaxis)
    axis.grid(axis="y", visible=False)


# From both kinds of N launches down to Octopus: a time, or a saving between two times.
_BARS = {
    "n-launches": "N launches",
    "launches": "saved by one launch",
    "fusion": "saved by fusing",
    SUBJECT: "Octopus",
    "launches-fused": "saved by one launch",
    "n-launches-fused": "N launches, fused",
}
_SAVINGS = {
    "launches": ("published", "n-launches"),
    "fusion": (SUBJECT, "published"),
    "launches-fused": (SUBJECT, "n-launches-fused"),
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
    n = N if N in counts(view) else max(counts(view))
    times = {
        method: view.frame.value(stage_key(view, n, method, "end_to_end"))
        for method in ("n-launches", "published", SUBJECT, "n-launches-fused")
    }
    if not np.isfinite(list(times.values())).all():
        axis.set_axis_off()
        return
    for place, name in enumerate(_BARS):
        saving = view.key("visdrone", n, "saving", quantity=name) if name in _SAVINGS else None
        low, high = (times[method] for method in _SAVINGS[name]) if saving else (0.0, times[name])
        color = LIGHT if saving else METHOD_COLORS[name]
        axis.barh(place, high - low, left=low, height=0.7, color=color, edgecolor=BLACK, linewidth=0.5)
        if saving:
            _explained(axis, place, high, view.frame.value(saving.derive("expected")))
        text = quantity_text(-view.frame.value(saving) if saving else high, "ms")
        bars.beside(axis, place, max(low, high), text, gap=3, fontsize=6)
    axis.set_yticks(range(len(_BARS)), list(_BARS.values()), fontsize=6.5)
    axis.invert_yaxis()
    axis.grid(axis="y", visible=False)
    axis.set_xlim(0, 1.25 * max(times.values()))
    axis.set_title(f"End to end, {n} boxes")


def _explained(axis: Axes, place: float, high: float, expected: float) -> None:
    """Hatch from the slower time downwards what the launches saved should cost by their slope."""
    if expected == expected:
        look = {"facecolor": "none", "edgecolor": VERMILION, "hatch": "/////", "linewidth": 0.5}
        label = "Slope of the launch \u00d7 launches saved"
        axis.barh(place, -expected, left=high, height=0.7, label=label, **look)
