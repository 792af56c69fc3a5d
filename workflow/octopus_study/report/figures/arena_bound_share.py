"""How near to the write bound each method with the right answer comes."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from octopus_study.report import arena
from octopus_study.report.arena import Field
from octopus_study.report.captions import scope_name
from octopus_study.report.derive.arena_kernel import bound_of
from octopus_study.report.figures import style
from octopus_study.report.figures.arena_bars import NO_RUN
from octopus_study.report.labels import ARENA_METHODS, ARENA_WORKLOADS, human
from octopus_study.report.numbers import Number, Numbers
from octopus_study.report.text import significant

STUDY = "arena"
NO_BOUND = "No run that is shown timed the write bound on a device: that needs a GPU."
_WORKLOADS = ("visdrone", "uniform")
_LEVEL_LABELS = 4  # bars of a group beside which labels still have room lying

__all__ = ["NO_RUN", "STUDY", "figure"]
Shares = dict[str, list[tuple[int, Number]]]


def figure(numbers: Numbers) -> Figure:
    """Draw one row per GPU: VisDrone beside boxes of one size, a group of bars per number of boxes."""
    scopes = [scope for scope in numbers.scopes(STUDY) if any(_shares(numbers, scope, w) for w in _WORKLOADS)]
    if not scopes:
        return style.words(style.new_figure(1.2)[0], NO_BOUND)
    result, axes = style.new_figure(0.9 + 2.1 * len(scopes), len(scopes), len(_WORKLOADS), sharey="row")
    for row, scope in zip(axes, scopes, strict=True):
        for axis, workload in zip(row, _WORKLOADS, strict=True):
            _panel(axis, _shares(numbers, scope, workload))
            axis.set_title(f"{scope_name(numbers, scope)}: {human(ARENA_WORKLOADS, workload)}")
        row[0].set_ylabel("Share of the write bound (%)")
    style.bottom_legend(list(axes.flat), 4, fontsize=7)
    return result


def _shares(numbers: Numbers, scope: str, workload: str) -> Shares:
    """Return the shares of each method with the same answer, by count; each against the bound of its own type."""
    found: Shares = {}
    for n in arena.counts(numbers, scope, workload, "device"):
        field = Field(scope, workload, n, "device")
        for method, time in arena.measured(numbers, field).items():
            share = numbers.get(f"{field.key(method)}.share_of_{bound_of(method)}")
            if share and not arena.differs(time):
                found.setdefault(method, []).append((n, share))
    return arena.in_order(found)


def _panel(axis: Axes, shares: Shares) -> None:
    counts = sorted({n for points in shares.values() for n, _ in points})
    width = 0.8 / max(1, len(shares))
    for index, (method, points) in enumerate(shares.items()):
        places = [counts.index(n) + width * (index - (len(shares) - 1) / 2) for n, _ in points]
        measured = [share for _, share in points]
        axis.bar(
            places,
            [100 * share.value for share in measured],
            width=0.92 * width,
            yerr=style.errors(measured, 100),
            color=style.METHOD_COLORS.get(method, style.GREY),
            label=human(ARENA_METHODS, method),
            error_kw={"elinewidth": 0.8, "capsize": 1.2},
        )
        for place, share in zip(places, measured, strict=True):
            where = (place, 100 * (share.high if share.high == share.high else share.value))
            text = significant(100 * share.value, 2)
            turned = 90 if len(shares) > _LEVEL_LABELS else 0
            options = {"ha": "center", "va": "bottom", "fontsize": 5.5, "rotation": turned}
            axis.annotate(text, where, (0, 2), textcoords="offset points", **options)
    axis.axhline(100, color=style.GREY, linewidth=0.8, linestyle=":")
    axis.set_xticks(range(len(counts)), [f"n = {n}" for n in counts])
    highest = max((100 * share.value for points in shares.values() for _, share in points), default=0)
    axis.set_ylim(0, max(112.0, 1.12 * highest))
    axis.grid(axis="x", visible=False)
