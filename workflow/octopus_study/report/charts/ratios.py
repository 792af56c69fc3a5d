"""Times of other methods as multiples of that of Octopus: a panel per machine, a group of marks per case."""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from octopus_study.names import SUBJECT, human
from octopus_study.report.charts import bars, style
from octopus_study.report.charts.palette import METHOD_COLORS, METHOD_MARKERS
from octopus_study.report.frame import Frame, Key, Number
from octopus_study.report.missing import NOT_THERE, by_reason
from octopus_study.report.tables.cells import DIFFERENT
from octopus_study.report.view import View, views

_GROUP = 0.8  # of the distance between two cases
_COLUMNS = 3  # of the legend


class Mark(NamedTuple):
    """A speed-up, and why the answer of the other method or of Octopus differs from the reference; else nothing."""

    speedup: Number
    differs: str
    own: str


Panel = Mapping[Key, Mapping[str, Mark]]  # by case and other method


def draw(
    frame: Frame,
    study: str,
    cases: Callable[[View], list[Key]],
    others: Sequence[str],
    labels: Mapping[str, str],
    name_of: Callable[[Key], str],
    like: Mapping[str, str] | None = None,
) -> Figure:
    """Draw the whole time of each case of a study, which `name_of` names, on the machines that have some. `cases` gives
    those of a machine, as keys of Octopus' times; `labels` has the names of `others` and of Octopus; `like` says which
    method of Octopus gives the answer of another one, where it isn't the usual one."""
    shown = [view for view in views(frame, study) if cases(view)]
    if not shown:
        return style.empty(f"No run of the study {study} that is shown timed anything.")
    own, called = like or {}, {name: human(dict(labels), name) for name in (SUBJECT, *others)}
    panels = {view: {key: _timed(view, key, others, own) for key in cases(view)} for view in shown}
    groups = [there for panel in panels.values() for there in panel.values()]
    timed = {name for there in groups for name in there}
    notes = [
        note
        for view, panel in panels.items()
        for note in (_without(view, panel, others, timed, called, name_of), _hollow(view, panel, called, name_of))
        if note
    ]
    looks: dict[str, dict[str, str]] = {called[name]: _look(name) for name in others if name in timed}
    if any(mark.differs for there in groups for mark in there.values()):
        looks |= style.DIFFERENT
    rows = -(-len(looks) // _COLUMNS)
    height = min(4.2, 1.2 + 0.1 * len(timed) * max(map(len, panels.values())))
    result, parts, legend = style.stacked([height], max(0.4, 0.15 * rows), " ".join(notes))
    axes = parts[0].subplots(1, len(shown), squeeze=False)[0]
    width = _GROUP / max(1, *map(len, groups))  # in all panels
    first = list(map(name_of, panels[shown[0]]))
    for place, (axis, (view, panel)) in enumerate(zip(axes, panels.items(), strict=True)):
        names = list(map(name_of, panel))
        _panel(axis, panel, width)
        bars.names(axis, names, edge=0.45, fontsize=7)
        if place and names == first:
            axis.set_yticklabels([])
        style.title(axis, view.name, 48 // len(shown))
    style.legend_of_looks(legend, looks, _COLUMNS)
    return result


def _without(
    view: View,
    keys: Iterable[Key],
    others: Sequence[str],
    timed: Container[str],
    called: Mapping[str, str],
    name_of: Callable[[Key], str],
) -> str:
    """Name the methods that have no time on a machine, or none in some cases, with what its rows say; one without rows
    where another machine shown has its time."""
    notes: list[tuple[str, str]] = []
    for method in others:
        numbers = {name_of(key): view.frame.find(key.but(method=method)) for key in keys}
        entered = {case: number for case, number in numbers.items() if number and number.text}
        failed = {case: number.reason for case, number in entered.items() if number.absent}
        notes += _in_cases(called[method], failed, list(entered))
        if not entered and method in timed:
            notes.append((called[method], NOT_THERE))
    said = by_reason(notes)
    return f"No time on {view.name}. {said}." if said else ""


def _hollow(view: View, panel: Panel, called: Mapping[str, str], name_of: Callable[[Key], str]) -> str:
    """Name the methods whose answer differs on a machine, and Octopus where its does, with what the rows say."""
    notes: list[tuple[str, str]] = []
    for method in dict.fromkeys(name for there in panel.values() for name in there):
        drawn = {name_of(key): there[method].differs for key, there in panel.items() if method in there}
        notes += _in_cases(called[method], {case: note for case, note in drawn.items() if note}, list(drawn))
    said, own = by_reason(notes), {mark.own for there in panel.values() for mark in there.values()} - {""}
    hollow = [f"Hollow on {view.name}, the answer differs. {said}."] if said else []
    return " ".join(hollow + [f"{DIFFERENT}: Octopus' answer differs, {why}." for why in sorted(own)])


def _in_cases(name: str, notes: Mapping[str, str], cases: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield a method's name with each note of another reason: with the cases that it holds for, or does not, unless it
    holds for all."""
    by: dict[str, list[str]] = {}
    for case, note in notes.items():
        by.setdefault(note, []).append(case)
    for held in by.values():
        rest = [case for case in cases if case not in held]
        few, but = min((held, ""), (rest, "but for "), key=lambda named: len(named[0]))
        yield f"{name} ({but}{'; '.join(few)})" if rest else name, notes[held[0]]


def _timed(view: View, key: Key, others: Sequence[str], own: Mapping[str, str]) -> dict[str, Mark]:
    """Return the marks of a case, by the other method."""
    keys = {method: key.but(method=own.get(method, SUBJECT)) for method in others}
    return {
        method: Mark(number, _differs(view, key.but(method=method)), _differs(view, mine))
        for method, mine in keys.items()
        if (number := view.get(mine.speedup(method)))
    }


def _differs(view: View, key: Key) -> str:
    number = view.get(key)
    return number.reason if number and number.differs else ""


def _look(method: str) -> dict[str, str]:
    return {"color": METHOD_COLORS[method], "marker": METHOD_MARKERS.get(method, "o")}


def _panel(axis: Axes, panel: Panel, width: float) -> None:
    least = highest = 1.0
    for place, there in enumerate(panel.values()):
        for index, (method, (number, differs, own)) in enumerate(there.items()):
            at = place + width * (index - (len(there) - 1) / 2)
            bars.ratio(axis, at, number, f" {DIFFERENT}" if own else "", hollow=bool(differs), **_look(method))
            ends = [end for end in (number.value, number.low, number.high) if end == end]
            least, highest = min(least, *ends), max(highest, *ends)
    axis.axvline(1, color=METHOD_COLORS[SUBJECT], linewidth=1.2)
    axis.set(xscale="log", xlabel="Time / time of Octopus")
    axis.set_xlim(0.93 * least**1.15, highest**1.25 * 1.15)
    style.near_log(axis.xaxis)
