"""How a method on crops is written, Octopus' own and those of other libraries alike."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus_study.measure import Method
from octopus_study.peers.availability import Unavailable
from octopus_study.peers.job import CropJob

NOT_BY_EVENTS = "its device work can't be seen by events on the default stream"
ON_THE_HOST = "works on the host; the way of its frame and its result is the layer pipeline"


class CropMethod:
    """A way to make a job's crops.

    Attributes
    ----------
    name : str
        Its name in the rows.
    edge : {"box", "image"}
        Where it clamps; at the edge of the image it reads what lies around a box. Its answer should be that of Octopus
        with the same `edge`, and with that method it is compared.
    why_different : str
        Why its answer is another one; empty if it should be the same.
    why_no_device : str
        Why events on the default stream don't time its device work; empty if they do.
    on_host : bool
        Whether it works in host memory beside a GPU.
    tolerance : float
        Of its answer, in units of the result.

    Raises
    ------
    Unavailable
        It can't run here.
    """

    name = ""
    edge = "box"
    why_different = ""
    why_no_device = ""
    on_host = False

    def __init__(self, job: CropJob) -> None:
        self.job = job
        self.tolerance = job.tolerance

    def prepare(self) -> None:
        """Bring all that the kernels read to the device: views, rois, grids, a padded batch."""

    def kernels(self) -> None:
        """Queue the device's work on what `prepare` has made; without a device that is the whole way."""
        self.run()

    def run(self) -> None:
        """From the boxes on the host to the result: all that a user must do per batch."""
        self.prepare()
        self.kernels()

    def series(self, count: int) -> None:
        """Several batches in a row, without waiting for one before the next is begun where that can be had."""
        for _ in range(count):
            self.run()

    def output(self) -> Any:
        """The result where it was made."""
        return self.job.out

    def result(self, every: int = 1) -> NDArray[np.float32]:
        """Each `every`-th crop of the result, on the host."""
        return self.job.result(every)

    def allocator_peak(self) -> int | None:
        """Most bytes that its library's own allocator held on the GPU; None if it has none."""
        return None

    def timed(self, run: Callable[[], object] | None = None, every: int = 1) -> Method:
        """What is timed: the whole way, or `run` in its place; and checked: each `every`-th crop."""
        result = partial(self.result, every)
        return Method(self.name, run or self.run, result, self.tolerance, self.why_different)


def require_gpu(job: CropJob, product: str) -> None:
    """Raise `Unavailable` for a job on the CPU."""
    if not job.on_gpu:
        raise Unavailable(f"{product} works on a GPU alone")


def blocking_stream() -> Any:
    """A stream of its own that is ordered with the default stream in both directions, without waiting on the host.

    For libraries that don't take the default stream: events there see the work, and uploads before it are done first.
    """
    from cuda.core import StreamOptions

    from octopus.backends.cuda.device import current

    return current().create_stream(options=StreamOptions(nonblocking=False))
