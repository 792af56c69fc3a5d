"""The published values beside what was measured: stages, speed-ups, distance from the write bound,
bandwidth."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from octopus_study.report.captions import counts, kernel_layer, scope_name
from octopus_study.report.figures import style
from octopus_study.report.labels import PUBLISHED_MACHINES, QUANTITIES
from octopus_study.report.numbers import Number, Numbers

STUDY = "stage_timing"
JETSON_LABEL = "Jetson Orin Nano, published"
_N = 1000
_STAGES = (
    ("build_metadata", "published", QUANTITIES["build_metadata"]),
    ("upload_metadata", "published", QUANTITIES["upload_metadata"]),
    ("crop_resize", "published", QUANTITIES["crop_resize"]),
    ("normalize", "published", QUANTITIES["normalize"]),
    ("end_to_end", "published", "End to end, one launch"),
    ("end_to_end", "n-launches", "End to end, N launches"),
    ("end_to_end", "octopus", "End to end, Octopus"),
)
_HOLLOW = {"facecolor": "white"}
_HATCHED = {"facecolor": style.LIGHT, "hatch": "/////"}


class Look(NamedTuple):
    """How a machine is drawn."""

    scope: str
    label: str
    marker: str
    color: str


def figure(numbers: Numbers) -> Figure:
    """Draw four panels; hollow marks are published, filled ones measured, hatched ones the published kernels
    measured here."""
    looks = [
        Look(scope, scope_name(numbers, scope), marker, color)
        for scope, marker, color in zip(
            numbers.scopes(STUDY), style.MACHINE_MARKERS, style.MACHINE_COLORS, strict=False
        )
    ]
    result, axes = style.new_figure(4.5, 2, 2)
    _stages(axes[0, 0], numbers, looks)
    _speedups(axes[0, 1], numbers, looks)
    _bound(axes[1, 0], numbers, looks)
    _bandwidth(axes[1, 1], numbers, looks)
    style.bottom_legend([axes[0, 0], axes[0, 1]], 2)
    return result


def _stages(axis: Axes, numbers: Numbers, looks: list[Look]) -> None:
    rows = range(len(_STAGES))
    keys = [f"published.stage_timing.n{_N}.{method}.{quantity}" for quantity, method, _ in _STAGES]
    values = [numbers.value(key) * 1000 / _N for key in keys]
    axis.plot(values, rows, "P", color=style.BLACK, markerfacecolor="white", markersize=6, label=JETSON_LABEL)
    for index, look in enumerate(looks):
        keys = [_key(numbers, look.scope, quantity, method) for quantity, method, _ in _STAGES]
        values = [numbers.value(key) * 1000 / _N for key in keys]
        # A little below each other, so that machines of equal speed don't hide one another.
        beside = [row + 0.2 * (index - (len(looks) - 1) / 2) for row in rows]
        axis.plot(values, beside, look.marker, color=look.color, markersize=4, label=look.label)
    axis.set_yticks(rows, [name for *_, name in _STAGES])
    axis.invert_yaxis()
    axis.set(xscale="log", xlabel="Time per box (µs)")
    axis.set_title(f"Stages, {_N} boxes")


def _key(numbers: Numbers, scope: str, quantity: str, method: str) -> str:
    kernel = quantity in ("crop_resize", "normalize", "crop_resize_normalize")
    layer = kernel_layer(numbers, scope) if kernel else "host"
    return f"{scope}.{STUDY}.visdrone.n{_N}.{method}.{quantity}.{layer}"


def _speedups(axis: Axes, numbers: Numbers, looks: list[Look]) -> None:
    """Draw the speed-up over N launches: of one launch with the published kernels, and of Octopus
    (dashed)."""
    found = numbers.matching(r"published\.stage_timing\.n(\d+)\.published\.speedup_over_n-launches")
    points = sorted((int(match[1]), number.value) for match, number in found)
    axis.plot(*zip(*points, strict=True), "P-", color=style.BLACK, markerfacecolor="white", markersize=7)
    for look in looks:
        for method, dashes in (("published", "-"), ("octopus", "--")):
            key = f"{look.scope}.{STUDY}.visdrone.n{{}}.{method}.end_to_end.host.speedup_over_n-launches"
            line = [(n, value) for n in counts(numbers, look.scope) if (value := numbers.get(key.format(n)))]
            axis.plot(
                [n for n, _ in line],
                [number.value for _, number in line],
                look.marker + dashes,
                color=look.color,
            )
    axis.axhline(1, color=style.GREY, linewidth=0.8)
    axis.set(xscale="log", yscale="log", xlabel="Boxes (dashed: Octopus)")
    style.plain_log(axis.xaxis)
    style.plain_log(axis.yaxis)
    axis.set_title("Speed-up over N launches")


def _bound(axis: Axes, numbers: Numbers, looks: list[Look]) -> None:
    bars = list(_bound_bars(numbers, looks))
    for position, (_, times, share, look) in enumerate(bars):
        axis.barh(position, times.value, height=0.6, **look)
        _note(axis, times.value, position, f"{times.text}, {share}")
    axis.set_yticks(range(len(bars)), [name for name, *_ in bars], fontsize=5.8)
    axis.invert_yaxis()
    axis.set(xscale="log", xlabel="Kernel time / bound time, and share of the write bound")
    axis.set_xlim(1, max(times.value for _, times, *_ in bars) * 6)
    style.plain_log(axis.xaxis)
    axis.grid(axis="y", visible=False)
    axis.set_title(f"Distance from the write bound, {_N} boxes")


def _note(axis: Axes, value: float, position: int, text: str) -> None:
    """Write beside the end of a bar."""
    axis.annotate(text, (value, position), (3, 0), textcoords="offset points", va="center", fontsize=6)


def _bound_bars(numbers: Numbers, looks: list[Look]) -> Iterator[tuple[str, Number, str, dict[str, object]]]:
    """Yield label, time / bound time, share of the bound and look of each bar."""
    key = f"published.derived.jetson-orin-nano.n{_N}"
    share = numbers.text(f"{key}.share_of_write_bound")
    yield JETSON_LABEL, numbers[f"{key}.times_write_bound"], share, _HOLLOW | {"edgecolor": style.BLACK}
    for look in looks:
        layer = kernel_layer(numbers, look.scope)
        for method, name in (("published", "published kernels,\nmeasured here"), ("octopus", "Octopus")):
            key = f"{look.scope}.{STUDY}.visdrone.n{_N}.{method}.crop_resize_normalize.{layer}"
            filled = {"facecolor": look.color, "edgecolor": look.color}
            hatched = _HATCHED | {"edgecolor": look.color}
            if times := numbers.get(f"{key}.times_write-bound"):
                share = numbers.text(f"{key}.share_of_write-bound")
                yield f"{look.label}: {name}", times, share, hatched if method == "published" else filled


def _bandwidth(axis: Axes, numbers: Numbers, looks: list[Look]) -> None:
    bars = [
        (f"{name}, stated", numbers.value(f"published.machines.{key}.memory_bandwidth"), style.BLACK, False)
        for key, name in PUBLISHED_MACHINES.items()
    ]
    for look in looks:
        value = numbers.value(f"{look.scope}.{STUDY}.bandwidth.write")
        bars.append((f"{look.label}, write", value, look.color, True))
    bars = [bar for bar in bars if bar[1] == bar[1]]
    for position, (_, value, color, filled) in enumerate(bars):
        axis.barh(position, value, color=color if filled else "white", edgecolor=color, height=0.6)
        _note(axis, value, position, f"{value:.4g}")
    axis.set_yticks(range(len(bars)), [name for name, *_ in bars], fontsize=5.8)
    axis.invert_yaxis()
    axis.set(xscale="log", xlabel="Stated or measured (GB/s)")
    axis.set_xlim(1, max(value for _, value, *_ in bars) * 5)
    style.plain_log(axis.xaxis)
    axis.grid(axis="y", visible=False)
    axis.set_title("Bandwidth")
