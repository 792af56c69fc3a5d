"""What a launch costs, by slope, and what the saving from N launches to one fused launch is made of."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from octopus.report.captions import counts, scope_name
from octopus.report.figures import style
from octopus.report.labels import METHODS, human
from octopus.report.numbers import Numbers
from octopus.report.text import quantity_text

STUDY = "stage_timing"


def figure(numbers: Numbers) -> Figure:
    """Draw one column per machine: the series of launches above, the parts of the saving below."""
    scopes = numbers.scopes(STUDY)
    result, axes = style.new_figure(4.9, 2, len(scopes))
    for column, scope in enumerate(scopes):
        _series(axes[0, column], numbers, scope)
        style.title(axes[0, column], scope_name(numbers, scope))
        _waterfall(axes[1, column], numbers, scope)
    axes[0, 0].set_ylabel("Time (µs)")
    axes[1, 0].set_ylabel("End to end (ms)")
    return result


def _series(axis: Axes, numbers: Numbers, scope: str) -> None:
    found = numbers.matching(rf"{scope}\.{STUDY}\.launch-overhead\.n(\d+)\.([\w-]+)\.launch_series\.host")
    methods = dict.fromkeys(match[2] for match, _ in found)
    for method in methods:
        points = sorted((int(match[1]), number) for match, number in found if match[2] == method)
        color, prefix = (
            style.METHOD_COLORS.get(method, style.BLACK),
            f"{scope}.{STUDY}.launch-overhead.{method}",
        )
        measured = [number for _, number in points]
        launches = np.array([n for n, _ in points])
        axis.errorbar(
            launches,
            [1000 * m.value for m in measured],
            yerr=style.errors(measured, 1000),
            fmt="o",
            color=color,
        )
        slope, start = numbers.value(f"{prefix}.slope"), numbers.value(f"{prefix}.intercept")
        fit = start + slope * launches
        label = f"{human(METHODS, method)}, {numbers.text(f'{prefix}.slope')}"
        axis.plot(launches[fit > 0], fit[fit > 0], color=color, label=label)
    axis.set(xscale="log", yscale="log", xlabel="Empty launches in a row")
    axis.set_xticks([1, 4, 16, 64, 256], ["1", "4", "16", "64", "256"])
    axis.set_xticks([], minor=True)
    style.plain_log(axis.yaxis)
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.24), title="Slope", title_fontsize=7)


def _waterfall(axis: Axes, numbers: Numbers, scope: str) -> None:
    """Draw N launches, minus launches, minus fusion, leaves Octopus; a bracket shows slope times launches."""
    n = 1000 if 1000 in counts(numbers, scope) else max(counts(numbers, scope))
    prefix = f"{scope}.{STUDY}.visdrone.n{n}"
    methods = ("n-launches", "published", "octopus")
    times = [numbers.value(f"{prefix}.{method}.end_to_end.host") for method in methods]
    if not np.isfinite(times).all():
        axis.set_axis_off()
        return
    slow, middle, fast = times
    spans = [(0, slow), (middle, slow), (fast, middle), (0, fast)]
    colors = (style.METHOD_COLORS["n-launches"], style.LIGHT, style.LIGHT, style.METHOD_COLORS["octopus"])
    for index, ((low, high), color) in enumerate(zip(spans, colors, strict=True)):
        axis.bar(index, high - low, bottom=low, width=0.62, color=color, edgecolor=style.BLACK, linewidth=0.5)
        _value(axis, index, low, high, slow, "\u2212" if color == style.LIGHT else "")
    for index, level in enumerate((slow, middle, fast)):
        axis.plot([index, index + 1], [level, level], color=style.GREY, linewidth=0.7, zorder=0)
    axis.set_xticks(range(4), ["N\nlaunches", "one\nlaunch", "fused\nkernel", "Octopus"], fontsize=7)
    axis.grid(axis="x", visible=False)
    axis.margins(y=0.12)
    axis.set_title(f"{n} boxes")
    axis.set_xlabel(_explained(numbers, scope, n), fontsize=7)


def _value(axis: Axes, index: int, low: float, high: float, full: float, sign: str) -> None:
    """Write a bar's value inside of it where it fits, else below it where there is room, else above."""
    text = f"{sign}{quantity_text(abs(high - low), 'ms')}"
    inside, room_below = abs(high - low) > 0.2 * full, min(low, high) > 0.15 * full
    where = (low + high) / 2 if inside else min(low, high) if room_below else max(low, high)
    offset, align = (0, "center") if inside else (-2, "top") if room_below else (2, "bottom")
    color = "white" if inside and not sign else "black"
    axis.annotate(
        text,
        (index, where),
        (0, offset),
        textcoords="offset points",
        ha="center",
        va=align,
        fontsize=6,
        color=color,
    )


def _explained(numbers: Numbers, scope: str, n: int) -> str:
    pattern = rf"{scope}\.{STUDY}\.visdrone\.n{n}\.saving\.total_explained_by_([\w-]+)"
    lines = [
        f"{human(METHODS, match[1])}: slope times launches\nsaved = {share.text} of the saving"
        for match, share in numbers.matching(pattern)
    ]
    return "\n".join(lines)
