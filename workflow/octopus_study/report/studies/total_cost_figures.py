"""Figures of the total cost: where the time of one batch goes, and when a lookup table pays."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from octopus_study.names import COST_PARTS, IMAGE_KERNELS, IMAGE_MIXES, STRATEGIES, SUBJECT
from octopus_study.report.charts import bars, style
from octopus_study.report.charts.palette import COST_COLORS, GREY, METHOD_COLORS, METHOD_MARKERS
from octopus_study.report.frame import Frame, Key, published
from octopus_study.report.studies.total_cost_numbers import cases, measured
from octopus_study.report.studies.total_cost_reuse import (
    CHALLENGERS,
    OWNER,
    PUBLISHED_OWNER,
    SAME_TABLE,
    TABLES,
    cost,
    parts,
)
from octopus_study.report.text import quantity_text
from octopus_study.report.view import View

NO_TIMES = "No run of the study total_cost that is shown timed anything."
METHODS = (*TABLES, "thread-search", PUBLISHED_OWNER, OWNER, SUBJECT)
# The smallest and the largest mix, with both kernels; the table has all.
_PANELS = tuple(f"{mix}-{kernel}" for mix in ("flickr-500", "flickr-1000-8k") for kernel in IMAGE_KERNELS)
_METHOD = 0.2  # inches
_MOST_USES = 300
# Lines cross close to 1, where a logarithmic axis shows nothing: around it the axis is stretched.
_WIDTH = 0.02
_TICKS = (0.5, 0.9, 0.97, 1, 1.03, 1.1, 1.5, 3, 10, 100, 1000, 10_000)


def _name(workload: str, between: str) -> str:
    mix, _, kernel = workload.rpartition("-")
    return f"{IMAGE_MIXES[mix]},{between}{IMAGE_KERNELS[kernel]}"


def stack(frame: Frame) -> Figure:
    """Draw one row of panels per machine, on a logarithmic axis: an edge is the time that has passed until then."""
    shown = measured(frame)
    if not shown:
        return style.empty(NO_TIMES)
    note = " ".join(filter(None, (_note(view) for view in shown)))
    heights = style.per_machine(0.95 + _METHOD * len(METHODS), len(shown))
    result, rows, legend = style.stacked(heights, 0.25, note)
    drawn = []
    for part, view in zip(rows, shown, strict=True):
        keys = [key for key in cases(view) if key.workload in _PANELS]
        keys = sorted(keys, key=lambda key: _PANELS.index(key.workload)) or cases(view)[:4]
        methods = _timed(view, keys)
        axes = part.subplots(1, len(keys), squeeze=False)[0]
        style.heading(part, view.name)
        for place, (axis, key) in enumerate(zip(axes, keys, strict=True)):
            _steps(axis, frame, key, methods)
            axis.set_yticks(range(len(methods)))
            axis.set_yticklabels([STRATEGIES[name] for name in methods] if place == 0 else [], fontsize=6.5)
            axis.set_title(_name(key.workload, "\n"), fontsize=7.2, fontweight="normal")
        part.supxlabel("Time passed (ms)", fontsize=7.5)
        drawn += list(axes)
    style.legend_of(legend, drawn, 4)
    return result


def _timed(view: View, keys: list[Key]) -> list[str]:
    return [name for name in METHODS if any(cost(view.frame, key, name) for key in keys)]


def _note(view: View) -> str:
    """Name the methods that a machine lacks."""
    timed = _timed(view, cases(view))
    missing = [STRATEGIES[name] for name in METHODS if name not in timed]
    return f"Not on {view.name}: {'; '.join(missing)}." if missing else ""


def _steps(axis: Axes, frame: Frame, case: Key, methods: list[str]) -> None:
    steps = {name: parts(frame, case, name) for name in methods}
    if not any(steps.values()):
        style.gap(axis, "Not measured", fontsize=7)
        return
    left = min(min(times.values()) for times in steps.values() if times) / 2
    last = max(sum(times.values()) for times in steps.values())
    for place, (method, times) in enumerate(steps.items()):
        passed = left
        for step, time in times.items():
            end = (0.0 if passed == left else passed) + time
            look = {"color": COST_COLORS[step], "label": COST_PARTS[step]}
            axis.barh(place, end - passed, left=passed, height=0.72, **look)
            passed = end
        total = frame.value(case.but(method=method))
        if total == total:
            bars.beside(axis, place, max(passed, left), quantity_text(total, "ms"), gap=2, fontsize=6)
    axis.set(xscale="log")
    axis.set_xlim(left, last * (last / left) ** 0.42)
    axis.set_ylim(len(methods) - 0.4, -0.6)
    style.plain_log(axis.xaxis, narrow=True)
    decades = [10.0**power for power in range(-4, 6, 2) if left <= 10.0**power <= last]
    axis.set_xticks(decades, [f"{value:g}" for value in decades], fontsize=6.5)
    bars.plain(axis)


def amortisation(frame: Frame) -> Figure:
    """Draw the time of many uses of one batch as a multiple of that of Octopus, one row per machine, light and heavy
    kernel beside each other."""
    shown = measured(frame)
    if not shown:
        return style.empty(NO_TIMES)
    note = " ".join(filter(None, (_note(view) for view in shown)))
    result, rows, legend = style.stacked(style.per_machine(2.3, len(shown)), 0.42, note)
    drawn = []
    for part, view in zip(rows, shown, strict=True):
        axes = part.subplots(1, len(IMAGE_KERNELS), squeeze=False)[0]
        style.heading(part, view.name)
        for axis, kernel in zip(axes, IMAGE_KERNELS, strict=True):
            # The smallest mix comes first.
            keys = [key for key in cases(view) if key.workload.endswith(f"-{kernel}")]
            name = keys[0].workload if keys else f"{next(iter(IMAGE_MIXES))}-{kernel}"
            axis.set_title(_name(name, " "), fontsize=8, fontweight="normal")
            _uses(axis, frame, keys[0] if keys else None, kernel)
        axes[0].set_ylabel("Time / time of Octopus\n(stretched around 1)")
        drawn += list(axes)
    style.legend_of(legend, drawn, 3, fontsize=6.8)
    return result


def _stretch(ratio: Any) -> Any:
    return np.arcsinh((np.asarray(ratio) - 1) / _WIDTH)


def _unstretch(place: Any) -> Any:
    return 1 + _WIDTH * np.sinh(place)


def _uses(axis: Axes, frame: Frame, case: Key | None, kernel: str) -> None:
    costs = {name: one for name in METHODS if case and (one := cost(frame, case, name))}
    if SUBJECT not in costs:
        axis.set_axis_off()
        style.gap(axis, "Not measured")
        return
    axis.set(xscale="log", xlabel="Uses of one batch")
    axis.set_yscale("function", functions=(_stretch, _unstretch))
    uses, low, high = np.geomspace(1, _MOST_USES, 200), np.inf, 1.2
    for method, one in costs.items():
        ratios = [one.after(count) / costs[SUBJECT].after(count) for count in uses]
        low, high = min(low, *ratios), max(high, *ratios)
        look = {"color": METHOD_COLORS[method], "linewidth": 1.8 if method == SUBJECT else 1.1}
        look["linestyle"] = "--" if method == SAME_TABLE else "-"  # the published table costs nearly as much
        axis.plot(uses, ratios, label=STRATEGIES[method], **look)
        for other in CHALLENGERS if method in TABLES else ():
            number = frame.get(
                case.but(method=method, quantity="", layer="", derived="crossover", other=other)
            )
            if number is not None and 1 < number.value <= _MOST_USES:
                height = one.after(number.value) / costs[SUBJECT].after(number.value)
                _mark(axis, (number.value, height), number.text, method, above=other == CHALLENGERS[0])
    number = frame[published("amortisation", kernel, "break_even")]
    label = "Published: table catches up with C"
    axis.axvline(number.value, color=GREY, linestyle=":", linewidth=1.1, label=label)
    near_top = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points", "fontsize": 6.2}
    axis.annotate(number.text, (number.value, 0.92), xytext=(-2, 0), ha="right", color=GREY, **near_top)
    axis.set_xlim(1, _MOST_USES)
    axis.set_xticks([1, 3, 10, 30, 100, 300], ["1", "3", "10", "30", "100", "300"])
    axis.set_xticks([], minor=True)
    axis.set_ylim(_unstretch(_stretch(low) - 0.8), _unstretch(_stretch(high) * 1.15))
    ticks = [tick for tick in _TICKS if low <= tick <= high]
    axis.set_yticks(ticks, [f"{tick:g}" for tick in ticks], fontsize=6.5)


def _mark(axis: Axes, at: tuple[float, float], text: str, table: str, above: bool) -> None:
    """Mark where a table crosses another method, with the number of uses."""
    color = METHOD_COLORS[table]
    marker = {"marker": METHOD_MARKERS[table], "markerfacecolor": "white", "linestyle": "none"}
    axis.plot(*at, **marker, color=color, label="Measured: table catches up with C or D")
    behind = {"facecolor": "white", "lw": 0, "pad": 0.5, "alpha": 0.8}
    look = {"textcoords": "offset points", "fontsize": 6.2, "color": color, "ha": "center", "bbox": behind}
    axis.annotate(text, at, (0, 5 if above else -10), **look)
