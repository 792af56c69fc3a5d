"""A session gives a sensor only behind a test that it passed, in real time and with the sampler's own process."""

import csv
import itertools
import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from fake_sensors import JetsonTree
from typer.testing import CliRunner

from octopus_study.cli.commands import app
from octopus_study.power import session as sessions
from octopus_study.power.choose import SourceSpec
from octopus_study.power.selftest import Timing
from octopus_study.power.session import NoUsableSensor, open_session, try_sensors
from octopus_study.power.source import SensorError
from octopus_study.report.power_selftest import COLUMNS

QUICK = Timing(settle_seconds=0.1, phase_seconds=0.3)


def following(tree: JetsonTree, rise: float = 3.0) -> Callable[[], None]:
    """Return a load of 20 ms under which the files show more watts."""
    wobble = itertools.cycle(0.05 * step for step in range(20))

    def load() -> None:
        tree.set_watts(5.7 + rise + next(wobble))
        time.sleep(0.02)
        tree.set_watts(5.7)

    return load


def test_a_sensor_that_follows_is_given_with_its_proof(tmp_path: Path) -> None:
    tree = JetsonTree(tmp_path)
    spec = SourceSpec("ina3221", str(tmp_path))
    with open_session("cpu", following(tree), [spec], timing=QUICK) as session:
        assert (session.spec, session.selftest.proof().scope) == (spec, "module_vdd_in")
        assert [attempt.reason for attempt in session.attempts] == [""]
        time.sleep(0.1)
        assert len(session.sampler.collect().samples) > 2
    with pytest.raises(SensorError, match="not running"):
        session.sampler.collect()


def test_the_next_candidate_is_tried_and_every_reason_is_kept(tmp_path: Path) -> None:
    tree, empty = JetsonTree(tmp_path / "module"), JetsonTree(tmp_path / "empty")
    empty.write("curr1_input", "")
    specs = [SourceSpec("ina3221", str(each.root)) for each in (empty, tree)]
    with open_session("cpu", following(tree), specs, timing=QUICK) as session:
        assert session.spec == specs[1]
        first, second = session.attempts
        assert (first.selftest, second.selftest) == (None, session.selftest)
        assert "curr1_input is empty" in first.reason


def test_a_sensor_that_does_not_follow_is_never_given(tmp_path: Path) -> None:
    tree = JetsonTree(tmp_path)
    spec = SourceSpec("ina3221", str(tmp_path))
    with (
        pytest.raises(NoUsableSensor, match=r"no power sensor \(looked at INA3221: .*rises") as caught,
        open_session("cpu", following(tree, rise=-0.4), [spec], timing=QUICK),
    ):
        pytest.fail("the session was opened")
    assert caught.value.attempts[0].selftest is not None


def test_a_reason_names_the_check_also_where_no_test_was_made(tmp_path: Path) -> None:
    JetsonTree(tmp_path).write("in1_enable", 0)
    (attempt,), reason = try_sensors("cpu", [SourceSpec("ina3221", str(tmp_path))])
    assert "INA3221: enabled: " in reason
    assert attempt.selftest is None


def run_command(monkeypatch: pytest.MonkeyPatch, out: Path, root: Path, load: Callable[[], None]):
    spec = SourceSpec("ina3221", str(root))
    monkeypatch.setattr(sessions, "candidates", lambda device: (spec,))
    monkeypatch.setattr(sessions, "known_load", lambda device: load)
    monkeypatch.setattr(sessions, "Timing", lambda: QUICK)
    return CliRunner().invoke(app, ["power-selftest", "--device", "cpu", "--out-dir", str(out)])


def test_the_command_leaves_record_trace_and_plot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = JetsonTree(tmp_path)
    result = run_command(monkeypatch, tmp_path / "out", tmp_path, following(tree))
    assert result.exit_code == 0, result.output
    assert "passed: module_vdd_in" in result.output
    record = json.loads((tmp_path / "out/power_selftest.json").read_text())
    assert (record["passed"], record["looked_at"]) == (True, {"ina3221": "passed"})
    rows = list(csv.DictReader((tmp_path / "out/power_selftest.csv").open()))
    assert tuple(rows[0]) == COLUMNS
    assert {row["phase"] for row in rows} == {"", "idle", "load"}
    assert len(rows) == record["selftest"]["samples"]
    assert all((tmp_path / f"out/power_selftest{suffix}").stat().st_size > 5000 for suffix in (".png", ".pdf"))


def test_the_command_without_a_sensor_leaves_the_record_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = run_command(monkeypatch, tmp_path / "out", tmp_path / "nothing", lambda: None)
    assert result.exit_code == 1
    assert "unavailable: no power sensor (looked at INA3221: no such chip)" in result.output
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["power_selftest.json"]
