"""What is said about times was measured."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from octopus_study.doors import Timed, left, read, said, study_seconds

WHERE = ("Some CPU, 2 cores", "0123456789", "2026-01-01")
TIMED = [Timed("paper", "cpu", "all", 500, *WHERE), Timed("paper", "cpu", "arena", 80, *WHERE)]


@pytest.mark.parametrize(
    ("study", "door", "seconds"),
    [("arena", "paper", 80), ("drone", "paper", None)],
    ids=["timed", "never timed"],
)
def test_a_time_is_of_the_same_door(root: Path, study: str, door: str, seconds: float | None) -> None:
    assert study_seconds(study, "cpu", door, root / "data/reference", TIMED) == seconds


def test_a_whole_run_takes_as_long_as_the_reference(root: Path) -> None:
    found = study_seconds("arena", "cuda", "paper EFFORT=full", root / "data/reference", TIMED)
    assert found is not None and found > 100


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, ""), (0.2, "about 1 s"), (80, "about 80 s"), (242, "about 4 min")]
)
def test_times_are_said_roughly(seconds: float | None, text: str) -> None:
    assert said(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        ({"arena": 800, "drone": 40}, "about 14 min left: arena, drone"),
        ({"arena": 800, "drone": None}, "at least about 13 min left: arena, drone"),
        ({"drone": None}, "left: drone"),
    ],
)
def test_the_time_that_is_left_is_that_of_all(seconds: dict[str, float | None], text: str) -> None:
    assert left(seconds) == text


def test_help_says_what_each_door_takes(root: Path) -> None:
    shown = subprocess.run(["make", "help"], cwd=root, capture_output=True, text=True, check=True).stdout
    whole = [row for row in read(root / "config/doors.tsv") if row.step == "all"]
    assert whole
    for row in whole:
        assert any(f"make {row.door} " in line and row.where in line for line in shown.splitlines()), row
