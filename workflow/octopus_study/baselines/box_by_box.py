"""Methods that make one crop after the other on the host, on one thread or on a pool of threads."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus.backends.cpu import get_num_threads
from octopus_study.baselines.job import CropJob
from octopus_study.baselines.method import ON_THE_HOST, CropMethod

CROPS_PER_TASK = 8  # few enough that no thread waits long for the last task, many enough to hide its cost


class BoxByBox(CropMethod):
    """All boxes, one after the other, on one thread. Beside a GPU it reads and writes host memory."""

    why_no_device = ON_THE_HOST
    stages = 0  # pieces of work on the whole frame before its crops

    def __init__(self, job: CropJob) -> None:
        super().__init__(job.on_host())
        self.on_host = job.on_gpu
        self._size = (job.size[1], job.size[0])  # width and height, as libraries of images have it
        self._own = threading.local()

    def run(self) -> None:
        for stage in range(self.stages):
            self.begin(stage)
        self.crops(slice(None))

    def begin(self, stage: int) -> None:
        """A piece of work on the whole frame."""

    def crops(self, part: slice) -> None:
        job = self.job
        for (x1, y1, x2, y2), item in zip(job.boxes[part].tolist(), job.out[part], strict=True):
            self.crop(x1, y1, x2, y2, item)

    def crop(self, x1: int, y1: int, x2: int, y2: int, item: NDArray[Any]) -> None:
        raise NotImplementedError

    @property
    def room(self) -> NDArray[Any]:
        """A resized crop's memory, (height, width, C) of the result's type, one for each thread."""
        if not hasattr(self._own, "room"):
            self._own.room = np.empty((*self.job.size, self.job.frame.shape[2]), self.job.out.dtype)
        return self._own.room


class OnThreads(BoxByBox):
    """A form on a pool of as many threads as the other methods have. A library's own threads work within one image and
    have too little to do in a crop; one that gives Python's lock away while it works can have a pool, which is what a
    careful user writes."""

    def __init__(self, job: CropJob) -> None:
        super().__init__(job)
        self.threads = get_num_threads()
        self._pool = ThreadPoolExecutor(self.threads)

    def run(self) -> None:
        list(self._pool.map(self.begin, range(self.stages)))
        firsts = range(0, self.job.count, CROPS_PER_TASK)
        list(self._pool.map(self.crops, [slice(first, first + CROPS_PER_TASK) for first in firsts]))
