"""Study `power` in simulated time: every number is known beforehand; and on this machine, which has no sensor."""

import json
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from power_machine import BOARD, STEP_NS, Machine
from quick import answers, values

from octopus_study.config import load_config
from octopus_study.measure import Method, Row, read_rows, validate_rows, write_rows
from octopus_study.power.choose import SourceSpec
from octopus_study.power.lint import lint_file
from octopus_study.power.quantities import MilliWatt, Watt
from octopus_study.power.session import Attempt, NoUsableSensor
from octopus_study.power.source import SensorError
from octopus_study.power.windows import paced as real_paced
from octopus_study.status import SAME, unavailable
from octopus_study.studies import run_study
from octopus_study.studies.comparison import measure_plan
from octopus_study.studies.context import make_context
from octopus_study.studies.power import study as power

GROSS, NET = "energy_per_frame", "energy_per_frame_net"
CONFIG = Path(__file__).parents[3] / "config" / "config.yaml"
SETTINGS = {"device": "cpu", "power.counts": [10, 20], "power.again_counts": [20], "power.paced_counts": [20]}
# milliseconds per object and watts
METHODS = {
    "octopus": (0.1, 300.0),
    "published": (0.4, 200.0),
    "n-launches": (2.0, 130.0),
    "cvcuda-views": (0.2, 250.0),
    "octopus-again": (0.1, 300.0),
}


def context_of(manifest):
    return make_context("power", load_config(CONFIG, SETTINGS), manifest)


def run_on(context, patch, machine: Machine, change=lambda name, count, frame: frame) -> pd.DataFrame:
    """Run the study on a machine; `change` may spoil a method's frame."""

    def make_methods(context, count, reference):
        methods = [
            Method(name, change(name, count, machine.frame(ms * count, watts)))
            for name, (ms, watts) in METHODS.items()
            if name != "octopus-again" or count in context.config.power.again_counts
        ]
        return methods, dict.fromkeys(power.LIBRARIES, unavailable("not installed")) | dict.fromkeys(METHODS, SAME)

    patch.setattr(power, "make_methods", make_methods)
    rows = measure_plan(context, power.plan(context, machine.open_session, machine))
    validate_rows(rows)
    return pd.DataFrame(rows)


@pytest.fixture
def context(manifest):
    return context_of(manifest)


@pytest.fixture
def measure(context, monkeypatch):
    """Run the study on a machine, as `run_on`."""
    return partial(run_on, context, monkeypatch)


@pytest.fixture(scope="module")
def healthy(manifest):
    """The rows of a machine on which nothing is wrong."""
    with pytest.MonkeyPatch.context() as patch:
        return run_on(context_of(manifest), patch, Machine())


def test_time_power_and_energy_are_those_of_the_machine(healthy):
    for name, (ms, watts) in METHODS.items():
        where = {"n": 20, "method": name, "layer": "back_to_back"}
        time, frame = values(healthy, quantity="time_per_frame", **where), ms * 20
        assert len(time) == 5
        assert time.to_numpy() == pytest.approx(frame, rel=1e-6)
        assert values(healthy, quantity="power_mean", **where).to_numpy() == pytest.approx(watts, rel=0.002)
        gross = values(healthy, quantity="energy_per_frame", **where)
        assert gross.to_numpy() == pytest.approx(watts * frame, rel=0.002)
        net = values(healthy, quantity="energy_per_frame_net", **where)
        assert net.to_numpy() == pytest.approx((watts - 100) * frame, rel=0.01)
        assert (values(healthy, quantity="window", **where) >= 5).all()


def test_counter_and_integral_agree_and_the_load_is_above_idle(healthy):
    wide = healthy[healthy.layer == "back_to_back"].pivot_table(
        index=["n", "method", "block"], columns="quantity", values="value"
    )
    ratio = wide.window_energy_counter / wide.window_energy_integral
    assert len(ratio) == 40
    assert np.abs(ratio - 1).max() < 0.01
    idle = values(healthy, n=20, method="idle", layer="idle", quantity="power_mean")
    assert list(idle.index) == [0, 1]
    assert wide.power_mean.min() > idle.max()


def test_paced_frames_take_the_same_net_energy_and_slow_methods_say_so(healthy):
    where = {"n": 20, "layer": "paced"}
    ms, watts = METHODS["octopus"]
    net = values(healthy, method="octopus", quantity="energy_per_frame_net", **where)
    assert net.to_numpy() == pytest.approx((watts - 100) * ms * 20, rel=0.06)
    assert (values(healthy, method="octopus", quantity="late_frames", **where) == 0).all()
    assert answers(healthy, method="n-launches", **where) == [
        "unavailable: one frame takes 40 ms; at 30 frames/s there are 33.3 ms"
    ]
    assert "octopus-again" not in set(healthy[healthy.layer == "paced"].method)


def test_libraries_stand_beside_at_the_counts_that_are_paced_and_a_missing_one_says_why(healthy):
    beside = healthy[healthy.method.isin(power.LIBRARIES) & (healthy.layer != "trace")]
    assert set(zip(beside.n, beside.layer, strict=True)) == {(20, "back_to_back"), (20, "paced")}
    for layer in ("back_to_back", "paced"):
        where = {"n": 20, "layer": layer}
        assert len(values(healthy, method="cvcuda-views", quantity="energy_per_frame_net", **where)) == 5
        assert answers(healthy, method="grid-sample", **where) == ["unavailable: not installed"]


def test_the_trace_covers_test_idle_and_windows(healthy):
    trace = healthy[healthy.layer == "trace"]
    assert set(trace.method) == {*METHODS, "idle", "self-test", "between"}
    assert set(trace[trace.method == "self-test"].n) == {0}
    window = healthy[
        (healthy.method == "octopus") & (healthy.n == 20) & (healthy.layer == "back_to_back") & (healthy.block == 0)
    ]
    start, length = (float(window[window.quantity == name].value.iloc[0]) for name in ("window_start", "window"))
    inside = trace[(trace.block >= start * 1e3) & (trace.block <= (start + length) * 1e3)]
    assert len(inside) > 40
    assert inside.value.mean() == pytest.approx(300, rel=0.01)


@pytest.fixture
def findings(context, tmp_path):
    """What the linter says of a run."""

    def lint(rows: pd.DataFrame) -> list[str]:
        file = tmp_path / "power.csv"
        found = [Row(*row)._replace(value=None if np.isnan(row[9]) else row[9], error=None) for row in rows.to_numpy()]
        write_rows(file, found)
        config = {"values": context.config.model_dump(mode="json")}
        file.with_suffix(".json").write_text(json.dumps({"extra": context.notes, "config": config}))
        return [str(each) for each in lint_file(file)]

    return lint


def test_a_board_without_counter_is_integrated(measure):
    rows = measure(Machine(has_counter=False))
    assert not rows.quantity.str.contains("counter").any()
    gross = values(rows, n=20, method="octopus", layer="back_to_back", quantity="energy_per_frame")
    assert gross.to_numpy() == pytest.approx(600, rel=0.002)


def test_a_board_that_is_read_at_random_times_knows_the_energy_at_a_fixed_rate(measure, findings):
    rows = measure(Machine(has_counter=False, dither_ns=STEP_NS - 1_000_000))
    where = {"n": 20, "method": "octopus", "layer": "paced"}
    gross = values(rows, quantity="energy_per_frame", **where)
    most = values(rows, quantity="energy_uncertainty", **where)
    truth = 100 * 1e3 / 30 + 200 * 2
    assert len(gross) == 5
    assert (np.abs(gross / truth - 1) < 1.5 * most).all()
    assert findings(rows) == []


def test_what_sampling_costs_is_measured_in_turns(healthy):
    for name in ("octopus-sampled", "octopus-unsampled"):
        assert len(values(healthy, n=10, method=name, layer="host", quantity="time_per_frame")) == 5


def started(rows, method, layer="back_to_back", n=20):
    return values(rows, n=n, method=method, layer=layer, quantity="window_start")


# What may go wrong, as data: the machine, what spoils a method's frame on it, the energies that are asked for, how many
# there are, and words of the reason where one is missing. The linter accepts the rows of each.
Frame = Callable[[], None]
Change = Callable[[str, int, Frame], Frame]
OCTOPUS = {"n": 20, "method": "octopus", "layer": "back_to_back"}
PUBLISHED = OCTOPUS | {"method": "published"}
AT_A_RATE = OCTOPUS | {"layer": "paced"}


class Freezing(Machine):
    """A board without a counter whose power stands still from a moment on."""

    def read(self):
        sample = super().read()
        still = Watt.from_power(MilliWatt(250_000, BOARD))
        return replace(sample, power=still) if self.seconds > 25 else sample


class OfTheMoment(Machine):
    """A board with a counter and a power of the moment, and no mean of the driver's own."""

    def read(self):
        return replace(super().read(), averaged=None)

    def facts(self):
        return {"name": "nvml", "power": "nvmlDeviceGetPowerUsage", "integrated": "nvmlDeviceGetPowerUsage"}


def untouched(machine: Machine) -> Change:
    return lambda name, count, frame: frame


def failing(machine: Machine) -> Change:
    def broken():
        raise RuntimeError("out of luck")

    return lambda name, count, frame: broken if (name, count) == ("published", 20) else frame


def drawing(ms: float, watts: float) -> Callable[[Machine], Change]:
    """Octopus takes and draws something else."""
    return lambda machine: (
        lambda name, count, frame: machine.frame(ms, watts) if (name, count) == ("octopus", 20) else frame
    )


def counting_double(machine: Machine) -> Change:
    def change(name, count, frame):
        machine.counter_factor = 2.0
        return frame

    return change


def warming(machine: Machine) -> Change:
    def change(name, count, frame):
        def run():
            machine.idle_watts = 100.0 if machine.seconds < 100 else 107.0
            frame()

        return run

    return change


def sometimes_late(machine: Machine) -> Change:
    calls, late = iter(range(10**9)), machine.frame(40, 300.0)
    return lambda name, count, frame: (
        (lambda: late() if next(calls) % 20 == 0 else frame()) if name == "octopus" else frame
    )


def often_silent(machine: Machine) -> Change:
    begun, last = [], [0.0]

    def change(name, count, frame):
        def run():
            if machine.seconds - last[0] > 5:
                begun.append(machine.seconds)
                if len(begun) % 2:
                    machine.silent_s = (machine.seconds + 2, machine.seconds + 4)
            frame()
            last[0] = machine.seconds

        return run if (name, count) == ("published", 20) else frame

    return change


MODULE = {"has_counter": False, "scope": "module_vdd_in", "name": "ina3221", "idle_watts": 60.0}
TROUBLES: dict[str, tuple[Callable[[], Machine], Callable[[Machine], Change], dict, str, int, str]] = {
    "none": (Machine, untouched, OCTOPUS, NET, 5, ""),
    "none of a module": (lambda: Machine(**MODULE), untouched, OCTOPUS, NET, 5, ""),
    "a method fails": (Machine, failing, PUBLISHED, GROSS, 0, "RuntimeError: out of luck"),
    "the other methods go on": (Machine, failing, OCTOPUS, GROSS, 5, ""),
    "the counter disagrees": (Machine, counting_double, OCTOPUS, GROSS, 0, "counter-agrees"),
    "a load below idle": (Machine, drawing(4.0, 90.0), OCTOPUS, GROSS, 0, "load-above-idle: the load drew"),
    "as little as idle at a rate": (Machine, drawing(0.05, 100.0), AT_A_RATE, GROSS, 5, ""),
    "late frames that are caught up with": (Machine, sometimes_late, AT_A_RATE, GROSS, 5, ""),
    "idle drifts": (Machine, warming, OCTOPUS | {"n": 10}, NET, 0, "idle-drift: idle drifted by 7.0%, from "),
    "idle drifts, gross": (Machine, warming, OCTOPUS | {"n": 10}, GROSS, 5, ""),
    "too few energies": (
        *(Machine, often_silent, PUBLISHED, GROSS, 0),
        "4 of 5 windows have an energy: the sensor was silent",
    ),
    "it freezes after its test": (
        *(lambda: Freezing(has_counter=False, dither_ns=5_000_000), untouched, OCTOPUS, GROSS, 0),
        "distinct-values: the power changed 0 times",
    ),
    "readings in step with the frames": (
        *(lambda: Machine(has_counter=False), untouched, AT_A_RATE, GROSS, 0),
        "the readings are in step with the frames",
    ),
    "no averaged power": (OfTheMoment, untouched, AT_A_RATE, GROSS, 5, ""),
    "no averaged power, another gain": (
        *(lambda: OfTheMoment(counter_factor=1.03), untouched, AT_A_RATE, GROSS, 5),
        "",
    ),
}


@pytest.mark.parametrize("name", TROUBLES)
def test_a_trouble_costs_what_it_must_and_no_more(measure, findings, name):
    make, spoil, where, quantity, count, words = TROUBLES[name]
    machine = make()
    rows = measure(machine, spoil(machine))
    assert len(values(rows, quantity=quantity, **where).dropna()) == count
    assert words in " ".join(answers(rows, **where))
    # The stored trace of a power that stands still is no trace of windows that a linter would accept.
    assert isinstance(machine, Freezing) or findings(rows) == []


@pytest.mark.parametrize(
    ("phase", "rounds"), [(0.1, 0), (0.5, 3), (0.95, 5)], ids=["at once", "amid the rounds", "at a fixed rate"]
)
def test_a_sampler_that_dies_ends_in_rows_and_nothing_before_it_is_lost(healthy, measure, findings, phase, rounds):
    whole = healthy[(healthy.n == 20) & (healthy.quantity == "window_start")].value
    rows = measure(Machine(dies_at_s=whole.min() + phase * (whole.max() - whole.min())))
    assert len(values(rows, n=10, method="octopus", quantity="energy_per_frame_net").dropna()) == 5
    powers = values(rows, n=20, method="octopus", layer="back_to_back", quantity="power_mean")
    assert len(powers) >= rounds
    gross = rows[(rows.n == 20) & rows.quantity.str.startswith("energy_per_frame")]
    missing = gross[gross.value.isna() & ~gross.reason.str.contains("one frame takes|not installed")]
    assert missing.reason.str.contains("ended with code -9").all()
    assert set(missing.layer) >= {"paced"}
    assert not gross[gross.quantity.str.contains("net")].value.notna().any()
    assert set(rows[rows.layer == "trace"].method) >= {"self-test", "idle", "octopus"}
    assert findings(rows) == []


def test_nothing_is_run_once_the_sampler_has_ended(measure):
    machine = Machine(dies_at_s=60.0)
    rows = measure(machine)
    assert machine.seconds < 75
    assert answers(rows, n=20, method="published", layer="back_to_back") == [
        "unavailable: the sampler ended with code -9"
    ]


def test_a_sensor_that_fails_for_a_moment_costs_a_row_and_one_more_round(healthy, measure, findings):
    start = started(healthy, "published").loc[2]
    rows = measure(Machine(silent_s=(start + 1.0, start + 3.0)))
    gross = values(rows, n=20, method="published", layer="back_to_back", quantity="energy_per_frame")
    assert list(gross.index) == list(range(6))
    assert list(gross.index[gross.isna()]) == [2]
    assert any("silent for 2.0 s" in each for each in answers(rows, method="published", n=20, block=2))
    assert findings(rows) == []


def test_what_sampling_costs_never_costs_the_windows(measure, findings, monkeypatch):
    class Unstoppable(Machine):
        def pause(self):
            raise SensorError("it does not wait")

    class Dying(Unstoppable):
        def resume(self):
            raise SensorError("the sampler ended with code -9")

    for kind in (Unstoppable, Dying):
        rows = measure(kind())
        assert len(values(rows, n=10, method="octopus", quantity="energy_per_frame").dropna()) == 5
        assert answers(rows, layer="host") == ["unavailable: SensorError: it does not wait"]
        assert findings(rows) == []
    assert answers(rows, n=20, method="octopus", layer="back_to_back") == [
        "unavailable: the sampler ended with code -9"
    ]


def test_frames_that_come_late_at_a_fixed_rate_have_no_energy(measure, findings, monkeypatch):
    machine = Machine()
    slower = partial(real_paced, machine.frame(40, 150.0))
    monkeypatch.setattr(power, "paced", lambda frame, *rest, **named: slower(*rest, **named))
    rows = measure(machine)
    where = {"n": 20, "layer": "paced", "method": "octopus"}
    found = answers(rows, quantity="energy_per_frame", **where)
    expected = "unavailable: frame-rate: 25 frames/s were made in the place of 30; 150 of 150 were late"
    assert found == [expected] * 5
    assert (values(rows, quantity="late_frames", **where) == 150).all()
    assert findings(rows) == []


def test_a_slowdown_costs_the_round_and_the_power_cap_does_not(measure, context, monkeypatch):
    reasons = iter(["", "power cap, power limit for 80% of the time", "hardware thermal slowdown"])
    monkeypatch.setattr(context.throttle.__class__, "__call__", lambda self: next(reasons, ""), raising=True)
    monkeypatch.setattr(context.throttle, "readable", True)
    rows = measure(Machine())
    time = values(rows, n=10, method="octopus", layer="back_to_back", quantity="time_per_frame")
    assert list(time.index) == [1, 2, 3, 4, 5]
    discarded = values(rows, n=10, method="energy_per_frame", layer="back_to_back", quantity="discarded_blocks")
    assert list(discarded) == [1]


def test_a_failed_test_leaves_reasons_and_no_numbers(context):
    @contextmanager
    def refuse(device):
        raise NoUsableSensor([Attempt(SourceSpec("nvml"), "rises: power changed by 0 %")])
        yield

    rows = measure_plan(context, power.plan(context, refuse))
    assert len(rows) == 3 + 6 + 5
    assert {row.value for row in rows} == {None}
    expected = "unavailable: no power sensor (looked at NVML: rises: power changed by 0 %)"
    assert {row.answer for row in rows} == {expected}


def test_this_machine_says_what_it_looked_at(manifest, tmp_path, monkeypatch):
    monkeypatch.setattr("octopus_study.power.choose.candidates", lambda device: ())
    monkeypatch.setattr(
        "octopus_study.power.session.candidates", lambda device: (SourceSpec("ina3221", str(tmp_path)),)
    )
    out = run_study("power", config=load_config(CONFIG, SETTINGS), manifest=manifest, out=tmp_path / "power.csv")
    rows = read_rows(out)
    assert rows.value.isna().all()
    assert rows.reason.str.startswith("no power sensor (looked at INA3221: no such chip").all()
    record = json.loads(out.with_suffix(".json").read_text())
    assert record["extra"]["power"]["sensor"] is None
