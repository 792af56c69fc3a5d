"""What a search by every thread and a lookup table cost against Octopus, over the number of items."""

from __future__ import annotations

from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from octopus_study.report import mapping
from octopus_study.report.captions import scope_name
from octopus_study.report.figures import style
from octopus_study.report.labels import DISTRIBUTIONS, PUBLISHED_MACHINES, human
from octopus_study.report.mapping import NO_RUN, STUDY
from octopus_study.report.numbers import Number, Numbers

__all__ = ["NO_RUN", "STUDY", "figure"]
OPERATION = "multiply"
_BANDS = {"t4": style.SKY, "jetson-orin-nano": style.YELLOW}


class Line(NamedTuple):
    """A pair of methods whose ratio is drawn, and how."""

    method: str
    other: str
    label: str
    dashes: str


LINES = (
    Line("octopus", "thread-search-scalar", "Octopus over B, one element", "-"),
    Line("octopus", "thread-search", "Octopus over B", "-"),
    Line("octopus", "lookup", "Octopus over A", "-"),
    Line("block-metadata", "thread-search-scalar", "C over B, one element (as published)", "--"),
)


def figure(numbers: Numbers) -> Figure:
    """Draw one row of panels per machine, one panel per distribution; bands are published for C over B."""
    scopes = [scope for scope in numbers.scopes(STUDY) if mapping.distributions(numbers, scope)]
    if not scopes:
        return style.words(style.new_figure(1.2)[0], mapping.NO_TIMES)
    result, parts, legend = style.stacked([2.15] * len(scopes), 0.4)
    shown = []
    for part, scope in zip(parts, scopes, strict=True):
        axes = part.subplots(1, len(DISTRIBUTIONS), squeeze=False, sharey=True)[0]
        part.suptitle(
            f"{scope_name(numbers, scope)}: multiply, float32",
            fontsize=8.5,
            fontweight="bold",
            x=0.005,
            ha="left",
        )
        for axis, name in zip(axes, DISTRIBUTIONS, strict=True):
            _panel(axis, numbers, scope, name)
            shown.append(axis)
        axes[0].set(yscale="log", ylabel="Ratio of times")
        low, high = axes[0].get_ylim()
        axes[0].set_ylim(min(low, 0.8), max(high, 4.0))
        style.near_log(axes[0].yaxis)
    style.legend_of(legend, shown, 3, fontsize=6.8)
    return result


def _panel(axis: Axes, numbers: Numbers, scope: str, distribution: str) -> None:
    for machine, color in _BANDS.items():
        band = numbers[f"published.block_metadata_gain.{machine}.memory-bound.speedup_over_thread_search"]
        label = f"C over B, {human(PUBLISHED_MACHINES, machine)}, published"
        axis.axhspan(band.low, band.high, color=color, alpha=0.35, linewidth=0, label=label)
    axis.axhline(1, color=style.BLACK, linewidth=0.7)
    axis.set_title(human(DISTRIBUTIONS, distribution), fontsize=8, fontweight="normal")
    axis.set(xscale="log", xlabel="Items")
    counts = mapping.counts(numbers, scope, distribution, OPERATION)
    if not counts:
        axis.set_xticks([])
        axis.set_xticks([], minor=True)
        axis.annotate(
            "Not measured", (0.5, 0.55), xycoords="axes fraction", ha="center", fontsize=7, color=style.GREY
        )
        return
    for line in LINES:
        found = [(n, mapping.ratio(numbers, scope, (distribution, OPERATION, n), line[:2])) for n in counts]
        _line(axis, line, [(n, number) for n, number in found if number])
    axis.set_xticks(counts, [f"{n // 1000} K" if n >= 1000 else str(n) for n in counts])
    axis.set_xticks([], minor=True)
    axis.set_xlim(min(counts) / 1.4, max(counts) * 1.4)


def _line(axis: Axes, line: Line, points: list[tuple[int, Number]]) -> None:
    if not points:
        return
    spans = [style.errors([number]) for _, number in points]
    named = line.other if line.method == "octopus" else line.method
    axis.errorbar(
        [n for n, _ in points],
        [number.value for _, number in points],
        yerr=[[span[side][0] for span in spans] for side in (0, 1)],
        label=line.label,
        color=style.METHOD_COLORS[named],
        marker=style.METHOD_MARKERS[named],
        linestyle=line.dashes,
        linewidth=1.1,
        capsize=1.5,
    )
