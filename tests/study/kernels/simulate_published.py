"""Runs the published kernels in Numba's simulator, in a process of its own: it must be chosen before Numba is imported.

Prints the largest difference to the reference as JSON.
"""

import json
import os

os.environ["NUMBA_ENABLE_CUDASIM"] = "1"

import numpy as np

from octopus_study.kernels.cuda import published
from octopus_study.reference import crops as reference

SIZE = (19, 6)  # more rows than a block has, fewer columns than a warp
BOXES = np.array([[0, 0, 3, 2], [1, 2, 12, 11], [4, 4, 5, 5]], np.float32)
MEAN, STD = np.array([10.0, 20.0, 30.0]), np.array([2.0, 4.0, 8.0])


def run_published(pixels, boxes):
    rows = [[x1, y1, x2 - x1, y2 - y1, 0, 0, 0, 0] for x1, y1, x2, y2 in boxes.astype(int).tolist()]
    crops = np.zeros((len(boxes), *SIZE, 3), np.uint8)
    out = np.full((len(boxes), 3, *SIZE), np.nan, np.float32)
    metadata = np.array(rows, np.int32)
    published.crop_resize[(1, len(boxes)), 8](pixels, metadata, crops, 0)
    published.normalize[(2, len(boxes)), 8](crops, MEAN.astype(np.float32), (1 / STD).astype(np.float32), out, 0)
    return out


def main():
    pixels = np.random.default_rng(1).integers(0, 255, (11, 12, 3), np.uint8)
    expected = reference.crop_resize(pixels, BOXES, SIZE, MEAN, STD)
    print(json.dumps(float(np.abs(run_published(pixels, BOXES) - expected).max())))


if __name__ == "__main__":
    main()
