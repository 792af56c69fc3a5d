"""How a checked call on images runs on a CUDA device: which kernel, the tiles of its blocks, and its launch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from octopus.arrays.checks import INT32_MAX
from octopus.arrays.launch import Cuda, PreparedLaunch, launch
from octopus.backends.cuda.compile import function_of
from octopus.backends.cuda.device import compute_capability, current
from octopus.errors import InputError
from octopus.images import cutting
from octopus.images.spec import ImageSpec
from octopus.kernels import images
from octopus.kernels.arguments import IMAGE_TILES, IMAGES, PADDING
from octopus.kernels.cuda.image_kind import ImageKernel
from octopus.kernels.cuda.tiles import IMAGE_COLUMNS, IMAGE_ROWS, PAD_BLOCKS, PAD_THREADS

TENSOR_CAPABILITY = (8, 0)  # from here on the tensor cores multiply int8
SIDES = (10, 12, 14, 16)  # of patches that are a warp's block


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
        self.built: tuple[Any, ...] = f"images-{spec.name}", "images.build", *kind  # as of `kernel_for`

    def load(self) -> int:
        """The kernel's address; compiled, or loaded from the disk, unless that is done."""
        if not self._function:
            self._function = function_of(kernel_for(compute_capability(), *self.built), self.shared)
        return self._function

    def prepare(self, table: NDArray[Any], like: Launch | None = None) -> Launch | None:
        """Number the tiles of a table (N,) of `IMAGE`, and say how to launch.

        None if this kernel can't do its images, or `like`, a launch that is captured, has not enough of anything.
        Addresses must not matter here, but for those that are 0, which are no images: what this does to a table is
        kept for others that differ in addresses alone.
        """
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
        values = 0, 0, count, 0, *spec.item, spec.patch, spec.merge, spec.temporal, *normal
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
    sides = spec.patch, spec.merge, spec.temporal
    return ImageKernel(spec.channels, code, spec.antialias, spec.rounding, spec.dtype, spec.kind, spec.layout, *sides)


class TensorKernel(SimpleKernel):
    """Launches `kernels.cuda.image_tiles` for a spec that has one; refuses images that it can't do.

    `owner` is how a block knows its image, for measurements; see `ImageKernel`.
    """

    def __init__(self, spec: ImageSpec, owner: str = "block_search") -> None:
        kind = kernel_of(spec)
        assert kind is not None
        self.spec, self._function, self.kind = spec, 0, kind._replace(owner=owner)
        self.built = "images-tiles-" + "-".join(str(part).lower() for part in self.kind), "image_tiles.build", self.kind

    def load(self) -> int:
        """As of `SimpleKernel`, and what a cut needs of the host."""
        if not self._function:
            cutting.load()
            self.shared = _limits()[0]
        return super().load()

    def prepare(self, table: NDArray[Any], like: Launch | None = None) -> Launch | None:
        """As of `SimpleKernel`."""
        if like is None:
            found = cutting.cut(self.kind, table, self.spec.item, *_limits())
        else:
            found = cutting.cut_like(self.kind, table, self.spec.item, like.cut)
        return None if found is None else Launch(self, found.blocks, found)

    def prepared(
        self, launch: Launch, count: int, *, grid: tuple[int, int] | None = None, **upload: Any
    ) -> PreparedLaunch:
        """As of `SimpleKernel`; `grid` are blocks across and down, instead of all those of the launch across."""
        spec, cut = self.spec, launch.cut
        normal = *four(spec.gain), *four(spec.bias)
        values = 0, count, 0, *spec.item, cut.bands, cut.steps, cut.row_steps, cut.slots, *normal
        words = IMAGE_TILES.words(dict(zip(IMAGE_TILES.names, values, strict=True)))
        geometry = (*(grid or (launch.blocks, 1)), 1, 32 * cut.warps, 1, 1)
        cuda = Cuda(self.load(), geometry, current().device_id, cut.shared)
        return PreparedLaunch(words, [(None, 2), (None, 0), (None, -1)], cuda, **upload)


def kernels_of(spec: ImageSpec) -> tuple[SimpleKernel, ...]:
    """The kernels that do what a spec says on the GPU in use, the fastest first; the last takes any images."""
    if compute_capability() < TENSOR_CAPABILITY or kernel_of(spec) is None:
        return (SimpleKernel(spec),)
    return TensorKernel(spec), SimpleKernel(spec)


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
    return f"images-padding-{dtype}", "images.build_padding", dtype


@cache
def kernel_for(capability: tuple[int, int], name: str, builder: str, *kind: Any) -> Any:
    """A kernel by its name, made by a function of a module of `kernels.cuda`.

    It is for the GPU in use, of this capability: one that was loaded for another may not run there.
    """
    from octopus.backends.cuda import compile

    def build() -> Callable[..., Any]:
        module, _, function = builder.partition(".")
        made: Callable[..., Any] = getattr(import_module(f"octopus.kernels.cuda.{module}"), function)(*kind)
        return made

    return compile.load(name, build)


def four(values: NDArray[np.float32]) -> list[float]:
    """The values of up to four channels, filled up with zeros: a kernel has an argument for each."""
    return [*values.tolist(), *[0.0] * (4 - len(values))]


def _limits() -> tuple[int, int]:
    """Bytes of shared memory that a block may have on the GPU in use, and its processors."""
    properties = current().properties
    return properties.max_shared_memory_per_block_optin, properties.multiprocessor_count
