"""OpenCV crop by crop, in four forms, each on one thread and on a pool of as many threads as the other methods have;
and to bytes of either layout, without normalisation.

Which is the fastest depends on the boxes, so that all stand in the rows. Times to 224 x 224 as multiples of
`opencv-table`, one thread of two shared cores, medians of interleaved rounds: boxes of a drone (enlarged) in place
1.1-1.3, frame first 1.4-2.7; 256 x 256 (shrunk) 0.7 and 1.6; about 900 x 700 0.4 and 0.4. The usual lines take 1.7 to 7
times as long as the fastest of these. To subtract and to multiply in two passes, in place or on the crop before it is
split, was never the fastest.
"""

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from octopus_study.baselines.box_by_box import BoxByBox, OnThreads
from octopus_study.baselines.job import CropJob


class OpenCv(BoxByBox):
    """`cv2.resize`, then normalise and split with NumPy: the usual lines of a preprocessing function."""

    name = "opencv"

    def run(self) -> None:
        cv2.setNumThreads(1)
        super().run()

    def crop(self, x1: int, y1: int, x2: int, y2: int, planes: NDArray[np.float32]) -> None:
        mean, inverse_std = self.job.affine
        crop = cv2.resize(self.job.frame[y1:y2, x1:x2].astype(np.float32), self._size)
        planes[...] = ((crop - mean) * inverse_std).transpose(2, 0, 1)


class OpenCvInPlace(OpenCv):
    """Resized to memory that is kept, normalised in one pass (`cv2.transform`), split straight into the result. The
    fastest form found for boxes that shrink."""

    name = "opencv-inplace"

    def __init__(self, job: CropJob) -> None:
        super().__init__(job)
        mean, inverse_std = job.affine
        self._affine = np.column_stack([np.diag(inverse_std), -mean * inverse_std])

    def crop(self, x1: int, y1: int, x2: int, y2: int, planes: NDArray[np.float32]) -> None:
        crop = self.job.frame[y1:y2, x1:x2].astype(np.float32)
        resized = cv2.resize(crop, self._size, dst=self.room)
        cv2.split(cv2.transform(resized, self._affine), list(planes))


class OpenCvTable(OpenCv):
    """Converted and normalised in one pass by a table of all levels (`cv2.LUT`), resized, split into the result. The
    fastest form found for boxes that are enlarged: the table is applied to the smaller of the two images."""

    name = "opencv-table"

    def __init__(self, job: CropJob) -> None:
        super().__init__(job)
        mean, inverse_std = job.affine
        levels = np.arange(256, dtype=np.float32)[:, None, None]
        self.table = (levels - mean) * inverse_std

    def crop(self, x1: int, y1: int, x2: int, y2: int, planes: NDArray[np.float32]) -> None:
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
        levels = cv2.extractChannel(self.job.frame, stage)
        cv2.LUT(levels, self.table[:, 0, stage].copy(), dst=self._planes[stage])

    def crop(self, x1: int, y1: int, x2: int, y2: int, planes: NDArray[np.float32]) -> None:
        for normalised, plane in zip(self._planes, planes, strict=True):
            cv2.resize(normalised[y1:y2, x1:x2], self._size, dst=plane)


class OpenCvDirect(OpenCv):
    """Bytes, channels last: resized straight into the result."""

    name = "opencv-direct"

    def crop(self, x1: int, y1: int, x2: int, y2: int, item: NDArray[Any]) -> None:
        cv2.resize(self.job.frame[y1:y2, x1:x2], self._size, dst=item)


class OpenCvSplit(OpenCv):
    """Bytes, channels first: resized to memory that is kept, split straight into the result."""

    name = "opencv-split"

    def crop(self, x1: int, y1: int, x2: int, y2: int, planes: NDArray[Any]) -> None:
        cv2.split(cv2.resize(self.job.frame[y1:y2, x1:x2], self._size, dst=self.room), list(planes))


class OpenCvThreads(OpenCv, OnThreads):
    """The usual lines on all threads."""

    name = "opencv-threads"


class OpenCvInPlaceThreads(OpenCvInPlace, OnThreads):
    """The form in place on all threads."""

    name = "opencv-inplace-threads"


class OpenCvTableThreads(OpenCvTable, OnThreads):
    """The form with a table on all threads."""

    name = "opencv-table-threads"


class OpenCvFrameThreads(OpenCvFrame, OnThreads):
    """The form that begins with the frame, on all threads."""

    name = "opencv-frame-threads"


ONE_THREAD = (OpenCv, OpenCvInPlace, OpenCvTable, OpenCvFrame)
