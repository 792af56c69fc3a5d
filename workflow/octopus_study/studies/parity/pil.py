"""Crops as Pillow makes them, in levels of 0..255, for the parity table. Its filter always widens when it shrinks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from octopus_study.peers.job import CropJob


def _resized(plane: NDArray, job: CropJob) -> NDArray[np.float32]:
    height, width = job.size
    image = Image.fromarray(plane).resize((width, height), Image.Resampling.BILINEAR)
    return np.asarray(image, np.float32)


def exact(job: CropJob) -> NDArray[np.float32]:
    """Each channel as an image of 32-bit floats (mode F); (N, height, width, C)."""
    frame = job.frame.astype(np.float32)
    return np.stack(
        [
            np.stack([_resized(frame[y1:y2, x1:x2, channel], job) for channel in range(frame.shape[2])], -1)
            for x1, y1, x2, y2 in job.boxes.tolist()
        ]
    )


def nearest(job: CropJob) -> NDArray[np.float32]:
    """Images of 8 bits by the filter NEAREST; (N, height, width, 3)."""
    size, filter = job.size[::-1], Image.Resampling.NEAREST
    crops = (Image.fromarray(job.frame[y1:y2, x1:x2]) for x1, y1, x2, y2 in job.boxes.tolist())
    return np.stack([np.asarray(crop.resize(size, filter), np.float32) for crop in crops])


def rounded(job: CropJob) -> NDArray[np.float32]:
    """Images of 8 bits (mode RGB), which are rounded between the two passes; (N, height, width, 3)."""
    return np.stack([_resized(job.frame[y1:y2, x1:x2], job) for x1, y1, x2, y2 in job.boxes.tolist()])
