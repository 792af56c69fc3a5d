"""Memory of a forward over the width of the image, model by model, and under each intervention."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from octopus_study.report import image_shape
from octopus_study.report.captions import scope_name
from octopus_study.report.figures import style
from octopus_study.report.image_shape import MULTIPLE, NO_RUN, STUDY, footer
from octopus_study.report.labels import DENOISERS, SHAPE_WAYS
from octopus_study.report.numbers import Number, Numbers
from octopus_study.report.text import significant

__all__ = ["NO_RUN", "STUDY", "figure", "footer"]
_GIB = 2.0**30
_PUBLISHED = "drunet"  # the model of the published jump
_WAY = 0.19  # inches


def figure(numbers: Numbers) -> Figure:
    """Draw a row of panels per machine, a panel per model; below it the peaks under each intervention."""
    scopes = image_shape.measured(numbers)
    if not scopes:
        return style.words(style.new_figure(1.2)[0], image_shape.no_memory(numbers))
    heights: list[float] = []
    for scope in scopes:
        heights.append(2.35)
        heights += [0.75 + _WAY * len(SHAPE_WAYS) for _ in image_shape.interventions(numbers, scope)]
    result, parts, legend = style.stacked(heights, 0.4)
    rest, shown = list(parts), []
    for scope in scopes:
        models = image_shape.models(numbers, scope)
        part = rest.pop(0)
        part.suptitle(scope_name(numbers, scope), fontsize=8.5, fontweight="bold", x=0.005, ha="left")
        axes = part.subplots(1, len(models), squeeze=False, sharey=True)[0]
        for axis, model in zip(axes, models, strict=True):
            _panel(axis, numbers, scope, model)
        axes[0].set_ylabel("Peak of a forward (GiB)")
        axes[0].set_ylim(bottom=0)  # of all panels, once all are drawn: a limit ends the scaling
        shown += list(axes)
        for model in image_shape.interventions(numbers, scope):
            _interventions(rest.pop(0), numbers, scope, model)
    style.legend_of(legend, shown, 4)
    return result


def _panel(axis: Axes, numbers: Numbers, scope: str, model: str) -> None:
    """Draw the peaks of both steps: those of split widths apart, where there are some."""
    for step in image_shape.steps(numbers, scope, model):
        workload = f"{model}-step{step}"
        points = {
            width: _peak(numbers, scope, workload, width)
            for width in image_shape.widths(numbers, scope, workload)
        }
        split = {width for width in points if image_shape.splits(numbers, scope, workload, width) > 0}
        whole = [width for width in points if width not in split]
        if step % MULTIPLE == 0:
            _line(axis, points, whole, style.SHAPE_COLORS["step64"], "o", f"Step {step}")
        else:
            axis.plot(*zip(*points.items(), strict=True), color=style.LIGHT, linewidth=0.8, zorder=1)
            _line(axis, points, whole, style.SHAPE_COLORS["whole"], "s", f"Step {step}, run whole", "")
            label = f"Step {step}, split in quadrants"
            _line(axis, points, sorted(split), style.SHAPE_COLORS["split"], "D", label, "")
    if model == _PUBLISHED:
        _published(axis, numbers)
    axis.set_title(DENOISERS[model], fontsize=8, fontweight="normal")
    axis.set_xlabel("Width (px)")


def _peak(numbers: Numbers, scope: str, workload: str, width: int) -> float:
    key = image_shape.key(scope, workload, width, image_shape.PUBLISHED, image_shape.PEAK, "memory")
    return numbers.value(key) / _GIB


def _line(
    axis: Axes,
    points: dict[int, float],
    widths: list[int],
    color: str,
    marker: str,
    label: str,
    line: str = "-",
) -> None:
    if widths:
        look = {"color": color, "marker": marker, "linestyle": line, "linewidth": 1.0}
        axis.plot(widths, [points[width] for width in widths], **look, markersize=3.6, label=label)


def _published(axis: Axes, numbers: Numbers) -> None:
    """Mark the published values, hollow."""
    points = []
    for width in image_shape.JUMP:
        number = numbers.get(f"published.image_shape.{_PUBLISHED}-{width}.memory")
        if number:
            points.append((width, number.value * 1e9 / _GIB))
    if points:
        look = {"color": style.BLACK, "marker": "*", "markerfacecolor": "white", "linestyle": ""}
        axis.plot(*zip(*points, strict=True), **look, markersize=8, zorder=4, label="DRUNet, published")


def _interventions(part: object, numbers: Numbers, scope: str, model: str) -> None:
    """Draw the peak under each intervention at both widths, with its ratio to the one as published."""
    workload = f"{model}-interventions"
    widths = image_shape.widths(numbers, scope, workload)
    axes = part.subplots(1, len(widths), squeeze=False, sharey=True, sharex=True)[0]  # type: ignore[attr-defined]
    farthest = 0.0
    for place, (axis, width) in enumerate(zip(axes, widths, strict=True)):
        found = {
            way: number
            for way in SHAPE_WAYS
            if (
                number := numbers.get(
                    image_shape.key(scope, workload, width, way, image_shape.PEAK, "memory")
                )
            )
        }
        for row, way in enumerate(SHAPE_WAYS):
            if way in found:
                farthest = max(farthest, found[way].value / _GIB)
                _bar(
                    axis,
                    row,
                    found[way],
                    found.get(image_shape.PUBLISHED),
                    _split(numbers, scope, workload, width, way),
                )
            else:
                options = {
                    "textcoords": "offset points",
                    "va": "center",
                    "fontsize": 6.2,
                    "color": style.GREY,
                }
                axis.annotate("not measured", (0, row), (4, 0), **options)
        remainder = width % MULTIPLE
        kind = f"{MULTIPLE} \u00d7 {width // MULTIPLE}" + (f" + {remainder}" if remainder else "")
        axis.set_title(f"{DENOISERS[model]}, width {width} = {kind}", fontsize=8, fontweight="normal")
        axis.set_xlabel("Peak of a forward (GiB)")
        axis.grid(axis="y", visible=False)
        axis.tick_params(axis="y", length=0)
        if place == 0:
            axis.set_yticks(range(len(SHAPE_WAYS)), list(SHAPE_WAYS.values()), fontsize=7)
            axis.set_ylim(len(SHAPE_WAYS) - 0.45, -0.55)
    axes[0].set_xlim(0, 1.4 * farthest)


def _split(numbers: Numbers, scope: str, workload: str, width: int, way: str) -> bool:
    return image_shape.splits(numbers, scope, workload, width, way) > 0


def _bar(axis: Axes, row: int, number: Number, base: Number | None, split: bool) -> None:
    color = style.SHAPE_COLORS["split" if split else "whole"]
    axis.barh(row, number.value / _GIB, height=0.72, color=color)
    text = significant(number.value / _GIB)
    if base is not None and base is not number:
        text = f"{text}, {significant(number.value / base.value)}\u00d7"
    options = {"textcoords": "offset points", "va": "center", "fontsize": 6.2}
    axis.annotate(text, (number.value / _GIB, row), (3, 0), **options)
