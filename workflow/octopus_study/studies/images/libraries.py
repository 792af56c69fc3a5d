"""Pillow, kornia-rs, DALI and CV-CUDA, each in the fastest documented form that fits the task."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np

from octopus.backends.cpu import get_num_threads
from octopus_study.peers.availability import Unavailable, need
from octopus_study.peers.method import NOT_BY_EVENTS, blocking_stream, require_gpu
from octopus_study.peers.pillow import image_module
from octopus_study.studies.images.job import (
    BETWEEN,
    BILINEAR,
    LEVELS,
    ROWS,
    SIDE,
    TEMPORAL,
    TOLERANCE,
    ImageJob,
    by_patches,
)
from octopus_study.studies.images.method import ON_THE_HOST, ImageMethod, require_batch

PEERS, CUDA13 = (f"pip install -e './workflow[{extra}]'" for extra in ("peers", "arena-cuda13"))
# Of NVIDIA's resampling, seen in DALI: within the image it agrees.
REPEATS = "repeats an image's edge where Pillow leaves out that part of the filter"
NO_FLIP = 2  # any value but -1, 0 and 1


class Pillow(ImageMethod):
    """Images on a pool of as many threads as the others have; Pillow gives Python's lock away while it resizes.

    It clamps between the passes, so that their order shows.
    """

    name = "pillow"
    right, tolerance = BETWEEN, TOLERANCE[BETWEEN]
    why_different = "from version 13 on Pillow does the vertical pass first where that is less work"
    simd = False

    def __init__(self, job: ImageJob) -> None:
        super().__init__(job)
        if job.on_gpu:
            raise Unavailable(ON_THE_HOST)
        self._module = image_module(self.simd)
        mean, std = (np.array(values) for values in job.normal)
        shape = (3, 1, 1)  # of planes, whether of patches or of whole images
        self._gain = (1 / std).astype(np.float32).reshape(shape)
        self._bias = (-mean / std).astype(np.float32).reshape(shape)
        self._pool = ThreadPoolExecutor(get_num_threads())
        self.made = job.out

    def run(self) -> None:
        list(self._pool.map(self._one, range(len(self.job.images))))

    def _one(self, index: int) -> None:
        job = self.job
        height, width = job.sizes[index].tolist()
        image = self._module.fromarray(job.images[index])
        resized = np.asarray(image.resize((width, height), self._module.Resampling.BICUBIC))
        out = job.out[slice(*job.starts[index : index + 2])]
        if job.task == ROWS:
            patches = by_patches(resized)
            copies = out.reshape(*patches.shape[:5], TEMPORAL, *patches.shape[5:])
            self._normalised(patches, copies[..., 0, :, :])
            copies[..., 1:, :, :] = copies[..., :1, :, :]
        else:
            self._normalised(resized.transpose(2, 0, 1), out[0])

    def _normalised(self, levels: np.ndarray, out: np.ndarray) -> None:
        np.multiply(levels, self._gain, out=out)
        out += self._bias


class PillowSimd(Pillow):
    """The same with Pillow-SIMD."""

    name = "pillow-simd"
    why_different = "weights of 16 bits, where Pillow has 22"
    simd = True


class KorniaRs(ImageMethod):
    """`resize_normalize_to_tensor_batch`, on the threads that it chooses itself: bilinear without antialiasing."""

    name = "kornia-rs"
    right = BILINEAR

    def __init__(self, job: ImageJob) -> None:
        super().__init__(job)
        require_batch(job, "kornia-rs")
        if job.on_gpu:
            raise Unavailable(ON_THE_HOST)
        self._run = need("kornia_rs", "kornia-rs", PEERS).pipeline.resize_normalize_to_tensor_batch
        self._normal = [[value / LEVELS for value in values] for values in job.normal]

    def run(self) -> None:
        planes = self._run(self.job.images, (SIDE, SIDE), *self._normal)
        self.made = np.stack(planes, out=self.job.out)


@cache
def _stream() -> Any:
    """One stream for the whole process: DALI gives memory back on it long after a method is gone."""
    return blocking_stream()


class DaliImages(ImageMethod):
    """`resize` to bytes, cubic and antialiased, all images in one launch, then `crop_mirror_normalize` to planes."""

    name = "dali"
    why_different = REPEATS
    why_no_device = NOT_BY_EVENTS

    def __init__(self, job: ImageJob) -> None:
        super().__init__(job)
        require_batch(job, "DALI")
        self._dali = need("nvidia.dali.experimental.dynamic", "NVIDIA DALI", CUDA13)
        types, tensors = (need(f"nvidia.dali.{name}", "NVIDIA DALI", CUDA13) for name in ("types", "tensors"))
        self._cubic, self._place = types.INTERP_CUBIC, "gpu" if job.on_gpu else "cpu"
        if job.on_gpu:
            self._dali.set_current_stream(int(_stream().handle))
            self._images = [tensors.TensorGPU(image, layout="HWC") for image in job.interleaved]
        else:
            self._images = job.images
            self._dali.set_num_threads(get_num_threads())

    def run(self) -> None:
        batch = self._dali.as_batch([self._dali.as_tensor(image, layout="HWC") for image in self._images])
        resized = self._dali.resize(
            batch, size=[SIDE, SIDE], interp_type=self._cubic, antialias=True, device=self._place,
            minibatch_size=len(self._images),
        )  # fmt: skip
        mean, std = (list(values) for values in self.job.normal)
        planes = self._dali.crop_mirror_normalize(
            resized, mean=mean, std=std, dtype=self._dali.float32, output_layout="CHW", device=self._place
        )
        self.made = self._dali.as_tensor(planes).evaluate()

    def output(self) -> Any:
        return np.asarray(self.made.cpu())


class CvCudaImages(ImageMethod):
    """`hq_resize` of a batch of images of any size, to bytes, then `crop_flip_normalize_reformat`: two passes."""

    name = "cvcuda"
    why_different = REPEATS

    def __init__(self, job: ImageJob) -> None:
        super().__init__(job)
        require_gpu(job, "CV-CUDA")
        require_batch(job, "CV-CUDA")
        self._cv = need("cvcuda", "CV-CUDA", CUDA13)
        self._torch = need("torch", "PyTorch, whose tensors CV-CUDA takes as images", PEERS)
        self._images = [self._torch.as_tensor(image, device="cuda") for image in job.interleaved]
        self.made, self._out = job.out, self._cv.as_tensor(job.out, "NCHW")
        shape = (len(self._images), SIDE, SIDE, 3)
        self._resized = self._torch.empty(shape, dtype=self._torch.uint8, device="cuda")
        self._between, self._sources = self._batch(self._resized), self._batch(self._images)
        self._rest = self._arguments()

    def _arguments(self) -> list[Any]:
        """The whole image as the crop, no flip, and the normalisation, as tensors on the device."""
        count, (mean, std) = len(self._images), (np.array(values, np.float32) for values in self.job.normal)
        whole = np.tile(np.array([0, 0, SIDE, SIDE], np.int32), (count, 1, 1, 1))
        pairs = (
            (whole, "NHWC"),
            (np.full((count, 1), NO_FLIP, np.int32), "NC"),
            (mean.reshape(1, 1, 1, -1), "NHWC"),
            (1 / std.reshape(1, 1, 1, -1), "NHWC"),
        )
        return [self._cv.as_tensor(self._torch.from_numpy(array).cuda(), kind) for array, kind in pairs]

    def _batch(self, images: Any) -> Any:
        return self._cv.as_images(list(images), self._cv.Format.RGB8)

    def run(self) -> None:
        self._sources = self._batch(self._images)
        self.kernels()

    def kernels(self) -> None:
        stream = self._cv.Stream.default
        self._cv.hq_resize_into(
            self._between, self._sources, antialias=True, interpolation=self._cv.Interp.CUBIC, stream=stream
        )
        self._cv.crop_flip_normalize_reformat_into(self._out, self._between, *self._rest, stream=stream)
