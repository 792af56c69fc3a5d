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
from octopus.crop.video import DTYPES as VIDEO_DTYPES
from octopus.crop.video import TOP, VideoView
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
MOST_BYTES = 1 << 32  # of a frame that is read in words: kernels count them in 32 bits
KNOWN_LAUNCHES = 256  # kinds of batches whose launch an engine remembers
INSIDE = "inside"  # in the place of a dtype of boxes: float32, and among the kernel's arguments


class Variant(NamedTuple):
    """What distinguishes the compiled kernels of one spec."""

    box_dtype: str
    index_dtype: str
    values: int
    words: bool
    fixed: bool
    items: tuple[str, ...] = ()  # of `Items.names`


class ItemPointers(NamedTuple):
    """Addresses on the GPU of what a run's items have of their own, 0 for nothing; see `kernels.cuda.stream.build`."""

    counted: int = 0
    flips: int = 0
    flip_step: int = 0
    means: int = 0
    stds: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        """Keyword arguments, which are to be True, of the kernel for them."""
        given = {"counted": self.counted, "flipped": self.flips, "own": self.means}
        return tuple(name for name, address in given.items() if address)

    def behind(self, items: int, channels: int) -> ItemPointers:
        """Those of the items from number `items` on; a count is for all."""
        own = 4 * channels * items
        return self._replace(
            flips=self.flips and self.flips + items * self.flip_step,
            means=self.means and self.means + own,
            stds=self.stds and self.stds + own,
        )


NO_ITEMS = ItemPointers()


class _Block:
    """The arguments of a kernel, of which the first are written at each launch.

    Parameters
    ----------
    kinds : str
        Of the first arguments, see `ArgumentBlock`.
    affine, padding : list
        Gains and biases, and what surrounds images: numbers, or addresses.
    options, items : bool
        Whether the kernel has the arguments for options, and those for items.
    tail_bytes : int
        See `ArgumentBlock`.
    """

    def __init__(
        self, kinds: str, affine: list[Any], padding: list[Any], options: bool, items: bool, tail_bytes: int = 0
    ) -> None:  # fmt: skip
        given = {int: "Q", float: "f"}
        normal = "".join(given[type(value)] for value in affine)
        more = "iqQQ" + "".join(given[type(value)] for value in padding)
        self.arguments = ArgumentBlock(
            kinds + normal + more * (options or items) + ("QQiQQQi" + "f" * 8) * items, tail_bytes
        )
        at = len(kinds)
        self.write = self.arguments.writer(0, at)
        self.arguments.writer(at, len(affine))(*affine)
        self.write_options: Callable[..., None] | None = None
        self.write_items: Callable[..., None] | None = None
        if options or items:
            self.write_options = self.arguments.writer(at + len(affine), 4)
            at += len(affine) + 4
            self.arguments.writer(at, len(padding))(*padding)
            at += len(padding)
        if items:
            self.write_items = self.arguments.writer(at, 7)
            self._write_coefficients = self.arguments.writer(at + 7, 8)
        self._coding: Any = None

    def put(self, frame: ArrayView, options: tuple[int, int, int, int], items: ItemPointers) -> None:
        """Write what isn't among the first arguments."""
        if self.write_options is not None:
            self.write_options(*options)
        if self.write_items is None:
            return
        if not isinstance(frame, VideoView):
            self.write_items(*items, 0, 0)
            return
        if frame.coding != self._coding:
            self._write_coefficients(*(frame.coding.coefficients / np.float32(TOP)).tolist())
            self._coding = frame.coding
        self.write_items(*items, frame.chroma.pointer, frame.chroma.strides[0] // frame.dtype.itemsize)


def _affine(spec: CropSpec) -> tuple[np.ndarray, np.ndarray]:
    """Gain and bias of what the kernels read: of video they make values from 0 to 1."""
    top = np.float32(TOP if spec.frame.dtype in VIDEO_DTYPES else 1)
    return spec.gain * top, spec.bias


class Ready(NamedTuple):
    """All of a launch but the addresses, worked out once for batches that look alike."""

    block: _Block
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
        frame, planar = kernel.frame, kernel.layout == "NCHW"
        self._height, self._row_values = height, width if planar else width * frame.channels
        self._filtered, self._is_video = kernel.antialias, frame.dtype in VIDEO_DTYPES
        self._whole = self._filtered or self._is_video  # a thread makes all channels of its columns
        self._words = frame.dtype == "uint8" and (frame.stored in (3, 4) or self._filtered)
        self._planar, self._shape = planar, SHAPES[spec.dtype, planar]
        if self._filtered:
            self._shape = filter_shape(frame.channels, planar)
        elif self._is_video and not planar:
            self._shape = self._shape._replace(values=frame.channels)
        fixed = self._words and not self._filtered
        self._fixed = FIXED_SHAPES.get((spec.dtype, planar)) if fixed else None
        if spec.dtype == "uint8" and (spec.saturates or not spec.is_plain):
            self._fixed = None
        self._out_size = itemsize(spec.dtype)
        self._item_bytes = spec.nbytes(1)
        gain, bias = _affine(spec)
        affine, padding = [*_four(gain), *_four(bias)], _four(spec.pad)
        self._blocks = {
            items: _Block(
                "QiiiQQiiffii", affine, padding, kernel.takes_options, items, 16 * MOST_BOXES_INSIDE
            )
            for items in (False, True)
        }
        self._rooms = {}
        for items, block in self._blocks.items():
            boxes = block.arguments.tail.reshape(-1, 4)
            self._rooms[items] = boxes, boxes.ctypes.data
        sides = np.array([width, height], np.float32)
        self._sides = (width, height, *(1 / sides).tolist())
        self._ready: dict[tuple[Any, ...], Ready] = {}
        self._plain: PlainLauncher | None = None

    def preload(self, model: ArrayView, box_dtype: str, index_dtype: str) -> None:
        """Load the kernel for frames like `model`."""
        self._kernel(self._variant(model, 0, box_dtype, index_dtype))

    def room(self, frame: ArrayView, count: int, items: bool = False) -> Room | None:
        """Where boxes from the host would be among the arguments of the next launch, if they fit there.

        `items`: whether any of them has something of its own.
        """
        if count > MOST_BOXES_INSIDE or not self._is_for(frame):
            return None
        boxes, address = self._rooms[items or self._is_video]
        return Room(boxes[:count], address)

    def _is_for(self, frame: ArrayView) -> bool:
        """The streaming kernel reads two pixels side by side, but under a filter, and a grid has a limit."""
        return frame.shape[-2] >= 2 and self._row_values <= MAX_ROW_VALUES

    def launch(
        self, frame: ArrayView, boxes: int, box_dtype: str, count: int, out: int, stream: Any, frame_index: int,
        index_dtype: str, transform: int, items: ItemPointers = NO_ITEMS,
    ) -> None:  # fmt: skip
        """Queue the kernel for at most `MAX_ITEMS` boxes; see `CudaEngine.launch`."""
        ready = self.ready(frame, box_dtype, count, out, index_dtype, items)
        if ready is None:
            self._plain_launcher().launch(
                frame, boxes, box_dtype, count, out, stream, frame_index, index_dtype, transform, items
            )
            return
        self.fire(ready, frame, boxes, out, stream, frame_index, transform, items)

    def ready(
        self, frame: ArrayView, box_dtype: str, count: int, out: int, index_dtype: str = "int32",
        items: ItemPointers = NO_ITEMS,
    ) -> Ready | None:  # fmt: skip
        """What launches for batches that look alike share; None if the streaming kernel is not for such frames.

        They look alike if only addresses differ, and these by multiples of 16 bytes.
        """
        names = () if items is NO_ITEMS else items.names
        chroma = frame.chroma.strides if isinstance(frame, VideoView) else None
        key = (
            frame.shape,
            frame.strides,
            frame.pointer & 3,
            out & 15,
            count,
            box_dtype,
            index_dtype,
            names,
            chroma,
        )
        ready = self._ready.get(key)
        if ready is None and self._is_for(frame):
            if len(self._ready) >= KNOWN_LAUNCHES:
                self._ready.clear()
            ready = self._ready[key] = self._prepare(frame, box_dtype, count, out, index_dtype, names)
        return ready

    def fire(
        self, ready: Ready, frame: ArrayView, boxes: int, out: int, stream: Any, frame_index: int = 0,
        transform: int = 0, items: ItemPointers = NO_ITEMS,
    ) -> None:  # fmt: skip
        """Queue the kernel of a launch that is ready, for arrays of these addresses."""
        ready.block.write(
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
        ready.block.put(frame, (ready.frames, ready.step, frame_index, transform), items)
        submit(ready.function, ready.geometry, stream, ready.block.arguments)

    def _prepare(
        self, frame: ArrayView, box_dtype: str, count: int, out: int, index_dtype: str, items: tuple[str, ...]
    ) -> Ready:
        variant = self._variant(frame, out, box_dtype, index_dtype, items)
        kernel = self._kernel(variant)
        shape = self._fixed if variant.fixed and self._fixed else self._shape._replace(values=variant.values)
        tiles = tiling(shape, count, self._height, self._row_values, self._processors)
        item = frame.dtype.itemsize
        height, width, stored = frame.shape[-3:]
        pitch, stored = frame.strides[-3], 1 if self._is_video else stored
        frames, step = (frame.shape[0], frame.strides[0]) if self.spec.frame.indexed else (1, 0)
        extent = (frames - 1) * step + (height - 1) * pitch + width * stored * item
        if isinstance(frame, VideoView):  # half as many lines of chroma are asked for
            extent = min(extent, 2 * _bytes(frame.chroma))
        worthwhile = extent <= min(self._prefetch_limit, count * self._item_bytes)
        return Ready(
            self._blocks[bool(items) or self._is_video], function_of(kernel), (*tiles.grid, *tiles.block),
            pitch // item, width, height, tiles.rows, extent // LINE_BYTES if worthwhile else 0, frames, step // item,
        )  # fmt: skip

    def _variant(
        self, frame: ArrayView, out: int, box_dtype: str, index_dtype: str, items: tuple[str, ...] = ()
    ) -> Variant:
        """The kernel that the addresses and the result's width allow."""
        step = frame.strides[0] if self.spec.frame.indexed else 0
        words = (
            self._words and not (frame.pointer | frame.strides[-3] | step) & 3 and _bytes(frame) < MOST_BYTES
        )
        fixed = None if "own" in items and self.spec.dtype == "uint8" else self._fixed
        if words and fixed and self._suits(fixed.values, out):
            return Variant(box_dtype, index_dtype, fixed.values, words, True, items)
        values = self._shape.values
        if not self._suits(values, out) and (
            self._planar or not self._whole
        ):  # whole pixels go value by value
            values = 1
        return Variant(
            box_dtype, index_dtype, values, words and (self._planar or self._filtered), False, items
        )

    def _suits(self, values: int, out: int) -> bool:
        """Whether all stores of so many values are whole, and at multiples of their size."""
        return self._row_values % values == 0 and out % (values * self._out_size) == 0

    def _kernel(self, variant: Variant) -> Any:
        saturate = self.spec.saturates or ("own" in variant.items and self.spec.dtype == "uint8")
        return _stream_kernel(self.spec.kernel, saturate, variant, _capability())

    def _plain_launcher(self) -> PlainLauncher:
        if self._plain is None:
            self._plain = PlainLauncher(self.spec)
        return self._plain


class PlainLauncher:
    """Launches the kernels with one column per thread, `crop`, `antialias` and `sampled`, for what `stream` can't do.

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
        gain, bias = _affine(spec)
        affine = [values, values + step] if many else [*_four(gain), *_four(bias)]
        padding = [values + 2 * step] if many else _four(spec.pad)
        options = spec.kernel.takes_options or many
        self._is_video = spec.frame.dtype in VIDEO_DTYPES
        self._blocks = {
            items: _Block("QiiiQQiiii", affine, padding, options, items) for items in (False, True)
        }
        self._sides = width, height, *self._tiles

    def preload(self, model: ArrayView, box_dtype: str, index_dtype: str) -> None:
        """Load the kernel."""
        self._kernel("float32" if box_dtype == INSIDE else box_dtype, index_dtype)

    def room(self, frame: ArrayView, count: int, items: bool = False) -> Room | None:
        """It has no boxes among its arguments."""
        return None

    def _kernel(self, box_dtype: str, index_dtype: str, items: tuple[str, ...] = ()) -> Any:
        return _plain_kernel(self._kind, box_dtype, index_dtype, _capability(), items)

    def launch(
        self, frame: ArrayView, boxes: int, box_dtype: str, count: int, out: int, stream: Any, frame_index: int,
        index_dtype: str, transform: int, items: ItemPointers = NO_ITEMS,
    ) -> None:  # fmt: skip
        """Queue the kernel; see `CudaEngine.launch`."""
        item, names = frame.dtype.itemsize, items.names
        height, width = frame.shape[-3:-1]
        frames, step = (frame.shape[0], frame.strides[0] // item) if self.spec.frame.indexed else (1, 0)
        block = self._blocks[bool(names) or self._is_video]
        block.write(frame.pointer, frame.strides[-3] // item, width, height, boxes, out, *self._sides)
        block.put(frame, (frames, step, frame_index, transform), items)
        kernel = self._kernel(box_dtype, index_dtype, names)
        grid = (count * self._tiles[0] * self._tiles[1], 1, 1)
        submit(function_of(kernel), (*grid, self._threads, 1, 1), stream, block.arguments)


@cache
def _stream_kernel(kind: Kernel, saturate: bool, variant: Variant, capability: tuple[int, int]) -> Any:
    from octopus.backends.cuda import compile

    frame, box_dtype, index_dtype, values, words, fixed, items = kind.frame, *variant

    def build() -> tuple[Callable[..., Any], tuple[Any, ...]]:
        from octopus.kernels.cuda import ptx, stream

        options: dict[str, Any] = {**kind.options, **dict.fromkeys(items, True)}
        kernel = stream.build(
            frame.channels, kind.dtype, kind.layout, frame_dtype=frame.dtype, values=values, words=words,
            saturate=saturate, pairs=capability >= ptx.HALF_PAIR_CAPABILITY, fixed=fixed, inside=box_dtype == INSIDE,
            antialias=kind.antialias, **options,
        )  # fmt: skip
        more = bool(items) or frame.dtype in VIDEO_DTYPES
        index = index_dtype if kind.takes_options or more else None
        read = "float32" if box_dtype == INSIDE else box_dtype
        return kernel, stream.argument_types(frame.dtype, read, kind.dtype, index, more)

    parts = [kind.name, f"by{values}", box_dtype]
    parts += (
        [index_dtype] * frame.indexed
        + ["words"] * words
        + ["saturated"] * saturate
        + ["fixed"] * fixed
        + list(items)
    )
    return compile.load("stream-" + "-".join(parts), build)


@cache
def _plain_kernel(
    kind: Kernel, box_dtype: str, index_dtype: str, capability: tuple[int, int], items: tuple[str, ...] = ()
) -> Any:
    from octopus.backends.cuda import compile

    frame = kind.frame

    def build() -> tuple[Callable[..., Any], tuple[Any, ...]]:
        from octopus.kernels.cuda import antialias, crop, plain, sampled

        make: Callable[..., Any] = antialias.build if kind.antialias else crop.build
        if kind.samples:
            make = sampled.build
        more = bool(items) or frame.dtype in VIDEO_DTYPES
        index = index_dtype if kind.takes_options or kind.many_channels or more else None
        types = plain.argument_types(frame.dtype, box_dtype, kind.dtype, index, kind.many_channels, more)
        options = {**kind.options, **dict.fromkeys(items, True)}
        return make(frame.channels, kind.dtype, kind.layout, frame_dtype=frame.dtype, **options), types

    parts = [kind.name, box_dtype, *[index_dtype] * frame.indexed, *items]
    return compile.load("crop-" + "-".join(parts), build)


def _bytes(frame: ArrayView) -> int:
    """From the first byte of one frame to its last."""
    return frame.shape[-3] * frame.strides[-3]


def _capability() -> tuple[int, int]:
    """Of the GPU in use: a kernel that was loaded for one may not run on another."""
    from octopus.backends.cuda.device import compute_capability

    return compute_capability()


def _four(values: np.ndarray) -> list[float]:
    """The values of up to four channels, filled up with zeros: the kernel has a parameter for each."""
    return [*values.tolist(), *[0.0] * (4 - len(values))]
