"""What the opponents from other libraries have in common, and how the arena runs them.

`prepare` brings what a batch of boxes needs to the device (views, rois, grids, a padded batch), `kernels` is the
device's work on it, and `run` is both: all that a user must do per batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus_study.peers.availability import Unavailable
from octopus_study.peers.job import CropJob

READS_ACROSS = "reads across the box edge"


class Rival:
    """An opponent of Octopus.

    Attributes
    ----------
    name : str
        Its name in the rows.
    device_layer : bool
        Whether events on the default stream see all of its device work.
    why_different : str
        Why its answer is another one; empty if it should be the same.
    tolerance : float or None
        Of its answer, in units of the result; None for that of the study.

    Parameters
    ----------
    job : CropJob

    Raises
    ------
    Unavailable
        It can't run here.
    """

    name = ""
    device_layer = True
    why_different = ""
    tolerance: float | None = None

    def __init__(self, job: CropJob) -> None:
        self.job = job

    def prepare(self) -> None:
        """Bring all that the kernels read to the device."""

    def kernels(self) -> None:
        """Queue the device's work on what `prepare` has made."""
        raise TypeError(f"{type(self).__name__} doesn't say what its kernels are")

    def run(self) -> None:
        """From the boxes on the host to the result."""
        self.prepare()
        self.kernels()

    def output(self) -> Any:
        """The result where it was made."""
        return self.job.out

    def result(self) -> NDArray[np.float32]:
        """The result on the host."""
        return self.job.result()


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
