"""Crops whose items differ: of frames of any sizes, to sizes of their own, or of quadrilaterals; still one launch.

Each item has a record, `kernels.arguments.ITEM`: where its frame and its box lie, and where in the result it goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from octopus.arrays import checks, streams
from octopus.arrays.plan import Plan, Stage
from octopus.arrays.results import (
    check_family,
    check_host_memory,
    check_out,
    host_copy,
    itemsize,
    result_memory,
    result_view,
)
from octopus.arrays.views import ArrayView, view
from octopus.backends.cuda.device import is_capturing
from octopus.crop import check
from octopus.crop.cpu import CpuEngine
from octopus.crop.frame import Planes, frame_spec, frame_view, pillow_frame
from octopus.crop.spec import RUN_OPTIONS, CropOptions, FitHeight, make_spec
from octopus.errors import InputError, shown
from octopus.kernels.arguments import ITEM
from octopus.ragged import blockmap
from octopus.ragged.batch import RaggedBatch
from octopus.ragged.check import integers

LARGEST = "largest"
RECORD_BYTES = 36  # beside its record, what an item brings to the GPU: its first unit of work, and a box from the host
Numbers = NDArray[np.int64]


class Given(NamedTuple):
    """Frames and boxes of a call: one view of each frame, and per item the number of its frame."""

    frames: list[ArrayView]
    boxes: list[ArrayView]
    numbers: Numbers
    kind: str

    @property
    def per_item(self) -> tuple[int, ...]:
        """Of the numbers of one item."""
        return next(shape for shape, kind in check.KINDS.items() if kind == self.kind)


class Layout(NamedTuple):
    """Where items lie in a result: sizes of the crops and of what they fill, (N, 2), and where each begins."""

    sizes: Numbers
    outer: Numbers
    begins: Numbers
    shape: tuple[int, ...]  # of the memory


def read(frame: Any, boxes: Any, frame_index: Any, options: dict[str, Any]) -> Given:
    """Look at all frames and boxes; images of Pillow may change `channels` of the options."""
    if any(isinstance(each, Planes) for each in (frame if isinstance(frame, (list, tuple)) else [frame])):
        raise InputError(
            "NV12 and P010 frames take boxes (N, 4) or maps, of one frame to one size; make a call for each"
        )
    if isinstance(frame, (list, tuple)):
        frames, described, numbers = _listed(frame, boxes, frame_index, options)
    else:
        frames, described = [frame_view(frame)], [checks.boxes_view(boxes)]
        numbers, index = np.zeros(described[0].shape[0], np.int64), frame_index
        if index is not None or len(frames[0].shape) == 4:
            index = None if index is None else check.items_of(index)[0].frame_index
            check.check_frame_index(index, frames[0], len(numbers), "cpu")
            held = check.on_host(check.Items(index), frames[0].shape[0]).frame_index
            assert held is not None
            frames, numbers = _apart(frames[0]), held.astype(np.int64)
    shapes = {each.shape[1:] for each in described if each.shape[0]} or {described[0].shape[1:]}
    if len(shapes) > 1:
        raise InputError("boxes of one call must be all boxes, all maps or all quadrilaterals, found several kinds")
    for each in described:
        if each.shape[1:] != (4, 2):
            check.check_box_shape(each.shape, each.dtype)
        if each.device != described[0].device or (each.device == "cuda" and each.dtype != described[0].dtype):
            raise InputError("boxes of all frames must lie on one side, and on the GPU be of one dtype; convert them")
        if each.device == "cuda":
            check.check_gpu_boxes(each)
    return Given(frames, described, numbers, check.KINDS[shapes.pop()])


def _listed(
    frames: Sequence[Any], boxes: Any, frame_index: Any, options: dict[str, Any]
) -> tuple[list[ArrayView], list[ArrayView], Numbers]:
    if not frames:
        raise InputError("there are no frames: the list is empty, so that neither dtype nor library are known")
    if frame_index is not None or not isinstance(boxes, (list, tuple)) or len(boxes) != len(frames):
        found = f"a list of {len(boxes)}" if isinstance(boxes, (list, tuple)) else type(boxes).__name__
        raise InputError(
            f"a list of {len(frames)} frames takes a list of as many arrays of boxes, one for each, and no "
            f"frame_index; found {found}"
        )
    kinds = [dict(options) for _ in frames]
    views = [
        view(pillow_frame(each, kind), f"frame {i}") for i, (each, kind) in enumerate(zip(frames, kinds, strict=True))
    ]
    first = views[0]
    for i, each in enumerate(views):
        alike = (each.device, each.ordinal, each.dtype) == (first.device, first.ordinal, first.dtype)
        if not alike or len(each.shape) != 3 or each.shape[-1] != first.shape[-1] or kinds[i] != kinds[0]:
            raise InputError(
                "frames of a list must be (H, W, C) alike in all but height and width, found frame 0 of "
                f"{first.dtype} {first.shape} on {first.device} and frame {i} of {each.dtype} {each.shape} "
                f"on {each.device}"
            )
    options.update(kinds[0])
    described = [checks.boxes_view(each, f"boxes[{i}]") for i, each in enumerate(boxes)]
    numbers = np.repeat(np.arange(len(views)), [each.shape[0] for each in described])
    return views, described, numbers


def _apart(frames: ArrayView) -> list[ArrayView]:
    """The frames of an array of several."""
    parts = [frames.part(i, i + 1) for i in range(frames.shape[0])]
    owners = [part.owner[0] if frames.device == "cpu" else part.owner for part in parts]
    return [
        replace(part, shape=part.shape[1:], strides=part.strides[1:], owner=owner)
        for part, owner in zip(parts, owners, strict=True)
    ]


class VariedPlan(Plan):
    """What `CropPlan` is for calls whose items have records; without `allocate` also what does one call.

    `strategy` is how a thread of the GPU finds its item, see `octopus.blockmap`.
    """

    def __init__(
        self, given: Given, most: int, size: Any, device: Any, *, pad_to: Any = None, allocate: bool = True,
        stream: Any = None, strategy: blockmap.Strategy = blockmap.DEFAULT, **options: Any,
    ) -> None:  # fmt: skip
        self.max_boxes, self._size, self._kind, self._pad_to = most, size, given.kind, pad_to
        self._own_sizes = check.are_sizes(size)
        if isinstance(size, FitHeight):
            size.sizes(np.empty((0, 4)))  # which checks the rule
        elif self._own_sizes:
            sizes = self._size = np.array(integers(size, "sizes", 2))
            if sizes.shape != (most, 2) or (sizes < 1).any() or (sizes > 2**24).any():
                raise InputError(
                    f"sizes must be {most} heights and widths from 1 to 2**24, shape ({most}, 2), found {shown(size)}"
                )
        if pad_to is not None and pad_to != LARGEST:
            self._pad_to = checks.checked_size(pad_to)
        options |= {"size": (1, 1) if self._own_sizes else size, "padded": pad_to is not None}
        checked, model = CropOptions(**options), given.frames[0]
        if given.kind != "boxes":
            checked.check_maps(given.kind)
        for name, wrong in (("affine maps go", given.kind == "maps"), ("letterbox=True goes", checked.letterbox)):
            if wrong and (self._own_sizes or pad_to is not None):
                raise InputError(f"{name} with one size for all items; leave out sizes of their own and pad_to")
        if allocate:
            check_family(model, checked.dtype)
        self.spec = make_spec(model, checked)
        queue = self._begin(model, streams.device_for(model, device), stream)
        self._out = self._transform = None
        if allocate:
            sizes = self._most_sizes()
            self._pad_to = tuple(sizes.max(axis=0, initial=1).tolist()) if pad_to == LARGEST else self._pad_to
            self._out = self._new(self._layout(sizes).shape, self.spec.dtype)
            self._transform = self._new((most, 4), "float32") if checked.letterbox else None
        if queue is None:
            self.engine: Any = CpuEngine(self.spec, given.kind, varied=True)
        else:
            from octopus.crop.cuda import ItemsEngine

            self.engine = ItemsEngine(self.spec, given.kind, strategy, self._memory)
        self._hold()

    def _most_sizes(self) -> Numbers:
        """The largest sizes that runs may have."""
        size: Any = self._size
        if isinstance(size, FitHeight):
            if size.max_width is None:
                raise InputError("a plan must know how wide items are at most; give FitHeight a max_width")
            size = size.height, size.max_width
        return np.broadcast_to(
            np.array(size if self._own_sizes else self.spec.options.size, np.int64), (self.max_boxes, 2)
        )

    def _layout(self, sizes: Numbers) -> Layout:
        """Where crops of these sizes go."""
        count, channels, pad_to, outer = len(sizes), self.spec.frame.channels, self._pad_to, sizes
        if pad_to == LARGEST:
            pad_to = tuple(sizes.max(axis=0, initial=1).tolist())
        if pad_to is not None:
            outer = np.broadcast_to(np.array(pad_to), (count, 2))
            if (sizes > outer).any():
                item = int(np.argmax((sizes > outer).any(axis=1)))
                raise InputError(
                    f"item {item} of {sizes[item, 0]}x{sizes[item, 1]} is larger than pad_to={pad_to}; ask for more, "
                    f'or for pad_to="{LARGEST}"'
                )
        values = outer.prod(axis=1) * channels
        if values.max(initial=0) > checks.INT32_MAX:
            raise InputError("one item has more than 2**31 - 1 values; ask for a smaller size")
        ends = values.cumsum()
        if self._own_sizes and pad_to is None:
            return Layout(sizes, outer, ends - values, (int(values.sum()),))
        side = pad_to or self.spec.options.size
        one = (channels, *side) if self.spec.options.layout == "NCHW" else (*side, channels)
        return Layout(sizes, outer, ends - values, (count, *one))

    @property
    def gpu_bytes(self) -> int:
        """Device memory that the plan holds at most; frames and results that travel are held during a run alone."""
        own = 0 if self._out is None else result_view(self._out).nbytes
        return own + self.max_boxes * (ITEM.itemsize + RECORD_BYTES + 16 * self.spec.options.letterbox)

    def call(self, frame: Any, boxes: Any, out: Any, stream: Any, options: dict[str, Any]) -> Any:
        """A run of a `CropPlan`."""
        checks.check_known("run", options, RUN_OPTIONS)
        _check_own(options)
        for name in ("mean", "std"):
            if options.get(name) is not None:
                raise InputError(
                    f"{name} of each item goes with boxes of one size from one array of frames; leave it out"
                )
        if out is self._out is None:
            self._head(None, 0)  # which refuses that
        return self.run(read(frame, boxes, options.get("frame_index"), {}), out, stream)

    def run(self, given: Given, out: Any, stream: Any) -> Any:
        """The answer of a call of what the plan was made for, in memory of its own, in `out`, or in new one."""
        with self._alone:
            self._check(given)
            checks.check_stream(stream, self.device)
            values, count = self._values(given, stream), len(given.numbers)
            layout = self._layout(self._sizes(given, values))
            dtype, letterbox = self.spec.dtype, self.spec.options.letterbox
            if self.device == "cpu":
                check_host_memory(int(np.prod(layout.shape)) * itemsize(dtype) * (out is self._out is None))
            result, transform = out, self._transform
            if out is None and self._out is not None:
                result = self._head(self._out, layout.shape[0])
            elif out is None:
                result = self._result(layout.shape, dtype, stream)
            if letterbox:
                transform = self._result((count, 4), "float32", stream) if transform is None else transform
                transform = self._head(transform, count)
            target = result_view(result)
            check_out(target, layout.shape, dtype, self._model.device)
            checks.check_apart(target, **{f"frame {i}": frame for i, frame in enumerate(given.frames)})
            checks.check_apart(
                target, **{"boxes": given.boxes[0], **{f"boxes[{i}]": b for i, b in enumerate(given.boxes)}}
            )
            if count:
                self._execute(
                    given, values, layout, target, None if transform is None else view(transform, "transform"), stream
                )
        if letterbox:
            return result, transform
        if self._pad_to is not None:
            return result, layout.sizes
        if not self._own_sizes:
            return result
        channels = np.full((count, 1), self.spec.frame.channels)
        sides = (channels, layout.sizes) if self.spec.options.layout == "NCHW" else (layout.sizes, channels)
        return RaggedBatch.from_arrays(result, np.concatenate(sides, axis=1))

    def _result(self, shape: tuple[int, ...], dtype: str, stream: Any) -> Any:
        queue = streams.stream_for(self._model, None, stream) if self.device == "cuda" and stream is not None else None
        return result_memory(self._model, shape, dtype, queue)

    def _check(self, given: Given) -> None:
        kind, planned = self._kind, (self._model.device, *self.spec.frame[:2])
        if given.kind != kind:
            raise InputError(
                f"the plan is for {kind}, found {given.kind}; make one with the box_shape {given.per_item}"
            )
        for frame in given.frames:
            found = frame.device, *frame_spec(frame, self.spec.options.channels)[:2]
            if found != planned:
                raise InputError(f"the plan is for frames of (side, dtype, channels) {planned}, found {found}")
        if len(given.numbers) > self.max_boxes:
            raise InputError(f"the plan is for {self.max_boxes} boxes, found {len(given.numbers)}; make a larger plan")
        if given.boxes[0].device == "cuda" and self.device == "cpu":
            raise InputError("boxes are on the GPU but the CPU was asked to work; copy them to the host")

    def _values(self, given: Given, stream: Any) -> NDArray[np.float32] | None:
        """Checked boxes as float32, (N, numbers); None of those on the GPU that need not be read."""
        there, outside = given.boxes[0].device == "cuda", self.spec.options.outside
        if there and outside != "error" and not isinstance(self._size, FitHeight):
            return None
        if there and is_capturing(streams.stream_for(given.frames[0], given.boxes[0], stream)):
            raise InputError(
                'outside="error" and FitHeight read the boxes, which a graph that is captured does not allow'
            )
        found = [host_copy(each.owner) if there else each for each in given.boxes]
        if not there or outside == "error":
            found = [self._checked(boxes, given, i) for i, boxes in enumerate(found)]
        return np.concatenate(
            [np.asarray(each, np.float32).reshape(-1, int(np.prod(given.per_item))) for each in found]
        )

    def _checked(self, boxes: Any, given: Given, number: int) -> NDArray[np.float32]:
        (height, width, _), options = given.frames[number].shape, self.spec.options
        if not boxes.shape[0]:
            return np.empty((0, *given.per_item), np.float32)
        try:
            if self._kind == "boxes":
                return check.check_host_boxes(boxes, width, height, options.outside)
            if self._kind == "maps":
                return check.check_host_maps(boxes, width, height, options.size, options.outside)
            return check.check_host_quads(boxes, width, height, options.outside)
        except InputError as error:
            if len(given.boxes) == 1:
                raise
            raise InputError(f"of frame {number}, {error}") from None

    def _sizes(self, given: Given, values: NDArray[np.float32] | None) -> Numbers:
        size, count = self._size, len(given.numbers)
        if not isinstance(size, FitHeight):
            return self._most_sizes()[:count]
        assert values is not None
        if self._kind == "boxes" and self.spec.options.outside == "clip":
            sides = np.array([frame.shape[1::-1] for frame in given.frames])[given.numbers]
            values = np.clip(values, 0, np.tile(sides, 2))
        return size.sizes(values.reshape(count, *given.per_item))

    def _execute(
        self, given: Given, values: Any, layout: Layout, out: ArrayView, transform: ArrayView | None, stream: Any
    ) -> None:  # fmt: skip
        frames, item = given.frames, given.frames[0].dtype.itemsize
        table = np.zeros(len(given.numbers), ITEM)
        shapes = np.array([frame.shape for frame in frames])[given.numbers]
        for name, column in (
            ("height", shapes[:, 0]), ("width", shapes[:, 1]), ("rows", layout.outer[:, 0]),
            ("columns", layout.outer[:, 1]), ("inner_rows", layout.sizes[:, 0]), ("inner_columns", layout.sizes[:, 1]),
            ("out", layout.begins), ("box", np.arange(len(table)) * int(np.prod(given.per_item))),
        ):  # fmt: skip
            table[name] = column
        pitches = np.array([frame.strides[0] for frame in frames]) // item
        pointers = np.array([frame.pointer for frame in frames])
        if self.device == "cpu":
            table["frame"], table["pitch"] = pointers[given.numbers], pitches[given.numbers]
            self.engine.run_items(table, self._kind, values, out, transform)
            return
        results = [array for array in (out, transform) if array is not None]
        queue = self._memory.enter(stream, (*frames, *results, *given.boxes), given.boxes[0])
        there = given.boxes if given.boxes[0].device == "cuda" else []
        for first, boxes in zip(accumulate([0, *(each.shape[0] for each in there)]), there, strict=False):
            part = slice(first, first + boxes.shape[0])
            table["box"][part] += (boxes.pointer - there[0].pointer) // boxes.dtype.itemsize - first * int(
                np.prod(given.per_item)
            )
        boxes = there[0] if there else values
        if frames[0].device == "cuda":
            table["frame"], table["pitch"] = ((pointers - pointers[0]) // item)[given.numbers], pitches[given.numbers]
            self.engine.run_items(table, pointers[0], boxes, out.pointer, transform and transform.pointer, queue)
            return
        sizes = np.array([frame.nbytes for frame in frames]) // item
        table["frame"], table["pitch"] = (sizes.cumsum() - sizes)[given.numbers], shapes[:, 1] * shapes[:, 2]

        def submit(pixels: int, result: int, way_back: int = 0) -> None:
            self.engine.run_items(table, pixels, boxes, result, way_back, queue)

        nbytes = int(sizes.sum()) * item, [array.nbytes for array in results]
        Stage(*nbytes, queue).run(_Frames(frames), results, queue, submit)


class _Frames(NamedTuple):
    """Several frames that are brought to the GPU."""

    planes: list[ArrayView]


def _check_own(options: dict[str, Any]) -> None:
    for name in ("flip", "count"):
        if options.pop(name, None) is not None:
            raise InputError(f"{name} goes with boxes of one size from one array of frames; leave it out")


def planned(frame: Any, box_shape: tuple[int, ...], options: dict[str, Any]) -> Given:
    """What a plan is made for: frames like those to come, and no boxes."""
    boxes, listed = np.empty((0, *box_shape), np.float32), isinstance(frame, (list, tuple))
    several = not listed and len(frame_view(frame).shape) == 4
    return read(frame, [boxes] * len(frame) if listed else boxes, np.empty(0, int) if several else None, options)


def crop(frame: Any, boxes: Any, out: Any, stream: Any, options: dict[str, Any]) -> Any:
    """A call of `crop_resize` whose items have records."""
    _check_own(options)
    given = read(frame, boxes, options.pop("frame_index", None), options)
    size, device = options.pop("size"), options.pop("device", "auto")
    plan = VariedPlan(given, len(given.numbers), size, device, allocate=False, stream=stream, **options)
    return plan.run(given, out, stream)
