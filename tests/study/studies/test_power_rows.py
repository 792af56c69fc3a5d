"""What is stored of a trace, and whether it was the power cap; what a batch needs, and which crops are compared."""

import random
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from octopus.backends import cpu
from octopus.backends.cuda import memory
from octopus_study.config import load_config
from octopus_study.errors import Unavailable
from octopus_study.measure import Case, CpuThrottle, GpuThrottle
from octopus_study.power.energy import WindowEnergy
from octopus_study.power.quantities import Channel, Joule, MilliWatt, Watt
from octopus_study.power.source import Sample, Trace
from octopus_study.power.windows import Window
from octopus_study.studies.context import make_context
from octopus_study.studies.crops import reference_of
from octopus_study.studies.power import methods as power_methods
from octopus_study.studies.power import rounds
from octopus_study.studies.power.methods import CHECKED, make_methods
from octopus_study.studies.power.rounds import Watch
from octopus_study.studies.power.rows import BACK_TO_BACK, PACED, Level, Place, Span, Taken, method_rows, trace_rows

BOARD = Channel("simulated", 0)
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


@pytest.mark.parametrize(
    ("layer", "watts", "known"),
    [
        (BACK_TO_BACK, 99.0, False),
        (BACK_TO_BACK, 100.0, False),
        (BACK_TO_BACK, 100.001, True),
        (PACED, 98.9, False),
        (PACED, 99.5, True),
    ],
)
def test_a_load_that_draws_no_more_than_the_idle_device_has_no_energy(layer, watts, known):
    window = Window(0, 5000 * MS, 100, 5000 * MS)
    level = Level("unknown", (power_of(100.0), power_of(99.999_999_99)))
    energy = WindowEnergy(window, None, power_of(watts).times(5000 * MS), 0.01)
    rows = method_rows(
        Place(CASE, "octopus", layer, 0, "same", 0, BOARD.chip), [(0, Taken(window, energy, ""))], 1, level, ""
    )
    gross = next(row for row in rows if row.quantity.startswith("energy_per_frame"))
    assert (gross.value is not None) is known
    assert known or gross.answer.startswith("unavailable: load-above-idle: the load drew")


def power_of(watts: float) -> Watt:
    return Watt.from_power(MilliWatt(1000, BOARD)).scaled(watts)


class Status:
    def __init__(self, nanoseconds: int) -> None:
        self.violationTime = nanoseconds


def test_the_power_cap_is_told_of_a_gpu_alone(monkeypatch):
    answers = iter([Status(0), Status(10**18)])
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
CONFIG = Path(__file__).parents[3] / "config" / "config.yaml"


@pytest.fixture
def context(manifest):
    return make_context("power", load_config(CONFIG, {"device": "cpu"}), manifest)


def with_memory(monkeypatch, context, device: str, host: int, on_device: int):
    """A context of a device, and so much free memory."""
    monkeypatch.setattr(cpu, "free_bytes", lambda: host)
    monkeypatch.setattr(memory, "free_bytes", lambda: on_device)
    return SimpleNamespace(config=context.config, workload=context.workload, device=device)


@pytest.mark.parametrize(
    ("device", "host", "on_device", "lacking"),
    [
        ("cuda", 2 * GIB, 5 * GIB, None),  # a module of eight gigabytes
        ("cuda", 2 * GIB, 4 * GIB, "GPU"),
        ("cuda", GIB // 2, 8 * GIB, "host"),
        ("cpu", 4 * GIB, 0, "host"),  # where the batch lies on the host
        ("cpu", 6 * GIB, 0, None),
    ],
)
def test_five_thousand_objects_fit_or_are_refused(monkeypatch, context, device, host, on_device, lacking) -> None:
    small = with_memory(monkeypatch, context, device, host, on_device)
    with pytest.raises(Unavailable, match=f"on the {lacking}") if lacking else nullcontext():
        power_methods.check_room(small, 5000)


def test_the_methods_are_compared_by_crops_from_all_over_the_batch(context, monkeypatch) -> None:
    monkeypatch.setattr(power_methods, "CHECKED", 3)
    reference = reference_of(context)
    methods, answers = make_methods(context, 8, reference)
    assert [method.name for method in methods] == list(answers)
    assert answers["octopus"] == "same"
    assert all(answers[name].startswith(("same", "different: ")) for name in ("published", "n-launches"))
    assert len(reference._crops) <= 3 < CHECKED
