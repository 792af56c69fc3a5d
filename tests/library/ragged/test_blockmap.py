"""Block maps: what each strategy stores."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octopus.ragged import blockmap

LENGTHS = st.lists(st.integers(0, 50), max_size=30)


def offsets_of(lengths):
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


@settings(deadline=None)  # the first call may compile
@given(LENGTHS, st.integers(1, 20))
def test_the_blocks_cover_every_element_once_and_none_spans_two_items(lengths, threshold):
    offsets = offsets_of(lengths)
    owner, starts = blockmap.block_records(offsets, threshold)
    stops = np.minimum(starts + threshold, offsets[owner + 1])
    covered = np.concatenate([np.arange(a, b) for a, b in zip(starts, stops, strict=True)] or [[]])
    assert np.array_equal(covered, np.arange(offsets[-1]))
    assert (starts >= offsets[owner]).all() and (stops > starts).all()


@given(LENGTHS)
def test_the_table_names_the_owner_of_every_element(lengths):
    expected = [item for item, length in enumerate(lengths) for _ in range(length)]
    assert blockmap.build("lookup", offsets_of(lengths)).owner.tolist() == expected


def test_small_items_take_one_block_each_and_large_ones_are_split():
    found = blockmap.build("block_metadata", offsets_of([3, 65_536, 65_537, 0, 1]), threshold=65_536)
    assert found.owner.tolist() == [0, 1, 2, 2, 4]
    assert found.blocks == 5 and found.nbytes == 6 * 4 + 5 * 12


def test_searches_store_the_offsets_alone():
    offsets = offsets_of([3, 4])
    for strategy in ("thread_search", "block_search"):
        found = blockmap.build(strategy, offsets)
        assert found.arrays.keys() == {"offsets"} and found.offsets.dtype == np.int32


def test_offsets_beyond_int32_stay_int64():
    offsets = np.array([0, 2**31, 2**31 + 5])
    found = blockmap.build("block_search", offsets)
    assert found.offsets.dtype == np.int64 and found.offsets[-1] == 2**31 + 5
    assert blockmap.build("block_metadata", offsets, threshold=2**30).starts.tolist() == [0, 2**30, 2**31]


@pytest.mark.parametrize("strategy", blockmap.STRATEGIES)
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_a_map_stays_as_it_was_built(strategy, dtype):
    offsets = offsets_of([3, 4]).astype(dtype)
    built = blockmap.build(strategy, offsets, threshold=2)
    given = {name: array.copy() for name, array in built.arrays.items()}
    by_hand = blockmap.BlockMap(strategy, **given, threshold=built.threshold)
    for array in (offsets, *given.values()):
        array[...] = 99
    for found in (built, by_hand, pickle.loads(pickle.dumps(built))):
        right = blockmap.build(strategy, [0, 3, 7], threshold=2).arrays
        assert found.arrays.keys() == right.keys()
        assert all(np.array_equal(found.arrays[name], array) for name, array in right.items())
        for array in found.arrays.values():
            with pytest.raises(ValueError, match="WRITEABLE"):
                array.setflags(write=True)
