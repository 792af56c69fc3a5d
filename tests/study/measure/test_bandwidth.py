"""The memory's limits, on the CPU and, with the marker `gpu`, on the GPU; and the CUDA clock."""

from __future__ import annotations

import numpy as np
import pytest

from octopus_study.kernels.cpu import probes
from octopus_study.measure import Budget, HostClock
from octopus_study.measure.bandwidth import MIB, bandwidth_rows, fill

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
