"""Time until both models' results are there, way by way, between the bounds: the longer model, and the sum of both."""

from __future__ import annotations

import textwrap

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from octopus_study.report import concurrency
from octopus_study.report.captions import scope_name
from octopus_study.report.concurrency import NO_RUN, STUDY, footer
from octopus_study.report.figures import style
from octopus_study.report.labels import CONCURRENCY_ARMS
from octopus_study.report.numbers import Number, Numbers
from octopus_study.report.text import significant

__all__ = ["NO_RUN", "STUDY", "figure", "footer"]
_BAR = 0.19  # inches
_BOUNDS = {"longer": ("The longer model alone", "--"), "sum": ("Sum of both models alone", ":")}


def figure(numbers: Numbers) -> Figure:
    """Draw one panel per machine."""
    scopes = concurrency.measured(numbers)
    if not scopes:
        return style.words(style.new_figure(1.2)[0], concurrency.no_times(numbers))
    heights = [0.75 + _BAR * len(concurrency.arms(numbers, scope)) for scope in scopes]
    notes = " ".join(filter(None, (note(numbers, scope) for scope in scopes)))
    result, parts, legend = style.stacked(heights, 0.25, notes)
    axes = []
    for part, scope in zip(parts, scopes, strict=True):
        axis = part.subplots(1, 1, squeeze=False)[0][0]
        axis.set_title(scope_name(numbers, scope))
        _panel(axis, numbers, scope)
        axes.append(axis)
    style.legend_of(legend, axes, 2)
    return result


def note(numbers: Numbers, scope: str) -> str:
    """Name the ways that a machine lacks, with the reasons."""
    by_reason: dict[str, list[str]] = {}
    for arm, why in concurrency.gaps(numbers, scope).items():
        by_reason.setdefault(why, []).append(CONCURRENCY_ARMS[arm])
    texts = [f"{'; '.join(names)} ({why})" for why, names in by_reason.items()]
    return f"Not on {scope_name(numbers, scope)}: {'; '.join(texts)}." if texts else ""


def _panel(axis: Axes, numbers: Numbers, scope: str) -> None:
    arms = concurrency.arms(numbers, scope)
    times = {arm: number for arm in arms if (number := concurrency.makespan(numbers, scope, arm))}
    for place, (arm, number) in enumerate(times.items()):
        axis.barh(
            place,
            number.value,
            height=0.74,
            color=style.CONCURRENCY_COLORS[arm],
            xerr=style.errors([number]),
            error_kw={"ecolor": style.BLACK, "elinewidth": 0.8, "capsize": 1.5},
        )
        end = max(number.value, number.high) if number.high == number.high else number.value
        options = {"va": "center", "fontsize": 6.2, "textcoords": "offset points", "bbox": style.BEHIND}
        axis.annotate(_text(numbers, scope, arm, number), (end, place), (4, 0), **options)
    for name, (label, line) in _BOUNDS.items():
        bound = numbers.value(f"{scope}.{STUDY}.bounds.{name}")
        if bound == bound:
            axis.axvline(bound, color=style.BLACK, linestyle=line, linewidth=1.0, label=label, zorder=2.5)
    names = [textwrap.fill(CONCURRENCY_ARMS[arm], 30) for arm in times]
    axis.set_yticks(range(len(times)), names, fontsize=7)
    axis.set_ylim(len(times) - 0.45, -0.55)
    # Room for the words behind the longest bar.
    axis.set_xlim(0, 1.42 * max(number.value for number in times.values()))
    axis.set_xlabel("Time per frame pair (ms)")
    axis.grid(axis="y", visible=False)
    axis.tick_params(axis="y", length=0)


def _text(numbers: Numbers, scope: str, arm: str, number: Number) -> str:
    """Return the time, and which part of the shorter model was hidden where both ran."""
    hidden = numbers.get(concurrency.derived(scope, arm, "overlap"))
    if hidden is None:
        return number.text
    share = f"{significant(100 * abs(hidden.value), 2)} %"
    if hidden.low > 0:
        return f"{number.text}, {share} hidden"
    return f"{number.text}, {share} lost" if hidden.high < 0 else f"{number.text}, nothing hidden"
