"""The way to run a checked call on images on a CUDA device: which kernel, the tiles of its blocks, and its launch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus.arrays.checks import INT32_MAX
from octopus.arrays.launch import Cuda, PreparedLaunch, launch
from octopus.arrays.views import ArrayView
from octopus.backends.cuda.compile import function_of
from octopus.backends.cuda.device import current
from octopus.errors import InputError
from octopus.images.launcher import Launch, Launcher, four
from octopus.images.spec import ImageSpec
from octopus.kernels.arguments import IMAGES, PADDING
from octopus.kernels.cuda.tiles import IMAGE_COLUMNS, IMAGE_ROWS, PAD_BLOCKS, PAD_THREADS
from octopus.kernels.images import filter_code

THREADS = IMAGE_ROWS * IMAGE_COLUMNS


class SimpleKernel:
    """Launches `kernels.cuda.images`, which takes any spec and any images.

    Parameters
    ----------
    spec : ImageSpec
    """

    def __init__(self, spec: ImageSpec) -> None:
        self._spec = spec
        self._function: int | None = None

    def load(self) -> None:
        """As of `Launcher`."""
        if self._function is None:
            spec = self._spec
            code = filter_code(spec.filter, spec.antialias)
            self._function = function_of(_simple_kernel(spec.name, *_kind(spec, code), _capability()))

    def prepare(self, table: NDArray[Any], like: Launch | None = None) -> Launch | None:
        """As of `Launcher`; raises `InputError` for more blocks than a grid has."""
        sides: Any = self._spec.item
        if self._spec.kind != "batch":
            sides = table["rows"].astype(np.int64), table["columns"].astype(np.int64)
        tiles = np.broadcast_to(-(-sides[0] // IMAGE_ROWS) * -(-sides[1] // IMAGE_COLUMNS), len(table))
        ends = np.cumsum(tiles)
        blocks = int(ends[-1])
        if blocks > INT32_MAX:
            raise InputError(f"{blocks:,} blocks are more than one launch can have; pass fewer images")
        table["first_tile"] = ends - tiles
        return None if like is not None and blocks > like.blocks else Launch(self, blocks)

    def prepared(self, launch: Launch, count: int, **upload: Any) -> PreparedLaunch:
        """As of `Launcher`."""
        self.load()
        assert self._function is not None
        spec = self._spec
        normal = [number for vector in (spec.gain, spec.bias, spec.pad) for number in four(vector)]
        values = [0, 0, count, 0, *spec.item, spec.patch, spec.merge, spec.temporal, *normal]
        words = IMAGES.words(dict(zip(IMAGES.names, values, strict=True)))
        cuda = Cuda(self._function, (launch.blocks, 1, 1, THREADS, 1, 1), current().device_id)
        return PreparedLaunch(words, [(None, 3), (None, 0), (None, 1)], cuda, **upload)


def kernels_of(spec: ImageSpec) -> tuple[Launcher, ...]:
    """The kernels that do what a spec says on the GPU in use, the fastest first; the last takes any images."""
    from octopus.images import tensor

    if _capability() < tensor.CAPABILITY or tensor.kernel_of(spec) is None:
        return (SimpleKernel(spec),)
    return tensor.TensorKernel(spec), SimpleKernel(spec)


class CudaEngine:
    """Runs a spec: finds the kernel for a table's images, numbers their tiles, and launches.

    Parameters
    ----------
    spec : ImageSpec
    kernels : sequence of Launcher, optional
        Instead of those of `kernels_of`.
    """

    def __init__(self, spec: ImageSpec, kernels: Sequence[Launcher] = ()) -> None:
        self.spec, self._kernels = spec, tuple(kernels) or kernels_of(spec)
        self._padding: int | None = None
        self._last: tuple[PreparedLaunch, tuple[int, ...]] | None = None

    def load(self, padding: bool = False) -> None:
        """Load all kernels that images may need, and that of `pad` if it will be called."""
        for kernel in self._kernels:
            kernel.load()
        if padding:
            self._load_padding()

    def prepare(self, table: NDArray[Any], like: Launch | None = None) -> Launch:
        """Number the tiles of a table's images, and say how to launch; `like` is a captured launch to be used again.

        Raises
        ------
        InputError
            For more blocks than a grid has, or images that a captured launch doesn't fit.
        """
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

    def pad(self, table: int, count: int, most: int, out: int, mask: int, stream: Any) -> None:
        """Queue zeros for the rows that images don't have of `most` for each, and the mask of those that they have."""
        cuda = Cuda(self._load_padding(), (count * PAD_BLOCKS, 1, 1, PAD_THREADS, 1, 1), current().device_id)
        values = (table, table, most, self.spec.patch**2, self.spec.values, out, mask)
        words = PADDING.words(dict(zip(PADDING.names, values, strict=True)))
        launch(PreparedLaunch(words, [], cuda), (), stream)

    def _load_padding(self) -> int:
        if self._padding is None:
            self._padding = function_of(_padding_kernel(self.spec.dtype, _capability()))
        return self._padding

    def run(self, table: NDArray[Any], out: ArrayView, queue: Any) -> None:
        """Upload a table (N,) of `IMAGE` from memory that is not page-locked, and launch; for tests and studies."""
        from octopus.backends.cuda import memory

        numbered = np.array(table)
        made = self.prepare(numbered)
        device = memory.DeviceArray((numbered.nbytes,), np.uint8, stream=queue)
        memory.copy(device.pointer, numbered.ctypes.data, numbered.nbytes, queue)
        self.launch(made.kernel.prepared(made, len(numbered)), device.pointer, out.pointer, queue)


def _kind(spec: ImageSpec, code: int) -> tuple[Any, ...]:
    """Arguments of `kernels.cuda.images.build`."""
    return spec.source, spec.channels, code, spec.antialias, spec.rounding, spec.dtype, spec.kind, spec.layout


@cache
def _simple_kernel(name: str, *parts: Any) -> Any:
    from octopus.backends.cuda import compile

    *kind, _ = parts

    def build() -> Callable[..., Any]:
        from octopus.kernels.cuda import images

        return images.build(*kind)

    return compile.load(f"images-{name}", build)


@cache
def _padding_kernel(dtype: str, capability: tuple[int, int]) -> Any:
    from octopus.backends.cuda import compile

    def build() -> Callable[..., Any]:
        from octopus.kernels.cuda import images

        return images.build_padding(dtype)

    return compile.load(f"images-padding-{dtype}", build)


def _capability() -> tuple[int, int]:
    """Of the GPU in use: a kernel that was loaded for one may not run on another."""
    from octopus.backends.cuda.device import compute_capability

    return compute_capability()
