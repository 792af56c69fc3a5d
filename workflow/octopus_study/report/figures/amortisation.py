"""When a lookup table pays: time of many uses of one batch, as a multiple of that of Octopus."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from octopus_study.report import total_cost
from octopus_study.report.captions import scope_name
from octopus_study.report.derive.total_cost import CHALLENGERS
from octopus_study.report.figures import style
from octopus_study.report.labels import IMAGE_KERNELS, IMAGE_MIXES, STRATEGIES
from octopus_study.report.numbers import Numbers
from octopus_study.report.total_cost import NO_RUN, STUDY

__all__ = ["NO_RUN", "STUDY", "figure"]
MIX = "flickr-500"
MOST_USES = 300
# Lines cross close to 1, where a logarithmic axis shows nothing: around it the axis is stretched.
_WIDTH = 0.02
_TICKS = (0.5, 0.9, 0.97, 1, 1.03, 1.1, 1.5, 3, 10, 100, 1000, 10_000)


def figure(numbers: Numbers) -> Figure:
    """Draw one row per machine, light and heavy kernel beside each other."""
    scopes = total_cost.measured(numbers)
    if not scopes:
        return style.words(style.new_figure(1.2)[0], total_cost.NO_TIMES)
    result, parts, legend = style.stacked([2.3] * len(scopes), 0.42)
    shown = []
    for part, scope in zip(parts, scopes, strict=True):
        found = total_cost.workloads(numbers, scope)
        axes = part.subplots(1, len(IMAGE_KERNELS), squeeze=False)[0]
        part.suptitle(scope_name(numbers, scope), fontsize=8.5, fontweight="bold", x=0.005, ha="left")
        for axis, kernel in zip(axes, IMAGE_KERNELS, strict=True):
            mix = (
                MIX
                if (MIX, kernel) in found
                else next((name for name, other in found if other == kernel), MIX)
            )
            axis.set_title(f"{IMAGE_MIXES[mix]}, {IMAGE_KERNELS[kernel]}", fontsize=8, fontweight="normal")
            _panel(axis, numbers, found.get((mix, kernel), ""), kernel)
        axes[0].set_ylabel("Time / time of Octopus\n(stretched around 1)")
        shown += list(axes)
    style.legend_of(legend, shown, 3, fontsize=6.8)
    return result


def _stretch(ratio: Any) -> Any:
    return np.arcsinh((np.asarray(ratio) - 1) / _WIDTH)


def _unstretch(place: Any) -> Any:
    return 1 + _WIDTH * np.sinh(place)


def _panel(axis: Axes, numbers: Numbers, start: str, kernel: str) -> None:
    ours = total_cost.cost(numbers, start, "octopus") if start else None
    if ours is None:
        axis.set_axis_off()
        axis.annotate("Not measured", (0.5, 0.5), xycoords="axes fraction", ha="center", color=style.GREY)
        return
    axis.set(xscale="log", xlabel="Uses of one batch")
    axis.set_yscale("function", functions=(_stretch, _unstretch))
    uses = np.geomspace(1, MOST_USES, 200)
    for method in total_cost.METHODS:
        cost = total_cost.cost(numbers, start, method)
        if cost is None:
            continue
        color = style.METHOD_COLORS[method]
        ratios = [cost.after(count) / ours.after(count) for count in uses]
        axis.plot(
            uses, ratios, color=color, label=STRATEGIES[method], linewidth=1.8 if method == "octopus" else 1.1
        )
        if method in total_cost.TABLES:
            _marks(axis, numbers, start, method)
    published = numbers[f"published.amortisation.{kernel}.break_even"]
    label = "Published: table catches up with C"
    axis.axvline(published.value, color=style.GREY, linestyle=":", linewidth=1.1, label=label)
    near_top = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points", "fontsize": 6.2}
    axis.annotate(
        published.text, (published.value, 0.92), xytext=(-2, 0), ha="right", color=style.GREY, **near_top
    )
    axis.set_xlim(1, MOST_USES)
    axis.set_xticks([1, 3, 10, 30, 100, 300], ["1", "3", "10", "30", "100", "300"])
    axis.set_xticks([], minor=True)
    ratios = [
        value for line in axis.get_lines() for value in line.get_ydata() if len(line.get_ydata()) == 200
    ]
    low, high = min(ratios), max(*ratios, 1.2)
    axis.set_ylim(_unstretch(_stretch(low) - 0.8), _unstretch(_stretch(high) * 1.15))
    ticks = [tick for tick in _TICKS if low <= tick <= high]
    axis.set_yticks(ticks, [f"{tick:g}" for tick in ticks], fontsize=6.5)


def _marks(axis: Axes, numbers: Numbers, start: str, table: str) -> None:
    """Mark where the table crosses the other two, with the number of uses."""
    cost, ours = (total_cost.cost(numbers, start, name) for name in (table, "octopus"))
    for method in CHALLENGERS:
        number = numbers.get(f"{start}.{table}.crossover_over_{method}")
        if number is None or not 1 < number.value <= MOST_USES:
            continue
        height = cost.after(number.value) / ours.after(number.value)
        color = style.METHOD_COLORS[table]
        axis.plot(
            number.value, height, marker=style.METHOD_MARKERS[table], markerfacecolor="white", color=color
        )
        options = {"textcoords": "offset points", "fontsize": 6.2, "color": color, "ha": "center"} | {
            "bbox": {"facecolor": "white", "lw": 0, "pad": 0.5, "alpha": 0.8}
        }
        above = method == CHALLENGERS[0]
        axis.annotate(number.text, (number.value, height), (0, 5 if above else -10), **options)
