"""Runs the crop's CUDA kernels for video, for other orders of channels, and for items that are flipped, counted or have
a normalisation of their own, in Numba's simulator, in a process of its own.

Prints the largest difference to the reference for each kind of kernel as JSON.
"""

from __future__ import annotations

import json
import os
from itertools import product

os.environ["NUMBA_ENABLE_CUDASIM"] = "1"

import numpy as np
import patience
from numba import cuda

from octopus.kernels.cuda import antialias, crop, stream
from octopus.kernels.cuda.tiles import ROWS
from octopus_study.reference import crops as reference

SIZE = (19, 8)
BOXES = np.array(
    [[0, 0, 3, 2], [1, 2, 12, 11], [4, 4, 5, 5], [0.5, 1.25, 9.75, 7.5], [0, 1, 2, 11], [11, 10, 12, 11]],
    np.float32,
)
TALL = np.array([[0, 0, 12, 90], [3, 7, 5, 50], [2, 2, 9, 60]], np.float32)
FLIPS = np.array([0, 1, 2, 3, 1, 2], np.int64)
COUNT = 4
MEAN, STD, PAD = np.array([10.0, 20.0, 30.0]), np.array([2.0, 4.0, 8.0]), np.array([114.0, 0.0, 55.0])
MEANS = np.arange(18, dtype=np.float32).reshape(6, 3) * 5
STDS = np.arange(1, 19, dtype=np.float32).reshape(6, 3)
UNTOUCHED = 3
VIDEO = {"nv12": ("bt709", "limited"), "p010": ("bt2020", "full")}


def random_values(shape, dtype=np.uint8):
    return np.random.default_rng(1).integers(0, np.iinfo(dtype).max, shape, dtype, endpoint=True)


def made(kind, height):
    """A frame as kernels are given it: memory, pitch and what else video has; and as RGB for the reference."""
    from octopus.crop.video import Coding

    if kind in VIDEO:
        coding, dtype = Coding(kind, *VIDEO[kind]), np.uint8 if kind == "nv12" else np.uint16
        luma, chroma = (
            random_values((height + 1, 14), dtype)[:-1],
            random_values((height // 2 + 1, 16), dtype),
        )
        right = reference.rgb_of_video(luma[:, :12], chroma[:-1, :12], *VIDEO[kind])
        more = chroma.ravel(), np.int32(16), *(coding.coefficients / np.float32(255))
        return luma.ravel(), 14, more, right
    frame = random_values((height, 12, len(kind)))
    spare = frame.ravel(), np.int32(0), *np.zeros(8, np.float32)
    return frame.ravel(), 12 * len(kind), spare, frame[..., [kind.index(c) for c in "RGB"]]


def difference(
    kind, *, plain=False, boxes=BOXES, dtype="float32", layout="NCHW", values=1, rows=3, letterbox=False,
    flipped=False, counted=False, own=False, filtered=False, **options,
):  # fmt: skip
    """Launch with few threads and rows per block, so that there are several bands and strips."""
    (height, width), video, count = SIZE, kind in VIDEO, len(boxes)
    tall = 90 if boxes is TALL else 12
    memory, pitch, more, frame = made(kind, tall)
    unit = np.float32(255 if video else 1)
    mean, std = (np.zeros(3), np.ones(3)) if own else (MEAN, STD)
    gain, bias = np.float32(1 / std), np.float32(-mean / std)
    out = np.full(count * 3 * height * width, UNTOUCHED, dtype)
    transform = np.full(4 * count, UNTOUCHED, np.float32)
    build = {
        "order": "RGB" if video else kind,
        "frame_dtype": kind if video else "uint8",
        "letterbox": letterbox,
    }
    build |= {"flipped": flipped, "counted": counted, "own": own}
    sides = np.int32(12), np.int32(tall), boxes.ravel(), out, np.int32(width), np.int32(height)
    affine = [*(gain * unit), np.float32(0), *bias, np.float32(0)]
    rest = (
        np.int32(1), np.int64(0), np.zeros(count, np.int32), transform, *(np.float32(PAD) * gain + bias), np.float32(0),
        np.array([COUNT], np.int32), FLIPS.view(np.uint8), np.int32(8), MEANS.ravel(), STDS.ravel(), *more,
    )  # fmt: skip
    if plain:
        tiles = (-(-width // 4), -(-height // ROWS))
        kernel = cuda.jit((antialias if filtered else crop).build(3, dtype, layout, **build, **options))
        kernel[count * tiles[0] * tiles[1], 4](
            memory, np.int32(pitch), *sides, *map(np.int32, tiles), *affine, *rest
        )
    else:
        along = width * (1 if layout == "NCHW" else 3) // values
        threads = (along + 1) // 2
        kernel = cuda.jit(
            stream.build(3, dtype, layout, values=values, antialias=filtered, **build, **options)
        )
        grid = (-(-height // (2 * rows)), count, -(-along // threads))
        inverse = np.float32(1) / np.float32([width, height])
        kernel[grid, (threads, 2, 1)](
            memory, np.int32(pitch), *sides, *inverse, np.int32(rows), np.int32(2), *affine, *rest
        )
    expected = reference.crop_resize(
        frame, boxes, SIZE, mean, std, "NHWC", letterbox=letterbox, antialias=filtered, pad_value=PAD
    )
    ways = reference.transforms(boxes, SIZE) if letterbox else np.full((count, 4), UNTOUCHED)
    if own:
        expected = (expected - MEANS[:count, None, None]) / STDS[:count, None, None]
    for item, flip, way in zip(expected, FLIPS, ways, strict=False):
        if flipped:
            turned = np.array([flip & 1, flip >> 1], bool)
            item[...] = item[:: -1 if flip & 2 else 1, :: -1 if flip & 1 else 1].copy()
            if letterbox:
                way[2:] += turned * way[:2] * SIZE[::-1]
                way[:2] *= np.where(turned, -1, 1)
    if counted:
        expected[COUNT:] = ways[COUNT:] = UNTOUCHED
    if layout == "NCHW":
        expected = expected.transpose(0, 3, 1, 2)
    if dtype == "uint8":
        expected = expected.clip(0, 255)
    found = out.astype(np.float64).reshape(expected.shape)
    return max(float(np.abs(found - expected).max()), float(np.abs(transform.reshape(-1, 4) - ways).max()))


EVERYTHING = {"flipped": True, "counted": True, "own": True}


def main():
    patience.one_by_one()
    results = {}
    for kind, layout in product((*VIDEO, "RGB", "BGR", "RGBA", "BGRA"), ("NCHW", "NHWC")):
        video = kind in VIDEO
        results[f"plain-{kind}-{layout}"] = difference(kind, plain=True, layout=layout, **EVERYTHING)
        values = 2 if layout == "NCHW" else 3 if video else 4
        for letterbox in (False, True):
            name = f"stream-{kind}-{layout}" + "-letterbox" * letterbox
            results[name] = difference(kind, layout=layout, values=values, letterbox=letterbox, **EVERYTHING)
    for kind in ("BGR", "RGBA", "BGRA"):
        words = {"words": True, "flipped": True}
        results[f"words-{kind}"] = difference(kind, values=2, letterbox=True, **words)
        results[f"words-{kind}-shrunk"] = difference(kind, values=2, boxes=TALL, rows=7, **words)
        results[f"fixed-float16-{kind}"] = difference(
            kind, values=4, dtype="float16", fixed=True, own=True, **words
        )
        for values in (1, 2):
            given = {"values": values, "filtered": True, "words": values == 2, "flipped": True}
            results[f"filter-{kind}-by{values}"] = difference(kind, letterbox=True, **given)
    results["filter-nhwc-BGRA"] = difference(
        "BGRA", values=3, filtered=True, words=True, layout="NHWC", letterbox=True, **EVERYTHING
    )
    for kind in (*VIDEO, "BGRA"):
        results[f"plain-filter-{kind}"] = difference(
            kind, plain=True, filtered=True, letterbox=True, **EVERYTHING
        )
        results[f"plain-letterbox-{kind}"] = difference(kind, plain=True, letterbox=True, **EVERYTHING)
    results["shrunk-nv12"] = difference("nv12", values=2, boxes=TALL, rows=7, flipped=True)
    results["uint8-nv12"] = difference("nv12", values=4, dtype="uint8", own=True, counted=True)
    results["alone-counted"] = difference("RGB", values=2, words=True, counted=True)
    results["alone-own"] = difference("RGB", values=2, words=True, own=True, letterbox=True)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
