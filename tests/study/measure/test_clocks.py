"""Clocks: milliseconds of a sleep, units of rows, and what a device clock queues on stand-ins for its events."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest
from fake_clock import FakeClock, steady

from octopus_study.measure import Budget, Case, HostClock, cuda, run_paired
from octopus_study.status import NO_ANSWER


def test_the_host_clock_gives_the_milliseconds_of_a_sleep() -> None:
    start = time.monotonic_ns()
    inner = HostClock().time(lambda: time.sleep(0.02))
    assert 20 * 0.98 <= inner <= (time.monotonic_ns() - start) / 1e6 * 1.02  # a sleep is never shorter


@pytest.mark.parametrize(("unit", "value"), [("ns", 1_500_000.0), ("us", 1500.0), ("ms", 1.5), ("s", 0.0015)])
def test_rows_hold_a_time_in_their_unit(unit: str, value: float) -> None:
    budget = Budget(min_blocks=1, max_blocks=1, min_seconds=0, max_seconds=0)
    case = Case("stage_timing", "n/a", "none", 1)
    rows = run_paired(case, "end_to_end", unit, [steady("one", 1.5)], FakeClock(), budget, NO_ANSWER, 0)
    assert next(row.value for row in rows if row.quantity == "end_to_end") == pytest.approx(value)


class Event(float):
    """Stands for an event of a device; the difference of two is milliseconds."""

    def sync(self) -> None: ...


def test_a_device_time_begins_with_a_cold_l2() -> None:
    queued: list[object] = []
    clock = object.__new__(cuda.CudaEventClock)
    clock._events, clock._writes = [Event(0.0), Event(1.25)], 0
    clock._stream = SimpleNamespace(record=queued.append)
    clock._wait = lambda: queued.append("wait")
    clock._flush = SimpleNamespace(fill=lambda *_, **__: queued.append("fill"))
    assert clock.time(lambda: queued.append("run")) == 1.25
    assert queued == ["fill", "wait", 0.0, "run", 1.25]


def test_the_buffer_that_is_rewritten_has_at_least_the_size_of_the_l2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "l2_bytes", lambda: 1 << 26)
    monkeypatch.setattr(cuda, "allocate", lambda size: size)
    assert object.__new__(cuda.CudaEventClock)._flush >= 1 << 26
