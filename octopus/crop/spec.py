"""What a crop-and-resize call asks for, checked once before any work."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from octopus.arrays.checks import INT32_MAX, MAX_SIDE, check_choice, of_dtype
from octopus.arrays.views import ArrayView, dtype_name
from octopus.errors import InputError

FRAME_DTYPES = ("uint8", "uint16")
OUT_DTYPES = ("float32", "float16", "uint8")
LAYOUTS = ("NCHW", "NHWC")
CHANNELS = (1, 3, 4)
EDGES = ("box", "image")
MAX_LETTERBOX_SIDE = 2**22  # `geometry.inner_size` rounds exactly up to here


class Kernel(NamedTuple):
    """What distinguishes one compiled kernel from another, but for the dtypes of boxes and frame index."""

    frame_dtype: str
    channels: int
    dtype: str
    layout: str
    edge: str
    antialias: bool
    letterbox: bool
    indexed: bool

    @property
    def takes_options(self) -> bool:
        """Whether the CUDA kernel has the arguments for options."""
        return self.antialias or self.letterbox or self.indexed

    @property
    def name(self) -> str:
        """As part of a file's name."""
        options = {"image": self.edge == "image", "antialias": self.antialias, "letterbox": self.letterbox,
                   "frames": self.indexed}  # fmt: skip
        plain = f"{self.frame_dtype}x{self.channels}-{self.dtype}-{self.layout.lower()}"
        return "-".join([plain, *(name for name, wanted in options.items() if wanted)])


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
    edge : {"box", "image"}
    antialias, letterbox : bool
    pad : ndarray, (C,), float32
        What surrounds a letterboxed image, normalised.
    indexed : bool
        Whether there are several frames, one of which every box names.
    """

    channels: int
    frame_dtype: str
    height: int
    width: int
    gain: np.ndarray
    bias: np.ndarray
    dtype: str
    layout: str
    edge: str
    antialias: bool
    letterbox: bool
    pad: np.ndarray
    indexed: bool

    def shape(self, count: int) -> tuple[int, int, int, int]:
        """Shape of the result for `count` boxes."""
        if self.layout == "NCHW":
            return count, self.channels, self.height, self.width
        return count, self.height, self.width, self.channels

    def nbytes(self, count: int) -> int:
        """Bytes of the result for `count` boxes."""
        return math.prod(self.shape(count)) * np.dtype(self.dtype).itemsize

    @cached_property
    def plain(self) -> bool:
        """Whether no option is set, so that the shortest way will do."""
        return not (self.edge != "box" or self.antialias or self.letterbox or self.indexed)

    @cached_property
    def saturates(self) -> bool:
        """Whether values may lie so far outside 0 to 255 that a uint8 result must clamp them."""
        top = np.iinfo(self.frame_dtype).max
        reached = [self.bias, self.gain * np.float32(top) + self.bias, *[self.pad] * self.letterbox]
        return self.dtype == "uint8" and bool(np.min(reached) < -0.49 or np.max(reached) > 255.49)

    @cached_property
    def kernel(self) -> Kernel:
        """Which compiled kernel does this."""
        return Kernel(self.frame_dtype, self.channels, self.dtype, self.layout, self.edge, self.antialias,
                      self.letterbox, self.indexed)  # fmt: skip


def make_spec(
    frame: ArrayView,
    size: Any,
    mean: Any,
    std: Any,
    dtype: Any,
    layout: str,
    edge: str = "box",
    antialias: Any = False,
    letterbox: Any = False,
    pad_value: Any = 114.0,
) -> CropSpec:
    """Check the arguments of `crop_resize` and `CropPlan` that don't change between calls.

    Raises
    ------
    InputError
        Says which argument is wrong, what it is, and what it may be.
    """
    check_frame(frame)
    height, width = _size(size)
    channels = frame.shape[-1]
    check_choice("layout", layout, LAYOUTS)
    check_choice("edge", edge, EDGES)
    name = _dtype_name(dtype)
    check_choice("dtype", name, OUT_DTYPES)
    antialias, letterbox = _switch("antialias", antialias), _switch("letterbox", letterbox)
    if height * width * channels > INT32_MAX:
        raise InputError(
            f"one item of {height}x{width}x{channels} has more than 2**31 - 1 values; ask for a smaller size"
        )
    if letterbox and max(height, width) > MAX_LETTERBOX_SIDE:
        raise InputError(f"letterbox=True takes sides up to {MAX_LETTERBOX_SIDE}, found {height}x{width}")
    gain, bias = _normalisation(mean, std, channels)
    pad = _padding(pad_value, gain, bias)
    return CropSpec(channels, dtype_name(frame.dtype), height, width, gain, bias, name, layout, edge, antialias,
                    letterbox, pad, indexed=len(frame.shape) == 4)  # fmt: skip


def _normalisation(mean: Any, std: Any, channels: int) -> tuple[np.ndarray, np.ndarray]:
    """Gain and bias of each channel."""
    mean, std = _per_channel("mean", mean, 0.0, channels), _per_channel("std", std, 1.0, channels)
    if not (std > 0).all():
        raise InputError(f"std must be positive, found {std.tolist()}")
    with np.errstate(over="ignore"):
        gain, bias = (1.0 / std).astype(np.float32), (-mean / std).astype(np.float32)
    if not (np.isfinite(gain).all() and np.isfinite(bias).all()):
        raise InputError(f"mean {mean.tolist()} and std {std.tolist()} leave the range of float32")
    return gain, bias


def _padding(value: Any, gain: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """The padding of each channel, normalised as a pixel of that value would be."""
    values = _per_channel("pad_value", value, 0.0, len(gain))
    with np.errstate(over="ignore"):
        pad = values.astype(np.float32) * gain + bias
    if not np.isfinite(pad).all():
        raise InputError(f"pad_value {values.tolist()} leaves the range of float32 once normalised")
    return pad


def check_frame(frame: ArrayView) -> None:
    """A frame must be (H, W, C), or several (F, H, W, C), of uint8 or uint16, the values of a row side by side."""
    if len(frame.shape) not in (3, 4) or frame.shape[-1] not in CHANNELS:
        raise InputError(
            "frame must have shape (H, W, C), or (F, H, W, C) for several frames, with C = 1, 3 or 4, "
            f"found {frame.shape}; a grey image is frame[..., None]"
        )
    if not of_dtype(frame, FRAME_DTYPES):
        raise InputError(f"frame must be uint8 or uint16 in the machine's byte order, found {frame.dtype}")
    if 0 in frame.shape or max(frame.shape) > MAX_SIDE:
        raise InputError(f"frame sides must lie between 1 and {MAX_SIDE} pixels, found {frame.shape[:-1]}")
    item = frame.dtype.itemsize
    *between, pitch, along, channel = frame.strides  # `between` frames, if there are several
    packed = (channel == item or frame.shape[-1] == 1) and along == item * frame.shape[-1]
    if not packed or any(step < 0 or step % item for step in (*between, pitch)):
        raise InputError(
            f"the pixels of a frame row must lie next to each other, found strides {frame.strides} bytes; "
            "make a contiguous copy first (numpy.ascontiguousarray, tensor.contiguous)"
        )
    if pitch // item > INT32_MAX:
        raise InputError(f"a frame row of {pitch} bytes is too long for 32-bit arithmetic")


def _size(size: Any) -> tuple[int, int]:
    sides = (size, size) if isinstance(size, (int, np.integer)) else size
    good = isinstance(sides, (tuple, list)) and len(sides) == 2
    if not good or not all(_is_count(side) and side > 0 for side in sides):
        raise InputError(f"size must be (height, width) in positive integers, found {size!r}")
    return int(sides[0]), int(sides[1])


def _is_count(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _switch(name: str, value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(f"{name} must be True or False, found {value!r}")
    return bool(value)


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
