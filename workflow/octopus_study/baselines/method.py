"""How a method is written, Octopus' own and those of other libraries alike: one class for every kind of job."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus_study.baselines.availability import Unavailable
from octopus_study.baselines.job import CropJob
from octopus_study.measure import Method

NOT_BY_EVENTS = "its device work can't be seen by events on the default stream"
ON_THE_HOST = "works on the host; the way of its frame and its result is the layer pipeline"


class JobMethod:
    """A way to do a job; raises `Unavailable` when it is made and can't run here."""

    name = ""  # in the rows
    why_different = ""  # why its answer is another one; empty if it should be the same
    why_no_device = ""  # why events on the default stream don't time its device work; empty if they do
    on_host = False  # whether it works in host memory beside a GPU
    tolerance = 0.0  # largest difference from the right answer, in units of the result
    made: Any = None  # what the last run made, where that isn't the job's own memory

    def __init__(self, job: Any) -> None:
        self.job = job

    def prepare(self) -> None:
        """Bring all that the kernels read to the device: views, rois, grids, a padded batch."""

    def kernels(self) -> None:
        """Queue the device's work on what `prepare` has made; without a device that is the whole way."""
        self.run()

    def run(self) -> None:
        """From what the job gives to the result: all that a user must do per batch."""
        self.prepare()
        self.kernels()

    def series(self, count: int) -> None:
        """Several batches in a row, without waiting for one before the next is begun where that is possible."""
        for _ in range(count):
            self.run()

    def output(self) -> Any:
        """The result where it was made."""
        return self.made

    def result(self, every: int = 1) -> NDArray[np.float32]:
        """Each `every`-th item of the result, on the host."""
        found: NDArray[np.float32] = self.output()[::every]
        return found

    def poison(self) -> None:
        """Fill the result with NaN, so that a value that nothing writes is seen; what can't be filled is dropped."""
        if hasattr(self.made, "fill_bytes"):
            self.made.fill_bytes(0xFF)
        elif hasattr(self.made, "fill_"):
            self.made.fill_(math.nan)
        elif isinstance(self.made, np.ndarray):
            self.made.fill(np.nan)
        else:
            self.made = None

    def allocator_peak(self) -> int | None:
        """Most bytes that its library's own allocator held on the GPU; None if it has none."""
        return None

    def timed(self, run: Callable[[], object] | None = None, every: int = 1) -> Method:
        """What is timed: the whole way, or `run` in its place; and checked: each `every`-th item."""
        result = partial(self.result, every)
        return Method(self.name, run or self.run, result, self.tolerance, self.why_different)


class CropMethod(JobMethod):
    """A way to make a job's crops, by default in the job's memory."""

    # "box" or "image": where it clamps; at the edge of the image it reads what lies around a box. Its answer should be
    # that of Octopus with the same `edge`, and with that method it is compared.
    edge = "box"
    job: CropJob

    def __init__(self, job: CropJob) -> None:
        super().__init__(job)
        self.tolerance = job.tolerance

    def output(self) -> Any:
        return self.job.out

    def result(self, every: int = 1) -> NDArray[np.float32]:
        return self.job.result(every)


def require_gpu(job: Any, product: str) -> None:
    """Raise `Unavailable` for a job that is not `on_gpu`."""
    if not job.on_gpu:
        raise Unavailable(f"{product} works on a GPU alone")


def blocking_stream() -> Any:
    """A stream of its own that is ordered with the default stream in both directions, without waiting on the host. For
    libraries that don't take the default stream: events there see the work, and uploads before it are done first."""
    from cuda.core import StreamOptions

    from octopus.backends.cuda.device import current

    return current().create_stream(options=StreamOptions(nonblocking=False))
