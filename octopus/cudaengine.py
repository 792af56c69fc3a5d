"""The way to run a checked crop-and-resize call on a CUDA device."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from octopus.backends.cuda.launch import ArgumentBlock, function_of, submit
from octopus.cropspec import CropSpec, Kernel
from octopus.errors import InputError
from octopus.interop import ArrayView, dtype_name
from octopus.kernels.cuda.tiles import MAX_COLUMNS, MAX_ITEMS, ROWS, SHAPES, tiling

UPLOAD_BYTES = 1 << 16  # the driver copies this much out of pageable memory without waiting for the stream
BOX_BYTES, INDEX_BYTES, TRANSFORM_BYTES = 16, 4, 16
LINE_BYTES = 128  # of the cache; one prefetch each
MAX_ROW_VALUES = 1 << 21  # of a result's row; the strips of longer ones could exceed the grid's third side
KNOWN_LAUNCHES = 256  # kinds of batches whose launch an engine remembers


def upload_capacity(max_boxes: int, indexed: bool) -> int:
    """Boxes from the host, with their frame index, that travel at a time."""
    return min(max_boxes, UPLOAD_BYTES // (BOX_BYTES + INDEX_BYTES * indexed))


class Variant(NamedTuple):
    """What distinguishes the compiled kernels of one spec."""

    box_dtype: str
    index_dtype: str
    values: int
    words: bool


class CudaEngine:
    """Runs a spec with the streaming CUDA kernel: one launch, no device allocation after construction.

    Boxes from the host go through a buffer of at most 64 KiB; larger batches take several turns, each with a launch
    of its own. So do batches of more than 65535 boxes.

    Parameters
    ----------
    spec : CropSpec
    max_boxes : int
        Capacity that the buffer for boxes from the host needs at most.
    model : ArrayView
        A frame like those to come; the kernel for it is loaded now.
    box_dtype, index_dtype : str
        Dtypes of the boxes and of the frame index to come.
    stream : cuda.core.Stream
        On which memory is allocated.
    """

    def __init__(
        self, spec: CropSpec, max_boxes: int, model: ArrayView, box_dtype: str, index_dtype: str, stream: Any
    ) -> None:
        from octopus.backends.cuda import memory
        from octopus.backends.cuda.device import current, is_capturing

        self.spec = spec
        self._is_capturing = is_capturing
        self._copy = memory.copy
        self.capacity = upload_capacity(max_boxes, spec.indexed)
        self.device_boxes = memory.DeviceArray((self.capacity, 4), np.float32, stream=stream)
        self.device_index = memory.DeviceArray(
            (self.capacity if spec.indexed else 0,), np.int32, stream=stream
        )
        self.owned = (self.device_boxes, self.device_index)
        self._item_bytes = spec.nbytes(1)
        properties = current().properties
        self._launcher: PlainLauncher | StreamLauncher = (
            PlainLauncher(spec)
            if spec.antialias
            else StreamLauncher(spec, properties.multiprocessor_count, properties.l2_cache_size)
        )
        self._launcher.preload(model, box_dtype, index_dtype)

    def upload_boxes(self, boxes: np.ndarray, stream: Any) -> int:
        """Queue the copy of at most `capacity` checked float32 boxes to the device; returns their address there.

        The driver has read the boxes when this returns: of page-locked ones, which it would read later, a copy.
        """
        pageable = np.array(boxes)
        self._copy(self.device_boxes.pointer, pageable.__array_interface__["data"][0], boxes.nbytes, stream)
        return self.device_boxes.pointer

    def upload_index(self, index: np.ndarray, stream: Any) -> int:
        """Queue the copy of a checked int32 frame index to the device; returns its address there."""
        pageable = np.array(index)
        self._copy(self.device_index.pointer, pageable.ctypes.data, index.nbytes, stream)
        return self.device_index.pointer

    def run_uploading(
        self,
        frame: ArrayView,
        boxes: np.ndarray | ArrayView,
        frame_index: np.ndarray | None,
        out: int,
        transform: int,
        stream: Any,
    ) -> None:
        """Queue checked float32 boxes, an int32 frame index, or both from the host, and the kernel for them.

        The copy of a part waits, in the order of the stream, for the kernel that reads the part before it.

        Raises
        ------
        InputError
            While a graph is captured: it would copy from where the boxes were at the time.
        """
        if self._is_capturing(stream):
            raise InputError("boxes and frame_index must be on the GPU while a graph is captured")
        from_host = isinstance(boxes, np.ndarray)
        box_dtype = "float32" if from_host else dtype_name(boxes.dtype)
        box_bytes = 4 * np.dtype(box_dtype).itemsize
        count = len(boxes) if from_host else boxes.shape[0]
        for first in range(0, count, self.capacity):
            last = min(first + self.capacity, count)
            index = 0 if frame_index is None else self.upload_index(frame_index[first:last], stream)
            part = boxes[first:last] if from_host else None
            pointer = boxes.pointer + first * box_bytes if part is None else self.upload_boxes(part, stream)
            self.launch(
                frame, pointer, box_dtype, last - first, out + first * self._item_bytes, stream, frame_index=index,
                transform=transform and transform + first * TRANSFORM_BYTES,
            )  # fmt: skip

    def launch(
        self,
        frame: ArrayView,
        boxes: int,
        box_dtype: str,
        count: int,
        out: int,
        stream: Any,
        *,
        frame_index: int = 0,
        index_dtype: str = "int32",
        transform: int = 0,
    ) -> None:
        """Queue the kernel; `frame`, `boxes`, `out`, `frame_index` and `transform` are in device memory."""
        submit_part = self._launcher.launch
        if count <= MAX_ITEMS:
            submit_part(frame, boxes, box_dtype, count, out, stream, frame_index, index_dtype, transform)
            return
        box_bytes = 4 * np.dtype(box_dtype).itemsize
        index_bytes = np.dtype(index_dtype).itemsize
        for first in range(0, count, MAX_ITEMS):
            submit_part(
                frame, boxes + first * box_bytes, box_dtype, min(MAX_ITEMS, count - first),
                out + first * self._item_bytes, stream, frame_index + first * index_bytes, index_dtype,
                transform + first * TRANSFORM_BYTES,
            )  # fmt: skip


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
        planar = spec.layout == "NCHW"
        self._row_values = spec.width if planar else spec.width * spec.channels
        self._words = planar and spec.frame_dtype == "uint8" and spec.channels in (3, 4)
        self._shape = SHAPES[spec.dtype, planar]
        self._out_size = np.dtype(spec.dtype).itemsize
        self._item_bytes = spec.nbytes(1)
        options = spec.kernel.takes_options
        self._arguments = ArgumentBlock("QiiiQQiiffii" + "f" * 8 + ("iqQQffff" if options else ""))
        self._write = self._arguments.writer(0, 12)
        sides = np.array([spec.width, spec.height], np.float32)
        self._sides = (spec.width, spec.height, *(1 / sides).tolist())
        self._arguments.writer(12, 8)(*_four(spec.gain), *_four(spec.bias))
        self._write_options: Callable | None = None
        if options:
            self._write_options = self._arguments.writer(20, 4)
            self._arguments.writer(24, 4)(*_four(spec.pad))
        self._ready: dict[tuple, _Ready] = {}
        self._plain: PlainLauncher | None = None

    def preload(self, model: ArrayView, box_dtype: str, index_dtype: str) -> None:
        """Load the kernel for frames like `model`."""
        self._kernel(self._variant(model, 0, box_dtype, index_dtype))

    def launch(
        self, frame: ArrayView, boxes: int, box_dtype: str, count: int, out: int, stream: Any, frame_index: int,
        index_dtype: str, transform: int,
    ) -> None:  # fmt: skip
        """Queue the kernel for at most `MAX_ITEMS` boxes; see `CudaEngine.launch`."""
        key = (frame.shape, frame.strides, frame.pointer & 3, out & 15, count, box_dtype, index_dtype)
        ready = self._ready.get(key)
        if ready is None:
            # The streaming kernel always reads two pixels side by side, and a grid has a limit.
            if frame.shape[-2] < 2 or self._row_values > MAX_ROW_VALUES:
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
        shape = self._shape._replace(values=variant.values)
        tiles = tiling(shape, count, self.spec.height, self._row_values, self._processors)
        item = frame.dtype.itemsize
        height, width, channels = frame.shape[-3:]
        pitch = frame.strides[-3]
        frames, step = (frame.shape[0], frame.strides[0]) if self.spec.indexed else (1, 0)
        extent = (frames - 1) * step + (height - 1) * pitch + width * channels * item
        worthwhile = extent <= min(self._prefetch_limit, count * self._item_bytes)
        return _Ready(
            function_of(kernel), (*tiles.grid, *tiles.block), pitch // item, width, height, tiles.rows,
            extent // LINE_BYTES if worthwhile else 0, frames, step // item,
        )  # fmt: skip

    def _variant(self, frame: ArrayView, out: int, box_dtype: str, index_dtype: str) -> Variant:
        """The kernel that the addresses and the result's width allow."""
        values = self._shape.values
        good = self._row_values % values == 0 and out % (values * self._out_size) == 0
        step = frame.strides[0] if self.spec.indexed else 0
        words = self._words and not (frame.pointer | frame.strides[-3] | step) & 3
        return Variant(box_dtype, index_dtype, values if good else 1, words)

    def _kernel(self, variant: Variant) -> Any:
        return _stream_kernel(self.spec.kernel, self.spec.saturates, variant, _capability())

    def _plain_launcher(self) -> PlainLauncher:
        if self._plain is None:
            self._plain = PlainLauncher(self.spec)
        return self._plain


class PlainLauncher:
    """Launches the kernels with one column per thread: `antialias`, and `crop` for frames of a single column."""

    def __init__(self, spec: CropSpec) -> None:
        self.spec = spec
        self._threads = min(-(-spec.width // 32) * 32, MAX_COLUMNS)
        self._tiles = (-(-spec.width // self._threads), -(-spec.height // ROWS))
        options = spec.kernel.takes_options
        self._arguments = ArgumentBlock("QiiiQQiiii" + "f" * 8 + ("iqQQffff" if options else ""))
        self._arguments.writer(6, 12)(
            spec.width, spec.height, *self._tiles, *_four(spec.gain), *_four(spec.bias)
        )
        self._write_addresses = self._arguments.writer(0, 6)
        self._write_options: Callable | None = None
        if options:
            self._write_options = self._arguments.writer(18, 4)
            self._arguments.writer(22, 4)(*_four(spec.pad))

    def preload(self, model: ArrayView, box_dtype: str, index_dtype: str) -> None:
        """Load the kernel."""
        self._kernel(box_dtype, index_dtype)

    def _kernel(self, box_dtype: str, index_dtype: str) -> Any:
        return _plain_kernel(self.spec.kernel, box_dtype, index_dtype, _capability())

    def launch(
        self, frame: ArrayView, boxes: int, box_dtype: str, count: int, out: int, stream: Any, frame_index: int,
        index_dtype: str, transform: int,
    ) -> None:  # fmt: skip
        """Queue the kernel; see `CudaEngine.launch`."""
        item = frame.dtype.itemsize
        height, width = frame.shape[-3:-1]
        self._write_addresses(frame.pointer, frame.strides[-3] // item, width, height, boxes, out)
        if self._write_options is not None:
            frames, step = (frame.shape[0], frame.strides[0] // item) if self.spec.indexed else (1, 0)
            self._write_options(frames, step, frame_index, transform)
        kernel = self._kernel(box_dtype, index_dtype)
        grid = (count * self._tiles[0] * self._tiles[1], 1, 1)
        submit(function_of(kernel), (*grid, self._threads, 1, 1), stream, self._arguments)


@cache
def _stream_kernel(kind: Kernel, saturate: bool, variant: Variant, capability: tuple[int, int]) -> Any:
    from octopus.backends.cuda import compile

    def build() -> tuple:
        from octopus.kernels.cuda import ptx, stream

        options = kind.takes_options
        types = stream.argument_types(
            kind.frame_dtype, variant.box_dtype, kind.dtype, variant.index_dtype if options else None
        )
        kernel = stream.build(
            kind.channels, kind.dtype, kind.layout, frame_dtype=kind.frame_dtype, values=variant.values,
            words=variant.words, saturate=saturate, pairs=capability >= ptx.HALF_PAIR_CAPABILITY,
            edge=kind.edge, letterbox=kind.letterbox, indexed=kind.indexed,
        )  # fmt: skip
        return kernel, types

    parts = [kind.name, f"by{variant.values}", variant.box_dtype]
    parts += [variant.index_dtype] * kind.indexed + ["words"] * variant.words + ["saturated"] * saturate
    return compile.load("stream-" + "-".join(parts), build)


@cache
def _plain_kernel(kind: Kernel, box_dtype: str, index_dtype: str, capability: tuple[int, int]) -> Any:
    from octopus.backends.cuda import compile

    def build() -> tuple:
        from octopus.kernels.cuda import antialias, crop

        make = antialias.build if kind.antialias else crop.build
        options = {"edge": kind.edge, "letterbox": kind.letterbox, "indexed": kind.indexed}
        types = crop.argument_types(
            kind.frame_dtype, box_dtype, kind.dtype, index_dtype if kind.takes_options else None
        )
        return make(kind.channels, kind.dtype, kind.layout, **options), types

    index = f"-{index_dtype}" if kind.indexed else ""
    return compile.load(f"crop-{kind.name}-{box_dtype}{index}", build)


def _capability() -> tuple[int, int]:
    """Of the GPU in use: a kernel that was loaded for one may not run on another."""
    from octopus.backends.cuda.device import compute_capability

    return compute_capability()


def _four(values: np.ndarray) -> list[float]:
    """The values of up to four channels, filled up with zeros: the kernel has a parameter for each."""
    return [*values.tolist(), *[0.0] * (4 - len(values))]
