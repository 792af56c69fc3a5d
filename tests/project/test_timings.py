"""Times that a run announces were measured."""

import re
import subprocess
from pathlib import Path

import pytest

from octopus_study.timings import Timing, expected, read, remaining, rounded

WHERE = ("Some CPU, 2 cores", "0123456789", "2026-01-01")
TIMED = [
    Timing("paper", "cpu", "all", 500, *WHERE),
    Timing("paper", "cpu", "arena", 80, *WHERE),
    Timing("verify", "cpu", "report", 90, *WHERE),
]


@pytest.mark.parametrize(
    ("step", "effort", "seconds"),
    [("arena", "core", 80), ("drone", "core", None), ("arena", "quick", None), ("report", "full", 90)],
)
def test_a_step_takes_as_long_as_where_it_was_timed(root: Path, step: str, effort: str, seconds: float | None) -> None:
    assert expected(step, "cpu", effort, root / "data/reference", TIMED) == seconds


def test_a_full_run_takes_as_long_as_the_reference(root: Path) -> None:
    found = expected("arena", "cuda", "full", root / "data/reference", TIMED)
    assert found is not None and found > 100


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        ([0.2], "about 1 s"),
        ([80], "about 80 s"),
        ([800, 40], "about 14 min"),
        ([800, None], "at least about 13 min"),
        ([None], ""),
        ([], ""),
    ],
)
def test_remaining_times_are_summed_and_rounded(seconds: list[float | None], text: str) -> None:
    assert remaining(seconds) == text
    assert len(seconds) != 1 or rounded(seconds[0]) == text


def test_help_lists_at_most_ten_targets_and_what_they_take(root: Path) -> None:
    shown = subprocess.run(["make", "help"], cwd=root, capture_output=True, text=True, check=True).stdout
    targets = re.findall(r"^  make ([a-z-]+) {2,}(?!\d|.* min, )", shown, re.MULTILINE)
    assert 5 <= len(targets) <= 10
    for row in (row for row in read(root / "config/timings.tsv") if row.step == "all"):
        assert any(f"make {row.target} " in line and row.where in line for line in shown.splitlines()), row
