"""NVIDIA DALI's dynamic mode: `resize` with a region of interest per box, then `crop_mirror_normalize`."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus_study.baselines.availability import need
from octopus_study.baselines.job import CropJob
from octopus_study.baselines.method import NOT_BY_EVENTS, CropMethod, blocking_stream

INSTALL = "pip install -e './workflow[arena-cuda13]'"


@cache
def _stream() -> Any:
    """One stream for the whole process: DALI gives memory back on it long after a method is gone."""
    return blocking_stream()


class Dali(CropMethod):
    """One frame, broadcast over a batch of regions, resized without antialiasing to float, normalised to planes.

    Its operators are queued from a thread of its own, while events on the default stream are recorded by ours; so
    its device work can't be told from its host work, and it has no device layer.
    """

    name = "dali"
    why_no_device = NOT_BY_EVENTS
    edge = "image"

    def __init__(self, job: CropJob) -> None:
        super().__init__(job)
        self.dali = need("nvidia.dali.experimental.dynamic", "NVIDIA DALI", INSTALL)
        self.device = "gpu" if job.on_gpu else "cpu"
        self.frame = self.dali.as_tensor(self._storage(), layout="HWC")
        if job.on_gpu:
            self.dali.set_current_stream(int(_stream().handle))
        self._batch: Any = None
        self._result: Any = None

    def _storage(self) -> Any:
        """The frame in a form that DALI takes without a copy."""
        if not self.job.on_gpu:
            return self.job.frame
        tensors = need("nvidia.dali.tensors", "NVIDIA DALI", INSTALL)
        return tensors.TensorGPU(self.job.device_frame, layout="HWC")

    def resized(self) -> Any:
        corners = self.job.boxes.astype(np.float32)
        start, end = (np.ascontiguousarray(corners[:, order]) for order in ([1, 0], [3, 2]))
        return self.resize(self.frame, roi_start=self.dali.as_batch(start), roi_end=self.dali.as_batch(end))

    def resize(self, source: Any, **region: Any) -> Any:
        """Bilinear, to float, all items in one launch instead of 32 each."""
        return self.dali.resize(
            source, size=list(self.job.size), antialias=False, dtype=self.dali.float32, device=self.device,
            minibatch_size=max(self.job.count, 1), **region,
        )  # fmt: skip

    def run(self) -> None:
        """Both operators, queued; they can't be had without their arguments' way to the device."""
        planes = self.dali.crop_mirror_normalize(
            self.resized(), mean=list(self.job.mean), std=list(self.job.std), dtype=self.dali.float32,
            output_layout="CHW", device=self.device,
        )  # fmt: skip
        self._result = self.dali.as_tensor(planes).evaluate()

    def output(self) -> Any:
        return self._result if self.job.on_gpu else self.result()

    def result(self, every: int = 1) -> NDArray[np.float32]:
        return np.asarray(self._result.cpu())[::every]


class DaliSlice(Dali):
    """Crops cut out first, then resized: one operator more, and the same answer as Octopus."""

    name = "dali-slice"
    edge = "box"

    def resized(self) -> Any:
        boxes = self.job.boxes
        start, shape = (np.ascontiguousarray(values[:, ::-1]) for values in (boxes[:, :2], boxes[:, 2:] - boxes[:, :2]))
        places = {"start": self.dali.as_batch(start), "shape": self.dali.as_batch(shape)}
        return self.resize(self.dali.slice(self.frame, axes=[0, 1], device=self.device, **places))
