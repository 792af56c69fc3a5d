"""Launches of the crop-and-resize kernels: which kernel, how its work is cut, and its arguments."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from octopus.arrays.results import itemsize
from octopus.arrays.views import ArrayView
from octopus.backends.cuda.launch import ArgumentBlock, function_of, submit
from octopus.crop.check import Room
from octopus.crop.options import Kernel
from octopus.crop.spec import CropSpec
from octopus.kernels.cuda.tiles import (
    FIXED_SHAPES,
    MAX_COLUMNS,
    MOST_BOXES_INSIDE,
    ROWS,
    SHAPES,
    filter_shape,
    tiling,
)

LINE_BYTES = 128  # of the cache; one prefetch each
MAX_ROW_VALUES = 1 << 21  # of a result's row; the strips of longer ones could exceed the grid's third side
KNOWN_LAUNCHES = 256  # kinds of batches whose launch an engine remembers
INSIDE = "inside"  # in the place of a dtype of boxes: float32, and among the kernel's arguments


class Variant(NamedTuple):
    """What distinguishes the compiled kernels of one spec."""

    box_dtype: str
    index_dtype: str
    values: int
    words: bool
    fixed: bool


class _Ready(NamedTuple):
    """All of a launch but the addresses, worked out once for batches that look alike."""

    function: Any
    geometry: tuple[int, ...]
    pitch: int
    width: int
    height: int
    rows: int
    lines: int
    frames: int
    step: int


class StreamLauncher:
    """Launches `kernels.cuda.stream`.

    Parameters
    ----------
    spec : CropSpec
    processors : int
        Streaming multiprocessors of the GPU.
    l2_bytes : int
        Size of its L2 cache; a frame of more than half of it is not prefetched.
    """

    def __init__(self, spec: CropSpec, processors: int, l2_bytes: int) -> None:
        self.spec = spec
        self._processors = processors
        self._prefetch_limit = l2_bytes // 2
        kernel, (height, width) = spec.kernel, spec.options.size
        planar = kernel.layout == "NCHW"
        self._height, self._row_values = height, width if planar else width * kernel.frame.channels
        self._channels, self._filtered = kernel.frame.channels, kernel.antialias
        self._words = kernel.frame.dtype == "uint8" and (self._channels in (3, 4) or self._filtered)
        self._planar, self._shape = planar, SHAPES[spec.dtype, planar]
        if self._filtered:
            self._shape = filter_shape(self._channels, planar)
        self._fixed = FIXED_SHAPES.get((spec.dtype, planar)) if self._words and not self._filtered else None
        if spec.dtype == "uint8" and (spec.saturates or not spec.is_plain):
            self._fixed = None
        self._out_size = itemsize(spec.dtype)
        self._item_bytes = spec.nbytes(1)
        options = kernel.takes_options
        kinds = "QiiiQQiiffii" + "f" * 8 + ("iqQQffff" if options else "")
        self._arguments = ArgumentBlock(kinds, 16 * MOST_BOXES_INSIDE)
        self._boxes = self._arguments.tail.reshape(-1, 4)
        self._boxes_address = self._boxes.ctypes.data
        self._write = self._arguments.writer(0, 12)
        sides = np.array([width, height], np.float32)
        self._sides = (width, height, *(1 / sides).tolist())
        self._arguments.writer(12, 8)(*_four(spec.gain), *_four(spec.bias))
        self._write_options: Callable[..., None] | None = None
        if options:
            self._write_options = self._arguments.writer(20, 4)
            self._arguments.writer(24, 4)(*_four(spec.pad))
        self._ready: dict[tuple[Any, ...], _Ready] = {}
        self._plain: PlainLauncher | None = None

    def preload(self, model: ArrayView, box_dtype: str, index_dtype: str) -> None:
        """Load the kernel for frames like `model`."""
        self._kernel(self._variant(model, 0, box_dtype, index_dtype))

    def room(self, frame: ArrayView, count: int) -> Room | None:
        """Where boxes from the host would be among the arguments of the next launch, if they fit there."""
        if count > MOST_BOXES_INSIDE or not self._is_for(frame):
            return None
        return Room(self._boxes[:count], self._boxes_address)

    def _is_for(self, frame: ArrayView) -> bool:
        """The streaming kernel reads two pixels side by side, but under a filter, and a grid has a limit."""
        return frame.shape[-2] >= 2 and self._row_values <= MAX_ROW_VALUES

    def launch(
        self, frame: ArrayView, boxes: int, box_dtype: str, count: int, out: int, stream: Any, frame_index: int,
        index_dtype: str, transform: int,
    ) -> None:  # fmt: skip
        """Queue the kernel for at most `MAX_ITEMS` boxes; see `CudaEngine.launch`."""
        key = (frame.shape, frame.strides, frame.pointer & 3, out & 15, count, box_dtype, index_dtype)
        ready = self._ready.get(key)
        if ready is None:
            if not self._is_for(frame):
                self._plain_launcher().launch(
                    frame, boxes, box_dtype, count, out, stream, frame_index, index_dtype, transform
                )
                return
            if len(self._ready) >= KNOWN_LAUNCHES:
                self._ready.clear()
            ready = self._ready[key] = self._prepare(frame, box_dtype, count, out, index_dtype)
        self._write(
            frame.pointer,
            ready.pitch,
            ready.width,
            ready.height,
            boxes,
            out,
            *self._sides,
            ready.rows,
            ready.lines,
        )
        if self._write_options is not None:
            self._write_options(ready.frames, ready.step, frame_index, transform)
        submit(ready.function, ready.geometry, stream, self._arguments)

    def _prepare(self, frame: ArrayView, box_dtype: str, count: int, out: int, index_dtype: str) -> _Ready:
        variant = self._variant(frame, out, box_dtype, index_dtype)
        kernel = self._kernel(variant)
        shape = self._fixed if variant.fixed and self._fixed else self._shape._replace(values=variant.values)
        tiles = tiling(shape, count, self._height, self._row_values, self._processors)
        item = frame.dtype.itemsize
        height, width, channels = frame.shape[-3:]
        pitch = frame.strides[-3]
        frames, step = (frame.shape[0], frame.strides[0]) if self.spec.frame.indexed else (1, 0)
        extent = (frames - 1) * step + (height - 1) * pitch + width * channels * item
        worthwhile = extent <= min(self._prefetch_limit, count * self._item_bytes)
        return _Ready(
            function_of(kernel), (*tiles.grid, *tiles.block), pitch // item, width, height, tiles.rows,
            extent // LINE_BYTES if worthwhile else 0, frames, step // item,
        )  # fmt: skip

    def _variant(self, frame: ArrayView, out: int, box_dtype: str, index_dtype: str) -> Variant:
        """The kernel that the addresses and the result's width allow."""
        step = frame.strides[0] if self.spec.frame.indexed else 0
        words = self._words and not (frame.pointer | frame.strides[-3] | step) & 3
        if words and self._fixed and self._suits(self._fixed.values, out):
            return Variant(box_dtype, index_dtype, self._fixed.values, words, fixed=True)
        values = self._shape.values
        if not self._suits(values, out):  # under a filter NHWC is stored value by value
            values = self._channels if self._filtered and not self._planar else 1
        return Variant(
            box_dtype, index_dtype, values, words and (self._planar or self._filtered), fixed=False
        )

    def _suits(self, values: int, out: int) -> bool:
        """Whether all stores of so many values are whole, and at multiples of their size."""
        return self._row_values % values == 0 and out % (values * self._out_size) == 0

    def _kernel(self, variant: Variant) -> Any:
        return _stream_kernel(self.spec.kernel, self.spec.saturates, variant, _capability())

    def _plain_launcher(self) -> PlainLauncher:
        if self._plain is None:
            self._plain = PlainLauncher(self.spec)
        return self._plain


class PlainLauncher:
    """Launches the kernels with one column per thread, `crop`, `antialias` and `sampled`, for what the streaming one can't do.

    Parameters
    ----------
    spec : CropSpec
    values : int
        Address in device memory of the gains, then the biases, then the padding; read for more than four channels.
    maps : bool
        Whether boxes are affine maps.
    """

    def __init__(self, spec: CropSpec, values: int = 0, maps: bool = False) -> None:
        self.spec = spec
        self._kind = spec.kernel._replace(maps=maps)
        height, width = spec.options.size
        self._threads = min(-(-width // 32) * 32, MAX_COLUMNS)
        self._tiles = (-(-width // self._threads), -(-height // ROWS))
        many, step = spec.kernel.many_channels, spec.gain.nbytes
        affine = [values, values + step] if many else [*_four(spec.gain), *_four(spec.bias)]
        padding = [values + 2 * step] if many else _four(spec.pad)
        options = spec.kernel.takes_options or many
        more = "iqQQ" + ("Q" if many else "ffff")
        self._arguments = ArgumentBlock("QiiiQQiiii" + ("QQ" if many else "f" * 8) + more * options)
        self._arguments.writer(6, 4 + len(affine))(width, height, *self._tiles, *affine)
        self._write_addresses = self._arguments.writer(0, 6)
        self._write_options: Callable[..., None] | None = None
        if options:
            first = 10 + len(affine)
            self._write_options = self._arguments.writer(first, 4)
            self._arguments.writer(first + 4, len(padding))(*padding)

    def preload(self, model: ArrayView, box_dtype: str, index_dtype: str) -> None:
        """Load the kernel."""
        self._kernel("float32" if box_dtype == INSIDE else box_dtype, index_dtype)

    def room(self, frame: ArrayView, count: int) -> Room | None:
        """It has no boxes among its arguments."""
        return None

    def _kernel(self, box_dtype: str, index_dtype: str) -> Any:
        return _plain_kernel(self._kind, box_dtype, index_dtype, _capability())

    def launch(
        self, frame: ArrayView, boxes: int, box_dtype: str, count: int, out: int, stream: Any, frame_index: int,
        index_dtype: str, transform: int,
    ) -> None:  # fmt: skip
        """Queue the kernel; see `CudaEngine.launch`."""
        item = frame.dtype.itemsize
        height, width = frame.shape[-3:-1]
        self._write_addresses(frame.pointer, frame.strides[-3] // item, width, height, boxes, out)
        if self._write_options is not None:
            frames, step = (frame.shape[0], frame.strides[0] // item) if self.spec.frame.indexed else (1, 0)
            self._write_options(frames, step, frame_index, transform)
        kernel = self._kernel(box_dtype, index_dtype)
        grid = (count * self._tiles[0] * self._tiles[1], 1, 1)
        submit(function_of(kernel), (*grid, self._threads, 1, 1), stream, self._arguments)


@cache
def _stream_kernel(kind: Kernel, saturate: bool, variant: Variant, capability: tuple[int, int]) -> Any:
    from octopus.backends.cuda import compile

    frame, box_dtype, index_dtype, values, words, fixed = kind.frame, *variant

    def build() -> tuple[Callable[..., Any], tuple[Any, ...]]:
        from octopus.kernels.cuda import ptx, stream

        kernel = stream.build(
            frame.channels, kind.dtype, kind.layout, frame_dtype=frame.dtype, values=values, words=words,
            saturate=saturate, pairs=capability >= ptx.HALF_PAIR_CAPABILITY, fixed=fixed, inside=box_dtype == INSIDE,
            antialias=kind.antialias, **kind.options,
        )  # fmt: skip
        index = index_dtype if kind.takes_options else None
        read = "float32" if box_dtype == INSIDE else box_dtype
        return kernel, stream.argument_types(frame.dtype, read, kind.dtype, index)

    parts = [kind.name, f"by{values}", box_dtype]
    parts += [index_dtype] * frame.indexed + ["words"] * words + ["saturated"] * saturate + ["fixed"] * fixed
    return compile.load("stream-" + "-".join(parts), build)


@cache
def _plain_kernel(kind: Kernel, box_dtype: str, index_dtype: str, capability: tuple[int, int]) -> Any:
    from octopus.backends.cuda import compile

    frame = kind.frame

    def build() -> tuple[Callable[..., Any], tuple[Any, ...]]:
        from octopus.kernels.cuda import antialias, crop, sampled

        make: Callable[..., Any] = antialias.build if kind.antialias else crop.build
        if kind.samples:
            make = sampled.build
        index = index_dtype if kind.takes_options or kind.many_channels else None
        types = crop.argument_types(frame.dtype, box_dtype, kind.dtype, index, kind.many_channels)
        return make(frame.channels, kind.dtype, kind.layout, **kind.options), types

    index = f"-{index_dtype}" if frame.indexed else ""
    return compile.load(f"crop-{kind.name}-{box_dtype}{index}", build)


def _capability() -> tuple[int, int]:
    """Of the GPU in use: a kernel that was loaded for one may not run on another."""
    from octopus.backends.cuda.device import compute_capability

    return compute_capability()


def _four(values: np.ndarray) -> list[float]:
    """The values of up to four channels, filled up with zeros: the kernel has a parameter for each."""
    return [*values.tolist(), *[0.0] * (4 - len(values))]
