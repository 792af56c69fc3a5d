"""What a crop-and-resize call comes to for a kind of frame, worked out once before any work."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from octopus.arrays.checks import INT32_MAX
from octopus.arrays.views import ArrayView
from octopus.crop.frame import FrameSpec, frame_spec
from octopus.crop.options import CropOptions, Kernel
from octopus.errors import InputError


@dataclass(frozen=True, eq=False)
class CropSpec:
    """Everything about a call but the frame's pixels and the boxes.

    Attributes
    ----------
    frame : FrameSpec
    options : CropOptions
    gain, bias : ndarray, (C,), float32
        The normalisation as `value * gain + bias`.
    pad : ndarray, (C,), float32
        What surrounds a letterboxed image, and the constant beyond the frame, normalised.
    """

    frame: FrameSpec
    options: CropOptions
    gain: np.ndarray
    bias: np.ndarray
    pad: np.ndarray

    @cached_property
    def item(self) -> tuple[int, int, int]:
        """Shape of one item of the result."""
        (height, width), channels = self.options.size, self.frame.channels
        return (channels, height, width) if self.options.layout == "NCHW" else (height, width, channels)

    def shape(self, count: int) -> tuple[int, int, int, int]:
        """Shape of the result for `count` boxes."""
        return (count, *self.item)

    def nbytes(self, count: int) -> int:
        """Bytes of the result for `count` boxes."""
        return math.prod(self.shape(count)) * np.dtype(self.options.dtype).itemsize

    @property
    def dtype(self) -> str:
        """Of the result."""
        return self.options.dtype

    @cached_property
    def plain(self) -> bool:
        """Whether no option is set, so that the shortest way will do."""
        return not self.kernel.takes_options and self.options.edge == "box"

    @cached_property
    def saturates(self) -> bool:
        """Whether values may lie so far outside 0 to 255 that a uint8 result must clamp them."""
        if self.frame.dtype == "float32":
            return self.options.dtype == "uint8"
        top = np.iinfo(self.frame.dtype).max
        reached = [self.bias, self.gain * np.float32(top) + self.bias, *[self.pad] * self.options.letterbox]
        return self.options.dtype == "uint8" and bool(np.min(reached) < -0.49 or np.max(reached) > 255.49)

    @cached_property
    def kernel(self) -> Kernel:
        """Which compiled kernel does this."""
        return self.options.kernel(self.frame)


def make_spec(frame: ArrayView, options: CropOptions) -> CropSpec:
    """Check options against a frame like those to come.

    Raises
    ------
    InputError
        For a frame that no kernel reads, a number of channels that mean, standard deviation or padding don't have,
        or an item that is too large.
    """
    kind = frame_spec(frame)
    height, width = options.size
    if height * width * kind.channels > INT32_MAX:
        raise InputError(
            f"one item of {height}x{width}x{kind.channels} has more than 2**31 - 1 values; ask for a smaller size"
        )
    gain, bias = _normalisation(options.mean, options.std, kind.channels)
    return CropSpec(kind, options, gain, bias, _padding(options.pad_value, gain, bias))


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
        pad: np.ndarray = values.astype(np.float32) * gain + bias
    if not np.isfinite(pad).all():
        raise InputError(f"pad_value {values.tolist()} leaves the range of float32 once normalised")
    return pad


def _per_channel(name: str, value: Any, default: float, channels: int) -> np.ndarray:
    wrong = f"{name} must be one finite number or {channels} (one per channel), found {value!r}"
    try:
        values = np.asarray(default if value is None else value, np.float64)
    except (TypeError, ValueError):
        raise InputError(wrong) from None
    if values.ndim > 1 or values.size not in (1, channels) or not np.isfinite(values).all():
        raise InputError(wrong)
    return np.broadcast_to(values.ravel(), channels)
