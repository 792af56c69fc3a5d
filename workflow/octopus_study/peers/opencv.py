"""OpenCV crop by crop: on one thread, as most programs do, and on a pool of threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import cv2
import numpy as np

from octopus_study.peers.job import CropJob
from octopus_study.peers.method import ON_THE_HOST, CropMethod

CROPS_PER_TASK = 8  # few enough that no thread waits long for the last task, many enough to hide its cost


class _OpenCv(CropMethod):
    """Float resize of each crop; subclasses normalise and split into planes.

    Beside a GPU it reads and writes host memory.
    """

    why_no_device = ON_THE_HOST

    def __init__(self, job: CropJob) -> None:
        super().__init__(job.on_host())
        self.on_host = job.on_gpu
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


class OpenCvThreads(CropMethod):
    """The crops on a pool of threads, each of them resized on one thread.

    OpenCV's own threads work within one image and have too little to do in a crop; it gives Python's lock away while
    it works, so that a thread pool is what a careful user writes.

    Parameters
    ----------
    job : CropJob
        On the CPU.
    threads : int
    kind : type
        `OpenCv` or `OpenCvInPlace`.
    """

    def __init__(self, job: CropJob, threads: int, kind: type[OpenCv] | type[OpenCvInPlace] = OpenCv) -> None:
        super().__init__(job)
        self.name = kind.name
        parts = [slice(first, first + CROPS_PER_TASK) for first in range(0, job.count, CROPS_PER_TASK)]
        self._tasks = [kind(replace(job, boxes=job.boxes[part], out=job.out[part])) for part in parts]
        self._pool = ThreadPoolExecutor(threads)

    def run(self) -> None:
        """All boxes; ends when the last is done, and raises what a thread raised."""
        for _ in self._pool.map(lambda task: task.run(), self._tasks):
            pass
