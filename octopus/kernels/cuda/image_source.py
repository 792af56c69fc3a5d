"""The source of a block of `image_tiles`: whose image it is, what its axes are like, where its strips begin."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import cuda

from octopus.kernels.cuda import image_ptx as words


@cuda.jit(device=True)
def owner(table, count, block):
    """The image of a block: 32 lanes probe `first_tile` of the records at once, as in `ragged_search`."""
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


@cuda.jit(device=True)
def halves(word):
    """The two int32 of an int64."""
    return np.int32(word), np.int32(word >> np.int64(32))


@cuda.jit(device=True)
def clear(address, size):
    """All threads of a block: zeros in shared memory; `size` is a multiple of 16."""
    at = np.int32(16 * np.int32(cuda.threadIdx.x))
    zero = np.uint32(0)
    while at < size:
        words.store4(np.uint32(address + np.uint32(at)), (zero, zero, zero, zero))
        at = np.int32(at + 16 * np.int32(cuda.blockDim.x))


def axis_of(support: float, antialias: bool) -> Callable:
    @cuda.jit(device=True)
    def axis(size, count):
        """Scale, support and inverse spread of an axis: `images.axis_scale`."""
        scale = np.float64(size) / np.float64(count)
        spread = max(scale, 1.0) if antialias else 1.0
        return scale, support * spread, 1.0 / spread

    return cuda.jit(device=True)(axis)


@cuda.jit(device=True)
def slack_of(pointer, lean, start, stop, pixel_step):
    """Bytes that a strip of columns reads from before its first pixel so as to begin at a multiple of 8, and whether.

    Not if its rows do not all do so (`lean`), nor where it would take another product.
    """
    offset = np.int32(np.int32(np.int32(pointer) + np.int32(start * pixel_step)) & 7)
    end = np.int32(np.int32(stop - start - 1) * pixel_step)
    even = lean and np.int32(end & 31) + offset < 32
    return np.int32(offset if even else 0), even
