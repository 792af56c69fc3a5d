"""Ragged sequences: the whole time of a batch, as a multiple of that of Octopus, mix by mix."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from octopus_study.report import sequences
from octopus_study.report.captions import scope_name
from octopus_study.report.figures import style
from octopus_study.report.labels import SEQUENCE_WORKLOADS, STRATEGIES, human
from octopus_study.report.numbers import Number, Numbers
from octopus_study.report.sequences import NO_RUN, STUDY
from octopus_study.report.text import significant

__all__ = ["NO_RUN", "STUDY", "figure"]
OTHERS = tuple(name for name in sequences.METHODS if name != "octopus")
_BAR = 0.16  # of the distance between two mixes


def figure(numbers: Numbers) -> Figure:
    """Draw one panel per machine."""
    scopes = sequences.measured(numbers)
    if not scopes:
        return style.words(style.new_figure(1.2)[0], sequences.NO_TIMES)
    note = " ".join(filter(None, (_note(numbers, scope) for scope in scopes)))
    result, parts, legend = style.stacked([3.9], 0.4, note)
    axes = parts[0].subplots(1, len(scopes), squeeze=False)[0]
    for place, (axis, scope) in enumerate(zip(axes, scopes, strict=True)):
        _panel(axis, numbers, scope)
        if place:
            axis.set_yticklabels([])
        style.title(axis, scope_name(numbers, scope), 90 // len(scopes))
    style.legend_of(legend, list(axes), 3)
    return result


def _note(numbers: Numbers, scope: str) -> str:
    """Name the methods that no mix has on a machine."""
    found = sequences.prefixes(numbers, scope).values()
    missing = [name for name in OTHERS if not any(_ratio(numbers, start, name) for start in found)]
    names = "; ".join(human(STRATEGIES, name) for name in missing)
    return f"No time on {scope_name(numbers, scope)}: {names}." if missing else ""


def _ratio(numbers: Numbers, start: str, method: str) -> Number | None:
    return numbers.get(f"{start}.octopus.total.host.speedup_over_{method}")


def _panel(axis: Axes, numbers: Numbers, scope: str) -> None:
    found = sequences.prefixes(numbers, scope)
    least = highest = 1.0
    for place, start in enumerate(found.values()):
        for index, method in enumerate(OTHERS):
            number = _ratio(numbers, start, method)
            if number is not None:
                _bar(axis, place + _BAR * (index - (len(OTHERS) - 1) / 2), method, number)
                ends = [end for end in (number.value, number.low, number.high) if end == end]
                least, highest = min(least, *ends), max(highest, *ends)
    axis.axvline(1, color=style.METHOD_COLORS["octopus"], linewidth=1.2, label="D: block search (Octopus)")
    axis.set(xscale="log", xlabel="Time / time of Octopus")
    axis.set_xlim(0.93 * least**1.15, highest**1.25 * 1.15)
    axis.set_yticks(range(len(found)), [SEQUENCE_WORKLOADS[name] for name in found], fontsize=7)
    axis.set_ylim(len(found) - 0.45, -0.55)
    style.near_log(axis.xaxis)
    axis.grid(axis="y", visible=False)
    axis.tick_params(axis="y", length=0)


def _bar(axis: Axes, position: float, method: str, number: Number) -> None:
    axis.barh(
        position,
        number.value - 1,
        left=1,
        height=_BAR * 0.9,
        color=style.METHOD_COLORS[method],
        label=human(STRATEGIES, method),
        xerr=style.errors([number]),
        error_kw={"ecolor": style.GREY, "elinewidth": 0.8, "capsize": 1.2},
    )
    less = number.value < 1
    end = (number.low if less else number.high) if number.low == number.low else number.value
    options = {"ha": "right" if less else "left", "va": "center", "fontsize": 5.8}
    text = f"{significant(number.value)}\u00d7"
    axis.annotate(text, (end, position), (-3 if less else 3, 0), textcoords="offset points", **options)
