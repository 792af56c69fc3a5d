"""Random calls of `crop_resize` and `CropPlan` on the CPU."""

from __future__ import annotations

import os
from itertools import product
from typing import Any

import numpy as np
from crop_case import TOPS, Case
from dice import Dice
from guarded import READ, Guard

import octopus

CHANNELS = (1, 2, 3, 4, 5, 13)
FLOATS, WHOLE = (
    ("float32", "float32", "float64", "float16", ">f4"),
    ("int16", "int32", "int64", "uint8", ">i2"),
)
# Of orders and video some kernels alone, and only in `make fuzz`: to compile these takes a minute, all much longer.
LONG = "FUZZ_SECONDS" in os.environ
ORDERS = {"uint8": ("BGR", "BGRA"), "float32": ("RGBA",)} if LONG else {}
RESULTS = ("float32", "uint8")
VIDEO = {"nv12": octopus.NV12, "p010": octopus.P010} if LONG else {}
PLANES = {"nv12": np.uint8, "p010": np.uint16}
INDEX_DTYPES = ("int32", "int64", "uint8", "list")
KINDS_OF_BOXES = ("whole", "whole", "float", "thin", "edge", "next", "beyond", "far", "all", "bad")


def warm_up() -> None:
    """Compile or load all kernels."""
    octopus.warm_up("cpu", everything=True)
    planes = [np.zeros((2, 2), np.uint8), np.zeros((1, 2), np.uint8)]
    coding = {"matrix": "bt709", "range": "full"}
    frames: list[tuple[Any, str]] = [
        (kind(*(plane.astype(PLANES[name]) for plane in planes), **coding), "RGB")
        for name, kind in VIDEO.items()
    ]
    frames += [
        (np.zeros((2, 2, len(order)), dtype), order) for dtype, orders in ORDERS.items() for order in orders
    ]
    for (frame, order), dtype, options in product(
        frames, RESULTS, ({}, {"letterbox": True}, {"antialias": True})
    ):
        octopus.CropPlan(frame, 1, 2, channels=order, dtype=dtype, device="cpu", allocate=False, **options)


def make(dice: Dice, guard: Guard) -> Case:
    """Any call."""
    dtype, channels = dice.pick("uint8", "uint8", "uint16", "float32", *VIDEO), int(dice.pick(*CHANNELS))
    sides = (1, 1, 8, 40, 60) if not dice.few(0.05) else (300, 500)
    height, width = (dice.upto(dice.pick(*sides)) for _ in range(2))
    if channels > 4 and height in (1, 3, 4):  # a wide one would be taken for channels first
        width = min(width, 7)
    frames, regions = int(dice.pick(0, 0, 0, 1, 2, 3)), []
    order = dice.pick("RGB", *(order for order in ORDERS.get(dtype, ()) if len(order) == channels))
    if dtype in VIDEO:
        height, width, channels, frames, order = height + height % 2, width + width % 2, 3, 0, "RGB"
        frame = _video(dice, guard, dtype, height, width)
    else:
        frame = _frame(dice, guard, (frames, height, width, channels), np.dtype(dtype))
        channels = channels if order == "RGB" else 3
    count = int(dice.pick(0, 1, 1, 2, 3, 5))
    size = (dice.upto(33), dice.upto(70))
    if dice.few(0.03):
        size, count = (110, 120), max(count, 2)
    options = _options(dice, dtype, channels, frames, count)
    if order != "RGB" or dtype in VIDEO:
        options |= {"channels": order, "dtype": dice.pick(*RESULTS)}
    boxes = _boxes(dice, guard, (height, width), count, options["outside"])
    out = None
    if dice.few(0.7):
        shape = (channels, *size) if options["layout"] == "NCHW" else (*size, channels)
        out = guard.array("out", (len(boxes), *shape), options["dtype"], dice.few(0.6))
        regions.append(guard.last)
    given: Any = dice.pick(size, list(size), np.array(size)) if dice.few(0.2) else size
    if size[0] == size[1] and dice.few(0.5):
        given = size[0]
    doors = ("call", "plan", "call", "dlpack call", "dlpack plan")  # DLPack exports nothing that is read-only
    exports = dtype not in VIDEO and frame.flags.writeable
    door = dice.pick(*doors[: None if exports else 2])
    return Case(frame, boxes, given, options, door, int(dice.pick(1, 1, 2, 3)), out, regions)


def _frame(
    dice: Dice, guard: Guard, shape: tuple[int, ...], dtype: np.dtype, name: str = "frame"
) -> np.ndarray:
    """A frame whose first or last value touches the guard page; rows and frames may be apart."""
    frames, height, width, channels = shape
    row = width * channels
    pitch = row + (dice.upto(40) if dice.few(0.3) else 0)
    step = pitch * height + (pitch * int(dice.random.integers(0, 3)) if dice.few(0.3) else 0)
    values = step * (max(frames, 1) - 1) + pitch * (height - 1) + row
    unaligned = dice.upto(dtype.itemsize - 1) if dtype.itemsize > 1 and dice.few(0.1) else 0
    flat = guard.array(name, (values,), dtype, dice.few(0.6), unaligned)
    if dtype == np.float32:
        flat[:] = dice.random.normal(40, 60, values).clip(-300, 300)
    else:
        top = np.iinfo(dtype).max
        flat[:] = dice.random.integers(0, top, values, dtype, endpoint=True) if not dice.few(0.1) else top
    item = dtype.itemsize
    strides = (step * item, pitch * item, channels * item, item)
    found = np.lib.stride_tricks.as_strided(flat, (max(frames, 1), height, width, channels), strides)
    if dice.few(0.3):
        found.flags.writeable = False
        guard.last.allow(READ)
    return found if frames else found[0]


def _video(dice: Dice, guard: Guard, kind: str, height: int, width: int) -> Any:
    """Planes that each touch a guard page, with pitches of their own."""
    dtype = np.dtype(PLANES[kind])
    y = _frame(dice, guard, (0, height, width, 1), dtype, "y")[..., 0]
    pairs = dice.few(0.5)
    shape = (0, height // 2, width // 2, 2) if pairs else (0, height // 2, width, 1)
    uv = _frame(dice, guard, shape, dtype, "uv")
    matrix, levels = dice.pick("bt601", "bt709", "bt2020"), dice.pick("limited", "full")
    return VIDEO[kind](y, uv if pairs else uv[..., 0], matrix=matrix, range=levels)


def _options(dice: Dice, dtype: str, channels: int, frames: int, count: int) -> dict[str, Any]:
    letterbox, outside = dice.few(0.4), dice.pick("clip", "clip", "error", "pad", "pad")
    top, result = TOPS[dtype], dice.pick("float32", "float32", "float16", "uint8")

    def numbers(low: float, high: float) -> Any:
        values = dice.random.uniform(low, high, channels if dice.few(0.6) else 1)
        form = dice.pick("list", "array", "column", "single", "float")
        if form == "float" or len(values) == 1:
            return float(values[0])
        if form == "column":
            return values.reshape(-1, 1, 1)
        return values.tolist() if form == "list" else values.astype(np.float32 if form == "single" else float)

    scale = float(dice.pick(top, 1000.0)) if dice.few(0.3) else None
    unit = top / (scale or 1.0)
    options: dict[str, Any] = {
        "mean": numbers(0, unit) if dice.few(0.5) else None,
        "std": numbers(unit / 300, unit) if dice.few(0.5) else None,
        "dtype": result,
        "layout": dice.pick("NCHW", "NHWC"),
        "edge": dice.pick("box", "image"),
        "antialias": dice.few(0.4),
        "letterbox": letterbox,
        "outside": outside,
        "pad_mode": dice.pick("constant", "edge", "reflect") if outside == "pad" else "constant",
        "frame_index": None,
    }
    if scale is not None:
        options["scale"] = scale
    if dice.few(0.5) and (letterbox or (outside, options["pad_mode"]) == ("pad", "constant")):
        options["pad_value"] = numbers(0, top)
    if frames:
        index = dice.random.integers(0, frames, count)
        kind = dice.pick(*INDEX_DTYPES)
        options["frame_index"] = index.tolist() if kind == "list" else index.astype(kind)
    return options


def _boxes(dice: Dice, guard: Guard, frame: tuple[int, int], count: int, outside: str) -> Any:
    """Boxes of any kind, of which a few may be unusable, in any form."""
    kinds = [dice.pick(*KINDS_OF_BOXES[: None if dice.few(0.2) else -1]) for _ in range(count)]
    rows = [_box(dice, frame, kind, outside) for kind in kinds]
    values, kind = np.array(rows).reshape(-1, 4), dice.pick(*FLOATS, *WHOLE, "list")
    if kind == "list":
        return values.tolist()
    with np.errstate(over="ignore", invalid="ignore"):
        if kind in WHOLE:
            low, high = np.iinfo(kind).min, np.iinfo(kind).max
            outer = [np.floor(values[:, :2]), np.ceil(values[:, 2:])]
            values = np.nan_to_num(np.hstack(outer)).clip(max(low, -(2**40)), min(high, 2**40))
        array = values.astype(kind)
    if dice.few(0.2):
        return np.asfortranarray(array)
    boxes = guard.array("boxes", array.shape, array.dtype, dice.few(0.6))
    boxes[...] = array
    boxes.flags.writeable = dice.few(0.7)
    return boxes


def _box(dice: Dice, frame: tuple[int, int], kind: str, outside: str) -> list[float]:
    axes = [_axis(dice, float(limit), kind, outside) for limit in (frame[1], frame[0])]
    return [axes[0][0], axes[1][0], axes[0][1], axes[1][1]]


def _axis(dice: Dice, limit: float, kind: str, outside: str) -> tuple[float, float]:
    """One axis of a box in a frame of so many pixels."""
    low, high = sorted(dice.random.uniform(0, limit, 2).astype(np.float32).tolist())
    if kind == "whole" or dice.few(0.05):
        low = float(dice.random.integers(0, int(limit)))
        return low, float(dice.random.integers(int(low), int(limit)) + 1)
    if kind == "thin":
        return low, min(low + float(dice.pick(1e-5, 1e-4, 1e-3, 0.1)), limit)
    if kind == "edge":
        return dice.pick((0.0, high), (low, limit), (0.0, limit))
    if kind == "next":
        at = np.float32(dice.random.integers(0, int(limit) + 1))
        ends = np.sort(
            [np.nextafter(at, np.float32(way)) for way in dice.pick((-9, at), (at, 1e9), (-9, 1e9))]
        )
        if outside == "pad":  # the reference moves boxes, which 53 bits allow for no smaller numbers
            ends = np.copysign(np.maximum(np.abs(ends), 2.0**-45), ends)
        return dice.pick((float(ends[0]), float(ends[1])), (0.0, float(ends[1])), (float(ends[0]), limit))
    if kind == "beyond" and outside != "error":
        return low - float(dice.random.uniform(0, limit)), high + float(dice.random.uniform(0, limit))
    if kind == "far" and outside == "pad":
        start = float(np.float32(dice.random.uniform(-5 * limit, 5 * limit)))
        return start, start + float(dice.random.uniform(0.1, 3 * limit))
    if kind == "far" and outside == "clip":
        return float(dice.pick(-(2.0**40), -1e30, -20000.0)), float(dice.pick(2.0**40, 1e30, 20000.0))
    if kind == "bad":
        return dice.pick(
            (high, low), (low, low), (np.nan, high), (low, np.inf), (-limit - 9, -9.0), (limit, limit + 9)
        )
    return (0.0, limit) if kind == "all" or low >= high else (low, high)
