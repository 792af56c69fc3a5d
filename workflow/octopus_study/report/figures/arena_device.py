"""Time on the device alone, method by method."""

from __future__ import annotations

from matplotlib.figure import Figure

from octopus_study.report.figures import style
from octopus_study.report.figures.arena_bars import NO_RUN, draw_groups, group_of
from octopus_study.report.labels import ARENA_WORKLOADS, human
from octopus_study.report.numbers import Numbers

STUDY = "arena"
NO_GPU = "No run on a GPU is shown: device events need one. Times of the host stand in the figure of times end to end."
_PANELS = {(name, "device"): human(ARENA_WORKLOADS, name) for name in ("visdrone", "uniform")}

__all__ = ["NO_RUN", "STUDY", "figure"]


def figure(numbers: Numbers) -> Figure:
    """Draw VisDrone beside boxes of one size, one row per GPU."""
    found = [group_of(numbers, scope, list(_PANELS), _PANELS) for scope in numbers.scopes(STUDY)]
    groups = [group for group in found if group]
    if not groups:
        return style.words(style.new_figure(1.2)[0], NO_GPU)
    return draw_groups(numbers, groups, "Device, all boxes (ms)")
