"""Operations on ragged batches on the CPU: every strategy gives the same bits, and the reference's answer."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octopus import InputError, RaggedBatch
from octopus.kernels import ragged_reference
from octopus.ragged import ops
from octopus.ragged.blockmap import STRATEGIES
from octopus.ragged.plan import PARAMETERS, RaggedPlan

SHAPES = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=12)
PARAMETERS_OF = {"normalize": lambda random, n: (random.random(n), random.random(n) + 0.5)}


def batch_of(shapes, dtype, seed=0):
    random = np.random.default_rng(seed)
    draw = {
        "float32": lambda shape: random.random(shape, np.float32),
        "uint8": lambda shape: random.integers(0, 256, shape, np.uint8),
    }[dtype]
    return RaggedBatch.from_list([draw(tuple(shape)) for shape in shapes])


def parameters_of(operation, count):
    random = np.random.default_rng(5)
    return [random.random(count).astype(np.float32) + np.float32(0.3) for _ in range(PARAMETERS[operation])]


def expected(operation, batch, given, dtype):
    parts = []
    for item, values in enumerate(batch):
        first, second = [*(float(array[item]) for array in given), 0.0, 0.0][:2]
        second = 1 / np.float32(second) if operation == "normalize" else second
        parts.append(ragged_reference.apply(operation, values, first, second).ravel())
    result = np.concatenate(parts)
    return np.rint(result).clip(0, 255) if dtype == np.uint8 else result


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
@pytest.mark.parametrize("operation", ops.OPERATIONS)
@settings(max_examples=15, deadline=None)
@given(shapes=SHAPES)
def test_every_strategy_gives_the_reference_and_the_same_bits(operation, dtype, shapes):
    batch = batch_of(shapes, dtype)
    given_values = parameters_of(operation, len(batch))
    call = getattr(ops, operation)
    found = [
        call(batch, *given_values, strategy=strategy, threshold=7, device="cpu").values
        for strategy in STRATEGIES
    ]
    assert all(np.array_equal(found[0], other) for other in found[1:])
    right = expected(operation, batch, given_values, found[0].dtype)
    loose = found[0].dtype == np.uint8 and operation in ("multiply", "gamma")
    limit = 1 if loose else 1e-3 if dtype == "uint8" else 1e-5
    assert np.abs(found[0] - right).max(initial=0) <= limit


def test_items_larger_than_a_part_and_many_small_ones_between():
    shapes = [(300, 400), *[(1, 1)] * 100, (1, 70_000), (70_000, 1), *[(0, 3)] * 50, (129, 130)]
    batch = batch_of(shapes, "float32")
    for operation in ("multiply", "blur3x3", "blur5x5_sobel"):
        given_values = parameters_of(operation, len(batch))
        results = [
            getattr(ops, operation)(batch, *given_values, strategy=strategy, device="cpu").values
            for strategy in STRATEGIES
        ]
        assert all(np.array_equal(results[0], other) for other in results[1:])
        assert np.abs(results[0] - expected(operation, batch, given_values, np.float32)).max() < 1e-5


def test_one_number_counts_for_all_items_and_sequences_need_no_shape():
    batch = RaggedBatch.from_offsets(np.arange(10, dtype=np.float32), [0, 3, 3, 10])
    assert ops.multiply(batch, 2, device="cpu").values.tolist() == [2.0 * i for i in range(10)]
    result = ops.threshold(batch, [1.0, 0.0, 8.0], device="cpu")
    assert result.values.tolist() == [0, 0, 1, 0, 0, 0, 0, 0, 0, 1] and len(result) == 3


def test_a_million_items_and_none():
    lengths = np.random.default_rng(2).integers(0, 3, 1_000_000)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    gains = np.arange(len(lengths), dtype=np.float32)
    batch = RaggedBatch.from_offsets(np.ones(offsets[-1], np.float32), offsets)
    for strategy in STRATEGIES:
        found = ops.multiply(batch, gains, strategy=strategy, device="cpu").values
        assert np.array_equal(found, np.repeat(gains, lengths))
    empty = RaggedBatch.from_offsets(np.ones(0, np.float32), [0])
    assert len(ops.multiply(empty, 2, device="cpu")) == 0


def test_a_plan_runs_on_every_batch_that_is_cut_alike_and_into_given_memory():
    first, second = batch_of([(4, 5), (2, 2)], "float32", 1), batch_of([(4, 5), (2, 2)], "float32", 2)
    plan = RaggedPlan("multiply", first, device="cpu")
    out = np.empty(24, np.float32)
    assert plan.run(second, 3, out=out).values is out
    assert np.array_equal(out, second.values * 3)
    plan.run(second, 2, out=second.values)
    assert np.array_equal(second.values * np.float32(1.5), out)


IMAGES = batch_of([(4, 5), (2, 2)], "float32")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ops.multiply([1, 2], 3), "RaggedBatch.from_list"),
        (lambda: ops.multiply(batch_of([(2, 2)], "float32").like(np.zeros(4)), 3), "float32 or uint8"),
        (lambda: ops.multiply(IMAGES, [1, 2, 3]), "one number or 2"),
        (lambda: ops.multiply(IMAGES, [1, np.nan]), "item 1 is not a finite number"),
        (lambda: ops.normalize(IMAGES, 0, [1, 0]), "std must not be 0"),
        (lambda: ops.multiply(IMAGES, 1, strategy="magic"), "no strategy 'magic'"),
        (lambda: ops.multiply(IMAGES, 1, out=np.zeros(3, np.float32)), "out must be"),
        (lambda: ops.blur3x3(IMAGES, out=IMAGES.values), "reads while it writes"),
        (lambda: ops.blur3x3(RaggedBatch.from_offsets(np.zeros(4, np.float32), [0, 4])), "found sequences"),
        (lambda: ops.blur3x3(batch_of([(2, 2, 2)], "float32")), "3 dimensions"),
        (lambda: RaggedPlan("sharpen", IMAGES), "no operation 'sharpen'"),
        (lambda: RaggedPlan("multiply", IMAGES, device="cpu").run(IMAGES), "takes 1 parameters, found 0"),
        (
            lambda: RaggedPlan("blur3x3", IMAGES, device="cpu").run(batch_of([(1, 1)], "float32")),
            "the plan is for",
        ),
    ],
)
def test_bad_input_is_told(call, message):
    with pytest.raises(InputError, match=message):
        call()
