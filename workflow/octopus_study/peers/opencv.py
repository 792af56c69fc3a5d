"""OpenCV on one thread, crop by crop: what most programs do."""

from __future__ import annotations

import cv2
import numpy as np

from octopus_study.peers.job import CropJob


class _OpenCv:
    """Float resize of each crop; subclasses normalise and split into planes."""

    def __init__(self, job: CropJob) -> None:
        self.job = job
        self._size = (job.size[1], job.size[0])

    def run(self) -> None:
        """All boxes, one after the other, on one thread."""
        cv2.setNumThreads(1)
        for index, (x1, y1, x2, y2) in enumerate(self.job.boxes.tolist()):
            crop = self.job.frame[y1:y2, x1:x2].astype(np.float32)
            self._finish(cv2.resize(crop, self._size, interpolation=cv2.INTER_LINEAR), self.job.out[index])

    def _finish(self, crop: np.ndarray, planes: np.ndarray) -> None:
        raise TypeError("a subclass says how to normalise")


class OpenCv(_OpenCv):
    """`cv2.resize`, then normalise and split with NumPy: the usual lines of a preprocessing function."""

    name = "opencv"

    def _finish(self, crop: np.ndarray, planes: np.ndarray) -> None:
        mean, inverse_std = self.job.affine
        planes[...] = ((crop - mean) * inverse_std).transpose(2, 0, 1)


class OpenCvInPlace(_OpenCv):
    """The fastest form found: normalisation in place and `cv2.split` straight into the result."""

    name = "opencv-inplace"

    def _finish(self, crop: np.ndarray, planes: np.ndarray) -> None:
        mean, inverse_std = self.job.affine
        # OpenCV takes scalars of four channels.
        cv2.subtract(crop, (*mean.tolist(), 0.0), dst=crop)
        cv2.multiply(crop, (*inverse_std.tolist(), 0.0), dst=crop)
        cv2.split(crop, list(planes))
