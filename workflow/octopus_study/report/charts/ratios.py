"""Times of other methods as multiples of that of Octopus: a panel per machine, a group of bars per case."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from octopus_study.report.charts import bars, style
from octopus_study.report.charts.palette import METHOD_COLORS
from octopus_study.report.frame import Key, Number
from octopus_study.report.labels import human
from octopus_study.report.measured import SUBJECT
from octopus_study.report.view import View

_GROUP = 0.8  # of the distance between two cases
_COLUMNS = 3  # of the legend


def draw(
    shown: Sequence[View],
    cases: Callable[[View], list[Key]],
    others: Sequence[str],
    labels: Mapping[str, str],
    name_of: Mapping[str, str],
    height: float,
) -> Figure:
    """Draw the whole time of each case, which `name_of` names by its workload.

    Parameters
    ----------
    shown : sequence of View
    cases : callable
        The cases of a machine, as keys of Octopus' times.
    others : sequence of str
        The other methods, in their order; `labels` has their names, and Octopus' own.
    height : float
        Of the panels, in inches.
    """
    note = " ".join(filter(None, (_note(view, cases(view), others, labels, name_of) for view in shown)))
    rows = -(-(1 + len(others)) // _COLUMNS)
    result, parts, legend = style.stacked([height], max(0.4, 0.15 * rows), note)
    axes = parts[0].subplots(1, len(shown), squeeze=False)[0]
    bars_of = [[_timed(view, key, others) for key in cases(view)] for view in shown]
    width = _GROUP / max(1, *(len(timed) for panel in bars_of for timed in panel))  # in all panels
    for place, (axis, view) in enumerate(zip(axes, shown, strict=True)):
        keys = cases(view)
        _panel(axis, bars_of[place], width, labels)
        bars.names(axis, [name_of[key.workload] for key in keys], edge=0.45, fontsize=7)
        if place and [key.workload for key in keys] == [key.workload for key in cases(shown[0])]:
            axis.set_yticklabels([])
        style.title(axis, view.name, 48 // len(shown))
    style.legend_of(legend, list(axes), _COLUMNS)
    return result


def _note(
    view: View, keys: list[Key], others: Sequence[str], labels: Mapping[str, str], name_of: Mapping[str, str]
) -> str:
    """Name the methods that no case has on a machine, and those that failed in some, with these cases."""
    names = []
    for method in others:
        name = human(dict(labels), method)
        if any(view.get(key.speedup(method)) for key in keys):
            failed = [key for key in keys if view.text(key.but(method=method)).startswith("unavailable: ")]
            names += [f"{name} ({'; '.join(name_of[key.workload] for key in failed)})"] if failed else []
        else:
            names.append(name)
    return f"No time on {view.name}: {'; '.join(names)}." if names else ""


def _timed(view: View, key: Key, others: Sequence[str]) -> dict[str, Number]:
    """Return the speed-ups of a case, by the other method."""
    return {method: number for method in others if (number := view.get(key.speedup(method)))}


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
