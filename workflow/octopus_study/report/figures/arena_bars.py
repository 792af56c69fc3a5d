"""What the bar charts of the arena share: one bar per method on a logarithmic axis, hatched where the answer is
another one, and a note on the methods that have none."""

from __future__ import annotations

import textwrap
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from octopus_study.report import arena
from octopus_study.report.arena import Field
from octopus_study.report.captions import scope_name
from octopus_study.report.figures import style
from octopus_study.report.labels import ARENA_METHODS, human
from octopus_study.report.numbers import Number, Numbers
from octopus_study.report.text import quantity_text

NO_RUN = "No run of the study arena is at hand: older results lack it."
HATCH = "/////"
BAR = 0.2  # inches, with the gap to the next


class Group(NamedTuple):
    """The panels of one machine."""

    name: str
    fields: list[Field]
    titles: list[str]


def draw_groups(numbers: Numbers, groups: list[Group], xlabel: str) -> Figure:
    """Draw one row of panels per machine, each with a note on the methods without a time."""
    bars = [max(len(arena.measured(numbers, field)) for field in group.fields) for group in groups]
    notes = [_note(numbers, group) for group in groups]
    lines = [style.NOTE_LINE * (note.count("\n") + 1) for note in notes]
    heights = [0.75 + BAR * count + line for count, line in zip(bars, lines, strict=True)]
    result, parts, legend = style.stacked(heights, 0.25)
    for part, group, count, note in zip(parts, groups, bars, notes, strict=True):
        axes = part.subplots(1, len(group.fields), squeeze=False)[0]
        for axis, field, title in zip(axes, group.fields, group.titles, strict=True):
            _panel(axis, numbers, field, count)
            axis.set(xlabel=xlabel)
            axis.set_title(title, fontsize=8, fontweight="normal")
        part.suptitle(group.name, fontsize=8.5, fontweight="bold", x=0.005, ha="left")
        part.supxlabel(note, fontsize=6.5, color=style.GREY, x=0.005, ha="left")
    handles = [
        Patch(facecolor=style.GREY, edgecolor=style.GREY, label="Same answer as the reference"),
        Patch(facecolor="white", edgecolor=style.GREY, hatch=HATCH, label="Different answer"),
    ]
    legend.legend(handles=handles, loc="center", ncols=2)
    return result


def _note(numbers: Numbers, group: Group) -> str:
    """Name the methods that some panel lacks, with the reason; nothing is left out silently."""
    found = []
    for title, field in zip(group.titles, group.fields, strict=True):
        if missing := arena.without_time(numbers, [field]):
            found.append((title, missing))
    if len({missing for _, missing in found}) == 1 and len(found) == len(group.fields):
        found = [("", found[0][1])]
    lines = [f"No time{f', {title}' if title else ''}. {missing}." for title, missing in found]
    return "\n".join(textwrap.fill(line, style.NOTE_WIDTH) for line in lines) or " "


def _panel(axis: Axes, numbers: Numbers, field: Field, room: int) -> None:
    """Draw the bars of one comparison in the order of the arena, with values beside them; there is room for as many
    as the panel beside it has."""
    found = arena.measured(numbers, field)
    values = [number.value for number in found.values()]
    left = min(values) / 2
    for position, (method, number) in enumerate(found.items()):
        _bar(axis, position, left, method, number)
    axis.set_yticks(range(len(found)), [human(ARENA_METHODS, name) for name in found], fontsize=6.5)
    axis.set(xscale="log")
    axis.set_xlim(left, max(values) * (max(values) / left) ** 0.35)
    axis.set_ylim(room - 0.4, -0.6)
    style.plain_log(axis.xaxis, narrow=True)
    axis.grid(axis="y", visible=False)
    axis.tick_params(axis="y", length=0)


def _bar(axis: Axes, position: int, left: float, method: str, number: Number) -> None:
    color = style.METHOD_COLORS.get(method, style.GREY)
    different = arena.differs(number)
    axis.barh(
        position,
        number.value - left,
        left=left,
        height=0.68,
        facecolor="white" if different else color,
        edgecolor=color,
        hatch=HATCH if different else None,
        linewidth=0.8,
        xerr=style.errors([number]),
        error_kw={"ecolor": style.BLACK, "elinewidth": 0.9, "capsize": 1.5},
    )
    text = quantity_text(number.value, number.unit)
    end = number.high if number.high == number.high else number.value
    axis.annotate(text, (end, position), (4, 0), textcoords="offset points", va="center", fontsize=6)


def group_of(
    numbers: Numbers, scope: str, wanted: list[tuple[str, str]], titles: dict[tuple[str, str], str]
) -> Group | None:
    """Return the panels of a machine for (workload, layer) pairs, as far as they were measured."""
    found = {pair: arena.shown_field(numbers, scope, *pair) for pair in wanted}
    fields = {pair: field for pair, field in found.items() if field}
    if not fields:
        return None
    count = next(iter(fields.values())).n
    name = f"{scope_name(numbers, scope)}: n = {count}"
    return Group(name, list(fields.values()), [titles[pair] for pair in fields])
