"""Runs kernels of the artifact in Numba's simulator, in a process of its own: it is chosen before Numba is imported.

Prints by kernel the largest difference to its reference in float64 as JSON.
"""

import json
import os

os.environ["NUMBA_ENABLE_CUDASIM"] = "1"

import numpy as np
from numba import cuda

from octopus_study.baselines.native_methods import from_nv12, to_nv12
from octopus_study.kernels.cuda import published, video
from octopus_study.reference import crops as reference

SIZE = (19, 6)  # more rows than a block has, fewer columns than a warp
BOXES = np.array([[0, 0, 3, 2], [1, 2, 12, 11], [4, 4, 5, 5]], np.float32)
MEAN, STD = np.array([10.0, 20.0, 30.0]), np.array([2.0, 4.0, 8.0])


def of_published() -> float:
    """The two published kernels, one after the other."""
    pixels = np.random.default_rng(1).integers(0, 255, (11, 12, 3), np.uint8)
    rows = [[x1, y1, x2 - x1, y2 - y1, 0, 0, 0, 0] for x1, y1, x2, y2 in BOXES.astype(int).tolist()]
    crops = np.zeros((len(BOXES), *SIZE, 3), np.uint8)
    out = np.full((len(BOXES), 3, *SIZE), np.nan, np.float32)
    published.crop_resize[(1, len(BOXES)), 8](pixels, np.array(rows, np.int32), crops, 0)
    published.normalize[(2, len(BOXES)), 8](crops, MEAN.astype(np.float32), (1 / STD).astype(np.float32), out, 0)
    return np.abs(out - reference.crop_resize(pixels, BOXES, SIZE, MEAN, STD)).max()


def of_video() -> float:
    """The conversion of an NV12 frame ahead of its crops."""
    height, width = 4, 4 * (video.THREADS + 3)  # a second block of three threads
    nv12 = to_nv12(np.random.default_rng(1).integers(0, 256, (height, width, 3), np.uint8))
    rgb = np.zeros((height, width, 3), np.uint8)
    words = [np.frombuffer(plane, np.uint32) for plane in (nv12[:height].copy(), nv12[height:].copy())]
    kernel = cuda.jit(video.to_rgb)[(2, height // 2), video.THREADS]
    kernel(*words, width // video.PIXELS, rgb.reshape(-1).view(np.uint32))
    return np.abs(rgb - from_nv12(nv12)).max()


if __name__ == "__main__":
    print(json.dumps({"published": float(of_published()), "video": float(of_video())}))
