"""The figure of the stage timing study that sets the published values beside the measured ones."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from octopus_study.names import BOUND, PUBLISHED_MACHINES, QUANTITIES, SUBJECT
from octopus_study.report.charts import bars, style
from octopus_study.report.charts.palette import BLACK, GREY, LIGHT, MACHINE_COLORS, MACHINE_MARKERS
from octopus_study.report.charts.spec import Chart
from octopus_study.report.frame import PUBLISHED, Frame, Key, published
from octopus_study.report.studies.stage_timing_figures import JETSON, STUDY, N, counts, per_box, stage_key
from octopus_study.report.view import View, views

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
        return [per_box(view, N, method, quantity) for quantity, method, _ in _COMPARED]

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
    style.plain_log(axis.xaxis)
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
    style.plain_log(axis.xaxis, narrow=True)
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
            ("published", "published kernels,\nmeasured here", {"facecolor": LIGHT, "hatch": style.HATCH}),
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
    bars.listed(axis, [level.name for level in levels], fontsize=6)
    axis.set(xscale="log")
    axis.set_xlim(1, max(level.value for level in levels) * room)
    style.plain_log(axis.xaxis)


CHART = Chart(
    published_comparison,
    "Published values (hollow) beside measured ones (filled; hatched: the published kernels, measured here): stages, "
    "speed-ups, kernel time / bound time, bandwidth.",
)
