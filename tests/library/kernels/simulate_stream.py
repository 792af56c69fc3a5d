"""Runs the streaming kernel in Numba's simulator, in a process of its own, as `simulate` does the plain one.

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

from octopus.kernels.cuda import stream
from octopus_study.reference import crops as reference

SIZE = (19, 8)  # rows of several bands, and columns for vectors of four
BOXES = np.array(
    [[0, 0, 3, 2], [1, 2, 12, 11], [4, 4, 5, 5], [0.5, 1.25, 9.75, 7.5], [0, 1, 2, 11], [11, 10, 12, 11]],
    np.float32,
)
TALL = np.array([[0, 0, 12, 90], [3, 7, 5, 50], [2, 2, 9, 60]], np.float32)  # shrunk by more than two
BAD = np.array([[np.nan, 0, 3, 3], [5, 5, 5, 9], [20, 0, 30, 5]], np.float32)
INDEX = np.array([2, 0, 1, 2, 0, 1], np.int64)
MEAN, STD = np.array([10.0, 20.0, 30.0, 40.0]), np.array([2.0, 4.0, 8.0, 5.0])
PAD = np.array([114.0, 0.0, 55.0, 7.0])
WIDE = np.array(
    [[0, 0, 60, 90], [7.5, 3, 52, 88], [0, 40, 60, 45], [50, 0, 60, 90], [59, 0, 60, 90]], np.float32
)
FIXED = {
    "float16": {"dtype": "float16", "values": 4},
    "bfloat16-of-four": {"dtype": "bfloat16", "values": 4, "channels": 4},
    "uint8": {"dtype": "uint8", "values": 4, "plain": True},
    "uint8-nhwc": {"dtype": "uint8", "values": 16, "plain": True, "layout": "NHWC", "size": (13, 32)},
    "uint8-nhwc-of-four": {"dtype": "uint8", "values": 16, "plain": True, "layout": "NHWC", "channels": 4},
}


def some_frames(height=11, channels=3, dtype=np.uint8, width=12):
    return np.random.default_rng(1).integers(0, np.iinfo(dtype).max, (3, height, width, channels), dtype)


def four(values):
    return [*np.float32(values), *[np.float32(0)] * (4 - len(values))]


def normalisation(channels, plain):
    return (np.zeros(channels), np.ones(channels)) if plain else (MEAN[:channels], STD[:channels])


def run(
    frames, boxes, index=None, *, dtype="float32", layout="NCHW", values=1, rows=3, size=SIZE, plain=False,
    **options,
):  # fmt: skip
    """Launch with few threads and rows per block, so that there are several bands and strips."""
    (height, width), channels = size, frames.shape[3]
    (mean, std), pad = normalisation(channels, plain), PAD[:channels]
    along = width * (1 if layout == "NCHW" else channels) // values
    threads = (along + 1) // 2
    stored = "uint16" if dtype == "bfloat16" else dtype
    out = np.full(len(boxes) * height * width * channels, 3, stored)
    transform = np.full(len(boxes) * 4, 3, np.float32)
    gain, bias = np.float32(1 / std), np.float32(-mean / std)
    several = index is not None
    kernel = cuda.jit(
        stream.build(
            channels,
            dtype,
            layout,
            frame_dtype=frames.dtype.name,
            values=values,
            indexed=several,
            **options,
        )
    )
    arguments = [
        frames.ravel(), np.int32(frames.shape[2] * channels), np.int32(frames.shape[2]), np.int32(frames.shape[1]),
        boxes.ravel(), out, np.int32(width), np.int32(height), np.float32(1) / np.float32(width),
        np.float32(1) / np.float32(height), np.int32(rows), np.int32(2), *four(gain), *four(bias),
    ]  # fmt: skip
    if several or options.get("letterbox"):
        arguments += [
            np.int32(len(frames)), np.int64(frames[0].size), INDEX[:1] if index is None else index, transform,
            *four(np.float32(pad) * gain + bias),
        ]  # fmt: skip
    grid = (-(-height // (2 * rows)), len(boxes), -(-along // threads))
    kernel[grid, (threads, 2, 1)](*arguments)
    if dtype == "bfloat16":
        out = (out.astype(np.uint32) << 16).view(np.float32)
    shape = (-1, channels, *size) if layout == "NCHW" else (-1, *size, channels)
    return out.reshape(shape), transform.reshape(-1, 4)


def difference(
    frames, boxes, index=None, *, edge="box", letterbox=False, antialias=False, layout="NCHW", size=SIZE,
    plain=False, **kernel,
):  # fmt: skip
    options = {"edge": edge, "letterbox": letterbox, "antialias": antialias}
    found = run(frames, boxes, index, layout=layout, size=size, plain=plain, **options, **kernel)[0]
    channels = frames.shape[3]
    expected = reference.crop_resize(
        frames[0] if index is None else frames, boxes, size, *normalisation(channels, plain), layout,
        pad_value=PAD[:channels], frame_index=index, **options,
    )  # fmt: skip
    if found.dtype == np.uint8:
        expected = expected.clip(0, 255)
    return float(np.abs(found.astype(np.float64) - expected).max())


def filtered():
    """Differences of the kernels under the triangle filter, which grows, shrinks, and both."""
    results = {}
    for channels, words, layout in product((1, 3, 4), (False, True), ("NCHW", "NHWC")):
        kind = {"antialias": True, "layout": layout, "words": words}
        kind["values"] = channels if layout == "NHWC" else 2 if words else 1
        name = f"antialias{channels}{'-words' * words}-{layout.lower()}"
        results[name] = difference(some_frames(channels=channels), BOXES, **kind)
        if words and layout == "NCHW":
            tall = some_frames(90, channels, width=60)
            for size in ((7, 30), (8, 6), (4, 2)):  # filters of four pixels, of up to twenty, and of more
                results[f"{name}-to-{size[1]}"] = difference(tall, WIDE, size=size, **kind)
    for edge, boxed, index in product(("box", "image"), (False, True), (None, INDEX)):
        name = "-".join(
            ["antialias", *filter(None, [edge, "letterbox" * boxed, "frames" * (index is not None)])]
        )
        kind = {"edge": edge, "letterbox": boxed, "antialias": True, "words": True, "rows": 7}
        results[name] = difference(some_frames(), BOXES, index, **kind)
        results[f"{name}-wide"] = difference(
            some_frames(90, width=60), WIDE[1:], None if index is None else index[:4], **kind
        )
    wide = some_frames(dtype=np.uint16)
    results["antialias-uint16-frame"] = difference(wide, BOXES, antialias=True)
    results["antialias-bfloat16"] = difference(some_frames(), BOXES, dtype="bfloat16", antialias=True)
    results["antialias-uint8"] = difference(
        some_frames(), BOXES, dtype="uint8", antialias=True, plain=True, words=True
    )
    results["bad-antialias"] = bad_items(antialias=True, words=True)
    return results


def bad_items(frames=None, **options):
    """Whether items are filled where box or frame can't be used; the others are good."""
    boxes, index = np.concatenate([BAD, BOXES[:3]]), np.array([0, 0, 0, 1, -1, 3], np.int32)
    found, transform = run(
        some_frames() if frames is None else frames, boxes, index, letterbox=True, **options
    )
    empty = [np.isnan(item).all() if found.dtype != np.uint8 else (item == 0).all() for item in found]
    right = np.array(empty) & np.isnan(transform).all(axis=1)
    return float((right == [True, True, True, False, True, True]).mean())


def main():
    patience.one_by_one()
    frames = some_frames()
    results = {}
    for values, words, layout in product((1, 2, 4), (False, True), ("NCHW", "NHWC")):
        if layout == "NCHW" or not words:
            name = f"by{values}{'-words' * words}-{layout.lower()}"
            results[name] = difference(frames, BOXES, values=values, words=words, layout=layout)
    for edge, boxed, index in product(("box", "image"), (False, True), (None, INDEX)):
        name = "-".join(filter(None, [edge, "letterbox" * boxed, "frames" * (index is not None)]))
        results[name] = difference(
            frames, BOXES, index, edge=edge, letterbox=boxed, values=2, words=True, rows=4
        )
    results["letterbox-nhwc"] = difference(frames, BOXES, letterbox=True, layout="NHWC", values=4, rows=2)
    results["shrunk"] = difference(some_frames(90), TALL, values=2, words=True, rows=7)
    results["float16"] = difference(frames, BOXES, dtype="float16", values=4)
    results["bfloat16"] = difference(frames, BOXES, dtype="bfloat16", values=4, layout="NHWC")
    results["uint8"] = difference(frames, BOXES, dtype="uint8", values=4)
    results["uint16-frame"] = difference(some_frames(dtype=np.uint16), BOXES, values=2)
    results["grey"] = difference(some_frames(channels=1), BOXES, values=4)
    results["four-bytes"] = difference(some_frames(channels=4), BOXES, values=2, words=True)
    for kind, chosen in FIXED.items():
        given = {"words": True, "fixed": True, **chosen}
        several = some_frames(channels=given.pop("channels", 3))
        tall = some_frames(90, several.shape[3])
        results[f"fixed-{kind}"] = difference(several, BOXES, **given)
        results[f"fixed-{kind}-shrunk"] = difference(tall, TALL, **{**given, "rows": 7})
        boxed = difference(several, BOXES, INDEX, letterbox=True, edge="image", **given)
        results[f"fixed-{kind}-letterbox"] = boxed
        results[f"bad-fixed-{kind}"] = bad_items(several, **given)
    results |= filtered()
    results["bad"] = bad_items(values=2)
    results["bad-uint8"] = bad_items(dtype="uint8", values=4)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
