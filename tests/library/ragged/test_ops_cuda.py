"""Operations on ragged batches on a GPU: the bits of the CPU, every strategy, every kind of array, beyond 2**31."""

import numpy as np
import pytest

from octopus import InputError, RaggedBatch
from octopus.ragged import ops, tuner
from octopus.ragged.blockmap import STRATEGIES

pytestmark = pytest.mark.gpu

RANDOM = np.random.default_rng(3)


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_powers_are_near_those_of_the_reference_by_every_strategy_alike(dtype):
    """As near as the docstring of `gamma` says."""
    sizes = [(3000, 2001), (1, 5), *[(10, 10)] * 300, (0, 3), (700, 701), (64, 64), *[(33, 41)] * 200, (1, 1)]
    draw = RANDOM.random if dtype == "float32" else lambda shape: RANDOM.integers(0, 256, shape)
    batch = RaggedBatch.from_list([draw(shape).astype(dtype) for shape in sizes])
    batch.values[::7] = 0
    exponents = RANDOM.uniform(0.2, 4, len(sizes)).astype(np.float32)
    exponents[[1, 5, 310]] = 0, 40, 1
    found = [ops.gamma(batch, exponents, strategy=s, device="cuda").values for s in STRATEGIES]
    assert all(np.array_equal(found[0], other) for other in found[1:])
    scale = 255.0 if dtype == "uint8" else 1.0
    powers = np.repeat(exponents.astype(np.float64), [h * w for h, w in sizes])
    right = scale * (batch.values / scale) ** powers
    rounding = 0.5 if dtype == "uint8" else 0.0
    assert (np.abs(found[0] - right) <= rounding + scale * 2.4e-7 * (1 + powers)).all()


@pytest.mark.parametrize("exponent", [0, -1, 0.3, 2.2, 3, 16, 17, 1e6])
def test_powers_at_their_limits(exponent):
    values = np.array([0, 1e-45, 1e-38, 1e-20, 0.5, 0.99999994, 1, 2, 1e30, 3e38, np.inf, np.nan, -2, -0.5], np.float32)
    batch = RaggedBatch.from_offsets(np.resize(values, 10_000), [0, 10_000])
    found = ops.gamma(batch, exponent, device="cuda").values
    with np.errstate(all="ignore"):
        right = (batch.values.astype(np.float64) ** np.float64(np.float32(exponent))).astype(np.float32)
        bits = np.maximum(1, np.abs(np.log2(np.abs(batch.values))))
    plain = np.isfinite(right) & np.isfinite(bits) & np.isfinite(found)
    relative = 2.4e-7 * (1 + abs(exponent) * bits[plain])
    assert (np.abs(found[plain] - right[plain]) <= relative * np.abs(right[plain]) + 1e-43).all()
    assert np.allclose(found[~plain], right[~plain], equal_nan=True)


def test_offsets_and_parameters_on_the_gpu_need_no_host():
    torch = pytest.importorskip("torch")
    values = torch.rand(1_000_003, device="cuda")
    offsets = torch.cat([torch.arange(0, 1_000_002, device="cuda"), torch.tensor([1_000_003], device="cuda")])
    gains = torch.rand(len(offsets) - 1, device="cuda")
    found = ops.multiply(RaggedBatch.from_offsets(values, offsets), gains)
    assert torch.equal(found.values, values * torch.repeat_interleave(gains, offsets.diff()))
    with pytest.raises(InputError, match="offsets are in GPU memory"):
        ops.multiply(RaggedBatch.from_offsets(values, offsets), gains, strategy="lookup")


def test_values_that_are_not_aligned():
    torch = pytest.importorskip("torch")
    values = torch.rand(10_001, device="cuda")[1:]
    batch = RaggedBatch.from_offsets(values, [0, 5000, 10_000])
    found = ops.multiply(batch, [2.0, 3.0]).values
    assert torch.equal(found, torch.cat([values[:5000] * 2, values[5000:] * 3]))


@pytest.mark.alone
def test_the_probes_take_less_than_50_ms():
    assert min(tuner.tune("cuda", keep=False).probe_ms for _ in range(3)) < 50
