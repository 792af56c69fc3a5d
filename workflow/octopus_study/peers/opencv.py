"""OpenCV crop by crop, in four forms, each on one thread and on a pool of as many threads as the other methods have.

Which is the fastest depends on the boxes, so that all stand in the rows. Times to 224 x 224 as multiples of
`opencv-table`, one thread of two shared cores, medians of interleaved rounds: boxes of a drone (enlarged) in place
1.1-1.3, frame first 1.4-2.7; 256 x 256 (shrunk) 0.7 and 1.6; about 900 x 700 0.4 and 0.4. The usual lines take 1.7 to 7
times as long as the fastest of these. To subtract and to multiply in two passes, in place or on the crop before it is
split, was never the fastest.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import cv2
import numpy as np
from numpy.typing import NDArray

from octopus_study.peers.job import CropJob
from octopus_study.peers.method import ON_THE_HOST, CropMethod

CROPS_PER_TASK = 8  # few enough that no thread waits long for the last task, many enough to hide its cost


class OpenCv(CropMethod):
    """`cv2.resize`, then normalise and split with NumPy: the usual lines of a preprocessing function.

    Beside a GPU it reads and writes host memory.
    """

    name = "opencv"
    why_no_device = ON_THE_HOST
    stages = 0  # pieces of work on the whole frame before its crops

    def __init__(self, job: CropJob) -> None:
        super().__init__(job.on_host())
        self.on_host = job.on_gpu
        self._size = (job.size[1], job.size[0])
        self._own = threading.local()

    def run(self) -> None:
        """All boxes, one after the other, on one thread."""
        cv2.setNumThreads(1)
        for stage in range(self.stages):
            self.begin(stage)
        self.crops(slice(None))

    def begin(self, stage: int) -> None:
        """A piece of work on the whole frame."""

    def crops(self, part: slice) -> None:
        """The crops of some of the boxes."""
        job = self.job
        for box, planes in zip(job.boxes[part].tolist(), job.out[part], strict=True):
            self.crop(*box, planes)

    def crop(self, x1: int, y1: int, x2: int, y2: int, planes: NDArray[np.float32]) -> None:
        """One crop."""
        mean, inverse_std = self.job.affine
        crop = cv2.resize(self.job.frame[y1:y2, x1:x2].astype(np.float32), self._size)
        planes[...] = ((crop - mean) * inverse_std).transpose(2, 0, 1)

    @property
    def room(self) -> NDArray[np.float32]:
        """A resized crop's memory, one for each thread."""
        if not hasattr(self._own, "room"):
            self._own.room = np.empty((*self.job.size, self.job.frame.shape[2]), np.float32)
        return self._own.room


class OpenCvInPlace(OpenCv):
    """Resized to memory that is kept, normalised in one pass (`cv2.transform`), split straight into the result.

    The fastest form found for boxes that shrink.
    """

    name = "opencv-inplace"

    def __init__(self, job: CropJob) -> None:
        super().__init__(job)
        mean, inverse_std = job.affine
        self._affine = np.column_stack([np.diag(inverse_std), -mean * inverse_std])

    def crop(self, x1: int, y1: int, x2: int, y2: int, planes: NDArray[np.float32]) -> None:
        """One crop."""
        crop = self.job.frame[y1:y2, x1:x2].astype(np.float32)
        resized = cv2.resize(crop, self._size, dst=self.room)
        cv2.split(cv2.transform(resized, self._affine), list(planes))


class OpenCvTable(OpenCv):
    """Converted and normalised in one pass by a table of all levels (`cv2.LUT`), resized, split into the result.

    The fastest form found for boxes that are enlarged: the table is applied to the smaller of the two images.
    """

    name = "opencv-table"

    def __init__(self, job: CropJob) -> None:
        super().__init__(job)
        mean, inverse_std = job.affine
        levels = np.arange(256, dtype=np.float32)[:, None, None]
        self.table = (levels - mean) * inverse_std

    def crop(self, x1: int, y1: int, x2: int, y2: int, planes: NDArray[np.float32]) -> None:
        """One crop."""
        normalised = cv2.LUT(self.job.frame[y1:y2, x1:x2], self.table)
        cv2.split(cv2.resize(normalised, self._size, dst=self.room), list(planes))


class OpenCvFrame(OpenCvTable):
    """The frame normalised once, plane by plane, and each plane of a crop resized straight into the result."""

    name = "opencv-frame"

    def __init__(self, job: CropJob) -> None:
        super().__init__(job)
        height, width, self.stages = job.frame.shape
        self._planes = np.empty((self.stages, height, width), np.float32)

    def begin(self, stage: int) -> None:
        """One plane of the frame."""
        levels = cv2.extractChannel(self.job.frame, stage)
        cv2.LUT(levels, self.table[:, 0, stage].copy(), dst=self._planes[stage])

    def crop(self, x1: int, y1: int, x2: int, y2: int, planes: NDArray[np.float32]) -> None:
        """One crop."""
        for normalised, plane in zip(self._planes, planes, strict=True):
            cv2.resize(normalised[y1:y2, x1:x2], self._size, dst=plane)


class _Threads(OpenCv):
    """A form on a pool of threads.

    OpenCV's own threads work within one image and have too little to do in a crop; it gives Python's lock away while
    it works, so that a pool is what a careful user writes.
    """

    def __init__(self, job: CropJob) -> None:
        from octopus.backends.cpu import get_num_threads

        super().__init__(job)
        self.threads = get_num_threads()
        self._pool = ThreadPoolExecutor(self.threads)

    def run(self) -> None:
        """All boxes; ends when the last is done, and raises what a thread raised."""
        cv2.setNumThreads(1)
        list(self._pool.map(self.begin, range(self.stages)))
        firsts = range(0, self.job.count, CROPS_PER_TASK)
        list(self._pool.map(self.crops, [slice(first, first + CROPS_PER_TASK) for first in firsts]))


class OpenCvThreads(_Threads, OpenCv):
    """The usual lines on all threads."""

    name = "opencv-threads"


class OpenCvInPlaceThreads(_Threads, OpenCvInPlace):
    """The form in place on all threads."""

    name = "opencv-inplace-threads"


class OpenCvTableThreads(_Threads, OpenCvTable):
    """The form with a table on all threads."""

    name = "opencv-table-threads"


class OpenCvFrameThreads(_Threads, OpenCvFrame):
    """The form that begins with the frame, on all threads."""

    name = "opencv-frame-threads"


ONE_THREAD = (OpenCv, OpenCvInPlace, OpenCvTable, OpenCvFrame)
