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
BOX_DTYPES = ("int32", "int64", "float32", "float64")
LAYOUTS = ("NCHW", "NHWC")
CHANNELS = (1, 3, 4)
EDGES = ("box",)
INT32_MAX = 2**31 - 1
MAX_SIDE = 2**24  # a float32 counts pixels exactly up to here
MAX_BOX_SIDE = 2**14  # up to here a float32 position within a box is good to 1/1000 of a pixel


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
    with np.errstate(over="ignore"):
        gain, bias = (1.0 / std).astype(np.float32), (-mean / std).astype(np.float32)
    if not (np.isfinite(gain).all() and np.isfinite(bias).all()):
        raise InputError(f"mean {mean.tolist()} and std {std.tolist()} leave the range of float32")
    return CropSpec(channels, dtype_name(frame.dtype), height, width, gain, bias, name, layout)


def check_frame(frame: ArrayView) -> None:
    """A frame must be (H, W, C) of uint8 or uint16, with the values of a row next to each other."""
    if len(frame.shape) != 3 or frame.shape[2] not in CHANNELS:
        raise InputError(
            f"frame must have shape (H, W, C) with C = 1, 3 or 4, found {frame.shape}; a grey image is frame[..., None]"
        )
    if dtype_name(frame.dtype) not in FRAME_DTYPES or not frame.dtype.isnative:
        raise InputError(f"frame must be uint8 or uint16 in the machine's byte order, found {frame.dtype}")
    if 0 in frame.shape or max(frame.shape) > MAX_SIDE:
        raise InputError(f"frame sides must lie between 1 and {MAX_SIDE} pixels, found {frame.shape[:2]}")
    item = frame.dtype.itemsize
    packed = frame.strides[2] == item or frame.shape[2] == 1
    pitch = frame.strides[0]
    if not packed or frame.strides[1] != item * frame.shape[2] or pitch < 0 or pitch % item:
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
    if max(width, height) > MAX_BOX_SIDE:
        good &= (x2 - x1 <= MAX_BOX_SIDE) & (y2 - y1 <= MAX_BOX_SIDE)
    if not good.all():
        raise InputError(_describe_bad_box(result, int(np.argmin(good)), int((~good).sum()), width, height))
    return result


def check_box_shape(shape: tuple[int, ...], dtype: np.dtype) -> None:
    """Boxes are (N, 4) numbers."""
    if len(shape) != 2 or shape[1] != 4:
        raise InputError(f"boxes must have shape (N, 4), found {shape}; no boxes are numpy.empty((0, 4))")
    if dtype.kind not in "iuf":
        raise InputError(f"boxes must be integers or floats, found {dtype}")


def check_box_dtype(name: str) -> None:
    """The kernel reads boxes of a few dtypes."""
    _choice("box_dtype", name, BOX_DTYPES)


def check_gpu_boxes(boxes: ArrayView) -> None:
    """Boxes that the host doesn't read must be contiguous and of a dtype that the kernel reads."""
    if not boxes.contiguous:
        raise InputError(f"boxes on the GPU must be contiguous, found strides {boxes.strides} bytes")
    if dtype_name(boxes.dtype) not in BOX_DTYPES or not boxes.dtype.isnative:
        raise InputError(f"boxes on the GPU must be one of {', '.join(BOX_DTYPES)}, found {boxes.dtype}")


def _describe_bad_box(boxes: np.ndarray, index: int, count: int, width: int, height: int) -> str:
    x1, y1, x2, y2 = boxes[index].tolist()
    if not np.isfinite(boxes[index]).all():
        why = "is not a number or infinite"
    elif not (x1 < x2 and y1 < y2):
        why = "is empty (x1 < x2 and y1 < y2 are required)"
    elif max(x2 - x1, y2 - y1) > MAX_BOX_SIDE:
        why = f"has a side of more than {MAX_BOX_SIDE} pixels, where single precision ends; cut it in parts"
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
    native = out.dtype.isnative and dtype_name(out.dtype) == spec.dtype
    if out.shape != expected or not native or out.device != device or not out.contiguous:
        layout = "contiguous" if out.contiguous else "not contiguous"
        raise InputError(
            f"out must be a contiguous {spec.dtype} array of shape {expected} on {device}, "
            f"found {out.dtype} of shape {out.shape} on {out.device}, {layout}"
        )
    if device == "cpu" and not out.numpy().flags.writeable:
        raise InputError("out is read-only; pass an array that may be written")


def check_memory(needed: int, free: int, where: str) -> None:
    """Refuse what can't be allocated before anything is."""
    if needed > free:
        raise OutOfMemoryError(
            f"{needed:,} bytes are needed on {where}, {free:,} are free; use fewer boxes, a smaller size or float16"
        )


def _size(size: Any) -> tuple[int, int]:
    sides = (size, size) if isinstance(size, (int, np.integer)) else size
    good = isinstance(sides, (tuple, list)) and len(sides) == 2
    if not good or not all(_is_count(side) and side > 0 for side in sides):
        raise InputError(f"size must be (height, width) in positive integers, found {size!r}")
    return int(sides[0]), int(sides[1])


def _is_count(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


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
    wrong = f"{name} must be one finite number or {channels} (one per channel), found {value!r}"
    try:
        values = np.asarray(default if value is None else value, np.float64)
    except (TypeError, ValueError):
        raise InputError(wrong) from None
    if values.ndim > 1 or values.size not in (1, channels) or not np.isfinite(values).all():
        raise InputError(wrong)
    return np.broadcast_to(values.ravel(), channels)
