"""What a crop-and-resize call comes to for a kind of frame, worked out once before any work."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, TypedDict, get_type_hints

import numpy as np

from octopus.arrays.checks import (
    INT32_MAX,
    ORDERS,
    TOPS,
    Device,
    check_choice,
    checked_size,
    dtype_text,
    hint_at_units,
    normalisation,
    padding,
    switch,
)
from octopus.arrays.results import itemsize
from octopus.arrays.views import ArrayView
from octopus.crop.frame import VIDEO_DTYPES, FrameSpec, frame_spec
from octopus.errors import InputError, shown
from octopus.kernels.cuda.tiles import SCALAR_CHANNELS

DTYPES = ("float32", "float16", "bfloat16", "uint8")
LAYOUTS = ("NCHW", "NHWC")
EDGES = ("box", "image")
OUTSIDES = ("clip", "error", "pad")
PAD_MODES = ("constant", "edge", "reflect")
FILTERS = ("bilinear", "nearest", "bicubic")
PAD_VALUE = 114.0  # the grey that detectors are trained with
MAX_LETTERBOX_SIDE = 2**22  # `geometry.inner_size` rounds exactly up to here


class TorchDtype(Protocol):
    """A `torch.dtype`."""

    @property
    def is_floating_point(self) -> bool:
        """Whether it is."""


Layout: TypeAlias = Literal["NCHW", "NHWC"]
Edge: TypeAlias = Literal["box", "image"]
Outside: TypeAlias = Literal["clip", "error", "pad"]
Channels: TypeAlias = Literal["RGB", "BGR", "RGBA", "BGRA"]
PadMode: TypeAlias = Literal["constant", "edge", "reflect"]
Filter: TypeAlias = Literal["bilinear", "nearest", "bicubic"]
Dtype: TypeAlias = Literal["float32", "float16", "bfloat16", "uint8"] | type[np.generic] | np.dtype[Any] | TorchDtype
Size: TypeAlias = int | Sequence[int] | np.ndarray[Any, np.dtype[np.integer[Any]]] | np.integer[Any]


class Options(TypedDict, total=False):
    """What items are made like: keyword arguments of `crop_resize`, `CropPlan` and `FrameStream`, but `letterbox`."""

    mean: Any
    std: Any
    scale: Any
    dtype: Dtype
    layout: Layout
    edge: Edge
    antialias: bool
    filter: Filter
    outside: Outside
    pad_mode: PadMode
    pad_value: Any
    channels: Channels


class Items(TypedDict, total=False):
    """What each item has of its own: keyword arguments of `crop_resize` and `CropPlan.run`."""

    frame_index: Any
    flip: Any
    count: Any


class CallOptions(Options, Items, total=False):
    """Keyword arguments of `crop_resize` that don't decide what it returns."""

    device: Device


class PlanOptions(Options, total=False):
    """Those of `CropPlan` and `FrameStream`."""

    letterbox: bool


class RunOptions(Items, total=False):
    """Those of `CropPlan.run`."""

    mean: Any
    std: Any


# Names of all of them: annotations of a class don't have those of its bases on every Python.
PLAN_OPTIONS, CALL_OPTIONS, RUN_OPTIONS = (
    tuple(get_type_hints(kind)) for kind in (PlanOptions, CallOptions, RunOptions)
)


class Kernel(NamedTuple):
    """What distinguishes one compiled kernel from another, but for the dtypes of boxes and frame index."""

    frame: FrameSpec
    dtype: str
    layout: str
    edge: str
    antialias: bool
    letterbox: bool
    pad_mode: str = ""  # "": boxes are cut at the frame
    filter: str = "bilinear"
    maps: bool = False  # affine maps in the place of boxes

    @property
    def takes_options(self) -> bool:
        """Whether the CUDA kernel has the arguments for options."""
        return self.letterbox or self.frame.indexed or bool(self.pad_mode)

    @property
    def streams(self) -> bool:
        """Whether the streaming CUDA kernel can do it."""
        if self.pad_mode or self.samples or (self.antialias and self.frame.dtype in VIDEO_DTYPES):
            return False
        return self.frame.channels in (1, 3, 4) and self.frame.dtype != "float32"

    @property
    def samples(self) -> bool:
        """Whether the kernels that make each pixel by itself do it."""
        return self.maps or self.filter != "bilinear"

    @property
    def many_channels(self) -> bool:
        """Whether the CUDA kernel reads gains, biases and padding from memory."""
        return self.frame.channels > SCALAR_CHANNELS

    @property
    def options(self) -> dict[str, Any]:
        """Keyword arguments with which all kernels are built."""
        return {
            "edge": self.edge, "antialias": self.antialias, "letterbox": self.letterbox, "indexed": self.frame.indexed,
            "order": self.frame.order,
        }  # fmt: skip

    @property
    def name(self) -> str:
        """As part of a file's name."""
        options = {"image": self.edge == "image", "antialias": self.antialias, "letterbox": self.letterbox,
                   "frames": self.frame.indexed, f"pad-{self.pad_mode}": bool(self.pad_mode),
                   self.filter: self.samples, "maps": self.maps}  # fmt: skip
        plain = f"{self.frame.name}-{self.dtype}-{self.layout.lower()}"
        return "-".join([plain, *(name for name, wanted in options.items() if wanted)])


@dataclass(frozen=True, eq=False, slots=True)
class CropOptions:
    """The options of `crop_resize` and `CropPlan`, which says what each of them means; checked when made.

    Mean, standard deviation, scale and padding are checked against a frame's channels by `spec.make_spec`.

    Raises
    ------
    InputError
        Says which option is wrong, what it is, and what it may be.
    """

    size: Any = (224, 224)
    mean: Any = None
    std: Any = None
    dtype: Any = "float32"
    layout: str = "NCHW"
    edge: str = "box"
    antialias: bool = False
    letterbox: bool = False
    outside: str = "clip"
    pad_mode: str = "constant"
    pad_value: Any = None
    scale: Any = None
    channels: str = "RGB"
    filter: str = "bilinear"

    def __post_init__(self) -> None:
        size, dtype = checked_size(self.size), dtype_text(self.dtype, DTYPES)
        check_choice("layout", self.layout, LAYOUTS)
        check_choice("edge", self.edge, EDGES)
        check_choice("dtype", dtype, DTYPES)
        check_choice("outside", self.outside, OUTSIDES)
        check_choice("pad_mode", self.pad_mode, PAD_MODES)
        check_choice("channels", self.channels, ORDERS)
        check_choice("filter", self.filter, FILTERS)
        if self.pad_mode != "constant" and self.outside != "pad":
            raise InputError(
                f'pad_mode={shown(self.pad_mode)} needs outside="pad", found outside={self.outside!r}; '
                "otherwise nothing beyond the frame is made up"
            )
        antialias, letterbox = switch("antialias", self.antialias), switch("letterbox", self.letterbox)
        if antialias and self.filter != "bilinear":
            raise InputError(
                f'antialias=True goes with filter="bilinear", found filter={self.filter!r}; whole images are reduced '
                "with other filters by octopus.images.resize"
            )
        if letterbox and max(size) > MAX_LETTERBOX_SIDE:
            raise InputError(f"letterbox=True takes sides up to {MAX_LETTERBOX_SIDE}, found {size[0]}x{size[1]}")
        if self.pad_value is not None and not letterbox and (self.outside, self.pad_mode) != ("pad", "constant"):
            raise InputError(
                f"pad_value={shown(self.pad_value)} was given, but nothing is padded with it; leave it out, or ask for "
                'letterbox=True or outside="pad" with pad_mode="constant"'
            )
        pad_value = PAD_VALUE if self.pad_value is None else self.pad_value
        checked = {"size": size, "dtype": dtype, "antialias": antialias, "letterbox": letterbox,
                   "pad_value": pad_value}  # fmt: skip
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def kernel(self, frame: FrameSpec) -> Kernel:
        """Which compiled kernel does this to such frames."""
        pad_mode = self.pad_mode if self.outside == "pad" else ""
        return Kernel(frame, self.dtype, self.layout, self.edge, self.antialias, self.letterbox, pad_mode, self.filter)

    def check_maps(self) -> None:
        """Refuse what affine maps don't take.

        Raises
        ------
        InputError
            Names the first option that doesn't go with them.
        """
        for name, usual in (("edge", "box"), ("antialias", False), ("letterbox", False)):
            found = getattr(self, name)
            if found != usual:
                raise InputError(
                    f"boxes of shape (N, 2, 3) are affine maps, which take no {name}; found {name}={found!r}, leave "
                    "it out"
                )


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
