"""Crops as CV-CUDA's plain resize makes them, in levels of 0..255, for the parity table."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from octopus_study.peers.availability import Unavailable
from octopus_study.peers.job import CropJob


def rounded(job: CropJob) -> NDArray[np.float32]:
    """`cvcuda.resize` of uint8 crops to uint8, one image after the other; (N, height, width, C)."""
    if not job.on_gpu:
        raise Unavailable("CV-CUDA works on NVIDIA GPUs alone")
    return np.stack([_resized(job, *box) for box in job.boxes.tolist()])


def _resized(job: CropJob, x1: int, y1: int, x2: int, y2: int) -> NDArray[np.float32]:
    import cvcuda

    from octopus.arrays.views import view
    from octopus.backends.cuda.device import current
    from octopus.backends.cuda.memory import copy, upload

    crop = upload(job.frame[y1:y2, x1:x2])
    current().sync()  # CV-CUDA has a stream of its own
    shape = (*job.size, job.frame.shape[2])
    resized = cvcuda.resize(cvcuda.as_tensor(crop, "HWC"), shape, cvcuda.Interp.LINEAR)
    current().sync()
    described = view(resized.cuda(), "resized")
    if not described.contiguous:
        raise Unavailable(f"CV-CUDA's result has the strides {described.strides}, which are not copied here")
    pixels = np.empty(described.shape, described.dtype)
    copy(pixels.ctypes.data, described.pointer, pixels.nbytes)
    current().sync()
    return pixels.reshape(shape).astype(np.float32)
