"""What a study shows, as data: one :class:`StudyReport` in each file of :mod:`octopus_study.report.studies`."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from matplotlib.figure import Figure

from octopus_study.report.frame import Frame, Number
from octopus_study.report.runs import Run
from octopus_study.report.samples import Group
from octopus_study.report.series import Series
from octopus_study.report.tables.spec import Spec
from octopus_study.report.tables.writers import Table

FromRun = Callable[[Run], Iterable[Number]]
FromRuns = Callable[[list[Run]], Iterable[Number]]
FromRunAndFrame = Callable[[Run, Frame], Iterable[Number]]
FromFrame = Callable[[Frame], Iterable[Number]]


def always(group: Group, other: str) -> bool:
    """Compare Octopus with every other method of every group."""
    return True


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


@dataclass(frozen=True)
class StudyReport:
    """Everything that the report knows of one study. A study that needs nothing here gets its medians, comparisons and
    unavailable rows."""

    # by name, which is also the name of the file; figures too
    tables: Mapping[str, Spec | Callable[[Frame], Table]] = field(default_factory=dict)
    figures: Mapping[str, Chart] = field(default_factory=dict)
    # what only this study knows of one run; each function is the origin of its numbers
    numbers: tuple[FromRun, ...] = ()
    # what all runs of the study together, the published values alone, or all of them give
    of_runs: tuple[FromRuns, ...] = ()
    of_published: tuple[FromFrame, ...] = ()
    of_all: tuple[FromFrame, ...] = ()
    # what one run gives beside all numbers, such as a ratio after a published number of uses
    beside_all: tuple[FromRunAndFrame, ...] = ()
    # series and pictures of one run, which are drawn and are no numbers
    series: tuple[Callable[[Run], Iterable[Series]], ...] = ()
    # Whether the comparison of Octopus with another method in a group is shown. The bound is such a method too, and so
    # is Octopus again, which gives the noise floor.
    compares: Callable[[Group, str], bool] = always
    per_object: tuple[str, ...] = ()  # quantities whose median is also shown per object
    # Quantities and layers of which a block is an index and not a repetition: a median over them would mean nothing.
    indexed: tuple[str, ...] = ()
    # few long windows instead of many blocks: means with Student's interval, and ratios of the study's own
    windows: bool = False
    # blanks rows of a run that must not be believed, before anything is derived
    vetted: Callable[[Run], Run] | None = None
