"""Crops whose items differ: of frames of any sizes, to sizes of their own, or of quadrilaterals; still one launch.

Each item has a record, `kernels.arguments.ITEM`: where its frame and its box lie, and where in the result it goes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from octopus.arrays import checks, results, streams
from octopus.arrays.plan import Plan, Stage
from octopus.arrays.views import ArrayView, view
from octopus.backends.cuda.device import is_capturing
from octopus.crop import check
from octopus.crop.cpu import CpuEngine
from octopus.crop.frame import Planes, frame_spec, pillow_frame, upright
from octopus.crop.spec import RUN_OPTIONS, CropOptions, FitHeight, make_spec
from octopus.errors import InputError, shown
from octopus.kernels.arguments import ITEM
from octopus.ragged import blockmap
from octopus.ragged.batch import RaggedBatch
from octopus.ragged.check import integers

LARGEST = "largest"
ELSE_BYTES = 36  # beside its record, what an item brings to the GPU: its first unit of work, and a box from the host
LONELY = "goes with boxes and maps of one size from one array of frames; leave it out"
Numbers = NDArray[np.int64]


class Given(NamedTuple):
    """Frames and boxes of a call: one view of each frame, and per item the number of its frame."""

    frames: list[ArrayView]
    boxes: list[ArrayView]
    numbers: Numbers
    shape: tuple[int, ...]  # of one box, map or quadrilateral

    @property
    def kind(self) -> str:
        return check.KINDS[self.shape]

    @property
    def there(self) -> bool:
        return self.boxes[0].device == "cuda"


class Layout(NamedTuple):
    """Where items lie in a result: sizes of the crops and of what they fill, (N, 2), and where each begins."""

    sizes: Numbers
    outer: Numbers
    begins: Numbers
    shape: tuple[int, ...]  # of the memory


def read(frame: Any, boxes: Any, options: dict[str, Any], own: tuple[str, ...] = ("flip", "count")) -> Given:
    """Look at all frames and boxes; images of Pillow may change `channels` of the options, and `own` must not be there.

    A frame that isn't in a list is one of a list of one.
    """
    for name in own:
        if options.pop(name, None) is not None:
            raise InputError(f"{name} {LONELY}")
    listed, frames = isinstance(frame, (list, tuple)), frame
    if not listed:
        frames, boxes = [frame], [boxes]
    if options.pop("frame_index", None) is not None or (listed and not isinstance(boxes, (list, tuple))):
        raise InputError("a list of frames takes a list of arrays of boxes, one for each frame, and no frame_index")
    if not frames or len(boxes) != len(frames):
        raise InputError(f"there must be a frame or more and boxes for each, found {len(frames)} and {len(boxes)}")
    names = [f"frame {i}" if listed else "frame" for i in range(len(frames))]
    kinds, views = [dict(options) for _ in frames], []
    for name, each, kind in zip(names, frames, kinds, strict=True):
        if isinstance(each, Planes):
            raise InputError(f"a frame of video {LONELY[:-14]}, found {each!r}")
        views.append(upright(view(pillow_frame(each, kind), name)))
    options.update(kinds[0])
    first = views[0]
    for name, each, kind in zip(names, views, kinds, strict=True):
        if len(each.shape) == 4:
            raise InputError(
                f"{name} has the shape {each.shape}; several frames with sizes, pad_to or quadrilaterals come as a "
                "list, with a list of each one's boxes: list(frames)"
            )
        alike = (each.device, each.ordinal, each.dtype) == (first.device, first.ordinal, first.dtype)
        if not alike or each.shape[2:] != first.shape[2:] or kind != kinds[0]:
            raise InputError(
                f"frames of a list must be alike in all but height and width, found frame 0 of {first.dtype} "
                f"{first.shape} on {first.device} and {name} of {each.dtype} {each.shape} on {each.device}"
            )
    described = [checks.boxes_view(each, f"boxes[{i}]" if listed else "boxes") for i, each in enumerate(boxes)]
    shapes = {each.shape[1:] for each in described if each.shape[0]} or {described[0].shape[1:]}
    for each in described:
        if each.shape[1:] not in check.KINDS:
            check.check_box_shape(each.shape, each.dtype)
        if each.device != described[0].device or (each.device == "cuda" and each.dtype != described[0].dtype):
            raise InputError("boxes of all frames must lie on one side, and on the GPU be of one dtype; convert them")
        if each.device == "cuda":
            check.check_gpu_boxes(each)
    if len(shapes) > 1:
        raise InputError("boxes of one call must be all boxes, all maps or all quadrilaterals, found several kinds")
    numbers = np.repeat(np.arange(len(views)), [each.shape[0] for each in described])
    return Given(views, described, numbers, shapes.pop())


class VariedPlan(Plan):
    """What `CropPlan` is for calls whose items have records; without `allocate` also what does one call.

    `strategy` is how a thread of the GPU finds its item, see `octopus.blockmap`.
    """

    def __init__(
        self, given: Given, most: int, size: Any, device: Any, *, pad_to: Any = None, allocate: bool = True,
        stream: Any = None, strategy: blockmap.Strategy = blockmap.DEFAULT, **options: Any,
    ) -> None:  # fmt: skip
        self.max_boxes, self._kind, self._own_sizes = most, given.kind, check.are_sizes(size)
        self._rule = size if isinstance(size, FitHeight) else None
        largest = isinstance(pad_to, str) and pad_to == LARGEST
        self._pad_to = pad_to if largest or pad_to is None else checks.checked_size(pad_to)
        options |= {"size": (1, 1) if self._own_sizes else size, "padded": pad_to is not None}
        checked, model = CropOptions(**options), given.frames[0]
        if given.kind != "boxes":
            checked.check_maps(given.kind)
        for name, wrong in (("affine maps go", given.kind == "maps"), ("letterbox=True goes", checked.letterbox)):
            if wrong and (self._own_sizes or pad_to is not None):
                raise InputError(f"{name} with one size for all items; leave out sizes of their own and pad_to")
        if self._own_sizes and pad_to is None and checked.dtype == results.BFLOAT16:
            raise InputError("a RaggedBatch can't hold bfloat16; ask for float32 or float16, or for pad_to")
        self._sizes = self._most_sizes(size if self._own_sizes else checked.size, allocate)
        if allocate:
            results.check_family(model, checked.dtype)
        self.spec = make_spec(model, checked)
        queue = self._begin(model, streams.device_for(model, device), stream)
        self._out = self._transform = None
        if allocate:
            self._pad_to = tuple(self._sizes.max(axis=0, initial=1).tolist()) if largest else self._pad_to
            self._out = self._new(self._layout(self._sizes).shape, self.spec.dtype)
            self._transform = self._new((most, 4), "float32") if checked.letterbox else None
        if queue is None:
            self.engine: Any = CpuEngine(self.spec, given.kind, varied=True)
        else:
            from octopus.crop.cuda import ItemsEngine

            self.engine = ItemsEngine(self.spec, given.kind, strategy, self._memory)
        if allocate:
            self._hold()

    def _most_sizes(self, size: Any, allocate: bool) -> Numbers:
        """Sizes of the items, (max_boxes, 2); of a rule the largest."""
        most = self.max_boxes
        if self._rule is not None:
            self._rule.sizes(np.empty((0, 4)))  # which checks it
            if self._rule.max_width is None and allocate:
                raise InputError("a plan must know how wide items are at most; give FitHeight a max_width")
            size = self._rule.height, self._rule.max_width or 1
        elif self._own_sizes:
            size = np.array(integers(size, "sizes", 2))
            if size.shape != (most, 2) or (size < 1).any() or (size > checks.MAX_SIDE).any():
                raise InputError(
                    f"sizes must be {most} heights and widths from 1 to {checks.MAX_SIDE}, shape ({most}, 2), found "
                    f"{shown(size)}"
                )
        return np.broadcast_to(np.array(size, np.int64), (most, 2))

    def _layout(self, sizes: Numbers) -> Layout:
        count, channels, pad_to, outer = len(sizes), self.spec.frame.channels, self._pad_to, sizes
        if pad_to == LARGEST:
            pad_to = tuple(sizes.max(axis=0, initial=1).tolist())
        if pad_to is not None:
            outer = np.broadcast_to(np.array(pad_to), (count, 2))
            if (larger := (sizes > outer).any(axis=1)).any():
                item = int(np.argmax(larger))
                raise InputError(
                    f"item {item} of {sizes[item, 0]}x{sizes[item, 1]} is larger than pad_to={pad_to}; ask for more, "
                    f'or for pad_to="{LARGEST}"'
                )
        values = outer.prod(axis=1) * channels
        if values.max(initial=0) > checks.INT32_MAX:
            raise InputError("one item has more than 2**31 - 1 values; ask for a smaller size")
        ends = values.cumsum()
        shape: tuple[int, ...] = (int(values.sum()),)
        if not self._own_sizes or pad_to is not None:
            side = pad_to or self.spec.options.size
            shape = (count, channels, *side) if self.spec.options.layout == "NCHW" else (count, *side, channels)
        return Layout(sizes, outer, ends - values, shape)

    @property
    def gpu_bytes(self) -> int:
        """Device memory that the plan holds at most; frames and results that travel are held during a run alone."""
        own = 0 if self._out is None else results.result_view(self._out).nbytes
        return own + self.max_boxes * (ITEM.itemsize + ELSE_BYTES + 16 * self.spec.options.letterbox)

    def call(self, frame: Any, boxes: Any, out: Any, stream: Any, options: dict[str, Any]) -> Any:
        checks.check_known("run", options, RUN_OPTIONS)
        if out is self._out is None:
            self._head(None, 0)  # which refuses that
        return self.run(read(frame, boxes, options, ("flip", "count", "mean", "std")), out, stream)

    def run(self, given: Given, out: Any, stream: Any) -> Any:
        """The answer of a call of what the plan was made for, in memory of its own, in `out`, or in new one."""
        with self._alone:
            self._check(given)
            checks.check_stream(stream, self.device)
            values, count, options = self._values(given, stream), len(given.numbers), self.spec.options
            layout = self._layout(self._sizes[:count] if self._rule is None else self._ruled(given, values))
            result, transform = out, self._transform
            if out is None:
                result = self._memory_of(self._out, layout.shape, self.spec.dtype, stream)
            if options.letterbox:
                transform = self._memory_of(transform, (count, 4), "float32", stream)
            target = results.result_view(result)
            results.check_out(target, layout.shape, self.spec.dtype, self._model.device)
            for name, arrays in (("frame", given.frames), ("boxes", given.boxes)):
                for array in arrays:
                    checks.check_apart(target, **{name: array})
            if count:
                targets = [target] if transform is None else [target, view(transform, "transform")]
                self._execute(given, values, layout, targets, stream)
        if options.return_transform:
            return result, transform
        if self._pad_to is not None:
            return result, layout.sizes
        if not self._own_sizes:
            return result
        channels = np.full((count, 1), self.spec.frame.channels)
        sides = (channels, layout.sizes) if options.layout == "NCHW" else (layout.sizes, channels)
        return RaggedBatch.from_arrays(result, np.concatenate(sides, axis=1))

    def _memory_of(self, own: Any, shape: tuple[int, ...], dtype: str, stream: Any) -> Any:
        if own is not None:
            return self._head(own, shape[0])
        queue = None
        if self.device == "cpu":
            results.check_host_memory(int(np.prod(shape)) * results.itemsize(dtype))
        elif stream is not None:
            queue = streams.stream_for(self._model, None, stream)
        return results.result_memory(self._model, shape, dtype, queue)

    def _check(self, given: Given) -> None:
        kind, wanted = self._kind, (self._model.device, *self.spec.frame[:2])
        if given.kind != kind:
            raise InputError(f"the plan is for {kind}, found {given.kind}; make one with the box_shape {given.shape}")
        for frame in given.frames:
            found = frame.device, *frame_spec(frame, self.spec.options.channels)[:2]
            if found != wanted:
                raise InputError(f"the plan is for frames of (side, dtype, channels) {wanted}, found {found}")
        check.check_room(len(given.numbers), self.max_boxes, given.boxes[0].device, self.device)

    def _values(self, given: Given, stream: Any) -> NDArray[np.float32] | None:
        """Checked boxes as float32, (N, ...); None of those on the GPU that need not be read."""
        options, refuses = self.spec.options, not given.there or self.spec.options.outside == "error"
        if not refuses and self._rule is None:
            return None
        if given.there and is_capturing(streams.stream_for(given.frames[0], given.boxes[0], stream)):
            raise InputError(
                'outside="error" and FitHeight read the boxes, which a graph that is captured does not allow'
            )
        found = [np.empty((0, *given.shape), np.float32)]
        for number, (boxes, frame) in enumerate(zip(given.boxes, given.frames, strict=True)):
            held: Any = results.host_copy(boxes.owner) if given.there else boxes
            if not boxes.shape[0] or not refuses:
                found.append(np.zeros((boxes.shape[0], *given.shape), np.float32) if not boxes.shape[0] else held)
                continue
            height, width = frame.shape[:2]
            try:
                found.append(check.check_host_items(self._kind, held, width, height, options.outside, options.size))
            except InputError as error:
                raise InputError(f"of frame {number}, {error}" if len(given.boxes) > 1 else str(error)) from None
        return np.concatenate(found, dtype=np.float32, casting="unsafe")

    def _ruled(self, given: Given, values: Any) -> Numbers:
        assert self._rule is not None
        if self._kind == "boxes" and self.spec.options.outside == "clip":
            sides = np.array([frame.shape[1::-1] for frame in given.frames])[given.numbers]
            values = np.clip(values, 0, np.tile(sides, 2))
        return self._rule.sizes(values)

    def _execute(self, given: Given, values: Any, layout: Layout, targets: list[ArrayView], stream: Any) -> None:
        frames, item, step = given.frames, given.frames[0].dtype.itemsize, int(np.prod(given.shape))
        shapes = np.array([frame.shape for frame in frames])
        pitches, pointers = np.array([(frame.strides[0], frame.pointer) for frame in frames]).T
        table = np.zeros(len(given.numbers), ITEM)
        table["out"], table["box"] = layout.begins, np.arange(len(table)) * step
        table["rows"], table["columns"] = layout.outer.T
        table["inner_rows"], table["inner_columns"] = layout.sizes.T
        table["height"], table["width"] = shapes[given.numbers, :2].T

        def place(starts: Any, pitches: Any) -> None:
            table["frame"], table["pitch"] = starts[given.numbers], pitches[given.numbers]

        if self.device == "cpu":
            place(pointers, pitches // item)
            self.engine.run_items(table, self._kind, values, *targets)
            return
        queue = self._memory.enter(stream, (*frames, *targets, *given.boxes), given.boxes[0])
        boxes = given.boxes[0] if given.there else values
        if given.there:  # whose numbers are counted from the first array's
            bases = np.array([(each.pointer - boxes.pointer) // boxes.dtype.itemsize for each in given.boxes])
            counts = np.array([each.shape[0] for each in given.boxes])
            table["box"] += (bases - (counts.cumsum() - counts) * step)[given.numbers]
        if frames[0].device == "cuda":
            place((pointers - pointers.min()) // item, pitches // item)
            self.engine.run_items(table, int(pointers.min()), boxes, queue, *(each.pointer for each in targets))
            return
        sizes = np.array([frame.nbytes for frame in frames]) // item
        place(sizes.cumsum() - sizes, shapes[:, 1] * shapes[:, 2])
        stage = Stage(int(sizes.sum()) * item, [array.nbytes for array in targets], queue)
        stage.run(
            frames, targets, queue, lambda pixels, *made: self.engine.run_items(table, pixels, boxes, queue, *made)
        )


def planned(frame: Any, box_shape: tuple[int, ...], options: dict[str, Any]) -> Given:
    boxes = np.empty((0, *box_shape), np.float32)
    return read(frame, [boxes] * len(frame) if isinstance(frame, (list, tuple)) else boxes, options)


def crop(frame: Any, boxes: Any, out: Any, stream: Any, options: dict[str, Any]) -> Any:
    given = read(frame, boxes, options)
    size, device = options.pop("size"), options.pop("device", "auto")
    plan = VariedPlan(given, len(given.numbers), size, device, allocate=False, stream=stream, **options)
    return plan.run(given, out, stream)
