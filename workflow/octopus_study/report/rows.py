"""The rows of a CSV as texts, with their lines in the file: what a number rests on, without anything in between."""

import csv
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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
            read = [(reader.line_num, *row) for row in reader]
        columns = list(zip(*read, strict=True)) if read else [()] * (1 + len(self.header))
        # Columns alone are kept: there are hundreds of thousands of rows.
        self._lines, *cells = columns
        self.table = Table(dict(zip(self.header, cells, strict=True)))

    def __getitem__(self, place: int) -> Row:
        cells = {name: str(column[place]) for name, column in self.table.columns.items()}
        return Row(self.file, self._lines[place], cells)


read = cache(Rows)


def rows_of(number: Number) -> list[tuple[Rows, NDArray[np.intp]]]:
    """Return the files that a number rests on, each with the places of its rows, ascending; none for a number that
    rests on provenance or on a rule."""
    files = number.file.split(AND) if selects_rows(number.selector) else []
    return [(read(file), read(file).table.rows(number.selector, len(files) > 1)) for file in files]
