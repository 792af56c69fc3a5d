"""Time over the number of boxes, whole and per box, with intervals and the write-only bound."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from octopus.report.captions import counts, kernel_layer, scope_name
from octopus.report.figures import style
from octopus.report.labels import METHODS
from octopus.report.numbers import Number, Numbers

STUDY = "stage_timing"
_END_TO_END = ("octopus", "published", "n-launches", "n-launches-fused")
_ONE_THREAD = ("octopus", "opencv", "opencv-inplace")


def figure(numbers: Numbers) -> Figure:
    """Draw one column per machine: time above, time per box below."""
    scopes = numbers.scopes(STUDY)
    result, axes = style.new_figure(4.3, 2, len(scopes), sharex="col")
    for column, scope in enumerate(scopes):
        for row in (0, 1):
            _panel(axes[row, column], numbers, scope, per_box=bool(row))
        style.title(axes[0, column], scope_name(numbers, scope))
        axes[1, column].set_xlabel("Boxes")
    axes[0, 0].set_ylabel("Time (ms)")
    axes[1, 0].set_ylabel("Time per box (µs)")
    style.bottom_legend([axis for row in axes for axis in row], 3)
    return result


def _panel(axis: Axes, numbers: Numbers, scope: str, per_box: bool) -> None:
    for method in _END_TO_END:
        points = _points(numbers, scope, method, "end_to_end", "host")
        _line(axis, points, METHODS[method], per_box, method, style.METHOD_MARKERS[method], "-")
    layer = kernel_layer(numbers, scope)
    kernel = _points(numbers, scope, "octopus", "crop_resize_normalize", layer)
    _line(axis, kernel, "Octopus, kernel alone", per_box, "octopus", "", "--")
    for method in _ONE_THREAD:
        points = _points(numbers, scope, method, "end_to_end", "host", "visdrone-1thread")
        _line(
            axis,
            points,
            f"{METHODS[method]}, one thread",
            per_box,
            method,
            style.METHOD_MARKERS[method],
            "",
        )
    bound = _points(numbers, scope, "write-bound", "crop_resize_normalize", layer)
    _line(axis, bound, "Write bound (fills the output)", per_box, "write-bound", "", ":")
    axis.set_xscale("log")
    axis.set_yscale("log")
    shown = counts(numbers, scope)
    axis.set_xticks(shown, [str(n) for n in shown], rotation=45 if len(shown) > 4 else 0)
    axis.set_xticks([], minor=True)
    style.plain_log(axis.yaxis)


def _points(
    numbers: Numbers, scope: str, method: str, quantity: str, layer: str, workload: str = "visdrone"
) -> list[tuple[int, Number]]:
    prefix = f"{scope}.{STUDY}.{workload}"
    found = [(n, numbers.get(f"{prefix}.n{n}.{method}.{quantity}.{layer}")) for n in counts(numbers, scope)]
    return [(n, number) for n, number in found if number]


def _line(
    axis: Axes,
    points: list[tuple[int, Number]],
    label: str,
    per_box: bool,
    method: str,
    marker: str,
    dashes: str,
) -> None:
    if not points:
        return
    scales = [1000 / n if per_box else 1.0 for n, _ in points]
    values = [scale * number.value for scale, (_, number) in zip(scales, points, strict=True)]
    spans = [style.errors([number], scale) for scale, (_, number) in zip(scales, points, strict=True)]
    ends = [[span[side][0] for span in spans] for side in (0, 1)]
    axis.errorbar(
        [n for n, _ in points],
        values,
        yerr=ends,
        label=label,
        color=style.METHOD_COLORS[method],
        marker=marker,
        linestyle=dashes,
        markerfacecolor=None if dashes else "white",
        capsize=2,
    )
