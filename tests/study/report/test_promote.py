"""Only a vetted run becomes a reference; a refused one leaves nothing behind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from synthetic_runs import BASIS, write_run

from octopus_study.errors import DataError
from octopus_study.report.compare import compare_runs
from octopus_study.report.promote import promote


def edit_record(path: Path, **changes: object) -> None:
    record = json.loads(path.read_text())
    record["git"] |= changes
    path.write_text(json.dumps(record))


def test_a_clean_real_run_is_copied(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "results", "m", "cpu", quick=True)
    target = promote(folder, tmp_path / "reference")
    assert sorted(path.name for path in target.iterdir()) == sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda folder: edit_record(folder / "stage_timing.json", dirty=True), "not committed"),
        (lambda folder: edit_record(folder / "stage_timing.json", dirty=None, reason="no git"), "no git"),
        (lambda folder: (folder / "distribution.json").unlink(), "provenance"),
        (
            lambda folder: (folder / "distribution.csv").open("a").write("x\n"),
            "changed after it was measured",
        ),
    ],
    ids=["dirty", "unknown", "no provenance", "edited rows"],
)
def test_a_doubtful_run_is_refused_whole(tmp_path: Path, spoil: object, reason: str) -> None:
    folder = write_run(tmp_path / "results", "m", "cpu", quick=True, only=BASIS)
    spoil(folder)
    with pytest.raises(DataError, match=reason):
        promote(folder, tmp_path / "reference")
    assert not (tmp_path / "reference").exists()


def test_synthetic_boxes_are_refused(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "results", "m", "cpu", "synthetic-visdrone", quick=True, only=BASIS)
    with pytest.raises(DataError, match="synthetic"):
        promote(folder, tmp_path / "reference")


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="No results to promote"):
        promote(tmp_path, tmp_path / "reference")


def test_a_run_compared_with_itself_has_ratio_one(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "reference", "m", "cpu", quick=True)
    table = compare_runs(folder, tmp_path / "reference")
    assert len(table) > 100 and (table["ratio"] == 1).all()
    assert {"m"} == set(table["machine"])
