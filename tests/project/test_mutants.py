"""The table of mutants fits the code, and one of them is killed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from mutants import MUTANTS, killed, main


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_changes_a_text_that_stands_once_and_names_tests_that_are_there(
    name: str, root: Path
) -> None:
    mutant = MUTANTS[name]
    file, old = (mutant.edit.keywords[name] for name in ("file", "old"))
    assert (root / file).read_text(encoding="utf-8").count(old) == 1
    for test in mutant.tests:
        path, _, function = test.partition("::")
        assert f"def {function.partition('[')[0]}" in (root / path).read_text(encoding="utf-8")


def test_a_mutant_is_killed(root: Path) -> None:
    assert killed("wrong-prefix", root)


@pytest.mark.parametrize(("dead", "code"), [(True, 0), (False, 1)])
def test_the_exit_code_says_whether_one_survived(
    dead: bool, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mutants.killed", lambda name: dead)
    monkeypatch.setattr("mutants.passes", lambda tests: True)
    assert main(["wrong-prefix"]) == code


def test_tests_that_fail_by_themselves_kill_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mutants.passes", lambda tests: False)
    assert main(["wrong-prefix"]) == 2
