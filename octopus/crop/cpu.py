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
from octopus.kernels import sampling
from octopus.kernels.geometry import NEAREST
from octopus.kernels.images import bfloat16_bits

ROWS = 56  # output rows per band where items alone can't fill the threads: one 224-row crop then feeds four
ITEMS_PER_THREAD = 4  # with so many items per thread or more, a band is a whole item and no row is read twice
ALONE_VALUES = 1 << 16  # a result of fewer values is made before a second thread would have woken up


class CpuEngine:
    """Runs a spec with the CPU kernels; holds no memory of its own.

    Parameters
    ----------
    spec : CropSpec
    maps : bool
        Whether the kernel for affine maps is loaded now, in the place of that for boxes; the other one follows when it
        is first needed.
    """

    def __init__(self, spec: CropSpec, maps: bool = False) -> None:
        self.spec = spec
        options, frame = spec.options, spec.frame
        self._kernels: dict[bool, Callable[[int], Any]] = {}
        self._kernel_for(maps)
        self._item_values = frame.channels * options.size[0] * options.size[1]
        # What stays alive beside their addresses.
        self._vectors = [np.ascontiguousarray(v, np.float32) for v in (spec.gain, spec.bias, spec.pad)]
        self._vectors.append(stored(spec.pad, spec.dtype))
        outside = PAD_MODES.index(options.pad_mode) if options.outside == "pad" else -1
        self._planes = frame.channels if options.layout == "NCHW" else 1
        reach = sampling.REACH[options.filter] if options.edge == "image" else 0
        self._addresses = *(vector.ctypes.data for vector in self._vectors), reach, options.letterbox
        self._outside = outside, NEAREST if outside < 0 else outside  # of boxes, and of maps

    def __reduce__(self) -> tuple[type[CpuEngine], tuple[CropSpec]]:
        """A copy, or one in another process, makes its own vectors: addresses aren't the same there."""
        return CpuEngine, (self.spec,)

    def _kernel_for(self, maps: bool) -> Callable[[int], Any]:
        if maps not in self._kernels:
            options, kind = self.spec.options, self.spec.kernel._replace(maps=maps)
            form = "antialias" if options.antialias else "options" if self._takes_options else "crop"
            if kind.samples:
                form = f"maps-{kind.filter}" if maps else kind.filter
            self._kernels[maps] = load(form, kind.frame.dtype, self.spec.dtype)
        return self._kernels[maps]

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
        """Fill `out` for checked float32 `boxes` (N, 4) or maps (N, 2, 3), and with `letterbox` the `transform` (N, 4).

        `frame` is (F, H, W, C) if `frame_index`, int32, chooses from it.
        """
        count, (height, width) = len(boxes), self.spec.options.size
        item, (rows, columns, channels) = frame.dtype.itemsize, frame.shape[-3:]
        index = np.zeros(count, np.int32) if frame_index is None else frame_index
        number = threads.get_num_threads() if count * self._item_values > ALONE_VALUES else 1
        band = height if count >= ITEMS_PER_THREAD * number or number == 1 else min(ROWS, height)
        maps = boxes.ndim == 3
        threads.launch(
            self._kernel_for(maps), count * -(-height // band),
            frame.pointer, frame.strides[0] // item if self.spec.frame.indexed else 0, frame.strides[-3] // item,
            columns, rows, channels, index.ctypes.data, boxes.ctypes.data, out.pointer,
            0 if transform is None else transform.pointer, width, height, self._planes, band, *self._addresses,
            self._outside[maps], threads=number,
        )  # fmt: skip


def load(form: str, frame_dtype: str, out_dtype: str) -> Callable[[int], Any]:
    """The compiled kernel of a form, for a dtype of frames and one of results.

    Forms are "crop", "options" and "antialias", and the filters "nearest" and "bicubic"; with "maps-" before it any
    filter's of affine maps.
    """

    def build() -> Callable[..., None]:
        from octopus.kernels.cpu import antialias, crop, sampled

        if form == "antialias":
            return antialias.build(frame_dtype, out_dtype)
        filter = form.removeprefix("maps-")
        if filter in sampling.TAPS:
            return sampled.build(frame_dtype, out_dtype, filter, form != filter)
        return crop.build(frame_dtype, out_dtype, form == "options")

    return compile.load(f"{form}-{frame_dtype}-{out_dtype}", build)


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
