"""The way to run a call on images through `kernels.cuda.image_tiles`: which calls it takes, and how they are cut."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from octopus.arrays.checks import INT32_MAX
from octopus.backends.cuda.launch import ArgumentBlock, function_of, submit
from octopus.images.launcher import Launch, four
from octopus.images.spec import ImageSpec
from octopus.kernels import images
from octopus.kernels.cuda.image_kind import GROUP, STEP, ImageKernel, shared_bytes

CAPABILITY = (8, 0)  # from here on the tensor cores multiply int8
SIDES = (10, 12, 14, 16)  # of patches that are a warp's block
MAX_PIXEL_STEP = 4  # bytes; farther apart, most of what is loaded is nobody's
BLOCKS_PER_PROCESSOR = 4  # with fewer, blocks of fewer rows spread the work better than they cost

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


class TensorKernel:
    """Launches `kernels.cuda.image_tiles` for a spec that has one; refuses images that it can't do.

    Parameters
    ----------
    spec : ImageSpec
        One for which `kernel_of` has a kernel.
    """

    def __init__(self, spec: ImageSpec) -> None:
        kind = kernel_of(spec)
        assert kind is not None
        self._kind, self._item = kind, spec.item
        self._function: Any = None
        self._arguments = ArgumentBlock("QiQ" + "i" * 6 + "f" * 8)
        self._write = self._arguments.writer(0, 3)
        self._write_cut = self._arguments.writer(5, 4)
        self._arguments.writer(3, 2)(*spec.item)
        self._arguments.writer(9, 8)(*four(spec.gain), *four(spec.bias))

    def load(self) -> None:
        """As of `Launcher`."""
        if self._function is None:
            self._function = function_of(_kernel(self._kind, _capability()), _limits()[0])

    def prepare(self, table: Cells, like: Launch | None = None) -> Launch | None:
        """As of `Launcher`."""
        if like is None:
            found = cut(self._kind, table, self._item, *_limits())
        else:
            found = cut_like(self._kind, table, self._item, like.cut)
        return None if found is None else Launch(self, found.blocks, found)

    def submit(self, launch: Launch, table: int, count: int, out: int, stream: Any) -> None:
        """As of `Launcher`."""
        self.load()
        made: Cut = launch.cut
        self._write(table, count, out)
        self._write_cut(made.bands, made.steps, made.row_steps, made.slots)
        submit(
            self._function, (launch.blocks, 1, 1, 32 * made.warps, 1, 1), stream, self._arguments, made.shared
        )


@cache
def _kernel(kind: ImageKernel, capability: tuple[int, int]) -> Any:
    from octopus.backends.cuda import compile

    def build() -> tuple[Callable[..., Any], tuple[Any, ...]]:
        from octopus.kernels.cuda import image_tiles

        return image_tiles.build(kind), image_tiles.argument_types(kind)

    return compile.load("images-tiles-" + "-".join(str(part).lower() for part in kind), build)


def _capability() -> tuple[int, int]:
    """Of the GPU in use: a kernel that was loaded for one may not run on another."""
    from octopus.backends.cuda.device import compute_capability

    return compute_capability()


def _limits() -> tuple[int, int]:
    """Bytes of shared memory that a block may have on the GPU in use, and its processors."""
    from octopus.backends.cuda.device import current

    properties = current().properties
    return properties.max_shared_memory_per_block_optin, properties.multiprocessor_count


def cut(
    kernel: ImageKernel, table: Cells, item: tuple[int, int], shared_limit: int, processors: int,
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
    needs = _needs(kernel, table, item)
    if needs is None:
        return None
    best: Cut | None = None
    for shape in _shapes(kernel.block.columns, _sides(kernel, table, item)[1], bands):
        shared = shared_bytes(kernel, *shape, *needs)
        if shared > shared_limit:
            continue
        blocks = _number(kernel, table, item, *shape)
        best = Cut(blocks, *shape, *needs, shared)
        if blocks >= BLOCKS_PER_PROCESSOR * processors or shape[1] == 1:
            break
    return best if best is None or best.blocks <= INT32_MAX else None


def cut_like(kernel: ImageKernel, table: Cells, item: tuple[int, int], captured: Cut) -> Cut | None:
    """Cut a call into the tiles of a captured launch; None if that has too little of anything."""
    needs = _needs(kernel, table, item)
    if needs is None or any(a > b for a, b in zip(needs, captured[3:6], strict=True)):
        return None
    blocks = _number(kernel, table, item, captured.warps, captured.bands)
    return captured._replace(blocks=blocks) if blocks <= captured.blocks else None


def _needs(kernel: ImageKernel, table: Cells, item: tuple[int, int]) -> tuple[int, int, int] | None:
    """Products that the widest band of columns and of rows takes, and groups of rows that it reaches over.

    None if the images' memory or place is one that the kernel doesn't know.
    """
    words, block = table.view(np.int32).reshape(-1, 16), kernel.block
    row_step, pixel_step, height, width, rows, columns, top, left = words[:, 6:14].T.astype(np.int64)
    span = (height - 1) * row_step + (width - 1) * pixel_step
    if kernel.channels > 1:
        span += np.abs(table["plane_step"]) * (kernel.channels - 1)
    known = (pixel_step >= 1) & (pixel_step <= MAX_PIXEL_STEP) & (row_step >= 0)
    known &= (top >= 0) & (left >= 0) & (span < INT32_MAX - 64)
    if kernel.kind == "batch":
        known &= (top + item[0] <= rows) & (left + item[1] <= columns)
    if not known.all():
        return None
    across = (_reach(width, columns, block.columns, kernel) - 1) * pixel_step
    down = _reach(height, rows, block.rows, kernel) - 1
    groups = int(down.max() + GROUP - 1) // GROUP + 1
    return int(across.max()) // STEP + 1, (groups + 1) // 2, 1 << (groups - 1).bit_length()


def _reach(size: Cells, count: Cells, lines: int, kernel: ImageKernel) -> Cells:
    """Source pixels under the windows of so many neighbouring lines of each image, at most."""
    scale = size / np.maximum(count, 1)
    spread = np.maximum(scale, 1.0) if kernel.antialias else 1.0
    support: float = images.filter_support(kernel.filter)
    wide = (np.minimum(lines, count) - 1) * scale + 2.0 * support * spread
    reach: Cells = np.minimum(np.ceil(wide).astype(np.int64) + 1, size)
    return reach


def _sides(kernel: ImageKernel, table: Cells, item: tuple[int, int]) -> tuple[Any, Any]:
    """Heights and widths of the items."""
    if kernel.kind == "batch":
        return item
    return table["rows"].astype(np.int64), table["columns"].astype(np.int64)


def _number(kernel: ImageKernel, table: Cells, item: tuple[int, int], warps: int, bands: int) -> int:
    """Write `first_tile`; how many tiles there are in all. Records that are no image have none."""
    height, width = _sides(kernel, table, item)
    block = kernel.block
    tiles = -(-height // (block.rows * bands)) * -(-width // (block.columns * warps))
    tiles = np.where(table["pointer"] != 0, tiles, 0)
    ends = np.cumsum(tiles)
    table["first_tile"] = ends - tiles
    return int(ends[-1])


def _shapes(columns: int, width: Any, bands: int | None) -> list[tuple[int, int]]:
    """Warps and bands of a block, the best first: many share the weights of a column, of a row."""
    most = -(-int(np.max(width)) // columns)
    warps = min(7 if columns == 16 else 8, most)
    if bands is not None:
        return [(warps, bands)]
    return [(warps, 4), (warps, 2), (warps, 1), (min(4, most), 1), (1, 1)]
