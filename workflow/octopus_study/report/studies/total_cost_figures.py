"""Figures of the total cost: where the time of one batch goes, and when a lookup table pays."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from octopus_study.names import COST_PARTS, IMAGE_KERNELS, IMAGE_MIXES, STRATEGIES, SUBJECT, facts
from octopus_study.report.charts import bars, style
from octopus_study.report.charts.palette import BLACK, COST_COLORS, GREY, METHOD_COLORS
from octopus_study.report.frame import Frame, Key, published
from octopus_study.report.text import quantity_text
from octopus_study.report.view import View, views

STUDY = "total_cost"
NO_TIMES = "No run of the study total_cost that is shown timed anything."
OWNERS = ("block-metadata-published", "block-metadata")  # built by a loop, as published, or by compiled code
PUBLISHED_TABLE, SAME_TABLE = "lookup-published", "lookup-vectorised"
TABLES = (PUBLISHED_TABLE, SAME_TABLE, "lookup-device")
METHODS = (*TABLES, "thread-search", *OWNERS, SUBJECT)
WORKLOADS = {f"{mix}-{kernel}": f"{name}, {kernel}" for kernel in IMAGE_KERNELS for mix, name in IMAGE_MIXES.items()}
# The smallest and the largest mix, with both kernels; the table has all.
_PANELS = [f"{mix}-{kernel}" for mix in ("flickr-500", "flickr-1000-8k") for kernel in IMAGE_KERNELS]
_METHOD = 0.2  # inches
_MOST_USES = 300


class Cost(NamedTuple):
    """Milliseconds before the first kernel, and of each kernel."""

    once: float
    each: float

    def after(self, uses: float) -> float:
        """Return the milliseconds of so many uses of one batch."""
        return self.once + self.each * uses


def cases(view: View) -> list[Key]:
    """Return the total time of Octopus in each workload that was measured."""
    return view.cases(SUBJECT, "total", ("host",), order=list(WORKLOADS))


def measured(frame: Frame) -> list[View]:
    """Return the machines that measured some workload."""
    return [view for view in views(frame, STUDY) if cases(view)]


def parts(frame: Frame, case: Key, method: str) -> dict[str, float]:
    """Return the milliseconds of each step of a method. Setup and copies are those of the mix with its light kernel;
    the way back is the same for all methods, and the way there for both tables that are filled on the host."""
    case = case.but(method=method, layer="host")
    mix = case.but(workload=case.workload.replace("-heavy", "-light"))
    keys = {step: [mix.but(quantity=step)] for step in ("setup", "upload", "download")}
    keys["kernel"] = [case.but(quantity="kernel")]
    keys["upload"] += [keys["upload"][0].but(method=PUBLISHED_TABLE)] if method == SAME_TABLE else []
    keys["download"].append(keys["download"][0].but(method=SUBJECT))
    found = {step: [frame.value(key) for key in keys[step]] for step in COST_PARTS}
    known = {step: [value for value in values if value == value] for step, values in found.items()}
    return {step: values[0] for step, values in known.items() if values}


def cost(frame: Frame, case: Key, method: str) -> Cost | None:
    """Return what a method costs once and per use; None where its kernel or set-up was not measured."""
    values = parts(frame, case, method)
    if "kernel" not in values or "setup" not in values:
        return None
    return Cost(values["setup"] + values.get("upload", 0.0), values["kernel"])


def steps(frame: Frame) -> Figure:
    """Draw one row of panels per machine: the time of each step of each method, and of the whole."""

    def row(part: Any, view: View) -> list[Axes]:
        keys = [key for key in cases(view) if key.workload in _PANELS] or cases(view)[:4]
        keys.sort(key=lambda key: list(WORKLOADS).index(key.workload) % len(IMAGE_MIXES))
        methods = _timed(view, keys)
        axes = part.subplots(1, len(keys), squeeze=False)[0]
        for place, (axis, key) in enumerate(zip(axes, keys, strict=True)):
            _steps(axis, frame, key, methods)
            bars.names(axis, [STRATEGIES[name] if place == 0 else "" for name in methods], fontsize=6.5)
            axis.set_title(_name(key.workload, "\n"), fontsize=7.2, fontweight="normal")
        part.supxlabel("Time (ms)", fontsize=7.5)
        return list(axes)

    return _rows(frame, 0.95 + _METHOD * len(METHODS), 0.25, row, 5)


def _rows(frame: Frame, height: float, legend: float, row: Callable[[Any, View], list[Axes]], columns: int) -> Figure:
    """Draw a row of panels per machine, with one legend below them."""
    shown = measured(frame)
    if not shown:
        return style.empty(NO_TIMES)
    heights = style.per_machine(height, len(shown))
    result, parts, below = style.stacked(heights, legend, " ".join(filter(None, map(_note, shown))))
    drawn = []
    for part, view in zip(parts, shown, strict=True):
        style.heading(part, view.name)
        drawn += row(part, view)
    style.legend_of(below, drawn, columns, fontsize=6.8)
    return result


def _name(workload: str, between: str) -> str:
    of = facts(STUDY, workload)
    return f"{IMAGE_MIXES[of.distribution]},{between}{IMAGE_KERNELS[of.operation]}"


def _timed(view: View, keys: list[Key]) -> list[str]:
    return [name for name in METHODS if any(cost(view.frame, key, name) for key in keys)]


def _note(view: View) -> str:
    """Name the methods that a machine lacks."""
    timed = _timed(view, cases(view))
    missing = [STRATEGIES[name] for name in METHODS if name not in timed]
    return f"Not on {view.name}: {'; '.join(missing)}." if missing else ""


def _steps(axis: Axes, frame: Frame, case: Key, methods: list[str]) -> None:
    for place, method in enumerate(methods):
        for step, time in parts(frame, case, method).items():
            axis.plot(time, place, "o", color=COST_COLORS[step], markeredgewidth=0, label=COST_PARTS[step])
        total = frame.value(case.but(method=method))
        if math.isfinite(total):
            axis.plot(total, place, "|", color=BLACK, markersize=9, label="The whole, end to end")
            bars.beside(axis, place, total, quantity_text(total, "ms"), gap=4, fontsize=6)
    axis.set(xscale="log")
    low, high = axis.get_xlim()
    axis.set_xlim(low, high * (high / low) ** 0.45)
    style.plain_log(axis.xaxis, narrow=True)


def amortisation(frame: Frame) -> Figure:
    """Draw the time of many uses of one batch as a multiple of that of Octopus, light and heavy kernel beside each
    other."""

    def row(part: Any, view: View) -> list[Axes]:
        axes = part.subplots(1, len(IMAGE_KERNELS), squeeze=False)[0]
        for axis, kernel in zip(axes, IMAGE_KERNELS, strict=True):
            name = f"{next(iter(IMAGE_MIXES))}-{kernel}"
            axis.set_title(_name(name, " "), fontsize=8, fontweight="normal")
            _uses(axis, frame, next((key for key in cases(view) if key.workload == name), None), kernel)
        axes[0].set_ylabel("Longer than Octopus (%)")
        return list(axes)

    return _rows(frame, 2.3, 0.42, row, 3)


def _uses(axis: Axes, frame: Frame, case: Key | None, kernel: str) -> None:
    costs = {name: one for name in METHODS if case and (one := cost(frame, case, name))}
    if SUBJECT not in costs:
        axis.set_axis_off()
        style.gap(axis, "Not measured")
        return
    uses, least = np.geomspace(1, _MOST_USES, 200), 0.0
    for method, one in costs.items():
        more = [100 * (one.after(count) / costs[SUBJECT].after(count) - 1) for count in uses]
        least = min(least, *more)
        look = {"color": METHOD_COLORS[method], "linewidth": 1.8 if method == SUBJECT else 1.1}
        look["linestyle"] = "--" if method == SAME_TABLE else "-"  # the published table costs nearly as much
        axis.plot(uses, more, label=STRATEGIES[method], **look)
    number = frame[published("amortisation", kernel, "break_even")]
    label = "Published: table catches up with C"
    axis.axvline(number.value, color=GREY, linestyle=":", linewidth=1.1, label=label)
    axis.set(xscale="log", xlabel="Uses of one batch", xlim=(1, _MOST_USES))
    axis.set_xticks([1, 3, 10, 30, 100, 300], ["1", "3", "10", "30", "100", "300"])
    axis.set_xticks([], minor=True)
    axis.set_yscale("symlog", linthresh=1)  # lines cross close to 0
    axis.set_ylim(bottom=min(2 * least, -1))
    axis.yaxis.set_major_formatter("{x:g}")
