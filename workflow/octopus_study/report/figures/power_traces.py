"""What the sensor gave: the power-on test, and one round of windows, with what was counted shaded."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from octopus_study.report import power
from octopus_study.report.captions import scope_name
from octopus_study.report.figures import style
from octopus_study.report.labels import POWER_PHASES, POWER_SCOPES, human
from octopus_study.report.numbers import Number, Numbers
from octopus_study.report.power import footer

STUDY = power.STUDY
WITHOUT_RUN = True
_PHASE_COLORS = {"idle": style.GREY, "load": style.GREEN}
_SHADE = 0.22
_ROOM = 1.28  # above the highest power, for the names of the methods
# A gap of more seconds than this between two updates is no line: the trace is of another round there.
_GAP = 5.0

__all__ = ["STUDY", "WITHOUT_RUN", "figure", "footer"]


def figure(numbers: Numbers) -> Figure:
    """Draw one row per machine that has energies: the power-on test at the left, one round of windows at the right."""
    scopes = power.measured(numbers)
    if not scopes:
        return style.words(style.new_figure(1.2)[0], power.note(numbers))
    result, parts, legend = style.stacked([2.4] * len(scopes), 0.25)
    for part, scope in zip(parts, scopes, strict=True):
        test, windows = part.subplots(1, 2, sharey=True, width_ratios=(1, 1.5))
        _test(test, numbers, scope)
        _round(windows, numbers, scope)
        test.set_ylabel(f"Power (W), {human(POWER_SCOPES, power.sensor_scope(numbers, scope))}")
        test.set_ylim(
            0, _ROOM * max((number.value for _, number in _all_points(numbers, scope)), default=1.0)
        )
    legend.legend(handles=_handles(), loc="center", ncols=6, fontsize=7)
    return result


def _handles() -> list[Patch | Line2D]:
    phases = [
        Patch(color=color, alpha=_SHADE, label=POWER_PHASES[name]) for name, color in _PHASE_COLORS.items()
    ]
    methods = [
        Patch(color=style.METHOD_COLORS[method], alpha=_SHADE, label=power.method_name(method))
        for method in power.METHODS
    ]
    idle = Line2D([], [], color=style.BLACK, linewidth=0.9, linestyle="--", label="Idle power")
    return [*phases, *methods, idle]


def _test(axis: Axes, numbers: Numbers, scope: str) -> None:
    """Draw the power-on test with its four judged phases and their means; what lies between them is left to settle."""
    points = _points(numbers, scope, "selftest")
    zero = points[0][0] if points else 0.0
    _trace(axis, points, zero)
    found = numbers.matching(rf"{scope}\.{STUDY}\.selftest\.phase(\d+)\.(\w+)\.start")
    for match, start in found:
        prefix = start.id.removesuffix(".start")
        ends = [start.value - zero, numbers.value(f"{prefix}.end") - zero]
        axis.axvspan(*ends, color=_PHASE_COLORS.get(match[2], style.GREY), alpha=_SHADE, linewidth=0)
        mean = numbers.get(f"{prefix}.mean")
        if mean:
            axis.plot(ends, [mean.value] * 2, color=style.BLACK, linewidth=1.2)
            place = (sum(ends) / 2, mean.value)
            axis.annotate(mean.text, place, (0, 3), textcoords="offset points", ha="center", fontsize=6)
    axis.set(xlabel="Time (s)")
    style.title(axis, f"{scope_name(numbers, scope)}: power-on test", 38)


def _round(axis: Axes, numbers: Numbers, scope: str) -> None:
    """Draw one round of windows; what lies between them is settling and the tail, which nobody counts."""
    points = _points(numbers, scope, "round")
    zero = points[0][0] if points else 0.0
    _trace(axis, points, zero)
    found = numbers.matching(rf"{scope}\.{STUDY}\.trace\.window\.n(\d+)\.([\w-]+)\.start")
    for match, start in found:
        end = numbers.value(start.id.removesuffix(".start") + ".end") - zero
        color = style.METHOD_COLORS.get(match[2].removesuffix("-again"), style.GREY)
        axis.axvspan(start.value - zero, end, color=color, alpha=_SHADE, linewidth=0)
        inside = [number.value for at, number in points if start.value <= at <= end + zero]
        _mean(axis, numbers, scope, match, ((start.value - zero + end) / 2, max(inside, default=0.0)))
    n = found[0][0][1] if found else ""
    idle = numbers.get(power.key(numbers, scope, int(n or 0), "idle", "power_mean", "idle"))
    if idle:
        axis.axhline(idle.value, color=style.BLACK, linewidth=0.9, linestyle="--")
    axis.set(xlabel="Time (s)")
    axis.set_title(f"One round of windows, n = {n}")


def _mean(axis: Axes, numbers: Numbers, scope: str, match: object, place: tuple[float, float]) -> None:
    """Name the method and its mean power, over all its windows, above what was read in its window."""
    mean = numbers.get(power.key(numbers, scope, int(match[1]), match[2], "power_mean"))
    if mean is None:
        return
    name = power.method_name(match[2].removesuffix("-again")) + (
        " (again)" if match[2].endswith("-again") else ""
    )
    options = {"ha": "center", "va": "bottom", "fontsize": 5.8}
    axis.annotate(f"{name}\n{mean.text}", place, (0, 3), textcoords="offset points", **options)


def _points(numbers: Numbers, scope: str, part: str) -> list[tuple[float, Number]]:
    found = numbers.matching(rf"{scope}\.{STUDY}\.trace\.{part}\.[\w-]+\.t(\d+)")
    return sorted(((int(match[1]) / 1000, number) for match, number in found), key=lambda point: point[0])


def _all_points(numbers: Numbers, scope: str) -> list[tuple[float, Number]]:
    return [*_points(numbers, scope, "selftest"), *_points(numbers, scope, "round")]


def _trace(axis: Axes, points: list[tuple[float, Number]], zero: float) -> None:
    times, values = [], []
    for at, number in points:
        if times and at - zero - times[-1] > _GAP:
            times.append(at - zero)
            values.append(float("nan"))
        times.append(at - zero)
        values.append(number.value)
    axis.plot(times, values, color=style.BLACK, linewidth=0.7)
