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
from octopus_study.report.missing import by_reason
from octopus_study.report.text import reason
from octopus_study.report.view import View

_GROUP = 0.8  # of the distance between two cases
_COLUMNS = 3  # of the legend
HATCH = "/////"  # another answer than the reference


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
    notes = [
        text
        for view in shown
        for text in (
            _without(view, cases(view), others, timed, labels, name_of),
            _hatched(view, zip(cases(view), speedups[view], strict=True), labels, name_of),
        )
    ]
    rows = -(-(1 + len(timed)) // _COLUMNS)
    height = min(4.2, 1.2 + 0.1 * len(timed) * max(len(panel) for panel in speedups.values()))
    result, parts, legend = style.stacked([height], max(0.4, 0.15 * rows), " ".join(filter(None, notes)))
    axes = parts[0].subplots(1, len(shown), squeeze=False)[0]
    width = _GROUP / max(1, *(len(there) for panel in speedups.values() for there in panel))  # in all panels
    for place, (axis, view) in enumerate(zip(axes, shown, strict=True)):
        keys = cases(view)
        differing = [
            {name for name in there if _differs(view, key, name)}
            for key, there in zip(keys, speedups[view], strict=True)
        ]
        _panel(axis, speedups[view], differing, width, labels)
        bars.names(axis, [name_of[key.workload] for key in keys], edge=0.45, fontsize=7)
        if place and [key.workload for key in keys] == [key.workload for key in cases(shown[0])]:
            axis.set_yticklabels([])
        style.title(axis, view.name, 48 // len(shown))
    style.legend_of(legend, list(axes), _COLUMNS)
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
            notes.append((name, "unavailable: not measured there"))
    said = by_reason(notes)
    return f"No time on {view.name}. {said}." if said else ""


def _hatched(
    view: View,
    panel: Iterable[tuple[Key, Mapping[str, Number]]],
    labels: Mapping[str, str],
    name_of: Mapping[str, str],
) -> str:
    """Name the methods whose answer differs on a machine, with what its rows say."""
    notes: dict[str, dict[str, str]] = {}
    cases: dict[str, list[str]] = {}
    for key, there in panel:
        for method in there:
            cases.setdefault(method, []).append(name_of[key.workload])
            if note := _differs(view, key, method):
                notes.setdefault(method, {})[name_of[key.workload]] = note
    said = by_reason(
        note
        for method, found in notes.items()
        for note in _in_cases(human(dict(labels), method), found, cases[method])
    )
    return f"Hatched on {view.name}, the answer differs. {said}." if said else ""


def _differs(view: View, key: Key, method: str) -> str:
    """Return why a method's answer differs from the reference; nothing where it doesn't."""
    number = view.get(key.but(method=method))
    return number.note if number and number.note.startswith("different") else ""


def _in_cases(name: str, notes: Mapping[str, str], cases: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield a method's name with each note's reason: with the cases that it holds for, or does not, unless it holds for
    all."""
    by: dict[str, list[str]] = {}
    for case, note in notes.items():
        by.setdefault(reason(note), []).append(case)
    for why, held in by.items():
        rest = [case for case in cases if case not in held]
        few, but = min((held, ""), (rest, "but for "), key=lambda named: len(named[0]))
        yield f"{name} ({but}{'; '.join(few)})" if rest else name, f"unavailable: {why}"


def _timed(view: View, key: Key, others: Sequence[str], own: Mapping[str, str]) -> dict[str, Number]:
    """Return the speed-ups of a case, by the other method."""
    found = {method: view.get(key.but(method=own.get(method, SUBJECT)).speedup(method)) for method in others}
    return {method: number for method, number in found.items() if number}


def _panel(
    axis: Axes,
    panel: list[dict[str, Number]],
    differing: list[set[str]],
    width: float,
    labels: Mapping[str, str],
) -> None:
    least = highest = 1.0
    for place, (there, other) in enumerate(zip(panel, differing, strict=True)):
        for index, (method, number) in enumerate(there.items()):
            color = METHOD_COLORS[method]
            look = {
                "facecolor": color,
                "edgecolor": color,
                "linewidth": 0,
                "label": human(dict(labels), method),
            }
            if method in other:
                look |= {"facecolor": "white", "hatch": HATCH, "linewidth": 0.6}
            at = place + width * (index - (len(there) - 1) / 2)
            bars.ratio(axis, at, number, height=width * 0.9, **look)
            ends = [end for end in (number.value, number.low, number.high) if end == end]
            least, highest = min(least, *ends), max(highest, *ends)
    axis.axvline(1, color=METHOD_COLORS[SUBJECT], linewidth=1.2, label=labels[SUBJECT])
    axis.set(xscale="log", xlabel="Time / time of Octopus")
    axis.set_xlim(0.93 * least**1.15, highest**1.25 * 1.15)
    style.near_log(axis.xaxis)
