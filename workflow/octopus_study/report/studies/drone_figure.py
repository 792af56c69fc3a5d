"""How long the frames of a video take, method by method, against the time that a frame may take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from octopus_study.names import FRAME_METHODS
from octopus_study.report.charts import bars, style
from octopus_study.report.charts.palette import BLACK, GREY, METHOD_COLORS
from octopus_study.report.frame import Frame, Number
from octopus_study.report.missing import by_reason
from octopus_study.report.studies.drone_view import (
    LAYERS,
    METHODS,
    clip_seconds,
    clips,
    differs,
    frames_of,
    medians_of,
)
from octopus_study.report.tables.cells import DIFFERENT_NOTE
from octopus_study.report.view import View, views

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

NO_TIMES = "No run of the study drone that is shown timed a frame."
_ROW = 0.3  # inches


def draw(frame: Frame) -> Figure:
    """Draw one row of panels per machine: its longest clip back to back, and at its own rate where it was played so."""
    shown = [view for view in views(frame, "drone") if clips(view)]
    if not shown:
        return style.empty(NO_TIMES)
    methods = [[name for name, number in _medians(view).items() if number.known] for view in shown]
    differing = any(differs(view, number.key) for view in shown for number in _medians(view).values())
    notes = " ".join(filter(None, [*map(_note, shown), f"{DIFFERENT_NOTE}." if differing else ""]))
    result, parts, legend = style.stacked([0.95 + _ROW * len(names) for names in methods], 0.25, notes)
    for part, view, names in zip(parts, shown, methods, strict=True):
        layers = [layer for layer in LAYERS if any(number.known for number in _medians(view, layer).values())]
        axes = part.subplots(1, len(layers), squeeze=False, sharex=True)[0]
        for place, (axis, layer) in enumerate(zip(axes, layers, strict=True)):
            medians = _medians(view, layer)
            _panel(axis, view, [medians.get(name) for name in names])
            labels = [f"{FRAME_METHODS[name]}{differs(view, _medians(view)[name].key)}" for name in names]
            axis.set_yticks(range(len(names)))
            axis.set_yticklabels(labels if place == 0 else [], fontsize=6.8)
            axis.set_title(LAYERS[layer], fontsize=7.5, fontweight="normal")
        _limits(axes, view)
        style.plain_log(axes[0].xaxis, narrow=True)
        style.heading(part, f"{view.name}: {clip_seconds(clips(view)[-1])} s of video")
        part.supxlabel("Frame on the host to its crops (ms)", fontsize=7.5)
    legend.legend(handles=_handles(), loc="center", ncols=4, fontsize=7)
    return result


def _medians(view: View, layer: str = "host") -> dict[str, Number]:
    """Return the medians of the longest clip, in the order of the methods."""
    medians = medians_of(view, clips(view)[-1], layer)
    return {name: medians[name] for name in METHODS if name in medians}


def _handles() -> list[Line2D]:
    from matplotlib.lines import Line2D

    return [
        Line2D([], [], color=GREY, linewidth=6, alpha=0.45, label="Half of the frames"),
        Line2D([], [], color=GREY, linewidth=1, label="98 % of the frames"),
        Line2D([], [], color=GREY, marker=".", markersize=3, linestyle="", label="Frames beyond"),
        Line2D([], [], color=BLACK, linewidth=1, linestyle="--", label="Time that a frame may take"),
    ]


def _panel(axis: Axes, view: View, medians: list[Number | None]) -> None:
    for place, number in enumerate(medians):
        if number is not None and number.known:
            series = view.series(f"{number.workload}.{number.layer}.{number.method}")
            values = np.array(series["ms"])
            _row(axis, place, values, METHOD_COLORS.get(number.method, GREY))
            options = {"va": "bottom", "ha": "left", "fontsize": 6, "textcoords": "offset points"}
            options["bbox"] = {"facecolor": "white", "edgecolor": "none", "pad": 0.4}
            axis.annotate(_facts(view, number), (values.min(), place), (0, 5), **options)
    axis.set(xscale="log")
    axis.set_ylim(len(medians) - 0.5, -0.7)
    bars.plain(axis)


def _limits(axes: Sequence[Axes], view: View) -> None:
    """Mark the time that a frame may take in all panels, which share their limits, once they are drawn."""
    budget = view.get(view.key(f"clips.{clips(view)[-1]}", quantity="frame_budget"))
    if budget:
        for axis in axes:
            axis.axvline(budget.value, color=BLACK, linewidth=1, linestyle="--")
        axes[0].set_xlim(right=max(axes[0].get_xlim()[1], 1.3 * budget.value))


def _row(axis: Axes, place: float, values: np.ndarray, color: str) -> None:
    """Draw half of the frames thick, 98 % of them thin, and the others as dots."""
    low, first, middle, third, high = np.percentile(values, (1, 25, 50, 75, 99))
    axis.plot([low, high], [place] * 2, color=color, linewidth=1)
    axis.plot([first, third], [place] * 2, color=color, linewidth=6, alpha=0.45, solid_capstyle="butt")
    axis.plot(middle, place, "|", color=color, markersize=9, markeredgewidth=1.6)
    beyond = values[(values < low) | (values > high)]
    axis.plot(beyond, np.full(len(beyond), place), ".", color=color, markersize=2.5)


def _facts(view: View, number: Number) -> str:
    """Say the tail in numbers: 99th percentile, or longest frame of a short clip, and frames that were late."""
    p99, longest, misses = (
        view.text(frames_of(number.key).but(quantity=name)) for name in ("p99", "max", "misses")
    )
    tail = f"p99 {p99}" if p99 else f"longest {longest}"
    return f"{tail}, {misses} late" if misses else tail


def _note(view: View) -> str:
    texts = {FRAME_METHODS[name]: number.text for name, number in _medians(view).items()}
    said = by_reason((name, text) for name, text in texts.items() if text.startswith("unavailable"))
    return f"No time on {view.name}. {said}." if said else ""
