"""Pillow and Pillow-SIMD crop by crop, and which of the two is installed."""

from __future__ import annotations

from typing import Any

import numpy as np
import PIL
from numpy.typing import NDArray
from PIL import Image

from octopus_study.peers.availability import Unavailable
from octopus_study.peers.box_by_box import BoxByBox, OnThreads
from octopus_study.peers.job import CropJob

SIMD = "post"  # in the version of Pillow-SIMD, which takes Pillow's place


def require_pillow(simd: bool) -> None:
    """Raise `Unavailable` unless the package that is imported is Pillow-SIMD, or Pillow itself."""
    if (SIMD in PIL.__version__) is not simd:
        other = "Pillow-SIMD" if simd else "Pillow"
        raise Unavailable(
            f"{other} is not installed: Pillow {PIL.__version__} is, and one takes the other's place"
        )


class Pillow(BoxByBox):
    """The frame as an image, its crops, `Image.resize`: antialiased, bytes with their channels last.

    Cropped first: with `box` of `resize` the filter reads across the edge of a box.
    """

    name = "pillow"
    simd = False
    stages = 1

    def __init__(self, job: CropJob) -> None:
        super().__init__(job)
        require_pillow(self.simd)
        self._image: Any = None

    def begin(self, stage: int) -> None:
        """The frame in Pillow's own layout."""
        self._image = Image.fromarray(self.job.frame)

    def crop(self, x1: int, y1: int, x2: int, y2: int, item: NDArray[np.uint8]) -> None:
        """One crop."""
        resized = self._image.crop((x1, y1, x2, y2)).resize(self._size, Image.Resampling.BILINEAR)
        item[...] = resized


class PillowThreads(Pillow, OnThreads):
    """The same on all threads; Pillow gives Python's lock away while it resizes."""

    name = "pillow-threads"


class PillowSimd(Pillow):
    """The same with Pillow-SIMD in its place."""

    name = "pillow-simd"
    simd = True


class PillowSimdThreads(PillowSimd, OnThreads):
    """Pillow-SIMD on all threads."""

    name = "pillow-simd-threads"
