"""Memory and a compiled kernel for many runs of the same crop-and-resize call."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from octopus.arrays import streams
from octopus.arrays.memory import check_memory, result_memory
from octopus.arrays.views import ArrayView, dtype_name, view, view_of
from octopus.crop.check import (
    check_box_dtype,
    check_count,
    check_frame_index,
    check_host_boxes,
    check_host_index,
    check_index_dtype,
    check_out,
    check_planned_boxes,
    check_planned_frame,
)
from octopus.crop.cpu import CpuEngine
from octopus.crop.cuda import BOX_BYTES, INDEX_BYTES, CudaEngine, upload_capacity
from octopus.crop.spec import make_spec
from octopus.crop.staging import Stage
from octopus.errors import InputError

KNOWN_HEADS = 256  # different numbers of boxes whose part of the result a plan remembers


class CropPlan:
    """Memory and a compiled kernel for up to `max_boxes` boxes, made once and run many times.

    `run` allocates no device memory and launches once (boxes from the host: once per 4096 of them; on the GPU: once per
    65535). With frame and boxes on the GPU it neither copies nor waits and can be captured in a CUDA graph. The result
    of a run is overwritten by the next, unless `out` is given. A plan may be used on several streams, not by several
    threads at once.

    Parameters
    ----------
    frame : array, (H, W, C)
        A frame like those to come: same library, side, dtype and channels; its pixels are not read. Later frames on
        the GPU may have another height and width, frames on the host must not be larger. Several frames, of shape
        (F, H, W, C), make a plan whose runs name the frame of each box; F may change too.
    max_boxes : int
    size, mean, std, dtype, layout, edge, antialias, letterbox, pad_value, device
        As in `crop_resize`.
    allocate : bool
        False leaves the result's memory to the `out` of every run.
    box_dtype : {"float32", "int32", "int64", "float64"}
        Of boxes on the GPU to come; the kernel for another one is compiled or loaded at its first run. Boxes from the
        host always travel as float32.
    index_dtype : {"int32", "int64"}
        The same for a `frame_index` on the GPU; from the host it travels as int32.
    stream : optional
        A CUDA stream in whose order memory is reserved; the first run must then be on it. Without one the constructor
        waits until it has the memory, and runs may use any stream.

    Raises
    ------
    InputError, DeviceError, OutOfMemoryError
        As `crop_resize`.

    Examples
    --------
    >>> import numpy as np
    >>> frame = np.zeros((1080, 1920, 3), np.uint8)
    >>> plan = CropPlan(frame, 100, (32, 32), device="cpu")
    >>> plan.run(frame, [[10, 20, 60, 90]]).shape
    (1, 3, 32, 32)
    """

    def __init__(
        self,
        frame: Any,
        max_boxes: int,
        size: tuple[int, int] = (224, 224),
        *,
        mean: Any = None,
        std: Any = None,
        dtype: Any = "float32",
        layout: str = "NCHW",
        edge: str = "box",
        antialias: bool = False,
        letterbox: bool = False,
        pad_value: Any = 114.0,
        device: str = "auto",
        allocate: bool = True,
        box_dtype: str = "float32",
        index_dtype: str = "int32",
        stream: Any = None,
    ) -> None:
        if not isinstance(max_boxes, (int, np.integer)) or isinstance(max_boxes, bool) or max_boxes < 0:
            raise InputError(f"max_boxes must be a non-negative integer, found {max_boxes!r}")
        model = view(frame, "frame")
        check_box_dtype(box_dtype)
        check_index_dtype(index_dtype)
        self.spec = make_spec(model, size, mean, std, dtype, layout, edge, antialias, letterbox, pad_value)
        check_count(self.spec, max_boxes)
        self.max_boxes = int(max_boxes)
        self.device = streams.device_for(model, device)
        self._model = replace(model, owner=None)  # the plan must not keep the frame alive
        self._host_to_gpu = self.device == "cuda" and model.device == "cpu"
        # What the checks have found good; another array of the same layout needs no second look.
        self._good_frame: tuple | None = None
        self._good_boxes: tuple | None = None
        self._good_out: tuple | None = None
        self._heads: dict[int, tuple[Any, ArrayView]] = {}
        self._check_free(allocate)
        if self.device == "cpu":
            self._reserve(allocate, None)
            self.engine = CpuEngine(self.spec)
        else:
            self._reserve_gpu(allocate, box_dtype, index_dtype, stream)

    def _reserve(self, allocate: bool, stream: Any) -> None:
        """Memory for what runs return, of the frame's library."""
        spec = self.spec
        self._out = self._transform = None
        if allocate:
            self._out = result_memory(self._model, spec.shape(self.max_boxes), spec.dtype, stream)
        if spec.letterbox:
            self._transform = result_memory(self._model, (self.max_boxes, 4), "float32", stream)

    def _reserve_gpu(self, allocate: bool, box_dtype: str, index_dtype: str, stream: Any) -> None:
        """Allocate all that runs will need on the GPU."""
        from octopus.backends.cuda.memory import DeviceArray

        queue = self._queue = streams.stream_for(self._model, None, stream)
        self._reserve(allocate, None if stream is None else queue)
        self.engine = CudaEngine(self.spec, self.upload_boxes, self._model, box_dtype, index_dtype, queue)
        self._owned = [*self.engine.owned]
        self._owned += [array for array in (self._out, self._transform) if isinstance(array, DeviceArray)]
        if self._host_to_gpu:
            self._stage = Stage(self.spec, self._model.nbytes, self.max_boxes, queue)
            self._owned += [*self._stage.owned]
        if stream is None:
            queue.sync()

    def _enter(self, queue: Any) -> None:
        """Go on on another stream, behind the plan's work on the one before, with which it shares its memory.

        That memory is to be given back behind the new stream, should the plan go while work is under way. A graph can't
        wait for what is not in it, and its work is done elsewhere: capturing one changes nothing here.
        """
        from octopus.backends.cuda.device import is_capturing

        if is_capturing(queue):
            return
        queue.wait(self._queue)
        self._queue = queue
        for array in self._owned:
            array.release_on(queue)
        for array in (self._out, self._transform):
            streams.used_on(array, queue)

    def _check_free(self, allocate: bool) -> None:
        """Refuse what can't fit. Torch and CuPy know best what they can give, and are asked by allocating."""
        from octopus.backends import cpu
        from octopus.backends.cuda import memory

        result = (self.spec.nbytes(self.max_boxes) if allocate else 0) + self._transform_bytes
        if self._model.device == "cpu":
            check_memory(result, cpu.free_bytes(), "the host")
        if self._host_to_gpu:
            check_memory(self.gpu_bytes, memory.free_bytes(), "the GPU")
        elif self.device == "cuda" and result and self._model.family not in ("torch", "cupy"):
            check_memory(result, memory.free_bytes(), "the GPU")

    @property
    def _transform_bytes(self) -> int:
        return 16 * self.max_boxes if self.spec.letterbox else 0

    @property
    def gpu_bytes(self) -> int:
        """Device memory that the plan holds at most, in bytes: result, boxes, and a host frame's copy."""
        if self.device == "cpu":
            return 0
        frame = self._model.nbytes if self._host_to_gpu else 0
        boxes = (BOX_BYTES + INDEX_BYTES * self.spec.indexed) * upload_capacity(
            self.upload_boxes, self.spec.indexed
        )
        return self.spec.nbytes(self.max_boxes) + self._transform_bytes + boxes + frame

    @property
    def upload_boxes(self) -> int:
        """Boxes from the host for which the engine should have room."""
        return self.max_boxes

    def run(
        self, frame: Any, boxes: Any, *, frame_index: Any = None, out: Any = None, stream: Any = None
    ) -> Any:
        """Crop and resize `boxes` out of `frame`; see `crop_resize` for these, `frame_index`, `out` and `stream`.

        Returns
        -------
        array, or with `letterbox` (array, transform)
            The first N items of the plan's memory, or `out`; the transform is always in the plan's memory.

        Raises
        ------
        InputError
            For bad input, or more than `max_boxes` boxes.
        """
        pixels = view(frame, "frame")
        described = view_of(boxes, "boxes")
        index = None if frame_index is None else view_of(frame_index, "frame_index")
        self.check(pixels, described, index)
        count = described.shape[0]
        if out is None:
            result, target = self._head(count)
        else:
            result, target = out, view(out, "out")
            self.check_out(target, count)
        transform = _head(self._transform, count) if self.spec.letterbox else None
        self.execute(pixels, described, index, target, transform, stream)
        return result if transform is None else (result, transform)

    def _head(self, count: int) -> tuple[Any, ArrayView]:
        """The first items of the plan's own memory, and their description."""
        known = self._heads.get(count)
        if known is None:
            if self._out is None:
                raise InputError(
                    "this plan was made with allocate=False and has no memory of its own; pass out="
                )
            head = _head(self._out, count)
            if len(self._heads) >= KNOWN_HEADS:
                self._heads.clear()
            known = self._heads[count] = (head, view(head, "out"))
        return known

    def check_out(self, out: ArrayView, count: int) -> None:
        """Refuse a result that is not exactly what a run would have made."""
        layout = (count, *out.layout)
        if layout != self._good_out or out.device == "cpu":  # on the host an array may also be read-only
            check_out(self.spec, out, count, self._model.device)
            self._good_out = layout

    def check(self, frame: ArrayView, boxes: ArrayView, index: ArrayView | None) -> None:
        """Refuse what the plan is not for; values of boxes and index from the host are checked by `execute`."""
        if frame.layout != self._good_frame:
            check_planned_frame(frame, self.spec, self._model, self._host_to_gpu)
            self._good_frame = frame.layout
        if boxes.layout != self._good_boxes:
            check_planned_boxes(boxes, self.max_boxes, self.device)
            self._good_boxes = boxes.layout
        if self.spec.indexed or index is not None:
            check_frame_index(index, frame, boxes.shape[0], boxes.device)

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
        host_boxes, host_index = None, None
        if boxes.device == "cpu":
            host_boxes = check_host_boxes(boxes.numpy(), frame.shape[-2], frame.shape[-3])
        if index is not None and index.device == "cpu":
            host_index = check_host_index(index.numpy(), frame.shape[0])
        if not boxes.shape[0]:
            return
        written = None if transform is None else view(transform, "transform")
        if self.device == "cpu":
            on_host = None if written is None else written.numpy()
            self.engine.run(frame.numpy(), host_boxes, out.numpy(), host_index, on_host)
            return
        arrays = (frame, boxes, out) if index is None else (frame, boxes, out, index)
        streams.check_ordinals(*arrays)
        queue = streams.stream_for(frame, boxes, stream)
        if queue is not self._queue:
            self._enter(queue)
        streams.wait_for_producers(queue, *arrays)
        if stream is None:
            streams.wait_for_other_families(queue, *arrays)
        if self._host_to_gpu:
            given = {"boxes": boxes, "host_boxes": host_boxes, "index": index, "host_index": host_index}
            self._stage.run(frame, out, written, queue, partial(self._submit, **given, queue=queue))
            return
        address = 0 if written is None else written.pointer
        self._submit(frame, out.pointer, address, boxes, host_boxes, index, host_index, queue)

    def _submit(
        self,
        frame: ArrayView,
        out: int,
        transform: int,
        boxes: ArrayView,
        host_boxes: np.ndarray | None,
        index: ArrayView | None,
        host_index: np.ndarray | None,
        queue: Any,
    ) -> None:
        """Queue the kernel for a frame on the GPU, and the upload of what comes from the host."""
        if host_boxes is not None or host_index is not None:
            given = boxes if host_boxes is None else host_boxes
            self.engine.run_uploading(frame, given, host_index, out, transform, queue)
            return
        pointer, dtype = (0, "int32") if index is None else (index.pointer, dtype_name(index.dtype))
        self.engine.launch(
            frame, boxes.pointer, dtype_name(boxes.dtype), boxes.shape[0], out, queue,
            frame_index=pointer, index_dtype=dtype, transform=transform,
        )  # fmt: skip


def _head(array: Any, count: int) -> Any:
    """The first items of an array of any library, without a copy."""
    return array.head(count) if hasattr(array, "head") else array[:count]
