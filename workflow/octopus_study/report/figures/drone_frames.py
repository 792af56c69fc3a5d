"""How long the frames of a video take, method by method, against the time that a frame may take."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from octopus_study.report import drone
from octopus_study.report.captions import scope_name
from octopus_study.report.derive.drone import clip_seconds
from octopus_study.report.drone import NO_RUN, STUDY
from octopus_study.report.figures import style
from octopus_study.report.labels_edge import FRAME_METHODS
from octopus_study.report.numbers import Numbers
from octopus_study.report.tables.oldcells import DIFFERENT, DIFFERENT_NOTE

__all__ = ["NO_RUN", "STUDY", "figure"]
_ROW = 0.3  # inches


def figure(numbers: Numbers) -> Figure:
    """Draw one row of panels per machine: its longest clip back to back, and at its own rate where it was played so."""
    scopes = drone.measured(numbers)
    if not scopes:
        return style.words(style.new_figure(1.2)[0], drone.NO_TIMES)
    shown = {scope: drone.clips(numbers, scope)[-1] for scope in scopes}
    methods = {scope: drone.methods(numbers, scope, clip) for scope, clip in shown.items()}
    notes = " ".join(filter(None, (_note(numbers, scope, clip) for scope, clip in shown.items())))
    heights = [0.95 + _ROW * len(methods[scope]) for scope in scopes]
    result, parts, legend = style.stacked(heights, 0.25, notes)
    for part, scope in zip(parts, scopes, strict=True):
        clip = shown[scope]
        layers = [layer for layer in drone.LAYERS if drone.methods(numbers, scope, clip, layer)]
        axes = part.subplots(1, len(layers), squeeze=False, sharex=True)[0]
        for place, (axis, layer) in enumerate(zip(axes, layers, strict=True)):
            _panel(axis, numbers, (scope, clip, layer), methods[scope])
            names = [_name(numbers, scope, clip, name) for name in methods[scope]]
            names = names if place == 0 else []
            axis.set_yticks(range(len(methods[scope])))
            axis.set_yticklabels(names, fontsize=6.8)
            axis.set_title(drone.LAYERS[layer], fontsize=7.5, fontweight="normal")
        _limits(axes, numbers, scope, clip)
        style.plain_log(axes[0].xaxis, narrow=True)
        name = f"{scope_name(numbers, scope)}: {clip_seconds(clip)} s of video"
        part.suptitle(name, fontsize=8.5, fontweight="bold", x=0.005, ha="left")
        part.supxlabel("Frame on the host to its crops (ms)", fontsize=7.5)
    legend.legend(handles=_handles(), loc="center", ncols=4, fontsize=7)
    return result


def _handles() -> list[Line2D]:
    grey = style.GREY
    return [
        Line2D([], [], color=grey, linewidth=6, alpha=0.45, label="Half of the frames"),
        Line2D([], [], color=grey, linewidth=1, label="98 % of the frames"),
        Line2D([], [], color=grey, marker=".", markersize=3, linestyle="", label="Frames beyond"),
        Line2D([], [], color=style.BLACK, linewidth=1, linestyle="--", label="Time that a frame may take"),
    ]


def _panel(axis: Axes, numbers: Numbers, where: tuple[str, str, str], methods: list[str]) -> None:
    scope, clip, layer = where
    for position, method in enumerate(methods):
        values = drone.frames(numbers, scope, clip, method, layer)
        if values.size:
            _row(axis, position, values, style.METHOD_COLORS.get(method, style.GREY))
            text = _facts(numbers, where, method)
            options = {"va": "bottom", "ha": "left", "fontsize": 5.8, "textcoords": "offset points"}
            options["bbox"] = {"facecolor": "white", "edgecolor": "none", "pad": 0.4}
            axis.annotate(text, (values.min(), position), (0, 5), **options)
    axis.set(xscale="log")
    axis.set_ylim(len(methods) - 0.5, -0.7)
    axis.grid(axis="y", visible=False)
    axis.tick_params(axis="y", length=0)


def _limits(axes: Sequence[Axes], numbers: Numbers, scope: str, clip: str) -> None:
    """Mark the time that a frame may take in all panels, which share their limits, once they are drawn."""
    budget = numbers.get(f"{scope}.{STUDY}.clips.{clip}.frame_budget")
    if budget:
        for axis in axes:
            axis.axvline(budget.value, color=style.BLACK, linewidth=1, linestyle="--")
        axes[0].set_xlim(right=max(axes[0].get_xlim()[1], 1.3 * budget.value))


def _row(axis: Axes, position: float, values: np.ndarray, color: str) -> None:
    """Draw half of the frames thick, 98 % of them thin, and the others as dots."""
    low, first, middle, third, high = np.percentile(values, (1, 25, 50, 75, 99))
    axis.plot([low, high], [position] * 2, color=color, linewidth=1)
    axis.plot([first, third], [position] * 2, color=color, linewidth=6, alpha=0.45, solid_capstyle="butt")
    axis.plot(middle, position, "|", color=color, markersize=9, markeredgewidth=1.6)
    beyond = values[(values < low) | (values > high)]
    axis.plot(beyond, np.full(len(beyond), position), ".", color=color, markersize=2.5)


def _facts(numbers: Numbers, where: tuple[str, str, str], method: str) -> str:
    """Say the tail in numbers: 99th percentile, or longest frame of a short clip, and frames that were late."""
    scope, clip, layer = where
    texts = {
        name: numbers.text(drone.key(scope, clip, method, name, layer)) for name in ("p99", "max", "misses")
    }
    tail = f"p99 {texts['p99']}" if texts["p99"] else f"longest {texts['max']}"
    return f"{tail}, {texts['misses']} late" if texts["misses"] else tail


def _name(numbers: Numbers, scope: str, clip: str, method: str) -> str:
    """Return a method's name, with a mark where its crops differ from the reference."""
    mark = f" {DIFFERENT}" if drone.differs(numbers, scope, clip, method) else ""
    return f"{FRAME_METHODS[method]}{mark}"


def _note(numbers: Numbers, scope: str, clip: str) -> str:
    names = [FRAME_METHODS[name] for name in drone.missing(numbers, scope, clip)]
    parts = [f"No time on {scope_name(numbers, scope)}: {'; '.join(names)}."] if names else []
    if any(drone.differs(numbers, scope, clip, name) for name in drone.METHODS):
        parts.append(f"{DIFFERENT_NOTE}, on {scope_name(numbers, scope)}.")
    return " ".join(parts)
