"""The processors of transformers, which models are served with, the same steps on torchvision without them, and Pillow,
kornia-rs, DALI and CV-CUDA, each in the fastest documented form that fits the task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from octopus.backends.cpu import get_num_threads
from octopus_study.baselines.availability import Unavailable, need, need_torch
from octopus_study.baselines.dali import dali_stream
from octopus_study.baselines.method import require_gpu
from octopus_study.baselines.pillow import image_module
from octopus_study.studies.images.job import (
    BETWEEN,
    BILINEAR,
    LEVELS,
    MERGE,
    ON_THE_HOST,
    PATCH,
    PIXELS,
    ROW,
    ROWS,
    SIDE,
    TEMPORAL,
    TOLERANCE,
    ImageJob,
    ImageMethod,
    by_patches,
    require_batch,
)  # fmt: skip

MODELS, PEERS, CUDA13 = (f"pip install -e './workflow[{extra}]'" for extra in ("models", "baselines", "arena-cuda13"))
PROCESSORS = {
    "rows": ("transformers.models.qwen2_vl.image_processing_qwen2_vl", "Qwen2VLImageProcessor"),
    "batch": ("transformers.models.siglip.image_processing_siglip", "SiglipImageProcessor"),
}
# Of NVIDIA's resampling, seen in DALI: within the image it agrees.
REPEATS = "repeats an image's edge where Pillow leaves out that part of the filter"
NO_FLIP = 2  # any value but -1, 0 and 1


class TorchImages(ImageMethod):
    """A method on tensors (3, height, width): planes on a GPU, and on a CPU views with the channels last in memory.

    On a CPU torchvision resizes bytes in fixed point of 16 bits and rounds after each pass, so that it is up to a level
    per pass from Pillow.
    """

    def __init__(self, job: ImageJob) -> None:
        on_gpu = job.on_gpu and not self.on_host
        if not on_gpu:
            self.right, self.tolerance = BETWEEN, 2.01
        super().__init__(job)
        self.torch = need_torch("cuda" if on_gpu else "cpu", "baselines")
        self.images = [self._tensor(image) for image in (job.working if on_gpu else job.images)]

    def _tensor(self, image: Any) -> Any:
        if hasattr(image, "__cuda_array_interface__"):
            return self.torch.as_tensor(image, device="cuda")
        return self.torch.from_numpy(image).permute(2, 0, 1)


class Transformers(TorchImages):
    """The model's own processor, made from its class, which downloads nothing.

    It makes each image contiguous planes before it resizes it, so it gets such, which spares it that copy.
    """

    name = "transformers"

    def __init__(self, job: ImageJob) -> None:
        super().__init__(job)
        self.images = [image.contiguous() for image in self.images]
        module, kind = PROCESSORS[job.task]
        mean, std = job.parts
        model = {**PIXELS, "patch_size": job.patch, "image_mean": mean, "image_std": std} if job.task == ROWS else {}
        self._processor = getattr(need(module, "transformers", MODELS), kind)(**model)
        if getattr(self._processor, "backend", "") != "torchvision":
            raise Unavailable("this transformers has no processor that works on tensors; version 5 has")

    def run(self) -> None:
        self.made = None
        self.made = self._processor(self.images, return_tensors="pt")["pixel_values"]


class TransformersOnHost(Transformers):
    """The same beside a GPU, from images on the host to a result there, which flatters it: models run on the GPU."""

    name = "transformers-cpu"
    on_host = True

    def __init__(self, job: ImageJob) -> None:
        if not job.on_gpu:
            raise Unavailable("on a CPU that is transformers itself")
        super().__init__(job)


class Torchvision(TorchImages):
    """Resize, normalise and lay out image by image."""

    name = "torchvision-loop"
    grouped = False

    def __init__(self, job: ImageJob) -> None:
        super().__init__(job)
        self._functions = need("torchvision.transforms.v2.functional", "torchvision", MODELS)
        self._cubic = self._functions.InterpolationMode.BICUBIC
        self._mean, self._std = (list(values) for values in job.normal)
        self._size_of = dict(zip(map(tuple, job.shapes.tolist()), job.sizes.tolist(), strict=True))

    def run(self) -> None:
        self.made = None
        resized = self._mapped(self._resize, self.images)
        made = self._mapped(self._finish, resized)
        self.made = self.torch.cat(made) if self.job.task == ROWS else self.torch.stack(made)

    def _mapped(self, work: Callable[[Any], Any], tensors: Sequence[Any]) -> list[Any]:
        """Do something with all tensors, one by one or with those of one shape at once."""
        groups: dict[Any, list[int]] = {}
        for place, tensor in enumerate(tensors):
            groups.setdefault(tensor.shape if self.grouped else place, []).append(place)
        done: dict[int, Any] = {}
        for places in groups.values():
            group = [tensors[place] for place in places]
            done.update(zip(places, work(self.torch.stack(group) if group[1:] else group[0][None]), strict=True))
        return [done[place] for place in range(len(tensors))]

    def _resize(self, images: Any) -> Any:
        size = self._size_of[tuple(images.shape[-2:])]
        return self._functions.resize(images, size, interpolation=self._cubic, antialias=True)

    def _finish(self, images: Any) -> Any:
        values = self._functions.normalize(images.to(self.torch.float32), self._mean, self._std, inplace=True)
        return self._patches(values) if self.job.task == ROWS else values

    def _patches(self, values: Any) -> Any:
        count, channels, height, width = values.shape
        block = PATCH * MERGE
        split = values.view(count, channels, height // block, MERGE, PATCH, width // block, MERGE, PATCH)
        ordered = split.permute(0, 2, 5, 3, 6, 1, 4, 7).unsqueeze(6)
        return ordered.expand(*[-1] * 6, TEMPORAL, -1, -1).reshape(count, -1, ROW)


class TorchvisionGrouped(Torchvision):
    """Images of one shape at once, which is as far as batching goes there."""

    name = "torchvision-grouped"
    grouped = True


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


class DaliImages(ImageMethod):
    """`resize` to bytes, cubic and antialiased, all images in one launch, then `crop_mirror_normalize` to planes."""

    name = "dali"
    why_different = REPEATS

    def __init__(self, job: ImageJob) -> None:
        super().__init__(job)
        require_batch(job, "DALI")
        self._dali = need("nvidia.dali.experimental.dynamic", "NVIDIA DALI", CUDA13)
        types, tensors = (need(f"nvidia.dali.{name}", "NVIDIA DALI", CUDA13) for name in ("types", "tensors"))
        self._cubic, self._place = types.INTERP_CUBIC, "gpu" if job.on_gpu else "cpu"
        if job.on_gpu:
            self._dali.set_current_stream(int(dali_stream().handle))
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
        self._between, self._rest = self._batch(self._resized), self._arguments()

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
        stream = self._cv.Stream.default
        self._cv.hq_resize_into(
            self._between, self._batch(self._images), antialias=True, interpolation=self._cv.Interp.CUBIC, stream=stream
        )
        self._cv.crop_flip_normalize_reformat_into(self._out, self._between, *self._rest, stream=stream)
