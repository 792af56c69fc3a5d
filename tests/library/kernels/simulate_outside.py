"""Runs the plain CUDA kernels in Numba's simulator on what the streaming one can't do, as `simulate` does the others.

Boxes that are not cut at the frame, float32 frames, and other numbers of channels. Prints the largest difference to
the reference for each kind as JSON.
"""

from __future__ import annotations

import json
import os
from itertools import product

os.environ["NUMBA_ENABLE_CUDASIM"] = "1"

import numpy as np
import patience
from numba import cuda

from octopus.kernels.cuda import antialias, crop
from octopus.kernels.cuda.tiles import ROWS
from octopus_study.reference import crops as reference

patience.install()
SIZE = (13, 5)  # more rows than a block has, fewer columns than a warp
BOXES = np.array(
    [[-3, -2, 4, 5], [1.5, 2.25, 14.75, 9.5], [-40.25, -31, -33.5, -20.5], [20, 15, 23, 40], [2, 1, 5, 4]], np.float32
)  # fmt: skip
INSIDE = np.array([[0, 0, 3, 2], [1, 2, 7, 6], [0.5, 1.25, 6.75, 5.5]], np.float32)
BAD = np.array(
    [[np.nan, 0, 3, 3], [5, 5, 5, 9], [0, 0, 16385, 3], [-(2.0**25), 0, 9, 9], [0, 0, np.inf, 9]], np.float32
)
MODES = ("constant", "edge", "reflect")


def some_frames(height=6, width=7, channels=3, dtype=np.uint8, count=2):
    values = np.random.default_rng(1).random((count, height, width, channels)) * 255
    return (values * 3 - 200).astype(np.float32) if dtype == np.float32 else values.astype(dtype)


def of_channels(channels):
    """Mean, standard deviation and padding of each channel."""
    numbers = np.arange(channels)
    return 10.0 + numbers, 2.0 + numbers % 3, 114.0 - 5 * numbers


def run(
    frames, boxes, index, *, filtered=False, dtype="float32", layout="NCHW", threads=4, pad_mode="", **options
):
    """Launch with few threads per block, so that there are several strips and bands; returns items and transforms."""
    (height, width), channels = SIZE, frames.shape[3]
    mean, std, pad = of_channels(channels)
    gain, bias = np.float32(1 / std), np.float32(-mean / std)
    values = gain, bias, np.float32(pad) * gain + bias
    out = np.full(len(boxes) * height * width * channels, 3, dtype)
    transform = np.full(len(boxes) * 4, 3, np.float32)
    tiles = (-(-width // threads), -(-height // ROWS))
    several = [np.int32(len(frames)), np.int64(frames[0].size), index, transform]
    if channels <= 4:
        four = [[*part, *[np.float32(0)] * (4 - channels)] for part in values]
        affine, padding = [*four[0], *four[1]], four[2]
    else:
        affine, padding = values[:2], values[2:]
    rest = [*several, *padding] if pad_mode or options or channels > 4 else []
    build = (antialias if filtered else crop).build
    kernel = cuda.jit(build(channels, dtype, layout, pad_mode=pad_mode, **options))
    kernel[len(boxes) * tiles[0] * tiles[1], threads](
        frames.ravel(), np.int32(frames.shape[2] * channels), np.int32(frames.shape[2]), np.int32(frames.shape[1]),
        boxes.ravel(), out, np.int32(width), np.int32(height), *map(np.int32, tiles), *affine, *rest,
    )  # fmt: skip
    shape = (-1, channels, *SIZE) if layout == "NCHW" else (-1, *SIZE, channels)
    return out.reshape(shape), transform.reshape(-1, 4)


def compare(frames, boxes, *, filtered=False, dtype="float32", pad_mode="", **options):
    """Largest difference of items and of transforms to the reference."""
    index = np.arange(len(boxes)) % len(frames) if options.get("indexed") else np.zeros(len(boxes), int)
    found, transform = run(frames, boxes, index, filtered=filtered, dtype=dtype, pad_mode=pad_mode, **options)
    mean, std, pad = of_channels(frames.shape[3])
    options.pop("indexed", None)
    outside = {"outside": "pad", "pad_mode": pad_mode} if pad_mode else {}
    expected = reference.crop_resize(
        frames, boxes, SIZE, mean, std, antialias=filtered, pad_value=pad, frame_index=index, **outside, **options
    )  # fmt: skip
    if dtype == "uint8":
        expected = expected.clip(0, 255)
    right = reference.transforms(boxes, SIZE) if options.get("letterbox") else 3.0
    return float(np.abs(found.astype(np.float64) - expected).max()), float(np.abs(transform - right).max())


def every_way_beyond_the_frame():
    results = {}
    for mode, edge, boxed, filtered in product(MODES, ("box", "image"), (False, True), (False, True)):
        name = "-".join([mode, edge, *["antialias"] * filtered, *["letterbox"] * boxed])
        options = {"pad_mode": mode, "edge": edge, "letterbox": boxed, "filtered": filtered}
        results[name], results[f"transform-{name}"] = compare(some_frames(), BOXES, indexed=True, **options)
    for mode, side in product(MODES, (1, 2)):
        tiny = some_frames(side, side + 1, 1, count=1)
        results[f"tiny-{mode}-{side}"] = compare(tiny, BOXES, pad_mode=mode, edge="image")[0]
    return results


def other_frames():
    results = {}
    for channels, filtered, boxed in product((2, 5, 13), (False, True), (False, True)):
        name = "-".join([f"channels-{channels}", *["antialias"] * filtered, *["letterbox"] * boxed])
        options = {"letterbox": True, "layout": "NHWC"} if boxed else {}
        frames = some_frames(channels=channels, count=1)
        results[name] = compare(frames, INSIDE, filtered=filtered, **options)[0]
    for filtered in (False, True):
        name, floats = "-antialias" * filtered, some_frames(dtype=np.float32, count=1)
        for dtype in ("float32", "float16", "uint8"):
            results[f"floats-{dtype}{name}"] = compare(floats, INSIDE, filtered=filtered, dtype=dtype)[0]
        beyond = {"pad_mode": "reflect", "edge": "image", "filtered": filtered}
        results[f"floats-beyond{name}"] = compare(
            some_frames(channels=5, dtype=np.float32, count=1), BOXES, **beyond
        )[0]
    return results


def too_large_for_float16():
    """Share of infinite values where a float32 frame holds 1e6."""
    found, _ = run(np.full((1, 6, 7, 3), 1e6, np.float32), INSIDE, None, dtype="float16")
    return float(np.isposinf(found).mean())


def bad_items(**options):
    """Share of items as they must be: those of `BAD` filled, the others made, also wholly outside."""
    boxes = np.concatenate([BAD, BOXES])
    found, transform = run(
        some_frames(), boxes, np.zeros(len(boxes), int), letterbox=True, pad_mode="edge", **options
    )
    floats = found.dtype != np.uint8
    empty = np.array([np.isnan(item).all() if floats else (item == 0).all() for item in found])
    right = np.arange(len(boxes)) < len(BAD)
    return float(((empty == right) & (np.isnan(transform).all(axis=1) == right)).mean())


def main():
    results = every_way_beyond_the_frame() | other_frames()
    results["infinite-float16"] = too_large_for_float16()
    for filtered, dtype in product((False, True), ("float32", "uint8")):
        results[f"bad-{dtype}{'-antialias' * filtered}"] = bad_items(filtered=filtered, dtype=dtype)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
