"""Power, drawn: what the sensor gave, energy per frame, and power against time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from octopus_study.names import AGAIN, POWER_PHASES
from octopus_study.report.charts import lines, style
from octopus_study.report.charts.palette import (
    BLACK,
    GREEN,
    GREY,
    LIGHT,
    METHOD_COLORS,
    METHOD_MARKERS,
)
from octopus_study.report.frame import Frame
from octopus_study.report.series import Series
from octopus_study.report.studies import power_view as power
from octopus_study.report.text import quantity_text
from octopus_study.report.view import View

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PUBLISHED = ("published", "n-launches")
_MODULE = f"{power.JETSON}\n(module, VDD_IN)"
_SHADE = 0.22
_PHASE_COLORS = {"idle": GREY, "load": GREEN}
_IDLE = {"color": BLACK, "linewidth": 0.9, "linestyle": "--"}
# A gap of more seconds than this between two updates is no line: the trace is of another round there.
_GAP = 5.0


def draw_traces(frame: Frame) -> Figure:
    """Draw one row per machine that has energies: the power-on test at the left, one round of windows at the right."""
    shown = power.measured(frame)
    if not shown:
        return style.empty(power.note(frame))
    result, parts, legend = style.stacked([2.4] * len(shown), 0.25)
    for part, view in zip(parts, shown, strict=True):
        test, windows = part.subplots(1, 2, sharey=True, width_ratios=(1, 1.5))
        highest = max([*_test(test, view), *_round(windows, view)], default=1.0)
        test.set_ylabel(f"Power (W), {power.of_name(view)}")
        test.set_ylim(0, 1.28 * highest)  # room for the names of the methods
    legend.legend(handles=_handles(), loc="center", ncols=6, fontsize=7)
    return result


def _handles() -> list[Any]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    colors = {POWER_PHASES[name]: color for name, color in _PHASE_COLORS.items()}
    colors |= {power.method_name(method): METHOD_COLORS[method] for method in power.METHODS}
    patches = [Patch(color=color, alpha=_SHADE, label=name) for name, color in colors.items()]
    return [*patches, Line2D([], [], **_IDLE, label="Idle power")]


def _test(axis: Axes, view: View) -> list[float]:
    """Draw the power-on test with its judged phases and their means; what lies between them is left to settle. Return
    the powers."""
    zero, watts = _trace(axis, view.series("selftest"))
    phases = view.series("phases")
    for name, start, end, mean in phases.rows() if phases else ():
        ends = [start - zero, end - zero]
        axis.axvspan(*ends, color=_PHASE_COLORS.get(name, GREY), alpha=_SHADE, linewidth=0)
        if mean == mean:
            axis.plot(ends, [mean] * 2, color=BLACK, linewidth=1.2)
            _above(axis, sum(ends) / 2, mean, quantity_text(mean, "W"), fontsize=6, va="baseline")
    axis.set(xlabel="Time (s)")
    axis.set_title(f"{view.name}:\npower-on test")
    return watts


def _round(axis: Axes, view: View) -> list[float]:
    """Draw one round of windows, each with the mean over all windows of its method; what lies between them is settling
    and the tail, which nobody counts. Return the powers."""
    trace, windows = view.series("round"), view.series("windows")
    zero, watts = _trace(axis, trace)
    n = 0
    for number, method, start, end in windows.rows() if windows else ():
        n, name = int(number), method.removesuffix(AGAIN)
        axis.axvspan(start - zero, end - zero, color=METHOD_COLORS.get(name, GREY), alpha=_SHADE, linewidth=0)
        inside = [watt for at, watt in trace.rows() if start <= at <= end]
        mean = view.get(power.key(view, n, method, "power_mean"))
        if mean:
            again = " (again)" if method.endswith(AGAIN) else ""
            text = f"{power.method_name(name)}{again}\n{mean.text}"
            middle = (start - zero + (end - zero)) / 2
            _above(axis, middle, max(inside, default=0.0), text, fontsize=6, va="bottom")
    idle = view.get(power.key(view, n, "idle", "power_mean", "idle"))
    if idle:
        axis.axhline(idle.value, **_IDLE)
    axis.set(xlabel="Time (s)")
    axis.set_title(f"One round of windows, n = {n or ''}")
    return watts


def _above(axis: Axes, x: float, y: float, text: str, **look: Any) -> None:
    axis.annotate(text, (x, y), (0, 3), textcoords="offset points", ha="center", **look)


def _trace(axis: Axes, series: Series | None) -> tuple[float, list[float]]:
    """Draw power over time from the first point on; return when that was, and the powers."""
    seconds, watts = (series["seconds"], series["watts"]) if series else ([], [])
    zero = seconds[0] if seconds else 0.0
    times, values = [], []
    for at, watt in zip(seconds, watts, strict=True):
        if times and at - zero - times[-1] > _GAP:
            times.append(at - zero)
            values.append(math.nan)
        times.append(at - zero)
        values.append(watt)
    axis.plot(times, values, color=BLACK, linewidth=0.7)
    return zero, watts


def draw_energy(frame: Frame) -> Figure:
    """Draw energy per frame over the number of boxes: the published table, and one panel per machine that has
    energies; the others are named below."""
    shown = power.measured(frame)
    result, parts, legend = style.stacked([2.6], 0.3, power.figure_note(frame))
    axes = parts[0].subplots(1, 1 + len(shown), squeeze=False, sharey=True)[0]
    for method in _PUBLISHED:
        _energies(axes[0], power.published_points(frame, method), method, markerfacecolor="white")
    _finish_energy(axes[0], power.published_counts(frame), _MODULE)
    for axis, view in zip(axes[1:], shown, strict=True):
        for method in power.METHODS:
            _energies(axis, power.points(view, method), method)
            net = {"linestyle": ":", "marker": "", "capsize": 0, "label": "_net"}
            _energies(axis, power.points(view, method, "energy_per_frame_net"), method, **net)
        _finish_energy(axis, power.counts(view), f"{view.name}\n({power.of_name(view)})")
    axes[0].set_ylabel("Energy per frame (mJ)")
    style.plain_log(axes[0].yaxis)
    options = {"title": "Dotted: net of idle", "title_fontsize": 7} if shown else {}
    style.legend_of(legend, list(axes[::-1]), 3, **options)
    return result


def _energies(axis: Axes, points: list[power.Point], method: str, **look: Any) -> None:
    shared = {"label": power.method_name(method), "color": METHOD_COLORS[method]}
    shared |= {"marker": METHOD_MARKERS[method], "capsize": 1.5}
    lines.line(axis, [(point.n, point.energy) for point in points], **(shared | look))


def _finish_energy(axis: Axes, shown: list[int], title: str) -> None:
    axis.set_xlim(shown[0] / 1.25, shown[-1] * 1.25)
    axis.set_xlabel("Boxes per frame")
    lines.counts(axis, shown, fontsize=6.5, rotation=45)
    axis.set_title(title)


Watts = Mapping[str, Sequence[tuple[power.Point, float]]]


def draw_pareto(frame: Frame) -> Figure:
    """Draw mean power against time per frame, with lines of equal energy: a faster method may pay for its speed in
    watts. The published table, and one panel per machine; each panel has its own axes."""
    shown = power.measured(frame)
    result, parts, legend = style.stacked([2.9], 0.3, power.figure_note(frame))
    axes = parts[0].subplots(1, 1 + len(shown), squeeze=False)[0]
    watts = {
        method: [(point, point.power.value / 1000) for point in power.published_points(frame, method)]
        for method in _PUBLISHED
    }
    idle = frame.value("published.power.n0.idle.power") / 1000
    _pareto(axes[0], watts, idle, _MODULE, markerfacecolor="white")
    for axis, view in zip(axes[1:], shown, strict=True):
        points = {method: power.points(view, method) for method in power.METHODS}
        watts = {m: [(point, point.power.value) for point in of_m] for m, of_m in points.items() if of_m}
        idle = view.frame.value(view.key(quantity="idle"))
        _pareto(axis, watts, idle, f"{view.name}\n({power.of_name(view)})")
    axes[0].set_ylabel("Mean power (W)")
    style.legend_of(legend, list(axes[::-1]), 5)
    return result


def _pareto(axis: Axes, methods: Watts, idle: float, title: str, **look: Any) -> None:
    times = [point.time.value for points in methods.values() for point, _ in points]
    watts = [watt for points in methods.values() for _, watt in points]
    axis.set(xscale="log", yscale="log", xlabel="Time per frame (ms)")
    margin = (max(times) / min(times)) ** 0.13  # on the left for the name of the first point
    axis.set_xlim(min(times) / margin, max(times) * 1.6)
    low, high = min([*watts, idle] if idle == idle else watts), max(watts)
    room = (high / low) ** 0.15
    axis.set_ylim(low / room, high * room)
    _same_count(axis, methods)
    for method, points in methods.items():
        _watts(axis, method, points, **look)
    if idle == idle:
        axis.axhline(idle, **_IDLE, label="Idle")
    _equal_energy(axis)
    style.plain_log(axis.xaxis)
    style.near_log(axis.yaxis)
    axis.grid(visible=False)
    axis.set_title(title)


def _watts(axis: Axes, method: str, points: Sequence[tuple[power.Point, float]], **look: Any) -> None:
    axis.errorbar(
        [point.time.value for point, _ in points],
        [watt for _, watt in points],
        xerr=style.errors([point.time for point, _ in points]),
        yerr=style.errors([point.power for point, _ in points]),
        label=power.method_name(method),
        color=METHOD_COLORS[method],
        marker=METHOD_MARKERS[method],
        capsize=1.2,
        linewidth=1.0,
        **look,
    )


def _same_count(axis: Axes, methods: Watts) -> None:
    """Join the methods' points of one number of boxes, and name three of the numbers at the fastest method."""
    by_count: dict[int, list[tuple[float, float]]] = {}
    for points in methods.values():
        for point, watt in points:
            by_count.setdefault(point.n, []).append((point.time.value, watt))
    for n, places in by_count.items():
        places.sort()
        axis.plot(*zip(*places, strict=True), color=LIGHT, linewidth=0.8, zorder=1)
        if n in (min(by_count), 1000, max(by_count)):
            # The next point may lie close by on the right, or above where power still rises.
            options = {"ha": "right", "va": "bottom", "fontsize": 6}
            axis.annotate(f"n = {n}", places[0], (-3, 3), textcoords="offset points", **options)


def _equal_energy(axis: Axes) -> None:
    """Draw lines of equal energy at powers of ten; time in ms times power in W is energy in mJ."""
    (left, right), (low, high) = axis.get_xlim(), axis.get_ylim()
    look = {"color": GREY, "linewidth": 0.5, "linestyle": ":", "zorder": 0, "scalex": False, "scaley": False}
    first, last = math.ceil(math.log10(left * low)), math.floor(math.log10(right * high))
    for energy in (10.0**exponent for exponent in range(first, last + 1)):
        axis.plot([left, right], [energy / left, energy / right], **look)
        text = f"{energy:g} mJ" if energy < 1000 else f"{energy / 1000:g} J"
        options = {"fontsize": 6, "color": GREY, "va": "bottom", "ha": "right"}
        if energy / low < right:
            axis.annotate(text, (energy / low, low), (-3, 2), textcoords="offset points", **options)
