"""The energy ratios taken apart, drawn: the ratio of the energies is that of the times times that of the powers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from octopus_study.report.charts import bars, style
from octopus_study.report.charts.palette import BLACK, ORANGE, SKY
from octopus_study.report.frame import Frame, Number
from octopus_study.report.studies import power_view as power
from octopus_study.report.view import View

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PART_NAMES = {"time": "Time", "power": "Power", "energy": "Energy = time \u00d7 power"}
_PART_COLORS = {"time": SKY, "power": ORANGE, "energy": BLACK}
# Counts whose ratios are drawn, as far as a machine has them.
_COUNTS = (100, 1000, 5000)
_BAR = 0.27
_ROOM = 1.6  # of the longest bar, for its value
# (table, its heading) of the published ratios.
_TABLES = {
    "power_voltage_misread": "First table: a voltage read as power",
    power.STUDY: "Third table: voltage \u00d7 current",
}


class Comparison(NamedTuple):
    """The three ratios of one comparison at one number of boxes."""

    group: str
    n: int
    parts: list[Number]


def draw_decomposition(frame: Frame) -> Figure:
    """Draw the energy ratios taken apart, that of the energies being time times power: both published tables, and one
    panel per machine that has energies."""
    panels = {f"{power.JETSON}: one launch over N launches": _published_ratios(frame)}
    panels |= {f"{view.name} ({power.of_name(view)})": _ratios(view) for view in power.measured(frame)}
    panels = {title: rows for title, rows in panels.items() if rows}
    height = max(0.5 + 0.42 * (len(rows) + len({row.group for row in rows})) for rows in panels.values())
    result, parts, legend = style.stacked([height], 0.25, power.figure_note(frame))
    axes = parts[0].subplots(1, len(panels), squeeze=False)[0]
    for axis, (title, rows) in zip(axes, panels.items(), strict=True):
        _decomposition(axis, rows)
        style.title(axis, title, 92 // len(panels))
    style.legend_of(legend, list(axes), 3)
    return result


def _published_ratios(frame: Frame) -> list[Comparison]:
    return [
        Comparison(title, n, [frame[power.published_ratio(table, n, part)] for part in power.PARTS])
        for table, title in _TABLES.items()
        for n in _some(power.published_counts(frame, table))
    ]


def _ratios(view: View) -> list[Comparison]:
    rows = [
        Comparison(name, n, [view.get(power.ratio_key(view, n, pair, part)) for part in power.PARTS])
        for pair, name in power.PAIRS.items()
        for n in _some(power.counts(view))
    ]
    return [row for row in rows if all(row.parts)]


def _some(known: list[int]) -> list[int]:
    return [n for n in _COUNTS if n in known] or known[: len(_COUNTS)]


def _decomposition(axis: Axes, rows: list[Comparison]) -> None:
    logs = [math.log(number.value) for row in rows for number in row.parts]
    reach = max(map(abs, logs))
    position, ticks, group = 0.0, {}, ""
    for row in rows:
        if row.group != group:
            # The text starts at the axis, above the bars of its group.
            box = {"facecolor": "white", "lw": 0, "pad": 1}
            look = {"fontsize": 7, "style": "italic", "va": "center", "bbox": box}
            axis.annotate(row.group, (0.015, position + 0.1), xycoords=("axes fraction", "data"), **look)
            position, group = position + 0.75, row.group
        ticks[position] = f"n = {row.n}"
        for index, (part, number) in enumerate(zip(power.PARTS, row.parts, strict=True)):
            _part(axis, position + _BAR * (index - 1), part, number)
        position += 1.05
    axis.set(xscale="log", xlabel="Ratio (left of 1\u00d7: less)")
    axis.set_xlim(math.exp(-_ROOM * reach), math.exp(_ROOM * max(0.35 * reach, *logs)))
    axis.axvline(1, color=BLACK, linewidth=0.8)
    axis.set_yticks(list(ticks), list(ticks.values()), fontsize=6.5)
    axis.set_ylim(position - 0.4, -0.25)
    style.near_log(axis.xaxis)
    bars.plain(axis)


def _part(axis: Axes, position: float, part: str, number: Number) -> None:
    look = {"height": _BAR * 0.9, "color": _PART_COLORS[part], "label": _PART_NAMES[part]}
    bars.ratio(axis, position, number, fontsize=6, **look)
