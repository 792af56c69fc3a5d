"""Operations on ragged batches on a GPU: the bits of the CPU, every strategy, every kind of array, beyond 2**31."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from octopus_study.peers.ragged_job import RaggedJob, same_bits

from octopus import InputError, RaggedBatch
from octopus.backends.cuda import memory
from octopus.ragged import ops, tuner
from octopus.ragged.blockmap import STRATEGIES
from octopus.ragged.plan import RaggedPlan

pytestmark = pytest.mark.gpu

RANDOM = np.random.default_rng(3)
MANY = RANDOM.integers(1, 60, (3000, 2))
MANY[5], MANY[6], MANY[7], MANY[9] = (1, 1), (1, 300), (300, 1), (900, 700)
BATCHES = {
    "many": MANY,
    "one pixel": np.array([[1, 1]]),
    "two": np.array([[3, 5]] * 2),
    "narrow": np.array([[4097, 3]]),
}


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
@pytest.mark.parametrize("operation", ops.OPERATIONS)
def test_every_strategy_gives_the_reference_and_the_same_bits(operation, dtype):
    for name, shapes in BATCHES.items():
        job = RaggedJob(operation, shapes, dtype, "cuda", 1)
        kernels = {
            f"{name}, {strategy}, {scalar}": job.kernel(strategy, 1000, scalar)
            for strategy, scalar in product(STRATEGIES, (False, True))
        }
        answers = job.check([job.method(kernel, run) for kernel, run in kernels.items()])
        assert answers == dict.fromkeys(kernels, "same")


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


def test_more_elements_than_int32_counts():
    total = 2**31 + 12_345
    if memory.free_bytes() < 3 * total:
        pytest.fail(f"this test needs {3 * total:,} bytes on the GPU, {memory.free_bytes():,} are free")
    shapes = np.array([[3, 5], *[[30_000, 35_000]] * 2, [1, total - 2 * 1_050_000_000 - 16], [1, 1]])
    job = RaggedJob("multiply", shapes, "uint8", "cuda", 1)
    strategies = ("block_search", "thread_search", "block_metadata")
    answers = job.check([job.method(strategy, job.kernel(strategy)) for strategy in strategies])
    assert answers == dict.fromkeys(strategies, "same")
    kept = job.keep()
    held = memory.DeviceArray((job.total,), np.uint8)
    RaggedPlan("multiply", job.batch).run(job.batch, job.parameters[0], out=held)
    assert same_bits(held, kept)


def test_the_probes_take_less_than_50_ms():
    assert min(tuner.tune("cuda", keep=False).probe_ms for _ in range(3)) < 50
