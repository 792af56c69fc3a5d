"""The processors of transformers, which models are served with, and the same steps on torchvision without them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from octopus_study.peers.availability import Unavailable, need, need_torch
from octopus_study.studies.images.job import BETWEEN, MERGE, PATCH, PIXELS, ROW, ROWS, TEMPORAL, ImageJob
from octopus_study.studies.images.method import MANY_LAUNCHES, ON_THE_HOST, ImageMethod

INSTALL = "pip install -e './workflow[models]'"
PROCESSORS = {
    "rows": ("transformers.models.qwen2_vl.image_processing_qwen2_vl", "Qwen2VLImageProcessor"),
    "batch": ("transformers.models.siglip.image_processing_siglip", "SiglipImageProcessor"),
}


class TorchImages(ImageMethod):
    """A method on tensors (3, height, width): planes on a GPU, and on a CPU views with the channels last in memory.

    On a CPU torchvision resizes bytes in fixed point of 16 bits and rounds after each pass, so that it is up to a level
    per pass from Pillow.
    """

    why_no_device = MANY_LAUNCHES

    def __init__(self, job: ImageJob) -> None:
        on_gpu = job.on_gpu and not self.on_host
        if not on_gpu:
            self.right, self.tolerance = BETWEEN, 2.01
        super().__init__(job)
        self.torch = need_torch("cuda" if on_gpu else "cpu", "peers")
        self.images = [self._tensor(image) for image in (job.working if on_gpu else job.images)]

    def _tensor(self, image: Any) -> Any:
        if hasattr(image, "__cuda_array_interface__"):
            return self.torch.as_tensor(image, device="cuda")
        return self.torch.from_numpy(image).permute(2, 0, 1)

    def allocator_peak(self) -> int | None:
        return int(self.torch.cuda.max_memory_allocated()) if self.job.on_gpu else None


class Transformers(TorchImages):
    """The model's own processor, made from its class, which downloads nothing.

    It makes each image contiguous planes before it resizes it, so it gets such, which spares it that copy.
    """

    name = "transformers"

    def __init__(self, job: ImageJob) -> None:
        super().__init__(job)
        self.images = [image.contiguous() for image in self.images]
        module, kind = PROCESSORS[job.task]
        self._processor = getattr(need(module, "transformers", INSTALL), kind)(
            **(PIXELS if job.task == ROWS else {})
        )
        if getattr(self._processor, "backend", "") != "torchvision":
            raise Unavailable("this transformers has no processor that works on tensors; version 5 has")

    def run(self) -> None:
        self.made = None
        self.made = self._processor(self.images, return_tensors="pt")["pixel_values"]


class TransformersOnHost(Transformers):
    """The same beside a GPU, from images on the host to a result there, which flatters it: models run on the GPU."""

    name = "transformers-cpu"
    why_no_device = ON_THE_HOST
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
        self._functions = need("torchvision.transforms.v2.functional", "torchvision", INSTALL)
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
            done.update(
                zip(places, work(self.torch.stack(group) if group[1:] else group[0][None]), strict=True)
            )
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
