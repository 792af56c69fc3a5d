"""Times of other methods as multiples of that of Octopus: a panel per machine, a group of bars per case."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from octopus_study.report.charts import bars, style
from octopus_study.report.charts.palette import METHOD_COLORS
from octopus_study.report.frame import Key, Number
from octopus_study.report.labels import human
from octopus_study.report.measured import SUBJECT
from octopus_study.report.missing import by_reason
from octopus_study.report.text import reason
from octopus_study.report.view import View

_GROUP = 0.8  # of the distance between two cases
_COLUMNS = 3  # of the legend


def draw(
    shown: Sequence[View],
    cases: Callable[[View], list[Key]],
    others: Sequence[str],
    labels: Mapping[str, str],
    name_of: Mapping[str, str],
    like: Mapping[str, str] | None = None,
) -> Figure:
    """Draw the whole time of each case, which `name_of` names by its workload.

    Parameters
    ----------
    shown : sequence of View
    cases : callable
        The cases of a machine, as keys of Octopus' times.
    others : sequence of str
        The other methods, in their order; `labels` has their names, and Octopus' own.
    like : mapping, optional
        Which method of Octopus gives the answer of another one, where it isn't the usual one.
    """
    own = like or {}
    speedups = {view: [_timed(view, key, others, own) for key in cases(view)] for view in shown}
    timed = {name for panel in speedups.values() for there in panel for name in there}
    notes = [_note(view, cases(view), others, timed, labels, name_of) for view in shown]
    rows = -(-(1 + len(timed)) // _COLUMNS)
    height = min(4.2, 1.2 + 0.1 * len(timed) * max(len(panel) for panel in speedups.values()))
    result, parts, legend = style.stacked([height], max(0.4, 0.15 * rows), " ".join(filter(None, notes)))
    axes = parts[0].subplots(1, len(shown), squeeze=False)[0]
    width = _GROUP / max(1, *(len(there) for panel in speedups.values() for there in panel))  # in all panels
    for place, (axis, view) in enumerate(zip(axes, shown, strict=True)):
        keys = cases(view)
        _panel(axis, speedups[view], width, labels)
        bars.names(axis, [name_of[key.workload] for key in keys], edge=0.45, fontsize=7)
        if place and [key.workload for key in keys] == [key.workload for key in cases(shown[0])]:
            axis.set_yticklabels([])
        style.title(axis, view.name, 48 // len(shown))
    style.legend_of(legend, list(axes), _COLUMNS)
    return result


def _note(
    view: View,
    keys: list[Key],
    others: Sequence[str],
    timed: Container[str],
    labels: Mapping[str, str],
    name_of: Mapping[str, str],
) -> str:
    """Name the methods that have no time on a machine, or none in some cases, with what its rows say; one without rows
    where another machine shown has its time."""
    notes: list[tuple[str, str]] = []
    for method in others:
        texts = {name_of[key.workload]: text for key in keys if (text := view.text(key.but(method=method)))}
        failed: dict[str, list[str]] = {}
        for case, text in texts.items():
            if text.startswith("unavailable: "):
                failed.setdefault(reason(text), []).append(case)
        if not texts and method in timed:
            failed["not measured there"] = []
        for why, cases in failed.items():
            name, rest = human(dict(labels), method), [case for case in texts if case not in cases]
            few, but = min((cases, ""), (rest, "but for "), key=lambda named: len(named[0]))
            notes.append((f"{name} ({but}{'; '.join(few)})" if rest else name, f"unavailable: {why}"))
    said = by_reason(notes)
    return f"No time on {view.name}. {said}." if said else ""


def _timed(view: View, key: Key, others: Sequence[str], own: Mapping[str, str]) -> dict[str, Number]:
    """Return the speed-ups of a case, by the other method."""
    found = {method: view.get(key.but(method=own.get(method, SUBJECT)).speedup(method)) for method in others}
    return {method: number for method, number in found.items() if number}


def _panel(axis: Axes, panel: list[dict[str, Number]], width: float, labels: Mapping[str, str]) -> None:
    least = highest = 1.0
    for place, there in enumerate(panel):
        for index, (method, number) in enumerate(there.items()):
            look = {"color": METHOD_COLORS[method], "label": human(dict(labels), method)}
            at = place + width * (index - (len(there) - 1) / 2)
            bars.ratio(axis, at, number, height=width * 0.9, **look)
            ends = [end for end in (number.value, number.low, number.high) if end == end]
            least, highest = min(least, *ends), max(highest, *ends)
    axis.axvline(1, color=METHOD_COLORS[SUBJECT], linewidth=1.2, label=labels[SUBJECT])
    axis.set(xscale="log", xlabel="Time / time of Octopus")
    axis.set_xlim(0.93 * least**1.15, highest**1.25 * 1.15)
    style.near_log(axis.xaxis)
