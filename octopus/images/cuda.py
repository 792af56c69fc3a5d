"""The way to run a checked call on images on a CUDA device: which kernel, the tiles of its blocks, and its launch."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from octopus.arrays.checks import INT32_MAX
from octopus.arrays.views import ArrayView
from octopus.backends.cuda.launch import ArgumentBlock, function_of, submit
from octopus.errors import InputError
from octopus.images.spec import ImageSpec
from octopus.kernels.cuda.tiles import IMAGE_COLUMNS, IMAGE_ROWS, PAD_BLOCKS, PAD_THREADS
from octopus.kernels.images import filter_code

THREADS = IMAGE_ROWS * IMAGE_COLUMNS


class Launcher(Protocol):
    """A compiled kernel for one spec."""

    def tiles(self, table: NDArray[Any]) -> NDArray[np.int64]:
        """How many blocks each image of a table (N,) of `IMAGE` takes, (N,)."""

    def launch(self, table: int, count: int, blocks: int, out: int, stream: Any) -> None:
        """Queue the kernel for a table of `count` records in device memory, whose tiles are numbered."""

    def again(self, stream: Any) -> None:
        """Queue the launch before once more."""


class SimpleKernel:
    """Launches `kernels.cuda.images`, which takes any spec.

    Parameters
    ----------
    spec : ImageSpec
    """

    def __init__(self, spec: ImageSpec) -> None:
        self._whole, (height, width) = spec.kind == "batch", spec.item
        self._tiles = -(-height // IMAGE_ROWS) * -(-width // IMAGE_COLUMNS)
        code = filter_code(spec.filter, spec.antialias)
        self._function = function_of(_simple_kernel(spec.name, *_kind(spec, code), _capability()))
        self._arguments = ArgumentBlock("QQiQ" + "i" * 5 + "f" * 12)
        self._write = self._arguments.writer(0, 4)
        sides = (height, width, spec.patch, spec.merge, spec.temporal)
        values = [number for vector in (spec.gain, spec.bias, spec.pad) for number in _four(vector)]
        self._arguments.writer(4, 17)(*sides, *values)
        self._geometry: tuple[int, ...] = (0, 1, 1, THREADS, 1, 1)

    def tiles(self, table: NDArray[Any]) -> NDArray[np.int64]:
        """As of `Launcher`."""
        if self._whole:
            return np.full(len(table), self._tiles)
        rows, columns = table["rows"].astype(np.int64), table["columns"].astype(np.int64)
        tiles: NDArray[np.int64] = -(-rows // IMAGE_ROWS) * -(-columns // IMAGE_COLUMNS)
        return tiles

    def launch(self, table: int, count: int, blocks: int, out: int, stream: Any) -> None:
        """As of `Launcher`."""
        self._write(table, table, count, out)
        self._geometry = (blocks, 1, 1, THREADS, 1, 1)
        self.again(stream)

    def again(self, stream: Any) -> None:
        """As of `Launcher`."""
        submit(self._function, self._geometry, stream, self._arguments)


def kernel_of(spec: ImageSpec) -> Launcher:
    """The fastest kernel that does what a spec says on the GPU in use."""
    return SimpleKernel(spec)


class CudaEngine:
    """Runs a spec: numbers the blocks of a table's images, and launches.

    Parameters
    ----------
    spec : ImageSpec
    kernel : Launcher, optional
        Instead of the one that `kernel_of` chooses.
    """

    def __init__(self, spec: ImageSpec, kernel: Launcher | None = None) -> None:
        self.spec, self._kernel = spec, kernel or kernel_of(spec)
        self._padding: tuple[Any, ArgumentBlock] | None = None

    def number(self, table: NDArray[Any]) -> int:
        """Fill in each image's first tile; returns how many blocks all of them take.

        Raises
        ------
        InputError
            For more blocks than a grid has.
        """
        ends = np.cumsum(self._kernel.tiles(table))
        blocks = int(ends[-1])
        if blocks > INT32_MAX:
            raise InputError(f"{blocks:,} blocks are more than one launch can have; pass fewer images")
        first = table["first_tile"]
        first[0], first[1:] = 0, ends[:-1]
        return blocks

    def launch(self, table: int, count: int, blocks: int, out: int, stream: Any) -> None:
        """Queue the kernel for a numbered table of `count` records; `table` and `out` are in device memory."""
        self._kernel.launch(table, count, blocks, out, stream)

    def again(self, stream: Any) -> None:
        """Queue the launch before once more, on what its table says: for measurements of it alone."""
        self._kernel.again(stream)

    def pad(self, table: int, count: int, most: int, out: int, mask: int, stream: Any) -> None:
        """Queue zeros for the rows that images don't have of `most` for each, and the mask of those that they have."""
        if self._padding is None:
            self._padding = (
                function_of(_padding_kernel(self.spec.dtype, _capability())),
                ArgumentBlock("QQiiqQQ"),
            )
        function, arguments = self._padding
        arguments.writer(0, 7)(table, table, most, self.spec.patch**2, self.spec.values, out, mask)
        submit(function, (count * PAD_BLOCKS, 1, 1, PAD_THREADS, 1, 1), stream, arguments)

    def run(self, table: NDArray[Any], out: ArrayView, queue: Any) -> None:
        """Upload a table (N,) of `IMAGE` from memory that is not page-locked, and launch; for tests and studies."""
        from octopus.backends.cuda import memory

        numbered = np.array(table)
        blocks = self.number(numbered)
        device = memory.DeviceArray((numbered.nbytes,), np.uint8, stream=queue)
        memory.copy(device.pointer, numbered.ctypes.data, numbered.nbytes, queue)
        self.launch(device.pointer, len(numbered), blocks, out.pointer, queue)


def _kind(spec: ImageSpec, code: int) -> tuple[Any, ...]:
    """Arguments of `kernels.cuda.images.build`."""
    return spec.source, spec.channels, code, spec.antialias, spec.rounding, spec.dtype, spec.kind, spec.layout


@cache
def _simple_kernel(name: str, *parts: Any) -> Any:
    from octopus.backends.cuda import compile

    *kind, _ = parts

    def build() -> tuple[Callable[..., Any], tuple[Any, ...]]:
        from octopus.kernels.cuda import images

        return images.build(*kind), images.argument_types(kind[5])

    return compile.load(f"images-{name}", build)


@cache
def _padding_kernel(dtype: str, capability: tuple[int, int]) -> Any:
    from octopus.backends.cuda import compile

    def build() -> tuple[Callable[..., Any], tuple[Any, ...]]:
        from octopus.kernels.cuda import images

        return images.build_padding(dtype), images.padding_types(dtype)

    return compile.load(f"images-padding-{dtype}", build)


def _capability() -> tuple[int, int]:
    """Of the GPU in use: a kernel that was loaded for one may not run on another."""
    from octopus.backends.cuda.device import compute_capability

    return compute_capability()


def _four(values: NDArray[np.float32]) -> list[float]:
    """The values of up to four channels, filled up with zeros: the kernel has an argument for each."""
    return [*values.tolist(), *[0.0] * (4 - len(values))]
