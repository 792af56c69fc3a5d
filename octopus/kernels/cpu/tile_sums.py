"""Sums of the values in tiles of an image on the CPU: tiles are cut into parts of rows, which all threads share."""

from __future__ import annotations

import numba
import numpy as np

from octopus.kernels.cpu import compiled

PART = (
    1 << 16
)  # values per parallel part: large beside the cost of handing it out, small beside a tile of a scene
SEGMENT = 1 << 15  # values whose sum surely fits into 32 bits, in which more of them are added at once


@compiled(parallel=True)
def sums(rows, owner, first, last, left, right, skips, nodata, total, count):
    """Add up what lies in parts of tiles.

    Parameters
    ----------
    rows : (H, V) uint8 or uint16
        The image, V values per row.
    owner, first, last : (P,) int
        Tile of each part, and its rows, the last one left out.
    left, right : (N,) int
        Values of a row that belong to each tile, the last one left out.
    skips : bool
        Whether the value `nodata` is left out.
    total, count : (P,) uint64
        Take sum and number of the values of each part.
    """
    for part in numba.prange(owner.size):
        begin, end = left[owner[part]], right[owner[part]]
        whole, found = np.uint64(0), np.uint64(0)
        for y in range(first[part], last[part]):
            for start in range(begin, end, SEGMENT):
                piece = rows[y, start : min(start + SEGMENT, end)]
                if skips:
                    added, counted = _sum_but(piece, nodata)
                    found += np.uint64(counted)
                else:
                    added = _sum(piece)
                    found += np.uint64(piece.size)
                whole += np.uint64(added)
        total[part], count[part] = whole, found


@compiled()
def _sum(values):
    total = np.uint32(0)
    for i in range(values.size):
        total = np.uint32(total + values[i])
    return total


@compiled()
def _sum_but(values, nodata):
    total, count = np.uint32(0), np.uint32(0)
    for i in range(values.size):
        counts = np.uint32(values[i] != nodata)
        total = np.uint32(total + np.uint32(values[i]) * counts)
        count = np.uint32(count + counts)
    return total, count
