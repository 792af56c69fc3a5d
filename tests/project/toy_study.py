"""A study with a figure, a table and a claim, as the recipe of CONTRIBUTING.md has it: sums of boxes' sides.

`FILES` names every file that it touches, and in each what stands before the insertion and what is inserted; a new file
has nothing before.
"""

INIT = '''"""Study `toy`: how long adding up the sides of all boxes takes."""

from pydantic import Field

from octopus_study.sections import Count, Section

DATASET = "visdrone-val"


class Toy(Section):
    """How long adding up the sides of all boxes takes."""

    count: Count = Field(100, description="boxes that are added up")
'''
STUDY = '''"""Study `toy`: the sides of all boxes, added up at once or box by box."""

from collections.abc import Iterator

import numpy as np

from octopus_study.data.workload import sample_boxes
from octopus_study.measure import Case, Method, Row
from octopus_study.studies.comparison import Comparison, Part, compare
from octopus_study.studies.context import Context


def plan(context: Context) -> list[Part]:
    """One comparison, on the host."""
    case = Case("toy", context.workload.dataset, "visdrone", context.config.toy.count)
    return [Part(_measure, (Comparison(case, "total", "host", ("octopus", "numpy")),))]


def _measure(context: Context, part: Part) -> Iterator[Row]:
    boxes = sample_boxes(context.workload.pool, part.case.n, context.seed).astype(np.int64)
    methods = [
        Method("octopus", lambda: boxes.sum()),
        Method("numpy", lambda: sum(int(box.sum()) for box in boxes)),
    ]
    yield from compare(context, part.comparisons[0], methods)
'''
REPORT = '''"""Sums of sides: their times and the speed-up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from octopus_study.names import METHODS
from octopus_study.report.charts import bars, style
from octopus_study.report.charts.palette import METHOD_COLORS
from octopus_study.report.frame import Frame
from octopus_study.report.missing import no_run
from octopus_study.report.study import Chart, StudyReport
from octopus_study.report.tables import cells
from octopus_study.report.tables.spec import Spec
from octopus_study.report.view import views

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TIMES = Spec(
    study="toy",
    first="Boxes",
    label=lambda view, key: str(key.n),
    cases=lambda view: view.cases("octopus", "total"),
    columns={"At once": cells.time(), "Box by box": cells.time(method="numpy"), "Gain": cells.speedup("numpy")},
    caption="Sides of all boxes, added up.",
    absent=no_run("toy"),
)


def draw(frame: Frame) -> Figure:
    """Draw a bar per method and machine."""
    shown = views(frame, "toy")
    figure, axes = style.new_figure(1.5 * len(shown), len(shown))
    for axis, view in zip(axes[:, 0], shown, strict=True):
        numbers = [number for name in ("octopus", "numpy") for number in view.select(method=name, quantity="total")]
        for place, number in enumerate(numbers):
            bars.bar(axis, place, number, color=METHOD_COLORS[number.method])
        bars.names(axis, [METHODS.get(number.method, number.method) for number in numbers])
        axis.set(title=view.name, xlabel="All boxes (ms)")
    return figure


REPORT = StudyReport(tables={"toy": TIMES}, figures={"toy": Chart(draw, "Sums of sides.")})
'''
CLAIM = """
  - id: toy-faster
    claim: Adding up all sides at once is faster than box by box
    source: P1, a toy
    study: toy
    kind: direction
    needs: any
    number: "{run}.toy.visdrone.n3.octopus.total.host.speedup_over_numpy"
    operator: above
    value: 1
    unit: ratio
"""
SECTION = """
#if has("here.toy.measured_on") [
  == A toy
  All sides at once: #measured("here.toy.visdrone.n3.octopus.total.host"); #said("toy-faster").
  #table-of("toy")
  #figure-of("toy")[Sums of sides.]
]
"""
TEST = '''"""Sums of sides: both ways are timed."""

from pathlib import Path

from octopus_study.measure.rows import read_rows


def test_both_ways_have_times() -> None:
    rows = read_rows(Path("toy/here/toy.csv"))
    assert set(rows.loc[rows["value"].notna(), "method"]) >= {"octopus", "numpy"}
'''
FILES = {
    "workflow/octopus_study/studies/toy/__init__.py": [("", INIT)],
    "workflow/octopus_study/studies/toy/study.py": [("", STUDY)],
    "workflow/octopus_study/report/studies/toy.py": [("", REPORT)],
    "config/config.yaml": [("", "\ntoy:\n  count: 100\n")],
    "config/claims.yaml": [("", CLAIM)],
    "paper/supplement/stage_timing.typ": [("", SECTION)],
    "tests/study/studies/test_toy.py": [("", TEST)],
}
