"""How images are cut into tiles for `kernels.cuda.image_tiles`, and which images that kernel can't do."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from octopus.arrays.checks import INT32_MAX
from octopus.backends.cpu import compile, threads
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


def cut(kernel: ImageKernel, table: Cells, item: tuple[int, int], shared_limit: int, processors: int) -> Cut | None:
    """Cut a call into tiles, put the table's records in the order of their tiles, and write `first_tile` into them.

    None, and the table (N,) of `IMAGE` as it was, if the simple kernel has to do it. `item` are the sides of a batch's
    items, `shared_limit` the bytes of shared memory that a block may have.
    """
    seen, best = _survey(kernel, table, item), None
    if seen is None:
        return None
    most = -(-(item[1] if kernel.kind == "batch" else seen.widest) // kernel.side)
    warps = min(7 if kernel.side == 16 else MOST_WARPS, most)
    # Warps and bands of a block, the best first: many share the weights of a column, of a row.
    for shape in (warps, MANY_BANDS), (warps, 4), (warps, 2), (warps, 1), (min(4, most), 1), (1, 1):
        shared, many = shared_bytes(kernel, *shape, *seen.needs), shape[1] == MANY_BANDS
        # Of blocks of many bands a processor has two; 1 KiB of each is the driver's.
        if shared > (shared_limit // 2 - 1024 if many else shared_limit):
            continue
        blocks = _tiles(kernel, seen, *shape)
        if blocks > INT32_MAX:
            continue
        best = Cut(blocks, *shape, *seen.needs, shared)
        if blocks >= (MANY_BLOCKS if many else 1) * processors or shape[1] == 1:
            break
    return None if best is None else _numbered(kernel, table, best, seen)


def cut_like(kernel: ImageKernel, table: Cells, item: tuple[int, int], captured: Cut) -> Cut | None:
    """Cut a call into the tiles of a captured launch; None if that has too little of anything."""
    seen = _survey(kernel, table, item)
    if seen is None or any(a > b for a, b in zip(seen.needs, captured[3:6], strict=True)):
        return None
    blocks = _tiles(kernel, seen, captured.warps, captured.bands)
    if blocks > captured.blocks:
        return None
    return _numbered(kernel, table, captured._replace(blocks=blocks), seen)


class Seen(NamedTuple):
    """What a cut must know of the images of a table."""

    table: tuple[int, int, int, int]  # its address and records, and a batch's items' sides, 0 where each has its own
    widest: int  # columns of the widest result
    needs: tuple[int, int, int]  # products of the widest band of columns and of rows, groups of rows it reaches over
    reads: Cells  # (N + 2,), source pixels for each of the result's, 0 of no image; then least and most of images


def _survey(kernel: ImageKernel, table: Cells, item: tuple[int, int]) -> Seen | None:
    """None if no record is an image, or one's memory or place is such as the kernel doesn't know."""
    reads, answer = np.empty(len(table) + 2), array("q", bytes(40))
    told = (table.ctypes.data, len(table), *item)
    threads.launch(
        _kernel("survey"), 1, *told, kernel.side, kernel.antialias,
        int(images.filter_support(kernel.filter)), kernel.channels, MAX_PIXEL_STEP, MAX_SPAN,
        answer.buffer_info()[0], reads.ctypes.data,
    )  # fmt: skip
    count, known, widest, down, across = answer
    if not count or not known:
        return None
    groups = (down + GROUP - 1) // GROUP + 1
    return Seen(told, widest, (across // STEP + 1, (groups + 1) // 2, 1 << (groups - 1).bit_length()), reads)


def _tiles(kernel: ImageKernel, seen: Seen, warps: int, bands: int, write: bool = False) -> int:
    """How many tiles there are in all, those that are no image having none; their numbers, too, if they are wanted."""
    answer = array("q", (0,))
    threads.launch(
        _kernel("number"), 1, *seen.table, kernel.side * bands,
        kernel.side * warps, write, answer.buffer_info()[0],
    )  # fmt: skip
    return answer[0]


def _numbered(kernel: ImageKernel, table: Cells, found: Cut, seen: Seen) -> Cut:
    """Put the records in order, by what a pixel of the result reads unless that is alike, and number their tiles."""
    least, most = seen.reads[-2:].tolist()
    if most >= UNEVEN * least:
        rows = table.view(np.int64).reshape(len(table), -1)  # quicker to move than records
        rows[:] = rows.take(np.argsort(-seen.reads[:-2], kind="stable"), axis=0)
    _tiles(kernel, seen, found.warps, found.bands, write=True)
    return found


def load() -> None:
    """Compile what a cut needs of the host, or load it from the disk, unless that is done."""
    for name in ("survey", "number"):
        _kernel(name)


def _kernel(name: str) -> Callable[[int], Any]:
    """A kernel of `kernels.cpu.image_tiles`; Numba is needed only where the disk doesn't have it."""

    def build() -> Callable[..., None]:
        from octopus.kernels.cpu import image_tiles

        made: Callable[..., None] = getattr(image_tiles, f"build_{name}")()
        return made

    return compile.load(f"images-{name}", build)
