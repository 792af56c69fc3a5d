"""The methods by name, and which of them a device has."""

from __future__ import annotations

from octopus_study.studies.images.job import ImageJob
from octopus_study.studies.images.libraries import CvCudaImages, DaliImages, KorniaRs, Pillow, PillowSimd
from octopus_study.studies.images.method import ImageMethod
from octopus_study.studies.images.own import (
    Bfloat16,
    Bilinear,
    Octopus,
    OneCall,
    PillowRounding,
    SameSizes,
    SimpleKernelAlone,
)
from octopus_study.studies.images.owners import OWNERS
from octopus_study.studies.images.torch_methods import (
    Torchvision,
    TorchvisionGrouped,
    Transformers,
    TransformersOnHost,
)

OWN = (Octopus, OneCall, Bfloat16, PillowRounding)
BY_DEVICE: dict[str, tuple[type[ImageMethod], ...]] = {
    "cuda": (
        *OWN, SameSizes, SimpleKernelAlone, *OWNERS, Transformers, TransformersOnHost, Torchvision, TorchvisionGrouped,
        DaliImages, CvCudaImages,
    ),
    "cpu": (
        *OWN, Bilinear, Transformers, Torchvision, TorchvisionGrouped, Pillow, PillowSimd, KorniaRs, DaliImages,
    ),
}  # fmt: skip


def names(device: str) -> tuple[str, ...]:
    """All methods of a device, in the order of the report."""
    return tuple(kind.name for kind in BY_DEVICE[device])


def make(name: str, job: ImageJob) -> ImageMethod:
    """The method of that name.

    Raises
    ------
    Unavailable
        It can't run here; the message says why.
    """
    return next(kind for kind in BY_DEVICE[job.device] if kind.name == name)(job)
