"""Ways to judge the tiles of a scene that users have on the CPU: tile by tile, or by an integral image."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from octopus.backends import cpu
from octopus_study.peers.availability import require_room
from octopus_study.studies.satellite.methods import TileJob


class _ByMeans:
    """What finds a mean per tile; subclasses say how."""

    name = ""

    def __init__(self, job: TileJob) -> None:
        self.job = job
        self._boxes = job.tiles.tolist()
        self.flags = np.zeros(len(job.tiles), np.uint8)

    def run(self) -> None:
        """From the scene to the flags."""
        self.flags = (self.means() / self.job.scale > self.job.threshold).astype(np.uint8)

    def means(self) -> NDArray[np.float64]:
        """Of each tile, over all channels."""
        raise TypeError("a subclass says how to find the means")


class NumPy(_ByMeans):
    """`mean` of each tile."""

    name = "numpy"

    def means(self) -> NDArray[np.float64]:
        """Of each tile, over all channels."""
        image = self.job.image
        return np.array([image[y1:y2, x1:x2].mean() for x1, y1, x2, y2 in self._boxes])


class OpenCv(_ByMeans):
    """`cv2.mean` of each tile."""

    name = "opencv"

    def means(self) -> NDArray[np.float64]:
        """Of each tile, over all channels."""
        image, channels = self.job.image, self.job.image[0, 0].size
        found = [cv2.mean(image[y1:y2, x1:x2])[:channels] for x1, y1, x2, y2 in self._boxes]
        return np.array(found).mean(axis=1)


class Integral(_ByMeans):
    """`cv2.integral` of the scene, then four values per tile; float64 counts exactly what int32 can't hold.

    Raises
    ------
    Unavailable
        The host has too little memory for 8 bytes per value.
    """

    name = "integral"

    def __init__(self, job: TileJob) -> None:
        super().__init__(job)
        height, width = job.image.shape[:2]
        shape = (height + 1, width + 1, *job.image.shape[2:])
        require_room("the integral image", "host", 8 * int(np.prod(shape, dtype=np.int64)), cpu.free_bytes())
        self._table = np.empty(shape)  # written once, so that its pages are not mapped anew each time
        self._table.fill(0)

    def means(self) -> NDArray[np.float64]:
        """Of each tile, over all channels."""
        table = cv2.integral(self.job.image, self._table, sdepth=cv2.CV_64F)
        left, top, right, bottom = self.job.tiles.T
        sums = table[bottom, right] - table[top, right] - table[bottom, left] + table[top, left]
        sums = sums.reshape(len(sums), -1)
        return sums.sum(axis=1) / (self.job.pixels * sums.shape[1])
