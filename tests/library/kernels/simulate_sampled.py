"""Runs the CUDA kernels for filters and affine maps in Numba's simulator, as `simulate` does the others.

Prints the largest difference to the reference for each kind as JSON.
"""

from __future__ import annotations

import json
import os
from itertools import product

os.environ["NUMBA_ENABLE_CUDASIM"] = "1"

import numpy as np
import patience
from numba import cuda

from octopus.kernels.cuda import sampled
from octopus.kernels.cuda.tiles import ROWS
from octopus_study.reference import crops as reference

patience.install()
SIZE = (13, 5)  # more rows than a block has, fewer columns than a warp
BOXES = np.array([[-3, -2, 4, 5], [1.5, 2.25, 14.75, 9.5], [2, 1, 5, 4], [0.3, 0.1, 6.9, 5.8]], np.float32)
MAPS = np.array(
    [[[0.71, 0.23, 1.3037], [-0.31, 0.33, 2.7037]], [[-1.37, 0.11, 5.2037], [0.05, 1.13, -2.9037]],
     [[0, 0, 3.2], [0, 0, 1.7]], [[9.1, 0.3, -70.3037], [0.2, 8.3, -40.6037]]], np.float32,
)  # fmt: skip
BAD_BOXES = np.array([[np.nan, 0, 3, 3], [5, 5, 5, 9]], np.float32)
BAD_MAPS = np.array(
    [[[1, 0, np.nan], [0, 1, 0]], [[1, 0, 0], [0, np.inf, 0]], [[2.0**23, 0, 0], [0, 1, 0]]], np.float32
)
INDEX = np.array([1, 0, 1, 0])
MODES = ("", "constant", "edge", "reflect")


def some_frames(channels=3, dtype=np.uint8):
    values = np.random.default_rng(1).random((2, 6, 7, channels)) * 255
    return (values * 3 - 200).astype(np.float32) if dtype == np.float32 else values.astype(dtype)


def of_channels(channels):
    """Mean, standard deviation and padding of each channel."""
    numbers = np.arange(channels)
    return 10.0 + numbers, 2.0 + numbers % 3, 114.0 - 5 * numbers


def run(frames, boxes, index, filter, *, dtype="float32", layout="NCHW", pad_mode="", threads=4, **options):
    """Launch with few threads per block, so that there are several strips and bands; returns items and transforms."""
    (height, width), channels, maps = SIZE, frames.shape[3], boxes.ndim == 3
    mean, std, pad = of_channels(channels)
    gain, bias = np.float32(1 / std), np.float32(-mean / std)
    values = gain, bias, np.float32(pad) * gain + bias
    out = np.full(len(boxes) * height * width * channels, 3, dtype)
    transform = np.full(len(boxes) * 4, 3, np.float32)
    tiles = (-(-width // threads), -(-height // ROWS))
    several = [np.int32(len(frames)), np.int64(frames[0].size), index, transform]
    four = [[*part, *[np.float32(0)] * (4 - channels)] for part in values]
    affine, padding = ([*four[0], *four[1]], four[2]) if channels <= 4 else (values[:2], values[2:])
    rest = [*several, *padding] if pad_mode or options or channels > 4 else []
    kernel = cuda.jit(
        sampled.build(channels, dtype, layout, filter=filter, maps=maps, pad_mode=pad_mode, **options)
    )
    kernel[len(boxes) * tiles[0] * tiles[1], threads](
        frames.ravel(), np.int32(frames.shape[2] * channels), np.int32(frames.shape[2]), np.int32(frames.shape[1]),
        boxes.ravel(), out, np.int32(width), np.int32(height), *map(np.int32, tiles), *affine, *rest,
    )  # fmt: skip
    shape = (-1, channels, *SIZE) if layout == "NCHW" else (-1, *SIZE, channels)
    return out.reshape(shape), transform.reshape(-1, 4)


def compare(frames, boxes, filter, *, pad_mode="", dtype="float32", layout="NCHW", **options):
    """Largest difference of items and of transforms to the reference."""
    index = INDEX if options.get("indexed") else np.zeros(len(boxes), int)
    found, transform = run(
        frames, boxes, index, filter, pad_mode=pad_mode, dtype=dtype, layout=layout, **options
    )
    mean, std, pad = of_channels(frames.shape[3])
    options.pop("indexed", None)
    outside = {"outside": "pad", "pad_mode": pad_mode} if pad_mode else {}
    make = reference.warp if boxes.ndim == 3 else reference.crop_resize
    expected = make(
        frames, boxes, SIZE, mean, std, layout, filter=filter, pad_value=pad, frame_index=index, **outside, **options
    )  # fmt: skip
    if dtype == "uint8":
        expected = expected.clip(0, 255)
    inner = boxes if pad_mode or boxes.ndim == 3 else reference.cut(boxes, frames[0])
    right = reference.transforms(inner, SIZE) if options.get("letterbox") else 3.0
    return float(np.abs(found.astype(np.float64) - expected).max()), float(np.abs(transform - right).max())


def bad_items(bad, good, **options):
    """Share of items as they must be: those of `bad` and of frames that don't exist filled, the others made."""
    boxes = np.concatenate([bad, good[:3]])
    index = np.array([0] * len(bad) + [1, -1, 2])
    found, _ = run(some_frames(), boxes, index, "bicubic", indexed=True, **options)
    empty = [np.isnan(item).all() if found.dtype != np.uint8 else (item == 0).all() for item in found]
    return float((np.array(empty) == ([True] * len(bad) + [False, True, True])).mean())


def main():
    results = {}
    for filter, mode in product(("nearest", "bilinear", "bicubic"), MODES):
        results[f"maps-{filter}-{mode}"] = compare(some_frames(), MAPS, filter, pad_mode=mode)[0]
        if filter == "bilinear":
            continue
        for edge, boxed in product(("box", "image"), (False, True)):
            name = f"{filter}-{mode}-{edge}{'-letterbox' * boxed}"
            results[name], results[f"transform-{name}"] = compare(
                some_frames(), BOXES, filter, pad_mode=mode, edge=edge, letterbox=boxed, indexed=True
            )
    for channels, boxes in product((1, 2, 4, 5), (BOXES, MAPS)):
        frames = some_frames(channels, np.float32)
        name = f"channels-{channels}{'-maps' * (boxes.ndim == 3)}"
        results[name] = compare(frames, boxes, "bicubic", pad_mode="constant", layout="NHWC", indexed=True)[0]
    for dtype, boxes in product(("float16", "uint8"), (BOXES, MAPS)):
        name = f"{dtype}{'-maps' * (boxes.ndim == 3)}"
        results[name] = compare(some_frames(), boxes, "bicubic", dtype=dtype, layout="NHWC")[0]
        for bad, good, kind in ((BAD_BOXES, BOXES, "boxes"), (BAD_MAPS, MAPS, "maps")):
            results[f"bad-{kind}-{dtype}"] = bad_items(bad, good, dtype=dtype)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
