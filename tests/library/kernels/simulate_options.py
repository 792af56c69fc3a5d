"""Runs the CUDA kernels with options in Numba's simulator, in a process of its own, as `simulate` does the plain ones.

Prints the largest difference to the reference for each set of options as JSON.
"""

from __future__ import annotations

import json
import os
from itertools import product

os.environ["NUMBA_ENABLE_CUDASIM"] = "1"

import numpy as np
from numba import cuda

from octopus.kernels.cuda import antialias, crop
from octopus.kernels.cuda.tiles import ROWS
from octopus_study.reference import crops as reference

SIZE = (19, 6)  # more rows than a block has, fewer columns than a warp
BOXES = np.array(
    [[0, 0, 3, 2], [1, 2, 12, 11], [4, 4, 5, 5], [0.5, 1.25, 9.75, 7.5], [0, 1, 2, 11]], np.float32
)
BAD = np.array([[np.nan, 0, 3, 3], [5, 5, 5, 9], [20, 0, 30, 5]], np.float32)
INDEX = np.array([2, 0, 1, 2, 0], np.int64)
MEAN, STD, PAD = np.array([10.0, 20.0, 30.0]), np.array([2.0, 4.0, 8.0]), np.array([114.0, 0.0, 55.0])


def some_frames():
    """Three frames with rows and frames further apart than they are long."""
    return np.random.default_rng(1).integers(0, 256, (3, 13, 14, 3), np.uint8)[:, 1:12, 1:13]


def four(values):
    return [*np.float32(values), np.float32(0)]


def run(frames, boxes, index, *, filtered=False, dtype="float32", layout="NCHW", threads=4, **options):
    """Launch with few threads per block, so that there are several strips and bands; returns items and transforms."""
    height, width = SIZE
    out = np.full(len(boxes) * height * width * 3, 3, dtype)
    transform = np.full(len(boxes) * 4, 3, np.float32)
    tiles = (-(-width // threads), -(-height // ROWS))
    gain, bias = np.float32(1 / STD), np.float32(-MEAN / STD)
    memory = np.ascontiguousarray(frames.base).ravel()
    offset = frames.__array_interface__["data"][0] - frames.base.__array_interface__["data"][0]
    steps = [frames.strides[1], frames.strides[0]]
    kernel = cuda.jit((antialias if filtered else crop).build(3, dtype, layout, indexed=True, **options))
    kernel[len(boxes) * tiles[0] * tiles[1], threads](
        memory[offset:], np.int32(steps[0]), np.int32(frames.shape[2]), np.int32(frames.shape[1]), boxes.ravel(), out,
        np.int32(width), np.int32(height), *map(np.int32, tiles), *four(gain), *four(bias),
        np.int32(len(frames)), np.int64(steps[1]), index, transform, *four(np.float32(PAD) * gain + bias),
    )  # fmt: skip
    return out.reshape((-1, 3, *SIZE) if layout == "NCHW" else (-1, *SIZE, 3)), transform.reshape(-1, 4)


def difference(found, **options):
    expected = reference.crop_resize(
        some_frames(), BOXES, SIZE, MEAN, STD, pad_value=PAD, frame_index=INDEX, **options
    )
    if found.dtype == np.uint8:
        expected = expected.clip(0, 255)
    return float(np.abs(found.astype(np.float64) - expected).max())


def every_set_of_options():
    results = {}
    for edge, boxed, filtered in product(("box", "image"), (False, True), (False, True)):
        options = {"edge": edge, "letterbox": boxed}
        found, transform = run(some_frames(), BOXES, INDEX, filtered=filtered, **options)
        name = "-".join([edge, *["antialias"] * filtered, *["letterbox"] * boxed])
        results[name] = difference(found, antialias=filtered, **options)
        expected = reference.transforms(BOXES, SIZE) if boxed else np.full((len(BOXES), 4), 3.0)
        results[f"transform-{name}"] = float(np.abs(transform - expected).max())
    return results


def bad_items(**options):
    """Share of values as they must be where the box, or else the frame, can't be used; the other items are good."""
    boxes, index = np.concatenate([BAD, BOXES[:3]]), np.array([0, 0, 0, 1, -1, 3], np.int32)
    found, transform = run(some_frames(), boxes, index, letterbox=True, **options)
    floats = found.dtype != np.uint8
    right = [np.isnan(item).all() if floats else (item == 0).all() for item in found]
    right = np.array(right) & np.isnan(transform).all(axis=1)
    return float((right == [True, True, True, False, True, True]).mean())


def main():
    results = every_set_of_options()
    for filtered in (False, True):
        name, options = "antialias" if filtered else "bilinear", {"filtered": filtered, "letterbox": True}
        half = run(some_frames(), BOXES, INDEX, dtype="float16", **options)[0]
        bytes_ = run(some_frames(), BOXES, INDEX.astype(np.int32), dtype="uint8", layout="NHWC", **options)[0]
        results[f"float16-{name}"] = difference(half, letterbox=True, antialias=filtered)
        results[f"uint8-{name}"] = difference(bytes_, letterbox=True, antialias=filtered, layout="NHWC")
        results[f"bad-{name}"] = bad_items(filtered=filtered)
        results[f"bad-uint8-{name}"] = bad_items(filtered=filtered, dtype="uint8")
    print(json.dumps(results))


if __name__ == "__main__":
    main()
