"""What a crop-and-resize call comes to for a kind of frame, worked out once before any work."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from octopus.arrays.channels import TOPS, hint_at_units, normalisation, padding
from octopus.arrays.checks import INT32_MAX
from octopus.arrays.results import itemsize
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

    @cached_property
    def item_bytes(self) -> int:
        """Of one item of the result."""
        return math.prod(self.item) * itemsize(self.options.dtype)

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
        top = TOPS[self.frame.dtype]
        reached = [self.bias, self.gain * np.float32(top) + self.bias, *[self.pad] * self.options.letterbox]
        return self.options.dtype == "uint8" and bool(np.min(reached) < -0.49 or np.max(reached) > 255.49)

    @cached_property
    def is_plain(self) -> bool:
        """Whether values are those of the frame, not normalised."""
        return bool(np.all(self.gain == 1) and np.all(self.bias == 0))

    @cached_property
    def is_scaled_alone(self) -> bool:
        """Whether there is neither a mean nor a standard deviation."""
        return self.options.mean is None and self.options.std is None

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
    kind = frame_spec(frame, options.channels)
    height, width = options.size
    if height * width * kind.channels > INT32_MAX:
        raise InputError(
            f"one item of {height}x{width}x{kind.channels} has more than 2**31 - 1 values; ask for a smaller size"
        )
    given = options.mean, options.std, options.scale, kind.channels
    hint_at_units("frame", kind.dtype, options.dtype, *given)
    gain, bias = normalisation(*given)
    return CropSpec(kind, options, gain, bias, padding(options.pad_value, gain, bias))
