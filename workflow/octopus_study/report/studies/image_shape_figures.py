"""Image shapes, drawn: memory over the width and under each intervention, and the time to cover an image with
patches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from octopus_study.names import AS_PUBLISHED as PUBLISHED
from octopus_study.names import DENOISERS, SHAPE_WAYS
from octopus_study.names import DRUNET_MULTIPLE as MULTIPLE
from octopus_study.report.charts import bars, lines, style
from octopus_study.report.charts.palette import (
    BLACK,
    GREY,
    LIGHT,
    MACHINE_MARKERS,
    PATCH_COLORS,
    SHAPE_COLORS,
)
from octopus_study.report.frame import Frame, Key, Number, published
from octopus_study.report.studies import image_shape_view as shape
from octopus_study.report.text import significant
from octopus_study.report.view import View, views

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_NO_PATCHES = "No run of the study image_shape that is shown timed patches."
_GIB = 2.0**30
_WAY = 0.19  # inches


def draw_memory(frame: Frame) -> Figure:
    """Draw a row of panels per machine, a panel per model; below it the peaks under each intervention."""
    shown = shape.machines(frame)
    if not shown:
        return style.empty(shape.no_memory(frame))
    heights: list[float] = []
    for view in shown:
        heights += [2.35, *(0.75 + _WAY * len(SHAPE_WAYS) for _ in shape.with_interventions(view))]
    result, parts, legend = style.stacked(heights, 0.4)
    rest, drawn = iter(parts), []
    for view in shown:
        part = next(rest)
        style.heading(part, view.name)
        axes = part.subplots(1, len(shape.models(view)), squeeze=False, sharey=True)[0]
        for axis, model in zip(axes, shape.models(view), strict=True):
            _memory(axis, view, model)
        axes[0].set_ylabel("Peak of a forward (GiB)")
        axes[0].set_ylim(bottom=0)  # of all panels, once all are drawn: a limit ends the scaling
        drawn += list(axes)
        for model in shape.with_interventions(view):
            _interventions(
                next(rest), view, shape.widths(view, f"{model}{shape.INTERVENTIONS}"), DENOISERS[model]
            )
    style.legend_of(legend, drawn, 4)
    return result


def _memory(axis: Axes, view: View, model: str) -> None:
    """Draw the peaks of both steps: those of split widths apart, where there are some."""
    for step in shape.steps(view, model):
        keys = shape.widths(view, f"{model}-step{step}")
        split = [key for key in keys if shape.is_split(view, key)]
        whole = [key for key in keys if key not in split]
        if step % MULTIPLE == 0:
            _line(axis, view, whole, SHAPE_COLORS["step64"], "o", f"Step {step}", "-")
        else:
            axis.plot(*_points(view, keys), color=LIGHT, linewidth=0.8, zorder=1)
            _line(axis, view, whole, SHAPE_COLORS["whole"], "s", f"Step {step}, run whole")
            _line(axis, view, split, SHAPE_COLORS["split"], "D", f"Step {step}, split in quadrants")
    if model == shape.MODEL:
        _published(axis, view.frame)
    axis.set_title(DENOISERS[model], fontsize=8, fontweight="normal")
    axis.set_xlabel("Width (px)")


def _points(view: View, keys: Sequence[Key]) -> tuple[list[int], list[float]]:
    return [key.n for key in keys], [view.frame.value(key) / _GIB for key in keys]


def _line(
    axis: Axes, view: View, keys: list[Key], color: str, marker: str, label: str, line: str = ""
) -> None:
    if keys:
        look = {"color": color, "marker": marker, "linestyle": line, "linewidth": 1.0}
        axis.plot(*_points(view, keys), **look, markersize=3.6, label=label)


def _published(axis: Axes, frame: Frame) -> None:
    """Mark the published values, hollow."""
    numbers = {
        width: frame.get(published(shape.STUDY, f"{shape.MODEL}-{width}", "memory")) for width in shape.JUMP
    }
    points = {width: number.value * 1e9 / _GIB for width, number in numbers.items() if number}
    if points:
        look = {"color": BLACK, "marker": "*", "markerfacecolor": "white", "linestyle": ""}
        axis.plot(
            list(points), list(points.values()), **look, markersize=8, zorder=4, label="DRUNet, published"
        )


def _interventions(part: Any, view: View, keys: list[Key], name: str) -> None:
    """Draw the peak under each intervention at both widths, with its ratio to the one as published."""
    axes = part.subplots(1, len(keys), squeeze=False, sharey=True, sharex=True)[0]
    farthest = 0.0
    for axis, key in zip(axes, keys, strict=True):
        numbers = {way: view.get(key.but(method=way)) for way in SHAPE_WAYS}
        for place, (way, number) in enumerate(numbers.items()):
            if number:
                farthest = max(farthest, number.value / _GIB)
                color = SHAPE_COLORS["split" if shape.is_split(view, key.but(method=way)) else "whole"]
                axis.barh(place, number.value / _GIB, height=0.72, color=color)
                text = _peak_text(number, numbers[PUBLISHED])
                bars.beside(axis, place, number.value / _GIB, text, gap=3)
            else:
                bars.beside(axis, place, 0, "not measured", color=GREY)
        remainder = key.n % MULTIPLE
        kind = f"{MULTIPLE} \u00d7 {key.n // MULTIPLE}" + (f" + {remainder}" if remainder else "")
        axis.set_title(f"{name}, width {key.n} = {kind}", fontsize=8, fontweight="normal")
        axis.set_xlabel("Peak of a forward (GiB)")
        bars.plain(axis)
    bars.names(axes[0], list(SHAPE_WAYS.values()), edge=0.45, fontsize=7)
    axes[0].set_xlim(0, 1.4 * farthest)


def _peak_text(number: Number, base: Number | None) -> str:
    text = significant(number.value / _GIB)
    if base is None or base is number:
        return text
    return f"{text}, {significant(number.value / base.value)}\u00d7"


def draw_throughput(frame: Frame) -> Figure:
    """Draw the time to cover an image over the patches per batch, one row of panels per machine."""
    times = {
        view: {model: covered for model in DENOISERS if (covered := shape.patches(view, model))}
        for view in views(frame, shape.STUDY)
    }
    times = {view: of_models for view, of_models in times.items() if of_models}
    if not times:
        return style.empty(_NO_PATCHES if shape.machines(frame) else shape.no_memory(frame))
    result, parts, legend = style.stacked([2.3] * len(times), 0.25)
    drawn: list[Axes] = []
    for part, (view, of_models) in zip(parts, times.items(), strict=True):
        style.heading(part, view.name)
        axes = part.subplots(1, len(of_models), squeeze=False)[0]
        for axis, (model, covered) in zip(axes, of_models.items(), strict=True):
            _throughput(axis, covered, DENOISERS[model])
        axes[0].set_ylabel("Time to cover the image (ms)")
        part.supxlabel("Patches per batch", fontsize=8)
        drawn += list(axes)
    style.legend_of(legend, drawn, 4)
    return result


def _throughput(axis: Axes, times: dict, name: str) -> None:
    for place, side in enumerate(sorted({patch.side for patch in times})):
        points = [(patch.batch, number) for patch, number in times.items() if patch.side == side]
        look = {
            "color": PATCH_COLORS[place % len(PATCH_COLORS)],
            "marker": MACHINE_MARKERS[place % len(MACHINE_MARKERS)],
        }
        label = f"{side} \u00d7 {side} px"
        lines.line(axis, points, markersize=3.6, capsize=1.5, label=label, **look)
    best = min(times, key=lambda patch: times[patch].value)
    ring = {"marker": "o", "markersize": 9, "markerfacecolor": "none", "color": BLACK, "linestyle": ""}
    axis.plot(best.batch, times[best].value, **ring, label="Least time")
    lines.counts(axis, sorted({patch.batch for patch in times}))
    axis.set_title(f"{name}, best: {best.text}", fontsize=8, fontweight="normal")
    # Some air, so that the ring isn't cut.
    low, high = axis.get_ylim()
    axis.set_ylim(low / 1.06, high * 1.04)
    style.near_log(axis.yaxis)
