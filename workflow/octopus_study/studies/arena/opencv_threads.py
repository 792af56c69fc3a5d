"""OpenCV with several threads: a pool over the crops, each of them resized on one thread.

OpenCV's own threads work within one image and have too little to do in a crop; it gives Python's lock away while it
works, so that a thread pool is what a careful user writes.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from octopus_study.peers.job import CropJob
from octopus_study.peers.opencv import OpenCv, OpenCvInPlace

CROPS_PER_TASK = 8  # few enough that no thread waits long for the last task, many enough to hide its cost


class OpenCvThreads:
    """A contender of `octopus_study.peers.opencv` on a pool of threads.

    Parameters
    ----------
    job : CropJob
        On the CPU.
    threads : int
    kind : type
        `OpenCv` or `OpenCvInPlace`.
    """

    def __init__(self, job: CropJob, threads: int, kind: type[OpenCv] | type[OpenCvInPlace] = OpenCv) -> None:
        self.name = kind.name
        parts = [slice(first, first + CROPS_PER_TASK) for first in range(0, job.count, CROPS_PER_TASK)]
        self._tasks = [kind(replace(job, boxes=job.boxes[part], out=job.out[part])) for part in parts]
        self._pool = ThreadPoolExecutor(threads)

    def run(self) -> None:
        """All boxes; ends when the last is done, and raises what a thread raised."""
        for _ in self._pool.map(lambda task: task.run(), self._tasks):
            pass
