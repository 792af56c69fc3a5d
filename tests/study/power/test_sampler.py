"""The sampler's beat, failures and death in a process of its own; a session gives no sensor that failed its test."""

import csv
import itertools
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from fake_sensors import JetsonTree
from typer.testing import CliRunner

from octopus_study.cli.commands import app
from octopus_study.power import sampler as sampler_module
from octopus_study.power import session as sessions
from octopus_study.power.choose import SourceSpec
from octopus_study.power.quantities import Channel, MilliWatt, Watt
from octopus_study.power.sampler import Beat, Sampler
from octopus_study.power.selftest import Timing
from octopus_study.power.session import NoUsableSensor, open_session, try_sensors
from octopus_study.power.source import Sample, SensorError
from octopus_study.report.power_selftest import COLUMNS

BOARD = Channel("board", 0)


@pytest.fixture
def tree(tmp_path: Path) -> JetsonTree:
    return JetsonTree(tmp_path)


@pytest.fixture
def running(tree: JetsonTree) -> Iterator[Sampler]:
    with Sampler(SourceSpec("ina3221", str(tree.root)), 0.005) as sampler:
        yield sampler


def wait_for(sampler: Sampler, enough, seconds: float = 10.0):
    """Collect until it is enough; return all that was collected."""
    trace, end = sampler.collect(), time.monotonic() + seconds
    while not enough(trace):
        assert time.monotonic() < end, "the sampler never gave it"
        time.sleep(0.02)
        trace = trace.joined(sampler.collect())
    return trace


def test_readings_carry_the_time_at_which_they_were_made(running: Sampler, tree: JetsonTree) -> None:
    running.collect()
    before = time.monotonic_ns()
    trace = wait_for(running, lambda trace: len(trace.samples) >= 5)
    times = [sample.at_ns for sample in trace.samples]
    assert trace.scope == "module_vdd_in"
    assert times == sorted(set(times))
    assert before - 50_000_000 < times[0] <= times[-1] < time.monotonic_ns()


def test_a_change_shows_in_the_samples_behind_it(running: Sampler, tree: JetsonTree) -> None:
    wait_for(running, lambda trace: len(trace.samples) >= 2)
    changed_ns = time.monotonic_ns()
    tree.set_watts(11.0)
    trace = wait_for(running, lambda trace: any(s.power.watts > 10 for s in trace.samples))
    assert all(s.power.watts < 10 for s in trace.samples if s.at_ns < changed_ns)
    assert len(running.collect().samples) < len(trace.samples) + 50  # what was collected is gone


def test_a_failed_reading_is_a_failure_and_reading_goes_on(running: Sampler, tree: JetsonTree) -> None:
    (tree.chip / "curr1_input").unlink()
    failed = wait_for(running, lambda trace: len(trace.failures) >= 3)
    assert all("curr1_input can't be read" in each.reason for each in failed.failures)
    tree.set_watts(5.73)
    healed = wait_for(running, lambda trace: trace.samples and trace.samples[-1].at_ns > failed.failures[-1].at_ns)
    assert all(sample.power.watts > 5 for sample in (*failed.samples, *healed.samples))
    facts = running.facts()
    assert facts["failures"] >= 3
    assert facts["samples"] == len(failed.samples) + len(healed.samples)


def test_pausing_leaves_a_gap_and_no_readings(running: Sampler) -> None:
    running.pause()
    running.collect()
    time.sleep(0.1)
    assert running.collect().samples == ()
    running.resume()
    assert wait_for(running, lambda trace: len(trace.samples) >= 3).failures == ()


def test_facts_are_json(running: Sampler) -> None:
    facts = running.facts()
    assert json.loads(json.dumps(facts)) == facts
    assert (facts["interval_s"], facts["scope"]) == (0.005, "module_vdd_in")


def test_a_child_that_dies_is_an_error(running: Sampler) -> None:
    os.kill(running._worker.pid, signal.SIGKILL)
    with pytest.raises(SensorError, match="the sampler of INA3221 ended by SIGKILL"):
        for _ in range(2):  # the first command may still fit into the pipe of the dying process
            running.collect()


def test_a_source_that_cannot_be_opened_there_is_refused_with_its_reason(tree: JetsonTree) -> None:
    tree.write("curr1_input", "")
    spec = SourceSpec("ina3221", str(tree.root))
    with pytest.raises(SensorError, match="curr1_input is empty"), Sampler(spec):
        raise AssertionError("it was opened")


@pytest.mark.parametrize(("asked", "interval"), [(0.019, 0.019), (0.002, 0.003)])
def test_the_interval_is_three_readings_long_at_least(asked: float, interval: float) -> None:
    source = Moved()
    source.interval_s = asked
    beat = sampler_module.open_beat(SimpleNamespace(open=lambda: source), None)
    assert beat.facts()["interval_s"] == pytest.approx(interval)


class Moved:
    """A clock that readings of 1 ms and sleeps move."""

    scope, now_ns = "gpu_board", 10**9

    def monotonic_ns(self) -> int:
        return self.now_ns

    def sleep(self, seconds: float) -> None:
        self.now_ns += round(seconds * 1e9)

    def read(self) -> Sample:
        self.sleep(0.001)
        return Sample(self.now_ns, 10**6, Watt.from_power(MilliWatt(5000, BOARD)), None)


def test_beats_keep_their_grid_and_leave_out_those_that_were_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    moved = Moved()
    monkeypatch.setattr(sampler_module, "time", moved)
    beat = Beat(moved, 0.01)
    times = []
    for late in (0.0, 0.0, 0.035, 0.0):
        moved.sleep(beat.wait_s())
        moved.sleep(late)
        beat.read()
        times.append(round((moved.now_ns - 10**9) * 1e-6))
    assert times == [1, 11, 56, 61]
    assert [len(beat.take().samples) for _ in range(2)] == [4, 0]


QUICK = Timing(settle_seconds=0.1, phase_seconds=0.3)


def following(tree: JetsonTree, rise: float = 3.0) -> Callable[[], None]:
    """Return a load of 20 ms under which the files show more watts."""
    wobble = itertools.cycle(0.05 * step for step in range(20))

    def load() -> None:
        tree.set_watts(5.7 + rise + next(wobble))
        time.sleep(0.02)
        tree.set_watts(5.7)

    return load


def test_a_sensor_that_follows_is_given_with_its_proof(tree: JetsonTree) -> None:
    spec = SourceSpec("ina3221", str(tree.root))
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


def test_a_sensor_that_does_not_follow_is_never_given(tree: JetsonTree) -> None:
    spec = SourceSpec("ina3221", str(tree.root))
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


def test_the_command_leaves_record_trace_and_plot(tree, tmp_path, monkeypatch):
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
