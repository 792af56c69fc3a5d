"""Mean and flag of every tile of an image in one launch, which reads the bytes of tiles once, and little else.

A block sums bands of rows of one tile; large tiles get many blocks, so that one alone uses a whole GPU. Inside a row a
thread loads 16 bytes at a multiple of 16, wherever the tile begins; values at a row's ends are loaded one by one::

    bytes of the image    0               16              32              48
    a row of the tile     .  .  .  .  x x x x x x x x x x x x x x x x x x .  .
    loads                             e e |      chunk    |      chunk    | e

Chunks of all rows of a band are counted through, and so are ends: threads next to each other take neighbours, however
narrow the tile is. A thread has two chunks and one end under way at a time; what lies beyond its band it doesn't load.

The blocks of a tile meet in one 64-bit word: the lower 48 bits take the sum, the upper 16 count the blocks, so that
one atomic addition does both, and tells the last block that it is the last. That one writes mean and flag and leaves
the word at 0 for the next launch. Sums of integers don't depend on their order: the result is always the same.
Values that are no data are counted beside the sum; there the last block must read a second word, behind a fence.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from octopus.backends.cuda.language import cuda, device, emulated
from octopus.kernels.arguments import TILES
from octopus.kernels.cuda import ptx
from octopus.kernels.cuda.ptx import quotient
from octopus.kernels.cuda.tile_grid import CHUNK, THREADS, Kind

COUNT_SHIFT = 48  # of the number of blocks in a tile's word
SUM_MASK = (1 << COUNT_SHIFT) - 1
ONES = np.uint32(0x01010101)
LAST = CHUNK - 1


def build(kind: Kind) -> Callable:
    """The kernel of a kind.

    `source` is a multiple of 16; the image begins at its byte `head`, with rows `pitch` bytes apart of `width` pixels
    of `pixel` bytes. `tiles` holds four numbers for each tile. Tile `blockIdx.x` has `gridDim.y` blocks, each of bands
    of about `share` bytes; with `listed` a block finds what it does in `work`, see `tile_grid.Grid`. `words` and
    `absent` hold a 0 per tile, before and after; `means` and `flags` take a number per tile.
    """
    sum_rows, finish, warps = _sum_rows(kind), _finish(kind), THREADS // 32

    def tiles_kernel(
        source, head, pitch, width, height, pixel, tiles, work, listed, share, words, absent, nodata,
        scale, threshold, means, flags,
    ):  # fmt: skip
        parts = cuda.shared.array(warps, np.int64)
        tile, block, blocks = np.int32(cuda.blockIdx.x), np.int32(cuda.blockIdx.y), np.int32(cuda.gridDim.y)
        if listed != 0:
            entry = np.int64(cuda.blockIdx.x) * 3
            tile, block, blocks = work[entry], work[entry + 1], work[entry + 2]
        box = np.int64(tile) * 4
        left, top = max(tiles[box], 0), max(tiles[box + 1], 0)
        across = min(max(tiles[box + 2], 0), width) - left
        rows = np.int32(min(max(tiles[box + 3], 0), height) - top)
        if across <= 0 or rows <= 0:  # tiles on the GPU may be anything
            if block == 0 and cuda.threadIdx.x == 0:
                means[tile] = np.nan
                flags[tile] = 0
            return
        first, row_bytes = head + np.int64(top) * pitch + np.int64(left) * pixel, np.int32(across * pixel)
        band = max(quotient(share, row_bytes), np.int32(1))
        bands = quotient(np.int32(rows + band - np.int32(1)), band)
        total, missing, part = np.int64(0), np.int64(0), block
        while part < bands:
            begin = np.int32(part * band)
            found, gone = sum_rows(source, first, pitch, row_bytes, begin, min(np.int32(begin + band), rows), nodata)
            total += found
            missing += gone
            part = np.int32(part + blocks)
        if block < bands:
            values = np.int64(rows) * across * pixel
            finish(
                parts, total, missing, min(bands, blocks), tile, values, words, absent, nodata, scale, threshold,
                means, flags
            )  # fmt: skip

    tiles_kernel.arguments = TILES.of(tile=kind.tile_dtype)
    return tiles_kernel


def _sum_rows(kind: Kind) -> Callable:
    """A device function: what a thread adds up of the rows from `begin` to below `stop`, and how many are no data."""
    wide, skips = kind.dtype == "uint16", kind.nodata
    dot, load_end = (ptx.dot_halves, ptx.load_half_if) if wide else (ptx.dot_bytes, ptx.load_byte_if)
    places = CHUNK // 2 if wide else CHUNK  # of values at one end of a row
    both, item = 2 * places, CHUNK // places

    @device
    def equal(word, nodata):
        if wide:
            return np.int32((word & 0xFFFF) == nodata) + np.int32((word >> 16) == nodata)
        low = np.int32((word & 0xFF) == nodata) + np.int32(((word >> 8) & 0xFF) == nodata)
        return low + np.int32(((word >> 16) & 0xFF) == nodata) + np.int32((word >> 24) == nodata)

    @device
    def sum_of(words):
        total = dot(words[0], ONES, dot(words[1], ONES, np.uint32(0)))
        return np.int64(dot(words[2], ONES, dot(words[3], ONES, total)))

    @device
    def absent_in(words, nodata):
        return equal(words[0], nodata) + equal(words[1], nodata) + equal(words[2], nodata) + equal(words[3], nodata)

    @device
    def locate(start, row_bytes, column):
        """Where a row's chunk begins, and whether it is one."""
        at = ((start + LAST) & -CHUNK) + np.int64(column) * CHUNK
        return at, at + CHUNK <= start + row_bytes

    @device
    def locate_end(start, row_bytes, place):
        """The same for a value before the chunks of a row or, from `places` on, behind them."""
        behind = start + row_bytes
        head = min((start + LAST) & -CHUNK, behind)
        tail = max(behind & -CHUNK, head)
        at = (start if place < places else tail) + (place & (places - 1)) * item
        return at, at < (head if place < places else behind)

    @device
    def sum_rows(source, first, pitch, row_bytes, begin, stop, nodata):
        thread, columns = np.int32(cuda.threadIdx.x), np.int32(row_bytes >> 4)
        row, column, down, right = stop, np.int32(0), np.int32(0), np.int32(0)
        if columns > 0:
            down, row = quotient(np.int32(THREADS), columns), quotient(thread, columns)
            right, column = np.int32(THREADS - down * columns), np.int32(thread - row * columns)
            row = np.int32(begin + row)
        line, place = np.int32(begin + thread // both), np.int32(thread % both)
        if (first | pitch | row_bytes) & LAST == 0:
            line = stop  # there are no ends
        total, missing = np.int64(0), np.int64(0)
        while row < stop or line < stop:
            at, whole = locate(first + row * pitch, row_bytes, column)
            wanted = np.uint32(row < stop and whole)
            row, column = np.int32(row + down), np.int32(column + right)
            if column >= columns:
                row, column = np.int32(row + 1), np.int32(column - columns)
            at_b, whole = locate(first + row * pitch, row_bytes, column)
            wanted_b = np.uint32(row < stop and whole)
            row, column = np.int32(row + down), np.int32(column + right)
            if column >= columns:
                row, column = np.int32(row + 1), np.int32(column - columns)
            at_c, inside = locate_end(first + line * pitch, row_bytes, place)
            wanted_c = np.uint32(line < stop and inside)
            line = np.int32(line + THREADS // both)
            # All are under way before any is waited for.
            words = ptx.load_words_if(source, at, wanted)
            more = ptx.load_words_if(source, at_b, wanted_b)
            value = load_end(source, at_c, wanted_c)
            total += sum_of(words) + sum_of(more) + value
            if skips:
                missing += absent_in(words, nodata) * np.int32(wanted) + absent_in(more, nodata) * np.int32(wanted_b)
                missing += np.int32(value == nodata) * np.int32(wanted_c)
        return total, missing

    return sum_rows


@device
def _block_total(value, parts):
    """The sum over the block's threads, by way of shared memory; right in the first thread alone."""
    step = np.int32(16)
    while step > 0:
        value += cuda.shfl_down_sync(np.uint32(0xFFFFFFFF), value, step)
        step >>= 1
    if cuda.threadIdx.x & 31 == 0:
        parts[cuda.threadIdx.x >> 5] = value
    cuda.syncthreads()
    total = np.int64(0)
    if cuda.threadIdx.x == 0:
        for warp in range(THREADS // 32):
            total += parts[warp]
    cuda.syncthreads()  # the memory may serve again
    return total


def _finish(kind: Kind) -> Callable:
    """A device function: add the block's sum to the tile's word, and after the last block decide."""
    skips, shift = kind.nodata, 1 if kind.dtype == "uint16" else 0
    add, block_total = ptx.atomic_add, emulated("block_total", _block_total)

    @device
    def finish(parts, total, missing, blocks, tile, nbytes, words, absent, nodata, scale, threshold, means, flags):
        total = block_total(total, parts)
        if skips:
            missing = block_total(missing, parts)
        if cuda.threadIdx.x != 0:
            return
        if skips:
            add(absent, tile, missing)
            ptx.fence()
        before = add(words, tile, total + (1 << COUNT_SHIFT))
        if (before >> COUNT_SHIFT) & 0xFFFF != blocks - 1:
            return
        words[tile] = 0
        total += before & SUM_MASK
        values = np.int64(nbytes >> shift)
        if skips:
            ptx.fence()
            missing = add(absent, tile, np.int64(0))
            absent[tile] = 0
            values -= missing
            total -= missing * np.int64(nodata)
        mean = np.nan
        if values > 0:
            mean = np.float64(total) / np.float64(values) / scale
        means[tile] = mean
        flags[tile] = np.uint8(1) if mean > threshold else np.uint8(0)

    return finish
