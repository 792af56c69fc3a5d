"""What Octopus is given in the place of boxes of an RGB frame, for the parity table: video and affine maps."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus import NV12, P010
from octopus_study.peers.job import CropJob
from octopus_study.peers.native_methods import to_nv12

MATRIX, RANGE = "bt601", "limited"  # what OpenCV's conversion takes


def planes(job: CropJob) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """The frame's luma and chroma; of a frame with odd sides all but the last row and column, which is doubled."""
    even = [(0, side % 2) for side in job.frame.shape[:2]]
    coded = to_nv12(np.pad(job.frame, (*even, (0, 0)), mode="edge"), RANGE)
    height = coded.shape[0] // 3 * 2
    return coded[:height], coded[height:]


def deep_planes(job: CropJob) -> tuple[NDArray[np.uint16], NDArray[np.uint16]]:
    """The same in ten bits, of which the last two are made up: a pattern that no eight bits have."""
    luma, chroma = (plane.astype(np.uint16) << 8 for plane in planes(job))
    return luma | (np.arange(luma.shape[1], dtype=np.uint16) % 4 << 6), chroma


def nv12(job: CropJob) -> tuple[Any, Any]:
    """The frame in NV12, and the job's boxes."""
    return NV12(*planes(job), matrix=MATRIX, range=RANGE), job.boxes


def p010(job: CropJob) -> tuple[Any, Any]:
    """The frame in P010, and the job's boxes."""
    return P010(*deep_planes(job), matrix=MATRIX, range=RANGE), job.boxes


def maps(job: CropJob) -> NDArray[np.float32]:
    """An affine map for each box: turned about its middle, by angles all around, to the size of the result."""
    boxes, (height, width) = job.boxes.astype(np.float64), job.size
    angles = 2 * np.pi * np.arange(job.count) / job.count
    middle, sides = (boxes[:, :2] + boxes[:, 2:]) / 2 - 0.5, boxes[:, 2:] - boxes[:, :2]
    turn = np.array([[np.cos(angles), -np.sin(angles)], [np.sin(angles), np.cos(angles)]]).transpose(2, 0, 1)
    linear = turn * (sides / (width, height))[:, None]
    shift = middle - linear @ np.array([(width - 1) / 2, (height - 1) / 2])
    return np.concatenate([linear, shift[:, :, None]], axis=2).astype(np.float32)


def affine(job: CropJob) -> tuple[Any, Any]:
    """The job's frame, and a map for each box."""
    return job.frame, maps(job)
