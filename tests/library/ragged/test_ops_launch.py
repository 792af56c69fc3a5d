"""What a `RaggedPlan` hands to the driver, without a GPU: host memory stands for its memory, NumPy for the kernel."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from pretended import OnGpu, at

from octopus import InputError, RaggedBatch, RaggedPlan, ops
from octopus.backends.cuda.memory import DeviceArray
from octopus.ragged import blockmap


@pytest.fixture
def launches(gpu, monkeypatch):
    """Called before each launch, which multiplies by NumPy."""
    before = []

    def multiply(made):
        [call() for call in before]
        source, out, total, offsets, items, first, *_ = made.values
        dtype = made.kernel.signature[3][1:]
        gains = np.repeat(at(first, (items,), np.float32), np.diff(at(offsets, (items + 1,), dtype)))
        at(out, (total,), np.float32)[...] = at(source, (total,), np.float32) * gains

    gpu.does = multiply
    monkeypatch.setattr(blockmap, "tuned", lambda device: dict.fromkeys(blockmap.GROUPS, blockmap.DEFAULT))
    return before


def host(array):
    return array.copy_to_host().tolist()


def batch_of(offsets, dtype=np.int64, offsets_there=True):
    values = np.arange(offsets[-1], dtype=np.float32)
    return RaggedBatch(OnGpu(values), OnGpu(np.array(offsets, dtype)) if offsets_there else offsets)


def test_offsets_on_the_gpu_are_those_of_the_batch_at_hand(launches):
    first, second = batch_of([0, 1, 6]), batch_of([0, 5, 6])
    plan = RaggedPlan("multiply", first, strategy="block_search")
    assert host(plan.run(first, [10, 20]).values) == [0, 20, 40, 60, 80, 100]
    assert host(plan.run(second, [10, 20]).values) == [0, 10, 20, 30, 40, 100]
    with pytest.raises(InputError, match="the plan is for offsets of int64, found int32"):
        plan.run(batch_of([0, 1, 6], np.int32), 2)


def test_what_cannot_be_compared_is_refused(launches):
    on_host, on_gpu = batch_of([0, 1, 6], offsets_there=False), batch_of([0, 1, 6])
    for planned, other, message in (
        (on_host, on_gpu, "the plan is for offsets on the host, those of the batch are in GPU memory"),
        (on_gpu, on_host, "the plan is for offsets in GPU memory, those of the batch are on the host"),
        (on_host, batch_of([0, 5, 6], offsets_there=False), "item 0 of the batch has 5 elements"),
    ):
        with pytest.raises(InputError, match=message):
            RaggedPlan("multiply", planned).run(other, 2)
    made = RaggedPlan("multiply", on_host, strategy="block_search").map
    with pytest.raises(InputError, match="made can't be checked against them"):
        RaggedPlan("multiply", on_gpu, strategy="block_search", made=made)


def test_shapes_have_as_many_elements_as_there_are_values_also_where_offsets_are_on_the_gpu():
    values, offsets = np.arange(6, dtype=np.float32), OnGpu(np.array([0, 2, 6]))
    assert len(RaggedBatch(OnGpu(values), offsets, [[1, 2], [2, 2]])) == 2
    with pytest.raises(InputError, match="items of these shapes have 1000002 values together, found 6"):
        RaggedBatch(OnGpu(values), offsets, [[1, 2], [1000, 1000]])


def test_results_must_not_lie_in_parameters(launches):
    batch = batch_of([0, 1, 2])
    gains = OnGpu(np.ones(2, np.float32))
    with pytest.raises(InputError, match="values or parameters"):
        ops.multiply(batch, gains, out=gains)
    assert ops.multiply(batch, gains, out=batch.values).values is batch.values


def test_a_standard_deviation_on_the_gpu_needs_a_library_that_divides(launches):
    batch = batch_of([0, 1, 2])
    with pytest.raises(InputError, match="can't be inverted there; give a tensor"):
        ops.normalize(batch, 0, DeviceArray((2,), np.float32))


def test_a_plan_at_work_on_the_gpu_refuses_a_second_thread(launches):
    batch = batch_of([0, 1, 6])
    plan = RaggedPlan("multiply", batch)

    def meanwhile():
        with ThreadPoolExecutor(1) as pool, pytest.raises(InputError, match="at work in another thread"):
            pool.submit(plan.run, batch, 3).result()

    launches.append(meanwhile)
    assert host(plan.run(batch, 2).values) == [0, 2, 4, 6, 8, 10]
