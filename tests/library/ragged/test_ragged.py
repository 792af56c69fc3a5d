"""`RaggedBatch`: round trips, views, and what it refuses."""

import copy
import pickle
import warnings

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from octopus import InputError, OutOfMemoryError, RaggedBatch, RaggedPlan, ops

ITEMS = st.lists(
    hnp.arrays(np.float32, hnp.array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=6), elements=st.just(1.0)),
    min_size=1,
    max_size=8,
)


@given(items=ITEMS)
def test_what_goes_in_comes_out(items):
    for index, item in enumerate(items):
        item.fill(index)
    batch = RaggedBatch.from_list(items)
    assert batch.dtype == np.float32 and batch.offsets[-1] == sum(item.size for item in items)
    for found, item in zip(batch.to_list(), items, strict=True):
        assert np.array_equal(found, item)


def test_items_are_views():
    batch = RaggedBatch.from_list([np.zeros((2, 2)), np.zeros(3).reshape(1, 3)])
    batch[-1][0, 1] = 9
    assert batch.values.tolist() == [0, 0, 0, 0, 0, 9, 0]


def test_from_arrays_shares_the_values():
    values = np.arange(7)
    batch = RaggedBatch.from_arrays(values, [[4], [0], [3]])
    assert batch.values is values
    assert [item.tolist() for item in batch] == [[0, 1, 2, 3], [], [4, 5, 6]]


def test_a_batch_may_be_empty():
    batch = RaggedBatch.from_arrays(np.empty(0, np.uint8), np.empty((0, 2), int))
    assert (len(batch), batch.to_list(), batch.to_padded().shape) == (0, [], (0, 0, 0))
    assert RaggedBatch.from_offsets(np.zeros(0), [0]).to_padded().shape == (0, 0)


@given(items=ITEMS)
def test_padding_puts_every_item_into_its_corner(items):
    batch = RaggedBatch.from_list(items)
    padded = batch.to_padded(fill=-3)
    assert padded.shape == (len(items), *np.max([item.shape for item in items], axis=0)) and padded.dtype == batch.dtype
    for found, item in zip(padded, items, strict=True):
        height, width = item.shape
        assert np.array_equal(found[:height, :width], item)
        assert (found == -3).sum() == found.size - item.size


def test_padding_beyond_all_memory():
    for longest in (2**30, 2**40):
        batch = RaggedBatch.from_arrays(np.empty(0), [[0, longest], [longest, 0]])
        with pytest.raises(OutOfMemoryError, match="pad fewer items"):
            batch.to_padded()


def test_sequences_have_offsets_alone():
    values, offsets = np.arange(5.0), np.array([0, 2, 2, 5])
    batch = RaggedBatch.from_offsets(values, offsets)
    assert batch.values is values
    assert batch.offsets.tolist() == offsets.tolist()
    assert (batch.shapes, batch.inner, batch.device, batch.size, len(batch)) == (None, (), "cpu", 5, 3)
    assert [item.tolist() for item in batch] == [[0, 1], [], [2, 3, 4]]
    assert batch.offsets_to_host() is batch


def test_other_values_of_the_same_items():
    batch = RaggedBatch.from_list([np.zeros((2, 2)), np.ones((1, 3))])
    values = np.arange(7, dtype=np.uint8)
    other = batch.like(values)
    assert other.values is values and other.offsets is batch.offsets
    assert (other.dtype, batch.dtype) == (np.uint8, np.float64)
    assert other[1].tolist() == [[4, 5, 6]]


def test_items_without_dimensions():
    batch = RaggedBatch.from_list([np.float32(2), np.float32(3)])
    assert batch.shapes.shape == (2, 0)
    assert [item.item() for item in batch] == [2, 3]


@pytest.mark.parametrize("given", [
    np.asarray, np.asfortranarray, memoryview, lambda array: pytest.importorskip("torch").from_numpy(array),
], ids=["C", "Fortran", "memoryview", "torch"])  # fmt: skip
def test_buffers_that_are_used_again_change_no_batch(given):
    values, shapes = np.arange(10, dtype=np.float32), np.array([[2, 3], [4, 1]])
    offsets = np.array([0, 6, 10])
    images = RaggedBatch.from_arrays(values, given(shapes))
    batches = [images, RaggedBatch(values, list(offsets), given(shapes))]
    if given is not memoryview:
        batches.append(RaggedBatch.from_offsets(values, given(offsets)))
    right = ops.blur3x3(images, device="cpu").values
    shapes[0], offsets[1] = [3, 1000], 2**40
    assert all(batch.offsets.tolist() == [0, 6, 10] for batch in batches)
    assert images.shapes.tolist() == [[2, 3], [4, 1]]
    assert np.array_equal(ops.blur3x3(images, device="cpu").values, right)


@pytest.mark.parametrize("again", [lambda b: b, copy.copy, copy.deepcopy, *(
    lambda b, p=protocol: pickle.loads(pickle.dumps(b, p)) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
)])  # fmt: skip
@pytest.mark.parametrize(("make", "cut"), [
    (RaggedBatch.from_arrays, [[2, 3], [4, 1]]), (RaggedBatch.from_offsets, [0, 6, 10]),
], ids=["images", "sequences"])  # fmt: skip
def test_sizes_are_read_only_and_stay_so(make, cut, again):
    values = np.arange(10, dtype=np.float32)
    batch = again(make(values, cut))
    assert [item.tolist() for item in batch] == [item.tolist() for item in make(values, cut)]
    for found in (batch, batch.like(values)):
        for array in (found.offsets,) if found.shapes is None else (found.offsets, found.shapes):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 5
            with pytest.raises(ValueError, match="WRITEABLE"):
                array.setflags(write=True)


def test_values_whose_form_has_changed_since_are_refused():
    values = np.zeros(8, np.uint8)
    batch = RaggedBatch.from_offsets(values, [0, 3, 8])
    plan = RaggedPlan("multiply", batch, device="cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy means to end this way of changing an array
        values.shape = 2, 4
    for call in (lambda: plan.run(batch, 2), lambda: ops.multiply(batch, 2, device="cpu")):
        with pytest.raises(InputError, match="the plan is for"):
            call()
