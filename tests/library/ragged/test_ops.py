"""Operations on ragged batches on the CPU: every strategy gives the same bits, and the reference's answer."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import fake_torch
import numpy as np
import pytest

from octopus import InputError, RaggedBatch
from octopus.kernels.operations import PARAMETERS
from octopus.ragged import blockmap, ops
from octopus.ragged.blockmap import STRATEGIES, BlockMap
from octopus.ragged.plan import RaggedPlan


def batch_of(*shapes, seed=0):
    random = np.random.default_rng(seed)
    return RaggedBatch.from_list([random.random(shape, np.float32) for shape in shapes])


def sequences(offsets):
    return RaggedBatch.from_offsets(np.ones(offsets[-1], np.float32), offsets)


IMAGES, OFFSETS = batch_of((4, 5), (2, 2)), np.array([0, 5, 6])


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
    first, second = batch_of((4, 5), (2, 2), seed=1), batch_of((4, 5), (2, 2), seed=2)
    plan = RaggedPlan("multiply", first, device="cpu")
    out = np.empty(24, np.float32)
    assert plan.run(second, 3, out=out).values is out
    assert np.array_equal(out, second.values * 3)
    plan.run(second, 2, out=second.values)
    assert np.array_equal(second.values * np.float32(1.5), out)


@pytest.mark.parametrize("kind", [int, np.int64, np.uint8, np.array, lambda n: pytest.importorskip("torch").tensor(n)])
def test_whole_numbers_of_any_library_are_thresholds(kind):
    found = ops.multiply(IMAGES, 2, strategy="block_metadata", threshold=kind(3), device="cpu")
    assert np.array_equal(found.values, IMAGES.values * 2)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(("operation", "planned", "found", "message"), [
    ("multiply", sequences([0, 1, 6]), sequences([0, 5, 6]), "item 0 of the batch has 5 .* is for 1"),
    ("multiply", sequences([0, 2, 4, 6]), sequences([0, 2, 6, 6]), "item 1 of the batch has 4"),
    ("multiply", IMAGES, sequences([0, 19, 24]), "item 0 of the batch has 19 elements, the plan is for 20"),
    ("blur3x3", batch_of((2, 3)), batch_of((3, 2)), r"shape \(3, 2\), .* for \(2, 3\)"),
    ("blur3x3", batch_of((2, 3)), sequences([0, 6]), "images"),
    ("blur3x3", batch_of((2, 3)), batch_of((1, 2, 3)), "images"),
])  # fmt: skip
def test_a_batch_that_is_cut_differently_is_refused(strategy, operation, planned, found, message):
    plan = RaggedPlan(operation, planned, strategy=strategy, device="cpu")
    with pytest.raises(InputError, match=message):
        plan.run(found, *[2.0] * PARAMETERS[operation])


@pytest.mark.parametrize(("made", "strategy", "message"), [
    (blockmap.build("lookup", [0, 1, 6]), "lookup", "item 0 of the map has 1 elements, the plan is for 5"),
    (blockmap.build("lookup", [0, 5, 6]), "block_search", "BlockMap of strategy block_search"),
    (blockmap.build("lookup", [0, 5, 5, 6]), "lookup", "3 items and 6 elements; 2 items"),
    ([0, 5, 6], "lookup", "must be a BlockMap .* found one list"),
    (BlockMap("lookup", OFFSETS), "lookup", "owner of the map doesn't follow"),
    (BlockMap("lookup", OFFSETS, np.full(6, 9, np.int32)), "lookup", "owner of the map doesn't follow"),
    (BlockMap("block_metadata", OFFSETS, np.array([0, 1], np.int32), np.array([0, 500]), 5), "block_metadata",
     "starts of the map doesn't follow"),
])  # fmt: skip
def test_a_map_must_be_of_the_offsets(made, strategy, message):
    with pytest.raises(InputError, match=message):
        RaggedPlan("multiply", sequences([0, 5, 6]), strategy=strategy, device="cpu", made=made)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_maps_that_fit_are_taken(strategy):
    batch = sequences([0, 5, 6])
    made = blockmap.build(strategy, [0, 5, 6], threshold=2)
    by_hand = BlockMap(strategy, OFFSETS, made.owner, made.starts, made.threshold)
    for right in (made, by_hand, pickle.loads(pickle.dumps(made))):
        plan = RaggedPlan("multiply", batch, strategy=strategy, device="cpu", made=right)
        assert plan.run(batch, [2, 3]).values.tolist() == [2] * 5 + [3]


def test_threads_may_share_a_plan_on_the_cpu():
    batch = batch_of(*[(40, 50), (20, 20)] * 50)
    plan = RaggedPlan("multiply", batch, device="cpu")
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda gain: plan.run(batch, gain).values, range(100)))
    assert all(np.array_equal(values, batch.values * gain) for gain, values in enumerate(found))


@pytest.mark.usefixtures("torch_without_gpu")
@pytest.mark.parametrize(("name", "value", "remedy"), [
    ("requires_grad", True, "detach"), ("layout", "torch.sparse_coo", "to_dense"),
])  # fmt: skip
@pytest.mark.parametrize("call", [
    lambda tensor: RaggedBatch.from_offsets(tensor, [0, 2]),
    lambda tensor: sequences([0, 2]).like(tensor),
    lambda tensor: ops.multiply(sequences([0, 1, 2]), tensor),
    lambda tensor: ops.normalize(sequences([0, 1, 2]), 0, tensor),
    lambda tensor: ops.multiply(sequences([0, 1, 2]), 1, out=tensor),
], ids=["values", "like", "parameter", "std", "out"])  # fmt: skip
def test_tensors_that_no_kernel_can_take_say_the_remedy(call, name, value, remedy):
    tensor = fake_torch.Tensor(np.ones(2, np.float32))
    setattr(tensor, name, value)
    with pytest.raises(InputError, match=remedy):
        call(tensor)
