"""Traces: which readings are new values of a sensor, and what lies in a span."""

from __future__ import annotations

import pickle

import pytest

from octopus_study.power.quantities import Channel, MilliJoule, MilliWatt, UnitError, Watt
from octopus_study.power.source import Sample, SensorError
from octopus_study.power.trace import Failure, Trace, require_samples

BOARD = Channel("nvml", 0)
MS = 10**6


def sample(at_ms: int, power_mw: int | None = None, counter_mj: int | None = None) -> Sample:
    power = None if power_mw is None else Watt.from_power(MilliWatt(power_mw, BOARD))
    counter = None if counter_mj is None else MilliJoule(counter_mj, BOARD)
    return Sample(at_ms * MS, 3000, power, counter)


def test_repeated_values_are_one_update() -> None:
    readings = [(0, 100), (20, 100), (40, 300), (60, 300), (80, 100)]
    times, powers = Trace("gpu_board", tuple(sample(*each) for each in readings)).power_updates()
    assert times == [0, 40 * MS, 80 * MS]
    assert [power.watts for power in powers] == pytest.approx([0.1, 0.3, 0.1])


def test_a_counter_alone_gives_the_mean_power_between_its_updates() -> None:
    readings = [(0, None, 10), (50, None, 10), (100, None, 30), (150, None, 30), (200, None, 90)]
    trace = Trace("cpu_package", tuple(sample(*each) for each in readings))
    assert [(at // MS, counter.value) for at, counter in trace.counter_updates()] == [
        (0, 10),
        (100, 30),
        (200, 90),
    ]
    times, powers = trace.power_updates()
    assert times == [100 * MS, 200 * MS]
    assert [power.watts for power in powers] == pytest.approx([0.2, 0.6])


def test_a_counter_that_went_back_gives_no_power() -> None:
    trace = Trace("cpu_package", (sample(0, None, 10), sample(100, None, 5)))
    with pytest.raises(UnitError, match="went back") as caught:
        trace.power_updates()
    assert caught.value.check == "counter-monotonic"


def test_a_span_includes_both_ends_and_its_failures() -> None:
    failures = (Failure(5 * MS, "early"), Failure(25 * MS, "within"))
    trace = Trace("gpu_board", tuple(sample(at, at) for at in range(0, 50, 10)), failures)
    part = trace.between(10 * MS, 30 * MS)
    assert [each.at_ns // MS for each in part.samples] == [10, 20, 30]
    assert [each.reason for each in part.failures] == ["within"]
    assert trace.between(60 * MS, 70 * MS).samples == ()


def test_traces_join_in_order() -> None:
    first = Trace("gpu_board", (sample(0, 1),), (Failure(1, "a"),))
    both = first.joined(Trace("gpu_board", (sample(10, 2),), (Failure(2, "b"),)))
    assert [each.at_ns for each in both.samples] == [0, 10 * MS]
    assert [each.reason for each in both.failures] == ["a", "b"]


def test_an_empty_trace_says_why() -> None:
    assert Trace("gpu_board", ()).power_updates() == ([], [])
    with pytest.raises(SensorError, match="gpu_board: no reading was made"):
        require_samples(Trace("gpu_board", ()))
    with pytest.raises(SensorError, match="gpu_board: GPU is lost"):
        require_samples(Trace("gpu_board", (), (Failure(1, "try again"), Failure(2, "GPU is lost"))))
    full = Trace("gpu_board", (sample(0, 1),))
    assert require_samples(full) is full


def test_traces_travel_between_processes() -> None:
    trace = Trace("gpu_board", (sample(0, 1, 2),), (Failure(1, "a"),))
    assert pickle.loads(pickle.dumps(trace)) == trace
