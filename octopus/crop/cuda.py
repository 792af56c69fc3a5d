"""Checked crop-and-resize calls on a CUDA device: which kernel, how its work is cut, its arguments, and uploads."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from octopus.arrays.checks import INT32_MAX
from octopus.arrays.launch import Cuda, PreparedLaunch, launch
from octopus.arrays.plan import PlanMemory
from octopus.arrays.results import itemsize
from octopus.arrays.views import ArrayView, c_strides, dtype_name
from octopus.backends.cuda import memory
from octopus.backends.cuda.compile import function_of
from octopus.backends.cuda.device import compute_capability, current, is_capturing
from octopus.crop.check import NOTHING, Call, HostItems, are_maps, is_readable, kernel_dtype
from octopus.crop.frame import TOP, VIDEO_DTYPES, VideoView
from octopus.crop.spec import CropSpec, Kernel
from octopus.errors import InputError
from octopus.kernels.arguments import PLAIN, PLAIN_MANY, STREAM, VARIED, VARIED_MANY, Arguments
from octopus.kernels.cuda import tiles
from octopus.kernels.cuda.tiles import BAND, COLUMNS, UNITS, WARP
from octopus.ragged import blockmap

UPLOAD_BYTES = 1 << 16  # the driver copies this much out of pageable memory without waiting for the stream
FEW_WARPS = 16  # a processor's; with fewer, shorter bands spread the work better
BOX_BYTES, MAP_BYTES, INDEX_BYTES = 16, 24, 4
LINE_BYTES = 128  # of the cache; one prefetch each
MAX_ROW_VALUES = 1 << 21  # of a result's row; the strips of longer ones could exceed the grid's third side
MOST_BYTES = 1 << 32  # of a frame that is read in words: kernels count them in 32 bits
INSIDE = "inside"  # in the place of a dtype of boxes: float32, and among the kernel's arguments
SIDES = ("out_width", "out_height", "inverse_width", "inverse_height")
ITEMS = ("frame_index", "flips", "means", "stds", "count")  # the arguments for the fields of `Items`
COLOURS = ("yg", "rv", "r0", "gu", "gv", "g0", "bu", "b0")  # those for a video's coefficients


class Variant(NamedTuple):
    """What distinguishes the compiled kernels of one spec: what is asked for, and what follows from it."""

    box_dtype: str
    index_dtype: str = "int32"
    items: tuple[str, ...] = ()  # of `Items.names`
    values: int = 1
    words: bool = False
    fixed: bool = False
    saturate: bool = False


class Launcher:
    """What the launches of all kernels of a spec have in common.

    `values` is the address in device memory of the gains, then the biases, then the padding; read for more than four
    channels.
    """

    arguments: Arguments
    streams = False  # whether the kernel is `kernels.cuda.stream`

    def __init__(self, spec: CropSpec, values: int = 0, maps: bool = False) -> None:
        self.spec, self._is_video = spec, spec.frame.dtype in VIDEO_DTYPES
        self._kind = spec.kernel._replace(maps=maps)
        top = np.float32(TOP if self._is_video else 1)  # of video the kernels make values from 0 to 1
        vectors = spec.gain * top, spec.bias, spec.pad
        self._vectors: dict[str, float] = {}
        for number, (name, vector) in enumerate(zip(("gain", "bias", "pad"), vectors, strict=True)):
            if spec.kernel.many_channels:
                self._vectors[name] = values + number * spec.gain.nbytes
            else:
                self._vectors |= {f"{name}{channel}": value for channel, value in enumerate(vector.tolist())}

    def inside(self, frame: ArrayView, boxes: ArrayView) -> bool:
        """Whether such boxes from the host can be among the arguments."""
        return False

    def preload(self, model: ArrayView, box_dtype: str, index_dtype: str) -> None:
        self.kernel(model, 0, Variant(box_dtype, index_dtype))

    def prepare(self, call: Call, there: Any = None) -> PreparedLaunch:
        """The launch for at most `MAX_ITEMS` boxes; from the host they go inside or `there`, to a `DeviceArray`."""
        frame, boxes, items, host = call.frame, call.boxes, call.items, None
        box_dtype, inside = dtype_name(boxes.dtype), False
        if boxes.device == "cpu":
            inside = self.inside(frame, boxes)
            box_dtype = INSIDE if inside else "float32"
            place = (-1, 0) if inside else (self.arguments.place("boxes"), there.pointer)
            host = call.host_boxes(self.spec.options.outside, *place)
        asked = Variant(box_dtype, kernel_dtype(items.frame_index, "int32"), items.names)
        kernel, variant = self.kernel(frame, call.out.pointer, asked)
        own, geometry = self._own(variant, frame, boxes.shape[0])
        size, several = frame.dtype.itemsize, self.spec.frame.indexed
        values = {
            "pitch": frame.strides[-3] // size, "width": frame.shape[-2], "height": frame.shape[-3], **own,
            "frames": frame.shape[0] if several else 1, "frame_step": frame.strides[0] // size if several else 0,
            "flip_step": 0 if items.flip is None else items.flip.strides[0], **self._vectors,
        }  # fmt: skip
        if isinstance(frame, VideoView):
            coefficients = (frame.coding.coefficients / np.float32(TOP)).tolist()
            values |= {"chroma_pitch": frame.chroma.strides[0] // size, **dict(zip(COLOURS, coefficients, strict=True))}
        names = ["out", *["transform"] * (call.transform is not None), "frame", *["chroma"] * self._is_video]
        names += ["boxes" if host is None else ""]
        names += [name for name, array in zip(ITEMS, items, strict=True) if array is not None]
        numbers = [self.arguments.place(name) if name else -1 for name in names]
        cuda = Cuda(function_of(kernel), geometry, current().device_id)
        return PreparedLaunch(
            self.arguments.words(values), list(zip(call.arrays, numbers, strict=True)), cuda, boxes=host,
            tail_words=2 * tiles.MOST_BOXES_INSIDE * inside, held=there,
        )  # fmt: skip

    def kernel(self, frame: ArrayView, out: int, asked: Variant) -> tuple[Any, Variant]:
        """The kernel that the addresses and the result's width allow."""
        variant = self._variant(frame, out, asked)
        return _kernel(self._kind, variant, self.streams, compute_capability()), variant

    def _variant(self, frame: ArrayView, out: int, asked: Variant) -> Variant:
        return asked

    def _own(self, variant: Variant, frame: ArrayView, count: int) -> tuple[dict[str, Any], tuple[int, ...]]:
        """The kernel's own arguments, and its grid and block."""
        raise NotImplementedError


class StreamLauncher(Launcher):
    """Launches `kernels.cuda.stream`, and where that can't do a frame or a result the plain kernel."""

    arguments = STREAM
    streams = True

    def __init__(self, spec: CropSpec, processors: int, l2_bytes: int) -> None:
        super().__init__(spec)
        self._processors, self._prefetch_limit = processors, l2_bytes // 2  # a larger frame is not prefetched
        kernel, (height, width) = spec.kernel, spec.options.size
        frame, planar = kernel.frame, kernel.layout == "NCHW"
        self._row_values = width if planar else width * frame.channels
        self._filtered = kernel.antialias
        self._whole = self._filtered or self._is_video  # a thread makes all channels of its columns
        self._words = frame.dtype == "uint8" and (frame.stored in (3, 4) or self._filtered)
        self._planar, self._shape = planar, tiles.SHAPES[spec.dtype, planar]
        if self._filtered:
            self._shape = tiles.filter_shape(frame.channels, planar)
        elif self._is_video and not planar:
            self._shape = self._shape._replace(values=frame.channels)
        fixed = self._words and not self._filtered
        self._fixed = tiles.FIXED_SHAPES.get((spec.dtype, planar)) if fixed else None
        if spec.dtype == "uint8" and (spec.saturates or not spec.is_plain):
            self._fixed = None
        inverses = (1 / np.array([width, height], np.float32)).tolist()
        self._sides = dict(zip(SIDES, (width, height, *inverses), strict=True))
        self._plain = PlainLauncher(spec)

    def inside(self, frame: ArrayView, boxes: ArrayView) -> bool:
        return boxes.shape[0] <= tiles.MOST_BOXES_INSIDE and self._is_for(frame)

    def _is_for(self, frame: ArrayView) -> bool:
        """The streaming kernel reads two pixels side by side, but under a filter, and a grid has a limit."""
        return frame.shape[-2] >= 2 and self._row_values <= MAX_ROW_VALUES

    def prepare(self, call: Call, there: Any = None) -> PreparedLaunch:
        if not self._is_for(call.frame):
            return self._plain.prepare(call, there)
        return super().prepare(call, there)

    def _own(self, variant: Variant, frame: ArrayView, count: int) -> tuple[dict[str, Any], tuple[int, ...]]:
        shape = self._fixed if variant.fixed and self._fixed else self._shape._replace(values=variant.values)
        made = tiles.tiling(shape, count, self.spec.options.size[0], self._row_values, self._processors)
        height, width, stored = frame.shape[-3:]
        pitch, stored = frame.strides[-3], 1 if self._is_video else stored
        frames, step = (frame.shape[0], frame.strides[0]) if self.spec.frame.indexed else (1, 0)
        extent = (frames - 1) * step + (height - 1) * pitch + width * stored * frame.dtype.itemsize
        if isinstance(frame, VideoView):  # half as many lines of chroma are asked for
            extent = min(extent, 2 * _bytes(frame.chroma))
        worthwhile = extent <= min(self._prefetch_limit, self.spec.nbytes(count))
        lines = extent // LINE_BYTES if worthwhile else 0
        return {**self._sides, "rows": made.rows, "lines": lines}, (*made.grid, *made.block)

    def _variant(self, frame: ArrayView, out: int, asked: Variant) -> Variant:
        step = frame.strides[0] if self.spec.frame.indexed else 0
        words = self._words and not (frame.pointer | frame.strides[-3] | step) & 3 and _bytes(frame) < MOST_BYTES
        own_bytes = "own" in asked.items and self.spec.dtype == "uint8"
        asked = asked._replace(saturate=self.spec.saturates or own_bytes)
        fixed = None if own_bytes else self._fixed
        if words and fixed and self._suits(fixed.values, out):
            return asked._replace(values=fixed.values, words=True, fixed=True)
        values = self._shape.values
        if not self._suits(values, out) and (self._planar or not self._whole):
            values = 1  # whole pixels go value by value
        return asked._replace(values=values, words=words and (self._planar or self._filtered))

    def _suits(self, values: int, out: int) -> bool:
        """Whether all stores of so many values are whole, and at multiples of their size."""
        return self._row_values % values == 0 and out % (values * itemsize(self.spec.dtype)) == 0


class PlainLauncher(Launcher):
    """Launches the kernels of `per_column`, for what `stream` can't do."""

    def __init__(self, spec: CropSpec, values: int = 0, maps: bool = False) -> None:
        super().__init__(spec, values, maps)
        height, width = spec.options.size
        self._threads = min(-(-width // 32) * 32, tiles.MAX_COLUMNS)
        self.arguments = PLAIN_MANY if spec.kernel.many_channels else PLAIN
        self._tiles = -(-width // self._threads), -(-height // tiles.ROWS)

    def _own(self, variant: Variant, frame: ArrayView, count: int) -> tuple[dict[str, Any], tuple[int, ...]]:
        (height, width), (across, down) = self.spec.options.size, self._tiles
        own = {"out_width": width, "out_height": height, "tiles_x": across, "tiles_y": down}
        return own, (count * across * down, 1, 1, self._threads, 1, 1)

    def _variant(self, frame: ArrayView, out: int, asked: Variant) -> Variant:
        return asked._replace(box_dtype="float32") if asked.box_dtype == INSIDE else asked


def _bytes(frame: ArrayView) -> int:
    """From the first byte of one frame to its last."""
    return frame.shape[-3] * frame.strides[-3]


@cache
def _kernel(kind: Kernel, variant: Variant, streams: bool, capability: tuple[int, int]) -> Any:
    from octopus.backends.cuda import compile

    frame, inside = kind.frame, variant.box_dtype == INSIDE

    def build() -> Callable[..., Any]:
        options: dict[str, Any] = {
            "frame_dtype": frame.dtype, "box_dtype": "float32" if inside else variant.box_dtype,
            "index_dtype": variant.index_dtype, **kind.options, **dict.fromkeys(variant.items, True),
        }  # fmt: skip
        if not streams:
            from octopus.kernels.cuda import per_column

            options |= {"filter": kind.filter, "maps": kind.maps, "pad_mode": kind.pad_mode}
            return per_column.build(frame.channels, kind.dtype, kind.layout, **options)
        from octopus.kernels.cuda import ptx, stream

        return stream.build(
            frame.channels, kind.dtype, kind.layout, values=variant.values, words=variant.words, fixed=variant.fixed,
            saturate=variant.saturate, pairs=capability >= ptx.HALF_PAIR_CAPABILITY, inside=inside, **options,
        )  # fmt: skip

    means = {"words": variant.words, "saturated": variant.saturate, "fixed": variant.fixed}
    parts = [kind.name, *[f"by{variant.values}"] * streams, variant.box_dtype, *[variant.index_dtype] * frame.indexed]
    parts += [*(name for name, used in means.items() if used), *variant.items]
    return compile.load("-".join(["stream" if streams else "crop", *parts]), build)


def upload_capacity(max_boxes: int, indexed: bool, box_bytes: int = BOX_BYTES) -> int:
    """Boxes from the host, or affine maps, with their frame index, that travel at a time."""
    return min(max_boxes, UPLOAD_BYTES // (box_bytes + INDEX_BYTES * indexed))


def upload_bytes(max_boxes: int, indexed: bool) -> tuple[int, int]:
    boxes = max(size * upload_capacity(max_boxes, indexed, size) for size in (BOX_BYTES, MAP_BYTES))
    return boxes, INDEX_BYTES * indexed * upload_capacity(max_boxes, indexed)


_captured: list[Any] = []  # what graphs read, which may live longer than the engines


class CudaEngine:
    """Runs a spec with the streaming CUDA kernel, or the plain one: one launch, no device allocation afterwards.

    Up to 240 boxes from the host are an argument of the streaming kernel. Others go through a buffer of at most 64 KiB,
    larger batches in several turns, each with a launch of its own, as do more than 65535 boxes. Affine maps have a
    plain kernel of their own. The kernel for `box_dtype` (`INSIDE` for a few from the host), `index_dtype` and `maps`
    or boxes is loaded now, another when it is first needed.
    """

    def __init__(
        self, spec: CropSpec, max_boxes: int, model: ArrayView, box_dtype: str, index_dtype: str, stream: Any,
        maps: bool = False,
    ) -> None:  # fmt: skip
        self.spec = spec
        self._capacity, self._map_capacity = (
            upload_capacity(max_boxes, spec.frame.indexed, size) for size in (BOX_BYTES, MAP_BYTES)
        )
        many = spec.kernel.many_channels
        values = np.concatenate([spec.gain, spec.bias, spec.pad] if many else [np.empty(0, np.float32)])
        self.owned = [
            memory.DeviceArray((nbytes,), np.uint8, stream=stream)
            for nbytes in (*upload_bytes(max_boxes, spec.frame.indexed), values.nbytes)
        ]
        self._boxes, self._index, self._values = self.owned
        if many:
            memory.copy(self._values.pointer, values.ctypes.data, values.nbytes, stream)
        self._own: dict[str, Any] = {}
        properties = current().properties
        self._launcher: Launcher = (
            StreamLauncher(spec, properties.multiprocessor_count, properties.l2_cache_size)
            if spec.kernel.streams
            else PlainLauncher(spec, self._values.pointer)
        )
        self._map_launcher: Launcher | None = None
        self.preload(model, box_dtype, index_dtype, maps)

    def preload(self, model: ArrayView, box_dtype: str, index_dtype: str, maps: bool = False) -> None:
        """Load the kernel for frames like `model`, and boxes or maps of a dtype."""
        self._launcher_for(maps).preload(model, box_dtype, index_dtype)

    def _launcher_for(self, maps: bool) -> Launcher:
        if not maps:
            return self._launcher
        if self._map_launcher is None:
            self._map_launcher = PlainLauncher(self.spec, self._values.pointer, maps=True)
        return self._map_launcher

    def prepare(self, call: Call) -> PreparedLaunch | None:
        """What does a call, and others like it, in one launch; None if it takes more than that."""
        count, on_host, maps = call.boxes.shape[0], call.boxes.device == "cpu", are_maps(call.boxes.shape)
        if (
            count > tiles.MAX_ITEMS
            or self.spec.kernel.many_channels
            or any(a.device == "cpu" for a in call.items.arrays)
        ):
            return None
        if on_host and (maps or count > self._capacity or not is_readable(call.boxes)):
            return None
        return self._launcher_for(maps).prepare(call, self._boxes)

    def run(self, call: Call, given: HostItems = NOTHING, stream: Any = None) -> None:
        """Queue the kernel, and uploads of what comes from the host: in the order of the stream each part of them waits
        for the kernel that reads the part before it. Boxes from the host are float32 that have been checked."""
        count, maps = call.boxes.shape[0], are_maps(call.boxes.shape)
        if self.spec.kernel.many_channels and is_capturing(stream):
            _captured.append(self._values)
        arrays = {name: array for name, array in given._asdict().items() if array is not None}
        room = tiles.MAX_ITEMS
        if call.boxes.device == "cpu" or arrays:
            if is_capturing(stream):  # the graph would have what was on the host then
                raise InputError("boxes, and what each has of its own, must be on the GPU while a graph is captured")
            room = self._map_capacity if maps else self._capacity
            if given.mean is not None:
                room = min(room, UPLOAD_BYTES // (4 * self.spec.frame.channels))
            if call.items.counted is not None and count > room:  # a launch knows nothing of the items before its own
                raise InputError(
                    f"a count on the GPU, beside what items have on the host, is for up to {room} boxes, found "
                    f"{count}; bring frame_index, flip, mean and std to the GPU, too, or split the batch"
                )
        for first in range(0, count, room):
            part, last = call.part(first, min(first + room, count)), first + room
            own = {name: self._upload(name, array[first:last], stream) for name, array in arrays.items()}
            part = part._replace(items=part.items._replace(**own))
            if maps and part.boxes.device == "cpu":
                part = part._replace(boxes=self._upload("boxes", call.boxes.numpy()[first:last], stream))
            launch(self._launcher_for(maps).prepare(part, self._boxes), part.addresses, stream)

    def _upload(self, name: str, values: np.ndarray, stream: Any) -> ArrayView:
        """Queue the copy of at most 64 KiB to the GPU, which the driver has read when this returns."""
        there = {"boxes": self._boxes, "frame_index": self._index}.get(name) or self._own.get(name)
        if there is None:  # reserved at the first run that needs it
            size = self._capacity * values.nbytes // len(values)
            there = self._own[name] = memory.DeviceArray((size,), np.uint8, stream=stream)
        if name in self._own:
            there.release_on(stream)
        pageable = np.array(values)  # page-locked memory would be read later
        memory.copy(there.pointer, pageable.ctypes.data, pageable.nbytes, stream)
        strides = c_strides(pageable.shape, pageable.dtype)
        return ArrayView(there.pointer, pageable.shape, strides, pageable.dtype, "cuda", "octopus", None)

    def read_boxes(self, boxes: ArrayView, stream: Any) -> np.ndarray:
        """Boxes on the GPU as an array on the host, once the work before them on the stream is done."""
        if is_capturing(stream):
            raise InputError(
                'outside="error" reads the boxes, which a graph that is captured does not allow; '
                'ask for outside="clip" or "pad"'
            )
        return self.read(boxes, stream)

    def read(self, array: ArrayView, stream: Any) -> np.ndarray:
        """The same of any contiguous array, where no graph is captured."""
        result = np.empty(array.shape, array.dtype)
        memory.copy(result.ctypes.data, array.pointer, result.nbytes, stream)
        stream.sync()
        return result


class ItemsEngine:
    """Runs items that differ, of which each has a record of `arguments.ITEM`: one upload, unless all lies as it did in
    the run before, and one launch of `kernels.cuda.varied`."""

    def __init__(self, spec: CropSpec, kind: str, strategy: blockmap.Strategy, keep: PlanMemory) -> None:
        self.spec, self._strategy, self._keep = spec, strategy, keep
        self._kernel = spec.kernel._replace(maps=kind == "maps", quads=kind == "quads")
        self._arguments = VARIED_MANY if spec.kernel.many_channels else VARIED
        self._key: Any = None
        self._memory: Any = None
        self._is_captured = False

    def run_items(
        self, table: np.ndarray, frame: int, boxes: Any, stream: Any, out: int, transform: int = 0
    ) -> None:  # fmt: skip
        """Do items (N,) whose frames count from the address `frame`; `boxes` is a view of the first ones on the GPU, or
        has the checked numbers of all on the host."""
        there, capturing = isinstance(boxes, ArrayView), is_capturing(stream)
        key = table.tobytes(), frame & 3, boxes.dtype if there else boxes.tobytes()
        if key != self._key:
            if capturing:
                raise InputError(
                    "a graph can't capture how this run's items are told to the GPU; make a run before with frames and "
                    "boxes at the same addresses on the GPU, and capture the next"
                )
            self._prepare(table, frame, None if there else boxes, dtype_name(boxes.dtype), stream)
            self._key = key
        self._is_captured = self._is_captured or capturing
        if capturing:
            _captured.append(self._memory)
        self.relaunch((frame, out, transform, boxes.pointer if there else self._boxes), stream)

    def relaunch(self, addresses: tuple[int, ...], stream: Any) -> None:
        """The launch of the last run by itself, of frames, results, transforms (or 0) and boxes at these addresses."""
        launch(self._prepared, addresses, stream)

    def kernel(self, table: np.ndarray, frame: int, box_dtype: str) -> tuple[Any, int]:
        """The kernel for such items, and how many values of a row a thread of it makes; 0 where it makes a column."""
        kind = self._kernel
        streams = kind.streams and not (kind.antialias or kind.letterbox or kind.samples or table["width"].min() < 2)
        values = COLUMNS if streams else 0
        words = streams and kind.layout == "NCHW" and kind.frame.dtype == "uint8" and kind.frame.stored in (3, 4)
        words = words and not (np.bitwise_or.reduce(table["frame"] | table["pitch"]) | frame) & 3
        words = bool(words and (table["frame"] + table["pitch"] * table["height"]).max() < MOST_BYTES)
        return _varied_kernel(kind, box_dtype, self._strategy, values, words, compute_capability()), values

    def _prepare(
        self, table: np.ndarray, frame: int, boxes: np.ndarray | None, box_dtype: str, stream: Any
    ) -> None:  # fmt: skip
        """Cut the work into units, bring the table there, and write the launch."""
        kind, rows, columns = self._kernel, table["rows"].astype(np.int64), table["columns"].astype(np.int64)
        kernel, values = self.kernel(table, frame, box_dtype)
        shared = kind.frame.channels if values and kind.layout == "NHWC" else 1  # values of a column that threads share
        few, band = FEW_WARPS * WARP * current().properties.multiprocessor_count, BAND
        along = -(-columns * shared // (WARP * max(values, 1))) * WARP
        while band > 1 and (rows * along).sum() < few * band:
            band //= 2
        units = -(-rows // band) * along
        offsets = np.concatenate([[0], units.cumsum()])
        if offsets[-1] > INT32_MAX:
            raise InputError("the items have more columns than one launch can address; split the batch")
        made = blockmap.build(self._strategy, offsets, threshold=UNITS)
        arrays: dict[str, Any] = {"table": table, **made.arrays}
        if boxes is not None:
            arrays["boxes"] = boxes
        given: dict[str, Any] = {"items": len(table), "units": int(offsets[-1]), "band": band}
        for name in ("gain", "bias", "pad"):
            vector = getattr(self.spec, name)
            if self.spec.kernel.many_channels:
                arrays[name] = vector
            else:
                given |= {f"{name}{channel}": value for channel, value in enumerate(vector.tolist())}
        places = dict(zip(arrays, accumulate([0, *(-(-a.nbytes // 16) * 16 for a in arrays.values())]), strict=False))
        last = list(arrays)[-1]
        block = np.zeros(places[last] + arrays[last].nbytes, np.uint8)
        for name, array in arrays.items():
            block[places[name] : places[name] + array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        if self._memory is None or self._is_captured or self._memory.shape[0] < block.nbytes:
            self._memory, self._is_captured = memory.DeviceArray((block.nbytes,), np.uint8, stream=stream), False
            self._keep.keep(self._memory)
        memory.copy(self._memory.pointer, block.ctypes.data, block.nbytes, stream)
        there = {name: self._memory.pointer + place for name, place in places.items()}
        self._boxes = there.pop("boxes", 0)
        blocks = -(-int(offsets[-1]) // UNITS) if made.blocks is None else made.blocks
        cuda = Cuda(function_of(kernel), (blocks, 1, 1, UNITS, 1, 1), current().device_id)
        numbers = [self._arguments.place(name) for name in ("frame", "out", "transform", "boxes")]
        arguments = self._arguments.words({**given, **there, "sides": there["table"]})
        self._prepared = PreparedLaunch(arguments, [(None, number) for number in numbers], cuda)


@cache
def _varied_kernel(
    kind: Kernel, box_dtype: str, strategy: str, values: int, words: bool, capability: tuple[int, int]
) -> Any:  # fmt: skip
    from octopus.backends.cuda import compile

    def build() -> Callable[..., Any]:
        from octopus.kernels.cuda import varied

        of = "maps" if kind.maps else "quads" if kind.quads else "boxes"
        return varied.build(
            kind.frame.channels, kind.dtype, kind.layout, kind=of, strategy=strategy, frame_dtype=kind.frame.dtype,
            box_dtype=box_dtype, filter=kind.filter, antialias=kind.antialias, edge=kind.edge,
            letterbox=kind.letterbox, pad_mode=kind.pad_mode, order=kind.frame.order,
            values=values, words=words,
        )  # fmt: skip

    form = f"by{values}{'-words' * words}"
    return compile.load(f"varied-{kind.name}-{box_dtype}-{strategy}-{form}", build)
