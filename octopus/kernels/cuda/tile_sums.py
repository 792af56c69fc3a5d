"""Mean and flag of every tile of an image in one launch.

From naive to fast; each must read every byte of the tiles once, and nothing else of any size:

1. One launch per tile: as many launches as tiles, each with too few blocks to fill a GPU.
2. A batch padded to the largest tile: one launch that reads the padding, too.
3. This one. A block sums parts of one tile; tiles get as many blocks as their size asks for, and a table of 16 bytes
   per block says which: in the order of the parts in memory, since blocks that run at the same time and read one tile's
   narrow column each, a row's pitch apart, keep only a part of the memory's channels busy. A row is cut into loads
   of 16 bytes at addresses that are multiples of 16, wherever the tile begins: what a load brings along from beside the
   tile is multiplied by 0 in the same instruction that adds up the bytes (`dp4a`, `dp2a`). A thread keeps to one column
   of loads, so that it works out those factors once, and has four rows under way at a time. ::

       bytes of the image    0               16              32              48
       a row of the tile     .  .  .  .  x x x x x x x x x x x x x x x x x x .  .
       threads               |       t0      |       t1      |       t2      |
       the next row          |       t3      |       t4      |       t5      |

   The blocks of a tile meet in one 64-bit word: the lower 48 bits take the sum, the upper 16 count the blocks, so that
   one atomic addition does both, and tells the last block that it is the last. That one writes mean and flag and leaves
   the word at 0 for the next launch. Sums of integers don't depend on their order: the result is always the same.

Values that are no data are counted beside the sum; there the last block must read a second word, behind a fence.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from octopus.backends.cuda.language import cuda, device
from octopus.kernels.arguments import TILES
from octopus.kernels.cuda import ptx
from octopus.kernels.cuda.tile_grid import Kind
from octopus.kernels.cuda.tile_rows import sum_parts_of

COUNT_SHIFT = 48  # of the number of blocks in a tile's word
SUM_MASK = (1 << COUNT_SHIFT) - 1


def build(kind: Kind) -> Callable:
    """The kernel of a kind.

    Its arguments are `source, head, end, pitch, width, height, pixel, tiles, work, passes, words, absent,
    nodata, scale, threshold, means, flags`. `source` is a multiple of 16; the image lies between its bytes `head` and
    `end`, with rows `pitch` bytes apart of `width` pixels of `pixel` bytes. `tiles` holds four numbers for
    each tile. Tile `blockIdx.x` has `gridDim.y` blocks; a `listed` kind finds tile, block, blocks and strips in `work`.
    A thread does `passes` loads, a multiple of four, for each part of a tile. `words` and `absent` hold a 0 per tile,
    before and after; `means` and `flags` take a number per tile. What a kind doesn't need is never read.
    """
    sum_parts, finish = sum_parts_of(kind), _finish(kind)
    listed, warps = kind.listed, ptx.WARPS

    def tiles_kernel(
        source, head, end, pitch, width, height, pixel, tiles, work, passes, words, absent, nodata,
        scale, threshold, means, flags,
    ):  # fmt: skip
        parts = cuda.shared.array(warps, np.int64)
        tile, block, blocks = np.int32(cuda.blockIdx.x), np.int32(cuda.blockIdx.y), np.int32(cuda.gridDim.y)
        strips = np.int32(1)
        if listed:
            entry = np.int64(cuda.blockIdx.x) * 4
            tile, block, blocks, strips = work[entry], work[entry + 1], work[entry + 2], work[entry + 3]
        box = np.int64(tile) * 4
        left, top = max(tiles[box], 0), max(tiles[box + 1], 0)
        across = min(max(tiles[box + 2], 0), width) - left
        rows = min(max(tiles[box + 3], 0), height) - top
        if across <= 0 or rows <= 0:  # tiles on the GPU may be anything
            if block == 0 and cuda.threadIdx.x == 0:
                means[tile] = np.nan
                flags[tile] = 0
            return
        first = head + np.int64(top) * pitch + np.int64(left) * pixel
        total, missing, blocks = sum_parts(
            source, head, end, pitch, first, np.int32(across * pixel), np.int32(rows), passes, block, blocks,
            strips, nodata
        )  # fmt: skip
        if block < blocks:
            nbytes = np.int64(rows) * across * pixel
            finish(
                parts, total, missing, blocks, tile, nbytes, words, absent, nodata, scale, threshold, means, flags
            )  # fmt: skip

    tiles_kernel.arguments = TILES.of(tile=kind.tile_dtype)
    return tiles_kernel


def _finish(kind: Kind) -> Callable:
    """A device function: add the block's sum to the tile's word, and after the last block decide."""
    skips, shift = kind.nodata, 1 if kind.dtype == "uint16" else 0
    add, exchange, block_total = ptx.atomic_add, ptx.atomic_exchange, ptx.block_total

    @device
    def finish(parts, total, missing, blocks, tile, nbytes, words, absent, nodata, scale, threshold, means, flags):
        total = block_total(total, parts)
        if skips:
            missing = block_total(missing, parts)
        if cuda.threadIdx.x != 0:
            return
        if skips:
            add(absent, tile, missing)
            cuda.threadfence()
        before = add(words, tile, total + (1 << COUNT_SHIFT))
        if (before >> COUNT_SHIFT) & 0xFFFF != blocks - 1:
            return
        words[tile] = 0
        total += before & SUM_MASK
        values = np.int64(nbytes >> shift)
        if skips:
            cuda.threadfence()
            missing = exchange(absent, tile, np.int64(0))
            values -= missing
            total -= missing * np.int64(nodata)
        mean = np.nan
        if values > 0:
            mean = np.float64(total) / np.float64(values) / scale
        means[tile] = mean
        flags[tile] = np.uint8(1) if mean > threshold else np.uint8(0)

    return finish
