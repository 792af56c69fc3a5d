"""Means of tiles on a CUDA device: which kernel, its memory, and its launch."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus.arrays.launch import Cuda, PreparedLaunch, launch
from octopus.arrays.memo import keep
from octopus.arrays.views import ArrayView, dtype_name
from octopus.backends.cuda.compile import function_of
from octopus.backends.cuda.device import current
from octopus.errors import OutOfMemoryError
from octopus.kernels.arguments import TILES
from octopus.kernels.cuda.tile_grid import CHUNK, THREADS, Grid, Kind, grid_for, grid_of, passes_for
from octopus.tiles.check import ImageSpec

MOST_LAUNCHES = 1 << 16  # that are kept, for images and thresholds that differ
WORD = 8  # bytes in which the blocks of a tile meet


class CudaTiles:
    """Launches the kernel for tiles that stay the same, and holds what it needs beside image and result.

    Parameters
    ----------
    spec : ImageSpec
        Of the images to come; only the pitch may change.
    host : ndarray (N, 4) int32, or None
        Checked tiles from the host, N > 0.
    tiles : ArrayView
        The tiles as they were given; those on the GPU are read at each launch.
    nodata : int or None
    stream : cuda.core.Stream
        On which memory is allocated.
    passes : int, optional
        Loads of a thread, instead of what suits the image's size.
    """

    def __init__(
        self, spec: ImageSpec, host: NDArray[np.int32] | None, tiles: ArrayView, nodata: int | None, stream: Any,
        passes: int | None = None,
    ) -> None:  # fmt: skip
        from octopus.backends.cuda.memory import DeviceArray

        self._dtype, self._nodata, self._count = spec.dtype, nodata, tiles.shape[0]
        self._functions: dict[tuple[bool, bool], Any] = {}
        passes = passes or passes_for(spec.values * np.dtype(spec.dtype).itemsize, _processors(current()))
        if host is None:
            self.grid = grid_for(self._count, spec.width, spec.height, spec.pixel, passes)
        else:
            self.grid = grid_of(host, spec.pixel, passes)
        self._check_free(host)
        self.tile_dtype = "int32" if host is not None else dtype_name(tiles.dtype)
        self._words = DeviceArray((2 if nodata is not None else 1, self._count), np.int64, stream=stream)
        self._tiles = self._work = None
        self.owned = [self._words]
        self._words_cleared(stream)
        if host is not None:
            self._tiles = self._uploaded(host, stream)
        if self.grid.work is not None:
            self._work = self._uploaded(self.grid.work, stream)
        self._tile_pointer = tiles.pointer if self._tiles is None else self._tiles.pointer
        self._launches: dict[Any, PreparedLaunch] = {}

    def _check_free(self, host: NDArray[np.int32] | None) -> None:
        """Refuse tiles whose sums, sides and blocks don't fit on the GPU, before memory is taken for them."""
        from octopus.backends.cuda.memory import free_bytes

        work = self.grid.work
        needed = WORD * (1 if self._nodata is None else 2) * self._count
        needed += sum(array.nbytes for array in (host, work) if array is not None)
        free = free_bytes()
        if needed > free:
            raise OutOfMemoryError(
                f"{self._count:,} tiles need {needed:,} bytes on the GPU, {free:,} are free; use fewer tiles at once"
            )

    def _words_cleared(self, stream: Any) -> None:
        from octopus.backends.cuda.memory import copy

        zeros = np.zeros(self._words.shape, np.int64)
        copy(self._words.pointer, zeros.ctypes.data, zeros.nbytes, stream)

    def _uploaded(self, array: NDArray[Any], stream: Any) -> Any:
        from octopus.backends.cuda.memory import DeviceArray

        made = DeviceArray(array.shape, array.dtype, stream=stream).copy_from_host(array, stream)
        self.owned.append(made)
        return made

    def launch(
        self, spec: ImageSpec, image: int, scale: float, threshold: float, means: int, flags: int, stream: Any
    ) -> None:
        """Queue the kernel for all tiles; addresses are in device memory."""
        self.launch_part(spec, image, scale, threshold, means, flags, stream, grid=self.grid, first=0)

    def launch_part(
        self, spec: ImageSpec, image: int, scale: float, threshold: float, means: int, flags: int, stream: Any,
        *, grid: Grid, first: int,
    ) -> None:  # fmt: skip
        """Queue it for the tiles of a grid, from number `first` on."""
        head = image % CHUNK
        key = head, spec, scale, threshold, id(grid), first
        prepared = self._launches.get(key) or keep(
            self._launches, key, self._prepare(*key[:4], grid, first), MOST_LAUNCHES
        )
        launch(prepared, (flags + first, means + 8 * first, image - head), stream)

    def _prepare(
        self, head: int, spec: ImageSpec, scale: float, threshold: float, grid: Grid, first: int
    ) -> PreparedLaunch:
        item = np.dtype(self.tile_dtype).itemsize
        work = 0 if self._work is None or grid.work is None else self._work.pointer
        words = self._words.pointer + WORD * first
        values = {
            "head": head, "end": head + spec.extent, "pitch": spec.pitch, "width": spec.width, "height": spec.height,
            "pixel": spec.pixel, "tiles": self._tile_pointer + 4 * item * first, "work": work, "passes": grid.passes,
            "words": words, "absent": words + WORD * self._count, "nodata": self._nodata or 0, "scale": scale,
            "threshold": threshold,
        }  # fmt: skip
        function = self._function(spec.pitch % CHUNK == 0, grid.work is not None)
        cuda = Cuda(function, (*grid.shape, 1, THREADS, 1, 1), current().device_id)
        addresses = [(None, TILES.place(name)) for name in ("flags", "means", "source")]
        return PreparedLaunch(TILES.words(values), addresses, cuda, held=grid)

    def _function(self, aligned: bool, listed: bool) -> Any:
        """The kernel's handle, looked up once."""
        found = self._functions.get((aligned, listed))
        if found is None:
            kind = Kind(self._dtype, self.tile_dtype, aligned, listed, self._nodata is not None)
            found = self._functions[aligned, listed] = function_of(_kernel(kind, _capability()))
        return found


def _processors(device: Any) -> int:
    return int(device.properties.multiprocessor_count)


def _capability() -> tuple[int, int]:
    from octopus.backends.cuda.device import compute_capability

    return compute_capability()


@cache
def _kernel(kind: Kind, capability: tuple[int, int]) -> Any:
    from octopus.backends.cuda import compile

    def build() -> Callable[..., Any]:
        from octopus.kernels.cuda import tile_sums

        return tile_sums.build(kind)

    return compile.load(kind.name, build)
