"""Octopus: one launch for all images, by a plan, by one call, in half the bytes, and rounded as Pillow rounds."""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any

from octopus.images import ImagePlan, patch_rows, resize, smart_sizes
from octopus_study.baselines.availability import Unavailable, need_torch
from octopus_study.studies.images.job import (
    BETWEEN,
    BILINEAR,
    LEVELS,
    MERGE,
    PIXELS,
    ROWS,
    SIDE,
    TEMPORAL,
    TOLERANCE,
    ImageJob,
    ImageMethod,
    require_batch,
)  # fmt: skip

HALF_ULP = 2.0**-8  # largest relative error of rounding to bfloat16


class OctopusImages(ImageMethod):
    """What Octopus' methods share: its images, the sizes that they get, and the options.

    Every run has the images in the other order than the one before, so that it finds nothing of that (a plan keeps what
    it knows of sizes); the first one behind `poison` has them as they are, for the check.
    """

    dtype, way = "float32", "uint8"

    def __init__(self, job: ImageJob) -> None:
        super().__init__(job)
        self.images = self.tensors()
        self.orders, self.runs = (self.images, self.images[::-1]), 0

    def tensors(self) -> list[Any]:
        """The images as most have them on a GPU, as tensors of torch over the same memory, if there is torch."""
        try:
            torch = need_torch("cuda", "baselines") if self.job.on_gpu else None
        except Unavailable:
            torch = None
        return [torch.as_tensor(image, device="cuda") if torch else image for image in self.job.working]

    def turn(self) -> list[Any]:
        self.runs += 1
        return self.orders[1 - self.runs % 2]

    def poison(self) -> None:
        """As of other methods, and the next run has the images as they are."""
        self.runs = 0
        super().poison()

    @cached_property
    def sizes(self) -> Any:
        """The rule of the model, by which each batch's heights and widths are found anew; None for one size."""
        return partial(smart_sizes, factor=self.job.patch * MERGE, **PIXELS) if self.job.task == ROWS else None

    @property
    def operation(self) -> str:
        return "patch_rows" if self.job.task == ROWS else "resize"

    def options(self) -> dict[str, Any]:
        mean, std = self.job.normal
        rows = {"patch": self.job.patch, "merge": MERGE, "temporal": TEMPORAL}
        chosen: dict[str, Any] = rows if self.job.task == ROWS else {"size": (SIDE, SIDE)}
        how = {"filter": "bicubic", "rounding": self.way, "dtype": self.dtype, "device": self.job.device}
        return {**chosen, **how, "mean": mean, "std": std}


class Octopus(OctopusImages):
    """A plan's run: sizes, a table, its upload, one launch."""

    name = "octopus"

    def __init__(self, job: ImageJob) -> None:
        super().__init__(job)
        self.plan = self.planned()
        self.made = self.room()
        self.run()

    def planned(self) -> ImagePlan:
        job = self.job
        room = {"result_rows": job.shape[0]} if job.task == ROWS else {}
        return ImagePlan(self.operation, self.images[0], len(self.images), allocate=False, **room, **self.options())

    def room(self) -> Any:
        return self.job.out

    def run(self) -> None:
        self.plan.run(self.turn(), self.sizes, out=self.made)

    def kernels(self) -> None:
        from octopus.backends.cuda import stream_of

        self.plan.engine.again(stream_of(None))


class Bfloat16(Octopus):
    """The same with half the bytes to write, from and to tensors of torch, since NumPy has no such numbers."""

    name = "octopus-bf16"
    dtype = "bfloat16"

    def __init__(self, job: ImageJob) -> None:
        self._torch = need_torch(job.device, "baselines")
        super().__init__(job)
        self.tolerance += LEVELS * HALF_ULP

    def room(self) -> Any:
        return self._torch.empty(self.job.shape, dtype=self._torch.bfloat16, device=self.job.device)


class SameSizes(Octopus):
    """The same images in the same order again and again, of which the plan keeps what it knows of their sizes."""

    name = "octopus-same-sizes"

    def turn(self) -> list[Any]:
        return self.images


class PillowRounding(Octopus):
    """The same with Pillow's fixed point, bit for bit."""

    name = "octopus-pillow"
    way = "pillow12"
    right, tolerance = BETWEEN, TOLERANCE[BETWEEN]


class Bilinear(Octopus):
    """Bilinear without antialiasing, beside kornia-rs, which has nothing else."""

    name = "octopus-bilinear"
    right = BILINEAR

    def __init__(self, job: ImageJob) -> None:
        require_batch(job, "kornia-rs, beside which it stands,")
        super().__init__(job)

    def options(self) -> dict[str, Any]:
        return super().options() | {"filter": "bilinear", "antialias": False, "rounding": "none"}


class SimpleKernelAlone(Octopus):
    """The same by the kernel that takes any images and any options, beside which the fast one stands."""

    name = "octopus-simple"

    def planned(self) -> ImagePlan:
        from octopus.images.cuda import CudaEngine, SimpleKernel

        plan = super().planned()
        plan.engine = CudaEngine(plan.engine.spec, (SimpleKernel(plan.engine.spec),))
        return plan


class OneCall(OctopusImages):
    """`patch_rows` or `resize` without a plan of one's own; the memory of the result is part of the call."""

    name = "octopus-one-call"

    def run(self) -> None:
        self.made = None  # what a caller does who has used the result before
        images = self.turn()
        if self.job.task == ROWS:
            self.made, _ = patch_rows(images, self.sizes, **self.options())
        else:
            self.made = resize(images, **self.options())
