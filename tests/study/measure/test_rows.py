"""Rows and files: what is valid, that a file gives back what was written, and that it is written whole or not at
all."""

import errno
import math
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from octopus_study.errors import DataError, MeasureError
from octopus_study.measure import Case, Row, read_rows, unavailable, validate_rows, write_rows
from octopus_study.measure._files import atomic_text, whole_files
from octopus_study.measure.rows import COLUMNS, one_line
from octopus_study.measure.schema import load_schema
from octopus_study.status import Answer

CASE = Case("stage_timing", "visdrone-val", "visdrone", 100)
REFERENCE = Path(__file__).parents[3] / "data/reference"
GOOD = CASE.row("octopus", "host", "end_to_end", "ms", 1.25, answer="same")


FIRST = "study,dataset,workload,n,method,layer,quantity,unit,block,value,answer"


def test_columns_are_those_of_the_schema():
    assert set(COLUMNS) == set(load_schema("results")["properties"])


@pytest.mark.parametrize("extra", ["", ",input"])
def test_rows_of_the_first_schema_are_adapted(tmp_path, extra):
    path = tmp_path / "mapping.csv"
    cells = "mapping,synthetic,large-blur3x3-uint8,10,octopus,device,kernel,ms"
    answers = {0: "same", 1: "different: largest error 0.5 exceeds 0.1; rounds", 2: "unavailable: no GPU", 3: "n/a"}
    lines = [f"{cells},{block},{'' if block == 2 else 1.5},{answer}" for block, answer in answers.items()]
    path.write_text("\n".join([FIRST + extra, *(line + extra[:1] for line in lines)]) + "\n")
    rows = read_rows(path)
    assert tuple(rows.columns) == COLUMNS
    assert list(rows.status) == ["same", "different", "unavailable", "n/a"]
    assert list(rows.reason) == ["", "rounds", "no GPU", ""]
    assert rows.error[1] == 0.5 and rows.error.isna().sum() == 3
    assert set(zip(rows.distribution, rows.operation, rows.dtype, strict=True)) == {("large", "blur3x3", "uint8")}
    validate_rows(path)


@pytest.mark.parametrize("path", sorted(REFERENCE.glob("*/*.csv")), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_committed_rows_are_the_same_in_the_second_schema(path, tmp_path):
    """What is read of a file of either schema is the same, to the bit."""
    given = read_rows(path)
    values = given.astype(object).where(given.notna(), None).to_numpy()
    pd.testing.assert_frame_equal(read_rows(write_rows(tmp_path / path.name, [Row(*row) for row in values])), given)


def test_rows_come_back_as_they_were_written(tmp_path):
    rows = [
        GOOD._replace(value=0.1 + 0.2),
        GOOD._replace(block=1, value=np.float32(1.5), n=np.int64(100)),
        CASE.row("write", "limit", "bandwidth", "GB/s", 3, answer="n/a"),
        unavailable(CASE, "opencv", "host", "end_to_end", "ms", "not installed"),
        CASE.row("published", "host", "end_to_end", "ms", 7.5, answer='different: rounds, says "uint8"'),
    ]
    frame = read_rows(write_rows(tmp_path / "new" / "stage_timing.csv", rows))
    assert list(frame["value"][:3]) == [0.1 + 0.2, 1.5, 3.0]
    assert math.isnan(frame["value"][3])
    assert list(map(Answer, frame["status"], frame["reason"])) == [row.answer for row in rows]
    assert frame["n"].dtype == frame["block"].dtype == np.int64


@pytest.mark.parametrize(
    ("change", "column"),
    [
        ({"layer": "gpu"}, "layer"),
        ({"unit": "hours"}, "unit"),
        ({"n": -1}, "n"),
        ({"n": 1.5}, "n"),
        ({"block": -1}, "block"),
        ({"study": "Stage Timing"}, "study"),
        ({"method": ""}, "method"),
        ({"status": "yes"}, "status"),
        ({"status": "different"}, "reason"),
        ({"status": "same", "reason": "why"}, "reason"),
        ({"value": None}, "value"),
        ({"value": math.nan}, "value"),
        ({"value": math.inf}, "value"),
        ({"value": "1"}, "value"),
        ({"value": 1.0, "status": "unavailable", "reason": "no GPU"}, "value"),
    ],
)
def test_a_row_that_breaks_the_schema_is_not_written(change, column, tmp_path):
    with pytest.raises(MeasureError, match=rf"Row 1 breaks the results schema: {column}:"):
        write_rows(tmp_path / "s.csv", [GOOD, GOOD._replace(**{"block": 7} | change)])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("change", [{"value": None}, {"value": math.inf}, {"block": -2}, {"block": 0.5}])
def test_a_late_row_of_a_series_is_checked_too(change):
    rows = [GOOD._replace(block=block, value=block + 0.5) for block in range(50)]
    rows[40] = rows[40]._replace(**change)
    with pytest.raises(MeasureError, match=f"Row 40 breaks the results schema: {next(iter(change))}:"):
        validate_rows(rows)


def test_repeated_keys_are_refused():
    with pytest.raises(MeasureError, match="2 rows have the same key"):
        validate_rows([GOOD, GOOD._replace(value=3.0)])


@pytest.mark.parametrize("content", ["", "a,b\n1,2\n", ",".join(COLUMNS) + "\ns,d,w,many,m,host,q,ms,0,1,same\n"])
def test_files_that_are_no_results_are_refused(content, tmp_path):
    path = tmp_path / "s.csv"
    path.write_text(content)
    with pytest.raises(MeasureError, match=r"s\.csv"):
        read_rows(path)


def test_reasons_are_folded_into_one_short_line():
    row = unavailable(CASE, "a", "host", "end_to_end", "ms", "first\n  second" + "x" * 500)
    assert row.answer.startswith("unavailable: first second")
    assert "\n" not in row.answer and len(row.answer) < 320
    assert one_line("a \t b") == "a b"


ROWS = [Case("s", "d", "w", 1).row("m", "host", "time", "ms", 1.0, block=block) for block in range(1000)]


@contextmanager
def little_room(size: int = 4096) -> Iterator[None]:
    """Let the system refuse files beyond a size, as it does on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def write_text(path: Path) -> None:
    with atomic_text(path) as stream:
        stream.write("x" * 100_000)


def draw(path: Path) -> None:
    style = pytest.importorskip("octopus_study.report.charts.style")
    figure = style.empty("Nothing.")
    style.save(figure, path, style.finish(figure, "", synthetic=False))


WRITERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "text": ("a.csv", write_text),
    "rows": ("a.csv", lambda path: write_rows(path, ROWS)),
    "figure": ("a.pdf", draw),
}


@pytest.mark.parametrize(("name", "write"), WRITERS.values(), ids=WRITERS)
def test_a_full_disk_is_one_error_and_leaves_what_was_there(
    name: str, write: Callable[[Path], object], tmp_path: Path
) -> None:
    (tmp_path / name).write_text("old")
    with pytest.raises(DataError, match=r"Can't write into .*Is the disk full"), little_room():
        write(tmp_path / name)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(name, "old")]


def test_an_error_of_the_writer_is_its_own(tmp_path: Path) -> None:
    with pytest.raises(KeyError), whole_files(tmp_path) as folder:
        (folder / "a.txt").write_text("new")
        raise KeyError
    with pytest.raises(FileNotFoundError), whole_files(tmp_path):
        raise FileNotFoundError(errno.ENOENT, "another file")
    assert list(tmp_path.iterdir()) == []
