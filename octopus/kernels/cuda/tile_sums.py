"""Mean and flag of every tile of an image in one launch, which reads the bytes of tiles once, and little else.

A block sums bands of rows of one tile; large tiles get many blocks, so that one alone uses a whole GPU. A thread loads
16 bytes at a multiple of 16, wherever rows begin and end, and leaves out of the sum what isn't the tile's::

    bytes of the image    0               16              32              48
    a row of the tile     .  .  .  .  x x x x x x x x x x x x x x x x x x .  .
    chunks                |               |               |               |

Chunks of all rows of a band are counted through: threads next to each other take neighbours, however narrow the tile
is. A thread has two under way at a time; those that reach beyond the image itself it loads byte by byte.

The blocks of a tile meet in one 64-bit word: the lower 48 bits take the sum, the upper 16 count the blocks, so that
one atomic addition does both, and tells the last block that it is the last. That one writes mean and flag and leaves
the word at 0 for the next launch. Sums of integers don't depend on their order: the result is always the same.
Values that are no data are counted beside the sum; there the last block must read a second word, behind a fence.
"""

from collections.abc import Callable

import numpy as np

from octopus.backends.cuda.language import cuda, device, emulated
from octopus.kernels.arguments import TILES
from octopus.kernels.cuda import ptx
from octopus.kernels.cuda.ptx import quotient
from octopus.kernels.cuda.tile_grid import CHUNK, THREADS, Kind

COUNT_SHIFT = 48  # of the number of blocks in a tile's word
SUM_MASK = (1 << COUNT_SHIFT) - 1
SPREAD, ONES = 0x00204081, 0x01010101  # four bits times the first have one in each byte, among others


def build(kind: Kind) -> Callable:
    """The kernel of a kind. `source` is a multiple of 16; the image begins at its byte `head`, with rows `pitch` bytes
    apart of `width` pixels of `pixel` bytes. `tiles` holds four numbers for each tile. Tile `blockIdx.x` has
    `gridDim.y` blocks, each of bands of about `share` bytes; with `listed` a block finds what it does in `work`, see
    `tile_grid.Grid`. `words` and `absent` hold a 0 per tile, before and after; `means` and `flags` take a number per
    tile."""
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
        end = head + (np.int64(height) - 1) * pitch + np.int64(width) * pixel
        first, row_bytes = head + np.int64(top) * pitch + np.int64(left) * pixel, np.int32(across * pixel)
        band = max(quotient(share, row_bytes), np.int32(1))
        bands = quotient(np.int32(rows + band - np.int32(1)), band)
        total, missing, part = np.int64(0), np.int64(0), block
        while part < bands:
            begin = np.int32(part * band)
            stop = min(np.int32(begin + band), rows)
            found, gone = sum_rows(source, head, end, first, pitch, row_bytes, begin, stop, nodata)
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
    dot = ptx.dot_halves if wide else ptx.dot_bytes
    low, bits = (0x7FFF7FFF, 16) if wide else (0x7F7F7F7F, 8)
    load, load_chunk, bits_between = ptx.load_byte_if, ptx.load_words_if, ptx.byte_mask
    copies, tops = (0x00010001, 0x80008000) if wide else (ONES, 0x80808080)

    @device
    def factors(mask):
        """1 for each value of a word that counts; `mask` has a bit for each byte."""
        if wide:
            return np.uint32((mask & 1) | ((mask & 4) << 6))
        return np.uint32(np.uint32((mask & 15) * SPREAD) & ONES)

    @device
    def sum_of(words, mask):
        total = dot(words[1], factors(mask >> 4), dot(words[0], factors(mask), np.uint32(0)))
        return np.int64(dot(words[3], factors(mask >> 12), dot(words[2], factors(mask >> 8), total)))

    @device
    def equal(word, mask, nodata):
        """How many values of a word are no data, all at once: a value's top bit says whether any of its bits differ."""
        other = np.uint32(word ^ np.uint32(nodata * copies))
        same = np.uint32(((np.uint32(other & low) + low) | other) & tops) ^ tops
        kept = factors(mask)
        if wide:
            kept = np.uint32((kept & 1) | ((kept & 256) << 8))
        return np.int32(cuda.popc(np.uint32((np.uint32(same) >> (bits - 1)) & kept)))

    @device
    def absent_in(words, mask, nodata):
        count = equal(words[0], mask, nodata) + equal(words[1], mask >> 4, nodata)
        return count + equal(words[2], mask >> 8, nodata) + equal(words[3], mask >> 12, nodata)

    @device
    def locate(start, row_bytes, column):
        """Chunk number `column` of a row: where it begins, and a bit for each of its bytes that the row has."""
        at = (start & -CHUNK) + np.int64(column) * CHUNK
        high = np.int32(min(start + row_bytes - at, CHUNK))
        return at, bits_between(np.int32(max(start - at, 0)), high) if high > 0 else np.uint32(0)

    @device
    def word(source, at, mask):
        a, b = load(source, at, np.uint32(mask & 1)), load(source, at + 1, np.uint32(mask & 2))
        c, d = load(source, at + 2, np.uint32(mask & 4)), load(source, at + 3, np.uint32(mask & 8))
        return np.uint32(a | b << 8 | c << 16 | d << 24)

    @device
    def singly(source, at, mask):
        """A chunk that reaches beyond the image, whose other bytes may not be read."""
        first, second = word(source, at, mask), word(source, at + 4, mask >> 4)
        return first, second, word(source, at + 8, mask >> 8), word(source, at + 12, mask >> 12)

    @device
    def sum_rows(source, head, end, first, pitch, row_bytes, begin, stop, nodata):
        # As many chunks as any row has: all begin alike if the pitch is a multiple of a chunk.
        lead = np.int32(first & 15) if pitch & 15 == 0 else np.int32(15)
        columns, thread = np.int32((lead + row_bytes + 15) >> 4), np.int32(cuda.threadIdx.x)
        down, row = quotient(np.int32(THREADS), columns), quotient(thread, columns)
        right, column = np.int32(THREADS - down * columns), np.int32(thread - row * columns)
        row = np.int32(begin + row)
        total, missing = np.int64(0), np.int64(0)
        while row < stop:
            at, mask = locate(first + row * pitch, row_bytes, column)
            row, column = np.int32(row + down), np.int32(column + right)
            if column >= columns:
                row, column = np.int32(row + 1), np.int32(column - columns)
            at_b, mask_b = locate(first + row * pitch, row_bytes, column)
            mask_b = mask_b if row < stop else np.uint32(0)
            row, column = np.int32(row + down), np.int32(column + right)
            if column >= columns:
                row, column = np.int32(row + 1), np.int32(column - columns)
            inside, inside_b = at >= head and at + CHUNK <= end, at_b >= head and at_b + CHUNK <= end
            # Both are under way before either is waited for.
            words = load_chunk(source, at, mask if inside else np.uint32(0))
            more = load_chunk(source, at_b, mask_b if inside_b else np.uint32(0))
            if not inside:
                words = singly(source, at, mask)
            if not inside_b:
                more = singly(source, at_b, mask_b)
            total += sum_of(words, mask) + sum_of(more, mask_b)
            if skips:
                missing += absent_in(words, mask, nodata) + absent_in(more, mask_b, nodata)
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
