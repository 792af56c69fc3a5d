"""Energy ratios taken apart: the ratio of the energies is that of the times times that of the powers."""

from __future__ import annotations

import math
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from octopus_study.report import power
from octopus_study.report.captions import scope_name
from octopus_study.report.figures import style
from octopus_study.report.labels import POWER_SCOPES, human
from octopus_study.report.numbers import Number, Numbers
from octopus_study.report.power import footer
from octopus_study.report.text import significant

STUDY = power.STUDY
WITHOUT_RUN = True
PARTS = {"time": "Time", "power": "Power", "energy": "Energy = time \u00d7 power"}
_COLORS = {"time": style.SKY, "power": style.ORANGE, "energy": style.BLACK}
# Counts whose ratios are drawn, as far as a machine has them.
_COUNTS = (100, 1000, 5000)
_BAR = 0.27
_ROOM = 1.6  # of the longest bar, for its value
# (table, its heading) of the published ratios.
_TABLES = {
    "power_voltage_misread": "First table: a voltage read as power",
    "power": "Third table: voltage \u00d7 current",
}
_PAIRS = (("published", "n-launches"), ("octopus", "published"))

__all__ = ["STUDY", "WITHOUT_RUN", "figure", "footer"]


class Row(NamedTuple):
    """The three ratios of one comparison at one number of boxes."""

    group: str
    n: int
    parts: dict[str, Number]


def figure(numbers: Numbers) -> Figure:
    """Draw both published tables, and one panel per machine that has energies."""
    panels = {f"{power.JETSON}: one launch over N launches": _published(numbers)}
    for scope in power.measured(numbers):
        of = human(POWER_SCOPES, power.sensor_scope(numbers, scope))
        panels[f"{scope_name(numbers, scope)} ({of})"] = _measured(numbers, scope)
    panels = {title: rows for title, rows in panels.items() if rows}
    height = max(0.5 + 0.42 * (len(rows) + len({row.group for row in rows})) for rows in panels.values())
    result, parts, legend = style.stacked([height], 0.25, power.figure_note(numbers))
    axes = parts[0].subplots(1, len(panels), squeeze=False)[0]
    for axis, (title, rows) in zip(axes, panels.items(), strict=True):
        _panel(axis, rows)
        style.title(axis, title, 92 // len(panels))
    style.legend_of(legend, list(axes), 3)
    return result


def _published(numbers: Numbers) -> list[Row]:
    rows = []
    for table, title in _TABLES.items():
        for n in _shown(power.published_counts(numbers, table)):
            parts = {part: numbers[f"published.derived.{table}.n{n}.{part}"] for part in PARTS}
            rows.append(Row(title, n, parts))
    return rows


def _measured(numbers: Numbers, scope: str) -> list[Row]:
    rows = []
    for pair in _PAIRS:
        for n in _shown(power.counts(numbers, scope)):
            found = {part: numbers.get(power.ratio_key(scope, n, pair, part)) for part in PARTS}
            if all(found.values()):
                rows.append(Row(power.PAIRS[pair], n, found))
    return rows


def _shown(counts: list[int]) -> list[int]:
    return [n for n in _COUNTS if n in counts] or counts[: len(_COUNTS)]


def _panel(axis: Axes, rows: list[Row]) -> None:
    values = [number.value for row in rows for number in row.parts.values()]
    reach = max(abs(math.log(value)) for value in values)
    position, ticks, group = 0.0, [], ""
    for row in rows:
        if row.group != group:
            # The text starts at the axis, above the bars of its group.
            look = {
                "fontsize": 7,
                "style": "italic",
                "va": "center",
                "bbox": {"facecolor": "white", "lw": 0, "pad": 1},
            }
            axis.annotate(row.group, (0.015, position + 0.1), xycoords=("axes fraction", "data"), **look)
            position, group = position + 0.75, row.group
        ticks.append((position, f"n = {row.n}"))
        for index, (part, number) in enumerate(row.parts.items()):
            _bar(axis, position + _BAR * (index - 1), part, number)
        position += 1.05
    axis.set(xscale="log", xlabel="Ratio (left of 1\u00d7: less)")
    axis.set_xlim(math.exp(-_ROOM * reach), math.exp(_ROOM * max(0.35 * reach, max(map(math.log, values)))))
    axis.axvline(1, color=style.BLACK, linewidth=0.8)
    axis.set_yticks([place for place, _ in ticks], [text for _, text in ticks], fontsize=6.5)
    axis.set_ylim(position - 0.4, -0.25)
    style.near_log(axis.xaxis)
    axis.grid(axis="y", visible=False)
    axis.tick_params(axis="y", length=0)


def _bar(axis: Axes, position: float, part: str, number: Number) -> None:
    axis.barh(
        position,
        number.value - 1,
        left=1,
        height=_BAR * 0.9,
        color=_COLORS[part],
        label=PARTS[part],
        xerr=style.errors([number]) if number.low == number.low else None,
        error_kw={"ecolor": style.GREY, "elinewidth": 0.8, "capsize": 1.2},
    )
    less = number.value < 1
    known = number.low == number.low
    end = (number.low if less else number.high) if known else number.value
    text = f"{significant(number.value)}\u00d7"
    options = {"ha": "right" if less else "left", "va": "center", "fontsize": 5.5}
    axis.annotate(text, (end, position), (-3 if less else 3, 0), textcoords="offset points", **options)
