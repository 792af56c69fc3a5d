"""Kinds of the kernel of tile sums, and how it cuts tiles into blocks; read at launch, so it imports no compiler."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

CHUNK = 16  # bytes of a load
THREADS = 256  # of a block
PAIR = 2 * CHUNK * THREADS  # bytes that a block has under way
MOST_PAIRS = 8  # of a thread for one band; few for a small image, so that it keeps a whole GPU busy
BLOCKS_PER_SM = 8
MOST_PARTS = 65535  # of a tile: they are counted in 16 bits
MOST_LISTED = 1 << 20  # blocks of a table, beside one per tile: more would only take memory
SPARE = 4  # times the blocks that an image needs, where only the GPU knows its tiles


class Kind(NamedTuple):
    """What distinguishes the kernels: `nodata` says whether a value is left out of the mean."""

    dtype: str
    tile_dtype: str
    nodata: bool

    @property
    def name(self) -> str:
        return f"tiles-{self.dtype}-{self.tile_dtype}{'-nodata' * self.nodata}"


class Grid(NamedTuple):
    """Blocks of a launch. `shape` are tiles, and blocks per tile, of which those that a tile doesn't need end at once;
    with `work` all blocks, and 1. `work` (blocks, 3), int32, says for tiles that the host knows what each block does:
    its tile, its number among the tile's blocks, and how many those are. In the order of the bands in memory: blocks
    that run at the same time and read one tile's narrow column would keep only a part of the memory's channels busy."""

    shape: tuple[int, int]
    share: int
    work: NDArray[np.int32] | None = None


def share_of(nbytes: int, processors: int) -> int:
    """Bytes of a band, for an image of so many."""
    return PAIR * min(max(nbytes // (PAIR * BLOCKS_PER_SM * processors), 1), MOST_PAIRS)


def bands_of(
    width: NDArray[np.int64], height: NDArray[np.int64], pixel: int, share: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Bands of tiles of so many pixels of `pixel` bytes, as the kernel cuts them, and rows of each; at least one."""
    rows = np.maximum(share // np.maximum(width * pixel, 1), 1)
    return np.clip(-(-height // rows), 1, MOST_PARTS), rows


def grid_of(tiles: NDArray[np.int32], pixel: int, share: int) -> Grid:
    """The launch for tiles (N, 4), N > 0, that the host knows."""
    left, top, right, bottom = tiles.astype(np.int64).T
    parts, rows = bands_of(right - left, bottom - top, pixel, share)
    total = int(parts.sum())
    if total > MOST_LISTED:  # tiles overlap over and over: blocks then do several bands each
        parts = np.maximum(parts * MOST_LISTED // total, 1)
    tile = np.repeat(np.arange(len(tiles)), parts)
    number = np.arange(len(tile)) - np.repeat(np.cumsum(parts) - parts, parts)
    order = np.lexsort((left[tile], top[tile] + number * rows[tile]))
    work = np.stack([tile, number, parts[tile]], axis=1)[order].astype(np.int32)
    return Grid((len(work), 1), share, work)


def grid_for(count: int, width: int, height: int, pixel: int, share: int) -> Grid:
    """The launch for `count` > 0 tiles that only the GPU knows, of an image of `width` x `height`: all the same number
    of blocks, together several times those that the image needs."""
    parts, _ = bands_of(np.array([width]), np.array([height]), pixel, share)
    whole = int(parts[0])
    return Grid((count, min(max(-(-SPARE * whole // count), 1), whole)), share)
