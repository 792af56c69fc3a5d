"""The way to run a checked crop-and-resize call on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from octopus.arrays.results import BFLOAT16
from octopus.arrays.views import ArrayView
from octopus.backends.cpu import compile, threads
from octopus.crop.options import PAD_MODES
from octopus.crop.spec import CropSpec
from octopus.crop.video import VideoView
from octopus.kernels.images import bfloat16_bits

ROWS = 56  # output rows per band where items alone can't fill the threads: one 224-row crop then feeds four
ITEMS_PER_THREAD = 4  # with so many items per thread or more, a band is a whole item and no row is read twice
ALONE_VALUES = 1 << 16  # a result of fewer values is made before a second thread would have woken up


class CpuEngine:
    """Runs a spec with the CPU kernels; holds no memory of its own.

    Parameters
    ----------
    spec : CropSpec
    """

    def __init__(self, spec: CropSpec) -> None:
        self.spec = spec
        options, frame = spec.options, spec.frame
        form = "antialias" if options.antialias else "options" if self._takes_options else "crop"
        self._kernel = load(form, frame.dtype, spec.dtype, frame.order)
        self._item_values = frame.channels * options.size[0] * options.size[1]
        # What stays alive beside their addresses.
        self._vectors = [np.ascontiguousarray(v, np.float32) for v in (spec.gain, spec.bias, spec.pad)]
        self._vectors.append(stored(spec.pad, spec.dtype))
        outside = PAD_MODES.index(options.pad_mode) if options.outside == "pad" else -1
        self._planes = frame.channels if options.layout == "NCHW" else 1
        self._fixed = (
            *(vector.ctypes.data for vector in self._vectors), options.edge == "image", options.letterbox, outside
        )  # fmt: skip

    def __reduce__(self) -> tuple[type[CpuEngine], tuple[CropSpec]]:
        """A copy, or one in another process, makes its own vectors: addresses aren't the same there."""
        return CpuEngine, (self.spec,)

    @property
    def _takes_options(self) -> bool:
        """Whether the kernel for calls without options won't do."""
        options = self.spec.options
        return options.letterbox or options.edge == "image" or options.outside == "pad"

    def run(
        self,
        frame: ArrayView,
        boxes: np.ndarray,
        out: ArrayView,
        frame_index: np.ndarray | None = None,
        transform: ArrayView | None = None,
    ) -> None:
        """Fill `out` for checked float32 `boxes` (N, 4), and with `letterbox` the `transform` (N, 4).

        `frame` is (F, H, W, C) if `frame_index`, int32, chooses from it.
        """
        count, (height, width) = len(boxes), self.spec.options.size
        item, (rows, columns) = frame.dtype.itemsize, frame.shape[-3:-1]
        index = np.zeros(count, np.int32) if frame_index is None else frame_index
        number = threads.get_num_threads() if count * self._item_values > ALONE_VALUES else 1
        band = height if count >= ITEMS_PER_THREAD * number or number == 1 else min(ROWS, height)
        threads.launch(
            self._kernel, count * -(-height // band),
            frame.pointer, frame.strides[0] // item if self.spec.frame.indexed else 0, frame.strides[-3] // item,
            columns, rows, self.spec.frame.channels, index.ctypes.data, boxes.ctypes.data, out.pointer,
            0 if transform is None else transform.pointer, width, height, self._planes, band, *self._fixed,
            *(_chroma(frame) if isinstance(frame, VideoView) else ()), threads=number,
        )  # fmt: skip


def _chroma(frame: VideoView) -> tuple[int, int, int]:
    """Arguments of the kernels for video alone."""
    plane = frame.chroma
    return plane.pointer, plane.strides[0] // plane.dtype.itemsize, frame.coding.coefficients.ctypes.data


def load(form: str, frame_dtype: str, out_dtype: str, order: str = "RGB") -> Callable[[int], Any]:
    """The compiled kernel of a form ("crop", "options", "antialias"), for frames and a dtype of results."""

    def build() -> Callable[..., None]:
        from octopus.kernels.cpu import antialias, crop

        if form == "antialias":
            return antialias.build(frame_dtype, out_dtype, order)
        return crop.build(frame_dtype, out_dtype, form == "options", order)

    ordered = "" if order == "RGB" else f"-{order.lower()}"
    return compile.load(f"{form}-{frame_dtype}{ordered}-{out_dtype}", build)


def stored(values: np.ndarray, dtype: str) -> np.ndarray:
    """Float32 values as the CPU kernels store them: rounded and saturated to uint8, or the bits of small floats."""
    if dtype == "uint8":
        rounded: np.ndarray = np.rint(values).clip(0, 255).astype(np.uint8)
        return rounded
    if dtype == "float16":
        with np.errstate(over="ignore"):
            return values.astype(np.float16).view(np.uint16)
    if dtype == BFLOAT16:
        bits_of: Callable[..., Any] = bfloat16_bits
        return np.array([bits_of(value) for value in values], np.uint16)
    return np.ascontiguousarray(values, np.float32)
