"""Study `power` in simulated time: every number is known beforehand; and on this machine, which has no sensor."""

import json
import random
from collections.abc import Callable
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from power_machine import BOARD, STEP_NS, Machine
from quick import answers, chosen, values

from octopus.backends import cpu
from octopus.backends.cuda import memory
from octopus_study.config import load_config
from octopus_study.errors import Unavailable
from octopus_study.measure import Case, CpuThrottle, GpuThrottle, Method, Row, read_rows, validate_rows, write_rows
from octopus_study.power.choose import SourceSpec
from octopus_study.power.energy import WindowEnergy
from octopus_study.power.lint import lint_file
from octopus_study.power.quantities import Joule, MilliWatt, Watt
from octopus_study.power.session import Attempt, NoUsableSensor
from octopus_study.power.source import Sample, SensorError, Trace
from octopus_study.power.windows import Window
from octopus_study.power.windows import paced as real_paced
from octopus_study.status import SAME, unavailable
from octopus_study.studies import run_study
from octopus_study.studies.comparison import measure_plan
from octopus_study.studies.context import make_context
from octopus_study.studies.crops import reference_of
from octopus_study.studies.power import methods as power_methods
from octopus_study.studies.power import rounds
from octopus_study.studies.power import study as power
from octopus_study.studies.power.methods import CHECKED, make_methods
from octopus_study.studies.power.rounds import Watch
from octopus_study.studies.power.rows import BACK_TO_BACK, PACED, Level, Place, Span, Taken, method_rows, trace_rows

GROSS, NET = "energy_per_frame", "energy_per_frame_net"
CONFIG = Path(__file__).parents[3] / "config" / "config.yaml"
SETTINGS = {"device": "cpu", "power.counts": [10, 20], "power.again_counts": [20], "power.paced_counts": [20]}
# milliseconds per object and watts
METHODS = {
    "octopus": (0.5, 300.0), "published": (1.0, 200.0), "n-launches": (2.0, 130.0), "cvcuda-views": (0.7, 250.0),
    "octopus-again": (0.5, 300.0),
}  # fmt: skip


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
    return partial(run_on, context, monkeypatch)


def of(rows, **where):
    """By quantity the values of a method's windows, back to back with 20 boxes unless said otherwise."""
    rows = chosen(rows, **{"n": 20, "method": "octopus", "layer": "back_to_back"} | where)
    return {quantity: values(rows, quantity=quantity) for quantity in rows.quantity.unique()}


@pytest.fixture(scope="module")
def healthy(manifest):
    with pytest.MonkeyPatch.context() as patch:
        return run_on(context_of(manifest), patch, Machine())


def test_time_power_and_energy_are_those_of_the_machine(healthy):
    for name, (ms, watts) in METHODS.items():
        found = {quantity: series.to_numpy() for quantity, series in of(healthy, method=name).items()}
        assert found["time_per_frame"] == pytest.approx([20 * ms] * 5, rel=1e-6)
        assert found["power_mean"] == pytest.approx(watts, rel=0.002)
        assert found[GROSS] == pytest.approx(watts * 20 * ms, rel=0.002)
        assert found[NET] == pytest.approx((watts - 100) * 20 * ms, rel=0.01)
        assert found["window_energy_counter"] == pytest.approx(found["window_energy_integral"], rel=0.01)
        assert (found["window"] >= 5).all()


def test_paced_frames_take_the_same_net_energy_and_slow_methods_say_so(healthy):
    (ms, watts), found = METHODS["octopus"], of(healthy, layer="paced")
    assert found[NET].to_numpy() == pytest.approx((watts - 100) * ms * 20, rel=0.06)
    assert (found["late_frames"] == 0).all()
    assert answers(healthy, method="n-launches", n=20, layer="paced") == [
        "unavailable: one frame takes 40 ms; at 30 frames/s there are 33.3 ms"
    ]
    assert "octopus-again" not in set(healthy[healthy.layer == "paced"].method)


def test_libraries_stand_beside_at_the_counts_that_are_paced_and_a_missing_one_says_why(healthy):
    beside = healthy[healthy.method.isin(power.LIBRARIES) & (healthy.layer != "trace")]
    assert set(zip(beside.n, beside.layer, strict=True)) == {(20, "back_to_back"), (20, "paced")}
    for layer in ("back_to_back", "paced"):
        assert len(of(healthy, method="cvcuda-views", layer=layer)[NET]) == 5
        assert answers(healthy, method="grid-sample", n=20, layer=layer) == ["unavailable: not installed"]


def test_the_trace_covers_test_idle_and_windows(healthy):
    trace = healthy[healthy.layer == "trace"]
    assert set(trace.method) == {*METHODS, "idle", "self-test", "between"}
    assert set(trace[trace.method == "self-test"].n) == {0}
    start, length = (of(healthy)[name].loc[0] for name in ("window_start", "window"))
    inside = trace[(trace.block >= start * 1e3) & (trace.block <= (start + length) * 1e3)]
    assert len(inside) > 40
    assert inside.value.mean() == pytest.approx(300, rel=0.01)


@pytest.fixture
def findings(context, tmp_path):
    def lint(rows: pd.DataFrame) -> list[str]:
        file = tmp_path / "power.csv"
        found = [Row(*row)._replace(value=None if np.isnan(row[9]) else row[9], error=None) for row in rows.to_numpy()]
        write_rows(file, found)
        config = {"values": context.config.model_dump(mode="json")}
        file.with_suffix(".json").write_text(json.dumps({"extra": context.notes, "config": config}))
        return [str(each) for each in lint_file(file)]

    return lint


def test_a_board_that_is_read_at_random_times_knows_the_energy_at_a_fixed_rate(measure, findings):
    rows = measure(Machine(has_counter=False, dither_ns=STEP_NS - 1_000_000))
    found, truth = of(rows, layer="paced"), 100 * 1e3 / 30 + 200 * 10
    assert len(found[GROSS]) == 5
    assert (np.abs(found[GROSS] / truth - 1) < 1.5 * found["energy_uncertainty"]).all()
    assert not rows.quantity.str.contains("counter").any()
    assert of(rows)[GROSS].to_numpy() == pytest.approx(3000, rel=0.002)
    assert findings(rows) == []


def test_what_sampling_costs_is_measured_in_turns(healthy):
    for name in ("octopus-sampled", "octopus-unsampled"):
        assert len(values(healthy, n=10, method=name, layer="host", quantity="time_per_frame")) == 5


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
    return lambda machine: (
        lambda name, count, frame: machine.frame(ms, watts) if (name, count) == ("octopus", 20) else frame
    )


def counting_double(machine: Machine) -> Change:
    return lambda name, count, frame: setattr(machine, "counter_factor", 2.0) or frame


def warming(machine: Machine) -> Change:
    idle = lambda: setattr(machine, "idle_watts", 100.0 if machine.seconds < 100 else 107.0)  # noqa: E731
    return lambda name, count, frame: lambda: (idle(), frame())


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
TROUBLES: dict[str, tuple] = {
    "none": (Machine, untouched, (OCTOPUS, NET, 5, "")),
    "none of a module": (lambda: Machine(**MODULE), untouched, (OCTOPUS, NET, 5, "")),
    "a method fails, and the others go on":
        (Machine, failing, (PUBLISHED, GROSS, 0, "RuntimeError: out of luck"), (OCTOPUS, GROSS, 5, "")),
    "the counter disagrees": (Machine, counting_double, (OCTOPUS, GROSS, 0, "counter-agrees")),
    "a load below idle": (Machine, drawing(4.0, 90.0), (OCTOPUS, GROSS, 0, "load-above-idle: the load drew")),
    "as little as idle at a rate": (Machine, drawing(0.25, 100.0), (AT_A_RATE, GROSS, 5, "")),
    "late frames that are caught up with": (Machine, sometimes_late, (AT_A_RATE, GROSS, 5, "")),
    "idle drifts":
        (Machine, warming, (OCTOPUS | {"n": 10}, NET, 0, "idle-drift: idle drifted by 7.0%, from "),
         (OCTOPUS | {"n": 10}, GROSS, 5, "")),
    "too few": (Machine, often_silent, (PUBLISHED, GROSS, 0, "4 of 5 windows have an energy: the sensor was silent")),
    "it freezes after its test":
        (partial(Freezing, has_counter=False, dither_ns=5_000_000), untouched,
         (OCTOPUS, GROSS, 0, "distinct-values: the power changed 0 times")),
    "readings in step with the frames": (partial(Machine, has_counter=False), untouched,
        (AT_A_RATE, GROSS, 0, "the readings are in step with the frames")),
    "no averaged power": (OfTheMoment, untouched, (AT_A_RATE, GROSS, 5, "")),
    "not averaged, another gain": (partial(OfTheMoment, counter_factor=1.03), untouched, (AT_A_RATE, GROSS, 5, "")),
}  # fmt: skip


@pytest.mark.parametrize("name", TROUBLES)
def test_a_trouble_costs_what_it_must_and_no_more(measure, findings, name):
    make, spoil, *asked = TROUBLES[name]
    machine = make()
    rows = measure(machine, spoil(machine))
    for where, quantity, count, words in asked:
        assert len(values(rows, quantity=quantity, **where).dropna()) == count
        assert words in " ".join(answers(rows, **where))
    # The stored trace of a power that stands still is no trace of windows that a linter would accept.
    assert isinstance(machine, Freezing) or findings(rows) == []


@pytest.mark.parametrize(
    ("phase", "rounds"), [(0.1, 0), (0.5, 3), (0.95, 5)], ids=["at once", "amid the rounds", "at a fixed rate"]
)
def test_a_sampler_that_dies_ends_in_rows_and_nothing_before_it_is_lost(healthy, measure, findings, phase, rounds):
    whole = healthy[(healthy.n == 20) & (healthy.quantity == "window_start")].value
    machine = Machine(dies_at_s=whole.min() + phase * (whole.max() - whole.min()))
    rows = measure(machine)
    assert machine.seconds < machine.dies_at_s + 15  # nothing is run once it has ended
    assert len(of(rows, n=10)[NET].dropna()) == 5
    assert len(of(rows).get("power_mean", ())) >= rounds
    gross = rows[(rows.n == 20) & rows.quantity.str.startswith("energy_per_frame")]
    missing = gross[gross.value.isna() & ~gross.reason.str.contains("one frame takes|not installed")]
    assert missing.reason.str.contains("ended with code -9").all()
    assert set(missing.layer) >= {"paced"}
    assert not gross[gross.quantity.str.contains("net")].value.notna().any()
    assert set(rows[rows.layer == "trace"].method) >= {"self-test", "idle", "octopus"}
    assert findings(rows) == []


def test_a_sensor_that_fails_for_a_moment_costs_a_row_and_one_more_round(healthy, measure, findings):
    start = of(healthy, method="published")["window_start"].loc[2]
    rows = measure(Machine(silent_s=(start + 1.0, start + 3.0)))
    gross = of(rows, method="published")[GROSS]
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
        assert len(of(rows, n=10)[GROSS].dropna()) == 5
        assert answers(rows, layer="host") == ["unavailable: SensorError: it does not wait"]
        assert findings(rows) == []
    assert answers(rows, **OCTOPUS) == ["unavailable: the sampler ended with code -9"]


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
    assert list(of(rows, n=10)["time_per_frame"].index) == [1, 2, 3, 4, 5]
    assert list(of(rows, n=10, method=GROSS)["discarded_blocks"]) == [1]


def test_a_failed_test_leaves_reasons_and_no_numbers(context):
    @contextmanager
    def refuse(device):
        raise NoUsableSensor([Attempt(SourceSpec("nvml"), "rises: power changed by 0 %")])
        yield

    rows = measure_plan(context, power.plan(context, refuse))
    expected = "unavailable: no power sensor (looked at NVML: rises: power changed by 0 %)"
    assert len(rows) == 3 + 6 + 5 and {(row.value, row.answer) for row in rows} == {(None, expected)}


def test_this_machine_says_what_it_looked_at(manifest, tmp_path, monkeypatch):
    monkeypatch.setattr("octopus_study.power.choose.candidates", lambda device: ())
    specs = (SourceSpec("ina3221", str(tmp_path)),)
    monkeypatch.setattr("octopus_study.power.session.candidates", lambda device: specs)
    out = run_study("power", config=load_config(CONFIG, SETTINGS), manifest=manifest, out=tmp_path / "power.csv")
    rows = read_rows(out)
    assert rows.value.isna().all()
    assert rows.reason.str.startswith("no power sensor (looked at INA3221: no such chip").all()
    record = json.loads(out.with_suffix(".json").read_text())
    assert record["extra"]["power"]["sensor"] is None


MS = 1_000_000
CASE = Case("power", "synthetic", "visdrone", 0)


def read_at(times_ms: list[int], seed: int = 0) -> Trace:
    rng = random.Random(seed)
    return Trace(
        "gpu_board",
        tuple(
            Sample(at * MS, 1, Watt.from_power(MilliWatt(rng.randrange(100_000, 400_000), BOARD)), None)
            for at in times_ms
        ),
    )


def test_a_stored_trace_has_the_energy_of_its_readings():
    trace = read_at(list(range(1000, 7000, 20)))
    rows = trace_rows(CASE, trace, [], 1000 * MS)
    at, watts = (np.array([row[name] for row in rows], float) for name in (8, 9))
    assert np.diff(at) == pytest.approx(50)
    stored = watts.sum() * 0.05
    inside = [s for s in trace.samples if s.at_ns >= 1000 * MS and s.at_ns <= 6950 * MS]
    read = Joule.integral([s.at_ns for s in inside], [s.power for s in inside]).joules
    assert stored == pytest.approx(read, rel=0.004)


def test_a_hole_in_the_readings_is_one_in_the_stored_trace():
    trace = read_at([*range(1000, 2000, 20), *range(4000, 5000, 20)])
    at = [row.block for row in trace_rows(CASE, trace, [], 1000 * MS)]
    assert not [each for each in at if 1000 <= each < 3000]
    assert [each for each in at if each >= 3000]


def test_a_slow_sensor_is_stored_update_by_update():
    trace = read_at(list(range(1000, 3000, 100)))
    spans = [Span(1500 * MS, 1900 * MS, 50, "octopus")]
    rows = trace_rows(CASE, trace, spans, 1000 * MS)
    assert [row.block for row in rows] == list(range(0, 2000, 100))
    assert {row.n for row in rows if row.method == "octopus"} == {50}
    assert [row.block for row in rows if row.method == "octopus"] == [500, 600, 700, 800, 900]
    assert {row.method for row in rows} == {"octopus", "between"}


@pytest.mark.parametrize(("layer", "watts", "known"), [
    (BACK_TO_BACK, 99.0, False), (BACK_TO_BACK, 100.0, False), (BACK_TO_BACK, 100.001, True),
    (PACED, 98.9, False), (PACED, 99.5, True),
])  # fmt: skip
def test_a_load_that_draws_no_more_than_the_idle_device_has_no_energy(layer, watts, known):
    window = Window(0, 5000 * MS, 100, 5000 * MS)
    level = Level("unknown", (power_of(100.0), power_of(99.999_999_99)))
    energy = WindowEnergy(window, None, power_of(watts).times(5000 * MS), 0.01)
    place = Place(CASE, "octopus", layer, 0, "same", 0, BOARD.chip)
    rows = method_rows(place, [(0, Taken(window, energy, ""))], 1, level, "")
    gross = next(row for row in rows if row.quantity.startswith("energy_per_frame"))
    assert (gross.value is not None) is known
    assert known or gross.answer.startswith("unavailable: load-above-idle: the load drew")


def power_of(watts: float) -> Watt:
    return Watt.from_power(MilliWatt(1000, BOARD)).scaled(watts)


def test_the_power_cap_is_told_of_a_gpu_alone(monkeypatch):
    answers = iter([SimpleNamespace(violationTime=nanoseconds) for nanoseconds in (0, 10**18)])
    throttle = GpuThrottle.__new__(GpuThrottle)
    throttle.readable = True
    monkeypatch.setattr(GpuThrottle, "__call__", lambda self: "power cap, hardware power brake")
    monkeypatch.setattr(rounds._nvml, "read", lambda *_: next(answers))
    watch = Watch(throttle)
    assert watch.capped() == 1.0
    assert watch.slowed() == "hardware power brake"
    monkeypatch.setattr(rounds._nvml, "read", lambda *_: pytest.fail("a CPU has no power cap of a GPU"))
    assert Watch(CpuThrottle()).capped() is None


GIB = 2**30


@pytest.fixture
def standard(manifest):
    return make_context("power", load_config(CONFIG, {"device": "cpu"}), manifest)


@pytest.mark.parametrize(("device", "host", "on_device", "lacking"), [
    ("cuda", 2 * GIB, 5 * GIB, None),  # a module of eight gigabytes
    ("cuda", 2 * GIB, 4 * GIB, "GPU"),
    ("cuda", GIB // 2, 8 * GIB, "host"),
    ("cpu", 4 * GIB, 0, "host"),  # where the batch lies on the host
    ("cpu", 6 * GIB, 0, None),
])  # fmt: skip
def test_five_thousand_objects_fit_or_are_refused(monkeypatch, standard, device, host, on_device, lacking) -> None:
    monkeypatch.setattr(cpu, "free_bytes", lambda: host)
    monkeypatch.setattr(memory, "free_bytes", lambda: on_device)
    small = SimpleNamespace(config=standard.config, workload=standard.workload, device=device)
    with pytest.raises(Unavailable, match=f"on the {lacking}") if lacking else nullcontext():
        power_methods.check_room(small, 5000)


def test_the_methods_are_compared_by_crops_from_all_over_the_batch(standard, monkeypatch) -> None:
    monkeypatch.setattr(power_methods, "CHECKED", 3)
    reference = reference_of(standard)
    methods, answers = make_methods(standard, 8, reference)
    assert [method.name for method in methods] == list(answers)
    assert answers["octopus"] == "same"
    assert all(answers[name].startswith(("same", "different: ")) for name in ("published", "n-launches"))
    assert len(reference._crops) <= 3 < CHECKED
