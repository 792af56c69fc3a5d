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
from octopus.backends.cuda import memory
from octopus.backends.cuda.compile import function_of
from octopus.backends.cuda.device import compute_capability, current
from octopus.errors import OutOfMemoryError
from octopus.kernels.arguments import TILES
from octopus.kernels.cuda.tile_grid import CHUNK, THREADS, Grid, Kind, grid_for, grid_of, share_of
from octopus.tiles.check import ImageSpec

MOST_LAUNCHES = 1 << 16  # that are kept, for images and thresholds that differ
WORD = 8  # bytes in which the blocks of a tile meet


class CudaTiles:
    """Launches the kernel for tiles that stay the same, and holds what it needs beside image and result.

    Of the images to come only the pitch may differ from `spec`. `host` are checked tiles from the host, N > 0, or None;
    `tiles` those that were given: on the GPU they are read at each launch.
    """

    def __init__(
        self, spec: ImageSpec, host: NDArray[np.int32] | None, tiles: ArrayView, nodata: int | None, stream: Any
    ) -> None:
        self._nodata, self._count = nodata, tiles.shape[0]
        processors = int(current().properties.multiprocessor_count)
        share = share_of(spec.values * np.dtype(spec.dtype).itemsize, processors)
        if host is None:
            self.grid = grid_for(self._count, spec.width, spec.height, spec.pixel, share)
        else:
            self.grid = grid_of(host, spec.pixel, share)
        words: NDArray[Any] = np.zeros((2 if nodata is not None else 1, self._count), np.int64)
        arrays = [array for array in (words, host, self.grid.work) if array is not None]
        needed, free = sum(array.nbytes for array in arrays), memory.free_bytes()
        if needed > free:  # before memory is taken for them
            raise OutOfMemoryError(
                f"{self._count:,} tiles need {needed:,} bytes on the GPU, {free:,} are free; use fewer tiles at once"
            )
        self.owned = [memory.DeviceArray(a.shape, a.dtype, stream=stream).copy_from_host(a, stream) for a in arrays]
        self._words, *uploaded = (array.pointer for array in self.owned)
        self._tiles, self._work = uploaded or (tiles.pointer, 0)
        dtype = "int32" if host is not None else dtype_name(tiles.dtype)
        self._tile_bytes = 4 * np.dtype(dtype).itemsize
        kind = Kind(spec.dtype, dtype, nodata is not None)
        self._function = function_of(_kernel(kind, compute_capability()))
        self._launches: dict[Any, PreparedLaunch] = {}

    def launch(
        self, spec: ImageSpec, image: int, scale: float, threshold: float, means: int, flags: int, stream: Any,
        *, grid: Grid | None = None, first: int = 0,
    ) -> None:  # fmt: skip
        """Queue the kernel for all tiles, or those of a grid from number `first` on; addresses are in device memory."""
        grid, head = grid or self.grid, image % CHUNK
        key = head, spec, scale, threshold, id(grid), first
        prepared = self._launches.get(key) or keep(
            self._launches, key, self._prepare(*key[:4], grid, first), MOST_LAUNCHES
        )
        launch(prepared, (flags + first, means + 8 * first, image - head), stream)

    def _prepare(
        self, head: int, spec: ImageSpec, scale: float, threshold: float, grid: Grid, first: int
    ) -> PreparedLaunch:
        words = self._words + WORD * first
        values = {
            "head": head, "pitch": spec.pitch, "width": spec.width, "height": spec.height, "pixel": spec.pixel,
            "tiles": self._tiles + self._tile_bytes * first, "work": self._work, "listed": grid.work is not None,
            "share": grid.share, "words": words, "absent": words + WORD * self._count, "nodata": self._nodata or 0,
            "scale": scale, "threshold": threshold,
        }  # fmt: skip
        cuda = Cuda(self._function, (*grid.shape, 1, THREADS, 1, 1), current().device_id)
        addresses = [(None, TILES.place(name)) for name in ("flags", "means", "source")]
        return PreparedLaunch(TILES.words(values), addresses, cuda, held=grid)


@cache
def _kernel(kind: Kind, capability: tuple[int, int]) -> Any:
    from octopus.backends.cuda import compile

    def build() -> Callable[..., Any]:
        from octopus.kernels.cuda import tile_sums

        return tile_sums.build(kind)

    return compile.load(kind.name, build)
