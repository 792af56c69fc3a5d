"""Kinds of the kernel of tile sums, and how it cuts tiles into blocks; read at launch, so it imports no compiler."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

CHUNK = 16  # bytes of a load
THREADS = 256  # of a block
BATCH = 4  # loads of a thread that are under way at once
MOST_BATCHES = 4  # of a thread for one part of a tile
BLOCKS_PER_SM = 8  # with fewer, smaller parts spread the work better than they cost
MOST_PARTS = 65535  # of a tile: they are counted in 16 bits
MOST_LISTED = 1 << 20  # blocks of a table, beside one per tile: more would only take memory
SPARE = 4  # times the blocks that an image needs, where only the GPU knows its tiles
STRIPS_TRIED = 4  # ways to cut rows that are compared
SCORE = 64  # of a thread at work, so that the comparison of ways can do with integers


class Kind(NamedTuple):
    """What distinguishes the kernels.

    Attributes
    ----------
    dtype : {"uint8", "uint16"}
    tile_dtype : {"int32", "int64"}
    aligned : bool
        Whether rows are a multiple of 16 bytes apart, so that all rows of a tile begin alike.
    listed : bool
        Whether a table says what each block does, instead of every tile having the same number of blocks.
    nodata : bool
        Whether a value is left out of the mean.
    """

    dtype: str
    tile_dtype: str
    aligned: bool
    listed: bool
    nodata: bool

    @property
    def name(self) -> str:
        """Unique among kernels."""
        options = ["aligned"] * self.aligned + ["listed"] * self.listed + ["nodata"] * self.nodata
        return "-".join(["tiles", self.dtype, self.tile_dtype, *options])


class Grid(NamedTuple):
    """Blocks of a launch.

    Attributes
    ----------
    shape : (int, int)
        Tiles, and blocks per tile, of which those that a tile doesn't need end at once. With `work`: all blocks, and 1.
    passes : int
        Loads of a thread for one part of a tile.
    work : ndarray (blocks, 4) int32, or None
        For tiles that the host knows, what each block does: its tile, its number among the tile's blocks, how many
        those are, and into how many strips the tile's rows are cut. In the order of the parts in memory, from top left
        to bottom right: blocks that run at the same time then read rows of the image from end to end, not one tile's
        narrow column.
    """

    shape: tuple[int, int]
    passes: int
    work: NDArray[np.int32] | None


def passes_for(nbytes: int, processors: int) -> int:
    """Loads of a thread for an image of so many bytes: few for a small one, so that it keeps a whole GPU busy."""
    blocks = nbytes // (CHUNK * BATCH * THREADS)
    return BATCH * min(max(blocks // (BLOCKS_PER_SM * processors), 1), MOST_BATCHES)


def strips_of(columns: NDArray[np.int64]) -> NDArray[np.int64]:
    """Into how many strips to cut rows of so many loads: those that leave the fewest threads without work.

    Left to the blocks, the divisions would take longer than what they save.
    """
    least = -(-columns // THREADS)
    candidates = least + np.arange(STRIPS_TRIED)[:, None]
    together = THREADS // -(-columns // candidates)
    return least + np.argmax(columns * together * SCORE // candidates, axis=0)


def parts_of(
    width: NDArray[np.int64], height: NDArray[np.int64], pixel: int, passes: int, *, listed: bool = True
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """How the kernel cuts tiles of so many pixels of `pixel` bytes, give or take a load per row.

    Parameters
    ----------
    listed : bool
        Whether a table tells the blocks into how many strips to cut rows; without one they take as few as can be.

    Returns
    -------
    strips, bands, rows : ndarray (N,)
        A tile has `strips * bands` parts, each of at most `rows` rows.
    """
    columns = np.maximum((width * pixel + 2 * (CHUNK - 1)) // CHUNK, 1)
    strips = strips_of(columns) if listed else -(-columns // THREADS)
    rows = THREADS // -(-columns // strips) * passes
    return strips, -(-height // rows), rows


def grid_of(tiles: NDArray[np.int32], pixel: int, passes: int) -> Grid:
    """The launch for tiles (N, 4), N > 0, that the host knows."""
    width, height = (tiles[:, 2:] - tiles[:, :2]).astype(np.int64).T
    strips, bands, rows = parts_of(width, height, pixel, passes)
    parts = np.clip(strips * bands, 1, MOST_PARTS)
    total = int(parts.sum())
    if total > MOST_LISTED:  # tiles overlap over and over: blocks then do several parts each
        parts = np.maximum(parts * MOST_LISTED // total, 1)
    return Grid((int(parts.sum()), 1), passes, _work(tiles, parts, strips, bands, rows))


def _work(
    tiles: NDArray[np.int32],
    parts: NDArray[np.int64],
    strips: NDArray[np.int64],
    bands: NDArray[np.int64],
    rows: NDArray[np.int64],
) -> NDArray[np.int32]:
    """The table of `Grid.work`."""
    tile = np.repeat(np.arange(len(tiles)), parts)
    number = np.arange(len(tile)) - np.repeat(np.cumsum(parts) - parts, parts)
    strip, band = np.divmod(number, bands[tile])
    order = np.lexsort((strip, tiles[tile, 0], tiles[tile, 1] + band * rows[tile]))
    table = np.stack([tile, number, parts[tile], strips[tile]], axis=1)
    return np.ascontiguousarray(table[order], np.int32)


def grid_for(count: int, width: int, height: int, pixel: int, passes: int) -> Grid:
    """The launch for `count` > 0 tiles that only the GPU knows, of an image of `width` x `height`.

    Together they get several times the blocks that the image needs, all of them the same number.
    """
    strips, in_column, _ = parts_of(np.array([width]), np.array([height]), pixel, passes, listed=False)
    whole = int(strips[0] * in_column[0])
    bands = min(max(-(-SPARE * whole // count), 1), whole, MOST_PARTS)
    return Grid((count, bands), passes, None)
