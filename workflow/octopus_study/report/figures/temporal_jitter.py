"""How far the frames of a sequence with nearly the same boxes differ in time."""

from __future__ import annotations

import textwrap

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from octopus_study.report.captions import generated_boxes, scope_name, workloads
from octopus_study.report.figures import style
from octopus_study.report.numbers import Number, Numbers

STUDY = "distribution"


def figure(numbers: Numbers) -> Figure:
    """Draw each machine's frame medians, relative to the mean of its frames; one column wide."""
    scopes = [scope for scope in numbers.scopes(STUDY) if _frames(numbers, scope)]
    result, axes = style.new_figure(2.1 + 0.15 * len(scopes), width=style.COLUMN)
    axis = axes[0, 0]
    axis.axhline(0, color=style.GREY, linewidth=0.8)
    for index, scope in enumerate(scopes):
        _line(axis, numbers, scope, index, len(scopes))
    axis.set(xlabel="Frame", ylabel="Difference from\nthe mean frame (%)")
    axis.set_title(textwrap.fill(f"Temporal: {generated_boxes(numbers)}", 48), fontsize=7)
    style.bottom_legend([axis], 1, fontsize=6.5)
    return result


def _frames(numbers: Numbers, scope: str) -> list[tuple[int, Number]]:
    found = numbers.matching(rf"{scope}\.{STUDY}\.temporal\.n\d+\.octopus-frame-(\d+)\.frame_time\.host")
    return sorted((int(match[1]), number) for match, number in found)


def _line(axis: Axes, numbers: Numbers, scope: str, index: int, machines: int) -> None:
    """Draw one machine, a little beside the others; its label names the mean of the frames, their spread, and how
    far a frame differs from itself."""
    frames = _frames(numbers, scope)
    measured = [number for _, number in frames]
    prefix = f"{workloads(numbers, scope)['temporal']}.octopus"
    mean, spread = numbers[f"{prefix}.frame_time.host.mean"], numbers[f"{prefix}.frame_time.host.spread"]
    noise = numbers.get(f"{prefix}.end_to_end.host.noise_floor")
    facts = [f"mean {mean.text}", f"spread {spread.text}"] + ([f"noise floor {noise.text}"] if noise else [])
    facts = [fact.replace(" ", "\u00a0") for fact in facts]
    axis.errorbar(
        [frame + 0.12 * (index - (machines - 1) / 2) for frame, _ in frames],
        [100 * (number.value / mean.value - 1) for number in measured],
        yerr=style.errors(measured, 100 / mean.value),
        fmt=f"{style.MACHINE_MARKERS[index]}-",
        color=style.MACHINE_COLORS[index],
        markersize=3.5,
        linewidth=1,
        capsize=1.5,
        label=textwrap.fill(f"{scope_name(numbers, scope)}: {', '.join(facts)}", 58),
    )
    axis.set_xticks([frame for frame, _ in frames])
