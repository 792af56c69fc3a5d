"""`RaggedBatch`: round trips, views, and what it refuses."""

from __future__ import annotations

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from octopus import InputError, RaggedBatch

ITEMS = st.lists(
    hnp.arrays(
        np.float32, hnp.array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=6), elements=st.just(1.0)
    ),
    min_size=1,
    max_size=8,
)


@given(items=ITEMS)
def test_what_goes_in_comes_out(items):
    for index, item in enumerate(items):
        item.fill(index)
    batch = RaggedBatch.from_list(items)
    assert len(batch) == len(items)
    assert batch.dtype == np.float32
    assert batch.offsets[-1] == sum(item.size for item in items)
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
    assert len(batch) == 0
    assert batch.to_list() == []


@pytest.mark.parametrize("index", [2, -3])
def test_items_beyond_the_batch(index):
    with pytest.raises(IndexError, match="batch of 2"):
        RaggedBatch.from_list([np.zeros(1), np.zeros(2)])[index]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: RaggedBatch.from_list([]), "no dtype"),
        (lambda: RaggedBatch.from_list([np.zeros(2), np.zeros((2, 2))]), "share dtype and dimensions"),
        (lambda: RaggedBatch.from_list([np.zeros(2), np.zeros(2, int)]), "share dtype and dimensions"),
        (lambda: RaggedBatch.from_arrays(np.zeros(3), [[2], [2]]), "0 to the 3 values"),
        (lambda: RaggedBatch.from_arrays(np.zeros((3, 1)), [[3]]), "flat"),
        (lambda: RaggedBatch.from_arrays(np.zeros(2), [[-1, -2]]), "negative side"),
        (lambda: RaggedBatch.from_arrays(np.zeros(2), [[1.0, 2.0]]), "integer array"),
        (lambda: RaggedBatch.from_arrays(np.zeros(2), [2]), "2 dimension"),
        (lambda: RaggedBatch(np.zeros(4), [0, 3, 4], [[2], [2]]), r"item 0 has shape \(2,\) but 3"),
        (lambda: RaggedBatch(np.zeros(4), [0, 4], [[2], [2]]), "need 3 offsets"),
    ],
)
def test_parts_that_do_not_fit(make, words):
    with pytest.raises(InputError, match=words):
        make()
