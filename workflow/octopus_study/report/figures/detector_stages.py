"""Where the time of a frame goes in a detector, prepared by Octopus or on the CPU."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from octopus_study.report import detector
from octopus_study.report.captions import scope_name
from octopus_study.report.detector import STUDY
from octopus_study.report.figures import style
from octopus_study.report.labels_edge import DETECTOR_METHODS, DETECTOR_STAGES
from octopus_study.report.numbers import Numbers
from octopus_study.report.text import quantity_text, reason

__all__ = ["STUDY", "WITHOUT_RUN", "figure", "footer"]
# Published times stand for themselves where nothing was measured.
WITHOUT_RUN = True
_PUBLISHED = {"gpu-preprocessing": "On the GPU", "cpu-preprocessing": "On the CPU"}


def figure(numbers: Numbers) -> Figure:
    """Draw a panel with the published times, and one per machine."""
    scopes = detector.measured(numbers)
    result, parts, legend = style.stacked([1.75], 0.25, _note(numbers))
    axes = parts[0].subplots(1, 1 + len(scopes), squeeze=False)[0]
    _published(axes[0], numbers)
    for place, (axis, scope) in enumerate(zip(axes[1:], scopes, strict=True)):
        _machine(axis, numbers, scope)
        if place:
            axis.set_yticklabels([])
    handles = [
        Patch(color=style.DETECTOR_COLORS[name], label=label) for name, label in DETECTOR_STAGES.items()
    ]
    whole = Patch(facecolor="white", edgecolor=style.GREY, label="The whole, timed on its own")
    legend.legend(handles=[*handles, whole] if scopes else [whole], loc="center", ncols=4)
    return result


def footer(numbers: Numbers) -> str:
    """Say what the figure rests on."""
    shown = numbers.text(f"shown.{STUDY}")
    return f"Measured on: {shown}." if detector.measured(numbers) else "Nothing was measured."


def _note(numbers: Numbers) -> str:
    """Say what isn't shown: machines without a detector, and what of Octopus stands for the published arms."""
    if not numbers.scopes(STUDY):
        return f"{detector.NO_RUN} Only the published values are shown."
    parts = [
        f"No time on {scope_name(numbers, scope)}{f': {reason(why)}' if why else ''}."
        for scope, why in detector.without(numbers).items()
    ]
    return " ".join(parts)


def _published(axis: Axes, numbers: Numbers) -> None:
    values = [numbers[f"published.derived.detector.{name}.frame_time"] for name in _PUBLISHED]
    for position, number in enumerate(values):
        axis.barh(position, number.value, height=0.6, facecolor="white", edgecolor=style.GREY)
        _total(axis, position, number.value)
    _finish(axis, max(number.value for number in values), list(_PUBLISHED.values()))
    axis.set_title("Jetson Orin Nano, as published", fontsize=7.5, fontweight="normal")


def _machine(axis: Axes, numbers: Numbers, scope: str) -> None:
    """Draw the medians of the stages one after the other, and the whole as it was timed."""
    known = [name for name in detector.METHODS if detector.time_of(numbers, scope, name, "end_to_end")]
    longest = 0.0
    for position, method in enumerate(known):
        passed = 0.0
        for stage in detector.STAGES:
            number = detector.time_of(numbers, scope, method, stage)
            if number is not None:
                color = style.DETECTOR_COLORS[stage]
                axis.barh(position, number.value, left=passed, height=0.6, color=color)
                passed += number.value
        whole = detector.time_of(numbers, scope, method, "end_to_end")
        axis.barh(position, whole.value, height=0.6, facecolor="none", edgecolor=style.GREY)
        longest = max(longest, passed, whole.value)
        _total(axis, position, whole.value, max(passed, whole.value))
    _finish(axis, longest, [DETECTOR_METHODS[name] for name in known])
    title = f"{scope_name(numbers, scope)}\n{detector.model_name(numbers, scope)}"
    axis.set_title(title, fontsize=7, fontweight="normal")


def _total(axis: Axes, position: float, value: float, end: float | None = None) -> None:
    options = {"va": "center", "fontsize": 6.2, "textcoords": "offset points"}
    axis.annotate(quantity_text(value, "ms"), (value if end is None else end, position), (3, 0), **options)


def _finish(axis: Axes, longest: float, names: list[str]) -> None:
    axis.set_xlim(0, 1.35 * longest)
    axis.set_ylim(len(names) - 0.4, -0.6)
    axis.set_yticks(range(len(names)), names, fontsize=6.8)
    axis.set_xlabel("Time of a frame (ms)")
    axis.grid(axis="y", visible=False)
    axis.tick_params(axis="y", length=0)
