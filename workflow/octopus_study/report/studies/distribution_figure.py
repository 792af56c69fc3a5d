"""The figure of the distribution study: sizes, waste and speed of each distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from octopus_study.names import BOUND, SHORT_METHODS, SUBJECT, WORKLOADS, human
from octopus_study.report.charts import bars, style
from octopus_study.report.charts.palette import (
    GREY,
    METHOD_COLORS,
    METHOD_MARKERS,
    WORKLOAD_COLORS,
)
from octopus_study.report.frame import Frame, Key, Number, published
from octopus_study.report.view import KERNEL, View, views

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_METHODS = (SUBJECT, "published", BOUND)
_MIB = 2.0**-20


def cases(view: View) -> list[Key]:
    """Return the padding waste of each distribution of a run, in a fixed order."""
    numbers = view.select(method="padding", quantity="padding_waste", layer="deterministic")
    keys = {number.workload: number.key for number in numbers}
    return [keys[name] for name in WORKLOADS if name in keys]


def workload_name(number: Number) -> str:
    """Return the name of a number's distribution, marked where its boxes are generated."""
    name = human(WORKLOADS, number.workload)
    return f"{name} (synthetic)" if number.synthetic else name


def size_distributions(frame: Frame) -> Figure:
    """Draw sizes and waste above, one panel of times per machine below."""
    machines = views(frame, "distribution")
    result, _ = style.new_figure(4.1)
    result.clear()
    top, bottom = result.subfigures(2, 1, height_ratios=(1.15, 1))
    sizes, waste = top.subplots(1, 2, width_ratios=(1.15, 1))
    _sizes(sizes, machines[0])
    _waste(waste, machines[0])
    timed = [view for view in machines if any(view.get(key) for key in _kernels(view))]
    if not timed:
        bottom.text(0.5, 0.5, "No run that is shown timed them.", ha="center", color=GREY)
        return result
    names = {
        key.workload: name for view in timed for key, name in zip(cases(view), _names(view), strict=True)
    }
    panels = bottom.subplots(1, len(timed), squeeze=False, sharey=True)[0]
    for axis, view in zip(panels, timed, strict=True):
        _speed(axis, view, {workload: names[workload] for workload in WORKLOADS if workload in names})
    style.bottom_legend(list(panels), len(_METHODS))
    return result


def _kernels(view: View) -> list[Key]:
    """Return the kernels' times of Octopus, which a run may lack."""
    columns = {"quantity": "crop_resize_normalize", "layer": KERNEL}
    return [view.key(key.workload, key.n, SUBJECT, **columns) for key in cases(view)]


def _names(view: View) -> list[str]:
    return [workload_name(view.frame[key]) for key in cases(view)]


def _sizes(axis: Axes, view: View) -> None:
    """Draw the cumulative distribution of widths (solid) and heights (dotted); it is the same on every machine."""
    series = view.series("sizes")
    for key, name in zip(cases(view), _names(view), strict=True):
        rows = [row for row in series.rows() if row[0] == key.workload] if series else []
        # The temporal boxes are the long-tail ones, so their line is thin and lies on top.
        look = {
            "color": WORKLOAD_COLORS[key.workload],
            "linewidth": 0.8 if key.workload == "temporal" else 1.6,
        }
        percents = [percent for _, percent, *_ in rows]
        axis.plot([width for *_, width in rows], percents, "-", label=name, **look)
        axis.plot([height for _, _, height, _ in rows], percents, ":", **look)
    axis.set(xscale="log", xlabel="Width (solid) and height (dotted) of a box (px)", ylabel="Boxes (%)")
    style.plain_log(axis.xaxis)
    axis.set_xticks([16, 32, 64, 128, 256, 512])
    axis.set_xticks([], minor=True)
    axis.set_title("Sizes")
    generated = f"(synthetic): {view.frame.text('shown.distribution.generated')}"
    axis.figure.suptitle(generated, fontsize=7, x=0.99, ha="right")
    axis.figure.legend(*axis.get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize=7)


def _waste(axis: Axes, view: View) -> None:
    """Draw actual bytes and what padding adds, with the share wasted; a mark where it was published."""
    for place, key in enumerate(cases(view)):
        actual, padded = (
            view.frame.value(key.but(quantity=name)) * _MIB for name in ("actual_bytes", "padded_bytes")
        )
        color = WORKLOAD_COLORS[key.workload]
        axis.barh(place, actual, color=color, height=0.6)
        look = {"color": "white", "edgecolor": color, "hatch": "////", "linewidth": 0.8}
        axis.barh(place, padded - actual, left=actual, height=0.6, **look)
        printed = view.frame.text(published("padding_waste", key.workload, "n1000", "padding_waste"))
        text = view.text(key) + (f"\n(published {printed})" if printed else "")
        bars.beside(axis, place, padded, text, gap=3, fontsize=6.5)
    bars.listed(axis, _names(view))
    axis.set_xlim(0, axis.get_xlim()[1] * 1.25)
    axis.set(xlabel="All boxes as uint8 (MiB): full, and padding (hatched)")
    axis.set_title("Padding to the largest, share wasted")


def _speed(axis: Axes, view: View, names: dict[str, str]) -> None:
    """Draw the kernels' times, and beside those of Octopus their multiples of the bound; `names` are those of all
    panels, which share an axis."""
    keys = {list(names).index(key.workload): key for key in _kernels(view)}
    for method in _METHODS:
        points = [(place, view.get(key.but(method=method))) for place, key in keys.items()]
        points = [(place, number) for place, number in points if number]
        if points:
            bound = method == BOUND
            axis.errorbar(
                [number.value for _, number in points],
                [place for place, _ in points],
                xerr=style.errors([number for _, number in points]),
                fmt="|" if bound else METHOD_MARKERS[method],
                markersize=10 if bound else 4.5,
                color=METHOD_COLORS[method],
                label=human(SHORT_METHODS, method),
            )
    for place, key in keys.items():
        text = view.text(key.derive("times", BOUND))
        # Intervals of both reach farther than the point where a machine is noisy.
        ends = [
            bars.end_of(number) for method in (SUBJECT, BOUND) if (number := view.get(key.but(method=method)))
        ]
        if ends and text:
            bars.beside(axis, place, max(ends), text, gap=5, fontsize=6)
    axis.set_yticks(range(len(names)), list(names.values()))
    # The axis is shared, so inverting it in each panel would undo itself.
    axis.set_ylim(len(names) - 0.5, -0.5)
    axis.set(xscale="log", xlabel="Kernels, all boxes (ms)")
    style.plain_log(axis.xaxis)
    style.title(axis, view.name)
