"""A figure as data: who draws it, and what it says where there is nothing to draw."""

from collections.abc import Callable
from dataclasses import dataclass

from matplotlib.figure import Figure

from octopus_study.report.frame import Frame


@dataclass(frozen=True)
class Chart:
    """A figure of a study."""

    draw: Callable[[Frame], Figure]  # makes the figure from the numbers
    caption: str  # what it shows, for the results page, the documentation and the page that Snakemake makes of a run
    published: bool = False  # whether it draws published values where there is no run
    footer: Callable[[Frame], str] | None = None  # what it rests on, where that isn't simply all runs of the study
    # whether it is stamped, where that isn't simply whether a run of the study rests on generated data
    synthetic: Callable[[Frame], bool] | None = None
    real: str = "VisDrone"  # what the generated data stand in for
