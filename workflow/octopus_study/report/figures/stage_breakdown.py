"""Where the time of a box goes: stacked stages of one launch, and end to end beside N launches."""

from __future__ import annotations

from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from octopus_study.report.captions import counts, kernel_layer, scope_name
from octopus_study.report.figures import style
from octopus_study.report.labels import QUANTITIES, SHORT_METHODS
from octopus_study.report.numbers import Numbers
from octopus_study.report.text import quantity_text

STUDY = "stage_timing"
JETSON = "published"
_STAGES = {
    "octopus": ("build_metadata", "upload_metadata", "crop_resize_normalize"),
    "published": ("build_metadata", "upload_metadata", "crop_resize", "normalize"),
}
_SHOWN_COUNTS = (100, 500, 1000, 2000)  # the published ones


class Bar(NamedTuple):
    """One stacked bar: a count, a method, and the microseconds per box of each part."""

    n: int
    method: str
    parts: dict[str, float]


def figure(numbers: Numbers) -> Figure:
    """Draw one row per machine: the stages of one launch at the left, with N launches at the right."""
    sources = [JETSON, *numbers.scopes(STUDY)]
    result, axes = style.new_figure(0.7 + 1.75 * len(sources), len(sources), 2)
    for row, scope in enumerate(sources):
        name = "Jetson Orin Nano, as published" if scope == JETSON else scope_name(numbers, scope)
        shown = _SHOWN_COUNTS if scope == JETSON else _counts(numbers, scope)
        _draw(axes[row, 0], [bar for n in shown for bar in _stages(numbers, scope, n)], QUANTITIES)
        _draw(axes[row, 1], [bar for n in shown for bar in _whole(numbers, scope, n)], {})
        axes[row, 0].set_title(f"{name}: stages")
        axes[row, 1].set_title("End to end")
    for axis in axes[-1]:
        axis.set_xlabel("Time per box (µs; each panel has its own scale)")
    style.bottom_legend(list(axes[:, 0]), 3)
    return result


def _counts(numbers: Numbers, scope: str) -> list[int]:
    """Return the published counts that a run has; a quick run has none of them and shows its own."""
    measured = counts(numbers, scope)
    return [n for n in _SHOWN_COUNTS if n in measured] or measured[: len(_SHOWN_COUNTS)]


def _time(numbers: Numbers, scope: str, n: int, method: str, quantity: str) -> float:
    """Return microseconds per box, NaN where there is no number."""
    if scope == JETSON:
        return numbers.value(f"published.stage_timing.n{n}.{method}.{quantity}") * 1000 / n
    kernel = quantity in ("crop_resize", "normalize", "crop_resize_normalize")
    layer = kernel_layer(numbers, scope) if kernel else "host"
    return numbers.value(f"{scope}.{STUDY}.visdrone.n{n}.{method}.{quantity}.{layer}") * 1000 / n


def _stages(numbers: Numbers, scope: str, n: int) -> list[Bar]:
    """Return the stages; what end to end takes beyond them is submission, synchronisation and gaps."""
    bars = []
    for method, stages in _STAGES.items():
        times = {stage: _time(numbers, scope, n, method, stage) for stage in stages}
        parts = {stage: time for stage, time in times.items() if time == time}
        rest = _time(numbers, scope, n, method, "end_to_end") - sum(parts.values())
        if parts:
            bars.append(Bar(n, method, parts | ({"rest": rest} if rest > 0 else {})))
    return bars


def _whole(numbers: Numbers, scope: str, n: int) -> list[Bar]:
    times = {
        method: _time(numbers, scope, n, method, "end_to_end")
        for method in ("octopus", "published", "n-launches")
    }
    return [Bar(n, method, {method: time}) for method, time in times.items() if time == time]


def _draw(axis: Axes, bars: list[Bar], names: dict[str, str]) -> None:
    colors = style.STAGE_COLORS | style.METHOD_COLORS
    labels = names | {"rest": "Submission, synchronisation, gaps"}
    position, ticks, previous = 0.0, [], None
    for bar in bars:
        position += 0.45 if previous not in (None, bar.n) else 0.0
        start = 0.0
        for part, time in bar.parts.items():
            axis.barh(position, time, left=start, height=0.85, color=colors[part], label=labels.get(part))
            start += time
        text = quantity_text(start, "us")
        axis.annotate(text, (start, position), (3, 0), textcoords="offset points", va="center", fontsize=5.8)
        prefix = f"n = {bar.n}   " if previous != bar.n else ""
        ticks.append((position, f"{prefix}{SHORT_METHODS[bar.method]}"))
        position, previous = position + 1, bar.n
    axis.set_yticks([where for where, _ in ticks], [label for _, label in ticks], fontsize=5.8)
    axis.invert_yaxis()
    axis.margins(x=0.14)
    axis.grid(axis="y", visible=False)
    axis.tick_params(axis="y", length=0)
