"""The power-on test against a machine in simulated time: healthy boards pass, and the proof comes from nowhere else."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from fake_sensors import JetsonTree
from misreadings import jetson
from synthetic_power import Machine

from octopus_study.power.judges import JUDGES, NOT_APPLICABLE, PASSED
from octopus_study.power.loads import known_load
from octopus_study.power.quantities import UnitError
from octopus_study.power.selftest import PassedTest, SelfTest, Timing, power_on_test
from octopus_study.power.source import Sample, SensorError


def machine(idle: float = 10.0, noise: float = 0.1, limit: float = 40.0, **settings: object) -> Machine:
    return Machine(idle_watts=idle, noise=noise, limit_watts=limit, **({"has_counter": False} | settings))


def board(idle: float, load: float, noise: float, **settings: object) -> SelfTest:
    return machine(idle, noise, **settings).test(load)


def refuse() -> None:
    raise SensorError("Not Supported")


@pytest.mark.parametrize(("idle", "load", "noise", "limit"), [
    (125.5, 342, 2.0, 700), (125.5, 681, 3.0, 700), (5.73, 8.14, 0.1, 15), (60, 180, 10, 250), (0.9, 12, 0.1, 28),
], ids=["GPU, a light load", "GPU, at its limit", "Jetson Orin Nano", "server CPU", "laptop CPU"])  # fmt: skip
@pytest.mark.parametrize("counter", [False, True])
def test_healthy_boards_pass(idle: float, load: float, noise: float, limit: int, counter: bool) -> None:
    test = board(idle, load, noise, limit=limit, has_counter=counter)
    assert test.reason == ""
    assert [phase.name for phase in test.phases] == ["idle", "load", "idle", "load"]
    assert [phase.mean for phase in test.phases] == pytest.approx([idle, load] * 2, rel=0.02)
    assert test.proof().scope == "gpu_board"


# (idle, load, noise), what is set of the source, and the check that fails, "" where none does.
LIMITS = [
    ((5.0, 9.0, 0.02), {"voltages_mv": {"in1_input": 5000}}, ""),  # chance: the load tells them apart
    ((10, 10.8, 0.02), {}, "rises"),
    ((10, 11.2, 0.02), {}, ""),
    ((10, 11.2, 1.5), {}, "rises"),
]


@pytest.mark.parametrize(("levels", "settings", "check"), LIMITS)
def test_a_rise_needs_ten_percent_and_five_sigma(levels, settings, check: str) -> None:
    assert board(*levels, **settings).failed == ((check,) if check else ())


@pytest.mark.parametrize(("left", "passes"), [(0.15, True), (0.3, False)])
def test_four_fifths_of_the_rise_must_be_gone(left: float, passes: bool) -> None:
    board = machine()
    calls = iter([board.frame(40, 20)])  # the burst that wakes the device changes nothing

    def load() -> None:
        board.idle_watts = 10 + 10 * left  # some of the rise stays after the first load
        board.frame(40, 20 + 10 * left)()

    test = power_on_test(board, board.collect, lambda: next(calls, load)(), clock=board)
    assert test.failed == (() if passes else ("comes-back",))


def test_a_check_with_nothing_to_look_at_is_not_called_passed() -> None:
    outcomes = {check: verdict.outcome for check, verdict in board(10, 30, 0.1).verdicts.items()}
    silent = {"sibling-voltage", "hierarchy", "counter-monotonic", "counter-agrees"}
    assert {check for check, outcome in outcomes.items() if outcome == NOT_APPLICABLE} == silent
    fuller = board(10, 30, 0.1, has_counter=True, voltages_mv={"in1_input": 4990}, parts_mw={"VDD_SOC": 2000})
    assert {verdict.outcome for verdict in fuller.verdicts.values()} == {PASSED}


def test_the_reason_begins_with_the_check_and_the_proof_repeats_it() -> None:
    test = board(10, 10, 0.1)
    assert test.reason.startswith("rises: power changed by")
    with pytest.raises(SensorError, match="the power-on test failed: rises") as caught:
        test.proof()
    assert caught.value.check == "rises"
    with pytest.raises(SensorError, match="from nothing else"):
        PassedTest("gpu_board")
    with pytest.raises(AttributeError):
        board(10, 30, 0.1).proof().scope = "module_vdd_in"  # type: ignore[misc]


def test_the_record_is_json_with_what_each_check_measured() -> None:
    record = board(10, 30, 0.1, has_counter=True).record()
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert (record["passed"], record["scope"], record["limit_w"]) == (True, "gpu_board", 40.0)
    assert [check["id"] for check in record["checks"]] == list(JUDGES)
    assert all(check["detail"] for check in record["checks"])
    assert record["update_seconds"] == pytest.approx(0.02)


def test_a_failed_look_beside_the_power_is_missing_and_a_mistake_of_units_stops_the_test() -> None:
    board = machine(voltages_mv={"in1_input": 4990})
    board.parts = refuse
    test = board.test()
    assert test.verdicts["sibling-voltage"].outcome == PASSED
    assert test.verdicts["hierarchy"].outcome == NOT_APPLICABLE
    board.parts = lambda: (_ for _ in ()).throw(UnitError("expected MilliVolt"))
    with pytest.raises(UnitError):
        board.test()


def test_an_inner_rail_that_is_off_costs_itself_alone(tmp_path: Path) -> None:
    test = jetson(tmp_path / "off", lambda tree, watts: tree.write("in3_enable", 0)).test()
    assert not test.failed
    assert [list(phase.parts) for phase in test.phases] == [["VDD_CPU_GPU_CV"]] * 4

    def swap(tree: JetsonTree, watts: float) -> None:
        tree.write("in1_label", "VDD_CPU_GPU_CV")
        tree.write("in2_label", "VDD_IN")
        tree.write("in3_enable", 0)

    assert jetson(tmp_path / "swapped", swap).test().failed[0] == "hierarchy"


@pytest.mark.parametrize("step_s", [0.1, 0.5, 1.0])
def test_a_counter_that_is_slower_than_the_power_sets_the_length_of_windows(step_s: float) -> None:
    board, states = machine(has_counter=True), {}
    read = board.read

    def stepped() -> Sample:
        sample = read()
        step = board.now_ns // round(step_s * 1e9)
        return replace(sample, counter=states.setdefault(step, sample.counter))

    board.read = stepped
    assert board.test().update_seconds == pytest.approx(step_s)


def test_an_averaging_sensor_gets_more_time_to_settle_and_phases_last_as_asked() -> None:
    for averaged in (0.0, 1.0):
        test = machine(averaged_seconds=averaged).test(timing=Timing(1.0, 5.0))
        lengths = [(phase.end_ns - phase.start_ns) * 1e-9 for phase in test.phases]
        assert lengths == pytest.approx([5.0] * 4, abs=0.05)
        between = (test.phases[1].start_ns - test.phases[0].end_ns) * 1e-9
        assert between == pytest.approx(1.0 + averaged, abs=0.05)


def test_the_known_load_of_a_cpu_is_a_burst() -> None:
    known_load("cpu")()
