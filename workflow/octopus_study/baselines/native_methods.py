"""`roiconvert` and `cuframe`: one launch for many boxes in C++, called through C functions of our own."""

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus_study.baselines.availability import Unavailable
from octopus_study.baselines.job import CropJob
from octopus_study.baselines.method import CropMethod, require_gpu
from octopus_study.baselines.native_build import library, sources

# Full-range BT.601: red, green and blue from luma and the two chroma values.
FROM_YUV = np.array([[1, 0, 1.402], [1, -0.344136, -0.714136], [1, 1.772, 0]], np.float32)
LIMITED = np.array([219, 224, 224]) / 255  # of the full range of luma and chroma


def to_nv12(frame: NDArray[np.uint8], levels: str = "full") -> NDArray[np.uint8]:
    """A frame of even sides as NV12 in the "full" or the "limited" range, (3 H / 2, W): luma, then both chroma planes,
    halved and interleaved."""
    height, width, _ = frame.shape
    planes = frame @ np.linalg.inv(FROM_YUV).T
    if levels == "limited":
        planes = planes * LIMITED + (16, 0, 0)
    halved = planes[..., 1:].reshape(height // 2, 2, width // 2, 2, 2).mean(axis=(1, 3)) + 128
    stacked = np.concatenate([planes[..., 0], halved.reshape(height // 2, width)])
    return np.rint(stacked).clip(0, 255).astype(np.uint8)


def from_nv12(nv12: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Red, green and blue of such a frame, (H, W, 3), clamped and not rounded; its 2 x 2 pixels share their chroma."""
    rows, width = nv12.shape
    height = rows // 3 * 2
    chroma = nv12[height:].reshape(height // 2, width // 2, 2).repeat(2, axis=0).repeat(2, axis=1)
    planes = np.dstack([nv12[:height], chroma]) - np.array([0.0, 128.0, 128.0])
    return (planes @ FROM_YUV.T.astype(np.float64)).clip(0, 255)


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
        given = [ctypes.c_void_p(value.ctypes.data) if isinstance(value, np.ndarray) else value for value in arguments]
        function.restype = ctypes.c_bool
        if not function(*given):
            raise RuntimeError(f"{self.name} failed; its message is on the error output")

    @property
    def _result(self) -> tuple[Any, int, int]:
        height, width = self.job.size
        return ctypes.c_void_p(self.job.out.pointer), width, height


class RoiConvert(_Native):
    """Its path for RGB: OpenCV's fixed point, normalised per channel, in one launch with metadata for each block."""

    name = "roiconvert"
    why_different = "rounds to uint8 before it normalises"

    def __init__(self, job: CropJob) -> None:
        super().__init__(job)
        self._library = library(sources()[self.name])
        self._library.roiconvert_new.restype = ctypes.c_void_p
        self._self = ctypes.c_void_p(self._library.roiconvert_new())

    def __del__(self) -> None:
        if hasattr(self, "_self"):
            self._library.roiconvert_delete(self._self)

    @property
    def _planes(self) -> tuple[int, int | None]:
        """Addresses of the frame and, of NV12, of its chroma."""
        return self.job.device_frame.pointer, None

    def prepare(self) -> None:
        job = self.job
        height, width, _ = job.frame.shape
        boxes, planes = np.ascontiguousarray(job.boxes), map(ctypes.c_void_p, self._planes)
        self._call(
            self._library.roiconvert_prepare, self._self, boxes, job.count, *planes, width, height, *self._result,
            self._gain, self._bias, self._stream,
        )  # fmt: skip

    def kernels(self) -> None:
        nv12 = ctypes.c_bool(self._planes[1] is not None)
        self._call(self._library.roiconvert_launch, self._self, nv12, self._stream)


class RoiConvertNv12(RoiConvert):
    """Its path for NV12, of BT.601 in the limited range alone: it gets the job's frame coded so."""

    why_different = "rounds to uint8 when it converts and before it normalises, and its NV12 is of the limited range"

    def __init__(self, job: CropJob, nv12: NDArray[np.uint8] | None = None) -> None:
        super().__init__(job)
        from octopus.backends.cuda.memory import upload

        self._nv12 = upload(to_nv12(job.frame, "limited"))

    @property
    def _planes(self) -> tuple[int, int | None]:
        height, width, _ = self.job.frame.shape
        return self._nv12.pointer, self._nv12.pointer + height * width


class CuFrame(_Native):
    """Its kernel for the boxes of one NV12 frame; the frame is converted once, outside of what is timed. A run
    allocates the boxes' memory and copies them there, as its interface has it; its kernel is timed apart."""

    name = "cuframe"
    edge = "image"
    why_different = "reads an NV12 frame, whose colours have half the resolution, made before"

    def __init__(self, job: CropJob, nv12: NDArray[np.uint8] | None = None) -> None:
        super().__init__(job)
        from octopus.backends.cuda.memory import upload

        if any(side % 2 for side in job.frame.shape[:2]):
            height, width, _ = job.frame.shape
            raise Unavailable(f"cuframe takes frames of even sides, this one is {width} x {height}")
        self._library = library(sources()[self.name])
        self._nv12 = upload(to_nv12(job.frame) if nv12 is None else nv12)

    def prepare(self) -> None:
        from octopus.backends.cuda.memory import upload

        self._on_device = upload(self._boxes())

    def kernels(self) -> None:
        self._crop(None, self._on_device.pointer)

    def run(self) -> None:
        self._crop(self._boxes(), None)

    def _boxes(self) -> NDArray[np.int32]:
        boxes = self.job.boxes
        return np.concatenate([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]], axis=1)

    def _crop(self, boxes: NDArray[np.int32] | None, on_device: int | None) -> None:
        job = self.job
        height, width, _ = job.frame.shape
        frame, there = ctypes.c_void_p(self._nv12.pointer), ctypes.c_void_p(on_device)
        self._call(
            self._library.cuframe_crop, frame, width, height, boxes, there, job.count, *self._result,
            FROM_YUV, self._gain, self._bias, self._stream,
        )  # fmt: skip
