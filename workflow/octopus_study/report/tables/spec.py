"""A table of the common kind as data: sections per machine, a row per case, a column per cell function."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from octopus_study.report.frame import Frame, Key
from octopus_study.report.tables import cells
from octopus_study.report.tables.writers import Table
from octopus_study.report.view import View, views

Row = list[str] | str
Maker = Callable[[Frame], Table]


@dataclass(frozen=True)
class Spec:
    """A table with a section per machine."""

    study: str
    first: str  # head of the first column, and what that says of a case:
    label: Callable[[View, Key], str]
    # By head, what a cell says of a case; :mod:`octopus_study.report.tables.cells` makes the common ones. A list, made
    # from the numbers, may have a head twice.
    columns: Mapping[str, cells.Cell] | Callable[[Frame], Sequence[tuple[str, cells.Cell]]]
    # The rows of a machine, as keys; a text among them is a heading. A machine without any has no section.
    cases: Callable[[View], Iterable[Key | str]]
    caption: str | Callable[[Frame], str]  # without the reasons for empty cells, which follow it
    # what the caption says where no machine has a row: in its place, or behind it where `before` has rows
    absent: str | Callable[[Frame], str] = ""
    title: Callable[[View], str] = lambda view: view.title  # the heading over a machine's rows; none where it is empty
    before: Callable[[Frame], Iterable[Row]] = lambda frame: ()  # rows above all machines, such as published ones
    after: Callable[[View], Iterable[Row]] = lambda view: ()  # further rows of a machine
    widths: Sequence[str] = ()  # of the columns in Typst; as wide as their content unless given
    text_columns: Sequence[int] = field(default=(0,))  # columns of text, aligned left


def make(table: Spec | Maker, frame: Frame) -> Table:
    """Return the table of a specification, or that which a function makes."""
    return build(table, frame) if isinstance(table, Spec) else table(frame)


def build(spec: Spec, frame: Frame) -> Table:
    """Return the table of a specification."""
    above, rows, machines = list(spec.before(frame)), [], views(frame, spec.study)
    columns = list(spec.columns(frame) if callable(spec.columns) else spec.columns.items())
    for view in machines:
        rows += _section(spec, view, [cell for _, cell in columns])
    caption = _words(spec.caption, frame)
    header = [spec.first, *(head for head, _ in columns)]
    if cells.DIFFERENT_NOTE not in caption and any(cells.DIFFERENT in cell for row in (header, *rows) for cell in row):
        caption += f" {cells.DIFFERENT_NOTE}."
    if machines:
        caption += machines[0].reasons.note
    if not rows and spec.absent:
        absent = _words(spec.absent, frame)
        caption = f"{caption} {absent}" if above else absent
    return Table(caption, header, [*above, *rows], tuple(spec.text_columns), tuple(spec.widths[: len(header)]))


def _words(words: str | Callable[[Frame], str], frame: Frame) -> str:
    return words if isinstance(words, str) else words(frame)


def _section(spec: Spec, view: View, columns: list[cells.Cell]) -> list[Row]:
    lines = [case if isinstance(case, str) else _line(spec, view, case, columns) for case in spec.cases(view)]
    return [row for row in (spec.title(view), *lines, *spec.after(view)) if row] if lines else []


def _line(spec: Spec, view: View, key: Key, columns: list[cells.Cell]) -> list[str]:
    return [spec.label(view, key), *(cell(view, key) for cell in columns)]


def beside(
    machines: Sequence[View],
    first: Sequence[str],
    lines: Iterable[tuple[Sequence[str], Callable[[View], str | list[str]]] | str],
    caption: str,
    absent: str = "",
    widths: tuple[Sequence[str], str] = ((), ""),
    text_columns: Sequence[int] | None = (0,),
    heads: Sequence[str] = ("{}",),
) -> Table:
    """Return a table with the machines side by side, a column each, or as many as have `heads` (with a machine's name
    in place of the braces).

    `first` are the heads of the columns before the machines; a line is what stands below these and what a machine's
    cell, or cells, say; or a heading. `widths` are those of the first columns and of a machine's. To the caption come
    the reasons for empty cells, and `absent` where there is no machine. `text_columns` is None for all of them.
    """

    def texts(cell: Callable[[View], str | list[str]]) -> Iterator[str]:
        for view in machines:
            said = cell(view)
            yield from [said] if isinstance(said, str) else said

    rows: list[Row] = [line if isinstance(line, str) else [*line[0], *texts(line[1])] for line in lines]
    header = [*first, *(head.format(view.name) for view in machines for head in heads)]
    caption += machines[0].reasons.note if machines else f" {absent}"
    shown = (*widths[0], *(widths[1] for _ in machines for _ in heads)) if widths[1] else ()
    columns = range(len(header)) if text_columns is None else text_columns
    return Table(caption, header, rows, tuple(columns), shown)
