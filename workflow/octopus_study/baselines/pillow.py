"""Pillow and Pillow-SIMD crop by crop. Both are named PIL; the second lies in a folder beside, or in Pillow's place."""

from typing import Any

import numpy as np
import PIL
from numpy.typing import NDArray
from PIL import Image

from octopus_study.baselines.availability import Unavailable, need
from octopus_study.baselines.box_by_box import BoxByBox
from octopus_study.baselines.job import CropJob

SIMD = "post"  # in the version of Pillow-SIMD
INSTALL = "pip install --target SITE-PACKAGES/pillow_simd pillow-simd, with CC='cc -mavx2'"


def image_module(simd: bool) -> Any:
    """The module `Image` of Pillow-SIMD, or of Pillow itself; raises `Unavailable`."""
    if simd is (SIMD in PIL.__version__):
        return Image
    if simd:
        return need("pillow_simd.PIL.Image", "Pillow-SIMD", INSTALL)
    raise Unavailable(f"Pillow is not installed: Pillow-SIMD {PIL.__version__} is in its place")


class Pillow(BoxByBox):
    """The frame as an image, its crops, `Image.resize`: antialiased, bytes with their channels last. Cropped first:
    with `box` of `resize` the filter reads across the edge of a box."""

    name = "pillow"
    simd = False
    stages = 1

    def __init__(self, job: CropJob) -> None:
        super().__init__(job)
        self._module = image_module(self.simd)
        self._image: Any = None

    def begin(self, stage: int) -> None:
        self._image = self._module.fromarray(self.job.frame)

    def crop(self, x1: int, y1: int, x2: int, y2: int, item: NDArray[np.uint8]) -> None:
        item[...] = self._image.crop((x1, y1, x2, y2)).resize(self._size, self._module.Resampling.BILINEAR)


class PillowSimd(Pillow):
    """The same with Pillow-SIMD."""

    name = "pillow-simd"
    simd = True
