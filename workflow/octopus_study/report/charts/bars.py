"""Rows of a panel: bars and dots with their intervals, and what stands beside them."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes

from octopus_study.report.charts import style
from octopus_study.report.charts.palette import BLACK
from octopus_study.report.frame import Number
from octopus_study.units import TIMES, significant


def bar(axis: Axes, place: float, number: Number, **look: Any) -> None:
    """Draw a bar from zero to a number, with its interval; `look` is that of matplotlib's ``barh``."""
    error = {"ecolor": BLACK, "elinewidth": 0.8, "capsize": 1.5}
    axis.barh(place, number.value, xerr=style.errors([number]), error_kw=error, **look)


def dot(axis: Axes, place: float, number: Number, *, color: str, hollow: bool = False, marker: str = "o") -> None:
    """Draw a number as a mark with its interval, for axes on which a length means nothing; `hollow`: another answer."""
    look = {"color": color, "markerfacecolor": "white" if hollow else color, "markersize": 4.5, "markeredgewidth": 0.9}
    axis.errorbar([number.value], [place], xerr=style.errors([number]), fmt=marker, elinewidth=1.1, capsize=1.5, **look)


def ratio(axis: Axes, place: float, number: Number, behind: str = "", **look: Any) -> None:
    """Draw a ratio as a mark, with its digits beside it and a text behind these; `look` is that of `dot`."""
    dot(axis, place, number, **look)
    beside(axis, place, end_of(number), f"{significant(number.value)}{TIMES}{behind}", gap=4, fontsize=6)


def beside(axis: Axes, place: float, end: float, text: str, gap: float = 4, **options: Any) -> None:
    """Write a text `gap` points behind the end of a bar."""
    shared = {"textcoords": "offset points", "va": "center", "fontsize": 6.2}
    axis.annotate(text, (end, place), (gap, 0), **(shared | options))


def end_of(number: Number) -> float:
    """Return where a bar ends with its interval."""
    return number.high if number.high == number.high else number.value


def names(axis: Axes, labels: Sequence[str], room: int | None = None, edge: float = 0.4, **options: Any) -> None:
    """Name the bars at places 0, 1 … from the top; `room` is for how many there is space."""
    axis.set_yticks(range(len(labels)), labels, **options)
    axis.set_ylim((len(labels) if room is None else room) - edge, edge - 1)
    plain(axis)


def plain(axis: Axes) -> None:
    """Leave out the lines and ticks between bars."""
    axis.grid(axis="y", visible=False)
    axis.tick_params(axis="y", length=0)
