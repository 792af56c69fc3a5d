"""The figure of image shapes: memory over the width and under each intervention."""

import re
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple, Self

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from octopus_study.names import AS_PUBLISHED as PUBLISHED
from octopus_study.names import DENOISERS, PATCH_TEXT, SHAPE_WAYS
from octopus_study.names import DRUNET_MULTIPLE as MULTIPLE
from octopus_study.report.charts import bars, style
from octopus_study.report.charts.palette import BLACK, GREY, LIGHT, SHAPE_COLORS
from octopus_study.report.frame import Frame, Key, Number, published
from octopus_study.report.missing import with_reasons
from octopus_study.report.view import View, views
from octopus_study.units import significant

STUDY = "image_shape"
MODEL = "drunet"  # the only one that splits, of which the published jump is
PEAK, SPLITS = "allocated_peak", "split_calls"
# The published jump: a width that is split, and the next one, which runs whole.
JUMP = (1228, 1296)
WORKLOAD = f"{MODEL}-interventions"
_NO_MEMORY = "No run of the study image_shape that is shown ran a model on a GPU."
_PATCH = re.compile(r"(\d+)x(\d+)")
_GIB = 2.0**30
_WAY = 0.19  # inches
no_memory = partial(with_reasons, study=STUDY, sentence=_NO_MEMORY)


class Patch(NamedTuple):
    """How an image is covered."""

    side: int
    batch: int

    @classmethod
    def of(cls, method: str) -> Self | None:
        """Return what a method's name in rows says; None where it names no patches."""
        match = _PATCH.fullmatch(method)
        return cls(int(match[1]), int(match[2])) if match else None

    @property
    def method(self) -> str:
        """Its name in rows."""
        return f"{self.side}x{self.batch}"

    @property
    def text(self) -> str:
        """Its name for readers: batch and sides."""
        return PATCH_TEXT.format(batch=self.batch, side=self.side)


def patches(view: View, model: str) -> dict[Patch, Number]:
    """Return the time to cover the image by patch, side by side."""
    numbers = view.select(workload=f"{model}-patches", quantity="cover")
    pairs = ((Patch.of(number.method), number) for number in numbers if number.known)
    return dict(sorted((patch, number) for patch, number in pairs if patch))


def steps(view: View, model: str) -> list[int]:
    """Return the distances between widths at which a machine knows the peaks of a model, ascending."""
    parts = (key.workload.partition("-step") for key in view.cases(PUBLISHED, PEAK))
    return sorted({int(step) for name, _, step in parts if name == model and step})


def widths(view: View, workload: str) -> list[Key]:
    """Return the keys of the peaks at the widths at which they are known, ascending."""
    keys = (key for key in view.cases(PUBLISHED, PEAK) if key.workload == workload)
    return sorted(keys, key=lambda key: key.n or 0)


def draw_memory(frame: Frame) -> Figure:
    """Draw a row of panels per machine, a panel per model; below it the peaks under each intervention."""
    models = {view: [model for model in DENOISERS if steps(view, model)] for view in views(frame, STUDY)}
    shown = [view for view, known in models.items() if known]
    if not shown:
        return style.empty(no_memory(frame))
    heights: list[float] = []
    for view in shown:
        heights += [2.35, *[0.75 + _WAY * len(SHAPE_WAYS)] * bool(widths(view, WORKLOAD))]
    result, parts, legend = style.stacked(heights, 0.4)
    rest, drawn = iter(parts), []
    for view in shown:
        part = next(rest)
        style.heading(part, view.name)
        axes = part.subplots(1, len(models[view]), squeeze=False, sharey=True)[0]
        for axis, model in zip(axes, models[view], strict=True):
            _memory(axis, view, model)
        axes[0].set_ylabel("Peak of a forward (GiB)")
        axes[0].set_ylim(bottom=0)  # of all panels, once all are drawn: a limit ends the scaling
        drawn += list(axes)
        if keys := widths(view, WORKLOAD):
            _interventions(next(rest), view, keys)
    style.legend_of(legend, drawn, 4)
    return result


def _is_split(view: View, key: Key) -> bool:
    """Say whether a forward split the image."""
    return view.frame.value(key.but(quantity=SPLITS, layer="deterministic")) > 0


def _memory(axis: Axes, view: View, model: str) -> None:
    """Draw the peaks of both steps: those of split widths apart, where there are some."""
    for step in steps(view, model):
        keys = widths(view, f"{model}-step{step}")
        split = [key for key in keys if _is_split(view, key)]
        whole = [key for key in keys if key not in split]
        if step % MULTIPLE == 0:
            _line(axis, view, whole, SHAPE_COLORS["step64"], "o", f"Step {step}", "-")
        else:
            axis.plot(*_points(view, keys), color=LIGHT, linewidth=0.8, zorder=1)
            _line(axis, view, whole, SHAPE_COLORS["whole"], "s", f"Step {step}, run whole")
            _line(axis, view, split, SHAPE_COLORS["split"], "D", f"Step {step}, split in quadrants")
    if model == MODEL:  # hollow: the published values
        numbers = {width: view.get(published(STUDY, f"{MODEL}-{width}", "memory")) for width in JUMP}
        points = {width: number.value * 1e9 / _GIB for width, number in numbers.items() if number}
        look = {"color": BLACK, "markerfacecolor": "white", "markersize": 8, "zorder": 4}
        axis.plot(list(points), list(points.values()), "*", **look, label="DRUNet, published")
    axis.set_title(DENOISERS[model], fontsize=8, fontweight="normal")
    axis.set_xlabel("Width (px)")


def _points(view: View, keys: Sequence[Key]) -> tuple[list[int], list[float]]:
    return [key.n for key in keys], [view.frame.value(key) / _GIB for key in keys]


def _line(axis: Axes, view: View, keys: list[Key], color: str, marker: str, label: str, line: str = "") -> None:
    if keys:
        look = {"color": color, "marker": marker, "linestyle": line, "linewidth": 1.0}
        axis.plot(*_points(view, keys), **look, markersize=3.6, label=label)


def _interventions(part: Any, view: View, keys: list[Key]) -> None:
    """Draw the peak under each intervention at both widths, with its ratio to the one as published."""
    axes = part.subplots(1, len(keys), squeeze=False, sharey=True, sharex=True)[0]
    farthest = 0.0
    for axis, key in zip(axes, keys, strict=True):
        base = view.frame.value(key)
        for place, way in enumerate(SHAPE_WAYS):
            peak = view.frame.value(key.but(method=way))
            if peak == peak:
                farthest = max(farthest, peak / _GIB)
                color = SHAPE_COLORS["split" if _is_split(view, key.but(method=way)) else "whole"]
                axis.barh(place, peak / _GIB, height=0.72, color=color)
                ratio = "" if way == PUBLISHED else f", {significant(peak / base)}\u00d7"
                bars.beside(axis, place, peak / _GIB, f"{significant(peak / _GIB)}{ratio}", gap=3)
            else:
                bars.beside(axis, place, 0, "not measured", color=GREY)
        remainder = key.n % MULTIPLE
        kind = f"{MULTIPLE} \u00d7 {key.n // MULTIPLE}" + (f" + {remainder}" if remainder else "")
        axis.set_title(f"{DENOISERS[MODEL]}, width {key.n} = {kind}", fontsize=8, fontweight="normal")
        axis.set_xlabel("Peak of a forward (GiB)")
        bars.plain(axis)
    bars.names(axes[0], list(SHAPE_WAYS.values()), edge=0.45, fontsize=7)
    axes[0].set_xlim(0, 1.4 * farthest)
