"""The sizes of the boxes, what padding them would waste, and how fast each distribution is."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from octopus_study.report.captions import generated_boxes, kernel_layer, scope_name, workloads
from octopus_study.report.figures import style
from octopus_study.report.labels import SHORT_METHODS, WORKLOADS, human
from octopus_study.report.numbers import Number, Numbers

STUDY = "distribution"
_METHODS = ("octopus", "published", "write-bound")


def figure(numbers: Numbers) -> Figure:
    """Draw sizes and waste above, one panel of times per machine below."""
    scopes = numbers.scopes(STUDY)
    result, _ = style.new_figure(4.1)
    result.clear()
    top, bottom = result.subfigures(2, 1, height_ratios=(1.15, 1))
    sizes, waste = top.subplots(1, 2, width_ratios=(1.15, 1))
    _sizes(sizes, numbers, scopes)
    _waste(waste, numbers, scopes)
    panels = bottom.subplots(1, len(scopes), squeeze=False, sharey=True)[0]
    for axis, scope in zip(panels, scopes, strict=True):
        _speed(axis, numbers, scope)
    style.bottom_legend(list(panels), len(_METHODS))
    return result


def _workloads(numbers: Numbers, scope: str) -> list[tuple[str, Number]]:
    """Return the distributions of a run with the number that tells whether they are synthetic."""
    prefixes = workloads(numbers, scope).items()
    return [(name, numbers[f"{prefix}.padding.padding_waste.deterministic"]) for name, prefix in prefixes]


def _label(workload: str, number: Number) -> str:
    return f"{human(WORKLOADS, workload)} (synthetic)" if number.synthetic else human(WORKLOADS, workload)


def _sizes(axis: Axes, numbers: Numbers, scopes: list[str]) -> None:
    """Draw the cumulative distribution of widths (solid) and heights (dotted); it is the same on every
    machine."""
    scope = scopes[0]
    for workload, number in _workloads(numbers, scope):
        for side, dashes in (("width", "-"), ("height", ":")):
            found = numbers.matching(rf"{scope}\.{STUDY}\.{workload}\.boxes\.{side}\.p(\d+)")
            points = sorted((int(match[1]), quantile.value) for match, quantile in found)
            label = _label(workload, number) if side == "width" else None
            # The temporal boxes are the long-tail ones, so their line is thin and lies on top.
            width = 0.8 if workload == "temporal" else 1.6
            axis.plot(
                [size for _, size in points],
                [percent for percent, _ in points],
                dashes,
                color=style.WORKLOAD_COLORS[workload],
                linewidth=width,
                label=label,
            )
    axis.set(xscale="log", xlabel="Width (solid) and height (dotted) of a box (px)", ylabel="Boxes (%)")
    style.plain_log(axis.xaxis)
    axis.set_xticks([16, 32, 64, 128, 256, 512])
    axis.set_xticks([], minor=True)
    axis.set_title("Sizes")
    axis.figure.suptitle(f"(synthetic): {generated_boxes(numbers)}", fontsize=7, x=0.99, ha="right")
    axis.figure.legend(*axis.get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize=7)


def _waste(axis: Axes, numbers: Numbers, scopes: list[str]) -> None:
    """Draw actual bytes and what padding adds, with the share wasted; a mark where it was published."""
    shown = _workloads(numbers, scopes[0])
    for position, (workload, number) in enumerate(shown):
        prefix = f"{workloads(numbers, scopes[0])[workload]}.padding"
        actual, padded = (
            numbers.value(f"{prefix}.{quantity}.deterministic") / 2**20
            for quantity in ("actual_bytes", "padded_bytes")
        )
        axis.barh(position, actual, color=style.WORKLOAD_COLORS[workload], height=0.6)
        axis.barh(
            position,
            padded - actual,
            left=actual,
            color="white",
            edgecolor=style.WORKLOAD_COLORS[workload],
            hatch="////",
            height=0.6,
            linewidth=0.8,
        )
        published = numbers.text(f"published.padding_waste.{workload}.n1000.padding_waste")
        text = number.text + (f"\n(published {published})" if published else "")
        axis.annotate(text, (padded, position), (3, 0), textcoords="offset points", va="center", fontsize=6.5)
    axis.set_yticks(range(len(shown)), [_label(workload, number) for workload, number in shown])
    axis.invert_yaxis()
    axis.grid(axis="y", visible=False)
    axis.set_xlim(0, axis.get_xlim()[1] * 1.25)
    axis.set(xlabel="All boxes as uint8 (MiB): full, and padding (hatched)")
    axis.set_title("Padding to the largest, share wasted")


def _speed(axis: Axes, numbers: Numbers, scope: str) -> None:
    shown, layer = workloads(numbers, scope), kernel_layer(numbers, scope)
    for method in _METHODS:
        keys = [f"{prefix}.{method}.crop_resize_normalize.{layer}" for prefix in shown.values()]
        points = [(position, number) for position, key in enumerate(keys) if (number := numbers.get(key))]
        if not points:
            continue
        measured = [number for _, number in points]
        axis.errorbar(
            [number.value for number in measured],
            [position for position, _ in points],
            xerr=style.errors(measured),
            fmt="|" if method == "write-bound" else style.METHOD_MARKERS[method],
            markersize=10 if method == "write-bound" else 4.5,
            color=style.METHOD_COLORS[method],
            label=human(SHORT_METHODS, method),
        )
    for position, prefix in enumerate(shown.values()):
        _bound_note(axis, numbers, f"{prefix}.octopus.crop_resize_normalize.{layer}", position)
    axis.set_yticks(range(len(shown)), [_label(*pair) for pair in _workloads(numbers, scope)])
    axis.set_ylim(
        len(shown) - 0.5, -0.5
    )  # the axis is shared, so inverting it in each panel would undo itself
    axis.set(xscale="log", xlabel="Kernels, all boxes (ms)")
    style.plain_log(axis.xaxis)
    style.title(axis, scope_name(numbers, scope))


def _bound_note(axis: Axes, numbers: Numbers, key: str, position: int) -> None:
    """Write the kernel's time / bound time beside its mark."""
    number = numbers.get(key)
    text = numbers.text(f"{key}.times_write-bound")
    if number and text:
        where = (number.value, position)
        axis.annotate(text, where, (5, 0), textcoords="offset points", va="center", fontsize=6)
