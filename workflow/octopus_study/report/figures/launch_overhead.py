"""What a launch costs, by slope, and how much of the savings on the way to one fused launch it explains."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from octopus_study.report.captions import counts, scope_name
from octopus_study.report.figures import style
from octopus_study.report.labels import METHODS, human
from octopus_study.report.numbers import Numbers
from octopus_study.report.text import quantity_text

STUDY = "stage_timing"
# From both kinds of N launches down to Octopus: a time, or a saving between two times.
_BARS = (
    ("n-launches", "N launches"),
    ("launches", "saved by one launch"),
    ("fusion", "saved by fusing"),
    ("octopus", "Octopus"),
    ("launches-fused", "saved by one launch"),
    ("n-launches-fused", "N launches, fused"),
)
_SAVINGS = {
    "launches": ("published", "n-launches"),
    "fusion": ("octopus", "published"),
    "launches-fused": ("octopus", "n-launches-fused"),
}
_EXPLAINED = "Slope of the launch \u00d7 launches saved"


def figure(numbers: Numbers) -> Figure:
    """Draw one row per machine: the series of launches at the left, the parts of the savings at the right."""
    scopes = numbers.scopes(STUDY)
    result, axes = style.new_figure(0.6 + 1.2 * len(scopes), len(scopes), 2, width_ratios=(1, 1.3))
    for (series, waterfall), scope in zip(axes, scopes, strict=True):
        _series(series, numbers, scope)
        _waterfall(waterfall, numbers, scope)
        series.set_title(scope_name(numbers, scope))
    axes[-1, 0].set_xlabel("Launches of an empty kernel")
    axes[-1, 1].set_xlabel("Time (ms)")
    style.bottom_legend(list(axes[:, 1]), 1)
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
        label = f"{human(METHODS, method)}: slope {numbers.text(f'{prefix}.slope')}"
        axis.plot(launches[fit > 0], fit[fit > 0], color=color, label=label)
    axis.set(xscale="log", yscale="log", ylabel="Time (µs)")
    axis.set_xticks([1, 4, 16, 64, 256], ["1", "4", "16", "64", "256"])
    axis.set_xticks([], minor=True)
    low, high = axis.get_ylim()
    axis.set_ylim(low / 2, 10 * high)  # room for the legend
    style.plain_log(axis.yaxis)
    axis.legend(loc="upper left", fontsize=6.5, borderaxespad=0.2, handlelength=1.4)


def _waterfall(axis: Axes, numbers: Numbers, scope: str) -> None:
    """Draw times as full bars and savings between them; what slope times launches explains is hatched."""
    n = 1000 if 1000 in counts(numbers, scope) else max(counts(numbers, scope))
    prefix = f"{scope}.{STUDY}.visdrone.n{n}"
    times = {
        method: numbers.value(f"{prefix}.{method}.end_to_end.host")
        for method in ("n-launches", "published", "octopus", "n-launches-fused")
    }
    if not np.isfinite(list(times.values())).all():
        axis.set_axis_off()
        return
    for row, (name, _) in enumerate(_BARS):
        low, high = (times[method] for method in _SAVINGS[name]) if name in _SAVINGS else (0.0, times[name])
        color = style.LIGHT if name in _SAVINGS else style.METHOD_COLORS[name]
        axis.barh(row, high - low, left=low, height=0.7, color=color, edgecolor=style.BLACK, linewidth=0.5)
        saving = f"{prefix}.saving.{name}"
        _explained(axis, numbers, saving, row, high)
        text = quantity_text(-numbers.value(saving) if name in _SAVINGS else high, "ms")
        end = (max(low, high), row)
        axis.annotate(text, end, (3, 0), textcoords="offset points", va="center", fontsize=6)
    axis.set_yticks(range(len(_BARS)), [label for _, label in _BARS], fontsize=6.5)
    axis.invert_yaxis()
    axis.grid(axis="y", visible=False)
    axis.set_xlim(0, 1.25 * max(times.values()))
    axis.set_title(f"End to end, {n} boxes")


def _explained(axis: Axes, numbers: Numbers, key: str, row: int, high: float) -> None:
    """Hatch from the slower time downwards what the launches saved should cost by their slope."""
    expected = numbers.value(f"{key}.expected")
    if expected == expected:
        look = {"facecolor": "none", "edgecolor": style.VERMILION, "hatch": "/////", "linewidth": 0.5}
        axis.barh(row, -expected, left=high, height=0.7, label=_EXPLAINED, **look)
