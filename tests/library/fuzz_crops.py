"""Random calls of `crop_resize` and `CropPlan` on the CPU; of the kind "samples" with filters and affine maps."""

import os
from itertools import product
from typing import Any

import numpy as np
from cases.crops import TOPS, VIDEO, Crops, called, planned, single, usable
from exported import Exported

import octopus
from octopus import InputError

FLOATS, WHOLE = ("float32", "float64", "float16", ">f4"), ("int16", "int32", "int64", "uint8", ">i2")
# Of orders and video some kernels alone, and only in `make fuzz`: to compile these takes a minute, all much longer.
LONG = "FUZZ_SECONDS" in os.environ
ORDERS = {"uint8": ("BGR", "BGRA"), "float32": ("RGBA",)} if LONG else {}
RESULTS, KINDS = ("float32", "uint8"), tuple(VIDEO) if LONG else ()


def warm_up(kind):
    planes = [np.zeros((2, 2), np.uint8), np.zeros((1, 2), np.uint8)]
    frames: list[tuple[Any, str]] = [
        (VIDEO[name][0](*(plane.astype(VIDEO[name][1]) for plane in planes), matrix="bt709", range="full"), "RGB")
        for name in KINDS
    ]
    frames += [(np.zeros((2, 2, len(order)), dtype), order) for dtype, orders in ORDERS.items() for order in orders]
    choices = ({}, {"letterbox": True, "pad_value": 0}, {"antialias": True})  # of float32 no padding is usual
    if kind == "samples":
        frames += [(np.zeros((2, 2, 3), dtype), "RGB") for dtype in ("uint8", "uint16", "float32")]
        choices = ({"filter": "nearest"}, {"filter": "bicubic"})
        choices += tuple({"filter": name, "box_shape": (2, 3)} for name in ("nearest", "bilinear", "bicubic"))
    else:
        octopus.warm_up("cpu", everything=True)
    for (frame, order), dtype, options in product(frames, RESULTS, choices):
        octopus.CropPlan(frame, 1, 2, channels=order, dtype=dtype, device="cpu", allocate=False, **options)


def draw(drawn, kind):
    dtype, channels = drawn.pick("uint8", "uint16", "float32", *KINDS), drawn.pick(3, 1, 2, 4, 5, 13)
    sides = (300, 500) if drawn.few(0.05) else (1, 8, 40, 60)
    height, width = (drawn.upto(drawn.pick(*sides)) for _ in range(2))
    if channels > 4 and height in (1, 3, 4):  # a wide one would be taken for channels first
        width = min(width, 7)
    frames = drawn.pick(0, 0, 1, 2, 3)
    order = drawn.pick("RGB", *(order for order in ORDERS.get(dtype, ()) if len(order) == channels))
    if dtype in VIDEO:
        height, width, channels, frames, order = height + height % 2, width + width % 2, 3, 0, "RGB"
        frame = video_of(drawn, dtype, height, width)
    else:
        frame = frame_of(drawn, "frame", (frames, height, width, channels), np.dtype(dtype))
        channels = channels if order == "RGB" else 3
    count, size = drawn.pick(0, 1, 2, 3, 5), (drawn.upto(33), drawn.upto(70))
    if drawn.few(0.03):
        size, count = (110, 120), max(count, 2)
    options = options_of(drawn, dtype, channels, frames, count)
    if order != "RGB" or dtype in VIDEO:
        options |= {"channels": order, "dtype": drawn.pick(*RESULTS)}
    boxes = boxes_of(drawn, (height, width), count, options["outside"])
    if kind == "samples":
        boxes = sample(drawn, options, boxes, (height, width), size)
    count = len(boxes)
    shape = (count, channels, *size) if options["layout"] == "NCHW" else (count, *size, channels)
    out = drawn.array("out", shape, options["dtype"]) if drawn.few(0.7) else None
    given = drawn.pick(size, list(size), np.array(size), *[size[0]] * (size[0] == size[1]))
    # DLPack exports nothing that is read-only.
    exports = isinstance(frame, np.ndarray) and frame.flags.writeable and drawn.few(0.3)
    by, call = drawn.pick(called, planned), Crops(frame, boxes, size, options)

    def make():
        more = {"device": "cpu"} if out is None else {"device": "cpu", "out": out}
        pixels, read = Exported(frame) if exports else frame, single(boxes)
        whole = call.pixels.shape
        if read.ndim == 2 and not all(usable(*box, whole, options["outside"]) for box in read.tolist()):
            before = None if out is None else out.tobytes()
            try:
                by(pixels, boxes, given, **options, **more)
            except InputError as error:
                assert str(error).startswith("box "), error
                assert before is None or before == out.tobytes(), "a refused call has written"
                return None
            raise AssertionError("unusable boxes were taken")
        return call.check(by(pixels, boxes, given, **options, **more))

    planes = [frame] if isinstance(frame, np.ndarray) else [frame.y, frame.uv]
    shown = " and ".join(f"{plane.dtype} {plane.shape} by {plane.strides} bytes" for plane in planes)
    shown += f", writeable {planes[0].flags.writeable}, aligned {planes[0].flags.aligned}, exported {exports}"
    return f"{shown}\nboxes {np.asarray(boxes).tolist()!r}\nsize {given}, {options}, {by.__name__}", make


def frame_of(drawn, name, shape, dtype):
    """A frame whose first or last value touches the guard page; rows and frames may be apart."""
    frames, height, width, channels = shape
    row = width * channels
    pitch = row + (drawn.upto(40) if drawn.few(0.3) else 0)
    step = pitch * height + (pitch * drawn.upto(2, 0) if drawn.few(0.3) else 0)
    values = step * (max(frames, 1) - 1) + pitch * (height - 1) + row
    off = drawn.upto(dtype.itemsize - 1) if dtype.itemsize > 1 and drawn.few(0.1) else 0
    flat = drawn.array(name, (values,), dtype, off)
    if dtype == np.float32:
        flat[:] = drawn.random.normal(40, 60, values).clip(-300, 300)
    else:
        top = np.iinfo(dtype).max
        flat[:] = top if drawn.few(0.1) else drawn.random.integers(0, top, values, dtype, endpoint=True)
    strides = [dtype.itemsize * step for step in (step, pitch, channels, 1)]
    found = np.lib.stride_tricks.as_strided(flat, (max(frames, 1), height, width, channels), strides)
    return drawn.frozen(found if frames else found[0])


def video_of(drawn, kind, height, width):
    """Planes that each touch a guard page, with pitches of their own."""
    make, dtype = VIDEO[kind]
    y, pairs = frame_of(drawn, "y", (0, height, width, 1), np.dtype(dtype))[..., 0], drawn.few(0.5)
    shape = (width // 2, 2) if pairs else (width, 1)
    uv = frame_of(drawn, "uv", (0, height // 2, *shape), np.dtype(dtype))
    coding = {"matrix": drawn.pick("bt601", "bt709", "bt2020"), "range": drawn.pick("limited", "full")}
    return make(y, uv if pairs else uv[..., 0], **coding)


def options_of(drawn, dtype, channels, frames, count):
    """Any that go together."""
    letterbox, outside, top = drawn.few(0.4), drawn.pick("clip", "error", "pad"), TOPS[dtype]

    def numbers(low, high):
        values = drawn.random.uniform(low, high, channels if drawn.few(0.6) else 1)
        form = drawn.pick("float", "list", "array", "column", "single")
        if form == "float" or len(values) == 1:
            return float(values[0])
        if form == "column":
            return values.reshape(-1, 1, 1)
        return values.tolist() if form == "list" else values.astype(np.float32 if form == "single" else float)

    scale = drawn.pick(top, 1000.0) if drawn.few(0.3) else None
    unit, mode = top / (scale or 1.0), drawn.pick("constant", "edge", "reflect") if outside == "pad" else "constant"
    options = {
        "mean": numbers(0, unit) if drawn.few(0.5) else None,
        "std": numbers(unit / 300, unit) if drawn.few(0.5) else None,
        "dtype": drawn.pick("float32", "float16", "uint8"), "layout": drawn.pick("NCHW", "NHWC"),
        "edge": drawn.pick("box", "image"), "antialias": drawn.few(0.4), "letterbox": letterbox,
        "return_transform": letterbox, "outside": outside, "pad_mode": mode, **({"scale": scale} if scale else {}),
    }  # fmt: skip
    padded = letterbox or (outside, mode) == ("pad", "constant")
    if padded and (drawn.few(0.5) or dtype in ("uint16", "float32")):  # of which no range is known
        options["pad_value"] = numbers(0, top)
    if frames:
        index, form = drawn.random.integers(0, frames, count), drawn.pick("int32", "int64", "uint8", "list")
        options["frame_index"] = index.tolist() if form == "list" else index.astype(form)
    return options


def boxes_of(drawn, frame, count, outside):
    """Boxes of any kind, of which a few may be unusable, in any form."""
    kinds = ("whole", "float", "thin", "edge", "next", "beyond", "far", "all", *["bad"] * drawn.few(0.2))
    rows = []
    for _ in range(count):
        kind = drawn.pick(*kinds)
        axes = [axis_of(drawn, float(limit), kind, outside) for limit in (frame[1], frame[0])]
        rows.append([axes[0][0], axes[1][0], axes[0][1], axes[1][1]])
    values, form = np.array(rows).reshape(-1, 4), drawn.pick(*FLOATS, *WHOLE, "list")
    if form == "list":
        return values.tolist()
    with np.errstate(over="ignore", invalid="ignore"):
        if form in WHOLE:
            low, high = np.iinfo(form).min, np.iinfo(form).max
            outer = [np.floor(values[:, :2]), np.ceil(values[:, 2:])]
            values = np.nan_to_num(np.hstack(outer)).clip(max(low, -(2**40)), min(high, 2**40))
        array = values.astype(form)
    if drawn.few(0.2):
        return np.asfortranarray(array)
    boxes = drawn.array("boxes", array.shape, array.dtype)
    boxes[...] = array
    boxes.flags.writeable = drawn.few(0.7)
    return boxes


def axis_of(drawn, limit, kind, outside):
    """One axis of a box in a frame of so many pixels."""
    low, high = sorted(drawn.random.uniform(0, limit, 2).astype(np.float32).tolist())
    if kind == "whole" or drawn.few(0.05):
        low = drawn.upto(int(limit) - 1, 0)
        return float(low), float(drawn.upto(int(limit), low + 1))
    if kind == "thin":
        return low, min(low + drawn.pick(1e-5, 1e-4, 1e-3, 0.1), limit)
    if kind == "edge":
        return drawn.pick((0.0, high), (low, limit), (0.0, limit))
    if kind == "next":
        at = np.float32(drawn.upto(int(limit), 0))
        ends = np.sort([np.nextafter(at, np.float32(way)) for way in drawn.pick((-9, at), (at, 1e9), (-9, 1e9))])
        if outside == "pad":  # the reference moves boxes, which 53 bits allow for no smaller numbers
            ends = np.copysign(np.maximum(np.abs(ends), 2.0**-45), ends)
        return drawn.pick((float(ends[0]), float(ends[1])), (0.0, float(ends[1])), (float(ends[0]), limit))
    if kind == "beyond" and outside != "error":
        return low - drawn.random.uniform(0, limit), high + drawn.random.uniform(0, limit)
    if kind == "far" and outside == "pad":
        start = float(np.float32(drawn.random.uniform(-5 * limit, 5 * limit)))
        return start, start + drawn.random.uniform(0.1, 3 * limit)
    if kind == "far" and outside == "clip":
        return drawn.pick(-(2.0**40), -1e30, -20000.0), drawn.pick(2.0**40, 1e30, 20000.0)
    if kind == "bad":
        bad = ((high, low), (low, low), (np.nan, high), (low, np.inf), (-limit - 9, -9.0), (limit, limit + 9))
        return drawn.pick(*bad)
    return (0.0, limit) if kind == "all" or low >= high else (low, high)


def sample(drawn, options, boxes, frame, size):
    """Another filter for boxes, or maps in their place; changes the options."""
    maps = drawn.few(0.6)
    options |= {"antialias": False, "filter": drawn.pick("nearest", "bicubic", *["bilinear"] * maps)}
    options["dtype"] = options["dtype"] if options["dtype"] in RESULTS else "float32"
    if maps or options["filter"] == "nearest":  # whose reference is moved, which may round a letterbox otherwise
        options["letterbox"] = options["return_transform"] = False
        if (options["outside"], options["pad_mode"]) != ("pad", "constant"):
            options.pop("pad_value", None)
    if not maps:
        return boxes
    options |= {"edge": "box", "outside": "clip" if options["outside"] == "error" else options["outside"]}
    found, last = np.zeros((len(boxes), 2, 3), np.float32), np.array(frame[::-1]) - 1
    for item in found:  # of a part of the frame; samples may end on its last pixel or lie beyond it
        angle = drawn.random.uniform(0, 2 * np.pi) if drawn.few(0.5) else 0.0
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        ends = np.array(size[::-1]) - 1
        item[:, :2] = turn * (drawn.pick(0.0, 0.2, 0.5, 1.0, 2.0) * last / ends.clip(1))
        middle = last / 2 if drawn.few(0.6) else drawn.random.uniform(-9, last + 1)
        item[:, 2] = middle - item[:, :2] @ ends / 2
    return found
