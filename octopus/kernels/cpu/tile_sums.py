"""Sums of the values in tiles of an image on the CPU: tiles are cut into parts of rows, which all threads share."""

from collections.abc import Callable

import numpy as np

from octopus.kernels.cpu import compiled, next_block, pointer, shifted

SEGMENT = 1 << 15  # values whose sum surely fits into 32 bits, in which more of them are added at once


def build(dtype: str) -> Callable:
    """The kernel that adds up what lies in parts of tiles, of an image of uint8 or uint16. Its arguments are `counter,
    parts, image, values from row to row`, then of each part its tile, its first row and the one behind its last, of
    each tile the first value of a row and the one behind its last (all int64), whether a value is left out and which,
    and where sum and number of each part's values go (uint64)."""
    pixel = getattr(np, dtype)

    def sums(arguments):
        image, pitch = pointer(arguments[2], pixel), arguments[3]
        owner, first, last = (
            pointer(arguments[4], np.int64), pointer(arguments[5], np.int64), pointer(arguments[6], np.int64),
        )  # fmt: skip
        left, right = pointer(arguments[7], np.int64), pointer(arguments[8], np.int64)
        skips, nodata = arguments[9] != 0, pixel(arguments[10])
        total, count = pointer(arguments[11], np.uint64), pointer(arguments[12], np.uint64)
        while True:
            part = next_block(arguments[0])
            if part >= arguments[1]:
                return
            begin, end = left[owner[part]], right[owner[part]]
            whole, found = np.uint64(0), np.uint64(0)
            for y in range(first[part], last[part]):
                start = begin
                while start < end:
                    piece, size = shifted(image, y * pitch + start), min(end - start, np.int64(SEGMENT))
                    if skips:
                        added, counted = _sum(piece, size, True, nodata)
                    else:
                        added, counted = _sum(piece, size, False, nodata)
                    whole, found = whole + np.uint64(added), found + np.uint64(counted)
                    start += size
            total[part], count[part] = whole, found

    return sums


@compiled
def _sum(values, size, skips, nodata):
    total, count = np.uint32(0), np.uint32(0)
    for i in range(size):
        counts = np.uint32(not skips or values[i] != nodata)
        total = np.uint32(total + np.uint32(values[i]) * counts)
        count = np.uint32(count + counts)
    return total, count
