"""Crops as OpenCV makes them, in levels of 0..255, for the parity table."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import cv2
import numpy as np
from numpy.typing import NDArray

from octopus_study.peers.job import CropJob
from octopus_study.studies.parity import inputs

PAD_LEVEL = 114.0  # Ultralytics' grey


def _crops(job: CropJob) -> list[NDArray[np.uint8]]:
    return [np.ascontiguousarray(job.frame[y1:y2, x1:x2]) for x1, y1, x2, y2 in job.boxes.tolist()]


def _resized(crop: NDArray, width: int, height: int) -> NDArray[np.float32]:
    return cv2.resize(crop, (width, height), interpolation=cv2.INTER_LINEAR).astype(np.float32)


def exact(job: CropJob) -> NDArray[np.float32]:
    """`cv2.resize` of float32 crops; (N, height, width, C)."""
    height, width = job.size
    return np.stack([_resized(crop.astype(np.float32), width, height) for crop in _crops(job)])


def fixed_point(job: CropJob) -> NDArray[np.float32]:
    """`cv2.resize` of uint8 crops, which works in fixed point and rounds; (N, height, width, C)."""
    height, width = job.size
    return np.stack([_resized(crop, width, height) for crop in _crops(job)])


def nearest(job: CropJob) -> NDArray[np.float32]:
    """The same by INTER_NEAREST_EXACT, whose pixels' centres are where all others have them."""
    return _each(job, cv2.INTER_NEAREST_EXACT)


def bicubic(job: CropJob) -> NDArray[np.float32]:
    """The same by INTER_CUBIC, of float32 crops."""
    return _each(job, cv2.INTER_CUBIC)


def _each(job: CropJob, filter: int) -> NDArray[np.float32]:
    height, width = job.size
    crops = (crop.astype(np.float32) for crop in _crops(job))
    return np.stack([cv2.resize(crop, (width, height), interpolation=filter) for crop in crops])


def warped(job: CropJob) -> NDArray[np.float32]:
    """`cv2.warpAffine` of the float32 frame by each map, its border repeated; (N, height, width, C)."""
    frame, (height, width) = job.frame.astype(np.float32), job.size
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    return np.stack(
        [
            cv2.warpAffine(
                frame, each.astype(np.float64), (width, height), flags=flags, borderMode=cv2.BORDER_REPLICATE
            )
            for each in inputs.maps(job)
        ]
    )


def of_nv12(job: CropJob) -> NDArray[np.float32]:
    """`cv2.cvtColor` of both planes, which rounds to uint8, then `exact`; (N, height, width, 3)."""
    frame = cv2.cvtColor(np.concatenate(inputs.planes(job)), cv2.COLOR_YUV2RGB_NV12)
    return exact(replace(job, frame=frame))


def letterbox(job: CropJob) -> NDArray[np.float32]:
    """`cv2.resize` of float32 crops to the inner size, then `cv2.copyMakeBorder`; (N, height, width, C).

    The sizes are Ultralytics' (`LetterBox`, centred, enlarging), from exact ratios: with a rounded ratio a tie could
    fall to either side.
    """
    return np.stack([_framed(crop.astype(np.float32), *job.size) for crop in _crops(job)])


def _framed(crop: NDArray[np.float32], height: int, width: int) -> NDArray[np.float32]:
    tall, wide = crop.shape[:2]
    ratio = min(Fraction(height, tall), Fraction(width, wide))
    inner_height, inner_width = max(round(tall * ratio), 1), max(round(wide * ratio), 1)
    above, before = (height - inner_height) // 2, (width - inner_width) // 2
    return cv2.copyMakeBorder(
        _resized(crop, inner_width, inner_height),
        above,
        height - inner_height - above,
        before,
        width - inner_width - before,
        cv2.BORDER_CONSTANT,
        value=(PAD_LEVEL,) * 4,
    )
