"""The table of faults names tests that are there, and its script says which rows fail."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from faults import FAULTS, Fault, Outcomes, main


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_has_tests_that_are_there_or_a_reason(name: str, root: Path) -> None:
    fault = FAULTS[name]
    assert fault.should and (fault.tests or fault.reason)
    for test in fault.tests:
        path, *names = test.split("::")
        node: ast.AST = ast.parse((root / path).read_text(encoding="utf-8"))
        for wanted in names:
            node = next(child for child in ast.iter_child_nodes(node) if getattr(child, "name", "") == wanted)


@pytest.mark.parametrize(
    ("outcomes", "said"),
    [
        ({"a.py::t[1]": "passed", "a.py::t[2]": "passed"}, "ok"),
        ({"a.py::t": "passed"}, "ok"),
        ({"a.py::t[1]": "passed", "a.py::t[2]": "failed"}, "FAILED"),
        ({"a.py::t": "skipped"}, "FAILED"),
        ({"a.py::tt": "passed"}, "FAILED"),
    ],
)
def test_a_row_is_ok_where_its_tests_ran_and_none_failed(outcomes: dict[str, str], said: str) -> None:
    seen = Outcomes()
    seen.of = outcomes
    assert seen.said(Fault("works", ("a.py::t",))) == said


def test_what_a_machine_lacks_is_said_and_no_failure() -> None:
    seen, fault = Outcomes(), Fault("works", ("a.py::t",))
    seen.absent = {"a.py::t[3.12]": "not here: Python 3.12"}
    assert seen.said(fault) == "not here: Python 3.12"
    assert seen.said(Fault("works", ("a.py::t", "a.py::other"))) == "FAILED"
    seen.of = {"a.py::t[3.13]": "passed"}
    assert seen.said(fault) == "ok (not here: Python 3.12)"
    seen.of = {"a.py::t[3.13]": "failed"}
    assert seen.said(fault) == "FAILED"


@pytest.mark.parametrize(("outcome", "code"), [("passed", 0), ("failed", 1)])
def test_the_exit_code_says_whether_one_fails(
    outcome: str, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = Outcomes()
    seen.of = {"a.py::t": outcome}
    monkeypatch.setattr("faults.tried", lambda tests: seen)
    rows = {"one": Fault("works", ("a.py::t",)), "two": Fault("works", reason="not yet: no time")}
    monkeypatch.setattr("faults.FAULTS", rows)
    assert main([]) == code
    assert ("1 ok" in capsys.readouterr().out) == (not code)
