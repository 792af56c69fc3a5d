"""The source of a block of `image_tiles`: whose image it is, and what its axes are like."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from octopus.backends.cuda.language import cuda, device
from octopus.kernels.cuda import ptx as words


def owner_of(strategy: str) -> Callable:
    """A device function: the image of a block, from the table, the count of its records, and the block's number.

    ``block_search`` and ``thread_search`` look for it among the first tiles, the 32 lanes of a warp together or each
    thread by itself. ``block_metadata`` and ``lookup`` read it from numbers, int32, that lie behind the records, one
    for each block or one for each thread. In a ``padded_grid`` every image has a row of blocks, as many as the largest
    one needs.
    """
    return _OWNERS[strategy]


@device
def _block_search(table, count, block):
    """As in `ragged_work`."""
    lane = np.int32(cuda.threadIdx.x & 31)
    low, high = np.int32(0), count
    while np.int32(high - low) > 1:
        step = np.int32(np.int32(high - low + 31) >> 5)
        at = np.int32(low + lane * step)
        yes = False
        if at < high:
            yes = np.int32(table[8 * at + 7]) <= block
        found = np.int32(cuda.popc(cuda.ballot_sync(np.uint32(0xFFFFFFFF), yes)))
        low = np.int32(low + np.int32(found - 1) * step)
        high = min(np.int32(low + step), high)
    return low


@device
def _thread_search(table, count, block):
    low, high = np.int32(0), count
    while np.int32(high - low) > 1:
        middle = np.int32(np.int32(low + high) >> 1)
        if np.int32(table[8 * middle + 7]) <= block:
            low = middle
        else:
            high = middle
    return low


@device
def _number_behind(table, count, index):
    both = table[np.int64(8 * count) + np.int64(index >> 1)]
    return np.int32(both >> np.int64(32)) if index & 1 else np.int32(both)


@device
def _block_metadata(table, count, block):
    return _number_behind(table, count, block)


@device
def _lookup(table, count, block):
    return _number_behind(table, count, np.int32(block * np.int32(cuda.blockDim.x) + np.int32(cuda.threadIdx.x)))


@device
def _padded_grid(table, count, block):
    return np.int32(cuda.blockIdx.y)


_OWNERS = {
    "block_search": _block_search,
    "thread_search": _thread_search,
    "block_metadata": _block_metadata,
    "lookup": _lookup,
    "padded_grid": _padded_grid,
}


@device
def halves(word):
    """The two int32 of an int64."""
    return np.int32(word), np.int32(word >> np.int64(32))


@device
def clear(address, size):
    """All threads of a block: zeros in shared memory; `size` is a multiple of 16."""
    at = np.int32(16 * np.int32(cuda.threadIdx.x))
    zero = np.uint32(0)
    while at < size:
        words.store4(np.uint32(address + np.uint32(at)), (zero, zero, zero, zero))
        at = np.int32(at + 16 * np.int32(cuda.blockDim.x))


def axis_of(support: float, antialias: bool) -> Callable:
    @device
    def axis(size, count):
        """Scale, support and inverse spread of an axis: `images.axis_scale`."""
        scale = np.float64(size) / np.float64(count)
        spread = max(scale, 1.0) if antialias else 1.0
        return scale, support * spread, 1.0 / spread

    return device(axis)
