"""What methods on images add to those on other jobs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from octopus_study.peers.availability import Unavailable
from octopus_study.peers.method import JobMethod
from octopus_study.studies.images.job import ONCE, TOLERANCE, ImageJob

MANY_LAUNCHES = (
    "its launches come from the host more slowly than the device works; events would time the host"
)
ON_THE_HOST = "works on the host; a CPU's own rows have it"
NO_ROWS = "has no operator that writes patch rows"


class ImageMethod(JobMethod):
    """A way to make a job's result, from the list of images where they lie."""

    right = ONCE  # "once", "between" or "bilinear": which reference its answer is compared with
    tolerance = TOLERANCE[ONCE]  # in levels
    job: ImageJob

    def result(self, every: int = 1) -> NDArray[np.float32]:
        return self.job.picked(self.output())


def require_batch(job: ImageJob, product: str) -> None:
    """Raise `Unavailable` for a job that asks for patch rows."""
    if job.task != "batch":
        raise Unavailable(f"{product} {NO_ROWS}")
