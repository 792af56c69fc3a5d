"""Times of other methods as multiples of that of Octopus: a panel per machine, a group of bars per case."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from octopus_study.report.charts import bars, style
from octopus_study.report.charts.palette import METHOD_COLORS
from octopus_study.report.frame import Key, Number
from octopus_study.report.labels import human
from octopus_study.report.measured import SUBJECT
from octopus_study.report.missing import NOT_THERE, by_reason
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
    speedups = {view: {key: _timed(view, key, others, own) for key in cases(view)} for view in shown}
    differing = {
        view: {key: _differing(view, key, there) for key, there in panel.items()}
        for view, panel in speedups.items()
    }
    timed = {name for panel in speedups.values() for there in panel.values() for name in there}
    notes = [
        note
        for view in shown
        for note in (
            _without(view, cases(view), others, timed, labels, name_of),
            _hatched(view, speedups[view], differing[view], labels, name_of),
        )
        if note
    ]
    looks = {labels[SUBJECT]: {"color": METHOD_COLORS[SUBJECT]}}
    looks |= {human(dict(labels), name): {"color": METHOD_COLORS[name]} for name in others if name in timed}
    if any(found for panel in differing.values() for found in panel.values()):
        looks |= style.DIFFERENT
    rows = -(-len(looks) // _COLUMNS)
    height = min(4.2, 1.2 + 0.1 * len(timed) * max(len(panel) for panel in speedups.values()))
    result, parts, legend = style.stacked([height], max(0.4, 0.15 * rows), " ".join(notes))
    axes = parts[0].subplots(1, len(shown), squeeze=False)[0]
    width = _GROUP / max(
        1, *(len(there) for panel in speedups.values() for there in panel.values())
    )  # in all panels
    for place, (axis, view) in enumerate(zip(axes, shown, strict=True)):
        keys = cases(view)
        _panel(axis, speedups[view], differing[view], width)
        bars.names(axis, [name_of[key.workload] for key in keys], edge=0.45, fontsize=7)
        if place and [key.workload for key in keys] == [key.workload for key in cases(shown[0])]:
            axis.set_yticklabels([])
        style.title(axis, view.name, 48 // len(shown))
    style.legend_of_looks(legend, looks, _COLUMNS)
    return result


def _without(
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
        failed = {case: text for case, text in texts.items() if text.startswith("unavailable: ")}
        name = human(dict(labels), method)
        notes += _in_cases(name, failed, list(texts))
        if not texts and method in timed:
            notes.append((name, NOT_THERE))
    said = by_reason(notes)
    return f"No time on {view.name}. {said}." if said else ""


def _hatched(
    view: View,
    speedups: Mapping[Key, Mapping[str, Number]],
    differing: Mapping[Key, Mapping[str, str]],
    labels: Mapping[str, str],
    name_of: Mapping[str, str],
) -> str:
    """Name the methods whose answer differs on a machine, with what its rows say."""
    notes: list[tuple[str, str]] = []
    for method in dict.fromkeys(name for there in differing.values() for name in there):
        found = {name_of[key.workload]: there[method] for key, there in differing.items() if method in there}
        cases = [name_of[key.workload] for key, there in speedups.items() if method in there]
        notes += _in_cases(human(dict(labels), method), found, cases)
    said = by_reason(notes)
    return f"Hatched on {view.name}, the answer differs. {said}." if said else ""


def _differing(view: View, key: Key, methods: Iterable[str]) -> dict[str, str]:
    """Return the notes of those methods whose answer differs from the reference."""
    notes = {method: number.note for method in methods if (number := view.get(key.but(method=method)))}
    return {method: note for method, note in notes.items() if note.startswith("different")}


def _in_cases(name: str, notes: Mapping[str, str], cases: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield a method's name with each note of another reason: with the cases that it holds for, or does not, unless it
    holds for all."""
    by: dict[str, list[str]] = {}
    for case, note in notes.items():
        by.setdefault(reason(note), []).append(case)
    for held in by.values():
        rest = [case for case in cases if case not in held]
        few, but = min((held, ""), (rest, "but for "), key=lambda named: len(named[0]))
        yield f"{name} ({but}{'; '.join(few)})" if rest else name, notes[held[0]]


def _timed(view: View, key: Key, others: Sequence[str], own: Mapping[str, str]) -> dict[str, Number]:
    """Return the speed-ups of a case, by the other method."""
    found = {method: view.get(key.but(method=own.get(method, SUBJECT)).speedup(method)) for method in others}
    return {method: number for method, number in found.items() if number}


def _panel(
    axis: Axes,
    speedups: Mapping[Key, Mapping[str, Number]],
    differing: Mapping[Key, Mapping[str, str]],
    width: float,
) -> None:
    least = highest = 1.0
    for place, (key, there) in enumerate(speedups.items()):
        for index, (method, number) in enumerate(there.items()):
            color = METHOD_COLORS[method]
            look = {"facecolor": color, "edgecolor": color, "linewidth": 0}
            if method in differing[key]:
                look |= {"facecolor": "white", "hatch": style.HATCH, "linewidth": 0.6}
            at = place + width * (index - (len(there) - 1) / 2)
            bars.ratio(axis, at, number, height=width * 0.9, **look)
            ends = [end for end in (number.value, number.low, number.high) if end == end]
            least, highest = min(least, *ends), max(highest, *ends)
    axis.axvline(1, color=METHOD_COLORS[SUBJECT], linewidth=1.2)
    axis.set(xscale="log", xlabel="Time / time of Octopus")
    axis.set_xlim(0.93 * least**1.15, highest**1.25 * 1.15)
    style.near_log(axis.xaxis)
