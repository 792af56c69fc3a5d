"""What a study shows, as data: one :class:`StudyReport` in each file of :mod:`octopus_study.report.studies`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from octopus_study.report.frame import Frame, Number
from octopus_study.report.runs import Run
from octopus_study.report.samples import Group
from octopus_study.report.series import Series

if TYPE_CHECKING:
    from octopus_study.report.charts.spec import Chart
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
class StudyReport:
    """Everything that the report knows of one study. A study that needs nothing here gets its medians, comparisons and
    unavailable rows.

    Attributes
    ----------
    tables, figures : dict
        By name, which is also the name of the file.
    numbers : tuple of functions
        What only this study knows of one run; each function is the origin of its numbers.
    of_runs, of_published, of_all : tuple of functions
        What all runs of the study together, the published values alone, or all of them give.
    beside_all : tuple of functions
        What one run gives beside all numbers, such as a ratio after a published number of uses.
    series : tuple of functions
        Series and pictures of one run, which are drawn and are no numbers.
    compares : callable
        Whether the comparison of Octopus with another method in a group is shown. The bound is such a method too, and
        so is Octopus again, which gives the noise floor.
    per_object : tuple of str
        Quantities whose median is also shown per object.
    indexed : tuple of str
        Quantities and layers of which a block is an index and not a repetition: a median over them would mean nothing.
    windows : bool
        Few long windows instead of many blocks: means with Student's interval, and ratios of the study's own.
    vetted : callable, optional
        Blanks rows of a run that must not be believed, before anything is derived.
    """

    tables: Mapping[str, Spec | Callable[[Frame], Table]] = field(default_factory=dict)
    figures: Mapping[str, Chart] = field(default_factory=dict)
    numbers: tuple[FromRun, ...] = ()
    of_runs: tuple[FromRuns, ...] = ()
    of_published: tuple[FromFrame, ...] = ()
    of_all: tuple[FromFrame, ...] = ()
    beside_all: tuple[FromRunAndFrame, ...] = ()
    series: tuple[Callable[[Run], Iterable[Series]], ...] = ()
    compares: Callable[[Group, str], bool] = always
    per_object: tuple[str, ...] = ()
    indexed: tuple[str, ...] = ()
    windows: bool = False
    vetted: Callable[[Run], Run] | None = None
