"""What the kinds of the kernel of tile sums do with the values of four words: add them up, and count no data."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from octopus.backends.cuda.language import cuda, device
from octopus.kernels.cuda import ptx
from octopus.kernels.cuda.tile_grid import Kind

SPREAD = 0x00204081  # times four bits: one into each byte, among others
ONES = 0x01010101


def add_of(kind: Kind) -> Callable:
    """A device function: the sum of the values of four words; `mask` has a bit for each byte that counts."""
    wide = kind.dtype == "uint16"
    dot = ptx.dot_halves if wide else ptx.dot_bytes

    @device
    def factors(bits):
        """1 for each value of a word that counts."""
        if wide:
            return np.uint32((bits & 1) | ((bits & 4) << 6))
        return np.uint32(np.uint32((bits & 15) * SPREAD) & ONES)

    @device
    def add(words, mask):
        total = dot(words[0], factors(mask), np.uint32(0))
        total = dot(words[1], factors(mask >> 4), total)
        total = dot(words[2], factors(mask >> 8), total)
        return dot(words[3], factors(mask >> 12), total)

    return add


def absent_of(kind: Kind) -> Callable:
    """A device function: how many values of four words are no data."""
    wide = kind.dtype == "uint16"
    low, bits = (0x7FFF7FFF, 16) if wide else (0x7F7F7F7F, 8)
    copies, tops = (0x00010001, 0x80008000) if wide else (ONES, 0x80808080)

    @device
    def equal(word, inside, nodata):
        other = np.uint32(word ^ np.uint32(nodata * copies))
        # The top bit of each value: whether any of its bits is set.
        differ = np.uint32((np.uint32((other & low) + low) | other) & tops)
        if wide:
            kept = np.uint32((inside & 1) | ((inside & 4) << 14))
        else:
            kept = np.uint32(np.uint32((inside & 15) * SPREAD) & ONES)
        return np.int32(cuda.popc(np.uint32(np.uint32(np.uint32(differ ^ tops) >> (bits - 1)) & kept)))

    @device
    def absent_in(words, mask, nodata):
        count = equal(words[0], mask, nodata) + equal(words[1], mask >> 4, nodata)
        return count + equal(words[2], mask >> 8, nodata) + equal(words[3], mask >> 12, nodata)

    return absent_in
