"""How a checked call on images runs on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from octopus.arrays.launch import PreparedLaunch
from octopus.arrays.views import ArrayView
from octopus.backends.cpu import compile, threads
from octopus.images.spec import FIXED, ImageSpec
from octopus.kernels import built
from octopus.kernels.images import filter_code, filter_support

CACHED = 256 * 1024  # bytes of a tile's intermediate rows: they stay in a core's second cache
BAND = 256  # source rows of a tile, at least where there are several: few of them are read twice
STREAMED = 16 << 20  # bytes of a result that no cache would keep: it is written past them
ALONE_BYTES = 1 << 18  # fewer, read and written, are done before a second thread would have woken up
LANES = 16  # of the kernel's vectors


class CpuEngine:
    """Runs an `ImageSpec` with the CPU kernel; holds no memory of its own."""

    def __init__(self, spec: ImageSpec) -> None:
        self.spec = spec
        self._kernel = _kernel(spec)
        self._vectors = [np.ascontiguousarray(v, np.float32) for v in (spec.gain, spec.bias, spec.pad)]
        self._fixed = (
            *spec.item, spec.kind == "rows", spec.layout in ("NCHW", "CTPP"),
            spec.patch, spec.merge, spec.temporal, filter_code(spec.filter, spec.antialias), spec.antialias,
            spec.rounding == "uint8", *(vector.ctypes.data for vector in self._vectors),
        )  # fmt: skip

    def __reduce__(self) -> tuple[type[CpuEngine], tuple[ImageSpec]]:
        """A copy, or one in another process, makes its own vectors: addresses aren't the same there."""
        return CpuEngine, (self.spec,)

    def prepared(self, table: np.ndarray, out: ArrayView) -> PreparedLaunch:
        """The launch for a table (N,) of `IMAGE`, to be called with the address of `out`, and the images' as column.
        Rows of a result of three axes, (N, rows, values), are padded with zeros."""
        pixel = self.spec.channels * np.dtype(self.spec.source).itemsize
        read = int(np.dot(table["height"].astype(np.int64), table["width"])) * pixel
        number = threads.get_num_threads() if out.nbytes + read > ALONE_BYTES else 1
        tiles = self._tiles(table, number)
        padded = out.shape[1] if self.spec.kind == "rows" and len(out.shape) == 3 else 0
        more = padded, out.nbytes > STREAMED, self.spec.values
        values = (0, int(tiles[-1, 0]), 0, tiles.ctypes.data, 0, *self._fixed, *more)
        return PreparedLaunch(
            values, [(None, 4)], self._kernel, threads=number, table=table, table_to=2, column=len(table),
            held=(self, tiles),
        )  # fmt: skip

    def _tiles(self, table: np.ndarray, number: int) -> np.ndarray:
        """First block of each image, rows and columns of its tiles; and, last, the number of all blocks."""
        spec, tiles = self.spec, np.zeros((len(table) + 1, 3), np.int64)
        rows, columns = spec.item if spec.kind == "batch" else (table["rows"], table["columns"])
        scale_y, scale_x = (
            table[before] / np.maximum(table[after], 1) for before, after in (("height", "rows"), ("width", "columns"))
        )
        support = filter_support(filter_code(spec.filter, spec.antialias))
        ring = 2 * support * (np.maximum(scale_y, 1) if spec.antialias else 1) + 2 * LANES
        size, sum_size = (2, 2) if spec.rounding in FIXED else (np.dtype(spec.source).itemsize, 4)
        strips = np.ceil(columns * spec.channels * (LANES * size * scale_x + sum_size * ring) / CACHED)
        unit = spec.patch if spec.kind == "rows" else LANES
        high = rows if number == 1 else np.ceil(np.maximum(BAND, 8 * ring) / scale_y.clip(1e-9) / unit) * unit
        tiles[:-1, 1] = np.minimum(high, rows).clip(1)
        tiles[:-1, 2] = np.ceil(columns / strips.clip(1) / unit).clip(1) * unit
        blocks = -(-rows // tiles[:-1, 1]) * -(-columns // tiles[:-1, 2])
        np.cumsum(np.where(table["pointer"] == 0, 0, blocks), out=tiles[1:, 0])
        return tiles


def _kernel(spec: ImageSpec) -> Callable[[int], Any]:
    """The compiled kernel for a dtype of images and one of results, and a number of channels."""
    rounding = spec.rounding if spec.rounding in FIXED else ""
    name = f"images-{rounding or 'float'}-{spec.source}x{spec.channels}-{spec.dtype}"
    return compile.load(name, partial(built, "cpu.images", spec.source, spec.dtype, spec.channels, rounding))
