"""Figures of the arena: times on the device and end to end, memory, scaling, and shares of the write bound."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from octopus_study.names import ARENA_METHODS, ARENA_WORKLOADS, BOUND, QUANTITIES, SUBJECT, human
from octopus_study.report.charts import bars, lines, panels, style
from octopus_study.report.charts.palette import (
    BLACK,
    GREY,
    LIBRARY_COLORS,
    MEMORY_COLORS,
    METHOD_COLORS,
    METHOD_MARKERS,
)
from octopus_study.report.charts.spec import Chart
from octopus_study.report.frame import Frame, Key, Number
from octopus_study.report.missing import no_run
from octopus_study.report.studies import arena_view as arena
from octopus_study.report.studies.arena_view import STUDY, Column, bound_of
from octopus_study.report.text import quantity_text, significant
from octopus_study.report.view import View, views

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NO_GPU = "No run on a GPU is shown: device events need one. Times of the host stand in the figure of times end to end."
NO_TIMES = "No run of the arena that is shown timed the VisDrone boxes."
NO_MEMORY = "No run of the arena that is shown measured memory."
NO_BOUND = "No run that is shown timed the write bound on a device: that needs a GPU."
# Inches: a bar, and a method's four bars, with the gap to the next; a legend.
_BAR, _METHOD, _LEGEND = 0.2, 0.25, 0.25
_BOTH = ("visdrone", "uniform")


class Group(NamedTuple):
    """The panels of one machine: comparisons by title."""

    view: View
    panels: dict[str, Key]

    @property
    def most(self) -> int:
        """Bars in the fullest panel."""
        return max(len(arena.measured(self.view, key)) for key in self.panels.values())

    @property
    def note(self) -> str:
        """Names the methods that some panel lacks, with the reason; nothing is left out silently."""
        missing = {title: arena.without_time(self.view, [key]) for title, key in self.panels.items()}
        if len(set(missing.values())) == 1:
            missing = {"": next(iter(missing.values()))}
        sentences = [f"No time{title and f', {title}'}. {why}." for title, why in missing.items() if why]
        return "\n".join(textwrap.fill(sentence, style.NOTE_WIDTH) for sentence in sentences) or " "


def device(frame: Frame) -> Figure:
    """Draw times on the device, VisDrone beside boxes of one size, one row per GPU."""
    titles = {(name, "device"): human(ARENA_WORKLOADS, name) for name in _BOTH}
    groups = [group for view in views(frame, STUDY) if (group := group_of(view, titles))]
    return draw_groups(groups, "Device, all boxes (ms)") if groups else style.empty(NO_GPU)


def end_to_end(frame: Frame) -> Figure:
    """Draw host beside pipeline on a GPU; all cores and one thread on a CPU."""
    gpu = {("visdrone", "host"): "VisDrone, host", ("visdrone", "pipeline"): "VisDrone, pipeline"}
    cpu = {
        ("visdrone", "host"): "VisDrone, all cores",
        ("visdrone-1thread", "host"): "One thread each",
    }
    titles = (
        (view, gpu if arena.shown(view, "visdrone", "pipeline") else cpu) for view in views(frame, STUDY)
    )
    groups = [group for view, panels in titles if (group := group_of(view, panels))]
    return draw_groups(groups, "End to end, all boxes (ms)") if groups else style.empty(no_run(STUDY))


def group_of(view: View, titles: Mapping[Column, str]) -> Group | None:
    """Return the panels of a machine for workloads on layers, as far as they were measured."""
    keys = {title: key for column, title in titles.items() if (key := arena.shown(view, *column))}
    return Group(view, keys) if keys else None


def draw_groups(groups: list[Group], xlabel: str) -> Figure:
    """Draw one row of panels per machine, each with a note on the methods without a time."""
    notes = [group.note for group in groups]
    rooms = [0.75 + style.NOTE_LINE * (note.count("\n") + 1) for note in notes]
    bar = style.row_height(_BAR, sum(group.most for group in groups), sum(rooms) + _LEGEND)
    heights = [room + bar * group.most for group, room in zip(groups, rooms, strict=True)]
    result, parts, legend = style.stacked(heights, _LEGEND)
    for part, group, note in zip(parts, groups, notes, strict=True):
        axes = part.subplots(1, len(group.panels), squeeze=False)[0]
        for axis, (title, key) in zip(axes, group.panels.items(), strict=True):
            _times(axis, group.view, key, group.most)
            axis.set(xlabel=xlabel)
            axis.set_title(title, fontsize=8, fontweight="normal")
        count = next(iter(group.panels.values())).n
        style.heading(part, f"{group.view.name}: n = {count}")
        part.supxlabel(note, fontsize=6.5, color=GREY, x=0.005, ha="left")
    style.legend_of_looks(
        legend,
        {
            "Same answer as the reference": {"facecolor": GREY, "edgecolor": GREY},
            **style.DIFFERENT,
        },
    )
    return result


def _times(axis: Axes, view: View, key: Key, room: int) -> None:
    """Draw the bars of one comparison in the order of the arena, with values beside them; there is room for as many
    as the panel beside it has."""
    times = {method: number for method, (number,) in arena.measured(view, key).items()}
    values = [number.value for number in times.values()]
    left = min(values) / 2
    for place, (method, number) in enumerate(times.items()):
        color, other = METHOD_COLORS.get(method, GREY), arena.differs([number])
        look = {
            "facecolor": "white" if other else color,
            "edgecolor": color,
            "hatch": style.HATCH if other else None,
        }
        error = {"ecolor": BLACK, "elinewidth": 0.9, "capsize": 1.5}
        bars.bar(axis, place, number, left=left, error=error, height=0.68, linewidth=0.8, **look)
        bars.beside(axis, place, bars.end_of(number), quantity_text(number.value, number.unit), fontsize=6)
    axis.set(xscale="log")
    axis.set_xlim(left, max(values) * (max(values) / left) ** 0.35)
    style.plain_log(axis.xaxis, narrow=True)
    bars.names(axis, [human(ARENA_METHODS, name) for name in times], room, fontsize=6.5)


def memory(frame: Frame) -> Figure:
    """Draw one panel per machine, four bars per method."""
    shown = {view: arena.memory_lines(view) for view in views(frame, STUDY)}
    shown = {view: list(filter(arena.has_memory, methods.values())) for view, methods in shown.items()}
    shown = {view: methods for view, methods in shown.items() if methods}
    if not shown:
        return style.empty(NO_MEMORY)
    missing = {view.name: arena.without_memory(view) for view in shown}
    note = " ".join(f"Unavailable on {name}. {why}." for name, why in missing.items() if why)
    columns, bars_of = min(2, len(shown)), [len(methods) for methods in shown.values()]
    tallest = [max(bars_of[start : start + columns]) for start in range(0, len(shown), columns)]
    method = style.row_height(_METHOD, sum(tallest), 0.75 * len(tallest) + _LEGEND + style.note_height(note))
    heights = [0.75 + method * most for most in tallest]
    result, parts, legend = style.stacked([sum(heights)], _LEGEND, note)
    axes = panels.grid(parts[0], len(shown), columns, height_ratios=heights)
    for index, (axis, (view, methods)) in enumerate(zip(axes, shown.items(), strict=True)):
        _memory(axis, methods, tallest[index // columns])
        count = methods[0][arena.MEMORY_LINES[0]].n
        axis.set_title(f"{textwrap.fill(view.name, 34)}\nVisDrone, n = {count}")
    style.legend_of(legend, axes[:1], 4)
    return result


def _memory(axis: Axes, methods: list[dict[str, Number]], room: int) -> None:
    """Draw the bars; a line that nobody can tell, or that is zero, has none."""
    height = 0.8 / len(arena.MEMORY_LINES)
    for index, line in enumerate(arena.MEMORY_LINES):
        values = [method[line].value / 2**20 if line in method else float("nan") for method in methods]
        places = [place + height * (index - 1.5) for place in range(len(methods))]
        axis.barh(places, values, height=height, color=MEMORY_COLORS[line], label=human(QUANTITIES, line))
    names = [method[arena.MEMORY_LINES[0]].method for method in methods]
    bars.names(axis, [human(ARENA_METHODS, name) for name in names], room, fontsize=6.5)
    axis.set(xlabel="MiB (logarithmic)", xscale="log")
    sizes = [
        n.value
        for method in methods
        for line in arena.MEMORY_LINES
        if (n := method.get(line)) and n.value > 0
    ]
    axis.set_xlim(left=min(sizes, default=2**20) / 2**21)  # half of the least, in MiB
    style.plain_log(axis.xaxis, narrow=True)


def scaling(frame: Frame) -> Figure:
    """Draw times of the VisDrone boxes over their number, each other library in one form: device and host on a GPU,
    host on a CPU, one panel each."""
    shown = [
        (view, keys)
        for view in views(frame, STUDY)
        for layer in ("device", "host")
        if (keys := arena.comparisons(view, "visdrone", layer))
    ]
    if not shown:
        return style.empty(NO_TIMES)
    # Larger batches are refused for their size before a library is looked for, so the fewest boxes say why.
    missing = {
        f"{view.name}, {keys[0].layer}": arena.without_time(view, keys[::-1], forms=False)
        for view, keys in shown
    }
    note = " ".join(f"No time, {place}. {why}." for place, why in missing.items() if why)
    methods = {method for view, keys in shown for method in arena.fastest_forms(view, keys)}
    columns = min(3, len(shown))
    # Four columns of a legend, whose entries are 0.14 inches high.
    result, parts, legend = style.stacked(
        [3 * -(-len(shown) // columns)], 0.3 + 0.14 * -(-len(methods) // 4), note
    )
    axes = panels.grid(parts[0], len(shown), columns)
    for axis, (view, keys) in zip(axes, shown, strict=True):
        _scaling(axis, view, keys)
    options = {"fontsize": 6.5, "title": "Dashed: different answer", "title_fontsize": 6.5}
    style.legend_of(legend, axes, 4, **options)
    return result


def _scaling(axis: Axes, view: View, keys: list[Key]) -> None:
    for method, numbers in arena.fastest_forms(view, keys).items():
        bound = method.startswith(BOUND)
        lines.line(
            axis,
            [(number.n, number) for number in numbers],
            label=human(ARENA_METHODS, method),
            color=LIBRARY_COLORS.get(arena.library_of(method)) or METHOD_COLORS.get(method, GREY),
            zorder=3 if method == SUBJECT else 2,
            marker="" if bound else METHOD_MARKERS.get(method, "."),
            linestyle=":" if bound else "--" if arena.differs(numbers) else "-",
            linewidth=1.8 if method.startswith(SUBJECT) else 1.0,
            capsize=1.5,
        )
    layer = keys[0].layer
    axis.set(xlabel="Boxes", ylabel=f"{layer.capitalize()}, all boxes (ms)")
    lines.counts(axis, [key.n for key in keys])
    style.plain_log(axis.yaxis)
    style.title(axis, f"{view.name}: {layer}", 30)


def bound_share(frame: Frame) -> Figure:
    """Draw how near to the write bound each method with the same answer comes, one row per GPU: VisDrone beside boxes
    of one size, a group of bars per number of boxes."""
    shown = {view: [_shares(view, workload) for workload in _BOTH] for view in views(frame, STUDY)}
    shown = {view: shares for view, shares in shown.items() if any(shares)}
    if not shown:
        return style.empty(NO_BOUND)
    result, axes = style.new_figure(0.9 + 2.1 * len(shown), len(shown), len(_BOTH), sharey="row")
    for row, (view, pair) in zip(axes, shown.items(), strict=True):
        for axis, workload, shares in zip(row, _BOTH, pair, strict=True):
            _bound_share(axis, shares)
            axis.set_title(f"{view.name}: {human(ARENA_WORKLOADS, workload)}")
        row[0].set_ylabel("Share of the write bound (%)")
    style.bottom_legend(list(axes.flat), 4, fontsize=7)
    return result


def _shares(view: View, workload: str) -> dict[str, list[Number]]:
    """Return the shares of each method with the same answer, by count; each against the bound of its own type."""
    shares: dict[str, list[Number]] = {}
    for method, times in arena.measured(view, *arena.comparisons(view, workload, "device")).items():
        keys = [time.key.derive("share", bound_of(method)) for time in times if not arena.differs([time])]
        if known := [share for key in keys if (share := view.get(key))]:
            shares[method] = known
    return shares


# Labels of more bars than these would cover each other: then the first method alone has them.
_LABELLED = 4


def _bound_share(axis: Axes, shares: dict[str, list[Number]]) -> None:
    counts = sorted({share.n for known in shares.values() for share in known})
    width = 0.8 / max(1, len(shares))
    text = {"ha": "center", "va": "bottom", "fontsize": 6, "bbox": style.BEHIND}
    for index, (method, known) in enumerate(shares.items()):
        places = [counts.index(share.n) + width * (index - (len(shares) - 1) / 2) for share in known]
        axis.bar(
            places,
            [100 * share.value for share in known],
            width=0.92 * width,
            yerr=style.errors(known, 100),
            color=METHOD_COLORS.get(method, GREY),
            label=human(ARENA_METHODS, method),
            error_kw={"elinewidth": 0.8, "capsize": 1.2},
        )
        for place, share in zip(places, known, strict=True):
            if index == 0 or len(shares) <= _LABELLED:
                end = (place, 100 * bars.end_of(share))
                axis.annotate(
                    significant(100 * share.value, 2), end, (0, 2), textcoords="offset points", **text
                )
    axis.axhline(100, color=GREY, linewidth=0.8, linestyle=":")
    axis.set_xticks(range(len(counts)), [f"n = {n}" for n in counts])
    highest = max((100 * share.value for known in shares.values() for share in known), default=0)
    axis.set_ylim(0, max(112.0, 1.12 * highest))
    axis.grid(axis="x", visible=False)


def _on_gpus(frame: Frame) -> str:
    shown = frame.text(f"shown.{STUDY}.device")
    return f"Measured on: {shown}." if shown else "Nothing was measured on a GPU."


CHARTS = {
    "arena_device": Chart(
        device,
        "Time on the device alone, method by method, on a GPU. Hatched: the answer differs from the reference. Methods "
        "without a time are named below the bars, with the reason.",
        footer=_on_gpus,
    ),
    "arena_end_to_end": Chart(
        end_to_end,
        "Time from the boxes on the host to the result: on a GPU without (host) and with (pipeline) the transfers of "
        "frame and result, on a CPU with all cores, but for OpenCV's rows of one thread, and with one thread each.",
    ),
    "arena_memory": Chart(
        memory,
        "Four lines of memory per method, each method in a process of its own: bytes from shapes, most that an "
        "allocator held, growth of used memory, and what imports, modules and context take. Zero has no bar.",
    ),
    "arena_scaling": Chart(
        scaling,
        "Time over the number of boxes, each other library in one form per panel: of those with the same answer, if "
        "there are any, the fastest with most boxes. A line ends where larger batches take too long, too much memory, "
        "or are more than the library takes. Dashed: the answer differs from the reference; dotted: the time that "
        "filling the output takes.",
    ),
    "arena_bound_share": Chart(
        bound_share,
        "Share of the write bound by number of boxes, for the methods with the same answer, each against the time that "
        "filling its own output takes.",
        footer=_on_gpus,
    ),
}
