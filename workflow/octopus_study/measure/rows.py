"""Result rows: long form, one row per method and block, the only thing that is stored of a measurement.

A row is checked against ``workflow/schemas/results.schema.yaml`` before it is written, so a file that exists
is valid. What the status is and why, and what the names say, are columns.
"""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from octopus.errors import InputError
from octopus_study.errors import MeasureError, Unavailable
from octopus_study.measure._files import atomic_text
from octopus_study.measure.schema import first_violation
from octopus_study.names import facts
from octopus_study.status import NO_ANSWER, Answer, as_answer, brief
from octopus_study.status import unavailable as no_value

if TYPE_CHECKING:
    import pandas as pd


class Row(NamedTuple):
    """One measured value."""

    study: str  # what was run, on which data; `dataset` says ``synthetic`` where they are not real
    dataset: str
    workload: str
    n: int  # size of the case (objects, launches or MiB, as the study says)
    method: str
    # ``device`` (events, cold L2), ``host``, ``pipeline`` (host, with the frame's upload and the result's download),
    # ``pipelined``, ``cold_start``, ``memory``, ``deterministic`` or ``limit``; values of different ones are never
    # compared
    layer: str
    quantity: str
    unit: str
    # Rows of one case, layer and quantity with the same block were measured together and may be paired. The blocks of
    # process p count from p times `octopus_study.measure.dependence.PROCESS_BLOCKS` on.
    block: int
    value: float | None  # None exactly where `status` is ``unavailable``
    status: str  # these three as in :class:`octopus_study.status.Answer`
    reason: str = ""
    error: float | None = None
    input: str = ""  # what was handed over, in studies that compare that
    scope: str = ""  # from here on what the names say: :class:`octopus_study.names.Facts`
    threads: int = 0
    dtype: str = ""
    distribution: str = ""
    operation: str = ""
    model: str = ""

    @property
    def answer(self) -> Answer:
        """Status, reason and error together."""
        return Answer(self.status, self.reason, self.error)

    def answered(self, answer: Answer) -> Row:
        """Return the row with another answer."""
        return self._replace(status=answer.status, reason=answer.reason, error=answer.error)

    @property
    def case(self) -> Case:
        """What it was measured on."""
        return Case(*self[:4], self.input)


COLUMNS = Row._fields
KEY = ("study", "dataset", "workload", "n", "method", "layer", "quantity", "block", "input")
_INTEGERS, _NUMBERS = ("n", "block", "threads"), ("value", "error")
_PER_BLOCK = ("block", "value")


class Case(NamedTuple):
    """The part of a row that all methods of one comparison share."""

    study: str
    dataset: str
    workload: str
    n: int
    input: str = ""

    def __str__(self) -> str:
        return ", ".join(filter(None, (self.workload, str(self.n), self.input)))

    def row(
        self,
        method: str,
        layer: str,
        quantity: str,
        unit: str,
        value: float | None,
        *,
        block: int = 0,
        answer: str = NO_ANSWER,
        scope: str = "",
    ) -> Row:
        """Make one row of this case; `scope` is what a power or energy is that of."""
        said, given = facts(self.study, self.workload, method, quantity), as_answer(answer)
        parts = (given.status, given.reason, given.error, self.input)
        said = said._replace(scope=scope)
        return Row(*self[:4], method, layer, quantity, unit, block, value, *parts, *said)


def unavailable(case: Case, method: str, layer: str, quantity: str, unit: str, why: str) -> Row:
    """Make the row of a method that gave no number here: a gap that says why."""
    return case.row(method, layer, quantity, unit, None, answer=no_value(one_line(why)))


def one_line(text: object, limit: int = 300) -> str:
    """Fold `text` into one line of at most `limit` characters, fit for a CSV cell."""
    line = " ".join(str(text).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def describe(error: BaseException) -> str:
    """Say an exception in one line: its type and its message; what is `Unavailable` says it by itself."""
    if isinstance(error, Unavailable):
        return one_line(str(error))
    return brief(one_line(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__))


def write_rows(path: str | Path, rows: Iterable[Row]) -> Path:
    """Validate `rows` and write them as CSV, whole or not at all."""
    rows = list(rows)
    validate_rows(rows)
    with atomic_text(Path(path)) as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(map(_cells, rows))
    return Path(path)


def _cells(row: Row) -> Row:
    value, error = ("" if number is None else repr(_plain(number)) for number in (row.value, row.error))
    return row._replace(value=value, error=error, threads=row.threads or "")


def read_rows(path: str | Path) -> pd.DataFrame:
    """Read a result CSV; `value` is NaN where a row is unavailable. Only an empty cell means missing: pandas' own list
    of missing words contains ``n/a``, which is a status here."""
    import pandas as pd

    if not Path(path).is_file():
        raise MeasureError(f"No result file {path}: run the study that writes it first.")
    kinds: dict[str, str] = dict.fromkeys(COLUMNS, "str")
    kinds |= dict.fromkeys(("n", "block"), "int64") | dict.fromkeys(_NUMBERS, "float64")
    try:
        frame = pd.read_csv(path, dtype=kinds, keep_default_na=False, na_values={name: [""] for name in _NUMBERS})
        if tuple(frame.columns) != COLUMNS:
            raise MeasureError(
                f"{path} is not a result file: it has the columns {one_line(', '.join(frame.columns))}, and rows have "
                f"{', '.join(COLUMNS)}. Measure the study again, or name another file."
            )
        return frame.assign(threads=frame["threads"].replace("", "0").astype("int64"))
    except ValueError as error:
        raise MeasureError(f"{path} is not a result file: {one_line(error)}") from error


def validate_rows(rows: pd.DataFrame | str | Path | Iterable[Row]) -> None:
    """Check rows (a DataFrame, the path of a CSV, or `Row`) against the schema and for repeated keys; `MeasureError`
    says which row is wrong, in which column, and what was expected. An empty table is wrong too."""
    columns = _columns(rows)
    if not any(columns.values()):
        raise MeasureError("There are no result rows: a study that measures nothing must say so in a row.")
    _require_schema(columns)
    repeated, times = Counter(zip(*(columns[name] for name in KEY), strict=True)).most_common(1)[0]
    if times > 1:
        raise MeasureError(f"{times} rows have the same key {dict(zip(KEY, repeated, strict=True))}.")


def require_distinct(rows: pd.DataFrame, where: str) -> None:
    """Refuse a table of :func:`read_rows`, at the place `where`, that has rows with the same key."""
    repeated = rows.duplicated(list(KEY))
    if repeated.any():
        key = rows.loc[repeated.idxmax(), list(KEY)].to_dict()
        raise MeasureError(f"{where} has several rows with the same key {key}.")


def _require_schema(columns: Mapping[str, list[Any]]) -> None:
    """Check each row whole, or only what is new in it: rows of one series differ in block and value alone."""
    kinds = (map(type, column) if name in _PER_BLOCK else column for name, column in columns.items())
    series: set[tuple[Any, ...]] = set()
    within = all(_within(name, columns.get(name, [])) for name in _PER_BLOCK)
    for number, kind in enumerate(zip(*kinds, strict=True)):
        if not within or kind not in series:
            record = {name: column[number] for name, column in columns.items()}
            parts = [(record[name], name) for name in _PER_BLOCK] if kind in series else [(record,)]
            if violation := next(filter(None, (first_violation("results", *part) for part in parts)), None):
                raise MeasureError(f"Row {number} breaks the results schema: {violation}. The row is {record}.")
            series.add(kind)


def _within(name: str, column: list[Any]) -> bool:
    """Whether numbers alone stand in a column, and the least and the greatest are in the bounds of the schema."""
    numbers = [item for item in column if type(item) in (int, float) and item == item]  # NaN has no place in an order
    if len(numbers) + column.count(None) < len(column):
        return False
    return not any(first_violation("results", end(numbers), name) for end in (min, max) if numbers)


def _columns(rows: pd.DataFrame | str | Path | Iterable[Row]) -> dict[str, list[Any]]:
    """Bring rows of any accepted form to plain columns with None for a missing value."""
    if isinstance(rows, str | Path):
        rows = read_rows(rows)
    if hasattr(rows, "to_dict"):
        return {name: _clean(name, column.tolist()) for name, column in rows.items()}
    rows = list(rows)
    wrong = next((row for row in rows if not isinstance(row, Row)), None)
    if wrong is not None:
        raise InputError(f"Expected octopus_study.measure.Row, found {type(wrong).__name__}: {wrong!r}.")
    columns = zip(COLUMNS, zip(*rows, strict=True), strict=False)  # no rows have no columns
    return {name: _clean(name, column, nan_is_missing=False) for name, column in columns}


def _clean(name: str, column: Sequence[Any], nan_is_missing: bool = True) -> list[Any]:
    """Turn NumPy scalars into Python's, and NaN and infinity into words, which the schema refuses."""
    clean = [*map(_plain, column)] if any(hasattr(kind, "item") for kind in {*map(type, column)}) else [*column]
    for index, value in enumerate(clean if name in _NUMBERS else ()):
        if isinstance(value, float) and not math.isfinite(value):
            clean[index] = None if nan_is_missing and math.isnan(value) else str(value)
    return clean


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value
