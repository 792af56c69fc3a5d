"""NVIDIA CV-CUDA: `resize_crop_convert_reformat` over views of the frame, in one launch for all of them.

Its documented way to a batch of views is a list of tensors, `as_images([frame[y1:y2, x1:x2], ...])`. The views of
PyTorch take most of its host time; `cvcuda-views` describes the same memory with less.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus_study.baselines.availability import Unavailable, need
from octopus_study.baselines.job import CropJob
from octopus_study.baselines.method import CropMethod, require_gpu
from octopus_study.baselines.published import WHY_DIFFERENT

ONE_SCALE = "one scale and one offset for all channels"
NO_FLIP = 2  # any value but -1, 0 and 1


class _View:
    """A box of the frame in device memory; the interface is all that CV-CUDA asks of an image. Stream -1 means that
    nothing is to be waited for: all work is on the default stream."""

    __slots__ = ("__cuda_array_interface__",)

    def __init__(self, pointer: int, shape: tuple[int, int, int], strides: tuple[int, int, int]) -> None:
        self.__cuda_array_interface__ = {
            "shape": shape, "strides": strides, "typestr": "|u1", "data": (pointer, False), "version": 3, "stream": -1,
        }  # fmt: skip


def has_one_scale(job: CropJob) -> bool:
    """Whether all channels have the same mean and deviation."""
    return len({*zip(job.mean, job.std, strict=True)}) == 1


class CvCudaScalar(CropMethod):
    """The operator alone, the fastest thing that CV-CUDA has for the job: one scale and offset for all channels. It
    interpolates in float (`srcCast=False`) and writes planes. The scale and offset are those of the channels' mean
    values, so that the answer is another one where the channels have means or deviations of their own."""

    name = "cvcuda-scalar"
    why_different = ONE_SCALE

    def __init__(self, job: CropJob) -> None:
        super().__init__(job)
        require_gpu(job, "CV-CUDA")
        if job.frame.shape[2] != 3:
            raise Unavailable(f"CV-CUDA's operator takes 3 channels, the frame has {job.frame.shape[2]}")
        self.cv = need("cvcuda", "CV-CUDA", "pip install -e './workflow[arena-cuda13]'")
        self.torch = need(
            "torch", "PyTorch, whose slices CV-CUDA takes as images", "pip install -e './workflow[baselines]'"
        )
        self.frame = self.torch.as_tensor(job.device_frame, device="cuda")
        self.stream = self.cv.Stream.default
        self.out = self.cv.as_tensor(job.out, "NCHW")
        self._batch: Any = None

    def scale_and_offset(self) -> tuple[float, float]:
        mean, std = (sum(values) / len(values) for values in (self.job.mean, self.job.std))
        return 1 / std, -mean / std

    def prepare(self) -> None:
        """A batch of views; their descriptions go to the device at the batch's first use."""
        self._batch = self.cv.as_images(self.views(), self.cv.Format.RGB8)

    def views(self) -> list[Any]:
        frame = self.frame
        return [frame[y1:y2, x1:x2] for x1, y1, x2, y2 in self.job.boxes.tolist()]

    def kernels(self) -> None:
        height, width = self.job.size
        scale, offset = self.scale_and_offset()
        self.cv.resize_crop_convert_reformat_into(
            self.out, self._batch, (width, height), self.cv.Interp.LINEAR, (0, 0),
            scale=scale, offset=offset, srcCast=False, stream=self.stream,
        )  # fmt: skip


class CvCuda(CvCudaScalar):
    """The operator, then `normalize` in place for each channel's mean and deviation: two passes, the same answer.

    That are the fewest passes with this answer: the only operator that resizes and converts at once has a single scale
    and offset. `resize`, `convertto`, `normalize` and `reformat` would be four; those of `CvCudaRounded` round between.
    Where all channels have one mean and deviation, as in YOLO's division by 255, the operator alone is enough.
    """

    name = "cvcuda"
    why_different = ""

    def __init__(self, job: CropJob) -> None:
        super().__init__(job)
        self._base = list(job.mean)
        self._scale = [1 / value for value in job.std]
        # A second description of the same memory, so that no operator finds its output among its inputs.
        self._source = self.cv.as_tensor(job.out, "NCHW")

    def scale_and_offset(self) -> tuple[float, float]:
        return super().scale_and_offset() if has_one_scale(self.job) else (1.0, 0.0)

    def kernels(self) -> None:
        super().kernels()
        if not has_one_scale(self.job):
            self.cv.normalize_into(self.out, self._source, self._base, self._scale, stream=self.stream)


class CvCudaViews(CvCuda):
    """The same with the views described by hand, the least host time found; no documentation shows it."""

    name = "cvcuda-views"

    def views(self) -> list[Any]:
        frame, pitch = self.job.device_frame.pointer, self.job.frame.shape[1] * 3
        strides = (pitch, 3, 1)
        return [
            _View(frame + y1 * pitch + x1 * 3, (y2 - y1, x2 - x1, 3), strides)
            for x1, y1, x2, y2 in self.job.boxes.tolist()
        ]


class CvCudaRounded(CvCudaScalar):
    """`resize` to uint8, then `crop_flip_normalize_reformat`: two passes with a quarter of the bytes between them. Both
    take images of different size; the crop is the whole image, and no flip. The resized images are made once."""

    name = "cvcuda-rounded"
    why_different = WHY_DIFFERENT

    def __init__(self, job: CropJob) -> None:
        super().__init__(job)
        height, width = job.size
        crops = self.torch.empty(job.crops_shape, dtype=self.torch.uint8, device="cuda")
        self._resized = self.cv.as_images(list(crops), self.cv.Format.RGB8)
        whole = np.tile(np.array([0, 0, width, height], np.int32), (job.count, 1, 1, 1))
        self._rect = self._tensor(whole, "NHWC")
        self._no_flip = self._tensor(np.full((job.count, 1), NO_FLIP, np.int32), "NC")
        self._base, self._scale = (self._tensor(values.reshape(1, 1, 1, -1), "NHWC") for values in job.affine)

    def _tensor(self, values: NDArray[Any], layout: str) -> Any:
        """A tensor on the device; PyTorch keeps its memory."""
        return self.cv.as_tensor(self.torch.from_numpy(values).cuda(), layout)

    def kernels(self) -> None:
        self.cv.resize_into(self._resized, self._batch, self.cv.Interp.LINEAR, stream=self.stream)
        self.cv.crop_flip_normalize_reformat_into(
            self.out, self._resized, self._rect, self._no_flip, self._base, self._scale, stream=self.stream
        )
