"""The rows of a CSV as texts, with their lines in the file: what a number rests on, without anything in between."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from octopus_study.report.frame import Number
from octopus_study.report.selector import Table, selects_rows

AND = " and "  # between the files of a number that rests on several


class Row(NamedTuple):
    """One row: its line in the file, counted from 1, and its cells by column."""

    file: str
    line: int
    cells: dict[str, str]


class Rows:
    """One CSV, read once."""

    def __init__(self, path: str | Path) -> None:
        self.file = str(path)
        with open(path, newline="", encoding="utf-8") as stream:
            reader = csv.reader(stream)
            self.header = next(reader)
            read = [(reader.line_num, row) for row in reader]
        self.lines = [line for line, _ in read]
        columns = zip(*(row for _, row in read), strict=True) if read else [()] * len(self.header)
        self.table = Table(dict(zip(self.header, columns, strict=True)))

    def row(self, index: int) -> Row:
        """Return a row by its place."""
        cells = {name: str(column[index]) for name, column in self.table.columns.items()}
        return Row(self.file, self.lines[index], cells)


read = cache(Rows)


def rows_of(number: Number) -> Iterator[Row]:
    """Yield the rows that a number rests on; none for a number that rests on provenance or on a rule."""
    for rows, places in chosen(number.file, number.selector):
        yield from (rows.row(int(place)) for place in places)


@cache
def chosen(file: str, selector: str) -> list[tuple[Rows, np.ndarray]]:
    """Return the files in which a selector takes rows, and the places of these rows; kept, since what is derived from
    a median rests on its rows."""
    if not selects_rows(selector):
        return []
    files = [read(name) for name in file.split(AND)]
    places = [(rows, rows.table.rows(selector, len(files) > 1)) for rows in files]
    return [(rows, indices) for rows, indices in places if len(indices)]
