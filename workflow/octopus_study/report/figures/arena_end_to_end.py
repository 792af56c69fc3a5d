"""Time from the boxes on the host to the result, method by method."""

from __future__ import annotations

from matplotlib.figure import Figure

from octopus_study.report import arena
from octopus_study.report.figures import style
from octopus_study.report.figures.arena_bars import NO_RUN, Group, draw_groups, group_of
from octopus_study.report.numbers import Numbers

STUDY = "arena"
_GPU = {
    ("visdrone", "host"): "VisDrone, host",
    ("visdrone", "pipeline"): "VisDrone, pipeline",
}
_CPU = {
    ("visdrone", "host"): "VisDrone, all cores",
    ("visdrone-1thread", "host"): "One thread",
    ("visdrone-2threads", "host"): "Two threads",
}

__all__ = ["NO_RUN", "STUDY", "figure"]


def figure(numbers: Numbers) -> Figure:
    """Draw host beside pipeline on a GPU; all cores, one thread and two on a CPU."""
    groups = [group for scope in numbers.scopes(STUDY) if (group := _group(numbers, scope))]
    if not groups:
        return style.words(style.new_figure(1.2)[0], NO_RUN)
    return draw_groups(numbers, groups, "End to end, all boxes (ms)")


def _group(numbers: Numbers, scope: str) -> Group | None:
    piped = arena.shown_field(numbers, scope, "visdrone", "pipeline") is not None
    panels = _GPU if piped else _CPU
    return group_of(numbers, scope, list(panels), panels)
