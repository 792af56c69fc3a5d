"""The layer `pipeline`: a frame comes from page-locked memory, and the result goes back there.

The buffers are allocated once per batch and shared by all methods, as a program would that does this all day.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from octopus.arrays.views import ArrayView, view
from octopus.errors import InputError
from octopus_study.baselines.job import CropJob
from octopus_study.baselines.method import CropMethod


class PageLocked:
    """Page-locked memory for one frame and one result of a job on the GPU."""

    def __init__(self, job: CropJob) -> None:
        from octopus.backends.cuda.memory import pinned

        self.job = job
        self.frame = pinned(job.frame.shape, np.uint8)
        self.frame[...] = job.frame
        self.result = pinned(job.out.shape, np.float32)

    def through(self, method: CropMethod) -> Callable[[], None]:
        """The method's way with the frame's upload before it and the result's download behind it."""
        from octopus.backends.cuda.memory import copy

        frame, target = self.job.device_frame, self.result.ctypes.data

        def run() -> None:
            copy(frame.pointer, self.frame.ctypes.data, self.frame.nbytes)
            method.run()
            result = self._described(method)
            copy(target, result.pointer, result.nbytes)

        return run

    def downloaded(self, method: CropMethod, every: int = 1) -> NDArray[np.float32]:
        """Each `every`-th crop that the last run left in the page-locked memory, as float32."""
        from octopus_study.measure.cuda import synchronize

        synchronize()
        result = self._described(method)
        values = self.result.reshape(-1).view(np.uint8)[: result.nbytes].view(result.dtype)
        return values.reshape(result.shape)[::every].astype(np.float32, copy=False)

    def poison(self) -> None:
        """Fill the host's side with NaN."""
        self.result.fill(np.nan)

    def _described(self, method: CropMethod) -> ArrayView:
        array = view(method.output(), "output")
        if not array.contiguous or array.nbytes > self.result.nbytes:
            raise InputError(
                f"the result of {method.name} can't be copied in one piece: shape {array.shape}, "
                f"strides {array.strides}, {array.nbytes} bytes"
            )
        return array
