"""What a crop-and-resize call comes to for a kind of frame, worked out once before any work."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from octopus.arrays.checks import INT32_MAX, hint_once
from octopus.arrays.views import ArrayView, host_numbers
from octopus.crop.frame import FrameSpec, frame_spec
from octopus.crop.options import CropOptions, Kernel
from octopus.errors import InputError, shown

TOPS = {"uint8": 255, "uint16": 65535}  # largest values of frames of integers


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

    @cached_property
    def item_bytes(self) -> int:
        """Of one item of the result."""
        itemsize: int = np.dtype(self.options.dtype).itemsize
        return math.prod(self.item) * itemsize

    def nbytes(self, count: int) -> int:
        """Bytes of the result for `count` boxes."""
        return count * self.item_bytes

    @property
    def dtype(self) -> str:
        """Of the result."""
        name: str = self.options.dtype
        return name

    @cached_property
    def saturates(self) -> bool:
        """Whether values may lie so far outside 0 to 255 that a uint8 result must clamp them."""
        if self.frame.dtype == "float32":
            return self.dtype == "uint8"
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
    _hint_at_units(kind, options)
    gain, bias = _normalisation(options, kind.channels)
    return CropSpec(kind, options, gain, bias, _padding(options.pad_value, gain, bias))


def _normalisation(options: CropOptions, channels: int) -> tuple[np.ndarray, np.ndarray]:
    """Gain and bias of each channel, for values in units of the frame."""
    mean = _per_channel("mean", options.mean, 0.0, channels)
    std = _per_channel("std", options.std, 1.0, channels)
    scale = _per_channel("scale", options.scale, 1.0, channels)
    for name, values in (("std", std), ("scale", scale)):
        if not (values > 0).all():
            raise InputError(f"{name} must be positive, found {shown(values.tolist())}")
    with np.errstate(all="ignore"):
        gain, bias = (1.0 / (scale * std)).astype(np.float32), (-mean / std).astype(np.float32)
    if not (np.isfinite(gain).all() and np.isfinite(bias).all()):
        told = (shown(values.tolist()) for values in (mean, std, scale))
        raise InputError("mean {}, std {} and scale {} leave the range of float32".format(*told))
    return gain, bias


def _hint_at_units(frame: FrameSpec, options: CropOptions) -> None:
    """Warn of two normalisations that are legal and, for frames of integers, hardly ever meant."""
    if frame.dtype not in TOPS:
        return
    top = TOPS[frame.dtype]
    if options.scale is not None:
        if _beyond_reach(options, frame.channels, top):
            hint_once(
                "scaled",
                f"with scale= mean and std are in units of it, but they are far beyond the {frame.dtype} frame's "
                "largest value in that unit. Leave scale out, or divide both by it",
            )
        return
    if _in_units_of_one(options.mean, options.std, frame.channels):
        hint_once(
            "units",
            f"mean and std look as if they were in units of 1, but the frame is {frame.dtype}, and they are in units "
            f"of its values, 0 to {top}. Give scale={top} to use units of 1, or multiply both by {top}",
        )
    if frame.dtype == "uint16" and options.dtype != "float32" and options.std is None:
        fate = "saturates at 255" if options.dtype == "uint8" else "overflows to infinity above 65504"
        hint_once(
            f"range-{options.dtype}",
            f"the frame is uint16, with values up to {top}, and a result of {options.dtype} {fate}. Give scale= or "
            "std= to bring the values into its range",
        )


def _in_units_of_one(mean: Any, std: Any, channels: int) -> bool:
    """Whether both are given and such as of values from 0 to 1; 0 and 1, which change nothing, are of any unit."""
    if mean is None or std is None:
        return False
    both = np.concatenate(
        [_per_channel("mean", mean, 0.0, channels), _per_channel("std", std, 1.0, channels)]
    )
    return bool((both >= 0).all() and (both <= 1).all() and (both % 1).any())


def _beyond_reach(options: CropOptions, channels: int, top: int) -> bool:
    """Whether mean or std, in units of `scale`, are more than twice what a value of the frame comes to."""
    scale = _per_channel("scale", options.scale, 1.0, channels)
    mean, std = (
        _per_channel("mean", options.mean, 0.0, channels),
        _per_channel("std", options.std, 0.0, channels),
    )
    return bool((np.maximum(mean, std) * scale > 2 * top).any())


def _padding(value: Any, gain: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """The padding of each channel, normalised as a pixel of that value would be."""
    values = _per_channel("pad_value", value, 0.0, len(gain))
    with np.errstate(over="ignore"):
        pad: np.ndarray = values.astype(np.float32) * gain + bias
    if not np.isfinite(pad).all():
        raise InputError(f"pad_value {shown(values.tolist())} leaves the range of float32 once normalised")
    return pad


def _per_channel(name: str, value: Any, default: float, channels: int) -> np.ndarray:
    """One value per channel; an array may have it along any one axis, such as (C, 1, 1)."""
    values = np.asarray(default) if value is None else host_numbers(value, name)
    along_one_axis = values.size in (1, channels) and values.size == max(values.shape, default=1)
    if values.dtype.kind not in "iuf" or not along_one_axis or not np.isfinite(values).all():
        raise InputError(
            f"{name} must be one finite number or {channels} (one per channel), found {shown(value)}"
        )
    return np.broadcast_to(values.ravel().astype(np.float64), channels)
