"""The figure of the total cost: where the time of one batch goes."""

import math
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from octopus_study.names import COST_PARTS, IMAGE_KERNELS, IMAGE_MIXES, STRATEGIES, SUBJECT, facts
from octopus_study.report.charts import bars, style
from octopus_study.report.charts.palette import BLACK, BLUE, COST_COLORS, VERMILION
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
_PANELS = [f"{mix}-{kernel}" for mix in ("photos-500", "photos-1000-8k") for kernel in IMAGE_KERNELS]
_METHOD = 0.2  # inches
_USES = (1, 2, 5, 10, 20, 53, 100, 151, 200, 500, 1000)
# Lines: the table, the looks, whose colour.
_REUSED = {PUBLISHED_TABLE: "-", "lookup-device": ":"}
_KERNEL_COLORS = dict(zip(IMAGE_KERNELS, (BLUE, VERMILION), strict=True))


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


def steps(frame: Frame) -> Figure:
    """Draw one row of panels per machine: the time of each step of each method, and of the whole."""
    shown = measured(frame)
    if not shown:
        return style.empty(NO_TIMES)
    heights = style.per_machine(0.95 + _METHOD * len(METHODS), len(shown))
    result, places, below = style.stacked(heights, 0.25, " ".join(filter(None, map(_note, shown))))
    drawn: list[Axes] = []
    for place, view in zip(places, shown, strict=True):
        style.heading(place, view.name)
        drawn += _panels(place, view)
    style.legend_of(below, drawn, 5, fontsize=6.8)
    return result


def reuse(frame: Frame) -> Figure:
    """Draw, per machine, time with a lookup table / time with block metadata as published over how often the smallest
    mix is used, without download; crosses stand where the source says that the table has caught up."""
    shown = measured(frame)
    if not shown:
        return style.empty(NO_TIMES)
    result, (part,), below = style.stacked([1.75], 0.45)
    axes = part.subplots(1, len(shown), squeeze=False, sharey=True)[0]
    for axis, view in zip(axes, shown, strict=True):
        axis.axhline(1, color=BLACK, linewidth=0.7)
        for kernel in IMAGE_KERNELS:
            _reused(axis, view, kernel)
        axis.set(xscale="log", yscale="log", xlabel="Uses of one batch")
        axis.annotate(view.name, (0.97, 0.9), xycoords="axes fraction", ha="right", fontsize=8, fontweight="bold")
        style.plain_log(axis.xaxis, narrow=True)
        style.plain_log(axis.yaxis)
    axes[0].set_ylabel("Ratio of times")
    style.legend_of(below, list(axes), 3, fontsize=6.8)
    return result


def _reused(axis: Axes, view: View, kernel: str) -> None:
    case = next((key for key in cases(view) if key.workload == f"{next(iter(IMAGE_MIXES))}-{kernel}"), None)
    color = _KERNEL_COLORS[kernel]
    uses = view.frame.value(published("amortisation", kernel, "break_even"))
    axis.plot(uses, 1, "x", color=color, label=f"Published: caught up, {kernel}")
    owner = case and parts(view.frame, case, OWNERS[0])
    for table, dashes in _REUSED.items() if case else ():
        step = parts(view.frame, case, table)
        if owner and {"setup", "kernel"} <= {*step} and {"setup", "kernel"} <= {*owner}:
            first, second = (each["setup"] + each.get("upload", 0) for each in (step, owner))
            ratios = [(first + n * step["kernel"]) / (second + n * owner["kernel"]) for n in _USES]
            axis.plot(_USES, ratios, dashes, color=color, label=f"{STRATEGIES[table]}, {kernel}")


def _panels(part: Any, view: View) -> list[Axes]:
    keys = [key for key in cases(view) if key.workload in _PANELS] or cases(view)[:4]
    keys.sort(key=lambda key: list(WORKLOADS).index(key.workload) % len(IMAGE_MIXES))
    methods = _timed(view, keys)
    axes = part.subplots(1, len(keys), squeeze=False)[0]
    for place, (axis, key) in enumerate(zip(axes, keys, strict=True)):
        _steps(axis, view.frame, key, methods)
        bars.names(axis, [STRATEGIES[name] if place == 0 else "" for name in methods], fontsize=6.5)
        axis.set_title(_name(key.workload), fontsize=7.2, fontweight="normal")
    part.supxlabel("Time (ms)", fontsize=7.5)
    return list(axes)


def _name(workload: str) -> str:
    of = facts(STUDY, workload)
    return f"{IMAGE_MIXES[of.distribution]},\n{IMAGE_KERNELS[of.operation]}"


def _timed(view: View, keys: list[Key]) -> list[str]:
    known = [{name: parts(view.frame, key, name) for name in METHODS} for key in keys]
    return [name for name in METHODS if any({"kernel", "setup"} <= set(one[name]) for one in known)]


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
