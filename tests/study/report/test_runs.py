"""Rows are reported only when they are those that were measured; each file that isn't is named."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from synthetic_runs import BASIS, ROOT, sign, write_run

from octopus_study.errors import MeasureError
from octopus_study.report.runs import load_runs

SPOILT = "stage_timing"
Edit = Callable[[list[str]], list[str]]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("measured"), "m", "cpu", quick=True, only=BASIS)


@pytest.fixture
def folder(measured: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(measured, tmp_path / "reference" / "m"))


def edit(folder: Path, change: Edit, signed: bool = False) -> None:
    path = folder / f"{SPOILT}.csv"
    path.write_text("".join(change(path.read_text().splitlines(keepends=True))))
    if signed:
        sign(path)


def times_ten(lines: list[str]) -> list[str]:
    place = next(place for place, line in enumerate(lines) if ",octopus,host," in line)
    cells = lines[place].split(",")
    cells[9] = str(10 * float(cells[9]))
    return [*lines[:place], ",".join(cells), *lines[place + 1 :]]


def emptied(lines: list[str]) -> list[str]:
    cells = lines[1].split(",")
    return [lines[0], ",".join([*cells[:9], "", *cells[10:]]), *lines[2:]]


EDITS: dict[str, tuple[Edit, str]] = {
    "a value": (times_ten, "changed after it was measured"),
    "a row removed": (lambda lines: lines[:-1], "changed after it was measured"),
    "a row twice": (lambda lines: [*lines, lines[-1]], "changed after it was measured"),
    "a value emptied": (emptied, "changed after it was measured"),
    "cut in half": (
        lambda lines: ["".join(lines)[: len("".join(lines)) // 2]],
        "changed after it was measured",
    ),
    "header only": (lambda lines: lines[:1], "changed after it was measured"),
    "no line": (lambda lines: [], "changed after it was measured"),
    "another study": (
        lambda lines: [line.replace("stage_timing,", "arena,", 1) for line in lines],
        "changed after it was measured",
    ),
}
SIGNED: dict[str, tuple[Edit, str]] = {
    "a row twice": (lambda lines: [*lines, lines[-1]], "several rows with the same key"),
    "header only": (lambda lines: lines[:1], "is less than the minimum of 1"),
    "another study": (EDITS["another study"][0], "of the studies arena, stage_timing"),
    "no table": (lambda lines: ["hello\n", "world\n"], "is not a result file|has the columns"),
}


@pytest.mark.parametrize(("change", "reason"), EDITS.values(), ids=EDITS)
@pytest.mark.parametrize("role", ["here", "reference"])
def test_changed_rows_are_refused(role: str, change: Edit, reason: str, folder: Path) -> None:
    edit(folder, change)
    where = (folder, None) if role == "here" else (None, folder.parent)
    with pytest.raises(MeasureError, match=f"1 of 2 results can't be reported. .*{SPOILT}.csv was {reason}"):
        load_runs(*where)


@pytest.mark.parametrize(("change", "reason"), SIGNED.values(), ids=SIGNED)
def test_rows_with_a_fitting_digest_are_refused(change: Edit, reason: str, folder: Path) -> None:
    edit(folder, change, signed=True)
    with pytest.raises(MeasureError, match=f"{SPOILT}.*({reason})"):
        load_runs(folder, None)


def without_table(path: Path) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | {"results": None}))


def not_finite(path: Path) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | {"extra": {"load": float("nan")}}))


RECORDS: dict[str, tuple[Callable[[Path], object], str]] = {
    "absent": (Path.unlink, "There is no provenance .*stage_timing.json"),
    "half": (lambda path: path.write_text(path.read_text()[:700]), "Can't read the provenance"),
    "empty": (lambda path: path.write_text(""), "Can't read the provenance"),
    "no text": (lambda path: path.write_bytes(b"\xff\xfe{"), "Can't read the provenance"),
    "no record": (lambda path: path.write_text("[]"), "breaks the provenance schema"),
    "not finite": (not_finite, "breaks the provenance schema"),
    "of no table": (without_table, "is no provenance of stage_timing.csv"),
    "of another study": (
        lambda path: shutil.copy(path.with_name("distribution.json"), path),
        "is no provenance of stage_timing.csv",
    ),
}


@pytest.mark.parametrize(("spoil", "reason"), RECORDS.values(), ids=RECORDS)
def test_bad_provenance_is_refused(spoil: Callable[[Path], object], reason: str, folder: Path) -> None:
    spoil(folder / f"{SPOILT}.json")
    with pytest.raises(MeasureError, match=f"1 of 2 results can't be reported. .*{reason}"):
        load_runs(folder, None)


def test_all_that_is_refused_is_named(folder: Path) -> None:
    for study in BASIS:
        (folder / f"{study}.json").unlink()
    with pytest.raises(
        MeasureError, match=r"2 of 2 results can't be reported. .*distribution.json.*stage_timing"
    ):
        load_runs(None, folder.parent)


def test_committed_references_are_what_was_measured() -> None:
    assert {run.scope for run in load_runs(None, ROOT / "data" / "reference")} == {
        "intel-xeon-2c",
        "nvidia-h200",
    }
