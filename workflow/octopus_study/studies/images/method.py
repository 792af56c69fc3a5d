"""How a method on images is written, Octopus' own and those of other libraries alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus.backends.cuda.memory import DeviceArray
from octopus_study.measure import Method
from octopus_study.peers.availability import Unavailable
from octopus_study.studies.images.job import ONCE, TOLERANCE, ImageJob

MANY_LAUNCHES = (
    "its launches come from the host more slowly than the device works; events would time the host"
)
ON_THE_HOST = "works on the host; a CPU's own rows have it"
NO_ROWS = "has no operator that writes patch rows"


class ImageMethod:
    """A way to make a job's result.

    Attributes
    ----------
    name : str
        Its name in the rows.
    right : {"once", "between", "bilinear"}
        Which reference its answer is compared with.
    levels : float
        How far it may be from that.
    why_different : str
        Why its answer is another one; empty if it should be the same.
    why_no_device : str
        Why events on the default stream don't time its device work; empty if they do.
    on_host : bool
        Whether it works on the host beside a GPU, from images there to a result there.

    Raises
    ------
    Unavailable
        It can't run here.
    """

    name = ""
    right = ONCE
    levels = TOLERANCE[ONCE]
    why_different = ""
    why_no_device = ""
    on_host = False

    def __init__(self, job: ImageJob) -> None:
        self.job = job
        self.result: Any = None

    def run(self) -> None:
        """From the list of images where they lie to the result."""
        raise NotImplementedError

    def kernels(self) -> None:
        """Queue the device's work alone."""
        self.run()

    def poison(self) -> None:
        """Fill the result with NaN, so that a value that nobody writes is seen; one that a run allocates is dropped."""
        if isinstance(self.result, DeviceArray):
            self.result.fill_bytes(0xFF)
        elif isinstance(self.result, np.ndarray):
            self.result.fill(np.nan)
        else:
            self.result = None

    def output(self) -> Any:
        """The result as an array or a tensor."""
        return self.result

    def allocator_peak(self) -> int | None:
        """Most bytes that its library's own allocator held on the GPU; None if it has none."""
        return None

    def timed(self, run: Callable[[], object] | None = None) -> Method:
        """What is timed and checked: the whole way, or `run` in its place."""
        return Method(self.name, run or self.run, self._picked, self.levels, self.why_different)

    def _picked(self) -> NDArray[np.float32]:
        return self.job.picked(self.output())


def require_gpu(job: ImageJob, product: str) -> None:
    """Raise `Unavailable` for a job on the CPU."""
    if not job.on_gpu:
        raise Unavailable(f"{product} works on a GPU alone")


def require_batch(job: ImageJob, product: str) -> None:
    """Raise `Unavailable` for a job that asks for patch rows."""
    if job.task != "batch":
        raise Unavailable(f"{product} {NO_ROWS}")
