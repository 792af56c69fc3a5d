"""Bytes that say who owns which element, strategy by strategy, over the number of elements."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from octopus_study.report import mapping
from octopus_study.report.figures import style
from octopus_study.report.labels import DISTRIBUTIONS, STRATEGIES, human
from octopus_study.report.mapping import NO_RUN, STUDY
from octopus_study.report.numbers import Numbers

__all__ = ["NO_RUN", "STUDY", "figure"]
NO_MAPS = "No run of the study mapping that is shown counted the bytes of a map."
# Offsets are all that a search by every thread needs too: one line stands for both.
_METHODS = ("lookup", "block-metadata", "block-metadata-tuned", "octopus")
_LABELS = {"octopus": "B and D: offsets"}


def figure(numbers: Numbers) -> Figure:
    """Draw one panel per distribution; bytes depend on no machine, so each is that of the machine with most items."""
    result, parts, legend = style.stacked([2.4], 0.42)
    axes = parts[0].subplots(1, len(DISTRIBUTIONS), squeeze=False, sharex=True, sharey=True)[0]
    drawn = [_panel(axis, numbers, name) for axis, name in zip(axes, DISTRIBUTIONS, strict=True)]
    if not any(drawn):
        return style.words(style.new_figure(1.2)[0], NO_MAPS)
    axes[0].set(yscale="log", ylabel="Bytes of the map")
    axes[0].set_yticks([10.0**power for power in range(3, 11, 2)])
    axes[0].set_yticklabels(["1 kB", "100 kB", "10 MB", "1 GB"])
    axes[0].set_yticks([], minor=True)
    low, high = axes[0].get_xlim()
    powers = [10.0**power for power in range(3, 13) if low <= 10.0**power <= high]
    axes[0].set_xticks(powers, [_elements(power) for power in powers])
    axes[0].set_xticks([], minor=True)
    style.legend_of(legend, list(axes), 3)
    return result


def _elements(count: float) -> str:
    return f"{count / 1e6:g} M" if count < 1e9 else f"{count / 1e9:g} G"


def _panel(axis: Axes, numbers: Numbers, distribution: str) -> bool:
    counts = {scope: mapping.map_counts(numbers, scope, distribution) for scope in numbers.scopes(STUDY)}
    scope = max(counts, key=lambda name: len(counts[name]), default="")
    axis.set_title(human(DISTRIBUTIONS, distribution), fontsize=8, fontweight="normal")
    axis.set(xscale="log", xlabel="Elements")
    if not counts.get(scope):
        return False
    for method in _METHODS:
        points = [
            (
                numbers.value(mapping.map_key(scope, distribution, n, "batch", "elements", "deterministic")),
                numbers.value(mapping.map_key(scope, distribution, n, method, "map_bytes", "deterministic")),
            )
            for n in counts[scope]
        ]
        known = [point for point in points if point[1] == point[1]]
        label = _LABELS.get(method, human(STRATEGIES, method))
        look = {"color": style.METHOD_COLORS[method], "marker": style.METHOD_MARKERS[method]}
        if known:
            axis.plot(*zip(*known, strict=True), label=label, **look)
    published = numbers["published.block_metadata_gain.any.500-megapixels.lookup_table"]
    look = {
        "color": style.METHOD_COLORS["lookup"],
        "marker": "s",
        "markerfacecolor": "white",
        "linestyle": "",
    }
    if distribution == "large":
        axis.plot(500e6, published.value * 1e9, label="A: lookup table, published", **look)
    return True
