"""What the answers are defined to be, in float64, for the parity table."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from octopus_study.peers.job import CropJob
from octopus_study.reference import crops as reference
from octopus_study.studies.parity import inputs


def _crops(job: CropJob, frame: NDArray) -> NDArray[np.float64]:
    return reference.crop_resize(frame, job.boxes, job.size, np.zeros(3), np.ones(3), "NHWC")


def of_nv12(job: CropJob) -> NDArray[np.float64]:
    """The frame converted whole, clamped and not rounded, then cropped; (N, height, width, 3)."""
    return _crops(job, reference.rgb_of_video(*inputs.planes(job), inputs.MATRIX, inputs.RANGE))


def of_p010(job: CropJob) -> NDArray[np.float64]:
    """The same of ten bits."""
    return _crops(job, reference.rgb_of_video(*inputs.deep_planes(job), inputs.MATRIX, inputs.RANGE))


def warped(job: CropJob) -> NDArray[np.float64]:
    """Samples of each map, the frame's border repeated; (N, height, width, C)."""
    zero, one = np.zeros(job.frame.shape[2]), np.ones(job.frame.shape[2])
    return reference.warp(job.frame, inputs.maps(job), job.size, zero, one, "NHWC")
