"""The compiled kernel of a crop-and-resize call: what it is checked for, and how it runs on the caller's arrays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from octopus.arrays.memory import PlanMemory, Stage
from octopus.arrays.results import check_out
from octopus.arrays.views import ArrayView, c_strides, dtype_name, view
from octopus.crop.check import (
    Room,
    are_maps,
    check_count,
    check_frame_index,
    check_host_boxes,
    check_host_index,
    check_host_maps,
    check_planned_boxes,
    check_planned_frame,
    load,
)
from octopus.crop.cpu import CpuEngine
from octopus.crop.cuda import CudaEngine
from octopus.crop.options import CropOptions
from octopus.crop.spec import make_spec


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
        self.model = replace(frame, owner=None)  # the kernel must not keep the frame alive
        self.host_to_gpu = device == "cuda" and frame.device == "cpu"
        # What the checks have found good; another array of the same layout needs no second look.
        self._good_frame: tuple[Any, ...] | None = None
        self._good_boxes: tuple[Any, ...] | None = None
        self._good_index: tuple[Any, ...] | None = None
        self._good_out: tuple[Any, ...] | None = None
        # A call within a call, as of a signal's handler, must not overwrite that one's boxes.
        self._busy = False
        self.engine: Any = CpuEngine(self.spec, maps) if device == "cpu" else None
        load()

    def load(self, upload_boxes: int, box_dtype: str, index_dtype: str, queue: Any) -> None:
        """Load the GPU's kernel, and reserve what up to `upload_boxes` boxes from the host need there."""
        self.engine = CudaEngine(
            self.spec, upload_boxes, self.model, box_dtype, index_dtype, queue, self._maps_first
        )
        self.memory = PlanMemory(queue)
        self.memory.keep(*self.engine.owned)

    def check(self, frame: ArrayView, boxes: ArrayView, index: ArrayView | None) -> None:
        """Refuse what the kernel is not for; values of boxes and index from the host are checked by `execute`."""
        if frame.layout != self._good_frame:
            check_planned_frame(frame, self.spec, self.model, self.host_to_gpu)
            self._good_frame = frame.layout
        if boxes.layout != self._good_boxes:
            check_planned_boxes(boxes, self.max_boxes, self.device)
            if are_maps(boxes.shape):
                self.spec.options.check_maps()
            self._good_boxes = boxes.layout
        if self.spec.frame.indexed or index is not None:
            layout = None if index is None else (boxes.shape[0], boxes.device, *index.layout)
            if layout is None or layout != self._good_index:
                check_frame_index(index, frame, boxes.shape[0], boxes.device)
                self._good_index = layout

    def check_out(self, out: ArrayView, count: int) -> None:
        """Refuse a result that is not exactly what a run would have made."""
        layout = (count, *out.layout)
        if layout != self._good_out or out.device == "cpu":  # on the host an array may also be read-only
            check_out(out, self.spec.shape(count), self.spec.dtype, self.model.device)
            self._good_out = layout

    def execute(
        self,
        frame: ArrayView,
        boxes: ArrayView,
        index: ArrayView | None,
        out: ArrayView,
        transform: Any,
        stream: Any,
    ) -> None:
        """Do the work of a run whose arguments `check` has seen; `transform` is an array or None.

        Raises
        ------
        InputError
            For wrong values among boxes or index from the host.
        """
        within, self._busy = self._busy, True
        try:
            host_boxes: np.ndarray | Room | None = None
            host_index: np.ndarray | None = None
            if boxes.device == "cpu":
                room = None
                if self.device == "cuda" and not within and not are_maps(boxes.shape):
                    room = self.engine.room(frame, boxes.shape[0])
                checked = self._checked(boxes, frame, room)
                host_boxes = checked if room is None else room
            if index is not None and index.device == "cpu":
                host_index = check_host_index(index.numpy(), frame.shape[0])
            if not boxes.shape[0]:
                return
            written = None if transform is None else view(transform, "transform")
            if self.device == "cpu":
                self.engine.run(frame, host_boxes, out, host_index, written)
                return
            arrays = (frame, boxes, out) if index is None else (frame, boxes, out, index)
            queue = self.memory.enter(stream, arrays, boxes)
            if boxes.device == "cuda" and self.spec.options.outside == "error":
                self._checked(self.engine.read_boxes(boxes, queue), frame)
            if self.stage is not None:
                self._run_staged(self.stage, frame, boxes, host_boxes, index, host_index, queue, out, written)
                return
            address = 0 if written is None else written.pointer
            self._submit(frame, boxes, host_boxes, index, host_index, queue, out.pointer, address)
        finally:
            self._busy = within

    def _checked(
        self, boxes: np.ndarray | ArrayView, frame: ArrayView, room: Room | None = None
    ) -> np.ndarray:
        (height, width), options = frame.shape[-3:-1], self.spec.options
        if are_maps(boxes.shape):
            return check_host_maps(boxes, width, height, options.size, options.outside)
        return check_host_boxes(boxes, width, height, options.outside, room)

    def _submit(
        self,
        frame: ArrayView,
        boxes: ArrayView,
        host_boxes: np.ndarray | Room | None,
        index: ArrayView | None,
        host_index: np.ndarray | None,
        queue: Any,
        out: int,
        transform: int,
    ) -> None:
        """Queue the kernel for a frame on the GPU, and the upload of what comes from the host."""
        if host_boxes is not None or host_index is not None:
            given = boxes if host_boxes is None else host_boxes
            self.engine.run_uploading(frame, given, host_index, out, transform, queue)
            return
        pointer, dtype = (0, "int32") if index is None else (index.pointer, dtype_name(index.dtype))
        self.engine.launch(
            frame, boxes.pointer, dtype_name(boxes.dtype), boxes.shape[0], out, queue,
            frame_index=pointer, index_dtype=dtype, transform=transform, maps=are_maps(boxes.shape),
        )  # fmt: skip

    def _run_staged(
        self,
        stage: Stage,
        frame: ArrayView,
        boxes: ArrayView,
        host_boxes: np.ndarray | Room | None,
        index: ArrayView | None,
        host_index: np.ndarray | None,
        queue: Any,
        out: ArrayView,
        transform: ArrayView | None,
    ) -> None:
        """The same for a frame from the host, whose result is waited for."""

        def submit(pixels: int, result: int, way_back: int) -> None:
            strides = c_strides(frame.shape, frame.dtype)
            on_gpu = replace(frame, pointer=pixels, strides=strides, device="cuda")
            self._submit(on_gpu, boxes, host_boxes, index, host_index, queue, result, way_back)

        stage.run(frame, (out, transform), queue, submit)
