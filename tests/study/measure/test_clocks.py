"""Clocks and the memory's limits: milliseconds of a sleep, units of rows, rates, and what a device clock queues."""

import time
from types import SimpleNamespace

import numpy as np
import pytest
from fake_clock import FakeClock, steady

from octopus_study.kernels.cpu import probes
from octopus_study.measure import Budget, Case, HostClock, cuda, run_paired
from octopus_study.measure.bandwidth import MIB, bandwidth_rows, fill
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


QUICK = Budget(3, 3, 0.0, 5.0, 0.5, 0.02)


def test_rates_count_every_byte_that_crosses_the_interface():
    class TwoMilliseconds(HostClock):
        def time(self, run):
            run()
            return 2.0

    rows = bandwidth_rows("stage_timing", "synthetic-visdrone", 4 * MIB, "cpu", TwoMilliseconds(), QUICK, 1)
    rates = {row.method: row.value for row in rows if row.quantity == "bandwidth"}
    assert rates["write"] == rates["read"] == pytest.approx(4 * MIB / 2e-3 / 1e9)
    assert rates["copy"] == 2 * rates["write"]
    assert {row.layer for row in rows} == {"limit"}
    assert {row.unit for row in rows if row.quantity == "bandwidth"} == {"GB/s"}


@pytest.mark.parametrize("size", [1, probes.PART - 1, probes.PART, 3 * probes.PART + 5])
def test_the_probes_touch_every_element(size):
    source = np.random.default_rng(0).random(size, np.float32)
    target = np.zeros(size, np.float32)
    probes.copy(source, target)
    assert np.array_equal(source, target)
    assert np.bitwise_xor.reduce(probes.read(source)) == np.bitwise_xor.reduce(source.view(np.uint32))
    probes.write(target, np.float32(3))
    assert (target == 3).all()


def test_the_write_bound_fills_an_output_of_any_shape():
    out = np.zeros((3, 2, 5, 7), np.float32)
    fill(out)()
    assert (out == 1).all()


@pytest.mark.gpu
def test_the_gpu_reads_and_writes_faster_than_nothing():
    from octopus_study.measure.cuda import CudaEventClock

    rows = bandwidth_rows("stage_timing", "synthetic-visdrone", 256 * MIB, "cuda", CudaEventClock(), QUICK, 1)
    rates = {row.method: row.value for row in rows if row.quantity == "bandwidth"}
    assert all(50 < rate < 20_000 for rate in rates.values())
    assert max(rates.values()) < 2 * min(rates.values())
