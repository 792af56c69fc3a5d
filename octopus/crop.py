"""Crop, resize and normalise many boxes of one frame, in one launch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from octopus import interop, placement
from octopus.cropengine import CpuEngine, CudaEngine
from octopus.cropspec import (
    check_box_dtype,
    check_box_shape,
    check_count,
    check_frame,
    check_gpu_boxes,
    check_host_boxes,
    check_memory,
    check_out,
    make_spec,
)
from octopus.errors import InputError, OutOfMemoryError
from octopus.interop import ArrayView, dtype_name


def crop_resize(
    frame: Any,
    boxes: Any,
    size: tuple[int, int] = (224, 224),
    *,
    mean: Any = None,
    std: Any = None,
    dtype: Any = "float32",
    layout: str = "NCHW",
    edge: str = "box",
    out: Any = None,
    stream: Any = None,
    device: str = "auto",
) -> Any:
    """Cut boxes out of a frame, resize each to the same size, and normalise, in one launch.

    The result is that of `cv2.resize(crop, (width, height), interpolation=cv2.INTER_LINEAR)` on float32 for every
    box, then `(value - mean) / std`: half-pixel centres, no antialiasing, clamped at the box.

    Parameters
    ----------
    frame : array, (H, W, C), uint8 or uint16
        C is 1, 3 or 4. NumPy, torch, CuPy, Numba, or anything with DLPack or `__cuda_array_interface__`; never copied
        where it already lies on the device that works. Rows may be further apart than their length.
    boxes : array, (N, 4), integer or float
        `x1, y1, x2, y2` in pixels, a box covers `[x1, x2) x [y1, y2)`; on the host or on the GPU. Boxes on the GPU are
        not read by the host, so nothing waits for them: each is clipped to the frame, and one that is empty or not a
        number gives an item of NaN (0 for uint8).
    size : (int, int)
        Height and width of the result in pixels.
    mean, std : float or sequence of C floats, optional
        In units of the frame's values (0 to 255 for uint8); default 0 and 1.
    dtype : {"float32", "float16", "uint8"}
        uint8 rounds half to even and saturates; float16 overflows to infinity.
    layout : {"NCHW", "NHWC"}
    edge : {"box"}
        What lies beyond a box's edge: "box" repeats its border pixels.
    out : array, optional
        Where to write; must have exactly the result's shape, dtype and device.
    stream : optional
        A CUDA stream of any library; default: the current one of the frame's library. The call returns once the work
        is queued on it, except for a frame on the host, whose result is waited for.
    device : {"auto", "cpu", "cuda"}
        "auto" works where the frame lies; for a frame on the host, on the GPU if there is one.

    Returns
    -------
    array, (N, C, height, width) or (N, height, width, C)
        On the frame's side and of its library; NumPy or `DeviceArray` where that offers DLPack or
        `__cuda_array_interface__` alone.

    Raises
    ------
    InputError
        For bad input, before any work; the message says what was asked, what was found and what to do.
    DeviceError
        If `device="cuda"` and no GPU is usable.
    OutOfMemoryError
        If the result does not fit; says how much is needed and free.

    Examples
    --------
    >>> import numpy as np
    >>> frame = np.zeros((1080, 1920, 3), np.uint8)
    >>> crop_resize(frame, [[10, 20, 60, 90], [5, 5, 6, 6]], mean=127.5, std=127.5, device="cpu").shape
    (2, 3, 224, 224)
    """
    described = _boxes_view(boxes)
    check_box_shape(described.shape, described.dtype)
    model = interop.view(frame, "frame")
    if placement.device_for(model, device) == "cuda":
        # A stream of its own name: the memory is used on it alone, so nobody needs to wait for the allocation.
        stream = placement.stream_for(model, described, stream)
    plan = CropPlan(
        frame, described.shape[0], size, mean=mean, std=std, dtype=dtype, layout=layout, edge=edge, device=device,
        allocate=out is None, box_dtype=_box_dtype(described), stream=stream,
    )  # fmt: skip
    return plan.run(frame, boxes, out=out, stream=stream)


class CropPlan:
    """Memory and a compiled kernel for up to `max_boxes` boxes, made once and run many times.

    `run` allocates no device memory and launches once. With frame and boxes on the GPU it neither copies nor waits and
    can be captured in a CUDA graph. The result of a run is overwritten by the next, unless `out` is given. A plan may
    be used on several streams, not by several threads at once.

    Parameters
    ----------
    frame : array, (H, W, C)
        A frame like those to come: same library, side, dtype and channels; its pixels are not read. Later frames on
        the GPU may have another height and width, frames on the host must not be larger.
    max_boxes : int
    size, mean, std, dtype, layout, edge, device
        As in `crop_resize`.
    allocate : bool
        False leaves the result's memory to the `out` of every run.
    box_dtype : {"float32", "int32", "int64", "float64"}
        Of boxes on the GPU to come; the kernel for another one is compiled or loaded at its first run. Boxes from the
        host always travel as float32.
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
        device: str = "auto",
        allocate: bool = True,
        box_dtype: str = "float32",
        stream: Any = None,
    ) -> None:
        if not isinstance(max_boxes, (int, np.integer)) or isinstance(max_boxes, bool) or max_boxes < 0:
            raise InputError(f"max_boxes must be a non-negative integer, found {max_boxes!r}")
        model = interop.view(frame, "frame")
        check_box_dtype(box_dtype)
        self.spec = make_spec(model, size, mean, std, dtype, layout, edge)
        check_count(self.spec, max_boxes)
        self.max_boxes = int(max_boxes)
        self.device = placement.device_for(model, device)
        self._model = model
        self._host_to_gpu = self.device == "cuda" and model.device == "cpu"
        self._check_free(allocate)
        if self.device == "cpu":
            self._out = self._empty() if allocate else None
            self.engine = CpuEngine(self.spec)
        else:
            self._reserve_gpu(allocate, box_dtype, stream)

    def _empty(self, stream: Any = None) -> Any:
        """Memory for a full result, of the frame's library."""
        shape = self.spec.shape(self.max_boxes)
        try:
            return interop.empty_like_family(self._model, shape, np.dtype(self.spec.dtype), stream)
        except (MemoryError, RuntimeError) as error:  # torch and CuPy raise classes of their own below these
            if "memory" not in str(error).lower() and not isinstance(error, MemoryError):
                raise
            needed = self.spec.nbytes(self.max_boxes)
            raise OutOfMemoryError(f"{needed:,} bytes are needed for the result: {error}") from error

    def _reserve_gpu(self, allocate: bool, box_dtype: str, stream: Any) -> None:
        """Allocate all that runs will need on the GPU."""
        from octopus.backends.cuda.memory import DeviceArray

        queue = self._queue = placement.stream_for(self._model, None, stream)
        self._out = self._empty(None if stream is None else queue) if allocate else None
        self.engine = CudaEngine(self.spec, self.max_boxes, box_dtype, queue)
        self._owned = [self.engine.device_boxes]
        if isinstance(self._out, DeviceArray):
            self._owned.append(self._out)
        if self._host_to_gpu:
            shape = self.spec.shape(self.max_boxes)
            self._frame_on_gpu = DeviceArray((self._model.nbytes,), np.uint8, stream=queue)
            self._out_on_gpu = DeviceArray(shape, self.spec.dtype, stream=queue)
            self._owned += [self._frame_on_gpu, self._out_on_gpu]
        if stream is None:
            queue.sync()

    def _enter(self, queue: Any, shares: bool) -> None:
        """Prepare for work on `queue`.

        The plan's memory is to be given back behind it, should the plan go while it is under way; and if this run
        writes to memory that a run on another stream may be reading (`shares`), it waits for that one.
        """
        if queue is self._queue:
            return
        if shares:
            queue.wait(self._queue)
        self._queue = queue
        for array in self._owned:
            array.release_on(queue)

    def _check_free(self, allocate: bool) -> None:
        """Refuse what can't fit. Torch and CuPy know best what they can give, and are asked by allocating."""
        from octopus.backends import cpu
        from octopus.backends.cuda import memory

        result = self.spec.nbytes(self.max_boxes) if allocate else 0
        if self._model.device == "cpu":
            check_memory(result, cpu.free_bytes(), "the host")
        if self._host_to_gpu:
            check_memory(self.gpu_bytes, memory.free_bytes(), "the GPU")
        elif self.device == "cuda" and result and self._model.family not in ("torch", "cupy"):
            check_memory(result, memory.free_bytes(), "the GPU")

    @property
    def gpu_bytes(self) -> int:
        """Device memory that the plan holds at most, in bytes: result, boxes, and a host frame's copy."""
        if self.device == "cpu":
            return 0
        frame = self._model.nbytes if self._host_to_gpu else 0
        return self.spec.nbytes(self.max_boxes) + 16 * self.max_boxes + frame

    def run(self, frame: Any, boxes: Any, *, out: Any = None, stream: Any = None) -> Any:
        """Crop and resize `boxes` out of `frame`; see `crop_resize` for both, `out` and `stream`.

        Returns
        -------
        array
            The first N items of the plan's memory, or `out`.

        Raises
        ------
        InputError
            For bad input, or more than `max_boxes` boxes.
        """
        pixels = self._check_run_frame(frame)
        described = _boxes_view(boxes)
        count = self._check_run_boxes(described)
        result = self._own(count) if out is None else out
        target = interop.view(result, "out")
        check_out(self.spec, target, count, self._model.device)
        host_boxes = None
        if described.device == "cpu":
            host_boxes = check_host_boxes(described.numpy(), pixels.shape[1], pixels.shape[0])
        if count:
            self._run(pixels, described, host_boxes, target, stream)
        return result

    def _own(self, count: int) -> Any:
        """The first items of the plan's own memory."""
        if self._out is None:
            raise InputError("this plan was made with allocate=False and has no memory of its own; pass out=")
        return self._out.head(count) if hasattr(self._out, "head") else self._out[:count]

    def _check_run_frame(self, frame: Any) -> ArrayView:
        pixels = interop.view(frame, "frame")
        check_frame(pixels)
        found = (pixels.device, dtype_name(pixels.dtype), pixels.shape[2])
        planned = (self._model.device, self.spec.frame_dtype, self.spec.channels)
        if found != planned:
            raise InputError(f"the plan is for frames of (side, dtype, channels) {planned}, found {found}")
        if self._host_to_gpu and pixels.nbytes > self._model.nbytes:
            raise InputError(
                f"the plan holds frames of up to {self._model.nbytes} bytes, found {pixels.nbytes}; make a larger plan"
            )
        return pixels

    def _check_run_boxes(self, boxes: ArrayView) -> int:
        check_box_shape(boxes.shape, boxes.dtype)
        if boxes.shape[0] > self.max_boxes:
            raise InputError(
                f"the plan is for {self.max_boxes} boxes, found {boxes.shape[0]}; make a larger plan"
            )
        if boxes.device == "cuda" and self.device == "cpu":
            raise InputError("boxes are on the GPU but the CPU was asked to work; copy them to the host")
        if boxes.device == "cuda":
            check_gpu_boxes(boxes)
        return boxes.shape[0]

    def _run(
        self, frame: ArrayView, boxes: ArrayView, host_boxes: np.ndarray | None, out: ArrayView, stream: Any
    ) -> None:
        if self.device == "cpu":
            self.engine.run(frame.numpy(), host_boxes, out.numpy())
            return
        placement.check_ordinals(frame, boxes, out)
        queue = placement.stream_for(frame, boxes, stream)
        self._enter(queue, shares=host_boxes is not None or self._host_to_gpu)
        placement.wait_for_producers(queue, frame, boxes, out)
        pointer, dtype = boxes.pointer, dtype_name(boxes.dtype)
        if host_boxes is not None:
            pointer, dtype = self.engine.upload_boxes(host_boxes, queue), "float32"
        if self._host_to_gpu:
            self._run_from_host(frame, pointer, dtype, boxes.shape[0], out, queue)
        else:
            self.engine.launch(frame, pointer, dtype, boxes.shape[0], out.pointer, queue)

    def _run_from_host(
        self, frame: ArrayView, boxes: int, dtype: str, count: int, out: ArrayView, queue: Any
    ) -> None:
        from octopus.backends.cuda.memory import copy

        pixels = np.ascontiguousarray(frame.numpy())
        copy(self._frame_on_gpu.pointer, pixels.ctypes.data, pixels.nbytes, queue)
        strides = interop.c_strides(frame.shape, frame.dtype)
        on_gpu = replace(frame, pointer=self._frame_on_gpu.pointer, strides=strides, device="cuda")
        self.engine.launch(on_gpu, boxes, dtype, count, self._out_on_gpu.pointer, queue)
        copy(out.pointer, self._out_on_gpu.pointer, out.nbytes, queue)
        queue.sync()


def _boxes_view(boxes: Any) -> ArrayView:
    """Boxes as an array view; lists and tuples become arrays."""
    if isinstance(boxes, (list, tuple)):
        try:
            boxes = np.asarray(boxes)
        except ValueError:
            raise InputError("boxes must have shape (N, 4), found rows of different length") from None
    return interop.view(boxes, "boxes")


def _box_dtype(boxes: ArrayView) -> str:
    """The dtype that the kernel will read."""
    if boxes.device == "cpu":
        return "float32"
    check_gpu_boxes(boxes)
    return dtype_name(boxes.dtype)
