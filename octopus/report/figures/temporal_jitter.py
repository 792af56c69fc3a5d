"""How far the frames of a sequence with nearly the same boxes differ in time."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from octopus.report.captions import scope_name, workloads
from octopus.report.figures import style
from octopus.report.numbers import Number, Numbers
from octopus.report.text import quantity_text

STUDY = "distribution"
_NOISE = "Noise floor: the same method entered twice"


def figure(numbers: Numbers) -> Figure:
    """Draw one panel per machine: each frame's median, relative to the mean of all frames."""
    scopes = [scope for scope in numbers.scopes(STUDY) if _frames(numbers, scope)]
    result, axes = style.new_figure(2.6, 1, max(1, len(scopes)), sharey=True)
    for axis, scope in zip(axes[0], scopes, strict=False):
        _panel(axis, numbers, scope)
    style.bottom_legend(list(axes[0]), 2)
    axes[0, 0].set_ylabel("Time of a frame,\ndifference from the mean (%)")
    return result


def _frames(numbers: Numbers, scope: str) -> list[tuple[int, Number]]:
    found = numbers.matching(rf"{scope}\.{STUDY}\.temporal\.n\d+\.octopus-frame-(\d+)\.frame_time\.host")
    return sorted((int(match[1]), number) for match, number in found)


def _panel(axis: Axes, numbers: Numbers, scope: str) -> None:
    frames = _frames(numbers, scope)
    mean = sum(number.value for _, number in frames) / len(frames)
    measured = [number for _, number in frames]
    axis.axhline(0, color=style.GREY, linewidth=0.8)
    noise = numbers.get(f"{workloads(numbers, scope)['temporal']}.octopus.end_to_end.host.noise_floor")
    if noise:
        axis.axhspan(
            -100 * noise.value, 100 * noise.value, color=style.LIGHT, alpha=0.6, linewidth=0, label=_NOISE
        )
    axis.errorbar(
        [frame for frame, _ in frames],
        [100 * (number.value / mean - 1) for number in measured],
        yerr=style.errors(measured, 100 / mean),
        fmt="o-",
        color=style.BLUE,
        capsize=2,
        label="Median and 95 % interval",
    )
    axis.set_xticks([frame for frame, _ in frames])
    jitter = next((n for _, n in numbers.matching(rf"{scope}\.{STUDY}\.temporal\.n\d+\..*\.jitter")), None)
    facts = [f"mean {quantity_text(mean, 'ms')}"] + ([f"jitter {jitter.text}"] if jitter else [])
    axis.set_xlabel(f"Frame\n{', '.join(facts)}")
    style.title(axis, scope_name(numbers, scope))
