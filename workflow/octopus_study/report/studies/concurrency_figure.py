"""The figure of two models on one GPU: makespans between their bounds."""

import textwrap
from functools import partial

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from octopus_study.names import CONCURRENCY_ARMS, CONCURRENCY_MODELS
from octopus_study.report.charts import bars, style
from octopus_study.report.charts.palette import BLACK, CONCURRENCY_COLORS
from octopus_study.report.frame import Frame, Key, Number
from octopus_study.report.missing import by_reason, with_reasons
from octopus_study.report.view import View, views
from octopus_study.units import significant

STUDY, PAIR, BASE = "concurrency", "two-models", "sequential"
ALONE = tuple(f"{model}-alone" for model in CONCURRENCY_MODELS)
_NO_TIMES = "No run of the study concurrency that is shown ran two models."
_ROW = 0.19  # inches
no_times = partial(with_reasons, study=STUDY, sentence=_NO_TIMES)


def makespan(view: View, method: str, pair: str = PAIR) -> Key:
    """Return the key of the time until both results of a frame pair are there."""
    return view.key(pair, 2, method, quantity="makespan", layer="host")


def timed(view: View) -> dict[str, Number]:
    """Return the makespans of a machine, each model alone first; none where it never ran both."""
    numbers = {method: view.get(makespan(view, method)) for method in CONCURRENCY_ARMS}
    known = {method: number for method, number in numbers.items() if number}
    return known if known.keys() - set(ALONE) else {}


def draw_makespans(frame: Frame) -> Figure:
    """Draw the time until both results are there, one panel per machine, between the longer model and the sum of
    both."""
    shown = [view for view in views(frame, STUDY) if timed(view)]
    if not shown:
        return style.empty(no_times(frame))
    heights = [0.75 + _ROW * len(timed(view)) for view in shown]
    result, parts, legend = style.stacked(heights, 0.25, " ".join(filter(None, map(_note, shown))))
    axes = [part.subplots(1, 1, squeeze=False)[0][0] for part in parts]
    for axis, view in zip(axes, shown, strict=True):
        axis.set_title(view.name)
        _makespans(axis, view)
    style.legend_of(legend, axes, 2)
    return result


def _note(view: View) -> str:
    """Name the ways that a machine lacks, with the reasons."""
    reasons = {name: view.reason(makespan(view, method)) for method, name in CONCURRENCY_ARMS.items()}
    said = by_reason((name, why) for name, why in reasons.items() if why)
    return f"No time on {view.name}. {said}." if said else ""


def _makespans(axis: Axes, view: View) -> None:
    numbers = timed(view)
    for place, (method, number) in enumerate(numbers.items()):
        bars.bar(axis, place, number, height=0.74, color=CONCURRENCY_COLORS[method])
        share = _share_text(view.get(view.key("arms", method=method, quantity="overlap")))
        bars.beside(axis, place, bars.end_of(number), f"{number.text}{share}", bbox=style.BEHIND)
    alone = [numbers[name].value for name in ALONE if name in numbers]
    bounds = (("The longer model alone", "--", max), ("Sum of both models alone", ":", sum))
    for label, line, of in bounds if len(alone) == len(ALONE) else ():
        axis.axvline(of(alone), color=BLACK, linestyle=line, linewidth=1.0, label=label, zorder=2.5)
    bars.names(axis, [textwrap.fill(CONCURRENCY_ARMS[name], 30) for name in numbers], edge=0.45, fontsize=7)
    # Room for the words behind the longest bar.
    axis.set_xlim(0, 1.42 * max(number.value for number in numbers.values()))
    axis.set_xlabel("Time per frame pair (ms)")


def _share_text(number: Number | None) -> str:
    """Say which part of the shorter model was hidden, where both ran."""
    if number is None:
        return ""
    share = f"{significant(100 * abs(number.value), 2)} %"
    if number.low > 0:
        return f", {share} hidden"
    return f", {share} lost" if number.high < 0 else ", nothing hidden"
