"""What each model's result takes, way by way: the median, and the iterations that are later than 99 of 100."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from octopus_study.report import concurrency
from octopus_study.report.captions import scope_name
from octopus_study.report.concurrency import NO_RUN, STUDY, footer
from octopus_study.report.figures import style
from octopus_study.report.figures.concurrency_makespan import note
from octopus_study.report.labels import CONCURRENCY_ARMS, CONCURRENCY_MODELS
from octopus_study.report.numbers import Numbers

__all__ = ["NO_RUN", "STUDY", "figure", "footer"]
NO_LATENCIES = "No run of the study concurrency that is shown has latencies."
_ROW = 0.19  # inches
_CRITICAL = "visual-odometry"


def figure(numbers: Numbers) -> Figure:
    """Draw one row of panels per machine, a panel per model; the critical model is the one that goes first."""
    scopes = [scope for scope in concurrency.measured(numbers) if _arms(numbers, scope)]
    if not scopes:
        absent = NO_LATENCIES if concurrency.measured(numbers) else concurrency.no_times(numbers)
        return style.words(style.new_figure(1.2)[0], absent)
    heights = [1.0 + _ROW * len(_arms(numbers, scope)) for scope in scopes]
    notes = " ".join(filter(None, (note(numbers, scope) for scope in scopes)))
    result, parts, legend = style.stacked(heights, 0.25, notes)
    shown = []
    for part, scope in zip(parts, scopes, strict=True):
        axes = part.subplots(1, len(concurrency.MODELS), squeeze=False)[0]
        part.suptitle(scope_name(numbers, scope), fontsize=8.5, fontweight="bold", x=0.005, ha="left")
        for place, (axis, model) in enumerate(zip(axes, concurrency.MODELS, strict=True)):
            _panel(axis, numbers, scope, model, named=place == 0)
        part.supxlabel("Latency (ms)", fontsize=8)
        shown += list(axes)
    style.legend_of(legend, shown, 3)
    return result


def _arms(numbers: Numbers, scope: str) -> list[str]:
    """Return the ways with latencies of some model."""
    return [
        arm
        for arm in concurrency.TOGETHER
        if any(concurrency.latency(numbers, scope, model, arm, "p50") for model in concurrency.MODELS)
    ]


def _panel(axis: Axes, numbers: Numbers, scope: str, model: str, named: bool) -> None:
    arms, color = _arms(numbers, scope), style.BLUE if model == _CRITICAL else style.VERMILION
    farthest = 0.0
    for place, arm in enumerate(arms):
        middle, late = (
            concurrency.latency(numbers, scope, model, arm, "p50"),
            concurrency.late(numbers, scope, model, arm),
        )
        if middle is None or late is None:
            continue
        percentile = late.id.endswith(".p99")
        axis.plot([middle.value, late.value], [place, place], color=color, linewidth=1.2, zorder=1)
        look = {"color": style.BLACK, "linestyle": ""}
        axis.plot(middle.value, place, marker="o", **look, label="Median")
        label = "99th percentile" if percentile else "Longest"
        axis.plot(late.value, place, marker="|" if percentile else "x", **look, markersize=7, label=label)
        options = {"fontsize": 6, "textcoords": "offset points", "va": "center", "bbox": style.BEHIND}
        axis.annotate(late.text.removesuffix(" ms"), (late.value, place), (5, 0), **options)
        axis.annotate(middle.text.removesuffix(" ms"), (middle.value, place), (-5, 0), ha="right", **options)
        farthest = max(farthest, late.value)
    alone = concurrency.makespan(numbers, scope, f"{model}-alone")
    if alone:
        axis.axvline(alone.value, color=style.GREY, linestyle="--", linewidth=0.9, label="Alone", zorder=0.9)
    axis.set_title(CONCURRENCY_MODELS[model], fontsize=8, fontweight="normal")
    axis.set_yticks(range(len(arms)), [CONCURRENCY_ARMS[arm] for arm in arms] if named else [], fontsize=7)
    axis.set_ylim(len(arms) - 0.45, -0.55)
    axis.set_xlim(0, 1.18 * farthest if farthest else 1)
    axis.grid(axis="y", visible=False)
    axis.tick_params(axis="y", length=0)
