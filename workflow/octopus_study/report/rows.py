"""The rows of a CSV as texts, with their lines in the file: what a number rests on, without anything in between."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

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
        self.rows = [Row(self.file, line, dict(zip(self.header, row, strict=True))) for line, row in read]
        columns = zip(*(row for _, row in read), strict=True) if read else [()] * len(self.header)
        self.table = Table(dict(zip(self.header, columns, strict=True)))

    def chosen(self, selector: str, one_of_several: bool = False) -> Iterator[Row]:
        """Yield the rows that a selector takes, which nobody changes; see :meth:`Table.rows`."""
        yield from map(self.rows.__getitem__, self.table.rows(selector, one_of_several).tolist())


read = cache(Rows)


def rows_of(number: Number) -> Iterator[Row]:
    """Yield the rows that a number rests on; none for a number that rests on provenance or on a rule."""
    if selects_rows(number.selector):
        files = number.file.split(AND)
        for file in files:
            yield from read(file).chosen(number.selector, len(files) > 1)
