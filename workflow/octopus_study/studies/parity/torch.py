"""Crops as torch and torchvision make them one by one, in levels of 0..255, for the parity table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from octopus_study.peers.job import CropJob


def interpolate(job: CropJob) -> NDArray[np.float32]:
    """`torch.nn.functional.interpolate` of each slice of the frame; (N, height, width, C)."""
    return _each(job, lambda crop: _interpolated(crop, job.size, False))


def interpolate_antialias(job: CropJob) -> NDArray[np.float32]:
    """The same with `antialias=True`."""
    return _each(job, lambda crop: _interpolated(crop, job.size, True))


def interpolate_bfloat16(job: CropJob) -> NDArray[np.float32]:
    """The first, rounded to bfloat16."""
    return torch.from_numpy(interpolate(job)).bfloat16().float().numpy()


def interpolate_nearest(job: CropJob) -> NDArray[np.float32]:
    """The first with mode "nearest-exact"."""
    return _each(job, lambda crop: torch.nn.functional.interpolate(crop, job.size, mode="nearest-exact"))


def interpolate_bicubic(job: CropJob) -> NDArray[np.float32]:
    """The first with mode "bicubic"."""
    bicubic = {"mode": "bicubic", "align_corners": False}
    return _each(job, lambda crop: torch.nn.functional.interpolate(crop, job.size, **bicubic))


def torchvision_antialias(job: CropJob) -> NDArray[np.float32]:
    """`torchvision.transforms.v2.functional.resize` with `antialias=True`; (N, height, width, C)."""
    from torchvision.transforms.v2 import functional

    return _each(job, lambda crop: functional.resize(crop, list(job.size), antialias=True))


def _interpolated(crop: Any, size: tuple[int, int], antialias: bool) -> Any:
    return torch.nn.functional.interpolate(
        crop, size, mode="bilinear", align_corners=False, antialias=antialias
    )


def _each(job: CropJob, resize: Callable[[Any], Any]) -> NDArray[np.float32]:
    device = "cuda" if job.on_gpu and torch.cuda.is_available() else "cpu"
    frame = torch.from_numpy(job.frame).to(device).permute(2, 0, 1).float()[None]
    crops = [resize(frame[..., y1:y2, x1:x2])[0].permute(1, 2, 0) for x1, y1, x2, y2 in job.boxes.tolist()]
    return torch.stack(crops).cpu().numpy()
