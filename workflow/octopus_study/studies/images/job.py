"""The batches, what every method is given, what the right answer is, and how a method is written.

`octopus_study.studies.pictures` has the rules of sizes and pixels.

Three answers are right. `once`: both passes of the bicubic filter in floating point, then whole levels, as torchvision
does it on a GPU; the reference isn't rounded, and who is within half a level of it gives that answer, but for what
single precision adds: it knows a place 2048 pixels from the edge to 1.2e-4 of a pixel on each axis, and between two
pixels lie up to 255 levels, which makes 0.06. `between`: whole levels after each pass, as Pillow does it, which is the
reference itself. `bilinear`: of four neighbours, however far an image shrinks, by OpenCV in floating point.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from octopus.backends.cuda import memory
from octopus.images import smart_sizes
from octopus_study.baselines.availability import Unavailable
from octopus_study.baselines.method import JobMethod
from octopus_study.measure import Method, check_answers
from octopus_study.status import different
from octopus_study.studies.context import Context
from octopus_study.studies.pictures import Batch

ROWS, BATCH = "rows", "batch"  # tasks: patch rows as Qwen2-VL takes them, or a batch as SigLIP does
SIDE = 224  # of the images of a batch
LEVELS = 255.0
# Mean and deviation by task, in parts of the range: those of Qwen2-VL's processor and of SigLIP's.
NORMAL = {
    ROWS: ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)),
    BATCH: ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
}
PATCH, MERGE, TEMPORAL = 14, 2, 2
PIXELS = {"min_pixels": 56 * 56, "max_pixels": 28 * 28 * 1280}
ROW = 3 * TEMPORAL * PATCH**2  # values of a patch row
CHECKED = 6  # images of a batch that are compared with the reference, spread over all of it
ONCE, BETWEEN, BILINEAR = "once", "between", "bilinear"
ON_THE_HOST = "works on the host; a CPU's own rows have it"
# Levels: half of one and what single precision adds, or none at all.
TOLERANCE = {ONCE: 0.56, BETWEEN: 1e-3, BILINEAR: 0.56}


BATCHES = {
    "large": Batch(32, (512, 512), (2048, 2048)),
    "small": Batch(256, (64, 64), (512, 512)),
    "thumbnails": Batch(256, (256, 256), (1024, 1024)),
    "equal": Batch(32, (1024, 1024), (1024, 1024)),
    "one": Batch(1, (1080, 1920), (1080, 1920)),
}


def job_of(context: Context, workload: str, count: int) -> ImageJob:
    """The job of so many images of a batch; thumbnails become one, the others rows."""
    images = BATCHES[workload].cut(context.workload.frame, count, context.seed)
    return ImageJob(images, BATCH if workload == "thumbnails" else ROWS, context.device)


@dataclass(frozen=True, eq=False)
class ImageJob:
    """Resize bicubically with antialiasing, round to whole levels, normalise, and lay out as the model takes it."""

    images: list[NDArray[np.uint8]]  # on the host
    task: str  # {"rows", "batch"}
    device: str  # {"cpu", "cuda"}
    patch: int = PATCH  # pixels of a patch's side
    _expected: dict[str, NDArray[np.float32]] = field(init=False, default_factory=dict)

    @property
    def on_gpu(self) -> bool:
        """Whether the methods work on the GPU."""
        return self.device == "cuda"

    @cached_property
    def shapes(self) -> NDArray[np.int64]:
        """Heights and widths of the images, (N, 2)."""
        return np.array([image.shape[:2] for image in self.images], np.int64)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Heights and widths of the resized images, (N, 2)."""
        if self.task == BATCH:
            return np.full_like(self.shapes, SIDE)
        return np.asarray(smart_sizes(self.shapes, self.patch * MERGE, **PIXELS))

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Where each image begins on the first axis of the result, and its end."""
        items = self.sizes.prod(axis=1) // self.patch**2 if self.task == ROWS else np.ones(len(self.images), int)
        return np.concatenate([[0], np.cumsum(items)])

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the result."""
        return (int(self.starts[-1]), *((ROW,) if self.task == ROWS else (3, SIDE, SIDE)))

    @cached_property
    def working(self) -> list[Any]:
        """The images where the work is done: planes on a GPU, as they are on a CPU."""
        if not self.on_gpu:
            return self.images
        return [memory.upload(np.ascontiguousarray(image.transpose(2, 0, 1))) for image in self.images]

    @cached_property
    def interleaved(self) -> list[Any]:
        """The images where the work is done with their channels last, for libraries that take nothing else."""
        return [memory.upload(image) for image in self.images] if self.on_gpu else self.images

    @cached_property
    def out(self) -> Any:
        """Room for a result, float32."""
        return self.room(np.float32)

    def room(self, dtype: Any) -> Any:
        """Memory of the result's shape where the work is done."""
        kind: Callable[..., Any] = memory.DeviceArray if self.on_gpu else np.empty
        return kind(self.shape, dtype)

    @property
    def parts(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Mean and deviation per channel, in parts of the range."""
        return NORMAL[self.task]

    @property
    def normal(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """The same in levels."""
        mean, std = self.parts
        return tuple(LEVELS * value for value in mean), tuple(LEVELS * value for value in std)

    @cached_property
    def checked(self) -> list[int]:
        """The images that are compared with the reference."""
        return list(range(0, len(self.images), -(-len(self.images) // CHECKED)))

    def expected(self, right: str) -> NDArray[np.float32]:
        """A right answer of the checked images in levels, one behind the other."""
        if right not in self._expected:
            resized = (RESIZERS[right](self.images[index], *self.sizes[index].tolist()) for index in self.checked)
            made = np.concatenate([arranged(levels, self.task, self.patch) for levels in resized])
            self._expected[right] = made.astype(np.float32)
        return self._expected[right]

    def picked(self, output: Any) -> NDArray[np.float32]:
        """The checked images of a result, on the host and in levels again."""
        found = self.taken(output)
        mean, std = (np.array(values, np.float32)[:, None] for values in self.normal)
        return (found.reshape(len(found), 3, -1) * std + mean).reshape(found.shape)

    def taken(self, output: Any) -> NDArray[np.float32]:
        """The checked images of a result, on the host."""
        parts = [host_part(output, *self.starts[index : index + 2].tolist()) for index in self.checked]
        return np.concatenate(parts).astype(np.float32)

    @cached_property
    def _kept(self) -> list[NDArray[np.uint8]]:
        return [image.copy() for image in self.images]

    def check(self, method: Method, right: str) -> str:
        """A method's answer; the images are mended behind one that writes into them."""
        _ = self._kept
        answer = check_answers([method], self.expected(right))[method.name]
        return different("it wrote into its images") if self._mend() else answer

    def _mend(self) -> bool:
        """Put back what was written into the images, on the host and on the device; whether there was anything."""
        harmed = [(image, kept) for image, kept in zip(self.images, self._kept, strict=True) if (image != kept).any()]
        for image, kept in harmed:
            image[...] = kept
        planes = [kept.transpose(2, 0, 1) for kept in self._kept]
        for name, right in (("working", planes), ("interleaved", self._kept)) if self.on_gpu else ():
            for found, kept in zip(self.__dict__.get(name, ()), right, strict=False):
                if not np.array_equal(found.copy_to_host(), kept):
                    harmed.append((found, kept))
                    found.copy_from_host(np.ascontiguousarray(kept))
        return bool(harmed)


def _unrounded(image: NDArray[np.uint8], height: int, width: int) -> NDArray[np.float32]:
    """Both passes in floating point, by Pillow; clamped, since the filter overshoots."""
    planes = (Image.fromarray(plane) for plane in image.transpose(2, 0, 1).astype(np.float32))
    return np.dstack([plane.resize((width, height), Image.Resampling.BICUBIC) for plane in planes]).clip(0, LEVELS)


def _rounded(image: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    """By Pillow on bytes, horizontally first, which Pillow 13 does for some shapes alone."""
    wide = Image.fromarray(image).resize((width, len(image)), Image.Resampling.BICUBIC)
    return np.asarray(wide.resize((width, height), Image.Resampling.BICUBIC))


def _bilinear(image: NDArray[np.uint8], height: int, width: int) -> NDArray[np.float32]:
    return cv2.resize(image.astype(np.float32), (width, height), interpolation=cv2.INTER_LINEAR)


RESIZERS: dict[str, Callable[..., NDArray[Any]]] = {ONCE: _unrounded, BETWEEN: _rounded, BILINEAR: _bilinear}


def arranged(levels: NDArray[Any], task: str, patch: int = PATCH) -> NDArray[Any]:
    """A resized image (height, width, 3) as rows of patches (R, 6 * patch²), or as one item (1, 3, height, width)."""
    if task == BATCH:
        return levels.transpose(2, 0, 1)[None]
    patches = by_patches(levels, patch)
    both = np.broadcast_to(patches[..., None, :, :], (*patches.shape[:5], TEMPORAL, patch, patch))
    return both.reshape(-1, 3 * TEMPORAL * patch**2)


def by_patches(levels: NDArray[Any], patch: int = PATCH) -> NDArray[Any]:
    """A view (height / 2p, width / 2p, 2, 2, 3, p, p) of a resized image: merged blocks, patches, planes."""
    height, width, channels = levels.shape
    block = patch * MERGE
    split = levels.reshape(height // block, MERGE, patch, width // block, MERGE, patch, channels)
    return split.transpose(0, 3, 1, 4, 6, 2, 5)


def host_part(output: Any, first: int, last: int) -> NDArray[np.float32]:
    """Some items of a result of any library as float32 on the host."""
    if isinstance(output, memory.DeviceArray):
        shape = (last - first, *output.shape[1:])
        return output.part(first * prod(shape[1:]), shape).copy_to_host()
    part = output[first:last]
    return part if isinstance(part, np.ndarray) else part.float().cpu().numpy()


class ImageMethod(JobMethod):
    """A way to make a job's result, from the list of images where they lie."""

    right = ONCE  # "once", "between" or "bilinear": which reference its answer is compared with
    tolerance = TOLERANCE[ONCE]  # in levels
    job: ImageJob

    def result(self, every: int = 1) -> NDArray[np.float32]:
        return self.job.picked(self.output())


def require_batch(job: ImageJob, product: str) -> None:
    """Raise `Unavailable` for a job that asks for patch rows."""
    if job.task != BATCH:
        raise Unavailable(f"{product} has no operator that writes patch rows")
