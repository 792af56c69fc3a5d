"""Which times of the arena are shown together, and its figures: times on the device, and shares of the write bound.

A comparison is named by the key of the time of Octopus; what it holds was measured in the same blocks.
"""

from collections.abc import Iterable
from functools import partial

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from octopus_study.names import AGAIN, ARENA_METHODS, ARENA_WORKLOADS, BOUND, GREY, SUBJECT, human, place
from octopus_study.report import captions
from octopus_study.report.charts import bars, style
from octopus_study.report.charts.palette import METHOD_COLORS
from octopus_study.report.charts.spec import Chart
from octopus_study.report.frame import Frame, Key, Number
from octopus_study.report.missing import by_reason, footer
from octopus_study.report.text import quantity_text
from octopus_study.report.view import View, views
from octopus_study.units import significant

STUDY = "arena"
# The published size of the comparison; a run without it shows its largest.
PUBLISHED_COUNT = 1000
TIMED = {
    "device": "crop_resize_normalize", "host": "end_to_end", "pipelined": "end_to_end", "pipeline": "end_to_end",
}  # fmt: skip
NO_GPU = "No run on a GPU is shown: device events, and a write bound on a device, need one."
_TYPES = ("fp16", "uint8")  # of results other than float32, as names of methods carry them
_DRAWN = ("visdrone", "uniform")
# Inches: a method, what a row of panels has besides, and a legend.
_BAR, _ROW, _LEGEND = 0.2, 0.75, 0.25


def bound_of(method: str) -> str:
    """Return the write bound that a method is compared with: the one of its own output."""
    kind = next((name for name in _TYPES if name in method.split("-")), "")
    return f"{BOUND}-{kind}" if kind else BOUND


def comparisons(view: View, workload: str, layer: str) -> list[Key]:
    """Return the comparisons of a workload on a layer in which Octopus was timed, by count."""
    keys = view.cases(SUBJECT, TIMED[layer], (layer,), order=[workload])
    return sorted(keys, key=lambda key: key.n)


def shown(view: View, workload: str, layer: str) -> Key | None:
    """Return the comparison at the published count, else at the largest; None where there is none."""
    keys = comparisons(view, workload, layer)
    return next((key for key in keys if key.n == PUBLISHED_COUNT), keys[-1] if keys else None)


def entered(view: View, keys: Iterable[Key]) -> dict[str, list[Number]]:
    """Return every method that was entered in some comparisons, with its times or the notes why it has none, in the
    order of the arena."""
    methods: dict[str, list[Number]] = {}
    for key in keys:
        for number in view.select(workload=key.workload, n=key.n, quantity=key.quantity, layer=key.layer):
            if not number.method.endswith(AGAIN):
                methods.setdefault(number.method, []).append(number)
    return {name: methods[name] for name in sorted(methods, key=partial(place, ARENA_METHODS))}


def measured(view: View, *keys: Key) -> dict[str, list[Number]]:
    """Return the methods that have a time in some comparisons, with those times."""
    times = {name: [n for n in numbers if n.known] for name, numbers in entered(view, keys).items()}
    return {name: numbers for name, numbers in times.items() if numbers}


def without_time(view: View, keys: Iterable[Key]) -> str:
    """Say which methods have no time in any of some comparisons, and why the last has none; an earlier one may only
    point to it."""
    methods = entered(view, keys)
    silent = {name: ns[-1].reason for name, ns in methods.items() if not any(n.known for n in ns)}
    return by_reason((human(ARENA_METHODS, name), note) for name, note in silent.items())


def device(frame: Frame) -> Figure:
    """Draw times on the device, VisDrone beside boxes of one size, one row per GPU; a note names the methods without a
    time, with the reason."""
    drawn = {
        view: {name: key for name in _DRAWN if (key := shown(view, name, "device"))} for view in views(frame, STUDY)
    }
    drawn = {view: panels for view, panels in drawn.items() if panels}
    if not drawn:
        return style.empty(NO_GPU)
    why = {view.name: without_time(view, panels.values()) for view, panels in drawn.items()}
    note = " ".join(f"No time on {name}. {text}." for name, text in why.items() if text)
    most = [max(len(measured(view, key)) for key in panels.values()) for view, panels in drawn.items()]
    rest = _ROW * len(drawn) + _LEGEND
    bar = style.row_height(_BAR, sum(most), rest)
    result, parts, legend = style.stacked([_ROW + bar * count for count in most], _LEGEND, note)
    for part, (view, panels), room in zip(parts, drawn.items(), most, strict=True):
        axes = part.subplots(1, len(panels), squeeze=False)[0]
        for axis, (name, key) in zip(axes, panels.items(), strict=True):
            _times(axis, view, key, room)
            axis.set_title(human(ARENA_WORKLOADS, name), fontsize=8, fontweight="normal")
        style.heading(part, f"{view.name}: n = {next(iter(panels.values())).n}")
    same = {"Same answer as the reference": {"color": GREY}}
    style.legend_of_looks(legend, same | style.DIFFERENT)
    return result


def _times(axis: Axes, view: View, key: Key, room: int) -> None:
    """Draw the times of one comparison in the order of the arena, with values beside them; there is room for as many
    as the panel beside it has."""
    times = {method: number for method, (number,) in measured(view, key).items()}
    values = [number.value for number in times.values()]
    left = min(values) / 2
    for index, (method, number) in enumerate(times.items()):
        bars.dot(axis, index, number, color=METHOD_COLORS.get(method, GREY), hollow=number.differs)
        bars.beside(axis, index, bars.end_of(number), quantity_text(number.value, number.unit), fontsize=6)
    axis.set(xscale="log", xlabel="Device, all boxes (ms)")
    axis.set_xlim(left, max(values) * (max(values) / left) ** 0.35)
    style.plain_log(axis.xaxis, narrow=True)
    bars.names(axis, [human(ARENA_METHODS, name) for name in times], room, fontsize=6.5)


def bound_share(frame: Frame) -> Figure:
    """Draw how near to the write bound each method with the same answer comes, one row per GPU: VisDrone beside boxes
    of one size, a group of bars per number of boxes."""
    drawn = {view: [_shares(view, workload) for workload in _DRAWN] for view in views(frame, STUDY)}
    drawn = {view: shares for view, shares in drawn.items() if any(shares)}
    if not drawn:
        return style.empty(NO_GPU)
    result, axes = style.new_figure(0.9 + 2.1 * len(drawn), len(drawn), len(_DRAWN), sharey="row")
    for row, (view, pair) in zip(axes, drawn.items(), strict=True):
        for axis, workload, shares in zip(row, _DRAWN, pair, strict=True):
            _bound_share(axis, shares)
            axis.set_title(f"{view.name}: {human(ARENA_WORKLOADS, workload)}")
        row[0].set_ylabel("Share of the write bound (%)")
    style.bottom_legend(list(axes.flat), 4, fontsize=7)
    return result


def _shares(view: View, workload: str) -> dict[str, list[Number]]:
    """Return the shares of each method with the same answer, by count; each against the bound of its own type."""
    shares: dict[str, list[Number]] = {}
    for method, times in measured(view, *comparisons(view, workload, "device")).items():
        keys = [time.key.derive("share", bound_of(method)) for time in times if not time.differs]
        if known := [share for key in keys if (share := view.get(key))]:
            shares[method] = known
    return shares


def _bound_share(axis: Axes, shares: dict[str, list[Number]]) -> None:
    counts = sorted({share.n for known in shares.values() for share in known})
    width = 0.8 / max(1, len(shares))
    text = {"ha": "center", "va": "bottom", "fontsize": 6, "bbox": style.BEHIND}
    for index, (method, known) in enumerate(shares.items()):  # the first, Octopus, has labels
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
        for at, share in zip(places, known if index == 0 else (), strict=False):
            end, digits = (at, 100 * bars.end_of(share)), significant(100 * share.value, 2)
            axis.annotate(digits, end, (0, 2), textcoords="offset points", **text)
    axis.axhline(100, color=GREY, linewidth=0.8, linestyle=":")
    axis.set_xticks(range(len(counts)), [f"n = {n}" for n in counts])
    highest = max((100 * share.value for known in shares.values() for share in known), default=0)
    axis.set_ylim(0, max(112.0, 1.12 * highest))
    axis.grid(axis="x", visible=False)


_ON_GPUS = footer(STUDY, "device", "Nothing was measured on a GPU.")


def _synthetic(frame: Frame) -> bool:
    """Say whether a GPU that is drawn was given generated boxes."""
    drawn = [view for view in views(frame, STUDY) if any(shown(view, name, "device") for name in _DRAWN)]
    return any(view.fact("synthetic") == "yes" for view in drawn)


CHARTS = {
    "arena_device": Chart(device, captions.FIGURES["arena_device"], footer=_ON_GPUS, synthetic=_synthetic),
    "arena_bound_share": Chart(
        bound_share, captions.FIGURES["arena_bound_share"], footer=_ON_GPUS, synthetic=_synthetic
    ),
}
