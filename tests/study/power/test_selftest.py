"""The power-on test against a bench in simulated time: healthy boards pass, and the proof comes from nowhere else."""

from __future__ import annotations

import json
import math
import time
from dataclasses import replace
from pathlib import Path

import pytest
from bench import Bench, Device, PlainSource, plain_bench
from fake_sensors import JetsonTree
from planting import jetson

from octopus_study.power.checks import CHECKS, IDS, POWER_ON, STAGES, TABLE, by_id
from octopus_study.power.judges import FAILED, JUDGES, NOT_APPLICABLE, PASSED
from octopus_study.power.lint import LINT_CHECKS
from octopus_study.power.loads import known_load
from octopus_study.power.quantities import UnitError
from octopus_study.power.selftest import PassedTest, SelfTest, Timing, power_on_test
from octopus_study.power.source import Sample, SensorError


def board(idle: float, load: float, noise: float, **settings: object) -> SelfTest:
    return plain_bench(Device(idle, load, noise=noise), **settings).test()


@pytest.mark.parametrize(
    ("idle", "load", "noise", "limit"),
    [
        (125.5, 342, 2.0, 700),
        (125.5, 681, 3.0, 700),
        (5.73, 8.14, 0.1, 15),
        (60, 180, 10, 250),
        (0.9, 12, 0.1, 28),
    ],
    ids=["H200, a light load", "H200, at its limit", "Jetson Orin Nano", "server CPU", "laptop CPU"],
)
@pytest.mark.parametrize("kind", ["power", "counter", "both"])
def test_healthy_boards_pass(idle: float, load: float, noise: float, limit: int, kind: str) -> None:
    counter = None if kind == "power" else 0
    test = board(idle, load, noise, limit_w=limit, counter_mj=counter, has_power=kind != "counter")
    assert (test.passed, test.reason) == (True, "")
    assert [phase.name for phase in test.phases] == ["idle", "load", "idle", "load"]
    assert [phase.mean for phase in test.phases] == pytest.approx([idle, load] * 2, rel=0.02)
    assert test.proof().scope == "gpu_board"


def test_a_check_with_nothing_to_look_at_is_not_called_passed() -> None:
    outcomes = {check: verdict.outcome for check, verdict in board(10, 30, 0.1).verdicts.items()}
    assert {check for check, outcome in outcomes.items() if outcome == NOT_APPLICABLE} == {
        "sibling-voltage",
        "hierarchy",
        "counter-monotonic",
        "counter-agrees",
    }
    fuller = board(10, 30, 0.1, counter_mj=0, voltages_mv={"in1_input": 4990}, parts_mw={"VDD_SOC": 2000})
    assert {verdict.outcome for verdict in fuller.verdicts.values()} == {PASSED}


def test_one_level_may_meet_the_number_of_a_voltage() -> None:
    """5.0 W at idle beside a rail of 5.0 V is chance: the load tells them apart."""
    assert board(5.0, 9.0, 0.02, voltages_mv={"in1_input": 5000}).passed


@pytest.mark.parametrize(
    ("rise", "noise", "passes"), [(1.08, 0.001, False), (1.12, 0.001, True), (1.12, 0.6, False)]
)
def test_a_rise_needs_ten_percent_and_five_sigma(rise: float, noise: float, passes: bool) -> None:
    test = board(10, 10 * rise, noise)
    assert test.passed is passes
    assert passes or test.failed == ("rises",)


@pytest.mark.parametrize(("left", "passes"), [(0.15, True), (0.25, False)])
def test_four_fifths_of_the_rise_must_be_gone(left: float, passes: bool) -> None:
    device = Device(10, 20)
    bench = plain_bench(device)
    work = bench.load

    def load() -> None:
        device.idle = 10 + 10 * left  # some of the rise stays after the first load
        device.load = 20 + 10 * left
        work()

    device.idle = 10
    test = power_on_test(bench.source, bench.collect, _after_first(load, work), clock=bench)
    assert test.passed is passes
    assert passes or test.failed == ("comes-back",)


def _after_first(load, work):
    """The burst that wakes the device changes nothing."""
    calls = iter([work])
    return lambda: next(calls, load)()


def test_the_reason_begins_with_the_check_and_the_proof_repeats_it() -> None:
    test = board(10, 10, 0.1)
    assert test.reason.startswith("rises: power changed by")
    with pytest.raises(SensorError, match="the power-on test failed: rises") as caught:
        test.proof()
    assert caught.value.check == "rises"


def test_a_proof_is_made_nowhere_else() -> None:
    with pytest.raises(SensorError, match="from nothing else"):
        PassedTest("gpu_board")
    with pytest.raises(AttributeError):
        board(10, 30, 0.1).proof().scope = "cpu_package"  # type: ignore[misc]


def test_the_record_is_json_with_what_each_check_measured() -> None:
    record = board(10, 30, 0.1, counter_mj=0).record()
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert (record["passed"], record["scope"], record["limit_w"]) == (True, "gpu_board", 40.0)
    assert [check["id"] for check in record["checks"]] == list(JUDGES)
    assert all(check["detail"] for check in record["checks"])
    assert [phase["phase"] for phase in record["phases"]] == ["idle", "load", "idle", "load"]
    assert record["update_seconds"] == pytest.approx(0.02)


def test_a_sensor_that_answers_nothing_fails_and_its_record_is_still_json() -> None:
    bench = plain_bench()
    bench.source.read = _refuse
    test = bench.test()
    assert test.failed == ("readable",)
    assert "Not Supported" in test.reason
    assert json.dumps(test.record(), allow_nan=False)


def _refuse() -> None:
    raise SensorError("Not Supported")


def test_a_mistake_of_units_beside_the_power_stops_the_test() -> None:
    bench = plain_bench()

    def parts() -> None:
        raise UnitError("expected MilliVolt")

    bench.source.parts = parts
    with pytest.raises(UnitError):
        bench.test()


def test_a_failed_look_beside_the_power_is_missing() -> None:
    bench = plain_bench(voltages_mv={"in1_input": 4990})
    healthy, calls = bench.source.voltages, iter(range(10**6))

    def voltages() -> dict:
        if next(calls) % 2:
            raise SensorError("try again")
        return healthy()

    bench.source.voltages = voltages
    assert bench.test().verdicts["sibling-voltage"].outcome == PASSED


@pytest.mark.parametrize("off", [(), ("in3_enable",)], ids=["all on", "an inner rail off"])
def test_swapped_labels_are_seen_whatever_else_is_off(off: tuple[str, ...], tmp_path: Path) -> None:
    def swap(tree: JetsonTree, watts: float) -> None:
        tree.write("in1_label", "VDD_CPU_GPU_CV")
        tree.write("in2_label", "VDD_IN")
        for name in off:
            tree.write(name, 0)

    test = jetson(tmp_path, swap).test()
    assert test.failed[0] == "hierarchy"
    assert test.verdicts["sibling-voltage"].outcome == PASSED


def test_an_inner_rail_that_is_off_costs_itself_alone(tmp_path: Path) -> None:
    test = jetson(tmp_path, lambda tree, watts: tree.write("in3_enable", 0)).test()
    assert test.passed
    assert [list(phase.beside.parts) for phase in test.phases] == [["VDD_CPU_GPU_CV"]] * 4
    assert test.verdicts["hierarchy"].outcome == PASSED


def test_parts_that_fail_leave_the_voltages() -> None:
    bench = plain_bench(voltages_mv={"in1_input": 4990})
    bench.source.parts = _refuse
    test = bench.test()
    assert test.verdicts["sibling-voltage"].outcome == PASSED
    assert test.verdicts["hierarchy"].outcome == NOT_APPLICABLE


@pytest.mark.parametrize("step_s", [0.1, 0.5, 1.0])
def test_a_counter_that_is_slower_than_the_power_sets_the_length_of_windows(step_s: float) -> None:
    bench = plain_bench(counter_mj=0)
    bench.source = _Stepped(bench, step_s)
    assert bench.test().update_seconds == pytest.approx(step_s)


class _Stepped:
    """A source whose counter advances so many seconds apart."""

    def __init__(self, bench: Bench, step_s: float) -> None:
        self._bench, self._source, self._step_ns = bench, bench.source, round(step_s * 1e9)
        self._step, self._counter = -1, None

    def __getattr__(self, name: str):
        return getattr(self._source, name)

    def read(self) -> Sample:
        sample, step = self._source.read(), self._bench.monotonic_ns() // self._step_ns
        if step != self._step:
            self._step, self._counter = step, sample.counter
        return replace(sample, counter=self._counter)


def test_an_averaging_sensor_gets_more_time_to_settle() -> None:
    quick, slow = plain_bench(), plain_bench(averaged_seconds=1.0)
    phases = quick.test().phases, slow.test().phases
    spans = [(each[1].start_ns - each[0].end_ns) * 1e-9 for each in phases]
    assert spans == pytest.approx([2.0, 3.0], abs=0.05)


def test_the_phases_last_as_long_as_asked() -> None:
    bench = plain_bench()
    test = power_on_test(bench.source, bench.collect, bench.load, clock=bench, timing=Timing(1.0, 5.0))
    lengths = [(phase.end_ns - phase.start_ns) * 1e-9 for phase in test.phases]
    assert lengths == pytest.approx([5.0] * 4, abs=0.05)


def test_a_counter_that_stands_still_is_no_power_rather_than_no_value() -> None:
    bench = plain_bench(counter_mj=0, has_power=False)
    bench.source.read = _still(bench.source)
    test = bench.test()
    assert test.failed[0] == "plausible-range"
    assert all(phase.mean == 0 and not math.isnan(phase.mean) for phase in test.phases)


def _still(source: PlainSource):
    first = source.read()
    return lambda: first


def test_every_judge_has_a_check_and_every_power_on_check_a_judge() -> None:
    assert [check.id for check in CHECKS if check.stage == POWER_ON] == [
        check for check in JUDGES if by_id(check).stage == POWER_ON
    ]
    assert len(set(IDS)) == len(IDS)
    assert {check.stage for check in CHECKS} == set(STAGES)
    assert {check.id for check in CHECKS if check.stage == TABLE} <= {check.id for check in LINT_CHECKS}
    assert FAILED not in (PASSED, NOT_APPLICABLE)


def test_the_known_load_of_a_cpu_is_a_burst() -> None:
    load = known_load("cpu")
    start = time.perf_counter()
    for _ in range(5):
        load()
    assert time.perf_counter() - start < 5.0
