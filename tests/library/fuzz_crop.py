"""Random calls of `crop_resize` and `CropPlan` on the CPU, against the reference in float64."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from guarded import READ, Guard

import octopus
from octopus import CropPlan, InputError, crop_resize, set_num_threads
from octopus.kernels import reference

TOLERANCE = 1e-4  # of the frame's range: a tenth of what the library promises
HALF_END = 65_520.0  # what is larger is infinite as float16
FRAMES = {"uint8": 255.0, "uint16": 65535.0, "float32": 300.0}
CHANNELS = (1, 2, 3, 4, 5, 13)
BOX_DTYPES = (
    "float32",
    "float32",
    "float64",
    "float16",
    "int16",
    "int32",
    "int64",
    "uint8",
    ">f4",
    ">i2",
    "list",
)
INDEX_DTYPES = ("int32", "int64", "uint8", "list")
KINDS_OF_BOXES = ("whole", "whole", "float", "thin", "edge", "next", "beyond", "far", "all", "bad")


class Foreign:
    """An array that offers DLPack and nothing else."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        """The array's own."""
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        """The host."""
        return self._array.__dlpack_device__()


@dataclass
class Case:
    """A call: arrays in guarded memory, options, and by which door."""

    guard: Guard = field(repr=False)
    frame: np.ndarray = field(repr=False)
    boxes: Any
    size: Any
    options: dict[str, Any]
    door: str
    threads: int
    out: np.ndarray | None = field(repr=False)
    regions: list[Any] = field(repr=False)

    def __str__(self) -> str:
        shape = f"{self.frame.dtype} {self.frame.shape} by {self.frame.strides} bytes"
        state = f"writeable {self.frame.flags.writeable}, aligned {self.frame.flags.aligned}"
        boxes = np.asarray(self.boxes)
        return (
            f"frame {shape}, {state}\nboxes {boxes.dtype} {boxes.tolist()!r}\nsize {self.size}, {self.options}\n"
            f"{self.door}, {self.threads} threads"
        )

    def check(self) -> float | None:
        """Call, and compare with the reference."""
        boxes = _single(self.boxes)
        set_num_threads(self.threads)
        if not all(usable(*box, self.frame.shape, self.options["outside"]) for box in boxes.tolist()):
            self._is_refused()
            return None
        crops, transform = self._call()
        assert all(region.is_intact() for region in self.regions), "something was written beside an array"
        size = (self.size, self.size) if np.ndim(self.size) == 0 else tuple(int(side) for side in self.size)
        if transform is not None:
            self._compare_transform(transform, boxes, size)
        return self._compare(crops, boxes, size)

    def _call(self) -> tuple[np.ndarray, np.ndarray | None]:
        index, options = self.options["frame_index"], {**self.options, "device": "cpu"}
        frame = Foreign(self.frame) if self.door.startswith("dlpack") else self.frame
        if "plan" in self.door:
            del options["frame_index"]
            room = len(self.boxes) + self.threads - 1
            plan = CropPlan(frame, room, self.size, allocate=self.out is None, **options)
            found = plan.run(frame, self.boxes, frame_index=index, out=self.out)
        else:
            found = crop_resize(frame, self.boxes, self.size, out=self.out, **options)
        if self.options["letterbox"]:
            return found
        return found, None

    def _is_refused(self) -> None:
        before = None if self.out is None else self.out.tobytes()
        try:
            self._call()
        except InputError as error:
            assert str(error).startswith("box "), error
        else:
            raise AssertionError("unusable boxes were taken")
        assert before is None or before == self.out.tobytes(), "a refused call has written"

    def _compare_transform(self, found: np.ndarray, boxes: np.ndarray, size: tuple[int, int]) -> None:
        frame = self.frame if self.frame.ndim == 3 else self.frame[0]
        cut = boxes if self.options["outside"] == "pad" else reference.cut(boxes, frame)
        right = reference.transforms(cut, size)
        scale = np.abs(right).max(initial=1.0)
        assert np.allclose(found, right, rtol=1e-5, atol=1e-5 * scale), (found, right)

    def _compare(self, found: np.ndarray, boxes: np.ndarray, size: tuple[int, int]) -> float:
        """Largest error as a part of the tolerance, which must not be above 1."""
        given, channels = self.options, self.frame.shape[-1]
        mean, std, scale, pad = (
            np.broadcast_to(
                np.ravel(np.float64(default if given.get(name) is None else given[name])), channels
            )
            for name, default in (("mean", 0), ("std", 1), ("scale", 1), ("pad_value", 114))
        )
        names = ("layout", "edge", "antialias", "letterbox", "outside", "pad_mode")
        right = reference.crop_resize(
            self.frame, boxes, size, mean * scale, std * scale, pad_value=pad, **{name: given[name] for name in names},
            frame_index=None if self.frame.ndim == 3 else np.asarray(given["frame_index"], int),
        )  # fmt: skip
        assert found.shape == right.shape and found.dtype == given["dtype"], (found.shape, found.dtype)
        if not right.size:
            return 0.0
        top = max(FRAMES[self.frame.dtype.name], np.abs(pad).max())
        limit = TOLERANCE * (top / (std * scale) + np.abs(mean / std)).max()
        exact = right
        right, rounding = _stored(right, given["dtype"])
        with np.errstate(invalid="ignore"):
            error = (np.abs(found.astype(np.float64) - right) - rounding) / limit
        error[found == right] = 0  # also where both are infinite
        if given["dtype"] == "float16":  # between the largest number and infinity either is right
            error[(np.abs(np.abs(exact) - HALF_END) <= limit) & (np.abs(found) >= 65_504)] = 0
        worst = float(error.max(initial=0))
        assert worst <= 1, f"{worst} of the tolerance at {np.unravel_index(error.argmax(), error.shape)}"
        return worst


def _single(boxes: Any) -> np.ndarray:
    """Boxes as the library reads them."""
    with np.errstate(over="ignore"):
        return np.asarray(boxes).reshape(-1, 4).astype(np.float32).astype(np.float64)


def _stored(right: np.ndarray, dtype: str) -> tuple[np.ndarray, Any]:
    """What a result of a dtype should hold, and how far it may be from it by rounding."""
    if dtype == "uint8":
        return right.clip(0, 255), 0.5
    if dtype == "float16":
        step = np.spacing(np.abs(right).clip(0, 65_504).astype(np.float16)).astype(np.float64)
        return np.where(np.abs(right) < HALF_END, right, np.copysign(np.inf, right)), step / 2
    return right, 0.0


def usable(x1: float, y1: float, x2: float, y2: float, shape: tuple[int, ...], outside: str) -> bool:
    """The rule by which boxes on the host are taken."""
    height, width = shape[-3:-1]
    if not (np.isfinite([x1, y1, x2, y2]).all() and x1 < x2 and y1 < y2):
        return False
    if outside == "pad":
        return max(x2 - x1, y2 - y1) <= 16384 and max(map(abs, (x1, y1, x2, y2))) <= 2**24
    if outside == "error" and (x1 < 0 or y1 < 0 or x2 > width or y2 > height):
        return False
    return x1 < width and y1 < height and x2 > 0 and y2 > 0


def warm_up() -> None:
    """Compile or load all kernels."""
    octopus.warm_up("cpu", everything=True)


def make(random: np.random.Generator, guard: Guard) -> Case:
    """Any call."""
    pick = lambda *values: values[random.integers(len(values))]  # noqa: E731
    few = lambda chance: bool(random.random() < chance)  # noqa: E731
    dtype, channels = pick("uint8", "uint8", "uint16", "float32"), int(pick(*CHANNELS))
    sides = (1, 1, 8, 40, 60) if not few(0.05) else (300, 500)
    height, width = (int(random.integers(1, pick(*sides) + 1)) for _ in range(2))
    frames, regions = int(pick(0, 0, 0, 1, 2, 3)), []
    frame = _frame(random, guard, (frames, height, width, channels), np.dtype(dtype), few)
    count = int(pick(0, 1, 1, 2, 3, 5))
    size = (int(random.integers(1, 34)), int(random.integers(1, 70)))
    if few(0.03):
        size, count = (110, 120), max(count, 2)
    options = _options(random, pick, few, dtype, channels, frames, count)
    boxes = _boxes(random, pick, few, guard, (height, width), count, options["outside"])
    out = None
    if few(0.7):
        shape = (channels, *size) if options["layout"] == "NCHW" else (*size, channels)
        out = guard.array("out", (len(boxes), *shape), options["dtype"], few(0.6))
        regions.append(guard.last)
    given: Any = pick(size, list(size), np.array(size)) if few(0.2) else size
    if size[0] == size[1] and few(0.5):
        given = size[0]
    door = (
        pick("call", "call", "plan", "dlpack call", "dlpack plan")
        if frame.flags.writeable
        else pick("call", "plan")
    )
    return Case(guard, frame, boxes, given, options, door, int(pick(1, 1, 2, 3)), out, regions)


def _frame(random, guard: Guard, shape, dtype: np.dtype, few) -> np.ndarray:
    """A frame whose first or last value touches the guard page; rows and frames may be apart."""
    frames, height, width, channels = shape
    row = width * channels
    pitch = row + (int(random.integers(1, 40)) if few(0.3) else 0)
    step = pitch * height + (pitch * int(random.integers(0, 3)) if few(0.3) else 0)
    values = step * (max(frames, 1) - 1) + pitch * (height - 1) + row
    unaligned = int(random.integers(1, dtype.itemsize)) if dtype.itemsize > 1 and few(0.1) else 0
    flat = guard.array("frame", (values,), dtype, few(0.6), unaligned)
    if dtype == np.float32:
        flat[:] = random.normal(40, 60, values).clip(-300, 300)
    else:
        top = np.iinfo(dtype).max
        flat[:] = random.integers(0, top, values, dtype, endpoint=True) if not few(0.1) else top
    item = dtype.itemsize
    strides = (step * item, pitch * item, channels * item, item)
    found = np.lib.stride_tricks.as_strided(flat, (max(frames, 1), height, width, channels), strides)
    if few(0.3):
        found.flags.writeable = False
        guard.last.allow(READ)
    return found if frames else found[0]


def _options(random, pick, few, dtype: str, channels: int, frames: int, count: int) -> dict[str, Any]:
    letterbox, outside = few(0.4), pick("clip", "clip", "error", "pad", "pad")
    top, result = FRAMES[dtype], pick("float32", "float32", "float16", "uint8")

    def numbers(low: float, high: float) -> Any:
        values = random.uniform(low, high, channels if few(0.6) else 1)
        form = pick("list", "array", "column", "single", "float")
        if form == "float" or len(values) == 1:
            return float(values[0])
        if form == "column":
            return values.reshape(-1, 1, 1)
        return values.tolist() if form == "list" else values.astype(np.float32 if form == "single" else float)

    scale = float(pick(top, 1000.0)) if few(0.3) else None
    unit = top / (scale or 1.0)
    options: dict[str, Any] = {
        "mean": numbers(0, unit) if few(0.5) else None,
        "std": numbers(unit / 300, unit) if few(0.5) else None,
        "dtype": result,
        "layout": pick("NCHW", "NHWC"),
        "edge": pick("box", "image"),
        "antialias": few(0.4),
        "letterbox": letterbox,
        "outside": outside,
        "pad_mode": pick("constant", "edge", "reflect") if outside == "pad" else "constant",
        "frame_index": None,
    }
    if scale is not None:
        options["scale"] = scale
    if few(0.5) and (letterbox or outside == "pad"):
        options["pad_value"] = numbers(0, top)
    if frames:
        index = random.integers(0, frames, count)
        kind = pick(*INDEX_DTYPES)
        options["frame_index"] = index.tolist() if kind == "list" else index.astype(kind)
    return options


def _boxes(random, pick, few, guard: Guard, frame: tuple[int, int], count: int, outside: str) -> Any:
    """Boxes of any kind, of which a few may be unusable, in any form."""
    kinds = [pick(*KINDS_OF_BOXES[: None if few(0.2) else -1]) for _ in range(count)]
    rows = [_box(random, pick, few, frame, kind, outside) for kind in kinds]
    values, kind = np.array(rows).reshape(-1, 4), pick(*BOX_DTYPES)
    if kind == "list":
        return values.tolist()
    with np.errstate(over="ignore", invalid="ignore"):
        if np.dtype(kind).kind in "iu":
            low, high = np.iinfo(kind).min, np.iinfo(kind).max
            outer = [np.floor(values[:, :2]), np.ceil(values[:, 2:])]
            values = np.nan_to_num(np.hstack(outer)).clip(max(low, -(2**40)), min(high, 2**40))
        array = values.astype(kind)
    if few(0.2):
        return np.asfortranarray(array)
    boxes = guard.array("boxes", array.shape, array.dtype, few(0.6))
    boxes[...] = array
    boxes.flags.writeable = few(0.7)
    return boxes


def _box(random, pick, few, frame: tuple[int, int], kind: str, outside: str) -> list[float]:
    axes = [_axis(random, pick, few, float(limit), kind, outside) for limit in (frame[1], frame[0])]
    return [axes[0][0], axes[1][0], axes[0][1], axes[1][1]]


def _axis(random, pick, few, limit: float, kind: str, outside: str) -> tuple[float, float]:
    """One axis of a box in a frame of so many pixels."""
    low, high = sorted(random.uniform(0, limit, 2).astype(np.float32).tolist())
    if kind == "whole" or few(0.05):
        low = float(random.integers(0, int(limit)))
        return low, float(random.integers(int(low), int(limit)) + 1)
    if kind == "thin":
        return low, min(low + float(pick(1e-5, 1e-4, 1e-3, 0.1)), limit)
    if kind == "edge":
        return pick((0.0, high), (low, limit), (0.0, limit))
    if kind == "next":
        at = np.float32(random.integers(0, int(limit) + 1))
        ends = np.sort([np.nextafter(at, np.float32(way)) for way in pick((-9, at), (at, 1e9), (-9, 1e9))])
        if outside == "pad":  # the reference moves boxes, which 53 bits allow for no smaller numbers
            ends = np.copysign(np.maximum(np.abs(ends), 2.0**-45), ends)
        return pick((float(ends[0]), float(ends[1])), (0.0, float(ends[1])), (float(ends[0]), limit))
    if kind == "beyond" and outside != "error":
        return low - float(random.uniform(0, limit)), high + float(random.uniform(0, limit))
    if kind == "far" and outside == "pad":
        start = float(np.float32(random.uniform(-5 * limit, 5 * limit)))
        return start, start + float(random.uniform(0.1, 3 * limit))
    if kind == "far" and outside == "clip":
        return float(pick(-(2.0**40), -1e30, -20000.0)), float(pick(2.0**40, 1e30, 20000.0))
    if kind == "bad":
        return pick(
            (high, low), (low, low), (np.nan, high), (low, np.inf), (-limit - 9, -9.0), (limit, limit + 9)
        )
    return (0.0, limit) if kind == "all" or low >= high else (low, high)
