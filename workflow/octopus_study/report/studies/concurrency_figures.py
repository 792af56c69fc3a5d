"""Two models on one GPU, drawn: makespans between their bounds, and what each model's result takes."""

from __future__ import annotations

import textwrap
from functools import partial
from typing import TYPE_CHECKING

from octopus_study.names import CONCURRENCY_ARMS, CONCURRENCY_MODELS
from octopus_study.report.charts import bars, style
from octopus_study.report.charts.palette import BLACK, BLUE, CONCURRENCY_COLORS, GREY, VERMILION
from octopus_study.report.frame import Frame, Key, Number
from octopus_study.report.missing import by_reason, with_reasons
from octopus_study.report.text import significant
from octopus_study.report.view import View, views

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STUDY = "concurrency"
PAIR = "two-models"
ALONE = tuple(f"{model}-alone" for model in CONCURRENCY_MODELS)
_NO_TIMES = "No run of the study concurrency that is shown ran two models."
_NO_LATENCIES = "No run of the study concurrency that is shown has latencies."
_ROW = 0.19  # inches
_BOUNDS = {"longer": ("The longer model alone", "--"), "sum": ("Sum of both models alone", ":")}
# The critical model goes first.
_COLORS = dict(zip(CONCURRENCY_MODELS, (BLUE, VERMILION), strict=True))
no_times = partial(with_reasons, study=STUDY, sentence=_NO_TIMES)


def makespan(view: View, method: str) -> Key:
    """Return the key of the time until both results of a frame pair are there."""
    return view.key(PAIR, 2, method, quantity="makespan", layer="host")


def timed(view: View) -> dict[str, Number]:
    """Return the makespans of a machine, each model alone first; none where it never ran both."""
    numbers = {method: view.get(makespan(view, method)) for method in CONCURRENCY_ARMS}
    known = {method: number for method, number in numbers.items() if number}
    return known if known.keys() - set(ALONE) else {}


def latency(view: View, model: str, method: str, name: str) -> Number | None:
    """Return a percentile of what a model's result takes."""
    return view.get(view.key(f"latency.{model}", method=method, quantity=name))


def late(view: View, model: str, method: str) -> Number | None:
    """Return the 99th percentile of what a model's result takes, or the longest where there are too few iterations."""
    return latency(view, model, method, "p99") or latency(view, model, method, "max")


def hidden(view: View, method: str) -> Number | None:
    """Return the share of the shorter model that a way hides."""
    return view.get(view.key("arms", method=method, quantity="overlap"))


def _note(view: View) -> str:
    """Name the ways that a machine lacks, with the reasons."""
    texts = {name: view.text(makespan(view, method)) for method, name in CONCURRENCY_ARMS.items()}
    said = by_reason((name, text) for name, text in texts.items() if text.startswith("unavailable"))
    return f"No time on {view.name}. {said}." if said else ""


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


def _makespans(axis: Axes, view: View) -> None:
    numbers = timed(view)
    for place, (method, number) in enumerate(numbers.items()):
        bars.bar(axis, place, number, height=0.74, color=CONCURRENCY_COLORS[method])
        text = f"{number.text}{_share_text(hidden(view, method))}"
        bars.beside(axis, place, bars.end_of(number), text, bbox=style.BEHIND)
    for name, (label, line) in _BOUNDS.items():
        bound = view.get(view.key("bounds", quantity=name))
        if bound:
            axis.axvline(bound.value, color=BLACK, linestyle=line, linewidth=1.0, label=label, zorder=2.5)
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


def draw_latencies(frame: Frame) -> Figure:
    """Draw the median and the late iterations of each model's result, a row of panels per machine."""
    shown = [view for view in views(frame, STUDY) if _with_latencies(view)]
    if not shown:
        some = any(map(timed, views(frame, STUDY)))
        return style.empty(_NO_LATENCIES if some else no_times(frame))
    heights = [1.0 + _ROW * len(_with_latencies(view)) for view in shown]
    result, parts, legend = style.stacked(heights, 0.25, " ".join(filter(None, map(_note, shown))))
    drawn: list[Axes] = []
    for part, view in zip(parts, shown, strict=True):
        axes = part.subplots(1, len(CONCURRENCY_MODELS), squeeze=False)[0]
        style.heading(part, view.name)
        for axis, model in zip(axes, CONCURRENCY_MODELS, strict=True):
            _latencies(axis, view, model)
        axes[1].set_yticklabels([])
        part.supxlabel("Latency (ms)", fontsize=8)
        drawn += list(axes)
    style.legend_of(legend, drawn, 3)
    return result


def _with_latencies(view: View) -> list[str]:
    """Return the ways to run both models with latencies of some model."""
    together = [method for method in CONCURRENCY_ARMS if method not in ALONE] if timed(view) else []
    return [
        name for name in together if any(latency(view, model, name, "p50") for model in CONCURRENCY_MODELS)
    ]


def _latencies(axis: Axes, view: View, model: str) -> None:
    methods, farthest = _with_latencies(view), 0.0
    for place, method in enumerate(methods):
        middle, end = latency(view, model, method, "p50"), late(view, model, method)
        if middle and end:
            _latency(axis, place, _COLORS[model], middle, end)
            farthest = max(farthest, end.value)
    alone = view.get(makespan(view, f"{model}-alone"))
    if alone:
        axis.axvline(alone.value, color=GREY, linestyle="--", linewidth=0.9, label="Alone", zorder=0.9)
    axis.set_title(CONCURRENCY_MODELS[model], fontsize=8, fontweight="normal")
    bars.names(axis, [CONCURRENCY_ARMS[method] for method in methods], edge=0.45, fontsize=7)
    axis.set_xlim(0, 1.18 * farthest if farthest else 1)


def _latency(axis: Axes, place: int, color: str, middle: Number, end: Number) -> None:
    axis.plot([middle.value, end.value], [place, place], color=color, linewidth=1.2, zorder=1)
    look = {"color": BLACK, "linestyle": ""}
    axis.plot(middle.value, place, marker="o", **look, label="Median")
    marker, label = ("|", "99th percentile") if end.quantity == "p99" else ("x", "Longest")
    axis.plot(end.value, place, marker=marker, **look, markersize=7, label=label)
    for number, gap, side in ((end, 5, "left"), (middle, -5, "right")):
        options = {"ha": side, "fontsize": 6, "bbox": style.BEHIND}
        bars.beside(axis, place, number.value, number.text.removesuffix(" ms"), gap, **options)
