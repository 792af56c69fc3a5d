"""torchvision's `roi_align`: one sample per output pixel, as detectors pool features."""

from __future__ import annotations

import numpy as np

from octopus_study.baselines.availability import need
from octopus_study.baselines.job import CropJob
from octopus_study.baselines.torch_method import TorchMethod


class RoiAlign(TorchMethod):
    """The frame to normalised float planes, then `roi_align` over all boxes.

    Every batch comes with a new frame, so the planes are made anew in every run, and count as device work.
    """

    name = "roi-align"
    edge = "image"

    def __init__(self, job: CropJob) -> None:
        super().__init__(job)
        self._roi_align = need("torchvision.ops", "torchvision", "pip install -e './workflow[baselines]'").roi_align
        height, width, channels = job.frame.shape
        self._planes = self.empty(1, channels, height, width)
        self._host_rois = self.empty(job.count, 5, on_host=True)
        self._rois = self.empty(job.count, 5)

    def prepare(self) -> None:
        rois: np.ndarray = self._host_rois.numpy()
        rois[:, 0] = 0
        rois[:, 1:] = self.job.boxes
        self._rois.copy_(self._host_rois, non_blocking=True)

    def kernels(self) -> None:
        self._result = None  # its memory is free for the next
        planes = self.planes(self._planes)
        self._result = self._roi_align(planes, self._rois, self.job.size, sampling_ratio=1, aligned=True)
