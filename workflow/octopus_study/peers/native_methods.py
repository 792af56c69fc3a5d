"""`roiconvert` and `cuframe`: one launch for many boxes in C++, called through C functions of our own."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus_study.peers.availability import Unavailable
from octopus_study.peers.job import CropJob
from octopus_study.peers.method import CropMethod, require_gpu
from octopus_study.peers.native_build import CUFRAME, ROICONVERT, library

# Full-range BT.601: red, green and blue from luma and the two chroma values.
FROM_YUV = np.array([[1, 0, 1.402], [1, -0.344136, -0.714136], [1, 1.772, 0]], np.float32)


def to_nv12(frame: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """A frame of even sides as NV12, (3 H / 2, W): luma, then both chroma planes, halved and interleaved."""
    height, width, _ = frame.shape
    planes = frame @ np.linalg.inv(FROM_YUV).T + (0, 128, 128)
    halved = planes[..., 1:].reshape(height // 2, 2, width // 2, 2, 2).mean(axis=(1, 3))
    stacked = np.concatenate([planes[..., 0], halved.reshape(height // 2, width)])
    return np.rint(stacked).clip(0, 255).astype(np.uint8)


class _Native(CropMethod):
    """What both have: a library, the normalisation as gain and bias, and the default stream."""

    def __init__(self, job: CropJob) -> None:
        super().__init__(job)
        require_gpu(job, self.name)
        from octopus.backends.cuda import stream_of

        mean, inverse_std = job.affine
        self._gain, self._bias = inverse_std, (-mean * inverse_std).astype(np.float32)
        self._stream = ctypes.c_void_p(int(stream_of(None).handle))

    def _call(self, function: Any, *arguments: Any) -> None:
        """Call a C function; arrays go as their addresses."""
        given = [
            ctypes.c_void_p(value.ctypes.data) if isinstance(value, np.ndarray) else value
            for value in arguments
        ]
        function.restype = ctypes.c_bool
        if not function(*given):
            raise RuntimeError(f"{self.name} failed; its message is on the error output")

    @property
    def _result(self) -> tuple[Any, int, int]:
        """Address, width and height of the crops."""
        height, width = self.job.size
        return ctypes.c_void_p(self.job.out.pointer), width, height


class RoiConvert(_Native):
    """Its path for RGB: OpenCV's fixed point, normalised per channel, in one launch with metadata for each block."""

    name = "roiconvert"
    why_different = "rounds to uint8 before it normalises"

    def __init__(self, job: CropJob) -> None:
        super().__init__(job)
        self._library = library(ROICONVERT)
        self._library.roiconvert_new.restype = ctypes.c_void_p
        self._self = ctypes.c_void_p(self._library.roiconvert_new())

    def __del__(self) -> None:
        """Its memory on the device is freed by it alone."""
        if hasattr(self, "_self"):
            self._library.roiconvert_delete(self._self)

    def prepare(self) -> None:
        """Tasks and blocks, and their way to the device."""
        job = self.job
        height, width, _ = job.frame.shape
        boxes, frame = np.ascontiguousarray(job.boxes), ctypes.c_void_p(job.device_frame.pointer)
        self._call(
            self._library.roiconvert_prepare, self._self, boxes, job.count, frame, width, height, *self._result,
            self._gain, self._bias, self._stream,
        )  # fmt: skip

    def kernels(self) -> None:
        """One launch."""
        self._call(self._library.roiconvert_launch, self._self, self._stream)


class CuFrame(_Native):
    """Its kernel for the boxes of one NV12 frame; the frame is converted once, outside of what is timed."""

    name = "cuframe"
    edge = "image"
    why_different = "reads an NV12 frame, whose colours have half the resolution, made before"
    why_no_device = "each call allocates and copies beside its kernel"

    def __init__(self, job: CropJob) -> None:
        super().__init__(job)
        from octopus.backends.cuda.memory import upload

        if any(side % 2 for side in job.frame.shape[:2]):
            height, width, _ = job.frame.shape
            raise Unavailable(f"cuframe takes frames of even sides, this one is {width} x {height}")
        self._library = library(CUFRAME)
        self._nv12 = upload(to_nv12(job.frame))

    def run(self) -> None:
        """The boxes' way to the device and one launch."""
        job = self.job
        height, width, _ = job.frame.shape
        boxes = np.concatenate([job.boxes[:, :2], job.boxes[:, 2:] - job.boxes[:, :2]], axis=1)
        frame = ctypes.c_void_p(self._nv12.pointer)
        self._call(
            self._library.cuframe_crop, frame, width, height, boxes, job.count, *self._result, FROM_YUV, self._gain,
            self._bias, self._stream,
        )  # fmt: skip
