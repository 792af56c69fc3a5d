"""Crops of different size as one batch: padded on the host to the largest, as the published comparison does."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from octopus.backends import cpu
from octopus_study.baselines.availability import require_room
from octopus_study.baselines.job import CropJob

WHY_DIFFERENT = "resizes the padded image, not the crop"


class PaddedBatch:
    """All crops as uint8, each in the upper left corner of an item as large as the largest crop; the rest is zero.

    The memory is allocated once, page-locked where a GPU reads it.

    Parameters
    ----------
    job : CropJob
        Its frame and boxes, on the host.

    Raises
    ------
    Unavailable
        The host has too little memory.
    """

    def __init__(self, job: CropJob) -> None:
        self._job = job
        width, height = (job.boxes[:, 2:] - job.boxes[:, :2]).max(axis=0, initial=1).tolist()
        self.shape = (job.count, height, width, job.frame.shape[2])
        require_room("the padded batch", "host", int(np.prod(self.shape, dtype=np.int64)), cpu.free_bytes())
        self.values = self._allocate()

    def _allocate(self) -> NDArray[np.uint8]:
        if not self._job.on_gpu:
            return np.empty(self.shape, np.uint8)
        from octopus.backends.cuda.memory import pinned

        return pinned(self.shape, np.uint8)

    def fill(self) -> NDArray[np.uint8]:
        """Clear the memory, since other boxes were in it, and copy crop by crop."""
        frame, values = self._job.frame, self.values
        values.fill(0)
        for item, (x1, y1, x2, y2) in zip(values, self._job.boxes.tolist(), strict=True):
            item[: y2 - y1, : x2 - x1] = frame[y1:y2, x1:x2]
        return values
