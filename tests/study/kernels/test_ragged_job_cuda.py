"""Operations on ragged batches on a GPU, through the study's jobs: every strategy, and more than 2**31 elements."""

from itertools import product

import numpy as np
import pytest

from octopus import RaggedPlan, ops
from octopus.backends.cuda import memory
from octopus.ragged.blockmap import STRATEGIES
from octopus_study.baselines.ragged_job import RaggedJob, same_bits

pytestmark = pytest.mark.gpu

THRESHOLDS = {"block_metadata": 1000}  # the others refuse one
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
            f"{name}, {strategy}, {scalar}": job.kernel(strategy, THRESHOLDS.get(strategy), scalar)
            for strategy, scalar in product(STRATEGIES, (False, True))
        }
        answers = job.check([job.method(kernel, run) for kernel, run in kernels.items()])
        assert answers == dict.fromkeys(kernels, "same")


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
