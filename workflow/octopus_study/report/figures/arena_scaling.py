"""Time over the number of boxes, method by method, with the write bound as a line."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from octopus_study.report import arena
from octopus_study.report.arena import Field
from octopus_study.report.captions import scope_name
from octopus_study.report.figures import style
from octopus_study.report.figures.arena_bars import NO_RUN
from octopus_study.report.labels import ARENA_METHODS, human
from octopus_study.report.numbers import Number, Numbers

STUDY = "arena"
NO_TIMES = "No run of the arena that is shown timed the VisDrone boxes."
_LAYERS = ("device", "host")
_COLUMNS, _ENTRY = 4, 0.14  # of the legend: its columns, and the height of an entry in inches

__all__ = ["NO_RUN", "STUDY", "figure"]
Points = list[tuple[int, Number]]


def figure(numbers: Numbers) -> Figure:
    """Draw the VisDrone boxes: device and host on a GPU, host on a CPU, one panel each."""
    panels = [
        (scope, layer)
        for scope in numbers.scopes(STUDY)
        for layer in _LAYERS
        if arena.counts(numbers, scope, "visdrone", layer)
    ]
    if not panels:
        return style.words(style.new_figure(1.2)[0], NO_TIMES)
    rows = -(-len(panels) // 2)
    note = " ".join(filter(None, (_note(numbers, scope) for scope in dict(panels))))
    entries = {
        method
        for scope, layer in panels
        for n in arena.counts(numbers, scope, "visdrone", layer)
        for method in arena.measured(numbers, Field(scope, "visdrone", n, layer))
    }
    below = 0.3 + _ENTRY * -(-len(entries) // _COLUMNS)
    result, parts, legend = style.stacked([2.5 * rows], below, note)
    axes = parts[0].subplots(rows, 2, squeeze=False)
    for axis, (scope, layer) in zip(axes.flat, panels, strict=False):
        _panel(axis, numbers, scope, layer)
    for axis in axes.flat[len(panels) :]:
        axis.set_visible(False)
    shown = list(axes.flat[: len(panels)])
    options = {"fontsize": 6.5, "title": "Dashed: different answer", "title_fontsize": 6.5}
    style.legend_of(legend, shown, _COLUMNS, **options)
    return result


def _note(numbers: Numbers, scope: str) -> str:
    """Name the methods that are on no panel of a machine."""
    found = [field for field in arena.fields(numbers, scope) if field.workload == "visdrone"]
    missing = arena.without_time(numbers, [field for field in found if field.layer in _LAYERS])
    return f"No time on {scope_name(numbers, scope)}. {missing}." if missing else ""


def _panel(axis: Axes, numbers: Numbers, scope: str, layer: str) -> None:
    counts = arena.counts(numbers, scope, "visdrone", layer)
    lines: dict[str, Points] = {}
    for n in counts:
        for method, number in arena.measured(numbers, Field(scope, "visdrone", n, layer)).items():
            lines.setdefault(method, []).append((n, number))
    for method, points in arena.in_order(lines).items():
        _line(axis, method, points)
    axis.set(xscale="log", yscale="log", xlabel="Boxes", ylabel=f"{layer.capitalize()}, all boxes (ms)")
    axis.set_xticks(counts, [str(n) for n in counts])
    axis.set_xticks([], minor=True)
    style.plain_log(axis.yaxis)
    style.title(axis, f"{scope_name(numbers, scope)}: {layer}", 48)


def _line(axis: Axes, method: str, points: Points) -> None:
    spans = [style.errors([number]) for _, number in points]
    bound = method in arena.BOUNDS
    different = any(arena.differs(number) for _, number in points)
    axis.errorbar(
        [n for n, _ in points],
        [number.value for _, number in points],
        yerr=[[span[side][0] for span in spans] for side in (0, 1)],
        label=human(ARENA_METHODS, method),
        color=style.METHOD_COLORS.get(method, style.GREY),
        marker="" if bound else style.METHOD_MARKERS.get(method, "."),
        linestyle=":" if bound else "--" if different else "-",
        linewidth=1.8 if method.startswith("octopus") else 1.0,
        capsize=1.5,
    )
