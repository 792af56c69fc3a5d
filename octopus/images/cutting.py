"""How images are cut into tiles for `kernels.cuda.image_tiles`, and which images that kernel can't do."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from octopus.arrays.checks import INT32_MAX
from octopus.kernels import images
from octopus.kernels.cuda.image_kind import GROUP, MOST_WARPS, STEP, ImageKernel, shared_bytes

MAX_PIXEL_STEP = 4  # bytes; farther apart, most of what is loaded is nobody's
# Blocks of more bands spend less on their weights: on an H200 8 bands were 2 to 11 % faster than 4, those 22 to 24 %
# faster than 2. With fewer blocks than processors, or than two rounds of long ones, that gain is lost to idle ones.
MANY_BANDS, MANY_BLOCKS = 8, 4  # a processor's blocks

# A grid's blocks begin in order, and a long one that begins last keeps one processor at work and all others idle:
# images whose blocks have the most to read come first, where some have so many times as much as others.
UNEVEN = 2

MAX_SPAN = INT32_MAX - 64  # bytes from an image's first to its last

Cells = NDArray[Any]


class Cut(NamedTuple):
    """A launch of the kernel: blocks, threads, bytes of shared memory, and the numbers that it is told."""

    blocks: int
    warps: int
    bands: int
    steps: int
    row_steps: int
    slots: int
    shared: int


def cut(
    kernel: ImageKernel, table: Cells, item: tuple[int, int], shared_limit: int, processors: int,
    bands: int | None = None,
) -> Cut | None:  # fmt: skip
    """Cut a call into tiles, put the table's records in the order of their tiles, and write `first_tile` into them.

    None, and the table as it was, if the simple kernel has to do it.

    Parameters
    ----------
    kernel : ImageKernel
    table : ndarray, (N,), images.IMAGE
    item : (int, int)
        Height and width of the items of a batch.
    shared_limit : int
        Bytes of shared memory that a block may have.
    processors : int
        Streaming multiprocessors.
    bands : int, optional
        Bands of rows of a block; for measurements.
    """
    return _written(table, *_cut(kernel, _sides_of(table), item, shared_limit, processors, bands))


def cut_like(kernel: ImageKernel, table: Cells, item: tuple[int, int], captured: Cut) -> Cut | None:
    """Cut a call into the tiles of a captured launch; None if that has too little of anything."""
    return _written(table, *_cut_like(kernel, _sides_of(table), item, captured))


def _written(table: Cells, found: Cut | None, numbers: Numbers | None) -> Cut | None:
    if numbers is not None:
        if numbers.order is not None:
            rows = table.view(np.int64).reshape(len(table), -1)  # quicker to move than records
            rows[:] = rows.take(numbers.order, axis=0)
        table["first_tile"] = numbers.first
    return found


class Sides(NamedTuple):
    """What a cut depends on, of the images that are any.

    Attributes
    ----------
    each : ndarray, (9, N), int64
        Plane, row and pixel step, height, width, rows, columns, top and left of each.
    least, most : list of int
        Of each of these nine.
    real : ndarray, (M,), bool, or None
        Which records of the table are an image; None if all are.
    """

    each: Cells
    least: list[int]
    most: list[int]
    real: Cells | None


class Numbers(NamedTuple):
    """The records of a table as a launch wants them: in which order, None for as they are, and their `first_tile`."""

    order: Cells | None
    first: Cells


Numbered = tuple[Cut | None, Numbers | None]


def _sides_of(table: Cells) -> Sides | None:
    """None if no record is an image."""
    longs, words = (table.view(kind).reshape(len(table), -1) for kind in (np.int64, np.int32))
    each = np.empty((9, len(table)), np.int64)
    each[0], each[1:] = longs[:, 2], words[:, 6:14].T
    real = None
    if not longs[:, 0].all():
        real = longs[:, 0] != 0
        each = each[:, real]
    if not each.size:
        return None
    return Sides(each, each.min(axis=1).tolist(), each.max(axis=1).tolist(), real)


def _cut(
    kernel: ImageKernel, sides: Sides | None, item: tuple[int, int], shared_limit: int, processors: int,
    bands: int | None,
) -> Numbered:  # fmt: skip
    needs = None if sides is None else _needs(kernel, sides, item)
    best: Numbered = None, None
    if sides is None or needs is None:
        return best
    for shape in _shapes(kernel.block.columns, item[1] if kernel.kind == "batch" else sides.most[6], bands):
        shared, many = shared_bytes(kernel, *shape, *needs), shape[1] == MANY_BANDS and bands is None
        if shared > (_half(shared_limit) if many else shared_limit):
            continue
        blocks, numbers = _number(kernel, sides, item, *shape)
        if blocks > INT32_MAX:
            continue
        best = Cut(blocks, *shape, *needs, shared), numbers
        if blocks >= (MANY_BLOCKS if many else 1) * processors or shape[1] == 1:
            break
    return best


def _cut_like(kernel: ImageKernel, sides: Sides | None, item: tuple[int, int], captured: Cut) -> Numbered:
    needs = None if sides is None else _needs(kernel, sides, item)
    if sides is None or needs is None or any(a > b for a, b in zip(needs, captured[3:6], strict=True)):
        return None, None
    blocks, numbers = _number(kernel, sides, item, captured.warps, captured.bands)
    return (captured._replace(blocks=blocks), numbers) if blocks <= captured.blocks else (None, None)


def _needs(kernel: ImageKernel, sides: Sides, item: tuple[int, int]) -> tuple[int, int, int] | None:
    """Products that the widest band of columns and of rows takes, and groups of rows that it reaches over.

    None if the images' memory or place is one that the kernel doesn't know.
    """
    if not _known(kernel, sides, item):
        return None
    down, across = _reach(kernel, sides)
    if sides.most[2] > 1:
        across = across * sides.each[2]
    groups = (int(down.max()) + GROUP - 1) // GROUP + 1
    return int(across.max()) // STEP + 1, (groups + 1) // 2, 1 << (groups - 1).bit_length()


def _known(kernel: ImageKernel, sides: Sides, item: tuple[int, int]) -> bool:
    """Whether the kernel knows all images' memory and place."""
    each, least, most = sides.each, sides.least, sides.most
    if least[2] < 1 or min(least[1], least[7], least[8]) < 0 or most[2] > MAX_PIXEL_STEP:
        return False
    if kernel.kind == "batch" and ((each[5] - each[7] < item[0]) | (each[6] - each[8] < item[1])).any():
        return False
    planes = max(most[0], -least[0]) * (kernel.channels - 1)
    if most[1] * most[3] + most[2] * most[4] + planes < MAX_SPAN:
        return True
    span = each[1] * each[3] + each[2] * each[4] + np.abs(each[0]) * (kernel.channels - 1)
    return int(span.max()) < MAX_SPAN


def _reach(kernel: ImageKernel, sides: Sides) -> Cells:
    """Source pixels but one under the windows of a band's rows, and of its columns, of each image, at most."""
    sizes, counts = sides.each[3:5], sides.each[5:7]
    lines: Any = kernel.block.rows  # as many as columns
    if min(sides.least[5:7]) < lines:
        counts = np.maximum(counts, 1)
        lines = np.minimum(counts, lines)
    scale = sizes / counts
    spread = np.maximum(scale, 1.0) if kernel.antialias else 1.0
    support: float = images.filter_support(kernel.filter)
    wide = (lines - 1) * scale + (2.0 * support) * spread
    reach: Cells = np.minimum(np.ceil(wide), sizes - 1)
    return reach


def _number(
    kernel: ImageKernel, sides: Sides, item: tuple[int, int], warps: int, bands: int
) -> tuple[int, Numbers]:
    """How many tiles there are in all, and the records' order and first tiles. Those that are no image have none."""
    height, width = item if kernel.kind == "batch" else sides.each[5:7]
    high, wide = kernel.block.rows * bands, kernel.block.columns * warps
    tiles: Any = ((height + (high - 1)) // high) * ((width + (wide - 1)) // wide)
    count = sides.each.shape[1] if sides.real is None else len(sides.real)
    if sides.real is not None or kernel.kind == "batch":
        of_all = np.zeros(count, np.int64)
        of_all[slice(None) if sides.real is None else sides.real] = tiles
        tiles = of_all
    order = _order(sides, count)
    if order is not None:
        tiles = tiles[order]
    ends = np.cumsum(tiles)
    return int(ends[-1]), Numbers(order, ends - tiles)


def _order(sides: Sides, count: int) -> Cells | None:
    """The records by what a pixel of the result reads, the most first, no images last; None where that is alike."""
    sizes = sides.each[3] * sides.each[4] / np.maximum(sides.each[5] * sides.each[6], 1)
    if sizes.max() < UNEVEN * sizes.min():
        return None
    reads = np.zeros(count)
    reads[slice(None) if sides.real is None else sides.real] = sizes
    return np.argsort(-reads, kind="stable")


def _shapes(columns: int, width: int, bands: int | None) -> list[tuple[int, int]]:
    """Warps and bands of a block, the best first: many share the weights of a column, of a row."""
    most = -(-width // columns)
    warps = min(7 if columns == 16 else MOST_WARPS, most)
    if bands is not None:
        return [(warps, bands)]
    return [(warps, MANY_BANDS), (warps, 4), (warps, 2), (warps, 1), (min(4, most), 1), (1, 1)]


def _half(shared_limit: int) -> int:
    """Bytes of a block of which a processor has two; 1 KiB of each is the driver's."""
    return shared_limit // 2 - 1024
