"""The compiled kernel of a crop-and-resize call: what it is checked for, and how it runs on the caller's arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from octopus.arrays import streams
from octopus.arrays.memory import PlanMemory, Stage
from octopus.arrays.results import check_out
from octopus.arrays.views import ArrayView, dtype_name, view
from octopus.backends.cuda.device import current
from octopus.crop.check import (
    Room,
    are_maps,
    check_count,
    check_host_boxes,
    check_host_maps,
    check_planned_boxes,
    check_planned_frame,
    load,
)
from octopus.crop.cpu import CpuEngine
from octopus.crop.cuda import CudaEngine, index_of, pointers_of
from octopus.crop.items import NONE, HostItems, Items, check_items, check_known_count, on_host
from octopus.crop.launch import INSIDE, KNOWN_LAUNCHES, Ready
from octopus.crop.options import CropOptions
from octopus.crop.spec import make_spec
from octopus.errors import InputError


class CropKernel:
    """A kernel for frames and options of one kind, without memory for what it makes.

    Parameters
    ----------
    frame : ArrayView
        A frame like those to come; its pixels are not read.
    options : CropOptions
    max_boxes : int
        Most boxes of a run.
    device : {"cpu", "cuda"}
        For the GPU `load` is to follow.
    maps : bool
        Whether the first boxes to come are affine maps, whose kernel is then loaded first.

    Raises
    ------
    InputError
        For options that don't fit the frame or `maps`, or more boxes than a launch can address.
    """

    stage: Stage | None = None  # of a plan for frames that come from the host to the GPU

    def __init__(
        self, frame: ArrayView, options: CropOptions, max_boxes: int, device: str, maps: bool = False
    ) -> None:
        if maps:
            options.check_maps()
        self.spec = make_spec(frame, options)
        check_count(self.spec, max_boxes)
        self.max_boxes, self.device, self._maps_first = max_boxes, device, maps
        self.model = frame.unowned  # the kernel must not keep the frame alive
        self.host_to_gpu = device == "cuda" and frame.device == "cpu"
        # What the checks have found good; another array of the same layout needs no second look.
        self._good_frame: tuple[Any, ...] | None = None
        self._good_boxes: tuple[Any, ...] | None = None
        self._good_items: tuple[Any, ...] | None = None
        self._good_out: tuple[Any, ...] | None = None
        # A call within a call, as of a signal's handler, must not overwrite that one's boxes.
        self._busy = False
        self._repeats: dict[tuple[Any, ...], _Repeat] = {}
        self.engine: Any = CpuEngine(self.spec, maps) if device == "cpu" else None
        load()

    def load(self, upload_boxes: int, box_dtype: str, index_dtype: str, queue: Any) -> None:
        """Load the GPU's kernel, and reserve what up to `upload_boxes` boxes from the host need there."""
        self.engine = CudaEngine(
            self.spec, upload_boxes, self.model, box_dtype, index_dtype, queue, self._maps_first
        )
        self.memory = PlanMemory(queue)
        self.memory.keep(*self.engine.owned)

    def check(self, frame: ArrayView, boxes: ArrayView, items: Items, most: int | None = None) -> None:
        """Refuse what the kernel is not for; values of arrays from the host are checked by `execute`.

        `most` is the number of items that are made, where the host knows it.
        """
        if frame.layout != self._good_frame:
            check_planned_frame(frame, self.spec, self.model, self.host_to_gpu)
            self._good_frame = frame.layout
        if boxes.layout != self._good_boxes:
            check_planned_boxes(boxes, self.max_boxes, self.device)
            if are_maps(boxes.shape):
                self.spec.options.check_maps()
            self._good_boxes = boxes.layout
        if most is not None:
            check_known_count(most, boxes.shape[0])
        if self.spec.frame.indexed or items is not NONE:
            layout = (boxes.shape[0], boxes.device, *items.layout)
            if layout != self._good_items:
                if items.mean is not None and not self.spec.is_scaled_alone:
                    raise InputError(
                        "mean and std of each item were given, and others when the plan was made"
                    )
                check_items(items, frame, boxes, self.spec.frame.channels, self.device)
                self._good_items = layout

    def check_out(self, out: ArrayView, count: int) -> None:
        """Refuse a result that is not exactly what a run would have made."""
        layout = (count, *out.layout)
        if layout != self._good_out or out.device == "cpu":  # on the host an array may also be read-only
            check_out(out, self.spec.shape(count), self.spec.dtype, self.model.device)
            self._good_out = layout

    def execute(
        self, frame: ArrayView, boxes: ArrayView, items: Items, most: int | None, out: ArrayView, transform: Any,
        stream: Any,
    ) -> None:  # fmt: skip
        """Do the work of a run whose arguments `check` has seen; `transform` is an array or None.

        Raises
        ------
        InputError
            For wrong values among what comes from the host.
        """
        alike = most is None and transform is None and self.device == "cuda"
        if alike and self._repeat(frame, boxes, items, out, stream):
            return
        within, self._busy = self._busy, True
        written = None if transform is None else view(transform, "transform")
        try:
            if most is not None:
                boxes, items, out, written = _first(most, boxes, items, out, written)
            host_boxes: np.ndarray | Room | None = None
            if boxes.device == "cpu":
                room = None
                if self.device == "cuda" and not within and not are_maps(boxes.shape):
                    room = self.engine.room(frame, boxes.shape[0], items.own)
                checked = self._checked(boxes, frame, room)
                host_boxes = checked if room is None else room
            given = on_host(items, frame.shape[0])
            if not boxes.shape[0]:
                return
            if self.device == "cpu":
                self.engine.run(frame, host_boxes, out, given, written)
                return
            results = (out,) if written is None else (out, written)
            queue = self.memory.enter(stream, (*frame.planes, boxes, *results, *items.arrays), boxes)
            refuses = boxes.device == "cuda" and self.spec.options.outside == "error"
            found = self.engine.read_boxes(boxes, queue) if refuses else None
            if items.counted is not None and (refuses or self.stage is not None):
                # The host waits anyway, and must know which boxes to check, and which items to bring back.
                known = int(self.engine.read(items.counted, queue).item())
                known = min(max(known, 0), boxes.shape[0])
                boxes, items, out, written = _first(known, boxes, items._replace(counted=None), out, written)
            if found is not None:
                self._checked(found[: boxes.shape[0]], frame)
            if not boxes.shape[0]:
                return
            work = _Work(boxes, host_boxes, items, given, queue)
            if self.stage is not None:

                def submit(pixels: int, result: int, way_back: int) -> None:
                    self._submit(frame.packed_at(pixels), work, result, way_back)

                self.stage.run(frame, (out, written), queue, submit)
                return
            self._submit(frame, work, out.pointer, 0 if written is None else written.pointer)
            if alike and not given.any:
                self._remember(frame, boxes, items, out, host_boxes)
        finally:
            self._busy = within

    def _remember(
        self,
        frame: ArrayView,
        boxes: ArrayView,
        items: Items,
        out: ArrayView,
        host_boxes: np.ndarray | Room | None,
    ) -> None:
        """Let `_repeat` do the runs that look like this one, where a launch is all they need."""
        there = [array for array in (frame, boxes, out, *items.arrays) if array.device == "cuda"]
        foreign = any(array.after is not None or array.family != frame.family for array in there)
        room = host_boxes if isinstance(host_boxes, Room) else None
        waits = room is None and (boxes.device == "cpu" or self.spec.options.outside == "error")
        if foreign or waits or type(frame) is not ArrayView or are_maps(boxes.shape):
            return
        dtype = dtype_name(boxes.dtype) if room is None else INSIDE
        ready = self.engine.ready(frame, dtype, boxes.shape[0], out.pointer, items)
        if ready is not None:
            if len(self._repeats) >= KNOWN_LAUNCHES:
                self._repeats.clear()
            self._repeats[_likeness(frame, boxes, items, out)] = _Repeat(ready, room, current().device_id)

    def _repeat(self, frame: ArrayView, boxes: ArrayView, items: Items, out: ArrayView, stream: Any) -> bool:
        """Do a run that differs from one before in addresses and boxes alone; False if there was none.

        What was found good then is not looked at again.
        """
        known = self._repeats.get(_likeness(frame, boxes, items, out))
        if known is None or self._busy:
            return False
        queue = streams.stream_for(frame, boxes, stream)
        if queue is not self.memory.queue or not streams.is_current_gpu(known.ordinal):
            return False
        if known.room is None:
            self.engine.fire(known.ready, frame, boxes.pointer, out.pointer, queue, items)
            return True
        self._busy = True
        try:
            self.engine.refuse_captured(queue)
            height, width = frame.shape[-3:-1]
            check_host_boxes(boxes, width, height, self.spec.options.outside, known.room)
            self.engine.fire(known.ready, frame, 0, out.pointer, queue)
        finally:
            self._busy = False
        return True

    def _checked(
        self, boxes: np.ndarray | ArrayView, frame: ArrayView, room: Room | None = None
    ) -> np.ndarray:
        (height, width), options = frame.shape[-3:-1], self.spec.options
        if are_maps(boxes.shape):
            return check_host_maps(boxes, width, height, options.size, options.outside)
        return check_host_boxes(boxes, width, height, options.outside, room)

    def _submit(self, frame: ArrayView, work: _Work, out: int, transform: int) -> None:
        """Queue the kernel for a frame on the GPU, and the upload of what comes from the host."""
        boxes, host_boxes, items, given, queue = work
        if host_boxes is not None or given.any:
            self.engine.run_uploading(
                frame, boxes if host_boxes is None else host_boxes, items, given, out, transform, queue
            )
            return
        pointer, dtype = index_of(items)
        self.engine.launch(
            frame, boxes.pointer, dtype_name(boxes.dtype), boxes.shape[0], out, queue,
            frame_index=pointer, index_dtype=dtype, transform=transform, items=pointers_of(items),
            maps=are_maps(boxes.shape),
        )  # fmt: skip


def _first(
    count: int, boxes: ArrayView, items: Items, out: ArrayView, written: ArrayView | None
) -> tuple[ArrayView, Items, ArrayView, ArrayView | None]:
    """Of a run's arrays what belongs to the first items; what is behind them is left alone."""
    return boxes.head(count), items.head(count), out.head(count), written and written.head(count)


def _likeness(frame: ArrayView, boxes: ArrayView, items: Items, out: ArrayView) -> tuple[Any, ...]:
    """All that the checks and the launch of a run look at, but boxes, and of addresses how they are aligned."""
    own = None if items is NONE else tuple(map(_kind_of, items))
    return (
        own,
        frame.shape, frame.strides, frame.dtype, frame.device, frame.family, frame.ordinal, frame.after,
        boxes.shape, boxes.strides, boxes.dtype, boxes.device, boxes.family, boxes.ordinal, boxes.after,
        out.shape, out.family, out.ordinal, out.after, frame.pointer & 3, out.pointer & 15,
        boxes.pointer & 7,
    )  # fmt: skip


def _kind_of(array: ArrayView | None) -> tuple[Any, ...] | None:
    return (
        None
        if array is None
        else (*array.layout, array.family, array.ordinal, array.after, array.pointer & 7)
    )


class _Repeat(NamedTuple):
    """What runs that look alike share: their launch, where their boxes from the host go, and the GPU's number."""

    ready: Ready
    room: Room | None
    ordinal: int


class _Work(NamedTuple):
    """What a run brings to the GPU beside the frame."""

    boxes: ArrayView
    host_boxes: np.ndarray | Room | None
    items: Items
    given: HostItems
    queue: Any
