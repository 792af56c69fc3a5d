"""Rows and provenance: valid, complete, bound to each other, and written whole or not at all."""

import errno
import math
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from octopus_study.data.manifest import Manifest
from octopus_study.errors import DataError, MeasureError
from octopus_study.measure import machine_facts, validate_provenance, write_provenance
from octopus_study.measure._files import atomic_text, whole_files
from octopus_study.measure.digest import CODE
from octopus_study.measure.provenance import claims_rules, command_line, git_state, provenance
from octopus_study.measure.rows import COLUMNS, Case, Row, one_line, read_rows, unavailable, validate_rows, write_rows
from octopus_study.measure.schema import load_schema
from octopus_study.power.lint import lint_file
from octopus_study.status import Answer

CASE = Case("stage_timing", "visdrone-val", "visdrone", 100)
REFERENCE = Path(__file__).parents[3] / "data/reference"
GOOD = CASE.row("octopus", "host", "end_to_end", "ms", 1.25, answer="same")
FIRST = "study,dataset,workload,n,method,layer,quantity,unit,block,value,answer"


def test_columns_are_those_of_the_schema():
    assert set(COLUMNS) == set(load_schema("results")["properties"])


@pytest.mark.parametrize("path", sorted(REFERENCE.glob("*/*.csv")), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_committed_rows_are_the_same_once_written_again(path, tmp_path):
    """What is read of either file is the same, to the bit: ten rows of those that differ in block and value alone."""
    given = read_rows(path).groupby([*{*COLUMNS} - {"block", "value"}], dropna=False).head(10).reset_index(drop=True)
    values = given.astype(object).where(given.notna(), None).to_numpy()
    assert read_rows(write_rows(tmp_path / path.name, [Row(*row) for row in values])).equals(given)


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


@pytest.mark.parametrize(("change", "column"), [
    ({"layer": "gpu"}, "layer"), ({"unit": "hours"}, "unit"), ({"n": -1}, "n"), ({"n": 1.5}, "n"),
    ({"block": -1}, "block"), ({"study": "Stage Timing"}, "study"), ({"method": ""}, "method"),
    ({"status": "yes"}, "status"), ({"status": "different"}, "reason"),
    ({"status": "same", "reason": "why"}, "reason"),
    ({"value": None}, "value"), ({"value": math.nan}, "value"), ({"value": math.inf}, "value"),
    ({"value": "1"}, "value"),
    *(({"value": wrong, "status": "unavailable", "reason": "no GPU"}, "value") for wrong in (1.0, math.nan)),
])  # fmt: skip
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


@pytest.mark.parametrize("extra", ["", ",input"])
def test_a_file_with_other_columns_says_which_are_expected_and_what_to_do(extra, tmp_path):
    path = tmp_path / "mapping.csv"
    path.write_text(f"{FIRST}{extra}\nmapping,synthetic,large,10,octopus,device,kernel,ms,0,1.5,same{extra[:1]}\n")
    said = rf"mapping\.csv .*\banswer\b.*{', '.join(COLUMNS)}.*Measure the study again"
    for read in (read_rows, lint_file):
        with pytest.raises(MeasureError, match=said):
            read(path)


def test_reasons_are_folded_into_one_short_line():
    row = unavailable(CASE, "a", "host", "end_to_end", "ms", "first\n  second" + "x" * 500)
    assert row.answer.startswith("unavailable: first second")
    assert "\n" not in row.answer and len(row.answer) < 320
    assert one_line("a \t b") == "a b"


ROWS = [CASE.row("m", "host", "time", "ms", 1.0, block=block) for block in range(1000)]


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


@pytest.mark.usefixtures("little_room")
@pytest.mark.parametrize(("name", "write"), WRITERS.values(), ids=WRITERS)
def test_a_full_disk_is_one_error_and_leaves_what_was_there(name, write, tmp_path):
    (tmp_path / name).write_text("old")
    with pytest.raises(DataError, match=r"Can't write into .*Is the disk full"):
        write(tmp_path / name)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(name, "old")]


def test_an_error_of_the_writer_is_its_own(tmp_path: Path) -> None:
    with pytest.raises(KeyError), whole_files(tmp_path) as folder:
        (folder / "a.txt").write_text("new")
        raise KeyError
    with pytest.raises(FileNotFoundError), whole_files(tmp_path):
        raise FileNotFoundError(errno.ENOENT, "another file")
    assert list(tmp_path.iterdir()) == []


START = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
END = START + timedelta(minutes=3)
MANIFEST = Manifest("visdrone-val", False, "raw/visdrone", "a" * 64, "mirror", "", "", "", "")
CONFIG = {"seed": 42, "measure": {"min_blocks": 20}, "mirror": "/home/me/mirror", "raw_dir": "data/raw"}


@pytest.fixture(scope="module")
def record():
    facts = machine_facts("cpu", threads=2)
    return provenance("stage_timing", CONFIG, MANIFEST, START, END, facts, claims_rules(), extra={"blocks": 20})


@pytest.fixture
def stored(record, tmp_path):
    write_rows(tmp_path / "stage_timing.csv", [GOOD])
    return write_provenance(tmp_path / "stage_timing.json", record)


def test_a_stored_record_is_valid_comes_back_and_keeps_no_path_of_this_machine(stored, record):
    text = stored.read_text()
    assert "/home/me" not in text and "raw/visdrone" not in text and "data/raw" not in text
    found = validate_provenance(stored)
    assert found["results"].pop("rows") == 1
    assert found["results"]["file"] == "stage_timing.csv"
    assert {key: found[key] for key in record} == record


def test_rows_that_were_changed_afterwards_are_found_out(stored):
    table = stored.with_suffix(".csv")
    table.write_text(table.read_text().replace(",1.25,", ",0.5,"))
    with pytest.raises(MeasureError, match=r"stage_timing\.csv was changed after it was measured"):
        validate_provenance(stored)


@pytest.mark.parametrize(("change", "said"), [
    ({"started": "yesterday"}, "started"),
    ({"octopus": {"version": "1", "sha256": "abc"}}, "octopus/sha256"),
    ({"git": {"commit": None}}, "git"), ({"datasets": []}, "datasets"),
    ({"datasets": [{"dataset": "synthetic-visdrone", "synthetic": False, "sha256": "a" * 64}]}, "synthetic"),
    ({"datasets": [{"dataset": "visdrone-val", "synthetic": True, "sha256": "a" * 64}]}, "synthetic"),
    ({"hostname": "box"}, "hostname"), ({"format": 3}, "format"),
    ({"command": "octopus measure arena --out /home/me/arena.csv"}, "command"),
    ({"rules": {"file": "config/claims.yaml", "sha256": "abc"}}, "rules/sha256"),
])  # fmt: skip
def test_a_record_that_breaks_the_schema_is_not_written(record, change, said, tmp_path):
    with pytest.raises(MeasureError, match=said):
        write_provenance(tmp_path / "s.json", {**record, **change})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("key", ["format", "command", "rules"])
def test_a_record_may_not_lack_what_the_schema_demands(record, key, tmp_path):
    lacking = {name: value for name, value in record.items() if name != key}
    with pytest.raises(MeasureError, match=key):
        write_provenance(tmp_path / "s.json", lacking)


def test_a_record_tells_its_host_from_others_without_naming_it(record, tmp_path):
    identity = record["machine"]["identity"]
    assert identity.keys() == {"host", "boot", "gpu"}
    named = {**record, "machine": {**record["machine"], "identity": {**identity, "host": "my-laptop"}}}
    with pytest.raises(MeasureError, match="machine/identity/host"):
        write_provenance(tmp_path / "s.json", named)
    lacking = {name: value for name, value in record["machine"].items() if name != "identity"}
    with pytest.raises(MeasureError, match="identity"):
        write_provenance(tmp_path / "s.json", {**record, "machine": lacking})


@pytest.mark.parametrize(("arguments", "expected"), [
    (["/venv/bin/octopus", "measure", "arena"], "octopus measure arena"),
    (["octopus", "--out", "/repo/data/results/m/arena.csv"], "octopus --out data/results/m/arena.csv"),
    (["octopus", "--manifest=/mnt/me/visdrone-val.json"], "octopus --manifest=.../visdrone-val.json"),
    (["octopus", '--set=raw_dir="/home/me/raw/"'], "octopus '--set=raw_dir=\".../raw\"'"),
    (["octopus", "--set=mirror=~/copies"], "octopus --set=mirror=.../copies"),
    (["octopus", "--set=a=1/2", "data/raw/x.json"], "octopus --set=a=1/2 data/raw/x.json"),
    (["octopus", "--mirror=https://host/a/b"], "octopus --mirror=https:.../b"),
])  # fmt: skip
def test_a_command_keeps_no_folder_of_this_machine(arguments, expected, tmp_path):
    assert command_line(arguments, Path("/repo")) == expected


@pytest.fixture
def checkout(tmp_path):
    folder = tmp_path / "checkout"
    for package in CODE:
        (folder / package).mkdir(parents=True)
        (folder / package / "crop.py").write_text("answer = 42\n")
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for arguments in (["init", "-q"], ["add", "."], [*identity, "commit", "-q", "-m", "a"]):
        subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)
    return folder


def test_git_tells_commit_and_dirt(checkout):
    clean = git_state(checkout)
    assert len(clean["commit"]) == 40 and clean["dirty"] is False and clean["reason"] is None
    (checkout / "new").write_text("1")
    assert git_state(checkout) == {**clean, "dirty": True}


def test_without_git_the_state_is_unknown_and_says_why(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    state = git_state(tmp_path)
    assert state["commit"] is None and state["dirty"] is None
    assert "not a git repository" in state["reason"]
    monkeypatch.setenv("PATH", "")
    assert git_state(tmp_path)["reason"] == "git is not installed"
