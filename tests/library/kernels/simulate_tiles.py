"""Runs the kernel of tile sums in Numba's simulator, in a process of its own, as `simulate` does the plain crop.

Prints, for each kind of kernel, how many tiles have another mean or flag than NumPy's, as JSON; and how many words of
its memory a launch did not leave at 0.
"""

from __future__ import annotations

import json
import os

os.environ["NUMBA_ENABLE_CUDASIM"] = "1"

import numpy as np
import patience
from numba import cuda

from octopus.kernels.cuda import tile_rows, tile_sums
from octopus.kernels.cuda.tile_grid import Grid, Kind, grid_for

THREADS = 32
tile_rows.THREADS = THREADS  # of a block: the simulator is slow
PASSES, SCALE, THRESHOLD, NODATA = 4, 100.0, 0.5, 3


patience.install()


def some_image(dtype, width, channels, pitched):
    """Values from 0 to 99; a part of a wider image if `pitched`, whose rows begin anywhere."""
    random = np.random.default_rng(1)
    pixels = random.integers(0, 100, (13, width + 12 * pitched, channels), dtype)
    pixels[5:8] = NODATA
    return pixels[2:11, 3 : 3 + width] if pitched else pixels


def some_tiles(image):
    """Tiles of all kinds: a pixel, a row, a column, the whole image, its corners, and overlapping ones."""
    height, width = image.shape[:2]
    random = np.random.default_rng(2)
    x, y = (np.sort(random.integers(0, side + 1, (1, 2)), axis=1) for side in (width, height))
    free = np.column_stack(
        [x[:, 0], y[:, 0], np.maximum(x[:, 1], x[:, 0] + 1), np.maximum(y[:, 1], y[:, 0] + 1)]
    )
    free = np.minimum(free, [width - 1, height - 1, width, height])
    fixed = [
        (0, 0, 1, 1), (width - 1, height - 1, width, height), (0, 0, width, height), (0, 7, width, 8),
        (1, 0, 2, height), (0, 4, width - 1, 5),
    ]  # fmt: skip
    return np.concatenate([free, np.array(fixed)]).astype(np.int32)


def expected(image, tiles, nodata):
    means = []
    for x1, y1, x2, y2 in tiles.tolist():
        values = image[max(y1, 0) : max(y2, 0), max(x1, 0) : max(x2, 0)]
        values = values[values != NODATA] if nodata else values
        means.append(values.mean() / SCALE if values.size else np.nan)
    means = np.array(means)
    return means, means > THRESHOLD


def run(kind, image, tiles, grid, launches=1):
    """Launch, again on the same memory; returns means, flags and what is left in the words."""
    base = image if image.base is None else image.base
    memory = np.ascontiguousarray(base).view(np.uint8).reshape(-1)
    begin = image.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    # Bytes before and behind the image that would spoil every sum, to be left alone.
    pitch, pixel = image.strides[0], image.shape[2] * image.itemsize
    extent = (image.shape[0] - 1) * pitch + image.shape[1] * pixel
    head = begin % 16 if image.base is not None else 5 * image.itemsize
    source = np.full(head + extent + 31, 255, np.uint8)
    source[head : head + extent] = memory[begin : begin + extent]
    words, absent = np.zeros(len(tiles), np.int64), np.zeros(len(tiles), np.int64)
    means, flags = np.zeros(len(tiles)), np.zeros(len(tiles), np.uint8)
    work = np.zeros(4, np.int32) if grid.work is None else grid.work.reshape(-1)
    kernel = cuda.jit(tile_sums.build(kind))
    for _ in range(launches):
        kernel[grid.shape, THREADS](
            source, np.int64(head), np.int64(head + extent), np.int64(pitch), np.int32(image.shape[1]),
            np.int32(image.shape[0]), np.int32(pixel), tiles.reshape(-1), work,
            np.int32(grid.passes), words, absent, np.uint32(NODATA), SCALE, THRESHOLD, means, flags,
        )  # fmt: skip
    return means, flags, int(np.count_nonzero(words) + np.count_nonzero(absent))


def wrong(found, right):
    means, flags = right
    return int((~((found[0] == means) | (np.isnan(found[0]) & np.isnan(means))) | (found[1] != flags)).sum())


CASES = (
    # dtype, width, channels, part of a wider image, listed, nodata
    ("uint8", 41, 1, False, False, True), ("uint8", 41, 1, True, False, False), ("uint8", 41, 3, True, True, True),
    ("uint16", 41, 1, False, False, False), ("uint16", 41, 3, True, False, True), ("uint16", 41, 1, True, True, False),
    # Rows a multiple of 16 bytes apart, and with more loads than a block has threads.
    ("uint8", 48, 1, False, False, False), ("uint8", 36, 4, True, False, True), ("uint16", 304, 1, False, True, True),
    ("uint8", 208, 3, False, False, False), ("uint16", 300, 1, True, False, True), ("uint8", 3, 1, False, False, True),
)  # fmt: skip


def main():
    results, left = {}, 0
    for dtype, width, channels, pitched, listed, nodata in CASES:
        image = some_image(dtype, width, channels, pitched)
        tiles = some_tiles(image)
        grid = listed_grid(len(tiles)) if listed else Grid((len(tiles), 2), PASSES, None)
        kind = Kind(dtype, "int32", image.strides[0] % 16 == 0, listed, nodata)
        found = run(kind, image, tiles, grid, 2 if width == 41 and channels == 1 else 1)
        results[f"{kind.name}-{width}x{channels}-{pitched}"] = wrong(found, expected(image, tiles, nodata))
        left += found[2]
    results["anything-on-the-gpu"], more = anything_on_the_gpu()
    print(json.dumps({"wrong": results, "left": left + more}))


def listed_grid(count):
    """One to three blocks per tile, in any order, and rows in one to three strips."""
    blocks = 1 + np.arange(count) % 3
    work = np.array(
        [(tile, i, n, 1 + tile % 3) for tile, n in enumerate(blocks.tolist()) for i in range(n)], np.int32
    )
    return Grid((len(work), 1), PASSES, np.random.default_rng(4).permutation(work))


def anything_on_the_gpu():
    """Tiles that the host has not seen: beyond the image on all sides, empty, inside out."""
    image = np.random.default_rng(3).integers(0, 100, (16, 64, 1), np.uint8)
    tiles = np.array(
        [
            (0, 0, -(2**63), 5),
            (2**62, 0, 3, 5),
            (-5, -7, 70, 20),
            (60, 10, 100, 12),
            (5, 5, 5, 9),
            (9, 9, 3, 12),
            (64, 0, 70, 5),
            (0, 16, 9, 20),
        ],
        np.int64,
    )
    kind = Kind("uint8", "int64", True, False, False)
    grid = grid_for(len(tiles), 64, 16, 1, PASSES)
    found = run(kind, image, tiles, grid)
    inside = np.clip(tiles, 0, [64, 16, 64, 16])
    empty = (inside[:, 0] >= inside[:, 2]) | (inside[:, 1] >= inside[:, 3])
    right = [
        np.where(empty, 0, part)
        for part in expected(image, np.where(empty[:, None], [0, 0, 1, 1], inside), False)
    ]
    right[0][empty] = np.nan
    return wrong(found, right), found[2]


if __name__ == "__main__":
    main()
