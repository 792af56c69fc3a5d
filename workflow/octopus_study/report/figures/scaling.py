"""Time per box over the number of boxes, with intervals and the time to write the output."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from octopus_study.report.captions import counts, kernel_layer, scope_name
from octopus_study.report.figures import style
from octopus_study.report.labels import METHODS
from octopus_study.report.numbers import Number, Numbers

STUDY = "stage_timing"
_END_TO_END = ("octopus", "published", "n-launches", "n-launches-fused")
_ONE_THREAD = ("octopus", "opencv", "opencv-inplace")


def figure(numbers: Numbers) -> Figure:
    """Draw one panel per machine; the time of all boxes is n times that of one, so it needs no panel."""
    scopes = numbers.scopes(STUDY)
    result, axes = style.new_figure(2.9, 1, len(scopes))
    for axis, scope in zip(axes[0], scopes, strict=True):
        _panel(axis, numbers, scope)
        style.title(axis, scope_name(numbers, scope))
        axis.set_xlabel("Boxes")
    axes[0, 0].set_ylabel("Time per box (µs)")
    style.bottom_legend(list(axes[0]), 3)
    return result


def _panel(axis: Axes, numbers: Numbers, scope: str) -> None:
    for method in _END_TO_END:
        points = _points(numbers, scope, method, "end_to_end", "host")
        _line(axis, points, METHODS[method], method, style.METHOD_MARKERS[method], "-")
    layer = kernel_layer(numbers, scope)
    kernel = _points(numbers, scope, "octopus", "crop_resize_normalize", layer)
    _line(axis, kernel, "Octopus, kernel alone", "octopus", "", "--")
    bound = _points(numbers, scope, "write-bound", "crop_resize_normalize", layer)
    _line(axis, bound, "Write bound (fills the output)", "write-bound", "", ":")
    for method in _ONE_THREAD:
        points = _points(numbers, scope, method, "end_to_end", "host", "visdrone-1thread")
        label = f"{METHODS[method]}, one thread"
        _line(axis, points, label, method, style.METHOD_MARKERS[method], "")
    axis.set_xscale("log")
    axis.set_yscale("log")
    shown = counts(numbers, scope)
    axis.set_xticks(shown, [str(n) for n in shown], fontsize=6.5)
    axis.set_xticks([], minor=True)
    style.plain_log(axis.yaxis)


def _points(
    numbers: Numbers, scope: str, method: str, quantity: str, layer: str, workload: str = "visdrone"
) -> list[tuple[int, Number]]:
    prefix = f"{scope}.{STUDY}.{workload}"
    found = [(n, numbers.get(f"{prefix}.n{n}.{method}.{quantity}.{layer}")) for n in counts(numbers, scope)]
    return [(n, number) for n, number in found if number]


def _line(
    axis: Axes, points: list[tuple[int, Number]], label: str, method: str, marker: str, dashes: str
) -> None:
    if not points:
        return
    spans = [style.errors([number], 1000 / n) for n, number in points]
    axis.errorbar(
        [n for n, _ in points],
        [1000 / n * number.value for n, number in points],
        yerr=[[span[side][0] for span in spans] for side in (0, 1)],
        label=label,
        color=style.METHOD_COLORS[method],
        marker=marker,
        linestyle=dashes,
        markerfacecolor=None if dashes else "white",
        capsize=2,
    )
