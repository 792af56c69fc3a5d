"""The way to run a call on images through `kernels.cuda.image_tiles`: which calls it takes, and how they are cut."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from octopus.arrays.checks import INT32_MAX
from octopus.backends.cuda.launch import ArgumentBlock, function_of, submit
from octopus.images.launcher import Launch, four
from octopus.images.spec import ImageSpec
from octopus.kernels import images
from octopus.kernels.cuda.image_kind import GROUP, MOST_WARPS, STEP, ImageKernel, shared_bytes

CAPABILITY = (8, 0)  # from here on the tensor cores multiply int8
SIDES = (10, 12, 14, 16)  # of patches that are a warp's block
MAX_PIXEL_STEP = 4  # bytes; farther apart, most of what is loaded is nobody's
# Blocks of more bands spend less on their weights: on an H200 8 bands were 2 to 11 % faster than 4, those 22 to 24 %
# faster than 2. With fewer blocks than processors, or than two rounds of long ones, that gain is lost to idle ones.
MANY_BANDS, MANY_BLOCKS = 8, 4  # a processor's blocks

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
    found, first = _cut(kernel, _geometry(table), item, shared_limit, processors, bands)
    if first is not None:
        table["first_tile"] = first
    return found


def cut_like(kernel: ImageKernel, table: Cells, item: tuple[int, int], captured: Cut) -> Cut | None:
    """Cut a call into the tiles of a captured launch; None if that has too little of anything."""
    found, first = _cut_like(kernel, _geometry(table), item, captured)
    if first is not None:
        table["first_tile"] = first
    return found


Geometry = tuple[bytes, bytes]
Numbered = tuple[Cut | None, Cells | None]  # a launch, and `first_tile` of its images


def _geometry(table: Cells) -> Geometry:
    """All that a cut depends on: the steps and sides of the images, and which of them are none."""
    return table.view(np.int32).reshape(-1, 16)[:, 4:14].tobytes(), (table["pointer"] != 0).tobytes()


@lru_cache(maxsize=64)
def _cut(
    kernel: ImageKernel, geometry: Geometry, item: tuple[int, int], shared_limit: int, processors: int,
    bands: int | None,
) -> Numbered:  # fmt: skip
    needs = _needs(kernel, geometry, item)
    if needs is None:
        return None, None
    best: Numbered = None, None
    for shape in _shapes(kernel.block.columns, _sides(kernel, geometry, item)[1], bands):
        shared = shared_bytes(kernel, *shape, *needs)
        if shared > (_half(shared_limit) if shape[1] == MANY_BANDS and bands is None else shared_limit):
            continue
        blocks, first = _number(kernel, geometry, item, *shape)
        if blocks > INT32_MAX:
            continue
        best = Cut(blocks, *shape, *needs, shared), first
        least = MANY_BLOCKS if shape[1] == MANY_BANDS else 1
        if blocks >= least * processors or shape[1] == 1:
            break
    return best


@lru_cache(maxsize=64)
def _cut_like(kernel: ImageKernel, geometry: Geometry, item: tuple[int, int], captured: Cut) -> Numbered:
    needs = _needs(kernel, geometry, item)
    if needs is None or any(a > b for a, b in zip(needs, captured[3:6], strict=True)):
        return None, None
    blocks, first = _number(kernel, geometry, item, captured.warps, captured.bands)
    return (captured._replace(blocks=blocks), first) if blocks <= captured.blocks else (None, None)


def _needs(
    kernel: ImageKernel, geometry: Geometry, item: tuple[int, int]
) -> tuple[int, int, int] | None:
    """Products that the widest band of columns and of rows takes, and groups of rows that it reaches over.

    None if the images' memory or place is one that the kernel doesn't know.
    """
    words, real = _arrays(geometry)
    words = words if real.all() else words[real]
    if not len(words) or not _known(kernel, words, item):
        return None
    reach = _reach(words[:, 4:6], words[:, 6:8], kernel)
    across = int((reach[:, 1] * words[:, 3]).max()) if words[:, 3].max() > 1 else int(reach[:, 1].max())
    groups = (int(reach[:, 0].max()) + GROUP - 1) // GROUP + 1
    return across // STEP + 1, (groups + 1) // 2, 1 << (groups - 1).bit_length()


def _arrays(geometry: Geometry) -> tuple[Cells, Cells]:
    """Of each image plane step (two words), row and pixel step, height, width, rows, columns, top, left; if it is."""
    return np.frombuffer(geometry[0], np.int32).reshape(-1, 10), np.frombuffer(geometry[1], np.bool_)


def _known(kernel: ImageKernel, words: Cells, item: tuple[int, int]) -> bool:
    """Whether the kernel knows all images' memory and place."""
    _, _, row_step, pixel_step, _, _, _, _, top, left = words.min(axis=0).tolist()
    if pixel_step < 1 or min(row_step, top, left) < 0 or int(words[:, 3].max()) > MAX_PIXEL_STEP:
        return False
    if kernel.kind == "batch" and (words[:, 6:8] - words[:, 8:10] < item).any():
        return False
    span = words[:, 4].astype(np.int64) * words[:, 2] + words[:, 5].astype(np.int64) * words[:, 3]
    if kernel.channels > 1:
        planes = np.ascontiguousarray(words[:, :2]).view(np.int64)[:, 0]
        span += np.abs(planes) * (kernel.channels - 1)
    return int(span.max()) < INT32_MAX - 64


def _reach(sizes: Cells, counts: Cells, kernel: ImageKernel) -> Cells:
    """Source pixels but one under the windows of neighbouring rows, columns of a block, of each image, at most."""
    scale = sizes / np.maximum(counts, 1)
    spread = np.maximum(scale, 1.0) if kernel.antialias else 1.0
    support: float = images.filter_support(kernel.filter)
    lines = np.minimum(counts, kernel.block[:2]) - 1
    reach: Cells = np.minimum(np.ceil(lines * scale + 2.0 * support * spread), sizes - 1)
    return reach


def _sides(kernel: ImageKernel, geometry: Geometry, item: tuple[int, int]) -> tuple[Any, Any]:
    """Heights and widths of the items."""
    if kernel.kind == "batch":
        return item
    words = _arrays(geometry)[0]
    return words[:, 6], words[:, 7]


def _number(
    kernel: ImageKernel, geometry: Geometry, item: tuple[int, int], warps: int, bands: int
) -> tuple[int, Cells]:
    """How many tiles there are in all, and `first_tile`. Records that are no image have none."""
    height, width = _sides(kernel, geometry, item)
    block, real = kernel.block, _arrays(geometry)[1]
    down, across = -(-height // (block.rows * bands)), -(-width // (block.columns * warps))
    tiles = np.multiply(down, across, dtype=np.int64) * real
    ends = np.cumsum(tiles)
    return int(ends[-1]), ends - tiles


def _shapes(columns: int, width: Any, bands: int | None) -> list[tuple[int, int]]:
    """Warps and bands of a block, the best first: many share the weights of a column, of a row."""
    most = -(-int(np.max(width)) // columns)
    warps = min(7 if columns == 16 else MOST_WARPS, most)
    if bands is not None:
        return [(warps, bands)]
    return [(warps, MANY_BANDS), (warps, 4), (warps, 2), (warps, 1), (min(4, most), 1), (1, 1)]


def _half(shared_limit: int) -> int:
    """Bytes of a block of which a processor has two; 1 KiB of each is the driver's."""
    return shared_limit // 2 - 1024
