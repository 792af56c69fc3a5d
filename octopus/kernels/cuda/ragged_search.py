"""Who owns an element of a flat ragged batch: the search, by one thread and by one warp."""

from __future__ import annotations

import numpy as np

from octopus.backends.cuda.language import cuda, device, emulated
from octopus.kernels import pixelwise

LANES = 32

search = device(pixelwise.last_at_or_before)


@device
def _together(offsets, items, element):
    """32 lanes probe at once and keep the part that holds the element: 4 rounds for a million items, where a thread
    alone takes 20 steps that each wait for the one before."""
    lane = np.int32(cuda.threadIdx.x & 31)
    low, high = np.int32(0), items
    while high - low > 1:
        step = np.int32((high - low + np.int32(31)) >> 5)
        at = np.int32(low + lane * step)
        # The first lane always says yes, and those that do are the first ones.
        yes = at < high and offsets[at] <= element
        count = np.int32(cuda.popc(cuda.ballot_sync(np.uint32(0xFFFFFFFF), yes)))
        low = np.int32(low + (count - np.int32(1)) * step)
        high = min(np.int32(low + step), high)
    return low


search_by_warp = emulated("search_by_warp", _together)
