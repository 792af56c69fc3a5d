"""Result rows: long form, one row per method and block, the only thing that is stored of a measurement.

A row is checked against ``workflow/schemas/results.schema.yaml`` before it is written, so a file that exists
is valid.
"""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from octopus.errors import InputError
from octopus_study.errors import MeasureError, Unavailable
from octopus_study.measure._files import atomic_text
from octopus_study.measure.schema import first_violation

if TYPE_CHECKING:
    import pandas as pd

SAME = "same"
NO_ANSWER = "n/a"


class Row(NamedTuple):
    """One measured value.

    Attributes
    ----------
    study, dataset, workload : str
        What was run on which data. `dataset` says ``synthetic`` where the data is not real.
    n : int
        Size of the case (objects, launches or MiB, as the study says).
    method : str
        The method.
    layer : str
        ``device`` (events, cold L2), ``device_hot``, ``host``, ``pipeline`` (host, with the frame's upload and the
        result's download), ``pipelined``, ``cold_start``, ``memory``, ``deterministic`` or ``limit``. Values of
        different layers are never compared.
    quantity, unit : str
        What was measured, and the unit of `value`.
    block : int
        Rows of one case, layer and quantity with the same block were measured together and may be paired. The blocks of
        process p count from p times `octopus_study.measure.dependence.PROCESS_BLOCKS` on.
    value : float or None
        None exactly where `answer` says ``unavailable``.
    answer : str
        ``same``, ``different: why``, ``unavailable: why`` or ``n/a`` (there is no answer to compare).
    input : str
        What was handed over, in studies that compare that; else empty. Files from before it are read as if it was.
    """

    study: str
    dataset: str
    workload: str
    n: int
    method: str
    layer: str
    quantity: str
    unit: str
    block: int
    value: float | None
    answer: str
    input: str = ""

    @property
    def case(self) -> Case:
        """What it was measured on."""
        return Case(*self[:4], self.input)


COLUMNS = Row._fields
HEADERS = (COLUMNS, COLUMNS[:-1])  # the second from before `input` was a column
KEY = ("study", "dataset", "workload", "n", "method", "layer", "quantity", "block", "input")
_INTEGERS = ("n", "block")
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
    ) -> Row:
        """Make one row of this case."""
        return Row(*self[:4], method, layer, quantity, unit, block, value, answer, self.input)


def unavailable(case: Case, method: str, layer: str, quantity: str, unit: str, why: str) -> Row:
    """Make the row of a method that gave no number here: a gap that says why."""
    return case.row(method, layer, quantity, unit, None, answer=f"unavailable: {one_line(why)}")


def one_line(text: object, limit: int = 300) -> str:
    """Fold `text` into one line of at most `limit` characters, fit for a CSV cell."""
    line = " ".join(str(text).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def describe(error: BaseException) -> str:
    """Say an exception in one line: its type and its message; what is `Unavailable` says it by itself."""
    if isinstance(error, Unavailable):
        return one_line(str(error))
    return one_line(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)


def write_rows(path: str | Path, rows: Iterable[Row]) -> Path:
    """Validate `rows` and write them as CSV, whole or not at all.

    Raises
    ------
    MeasureError
        A row breaks the schema, or two rows have the same key.
    """
    rows = list(rows)
    validate_rows(rows)
    with atomic_text(Path(path)) as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(
            [*row[:9], "" if row.value is None else repr(_plain(row.value)), *row[10:]] for row in rows
        )
    return Path(path)


def read_rows(path: str | Path) -> pd.DataFrame:
    """Read a result CSV; `value` is NaN where a row is unavailable.

    Only an empty `value` means missing: pandas' own list of missing words contains ``n/a``, which is an
    answer here.

    Raises
    ------
    MeasureError
        The file is absent, or its columns are not those of :class:`Row`.
    """
    import pandas as pd

    if not Path(path).is_file():
        raise MeasureError(f"No result file {path}: run the study that writes it first.")
    kinds = {
        name: "int64" if name in _INTEGERS else "float64" if name == "value" else "str" for name in COLUMNS
    }
    try:
        frame = pd.read_csv(path, dtype=kinds, keep_default_na=False, na_values={"value": [""]})
    except ValueError as error:
        raise MeasureError(f"{path} is not a result file: {one_line(error)}") from error
    if tuple(frame.columns) not in HEADERS:
        raise MeasureError(f"{path} has the columns {list(frame.columns)}; result rows have {list(COLUMNS)}.")
    return frame if "input" in frame else frame.assign(input="")


def validate_rows(rows: pd.DataFrame | str | Path | Iterable[Row]) -> None:
    """Check rows against the schema and for repeated keys.

    Parameters
    ----------
    rows : DataFrame, path of a CSV, or iterable of Row

    Raises
    ------
    MeasureError
        Says which row is wrong, in which column, and what was expected. An empty table is wrong too.
    """
    records = _records(rows)
    if not records:
        raise MeasureError("There are no result rows: a study that measures nothing must say so in a row.")
    _require_schema(records)
    repeated, times = Counter(tuple(record[k] for k in KEY) for record in records).most_common(1)[0]
    if times > 1:
        raise MeasureError(f"{times} rows have the same key {dict(zip(KEY, repeated, strict=True))}.")


def require_distinct(rows: pd.DataFrame, where: str) -> None:
    """Refuse a table as :func:`read_rows` gives it that has rows with the same key.

    Raises
    ------
    MeasureError
        Names `where`, the table's place.
    """
    repeated = rows.duplicated(list(KEY))
    if repeated.any():
        key = rows.loc[repeated.idxmax(), list(KEY)].to_dict()
        raise MeasureError(f"{where} has several rows with the same key {key}.")


def _require_schema(records: list[dict[str, Any]]) -> None:
    """Check each row whole, or only what is new in it: rows of one series differ in block and value alone."""
    series: set[tuple[Any, ...]] = set()
    for number, record in enumerate(records):
        kind = tuple(type(item) if name in _PER_BLOCK else item for name, item in record.items())
        if kind in series:
            violations = (first_violation("results", record[name], name) for name in _PER_BLOCK)
            violation = next(filter(None, violations), None)
        else:
            violation = first_violation("results", record)
        if violation:
            raise MeasureError(f"Row {number} breaks the results schema: {violation}. The row is {record}.")
        series.add(kind)


def _records(rows: pd.DataFrame | str | Path | Iterable[Row]) -> list[dict[str, Any]]:
    """Bring rows of any accepted form to plain dictionaries with None for a missing value."""
    if isinstance(rows, str | Path):
        rows = read_rows(rows)
    if hasattr(rows, "to_dict"):
        return [_clean(record) for record in rows.to_dict("records")]
    rows = list(rows)
    wrong = next((row for row in rows if not isinstance(row, Row)), None)
    if wrong is not None:
        raise InputError(f"Expected octopus_study.measure.Row, found {type(wrong).__name__}: {wrong!r}.")
    return [_clean(row._asdict(), nan_is_missing=False) for row in rows]


def _clean(record: Mapping[str, Any], nan_is_missing: bool = True) -> dict[str, Any]:
    """Turn NumPy scalars into Python's, and NaN and infinity into words, which the schema refuses."""
    clean = {key: _plain(value) for key, value in record.items()}
    value = clean.get("value")
    if isinstance(value, float) and not math.isfinite(value):
        clean["value"] = None if nan_is_missing and math.isnan(value) else str(value)
    return clean


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value
