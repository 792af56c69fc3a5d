"""Runs the CUDA kernels in Numba's simulator, in a process of its own: it must be chosen before Numba is imported.

Prints the largest difference to the reference for each kernel as JSON.
"""

from __future__ import annotations

import json
import os

os.environ["NUMBA_ENABLE_CUDASIM"] = "1"

import numpy as np
from numba import cuda

from octopus.kernels.cuda import crop
from octopus.kernels.cuda.tiles import ROWS
from octopus_study.reference import crops as reference

SIZE = (19, 6)  # more rows than a block has, fewer columns than a warp
BOXES = np.array([[0, 0, 3, 2], [1, 2, 12, 11], [4, 4, 5, 5], [0.5, 1.25, 9.75, 7.5]], np.float32)
BAD = np.array([[np.nan, 0, 3, 3], [5, 5, 5, 9], [20, 0, 30, 5]], np.float32)
MEAN, STD = np.array([10.0, 20.0, 30.0]), np.array([2.0, 4.0, 8.0])


def frame(dtype=np.uint8):
    return np.random.default_rng(1).integers(0, np.iinfo(dtype).max, (11, 12, 3), dtype)


def run_fused(pixels, boxes, dtype, layout, threads=4):
    """Launch with few threads per block, so that there are several strips and bands."""
    height, width = SIZE
    out = np.full(len(boxes) * height * width * 3, 3, dtype)
    affine = [*np.float32(1 / STD), np.float32(0), *np.float32(-MEAN / STD), np.float32(0)]
    tiles = (-(-width // threads), -(-height // ROWS))
    kernel = cuda.jit(crop.build(3, np.dtype(dtype).name, layout))
    kernel[len(boxes) * tiles[0] * tiles[1], threads](
        pixels.ravel(), np.int32(pixels.shape[1] * 3), np.int32(pixels.shape[1]), np.int32(pixels.shape[0]),
        boxes.ravel(), out, np.int32(width), np.int32(height), *map(np.int32, tiles), *affine,
    )  # fmt: skip
    shape = (-1, 3, *SIZE) if layout == "NCHW" else (-1, *SIZE, 3)
    return out.reshape(shape)


def difference(found, boxes, layout="NCHW", pixels=None):
    expected = reference.crop_resize(frame() if pixels is None else pixels, boxes, SIZE, MEAN, STD, layout)
    if found.dtype == np.uint8:
        expected = expected.clip(0, 255)
    return float(np.abs(found.astype(np.float64) - expected).max())


def main():
    wide = frame(np.uint16)
    results = {
        "float32-nchw": difference(run_fused(frame(), BOXES, np.float32, "NCHW"), BOXES),
        "float32-nhwc": difference(run_fused(frame(), BOXES, np.float32, "NHWC"), BOXES, "NHWC"),
        "float16-nchw": difference(run_fused(frame(), BOXES, np.float16, "NCHW"), BOXES),
        "uint8-nchw": difference(run_fused(frame(), BOXES, np.uint8, "NCHW"), BOXES),
        "uint16-frame": difference(run_fused(wide, BOXES, np.float32, "NCHW"), BOXES, pixels=wide),
        "int32-boxes": difference(
            run_fused(frame(), BOXES[:3].astype(np.int32), np.float32, "NCHW"), BOXES[:3]
        ),
        "bad-boxes-nan": float(np.isnan(run_fused(frame(), BAD, np.float32, "NCHW")).mean()),
        "bad-boxes-zero": float((run_fused(frame(), BAD, np.uint8, "NCHW") == 0).mean()),
    }
    print(json.dumps(results))


if __name__ == "__main__":
    main()
