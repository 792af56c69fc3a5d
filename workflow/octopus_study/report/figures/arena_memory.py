"""Four lines of memory, method by method."""

from __future__ import annotations

import textwrap

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from octopus_study.report import arena
from octopus_study.report.captions import scope_name
from octopus_study.report.derive.arena import by_reason
from octopus_study.report.figures import style
from octopus_study.report.figures.arena_bars import NO_RUN
from octopus_study.report.labels import ARENA_METHODS, QUANTITIES, human
from octopus_study.report.numbers import Number, Numbers

STUDY = "arena"
NO_MEMORY = "No run of the arena that is shown measured memory."
_METHOD = 0.25  # inches for the four bars of a method

__all__ = ["NO_RUN", "STUDY", "figure"]
Lines = dict[str, dict[str, Number]]


def figure(numbers: Numbers) -> Figure:
    """Draw one panel per machine, four bars per method."""
    panels = {scope: _known(arena.memory_lines(numbers, scope)) for scope in numbers.scopes(STUDY)}
    panels = {scope: lines for scope, lines in panels.items() if lines}
    if not panels:
        return style.words(style.new_figure(1.2)[0], NO_MEMORY)
    note = " ".join(filter(None, (_note(numbers, scope, panels[scope]) for scope in panels)))
    columns = min(2, len(panels))
    tallest = [
        max(len(lines) for lines in list(panels.values())[start : start + columns])
        for start in range(0, len(panels), columns)
    ]
    heights = [0.75 + _METHOD * most for most in tallest]
    result, parts, legend = style.stacked([sum(heights)], 0.25, note)
    axes = parts[0].subplots(len(heights), columns, squeeze=False, height_ratios=heights)
    for index, (axis, (scope, lines)) in enumerate(zip(axes.flat, panels.items(), strict=False)):
        _panel(axis, lines, tallest[index // columns])
        count = next(iter(lines.values()))["memory_payload"].id.split(".")[3].removeprefix("n")
        axis.set_title(f"{textwrap.fill(scope_name(numbers, scope), 34)}\nVisDrone, n = {count}")
    for axis in axes.flat[len(panels) :]:
        axis.set_visible(False)
    style.legend_of(legend, [axes.flat[0]], 4)
    return result


def _known(found: Lines) -> Lines:
    """Leave out the methods that have no line at all."""
    return {
        method: lines
        for method, lines in found.items()
        if any(number.value == number.value for number in lines.values())
    }


def _note(numbers: Numbers, scope: str, shown: Lines) -> str:
    missing = [
        (method, lines["memory_payload"].note)
        for method, lines in arena.memory_lines(numbers, scope).items()
        if method not in shown
    ]
    return f"Unavailable on {scope_name(numbers, scope)}. {by_reason(missing)}." if missing else ""


def _panel(axis: Axes, lines: Lines, room: int) -> None:
    """Draw the bars; a line that nobody can tell has none."""
    height = 0.8 / len(arena.MEMORY_LINES)
    for index, line in enumerate(arena.MEMORY_LINES):
        values = [found[line].value if line in found else float("nan") for found in lines.values()]
        places = [position + height * (index - 1.5) for position in range(len(lines))]
        axis.barh(
            places,
            [value / 2**20 for value in values],
            height=height,
            color=style.MEMORY_COLORS[line],
            label=human(QUANTITIES, line),
        )
    axis.set_yticks(range(len(lines)), [human(ARENA_METHODS, name) for name in lines], fontsize=6.5)
    axis.set_ylim(room - 0.4, -0.6)
    axis.set(xlabel="MiB")
    axis.grid(axis="y", visible=False)
    axis.tick_params(axis="y", length=0)
