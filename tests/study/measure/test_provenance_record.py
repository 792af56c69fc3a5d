"""Provenance: complete, valid, and bound to the rows beside it."""

import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from octopus_study.data.manifest import Manifest
from octopus_study.errors import MeasureError
from octopus_study.measure import Case, machine_facts, validate_provenance, write_provenance, write_rows
from octopus_study.measure.digest import CODE
from octopus_study.measure.provenance import claims_rules, command_line, git_state, provenance

START = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
END = START + timedelta(minutes=3)
MANIFEST = Manifest("visdrone-val", False, "raw/visdrone", "a" * 64, "mirror", "", "", "", "")
CONFIG = {"seed": 42, "measure": {"min_blocks": 20}, "mirror": "/home/me/mirror", "raw_dir": "data/raw"}
ROW = Case("stage_timing", "visdrone-val", "visdrone", 100).row("octopus", "host", "end_to_end", "ms", 1.0)


@pytest.fixture(scope="module")
def record():
    facts = machine_facts("cpu", threads=2)
    return provenance("stage_timing", CONFIG, MANIFEST, START, END, facts, claims_rules(), extra={"blocks": 20})


@pytest.fixture
def stored(record, tmp_path):
    write_rows(tmp_path / "stage_timing.csv", [ROW])
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
    table.write_text(table.read_text().replace(",1.0,", ",0.5,"))
    with pytest.raises(MeasureError, match=r"stage_timing\.csv was changed after it was measured"):
        validate_provenance(stored)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"started": "yesterday"}, "started"),
        ({"octopus": {"version": "1", "sha256": "abc"}}, "octopus/sha256"),
        ({"git": {"commit": None}}, "git"),
        ({"datasets": []}, "datasets"),
        ({"datasets": [{"dataset": "synthetic-visdrone", "synthetic": False, "sha256": "a" * 64}]}, "synthetic"),
        ({"datasets": [{"dataset": "visdrone-val", "synthetic": True, "sha256": "a" * 64}]}, "synthetic"),
        ({"hostname": "box"}, "hostname"),
        ({"format": 3}, "format"),
        ({"command": "octopus measure arena --out /home/me/arena.csv"}, "command"),
        ({"rules": {"file": "config/claims.yaml", "sha256": "abc"}}, "rules/sha256"),
    ],
)
def test_a_record_that_breaks_the_schema_is_not_written(record, change, said, tmp_path):
    with pytest.raises(MeasureError, match=said):
        write_provenance(tmp_path / "s.json", {**record, **change})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("key", ["command", "rules"])
def test_only_a_record_of_before_may_lack_what_is_demanded_since(record, key, tmp_path):
    lacking = {name: value for name, value in record.items() if name != key}
    with pytest.raises(MeasureError, match=key):
        write_provenance(tmp_path / "s.json", lacking)
    write_provenance(tmp_path / "s.json", {name: value for name, value in lacking.items() if name != "format"})


def test_a_record_tells_its_host_from_others_without_naming_it(record, tmp_path):
    identity = record["machine"]["identity"]
    assert identity.keys() == {"host", "boot", "gpu"}
    named = {**record, "machine": {**record["machine"], "identity": {**identity, "host": "my-laptop"}}}
    with pytest.raises(MeasureError, match="machine/identity/host"):
        write_provenance(tmp_path / "s.json", named)
    lacking = {name: value for name, value in record["machine"].items() if name != "identity"}
    with pytest.raises(MeasureError, match="identity"):
        write_provenance(tmp_path / "s.json", {**record, "machine": lacking})


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["/venv/bin/octopus", "measure", "arena"], "octopus measure arena"),
        (["octopus", "--out", "/repo/data/results/m/arena.csv"], "octopus --out data/results/m/arena.csv"),
        (["octopus", "--manifest=/mnt/me/visdrone-val.json"], "octopus --manifest=.../visdrone-val.json"),
        (["octopus", '--set=raw_dir="/home/me/raw/"'], "octopus '--set=raw_dir=\".../raw\"'"),
        (["octopus", "--set=mirror=~/copies"], "octopus --set=mirror=.../copies"),
        (["octopus", "--set=a=1/2", "data/raw/x.json"], "octopus --set=a=1/2 data/raw/x.json"),
        (["octopus", "--mirror=https://host/a/b"], "octopus --mirror=https:.../b"),
    ],
)
def test_a_command_keeps_no_folder_of_this_machine(arguments, expected, tmp_path):
    assert command_line(arguments, Path("/repo")) == expected


@pytest.fixture
def checkout(tmp_path):
    """A clean checkout with packages of one file."""
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
