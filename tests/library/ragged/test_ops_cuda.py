"""Operations on ragged batches on a GPU: the bits of the CPU, every strategy, every kind of array, beyond 2**31."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from octopus import InputError, RaggedBatch
from octopus.ragged import ops, tuner
from octopus.ragged.blockmap import STRATEGIES

pytestmark = pytest.mark.gpu

RANDOM = np.random.default_rng(3)


def test_a_batch_on_the_host_gets_the_bits_of_the_cpu():
    items = [RANDOM.random((h, w)).astype(np.float32) for h, w in RANDOM.integers(0, 5, (500, 2))]
    batch = RaggedBatch.from_list(items)
    for strategy, (operation, given) in product(STRATEGIES, (("multiply", (2.5,)), ("blur5x5_sobel", ()))):
        call = getattr(ops, operation)
        found = call(batch, *given, strategy=strategy, device="cuda").values
        assert np.array_equal(found, call(batch, *given, device="cpu").values)


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
