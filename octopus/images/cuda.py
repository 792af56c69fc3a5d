"""How a checked call on images runs on a CUDA device: which kernel, the tiles of its blocks, and its launch."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from octopus.arrays.checks import INT32_MAX
from octopus.arrays.launch import Cuda, PreparedLaunch, launch
from octopus.backends.cpu import compile as host
from octopus.backends.cpu import threads
from octopus.backends.cuda import compile
from octopus.backends.cuda.compile import function_of
from octopus.backends.cuda.device import compute_capability, current
from octopus.errors import InputError
from octopus.images.spec import ImageSpec
from octopus.kernels import built, images
from octopus.kernels.arguments import IMAGE_TILES, IMAGES, PADDING
from octopus.kernels.cuda.image_kind import GROUP, MOST_WARPS, STEP, ImageKernel, shared_bytes
from octopus.kernels.cuda.tiles import IMAGE_COLUMNS, IMAGE_ROWS, PAD_BLOCKS, PAD_THREADS

TENSOR_CAPABILITY = (8, 0)  # from here on the tensor cores multiply int8
SIDES = (10, 12, 14, 16)  # of patches that are a warp's block
MAX_PIXEL_STEP = 4  # bytes; farther apart, most of what is loaded is of no use
# Blocks of more bands spend less on their weights: on an H200 8 bands were 2 to 11 % faster than 4, those 22 to 24 %
# faster than 2. With fewer blocks than processors, or than two rounds of long ones, that gain is lost to idle ones.
MANY_BANDS, FUSED_BANDS, MANY_BLOCKS = 8, 6, 4  # a processor's blocks
# A grid's blocks begin in order, and a long one that begins last keeps one processor at work and all others idle:
# images whose blocks have the most to read come first, where some have so many times as much as others.
UNEVEN = 2
MAX_SPAN = INT32_MAX - 64  # bytes from an image's first to its last

Cells = NDArray[Any]


class Launch(NamedTuple):
    """How a kernel does the images of one table: the blocks of its grid, and what else the kernel needs for them."""

    kernel: SimpleKernel
    blocks: int
    cut: Any = None


class SimpleKernel:
    """Launches `kernels.cuda.images`, which takes any spec and any images."""

    shared = 0  # bytes that a block may have

    def __init__(self, spec: ImageSpec) -> None:
        self.spec, self._function = spec, 0
        code = images.filter_code(spec.filter, spec.antialias)
        kind = spec.source, spec.channels, code, spec.antialias, spec.rounding, spec.dtype, spec.kind, spec.layout
        self.built: tuple[Any, ...] = f"images-{spec.name}", "images", *kind  # as of `kernel_for`

    def load(self) -> int:
        """The kernel's address; compiled, or loaded from the disk, unless that is done."""
        if not self._function:
            self._function = function_of(self.compiled(), self.shared)
        return self._function

    def compiled(self) -> Any:
        return kernel_for(compute_capability(), *self.built)

    def prepare(self, table: NDArray[Any], like: Launch | None = None) -> Launch | None:
        """Number the tiles of a table (N,) of `IMAGE`, and say how to launch. None if this kernel can't do its images,
        or `like`, a launch that is captured, has not enough of anything. Addresses must not matter here, but for those
        that are 0, which are no images: what this does to a table is kept for others that differ in addresses alone."""
        sides: Any = self.spec.item
        if self.spec.kind != "batch":
            sides = table["rows"].astype(np.int64), table["columns"].astype(np.int64)
        tiles = np.broadcast_to(-(-sides[0] // IMAGE_ROWS) * -(-sides[1] // IMAGE_COLUMNS), len(table))
        ends = np.cumsum(tiles)
        blocks = int(ends[-1])
        if blocks > INT32_MAX:
            raise InputError(f"{blocks:,} blocks are more than one launch can have; pass fewer images")
        table["first_tile"] = ends - tiles
        return None if like is not None and blocks > like.blocks else Launch(self, blocks)

    def prepared(self, launch: Launch, count: int, **upload: Any) -> PreparedLaunch:
        """The launch for tables of `count` records, to be called with the addresses of result, table and table."""
        spec, geometry = self.spec, (launch.blocks, 1, 1, IMAGE_ROWS * IMAGE_COLUMNS, 1, 1)
        normal = *four(spec.gain), *four(spec.bias), *four(spec.pad)
        values = 0, 0, count, 0, *spec.item, spec.patch, spec.merge, spec.temporal, spec.values, *normal
        words = IMAGES.words(dict(zip(IMAGES.names, values, strict=True)))
        cuda = Cuda(self.load(), geometry, current().device_id)
        return PreparedLaunch(words, [(None, 3), (None, 0), (None, 1)], cuda, **upload)


def kernel_of(spec: ImageSpec) -> ImageKernel | None:
    """The kernel of `kernels.cuda.image_tiles` for a spec; None if it has to be the simple one."""
    code = images.filter_code(spec.filter, spec.antialias)
    if spec.source != "uint8" or code not in (images.BILINEAR, images.BICUBIC, images.LANCZOS):
        return None
    if spec.kind == "rows" and spec.patch not in SIDES:
        return None
    row = spec.patch, spec.merge, spec.temporal, spec.values - spec.filled if spec.kind == "rows" else 0
    return ImageKernel(spec.channels, code, spec.antialias, spec.rounding, spec.dtype, spec.kind, spec.layout, *row)


class TensorKernel(SimpleKernel):
    """Launches `kernels.cuda.image_tiles` for a spec that has one; refuses images that it can't do. `fused` as of
    `ImageKernel`."""

    def __init__(self, spec: ImageSpec, fused: bool = False) -> None:
        kind = kernel_of(spec)
        assert kind is not None
        self.spec, self._function, self.kind = spec, 0, kind._replace(fused=fused)
        self.built = "images-tiles-" + "-".join(str(part).lower() for part in self.kind), "image_tiles", self.kind

    def load(self) -> int:
        """As of `SimpleKernel`, and what a cut needs of the host."""
        if not self._function:
            for name in ("survey", "number"):
                host_kernel(name)
            self.shared = _limits()[0]
        return super().load()

    def prepare(self, table: NDArray[Any], like: Launch | None = None) -> Launch | None:
        if like is None:
            found = cut(self.kind, table, self.spec.item, *_limits())
        else:
            found = cut_like(self.kind, table, self.spec.item, like.cut)
        return None if found is None else Launch(self, found.blocks, found)

    def prepared(
        self, launch: Launch, count: int, *, grid: tuple[int, int] | None = None, **upload: Any
    ) -> PreparedLaunch:
        """As of `SimpleKernel`; `grid` are blocks across and down, instead of all those of the launch across."""
        spec, made = self.spec, launch.cut
        normal = *four(spec.gain), *four(spec.bias)
        values = 0, count, 0, *spec.item, made.bands, made.steps, made.row_steps, made.slots, *normal
        words = IMAGE_TILES.words(dict(zip(IMAGE_TILES.names, values, strict=True)))
        geometry = (*(grid or (launch.blocks, 1)), 1, 32 * made.warps, 1, 1)
        cuda = Cuda(self.load(), geometry, current().device_id, made.shared)
        return PreparedLaunch(words, [(None, 2), (None, 0), (None, -1)], cuda, **upload)


def kernels_of(spec: ImageSpec) -> tuple[SimpleKernel, ...]:
    """The kernels that do what a spec says on the GPU in use, the fastest first; the last takes any images."""
    if compute_capability() < TENSOR_CAPABILITY or kernel_of(spec) is None:
        return (SimpleKernel(spec),)
    together = spec.kind == "rows" and spec.layout == "CTPP" and spec.channels == 3 and spec.rounding == "uint8"
    # Rows of 56 bytes, in stores of 8, took up to 1.4 times as long as through a stage.
    together = together and (spec.patch % 4 == 0 or spec.dtype != "float32")
    return (*([TensorKernel(spec, fused=True)] if together else []), TensorKernel(spec), SimpleKernel(spec))


class CudaEngine:
    """Runs a spec: finds the kernel for a table's images, numbers their tiles, and launches."""

    def __init__(self, spec: ImageSpec, kernels: Sequence[SimpleKernel] = ()) -> None:
        self.spec, self._kernels = spec, tuple(kernels) or kernels_of(spec)
        self._padding = 0
        self._last: tuple[PreparedLaunch, tuple[int, ...]] | None = None

    def load(self, padding: bool = False) -> None:
        """Load all kernels that images may need, and that of `pad` if it will be called."""
        for kernel in self._kernels:
            kernel.load()
        if padding:
            self._load_padding()

    def prepare(self, table: NDArray[Any], like: Launch | None = None) -> Launch:
        """Number the tiles of a table's images, and say how to launch; `like` is a captured launch to be used again."""
        for kernel in self._kernels if like is None else (like.kernel,):
            launch = kernel.prepare(table, like)
            if launch is not None:
                return launch
        raise InputError(
            "the captured launch has too few blocks, or too little room, for these images; capture a run of the "
            "largest images and sizes to come"
        )

    def launch(self, prepared: PreparedLaunch, table: int, out: int, stream: Any) -> None:
        """Queue the kernel for a table; `table` and `out` are in device memory."""
        self._last = prepared, (out, table, table)
        self.again(stream)

    def again(self, stream: Any) -> None:
        """Queue the launch before once more, on what its table says: for measurements of it alone."""
        assert self._last is not None
        launch(*self._last, stream)

    def pad(self, table: int, count: int, out: int, mask: int, stream: Any) -> None:
        """Queue zeros for the rows that images don't have of `max_rows` each, and the mask of those that they have."""
        cuda = Cuda(self._load_padding(), (count * PAD_BLOCKS, 1, 1, PAD_THREADS, 1, 1), current().device_id)
        values = (table, table, self.spec.max_rows or 0, self.spec.patch**2, self.spec.values, out, mask)
        words = PADDING.words(dict(zip(PADDING.names, values, strict=True)))
        launch(PreparedLaunch(words, [], cuda), (), stream)

    def _load_padding(self) -> int:
        if not self._padding:
            self._padding = function_of(kernel_for(compute_capability(), *padding_built(self.spec.dtype)))
        return self._padding


def padding_built(dtype: str) -> tuple[str, str, str]:
    """The kernel of `CudaEngine.pad`, as of `kernel_for`."""
    return f"images-padding-{dtype}", "images:build_padding", dtype


@cache
def kernel_for(capability: tuple[int, int], name: str, builder: str, *kind: Any) -> Any:
    """A kernel by its name, made by a function of a module of `kernels.cuda`. It is for the GPU in use, of this
    capability: one that was loaded for another may not run there."""
    return compile.load(name, partial(built, f"cuda.{builder}", *kind))


def four(values: NDArray[np.float32]) -> list[float]:
    """The values of up to four channels, filled up with zeros: a kernel has an argument for each."""
    return [*values.tolist(), *[0.0] * (4 - len(values))]


def _limits() -> tuple[int, int]:
    """Bytes of shared memory that a block may have on the GPU in use, and its processors."""
    properties = current().properties
    return properties.max_shared_memory_per_block_optin, properties.multiprocessor_count


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
    items, `shared_limit` the bytes of shared memory that a block may have."""
    seen, best = _survey(kernel, table, item), None
    if seen is None:
        return None
    most = -(-(item[1] if kernel.kind == "batch" else seen.widest) // kernel.side)
    half = shared_limit // 2 - 1024  # of blocks of many bands a processor has two; 1 KiB of each is the driver's
    bands, warps = MANY_BANDS, 7 if kernel.side == 16 else MOST_WARPS
    if kernel.fused:  # 16 warps of a processor took 192 us where 14 took 204, with bands for which a thread has a line
        bands = FUSED_BANDS if kernel.side == 16 else MANY_BANDS
        warps = next((many for many in (8, 7) if shared_bytes(kernel, many, bands, *seen.needs) <= half), 6)
    warps = min(warps, most)
    # Warps and bands of a block, the best first: many share the weights of a column, of a row.
    for shape in (warps, bands), (warps, 4), (warps, 2), (warps, 1), (min(4, most), 1), (1, 1):
        shared, many = shared_bytes(kernel, *shape, *seen.needs), shape[1] == bands
        if shared > (half if many else shared_limit):
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
        host_kernel("survey"), 1, *told, kernel.side, kernel.antialias,
        int(images.filter_support(kernel.filter)), kernel.channels, kernel.fused, MAX_PIXEL_STEP,
        MAX_SPAN, answer.buffer_info()[0], reads.ctypes.data,
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
        host_kernel("number"), 1, *seen.table, kernel.side * bands,
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


def host_kernel(name: str) -> Callable[[int], Any]:
    """A kernel of `kernels.cpu.image_tiles`; Numba is needed only where the disk doesn't have it."""
    return host.load(f"images-{name}", partial(built, f"cpu.image_tiles:build_{name}"))
