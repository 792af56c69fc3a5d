"""Mean power against time per frame, with lines of equal energy: a faster method may pay for its speed in watts."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from octopus_study.report import power
from octopus_study.report.captions import scope_name
from octopus_study.report.figures import style
from octopus_study.report.labels import POWER_SCOPES, human
from octopus_study.report.numbers import Numbers
from octopus_study.report.power import Arm, footer

STUDY = power.STUDY
WITHOUT_RUN = True
_EQUAL = {"color": style.GREY, "linewidth": 0.5, "linestyle": ":", "zorder": 0}

__all__ = ["STUDY", "WITHOUT_RUN", "figure", "footer"]


def figure(numbers: Numbers) -> Figure:
    """Draw the published table, and one panel per machine that has energies; each panel has its own axes."""
    scopes = power.measured(numbers)
    result, parts, legend = style.stacked([2.9], 0.3, power.figure_note(numbers))
    axes = parts[0].subplots(1, 1 + len(scopes), squeeze=False)[0]
    published = {method: power.published_arms(numbers, method) for method in ("published", "n-launches")}
    idle = numbers.value("published.power.n0.idle.power") / 1000
    watts = {method: [(arm, arm.power.value / 1000) for arm in arms] for method, arms in published.items()}
    _panel(axes[0], watts, idle, hollow=True)
    axes[0].set_title(f"{power.JETSON}\n(module, VDD_IN)")
    for axis, scope in zip(axes[1:], scopes, strict=True):
        found = {method: power.arms(numbers, scope, method) for method in power.METHODS}
        watts = {method: [(arm, arm.power.value) for arm in arms] for method, arms in found.items() if arms}
        _panel(axis, watts, numbers.value(f"{scope}.{STUDY}.idle"))
        of = human(POWER_SCOPES, power.sensor_scope(numbers, scope))
        axis.set_title(f"{scope_name(numbers, scope)}\n({of})")
    axes[0].set_ylabel("Mean power (W)")
    style.legend_of(legend, list(axes[::-1]), 5)
    return result


def _panel(
    axis: Axes, methods: dict[str, list[tuple[Arm, float]]], idle: float, hollow: bool = False
) -> None:
    points = [(arm.time.value, watt) for arms in methods.values() for arm, watt in arms]
    axis.set(xscale="log", yscale="log", xlabel="Time per frame (ms)")
    times, watts = [time for time, _ in points], [watt for _, watt in points]
    margin = (max(times) / min(times)) ** 0.13  # on the left for the name of the first point
    axis.set_xlim(min(times) / margin, max(times) * 1.6)
    low, high = min([*watts, idle] if idle == idle else watts), max(watts)
    room = (high / low) ** 0.15
    axis.set_ylim(low / room, high * room)
    _same_count(axis, methods)
    for method, arms in methods.items():
        _line(axis, method, arms, hollow)
    if idle == idle:
        axis.axhline(idle, color=style.BLACK, linewidth=0.9, linestyle="--", label="Idle")
    _equal_energy(axis)
    style.plain_log(axis.xaxis)
    style.near_log(axis.yaxis)
    axis.grid(visible=False)


def _line(axis: Axes, method: str, arms: list[tuple[Arm, float]], hollow: bool) -> None:
    color = style.METHOD_COLORS[method]
    axis.errorbar(
        [arm.time.value for arm, _ in arms],
        [watt for _, watt in arms],
        xerr=np.transpose([np.ravel(style.errors([arm.time])) for arm, _ in arms]),
        yerr=np.transpose([np.ravel(style.errors([arm.power])) for arm, _ in arms]),
        label=power.method_name(method),
        color=color,
        marker=style.METHOD_MARKERS[method],
        markerfacecolor="white" if hollow else color,
        capsize=1.2,
        linewidth=1.0,
    )


def _same_count(axis: Axes, methods: dict[str, list[tuple[Arm, float]]]) -> None:
    """Join the methods' points of one number of boxes, and name three of the numbers at the fastest method."""
    by_count: dict[int, list[tuple[float, float]]] = {}
    for arms in methods.values():
        for arm, watt in arms:
            by_count.setdefault(arm.n, []).append((arm.time.value, watt))
    for n, points in by_count.items():
        points.sort()
        axis.plot(*zip(*points, strict=True), color=style.LIGHT, linewidth=0.8, zorder=1)
        if n in (min(by_count), 1000, max(by_count)):
            # The next point may lie close by on the right, or above where power still rises.
            options = {"ha": "right", "va": "bottom", "fontsize": 5.8}
            axis.annotate(f"n = {n}", points[0], (-3, 3), textcoords="offset points", **options)


def _equal_energy(axis: Axes) -> None:
    """Draw lines of equal energy at powers of ten; time in ms times power in W is energy in mJ."""
    (left, right), (low, high) = axis.get_xlim(), axis.get_ylim()
    first, last = math.ceil(math.log10(left * low)), math.floor(math.log10(right * high))
    for exponent in range(first, last + 1):
        energy = 10.0**exponent
        axis.plot([left, right], [energy / left, energy / right], **_EQUAL, scaley=False, scalex=False)
        text = f"{energy:g} mJ" if energy < 1000 else f"{energy / 1000:g} J"
        options = {"fontsize": 5.8, "color": style.GREY, "va": "bottom", "ha": "right"}
        if energy / low < right:
            axis.annotate(text, (energy / low, low), (-3, 2), textcoords="offset points", **options)
