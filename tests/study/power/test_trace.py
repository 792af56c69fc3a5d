"""Traces: which readings are new values of a sensor, and what lies in a span."""

from __future__ import annotations

import pickle

from octopus_study.power.quantities import Channel, MilliJoule, MilliWatt, Watt
from octopus_study.power.source import Sample
from octopus_study.power.trace import Failure, Trace

BOARD, MS = Channel("nvml", 0), 10**6


def trace(*readings: tuple[int, int, int | None], failures: tuple[Failure, ...] = ()) -> Trace:
    """Readings at milliseconds, of milliwatts and a counter of millijoules."""
    samples = []
    for at_ms, power_mw, counter_mj in readings:
        power = Watt.from_power(MilliWatt(power_mw, BOARD))
        counter = None if counter_mj is None else MilliJoule(counter_mj, BOARD)
        samples.append(Sample(at_ms * MS, 3000, power, counter))
    return Trace("gpu_board", tuple(samples), failures)


def test_repeated_values_are_one_update() -> None:
    powers = [(0, 100), (20, 100), (40, 300), (60, 300), (80, 100)]
    found = trace(*((at, power, None) for at, power in powers)).power_updates()
    assert [(at // MS, power.watts) for at, power in found] == [(0, 0.1), (40, 0.3), (80, 0.1)]


def test_a_counter_is_told_where_it_advanced() -> None:
    counts = [(0, 10), (50, 10), (100, 30), (150, 30), (200, 90)]
    found = trace(*((at, 1, state) for at, state in counts)).counter_updates()
    assert [(at // MS, counter.value) for at, counter in found] == [(0, 10), (100, 30), (200, 90)]


def test_a_span_includes_both_ends_and_its_failures() -> None:
    failures = (Failure(5 * MS, "early"), Failure(25 * MS, "within"))
    whole = trace(*((at, at, None) for at in range(0, 50, 10)), failures=failures)
    part = whole.between(10 * MS, 30 * MS)
    assert [each.at_ns // MS for each in part.samples] == [10, 20, 30]
    assert [each.reason for each in part.failures] == ["within"]
    assert whole.between(60 * MS, 70 * MS).samples == ()
    both = part.joined(whole)
    assert (len(both.samples), len(both.failures)) == (8, 3)
    assert pickle.loads(pickle.dumps(both)) == both
