"""Study `image_shape`: memory and time of image models by the shape of their input."""

from typing import Literal

from pydantic import Field

from octopus_study.sections import Count, Counts, Seconds, Section, ends_after

DATASET = "visdrone-val"


class ImageShape(Section):
    """Memory and time of image models by the shape of their input."""

    models: list[Literal["drunet", "unet", "dncnn"]] = Field(
        ["drunet", "unet", "dncnn"], min_length=1, description="denoisers"
    )
    height: Count = Field(2048, description="rows of the image")
    widths: tuple[Count, Count] = Field((1024, 2048), description="least and largest columns of the image")
    patch_sides: Counts = Field([128, 256, 512], description="sides of the patches that cover the image")
    patch_batches: Counts = Field([1, 2, 4, 8, 16], min_length=1, description="patches per batch")
    max_seconds: Seconds = ends_after(30.0)
