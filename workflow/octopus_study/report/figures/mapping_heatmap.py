"""How much slower than Octopus each strategy is: strategy by operation, a map per distribution and number of items."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from octopus_study.report import mapping
from octopus_study.report.captions import scope_name
from octopus_study.report.figures import style
from octopus_study.report.labels import DISTRIBUTIONS, OPERATIONS, STRATEGIES, human
from octopus_study.report.mapping import NO_RUN, STUDY
from octopus_study.report.numbers import Numbers
from octopus_study.report.text import quantity_text, significant

__all__ = ["NO_RUN", "STUDY", "figure"]
# The colours end at half and twice the time; numbers beyond keep the last colour.
_END = 2.0
_SHORT = {"blur5x5-sobel": "5\u00d75, Sobel", "blur3x3": "Blur 3\u00d73"}
# With more machines, a page has room for the most items alone.
_MOST_MACHINES = 2
_WHICH = {0: "fewest items", -1: "most items"}
_ROW, _HEAD = 0.165, 0.95  # inches of a strategy, and of title and operations


def figure(numbers: Numbers) -> Figure:
    """Draw the fewest and the most items of each distribution, two rows of maps per machine."""
    rows = [
        (scope, index)
        for scope in numbers.scopes(STUDY)
        for index in _indices(numbers, scope)
        if mapping.distributions(numbers, scope)
    ]
    if not rows:
        return style.words(style.new_figure(1.2)[0], mapping.NO_TIMES)
    height = _HEAD + _ROW * len(mapping.RIVALS)
    result, parts, legend = style.stacked([height] * len(rows), 0.6)
    image: Any = None
    for part, (scope, index) in zip(parts, rows, strict=True):
        axes = part.subplots(1, len(DISTRIBUTIONS), squeeze=False)[0]
        several = f", {_WHICH[index]}" if len(_indices(numbers, scope)) > 1 else ""
        name = f"{scope_name(numbers, scope)}{several}"
        part.suptitle(name, fontsize=8.5, fontweight="bold", x=0.005, ha="left")
        labelled = False
        for axis, name in zip(axes, DISTRIBUTIONS, strict=True):
            drawn = _panel(axis, numbers, (scope, name, index), labels=not labelled)
            labelled, image = labelled or drawn is not None, drawn or image
    _colors(legend, image)
    return result


def _indices(numbers: Numbers, scope: str) -> list[int]:
    """Return which of the ascending numbers of items are shown: the first, and the last where there are several."""
    if len(numbers.scopes(STUDY)) > _MOST_MACHINES:
        return [-1]
    several = any(len(mapping.counts(numbers, scope, name)) > 1 for name in DISTRIBUTIONS)
    return [0, -1] if several else [-1]


def _panel(axis: Axes, numbers: Numbers, which: tuple[str, str, int], labels: bool) -> Any:
    scope, distribution, index = which
    found = mapping.counts(numbers, scope, distribution)
    title = human(DISTRIBUTIONS, distribution)
    axis.grid(visible=False)
    if not found or (index == 0 and len(found) == 1):
        why = "Not measured" if not found else "Only one number of items"
        axis.set_title(title, fontsize=8, fontweight="normal")
        axis.set_axis_off()
        axis.annotate(why, (0.5, 0.5), xycoords="axes fraction", ha="center", fontsize=7, color=style.GREY)
        return None
    n = found[index]
    names, rivals = mapping.operations(numbers, scope), _rivals(numbers, scope)
    ratios = np.array(
        [[_ratio(numbers, scope, (distribution, name, n), rival) for name in names] for rival in rivals]
    )
    shown = axis.imshow(
        np.log2(ratios), cmap="RdBu", vmin=-math.log2(_END), vmax=math.log2(_END), aspect="auto"
    )
    for (row, column), value in np.ndenumerate(ratios):
        _cell(axis, row, column, value)
    axis.set_title(f"{title}, {quantity_text(n, 'count')} items", fontsize=8, fontweight="normal")
    ticks = [_SHORT.get(name, human(OPERATIONS, name)) for name in names]
    axis.set_xticks(range(len(names)), ticks, fontsize=6, rotation=35, ha="right", rotation_mode="anchor")
    axis.set_yticks(range(len(rivals)))
    axis.set_yticklabels([human(STRATEGIES, name) for name in rivals] if labels else [], fontsize=6.5)
    axis.tick_params(length=0)
    return shown


def _rivals(numbers: Numbers, scope: str) -> list[str]:
    """Return the strategies that a machine timed; some forms exist on GPUs alone."""
    pattern = rf"{scope}\.{STUDY}\.[\w-]+\.n\d+\.octopus\.kernel\.\w+\.speedup_over_([\w-]+)"
    found = {match[1] for match, _ in numbers.matching(pattern)}
    return [name for name in mapping.RIVALS if name in found]


def _ratio(numbers: Numbers, scope: str, where: tuple[str, str, int], rival: str) -> float:
    number = mapping.ratio(numbers, scope, where, (mapping.SUBJECT, rival))
    return number.value if number else math.nan


def _cell(axis: Axes, row: int, column: int, value: float) -> None:
    """Write a ratio on its colour; a dash where there is none."""
    dark = value == value and abs(math.log2(value)) > 0.75 * math.log2(_END)
    text = significant(value, 3 if value < 10 else 2) if value == value else "\u2013"
    color = "white" if dark else style.BLACK
    axis.text(column, row, text, ha="center", va="center", fontsize=5.6, color=color)


def _colors(part: Any, image: Any) -> None:
    """Draw the colour bar."""
    # Outside of the layout: a bar has no axes of its own to make room for.
    axis = part.add_axes((0.25, 0.66, 0.5, 0.2))
    bar = part.colorbar(image, cax=axis, orientation="horizontal", extend="both")
    ends = (1 / _END, 1 / math.sqrt(_END), 1.0, math.sqrt(_END), _END)
    bar.set_ticks([math.log2(end) for end in ends], labels=[f"{end:.3g}" for end in ends])
    bar.ax.tick_params(labelsize=6.5)
    bar.set_label("Time of the strategy / time of Octopus (above 1: Octopus is faster)", fontsize=7)
