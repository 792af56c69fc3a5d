"""How a call is cut for `kernels.cuda.image_tiles`: which calls it takes, its tiles, and its shared memory."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from octopus.images.spec import ImageSpec
from octopus.kernels import images
from octopus.kernels.cuda.image_passes import GROUP
from octopus.kernels.cuda.image_tiles import ImageKernel, shared_bytes
from octopus.kernels.cuda.image_weights import STEP

CAPABILITY = (8, 0)  # from here on the tensor cores multiply int8
SIDES = (10, 12, 14, 16)  # of patches that are a warp's block
MAX_PIXEL_STEP = 4  # bytes; farther apart, most of what is loaded is nobody's
MAX_TAPS = 24  # steps of a band: source pixels of 16 lines / 32


class Cut(NamedTuple):
    """A launch of the kernel: blocks, threads, bytes of shared memory, and the numbers that it is told."""

    blocks: int
    warps: int
    bands: int
    steps: int
    row_steps: int
    slots: int
    shared: int


def kernel_of(spec: ImageSpec) -> ImageKernel | None:
    """The kernel for a spec; None if it has to be the simple one."""
    code = images.filter_code(spec.filter, spec.antialias)
    if spec.source != "uint8" or code not in (images.BILINEAR, images.BICUBIC, images.LANCZOS):
        return None
    if spec.kind == "rows" and spec.patch not in SIDES:
        return None
    sides = (spec.patch, spec.merge, spec.temporal) if spec.kind == "rows" else (1, 1, 1)
    return ImageKernel(
        spec.channels, code, spec.antialias, spec.rounding, spec.dtype, spec.kind, spec.layout, *sides
    )


def _reach(size: np.ndarray, count: np.ndarray, lines: int, kernel: ImageKernel) -> np.ndarray:
    """Source pixels under the windows of so many neighbouring lines of each image, at most."""
    scale = size / count
    spread = np.maximum(scale, 1.0) if kernel.antialias else np.ones_like(scale)
    wide = (np.minimum(lines, count) - 1) * scale + 2 * images.filter_support(kernel.filter) * spread
    return np.minimum(np.ceil(wide).astype(np.int64) + 1, size)


def _fits(table: np.ndarray, kernel: ImageKernel) -> bool:
    """Whether the images' memory and place are ones that the kernel reads."""
    live = table[table["pointer"] != 0]
    steps = (live["pixel_step"] >= 1) & (live["pixel_step"] <= MAX_PIXEL_STEP) & (live["row_step"] >= 0)
    inside = (live["top"] >= 0) & (live["left"] >= 0)
    return bool((steps & inside).all())


def cut(
    kernel: ImageKernel, table: np.ndarray, item: tuple[int, int], shared_limit: int, processors: int,
    bands: int | None = None,
) -> Cut | None:  # fmt: skip
    """Cut a call into tiles and write `first_tile` into the table; None if the simple kernel has to do it.

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
    live = table["pointer"] != 0
    if not _fits(table, kernel) or not live.any():
        return None
    some, block = table[live], kernel.block
    columns = _reach(some["width"].astype(np.int64), some["columns"].astype(np.int64), block.columns, kernel)
    rows = _reach(some["height"].astype(np.int64), some["rows"].astype(np.int64), block.rows, kernel)
    steps = int((((columns - 1) * some["pixel_step"] + 1 + STEP - 1) // STEP).max())
    groups = int(((rows - 1 + GROUP - 1) // GROUP + 1).max())
    slots, row_steps = 1 << (groups - 1).bit_length(), (groups + 1) // 2
    height, width = (
        item if kernel.kind == "batch" else (table["rows"].astype(np.int64), table["columns"].astype(np.int64))
    )
    shapes = _shapes(block.columns, np.max(width), bands)
    for shape in shapes:
        warps, bands = shape
        shared = shared_bytes(kernel, warps, bands, steps, row_steps, slots)
        if shared <= shared_limit:
            tiles = -(-height // (block.rows * bands)) * -(-width // (block.columns * warps))
            tiles = np.where(live, tiles, 0)
            table["first_tile"] = np.cumsum(tiles) - tiles
            total = int(tiles.sum())
            if total >= 4 * processors or shape == shapes[-1] or bands == 1:
                return Cut(total, warps, bands, steps, row_steps, slots, shared)
    return None


def _shapes(columns: int, width: int, bands: int | None) -> list[tuple[int, int]]:
    """Warps and bands of a block, the best first: many share the weights of a column, of a row."""
    most = -(-int(width) // columns)
    warps = min(7 if columns == 16 else 8, most)
    if bands is not None:
        return [(warps, bands)]
    return [(warps, 4), (warps, 2), (warps, 1), (min(4, most), 1), (1, 1)]
