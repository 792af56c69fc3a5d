"""Crop, resize and normalise many boxes of one frame, in one launch."""

from __future__ import annotations

from typing import Any

import numpy as np

from octopus import backends, interop
from octopus.cropengine import CpuEngine, CudaEngine
from octopus.cropspec import (
    check_box_shape,
    check_count,
    check_frame,
    check_host_boxes,
    check_memory,
    check_out,
    make_spec,
)
from octopus.errors import InputError
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
        On the frame's side and of its library.

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
    >>> frame = np.zeros((1080, 1920, 3), np.uint8)
    >>> crop_resize(frame, [[10, 20, 60, 90], [5, 5, 6, 6]], mean=127.5, std=127.5, device="cpu").shape
    (2, 3, 224, 224)
    """
    described = _boxes_view(boxes)
    check_box_shape(described.shape, described.dtype)
    plan = CropPlan(
        frame, described.shape[0], size, mean=mean, std=std, dtype=dtype, layout=layout, edge=edge, device=device,
        allocate=out is None, once=True, stream=stream,
    )  # fmt: skip
    return plan.run(frame, boxes, out=out, stream=stream)


class CropPlan:
    """Memory and a compiled kernel for up to `max_boxes` boxes, made once and run many times.

    `run` allocates nothing and launches once. With frame and boxes on the GPU it neither copies nor waits and can be
    captured in a CUDA graph. The result of a run is overwritten by the next, unless `out` is given.

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
    once : bool
        True for a plan that runs once, on `stream`: it does without the page-locked buffer for boxes from the host
        (16 bytes per box), which takes longer to make than it saves in one run, and its memory is only good there.
    stream : optional
        A CUDA stream on which memory is reserved. A plan that is not for once waits until it has it, so that its runs
        may use any stream.

    Raises
    ------
    InputError, DeviceError, OutOfMemoryError
        As `crop_resize`.
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
        once: bool = False,
        stream: Any = None,
    ) -> None:
        if not isinstance(max_boxes, (int, np.integer)) or max_boxes < 0:
            raise InputError(f"max_boxes must be a non-negative integer, found {max_boxes!r}")
        model = interop.view(frame, "frame")
        self.spec = make_spec(model, size, mean, std, dtype, layout, edge)
        check_count(self.spec, max_boxes)
        self.max_boxes = int(max_boxes)
        self.device = _device_for(model, device)
        self._model = model
        self._host_to_gpu = self.device == "cuda" and model.device == "cpu"
        self._check_free(allocate)
        if self.device == "cpu":
            self._out = self._empty() if allocate else None
            self.engine = CpuEngine(self.spec)
        else:
            self._reserve_gpu(allocate, once, stream)

    def _empty(self, stream: Any = None) -> Any:
        """Memory for a full result, of the frame's library."""
        shape = self.spec.shape(self.max_boxes)
        return interop.empty_like_family(self._model, shape, np.dtype(self.spec.dtype), stream)

    def _reserve_gpu(self, allocate: bool, once: bool, stream: Any) -> None:
        """Allocate all that runs will need on the GPU."""
        from octopus.backends.cuda.memory import DeviceArray

        queue = self._queue = self._stream(self._model, stream)
        self._out = self._empty(None if stream is None else queue) if allocate else None
        self.engine = CudaEngine(self.spec, self.max_boxes, not once, queue)
        self._owned = [self.engine.device_boxes]
        if isinstance(self._out, DeviceArray):
            self._owned.append(self._out)
        if self._host_to_gpu:
            shape = self.spec.shape(self.max_boxes)
            self._frame_on_gpu = DeviceArray((self._model.nbytes,), np.uint8, stream=queue)
            self._out_on_gpu = DeviceArray(shape, self.spec.dtype, stream=queue)
            self._owned += [self._frame_on_gpu, self._out_on_gpu]
        if not once:
            queue.sync()

    @staticmethod
    def _stream(frame: ArrayView, stream: Any) -> Any:
        """The stream to work on: the caller's, else the current one of the frame's library."""
        return backends.cuda.stream_of(interop.current_stream(frame) if stream is None else stream)

    def _enter(self, queue: Any) -> None:
        """Have the plan's memory given back behind the work on `queue`, should the plan go while that is under way."""
        if queue is not self._queue:
            self._queue = queue
            for array in self._owned:
                array.release_on(queue)

    def _check_free(self, allocate: bool) -> None:
        from octopus.backends import cpu
        from octopus.backends.cuda import memory

        result = self.spec.nbytes(self.max_boxes) if allocate else 0
        if self._model.device == "cpu":
            check_memory(result, cpu.free_bytes(), "the host")
        if self.device == "cuda":
            check_memory(self.gpu_bytes if self._host_to_gpu else result, memory.free_bytes(), "the GPU")

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
        count = self._check_run_boxes(described, pixels)
        result = self._out[:count] if out is None and not self._is_device_array() else out
        if out is None and self._is_device_array():
            result = self._out.head(count)
        target = interop.view(result, "out")
        check_out(self.spec, target, count, self._model.device)
        host_boxes = None
        if described.device == "cpu":
            host_boxes = check_host_boxes(described.numpy(), pixels.shape[1], pixels.shape[0])
        if count:
            self._run(pixels, described, host_boxes, target, stream)
        return result

    def _is_device_array(self) -> bool:
        return hasattr(self._out, "head")

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

    def _check_run_boxes(self, boxes: ArrayView, frame: ArrayView) -> int:
        check_box_shape(boxes.shape, boxes.dtype)
        if boxes.shape[0] > self.max_boxes:
            raise InputError(
                f"the plan is for {self.max_boxes} boxes, found {boxes.shape[0]}; make a larger plan"
            )
        if boxes.device == "cuda" and self.device == "cpu":
            raise InputError("boxes are on the GPU but the CPU was asked to work; copy them to the host")
        if boxes.device == "cuda" and not boxes.contiguous:
            raise InputError(f"boxes on the GPU must be contiguous, found strides {boxes.strides} bytes")
        if boxes.device == "cuda" and dtype_name(boxes.dtype) not in ("int32", "int64", "float32", "float64"):
            raise InputError(
                f"boxes on the GPU must be int32, int64, float32 or float64, found {boxes.dtype}"
            )
        return boxes.shape[0]

    def _run(
        self, frame: ArrayView, boxes: ArrayView, host_boxes: np.ndarray | None, out: ArrayView, stream: Any
    ) -> None:
        if self.device == "cpu":
            self.engine.run(frame.numpy(), host_boxes, out.numpy())
            return
        queue = self._stream(frame, stream)
        self._enter(queue)
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
        on_gpu = ArrayView(
            self._frame_on_gpu.pointer,
            frame.shape,
            strides,
            frame.dtype,
            "cuda",
            "octopus",
            self._frame_on_gpu,
        )
        self.engine.launch(on_gpu, boxes, dtype, count, self._out_on_gpu.pointer, queue)
        copy(out.pointer, self._out_on_gpu.pointer, out.nbytes, queue)
        queue.sync()


def _boxes_view(boxes: Any) -> ArrayView:
    """Boxes as an array view; lists and tuples become arrays."""
    return interop.view(np.asarray(boxes) if isinstance(boxes, (list, tuple)) else boxes, "boxes")


def _device_for(frame: ArrayView, device: str) -> str:
    """Where to work on this frame."""
    if frame.device == "cuda":
        if device == "cpu":
            raise InputError("frame is on the GPU but device='cpu' was asked for; copy it to the host first")
        return backends.resolve("cuda")
    return backends.resolve(device)
