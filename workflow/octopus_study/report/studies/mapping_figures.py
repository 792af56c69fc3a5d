"""Figures of the mapping strategies: what each costs against Octopus, over operations and over items, and the bytes of
its map."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from octopus_study.names import DISTRIBUTIONS, OPERATIONS, PUBLISHED_MACHINES, STRATEGIES, SUBJECT, human
from octopus_study.report.charts import lines, style
from octopus_study.report.charts.palette import BLACK, METHOD_COLORS, METHOD_MARKERS, SKY, YELLOW
from octopus_study.report.frame import Frame, Key, published
from octopus_study.report.studies.mapping_numbers import pair_of
from octopus_study.report.text import quantity_text, significant
from octopus_study.report.view import KERNEL, View, views

STUDY = "mapping"
NO_TIMES = "No run of the study mapping that is shown timed a kernel."
NO_MAPS = "No run of the study mapping that is shown counted the bytes of a map."
# What Octopus is compared with, from the table to the tuned blocks, all with several elements per thread.
OTHERS = ("lookup", "thread-search", "block-metadata", "block-metadata-tuned")
# The colours end at half and twice the time; numbers beyond keep the last colour.
_END = 2.0
_SHORT = {"blur5x5-sobel": "5\u00d75, Sobel", "blur3x3": "Blur 3\u00d73"}
# With more machines, a page has room for the most items alone.
_MOST_MACHINES = 2
_WHICH = {0: "fewest items", -1: "most items"}
_ROW, _HEAD = 0.165, 0.95  # inches of a strategy, and of title and operations
_SMALL = {"fontsize": 8, "fontweight": "normal"}
_BANDS = {"t4": SKY, "jetson-orin-nano": YELLOW}
# What a line is called -> its pair, or the width of block metadata and search; whose look it has; dashes.
_LINES: dict[str, tuple[tuple[str, str] | str, str, str]] = {
    "Octopus over A": ((SUBJECT, "lookup"), "lookup", "-"),
    "Octopus over B": ((SUBJECT, "thread-search"), "thread-search", "-"),
    "C over B": ("vector", "block-metadata", "--"),
    "C over B, one element in both (as published)": ("scalar", "block-metadata-scalar", "--"),
}
# Offsets are all that a search by every thread needs too: one line stands for both.
_MAPS = {
    "lookup": STRATEGIES["lookup"],
    "block-metadata": STRATEGIES["block-metadata"],
    "block-metadata-tuned": STRATEGIES["block-metadata-tuned"],
    SUBJECT: "B and D: offsets",
}


def timed(view: View, distribution: str, operation: str = "multiply") -> list[Key]:
    """Return the kernels of Octopus on a distribution, by ascending number of items."""
    return view.cases(SUBJECT, "kernel", (KERNEL,), order=[f"{distribution}-{operation}"])


def measured(frame: Frame) -> list[View]:
    """Return the machines that timed a kernel."""
    return [view for view in views(frame, STUDY) if any(timed(view, name) for name in DISTRIBUTIONS)]


def heatmap(frame: Frame) -> Figure:
    """Draw how much slower than Octopus each strategy is, for the fewest and the most items of each distribution, two
    rows of maps per machine."""
    rows = [(view, index) for view in measured(frame) for index in _indices(view)]
    if not rows:
        return style.empty(NO_TIMES)
    result, parts, legend = style.stacked([_HEAD + _ROW * len(OTHERS)] * len(rows), 0.6)
    image: Any = None
    for part, (view, index) in zip(parts, rows, strict=True):
        axes = part.subplots(1, len(DISTRIBUTIONS), squeeze=False)[0]
        style.heading(part, view.name + (f", {_WHICH[index]}" if len(_indices(view)) > 1 else ""))
        labelled = False
        for axis, name in zip(axes, DISTRIBUTIONS, strict=True):
            drawn = _map(axis, view, name, index, labels=not labelled)
            labelled, image = labelled or drawn is not None, drawn or image
    if image is not None:
        _colors(legend, image)
    return result


def _indices(view: View) -> list[int]:
    """Return which of the ascending numbers of items are shown: the first, and the last where there are several."""
    if len(views(view.frame, STUDY)) > _MOST_MACHINES:
        return [-1]
    return [0, -1] if any(len(timed(view, name)) > 1 for name in DISTRIBUTIONS) else [-1]


def _map(axis: Axes, view: View, distribution: str, index: int, labels: bool) -> Any:
    """Draw strategies by operations; return the image, None where there is nothing to draw."""
    keys, title = timed(view, distribution), human(DISTRIBUTIONS, distribution)
    axis.grid(visible=False)
    others = [name for name in OTHERS if view.select(quantity="kernel", derived="speedup", other=name)]
    if not keys or not others or (index == 0 and len(keys) == 1):
        axis.set_title(title, **_SMALL)
        axis.set_axis_off()
        few = "Only one number of items" if others else "Too few blocks to compare"
        style.gap(axis, few if keys else "Not measured", fontsize=7)
        return None
    names = [name for name in OPERATIONS if any(timed(view, other, name) for other in DISTRIBUTIONS)]
    key = keys[index]
    cases = [key.but(workload=f"{distribution}-{name}") for name in names]
    ratios = np.array([[view.frame.value(case.speedup(other)) for case in cases] for other in others])
    limit = math.log2(_END)
    image = axis.imshow(np.log2(ratios), cmap="RdBu", vmin=-limit, vmax=limit, aspect="auto")
    for (row, column), value in np.ndenumerate(ratios):
        _cell(axis, row, column, value)
    axis.set_title(f"{title}, {quantity_text(key.n, 'count')} items", **_SMALL)
    ticks = [_SHORT.get(name, human(OPERATIONS, name)) for name in names]
    axis.set_xticks(range(len(names)), ticks, fontsize=6, rotation=35, ha="right", rotation_mode="anchor")
    axis.set_yticks(range(len(others)))
    axis.set_yticklabels([human(STRATEGIES, name) for name in others] if labels else [], fontsize=6.5)
    axis.tick_params(length=0)
    return image


def _cell(axis: Axes, row: int, column: int, value: float) -> None:
    """Write a ratio on its colour; a dash where there is none."""
    dark = value == value and abs(math.log2(value)) > 0.75 * math.log2(_END)
    text = significant(value, 3 if value < 10 else 2) if value == value else "\u2013"
    axis.text(column, row, text, ha="center", va="center", fontsize=6, color="white" if dark else BLACK)


def _colors(part: Any, image: Any) -> None:
    """Draw the colour bar."""
    # Outside of the layout: a bar has no axes of its own to make room for.
    axis = part.add_axes((0.25, 0.66, 0.5, 0.2))
    bar = part.colorbar(image, cax=axis, orientation="horizontal", extend="both")
    ends = (1 / _END, 1 / math.sqrt(_END), 1.0, math.sqrt(_END), _END)
    bar.set_ticks([math.log2(end) for end in ends], labels=[f"{end:.3g}" for end in ends])
    bar.ax.tick_params(labelsize=6.5)
    bar.set_label("Time of the strategy / time of Octopus (above 1: Octopus is faster)", fontsize=7)


def scaling(frame: Frame) -> Figure:
    """Draw what a search by every thread and a lookup table cost against Octopus, and the search against block metadata
    of its width, over the number of items; one row of panels per machine, one panel per distribution; bands are
    published for C over B."""
    shown = measured(frame)
    if not shown:
        return style.empty(NO_TIMES)
    note = " ".join(filter(None, (_note(view) for view in shown)))
    result, parts, legend = style.stacked(style.per_machine(2.15, len(shown)), 0.4, note)
    drawn = []
    for part, view in zip(parts, shown, strict=True):
        axes = part.subplots(1, len(DISTRIBUTIONS), squeeze=False, sharey=True)[0]
        style.heading(part, f"{view.name}: multiply, float32")
        for axis, name in zip(axes, DISTRIBUTIONS, strict=True):
            _ratios(axis, view, name)
        axes[0].set(yscale="log", ylabel="Ratio of times")
        low, high = axes[0].get_ylim()
        axes[0].set_ylim(min(low, 0.8), max(high, 4.0))
        style.near_log(axes[0].yaxis)
        drawn += list(axes)
    style.legend_of(legend, drawn, 3, fontsize=6.8)
    return result


def _note(view: View) -> str:
    """Name the lines that a machine's rows lack."""
    keys = [key for name in DISTRIBUTIONS for key in timed(view, name)]
    pairs = {label: _pair(view, line[0]) for label, line in _LINES.items()}
    missing = [
        label
        for label, (method, other) in pairs.items()
        if not any(view.get(key.but(method=method).speedup(other)) for key in keys)
    ]
    return f"Not in the rows of {view.name}: {'; '.join(missing)}." if missing else ""


def _pair(view: View, pair: tuple[str, str] | str) -> tuple[str, str]:
    return pair_of(pair, view.is_gpu) if isinstance(pair, str) else pair


def _ratios(axis: Axes, view: View, distribution: str) -> None:
    for machine, color in _BANDS.items():
        gain = published("block_metadata_gain", machine, "memory-bound", "speedup_over_thread_search")
        band, label = view.frame[gain], f"C over B, {human(PUBLISHED_MACHINES, machine)}, published"
        axis.axhspan(band.low, band.high, color=color, alpha=0.35, linewidth=0, label=label)
    axis.axhline(1, color=BLACK, linewidth=0.7)
    axis.set_title(human(DISTRIBUTIONS, distribution), **_SMALL)
    axis.set(xscale="log", xlabel="Items")
    keys = timed(view, distribution)
    counts = [key.n for key in keys]
    axis.set_xticks(counts, [f"{n // 1000} K" if n >= 1000 else str(n) for n in counts])
    axis.set_xticks([], minor=True)
    if not keys:
        style.gap(axis, "Not measured", 0.55, fontsize=7)
        return
    for label, (pair, named, dashes) in _LINES.items():
        method, other = _pair(view, pair)
        numbers = [(key.n, view.get(key.but(method=method).speedup(other))) for key in keys]
        look = {"color": METHOD_COLORS[named], "marker": METHOD_MARKERS[named], "linestyle": dashes}
        points = [(n, number) for n, number in numbers if number]
        lines.line(axis, points, label=label, linewidth=1.1, capsize=1.5, **look)
    axis.set_xlim(min(counts) / 1.4, max(counts) * 1.4)


def memory(frame: Frame) -> Figure:
    """Draw the bytes that say who owns which element over the number of elements, one panel per distribution; bytes
    depend on no machine, so each is that of the machine with most items."""
    result, parts, legend = style.stacked([2.4], 0.42)
    axes = parts[0].subplots(1, len(DISTRIBUTIONS), squeeze=False, sharex=True, sharey=True)[0]
    drawn = [_sizes(axis, frame, name) for axis, name in zip(axes, DISTRIBUTIONS, strict=True)]
    if not any(drawn):
        return style.empty(NO_MAPS)
    axes[0].set(yscale="log", ylabel="Bytes of the map")
    axes[0].set_yticks([10.0**power for power in range(3, 11, 2)], ["1 kB", "100 kB", "10 MB", "1 GB"])
    axes[0].set_yticks([], minor=True)
    low, high = axes[0].get_xlim()
    powers = [10.0**power for power in range(3, 13) if low <= 10.0**power <= high]
    axes[0].set_xticks(powers, [f"{x / 1e6:g} M" if x < 1e9 else f"{x / 1e9:g} G" for x in powers])
    axes[0].set_xticks([], minor=True)
    style.legend_of(legend, list(axes), 3)
    return result


def _sizes(axis: Axes, frame: Frame, distribution: str) -> bool:
    batches = [
        view.cases("batch", "elements", ("deterministic",), order=[distribution])
        for view in views(frame, STUDY)
    ]
    keys = max(batches, key=len, default=[])
    axis.set_title(human(DISTRIBUTIONS, distribution), **_SMALL)
    axis.set(xscale="log", xlabel="Elements")
    if not keys:
        return False
    for method, label in _MAPS.items():
        points = [
            (frame.value(key), frame.value(key.but(method=method, quantity="map_bytes"))) for key in keys
        ]
        points = [(elements, size) for elements, size in points if size == size]
        if points:
            look = {"color": METHOD_COLORS[method], "marker": METHOD_MARKERS[method]}
            axis.plot(*zip(*points, strict=True), label=label, **look)
    if distribution == "large":
        size = frame[published("block_metadata_gain", "any", "500-megapixels", "lookup_table")].value * 1e9
        look = {"color": METHOD_COLORS["lookup"], "markerfacecolor": "white"}
        axis.plot(500e6, size, "s", label="A: lookup table, published", **look)
    return True
