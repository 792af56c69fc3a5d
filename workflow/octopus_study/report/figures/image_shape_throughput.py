"""Time to cover an image with patches, over the patches per batch, model by model."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from octopus_study.report import image_shape
from octopus_study.report.captions import scope_name
from octopus_study.report.figures import style
from octopus_study.report.image_shape import NO_RUN, STUDY, footer
from octopus_study.report.labels import DENOISERS
from octopus_study.report.numbers import Numbers

__all__ = ["NO_RUN", "STUDY", "figure", "footer"]
NO_PATCHES = "No run of the study image_shape that is shown timed patches."


def figure(numbers: Numbers) -> Figure:
    """Draw one row of panels per machine, a panel per model."""
    scopes = image_shape.covered(numbers)
    if not scopes:
        absent = NO_PATCHES if image_shape.measured(numbers) else image_shape.no_memory(numbers)
        return style.words(style.new_figure(1.2)[0], absent)
    result, parts, legend = style.stacked([2.3] * len(scopes), 0.25)
    shown = []
    for part, scope in zip(parts, scopes, strict=True):
        models = [model for model in DENOISERS if image_shape.patches(numbers, scope, model)]
        part.suptitle(scope_name(numbers, scope), fontsize=8.5, fontweight="bold", x=0.005, ha="left")
        axes = part.subplots(1, len(models), squeeze=False)[0]
        for axis, model in zip(axes, models, strict=True):
            _panel(axis, numbers, scope, model)
        axes[0].set_ylabel("Time to cover the image (ms)")
        part.supxlabel("Patches per batch", fontsize=8)
        shown += list(axes)
    style.legend_of(legend, shown, 4)
    return result


def _panel(axis: Axes, numbers: Numbers, scope: str, model: str) -> None:
    found = image_shape.patches(numbers, scope, model)
    batches = sorted({patch.batch for patch in found})
    for place, side in enumerate(sorted({patch.side for patch in found})):
        known = {patch.batch: number for patch, number in found.items() if patch.side == side}
        axis.errorbar(
            list(known),
            [number.value for number in known.values()],
            yerr=style.errors(list(known.values())),
            color=style.PATCH_COLORS[place % len(style.PATCH_COLORS)],
            marker=style.MACHINE_MARKERS[place % len(style.MACHINE_MARKERS)],
            markersize=3.6,
            capsize=1.5,
            label=f"{side} \u00d7 {side} px",
        )
    best = min(found, key=lambda patch: found[patch].value)
    ring = {"marker": "o", "markersize": 9, "markerfacecolor": "none", "color": style.BLACK, "linestyle": ""}
    axis.plot(best.batch, found[best].value, **ring, label="Least time")
    axis.set(xscale="log", yscale="log")
    axis.set_title(f"{DENOISERS[model]}, best: {best.text}", fontsize=8, fontweight="normal")
    axis.set_xticks(batches, [str(batch) for batch in batches])
    axis.set_xticks([], minor=True)
    # Some air, so that the ring isn't cut.
    low, high = axis.get_ylim()
    axis.set_ylim(low / 1.06, high * 1.04)
    style.near_log(axis.yaxis)
