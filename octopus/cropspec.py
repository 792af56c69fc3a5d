"""What a crop-and-resize call asks for, checked once before any work."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from octopus.errors import InputError, OutOfMemoryError
from octopus.interop import ArrayView, dtype_name

FRAME_DTYPES = ("uint8", "uint16")
OUT_DTYPES = ("float32", "float16", "uint8")
LAYOUTS = ("NCHW", "NHWC")
CHANNELS = (1, 3, 4)
EDGES = ("box",)
INT32_MAX = 2**31 - 1
MAX_SIDE = 2**24  # a float32 counts pixels exactly up to here


@dataclass(frozen=True, eq=False)
class CropSpec:
    """Everything about a call but the frame's pixels and the boxes.

    Attributes
    ----------
    channels : int
    frame_dtype : str
    height, width : int
        Size of the result in pixels.
    gain, bias : ndarray, (C,), float32
        The normalisation as `value * gain + bias`.
    dtype, layout : str
    """

    channels: int
    frame_dtype: str
    height: int
    width: int
    gain: np.ndarray
    bias: np.ndarray
    dtype: str
    layout: str

    def shape(self, count: int) -> tuple[int, int, int, int]:
        """Shape of the result for `count` boxes."""
        if self.layout == "NCHW":
            return count, self.channels, self.height, self.width
        return count, self.height, self.width, self.channels

    def nbytes(self, count: int) -> int:
        """Bytes of the result for `count` boxes."""
        return math.prod(self.shape(count)) * np.dtype(self.dtype).itemsize

    @property
    def kernel_name(self) -> str:
        """Distinguishes compiled kernels."""
        return f"{self.frame_dtype}x{self.channels}-{self.dtype}-{self.layout.lower()}"


def make_spec(
    frame: ArrayView, size: Any, mean: Any, std: Any, dtype: Any, layout: str, edge: str
) -> CropSpec:
    """Check the arguments of `crop_resize` and `CropPlan` that don't change between calls.

    Raises
    ------
    InputError
        Says which argument is wrong, what it is, and what it may be.
    """
    check_frame(frame)
    height, width = _size(size)
    channels = frame.shape[2]
    _choice("layout", layout, LAYOUTS)
    _choice("edge", edge, EDGES)
    name = _dtype_name(dtype)
    _choice("dtype", name, OUT_DTYPES)
    if height * width * channels > INT32_MAX:
        raise InputError(
            f"one item of {height}x{width}x{channels} has more than 2**31 - 1 values; ask for a smaller size"
        )
    mean, std = _per_channel("mean", mean, 0.0, channels), _per_channel("std", std, 1.0, channels)
    if not (std > 0).all():
        raise InputError(f"std must be positive, found {std.tolist()}")
    gain = 1.0 / std
    bias = (-mean * gain).astype(np.float32)
    return CropSpec(
        channels, dtype_name(frame.dtype), height, width, gain.astype(np.float32), bias, name, layout
    )


def check_frame(frame: ArrayView) -> None:
    """A frame must be (H, W, C) of uint8 or uint16, with the values of a row next to each other."""
    if len(frame.shape) != 3 or frame.shape[2] not in CHANNELS:
        raise InputError(
            f"frame must have shape (H, W, C) with C = 1, 3 or 4, found {frame.shape}; a grey image is frame[..., None]"
        )
    if dtype_name(frame.dtype) not in FRAME_DTYPES:
        raise InputError(f"frame must be uint8 or uint16, found {frame.dtype}")
    if 0 in frame.shape or max(frame.shape) > MAX_SIDE:
        raise InputError(f"frame sides must lie between 1 and {MAX_SIDE} pixels, found {frame.shape[:2]}")
    item = frame.dtype.itemsize
    packed = frame.strides[2] in (item, 0) or frame.shape[2] == 1
    if not packed or frame.strides[1] != item * frame.shape[2] or frame.strides[0] < 0:
        raise InputError(
            f"the pixels of a frame row must lie next to each other, found strides {frame.strides} bytes; "
            "make a contiguous copy first (numpy.ascontiguousarray, tensor.contiguous)"
        )
    if frame.strides[0] // item > INT32_MAX:
        raise InputError(f"a frame row of {frame.strides[0]} bytes is too long for 32-bit arithmetic")


def check_host_boxes(boxes: np.ndarray, width: int, height: int) -> np.ndarray:
    """Boxes on the host as float32, after checking all of them.

    Raises
    ------
    InputError
        Names the first wrong box: not (N, 4), not a number, empty, or not inside the frame.
    """
    check_box_shape(boxes.shape, boxes.dtype)
    result = np.ascontiguousarray(boxes, np.float32)
    x1, y1, x2, y2 = result.T
    # Every comparison with NaN is False, so one pass finds all that is wrong.
    good = (x1 >= 0) & (y1 >= 0) & (x2 <= width) & (y2 <= height) & (x1 < x2) & (y1 < y2)
    if not good.all():
        raise InputError(_describe_bad_box(result, int(np.argmin(good)), int((~good).sum()), width, height))
    return result


def check_box_shape(shape: tuple[int, ...], dtype: np.dtype) -> None:
    """Boxes are (N, 4) numbers."""
    if len(shape) != 2 or shape[1] != 4:
        raise InputError(f"boxes must have shape (N, 4), found {shape}; no boxes are numpy.empty((0, 4))")
    if dtype.kind not in "iuf":
        raise InputError(f"boxes must be integers or floats, found {dtype}")


def _describe_bad_box(boxes: np.ndarray, index: int, count: int, width: int, height: int) -> str:
    x1, y1, x2, y2 = boxes[index].tolist()
    if not np.isfinite(boxes[index]).all():
        why = "is not a number or infinite"
    elif not (x1 < x2 and y1 < y2):
        why = "is empty (x1 < x2 and y1 < y2 are required)"
    else:
        why = f"reaches outside the frame of {width}x{height} pixels; clip it first"
    return f"box {index} = ({x1:g}, {y1:g}, {x2:g}, {y2:g}) {why}; {count} of {len(boxes)} boxes are wrong"


def check_count(spec: CropSpec, count: int) -> None:
    """The grid of a launch must stay within 32-bit arithmetic."""
    if count > INT32_MAX // max(spec.height, 1):
        raise InputError(f"{count} boxes are more than one launch can address; split the batch")


def check_out(spec: CropSpec, out: ArrayView, count: int, device: str) -> None:
    """`out` must be exactly the array that the call would have made."""
    expected = spec.shape(count)
    if (
        out.shape != expected
        or dtype_name(out.dtype) != spec.dtype
        or out.device != device
        or not out.contiguous
    ):
        layout = "contiguous" if out.contiguous else "not contiguous"
        raise InputError(
            f"out must be a contiguous {spec.dtype} array of shape {expected} on {device}, "
            f"found {out.dtype} of shape {out.shape} on {out.device}, {layout}"
        )


def check_memory(needed: int, free: int, where: str) -> None:
    """Refuse what can't be allocated before anything is."""
    if needed > free:
        raise OutOfMemoryError(
            f"{needed:,} bytes are needed on {where}, {free:,} are free; use fewer boxes, a smaller size or float16"
        )


def _size(size: Any) -> tuple[int, int]:
    sides = (size, size) if isinstance(size, (int, np.integer)) else tuple(size)
    if len(sides) != 2 or not all(isinstance(side, (int, np.integer)) and side > 0 for side in sides):
        raise InputError(f"size must be (height, width) in positive integers, found {size!r}")
    return int(sides[0]), int(sides[1])


def _choice(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InputError(f"{name}={value!r} is unknown; use one of {', '.join(allowed)}")


def _dtype_name(dtype: Any) -> str:
    text = str(dtype).removeprefix("torch.")
    if text in OUT_DTYPES:
        return text
    try:
        return np.dtype(dtype).name
    except TypeError:
        return text


def _per_channel(name: str, value: Any, default: float, channels: int) -> np.ndarray:
    values = np.asarray(default if value is None else value, np.float64)
    if values.ndim > 1 or values.size not in (1, channels) or not np.isfinite(values).all():
        raise InputError(f"{name} must be one finite number or {channels} (one per channel), found {value!r}")
    return np.broadcast_to(values.ravel(), channels)
