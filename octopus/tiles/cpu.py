"""Sums of tiles on the CPU: how tiles are cut into parts for the threads, and the kernel that adds them up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus.arrays.views import ArrayView
from octopus.backends.cpu import compile, threads
from octopus.tiles.check import ImageSpec

PART = 1 << 16  # values per part: large beside the cost of handing it out, small beside a tile of a scene


class TileParts:
    """Tiles cut into parts of rows.

    Parameters
    ----------
    tiles : ndarray (N, 4) int32
    spec : ImageSpec
    """

    def __init__(self, tiles: NDArray[np.int32], spec: ImageSpec) -> None:
        left, top, right, bottom = tiles.T.astype(np.int64)
        self._left, self._right = left * spec.channels, right * spec.channels
        rows = np.maximum(PART // (self._right - self._left), 1)
        parts = -(-(bottom - top) // rows)
        self._owner = np.repeat(np.arange(len(tiles)), parts).astype(np.int64, copy=False)
        self._begin = np.concatenate([[0], np.cumsum(parts)]).astype(np.int64)
        number = np.arange(len(self._owner)) - self._begin[self._owner]
        self._first = top[self._owner] + number * rows[self._owner]
        self._last = np.minimum(self._first + rows[self._owner], bottom[self._owner])
        _kernel(spec.dtype)  # now, rather than at the first run

    def sums(
        self, image: ArrayView, spec: ImageSpec, nodata: int | None
    ) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Sum and number of the values of each tile of an image of the form `spec`."""
        total, count = (np.empty(len(self._owner), np.uint64) for _ in range(2))
        arrays = (self._owner, self._first, self._last, self._left, self._right)
        threads.launch(
            _kernel(spec.dtype), len(self._owner), image.pointer, spec.pitch // image.dtype.itemsize,
            *(array.ctypes.data for array in arrays), nodata is not None, nodata or 0, total.ctypes.data,
            count.ctypes.data, threads=None if len(self._owner) > 1 else 1,
        )  # fmt: skip
        return np.add.reduceat(total, self._begin[:-1]), np.add.reduceat(count, self._begin[:-1])


def _kernel(dtype: str) -> Callable[[int], Any]:
    def build() -> Callable[..., None]:
        from octopus.kernels.cpu import tile_sums

        return tile_sums.build(dtype)

    return compile.load(f"tiles-{dtype}", build)
