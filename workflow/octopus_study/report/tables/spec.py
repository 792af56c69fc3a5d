"""A table of the common kind as data: sections per machine, a row per case, a column per cell function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from octopus_study.report.frame import Frame, Key
from octopus_study.report.tables.cells import Cell
from octopus_study.report.tables.writers import Table
from octopus_study.report.view import View, views

Row = list[str] | str


@dataclass(frozen=True)
class Spec:
    """A table with a section per machine.

    Attributes
    ----------
    study : str
    first : str
        Head of the first column.
    label : callable
        What the first column says of a case.
    columns : dict of str to callable
        By head, what a cell says of a case; :mod:`octopus_study.report.tables.cells` makes the common ones.
    cases : callable
        The rows of a machine, as keys; a machine without any has no section.
    caption : str or callable
        Without the reasons for empty cells, which follow it.
    absent : str
        What the caption says where no machine has a row: in its place, or behind it where `before` has rows.
    title : callable
        The heading over a machine's rows.
    before : callable
        Rows above all machines, such as published ones.
    after : callable
        Further rows of a machine.
    widths : sequence of str
        Widths of the columns in Typst; as wide as their content unless given.
    text_columns : sequence of int
        Columns of text, aligned left.
    """

    study: str
    first: str
    label: Callable[[View, Key], str]
    columns: Mapping[str, Cell]
    cases: Callable[[View], Iterable[Key]]
    caption: str | Callable[[Frame], str]
    absent: str = ""
    title: Callable[[View], str] = lambda view: view.title
    before: Callable[[Frame], Iterable[Row]] = lambda frame: ()
    after: Callable[[View], Iterable[Row]] = lambda view: ()
    widths: Sequence[str] = ()
    text_columns: Sequence[int] = field(default=(0,))


def build(spec: Spec, frame: Frame) -> Table:
    """Return the table of a specification."""
    above, rows, machines = list(spec.before(frame)), [], views(frame, spec.study)
    for view in machines:
        rows += _section(spec, view)
    caption = spec.caption if isinstance(spec.caption, str) else spec.caption(frame)
    if machines:
        caption += machines[0].reasons.note
    if not rows and spec.absent:
        caption = f"{caption} {spec.absent}" if above else spec.absent
    header = [spec.first, *spec.columns]
    return Table(caption, header, [*above, *rows], tuple(spec.text_columns), tuple(spec.widths))


def _section(spec: Spec, view: View) -> list[Row]:
    lines = [
        [spec.label(view, key), *(cell(view, key) for cell in spec.columns.values())]
        for key in spec.cases(view)
    ]
    return [spec.title(view), *lines, *spec.after(view)] if lines else []
