"""Where the time of one batch goes, method by method: setup, upload, kernel and download, one after the other."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from octopus_study.report import total_cost
from octopus_study.report.captions import scope_name
from octopus_study.report.figures import style
from octopus_study.report.labels import COST_PARTS, IMAGE_KERNELS, IMAGE_MIXES, STRATEGIES
from octopus_study.report.numbers import Numbers
from octopus_study.report.text import quantity_text
from octopus_study.report.total_cost import NO_RUN, STUDY

__all__ = ["NO_RUN", "STUDY", "figure"]
# The smallest and the largest mix, with both kernels; the table has all.
_PANELS = tuple((mix, kernel) for mix in ("flickr-500", "flickr-1000-8k") for kernel in IMAGE_KERNELS)
_METHOD = 0.2  # inches


def figure(numbers: Numbers) -> Figure:
    """Draw one row of panels per machine, on a logarithmic axis: an edge is the time that has passed until then."""
    scopes = total_cost.measured(numbers)
    if not scopes:
        return style.words(style.new_figure(1.2)[0], total_cost.NO_TIMES)
    notes = [_note(numbers, scope) for scope in scopes]
    height = 0.95 + _METHOD * len(total_cost.METHODS)
    result, parts, legend = style.stacked([height] * len(scopes), 0.25, " ".join(filter(None, notes)))
    shown = []
    for part, scope in zip(parts, scopes, strict=True):
        found = total_cost.workloads(numbers, scope)
        panels = [pair for pair in _PANELS if pair in found] or list(found)[:4]
        methods = [
            name for name in total_cost.METHODS if any(_timed(numbers, found[pair], name) for pair in panels)
        ]
        axes = part.subplots(1, len(panels), squeeze=False)[0]
        part.suptitle(scope_name(numbers, scope), fontsize=8.5, fontweight="bold", x=0.005, ha="left")
        for place, (axis, pair) in enumerate(zip(axes, panels, strict=True)):
            _panel(axis, numbers, found[pair], methods)
            names = [STRATEGIES[name] for name in methods] if place == 0 else []
            axis.set_yticks(range(len(methods)))
            axis.set_yticklabels(names, fontsize=6.5)
            title = f"{IMAGE_MIXES[pair[0]]},\n{IMAGE_KERNELS[pair[1]]}"
            axis.set_title(title, fontsize=7.2, fontweight="normal")
        part.supxlabel("Time passed (ms)", fontsize=7.5)
        shown += list(axes)
    style.legend_of(legend, shown, 4)
    return result


def _timed(numbers: Numbers, start: str, method: str) -> bool:
    return total_cost.cost(numbers, start, method) is not None


def _panel(axis: Axes, numbers: Numbers, start: str, methods: list[str]) -> None:
    parts = {name: total_cost.parts(numbers, start, name) for name in methods}
    first = [min(steps.values()) for steps in parts.values() if steps]
    left, last = min(first) / 2, max(sum(steps.values()) for steps in parts.values())
    for position, (method, steps) in enumerate(parts.items()):
        passed = left
        for step, time in steps.items():
            end = (0.0 if passed == left else passed) + time
            color = style.COST_COLORS[step]
            axis.barh(position, end - passed, left=passed, height=0.72, color=color, label=COST_PARTS[step])
            passed = end
        total = numbers.value(f"{start}.{method}.total.host")
        if total == total:
            options = {"va": "center", "fontsize": 5.6, "textcoords": "offset points"}
            axis.annotate(quantity_text(total, "ms"), (max(passed, left), position), (2, 0), **options)
    axis.set(xscale="log")
    axis.set_xlim(left, last * (last / left) ** 0.42)
    axis.set_ylim(len(methods) - 0.4, -0.6)
    style.plain_log(axis.xaxis, narrow=True)
    decades = [10.0**power for power in range(-4, 6, 2) if left <= 10.0**power <= last]
    axis.set_xticks(decades, [f"{value:g}" for value in decades], fontsize=6.5)
    axis.grid(axis="y", visible=False)
    axis.tick_params(axis="y", length=0)


def _note(numbers: Numbers, scope: str) -> str:
    """Name the methods that a machine lacks."""
    starts = total_cost.workloads(numbers, scope).values()
    missing = [
        STRATEGIES[name]
        for name in total_cost.METHODS
        if not any(_timed(numbers, start, name) for start in starts)
    ]
    return f"Not on {scope_name(numbers, scope)}: {'; '.join(missing)}." if missing else ""
