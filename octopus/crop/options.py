"""What `crop_resize` is asked for beside frame and boxes: made once per call or plan, and passed on whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from octopus.arrays.checks import check_choice
from octopus.crop.frame import FrameSpec
from octopus.errors import InputError

DTYPES = ("float32", "float16", "uint8")
LAYOUTS = ("NCHW", "NHWC")
EDGES = ("box", "image")
OUTSIDES = ("clip", "error", "pad")
PAD_MODES = ("constant", "edge", "reflect")
SCALAR_CHANNELS = 4  # up to which CUDA kernels take gains and biases as arguments of their own
MAX_LETTERBOX_SIDE = 2**22  # `geometry.inner_size` rounds exactly up to here


class Kernel(NamedTuple):
    """What distinguishes one compiled kernel from another, but for the dtypes of boxes and frame index."""

    frame: FrameSpec
    dtype: str
    layout: str
    edge: str
    antialias: bool
    letterbox: bool
    pad_mode: str = ""  # "": boxes are cut at the frame

    @property
    def takes_options(self) -> bool:
        """Whether the CUDA kernel has the arguments for options."""
        return self.antialias or self.letterbox or self.frame.indexed or bool(self.pad_mode)

    @property
    def streams(self) -> bool:
        """Whether the streaming CUDA kernel can do it."""
        usual = self.frame.channels in (1, 3, 4) and self.frame.dtype != "float32"
        return usual and not self.antialias and not self.pad_mode

    @property
    def many_channels(self) -> bool:
        """Whether the CUDA kernel reads gains, biases and padding from memory."""
        return self.frame.channels > SCALAR_CHANNELS

    @property
    def options(self) -> dict[str, Any]:
        """Keyword arguments with which all kernels are built."""
        options = {"edge": self.edge, "letterbox": self.letterbox, "indexed": self.frame.indexed}
        return options | {"pad_mode": self.pad_mode} if self.pad_mode else options

    @property
    def name(self) -> str:
        """As part of a file's name."""
        options = {"image": self.edge == "image", "antialias": self.antialias, "letterbox": self.letterbox,
                   "frames": self.frame.indexed, f"pad-{self.pad_mode}": bool(self.pad_mode)}  # fmt: skip
        plain = f"{self.frame.dtype}x{self.frame.channels}-{self.dtype}-{self.layout.lower()}"
        return "-".join([plain, *(name for name, wanted in options.items() if wanted)])


@dataclass(frozen=True, eq=False, slots=True)
class CropOptions:
    """The options of `crop_resize` and `CropPlan`, which says what each of them means; checked when made.

    Mean, standard deviation and padding are checked against a frame's channels by `spec.make_spec`.

    Raises
    ------
    InputError
        Says which option is wrong, what it is, and what it may be.
    """

    size: tuple[int, int] = (224, 224)
    mean: Any = None
    std: Any = None
    dtype: str = "float32"
    layout: str = "NCHW"
    edge: str = "box"
    antialias: bool = False
    letterbox: bool = False
    outside: str = "clip"
    pad_mode: str = "constant"
    pad_value: Any = 114.0

    def __post_init__(self) -> None:
        size, dtype = _size(self.size), _dtype_name(self.dtype)
        check_choice("layout", self.layout, LAYOUTS)
        check_choice("edge", self.edge, EDGES)
        check_choice("dtype", dtype, DTYPES)
        check_choice("outside", self.outside, OUTSIDES)
        check_choice("pad_mode", self.pad_mode, PAD_MODES)
        if self.pad_mode != "constant" and self.outside != "pad":
            raise InputError(
                f'pad_mode={self.pad_mode!r} needs outside="pad", found outside={self.outside!r}; '
                "otherwise nothing beyond the frame is made up"
            )
        antialias, letterbox = _switch("antialias", self.antialias), _switch("letterbox", self.letterbox)
        if letterbox and max(size) > MAX_LETTERBOX_SIDE:
            raise InputError(
                f"letterbox=True takes sides up to {MAX_LETTERBOX_SIDE}, found {size[0]}x{size[1]}"
            )
        checked = {"size": size, "dtype": dtype, "antialias": antialias, "letterbox": letterbox}
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def kernel(self, frame: FrameSpec) -> Kernel:
        """Which compiled kernel does this to such frames."""
        pad_mode = self.pad_mode if self.outside == "pad" else ""
        return Kernel(frame, self.dtype, self.layout, self.edge, self.antialias, self.letterbox, pad_mode)


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
    if text in DTYPES:
        return text
    try:
        return str(np.dtype(dtype).name)
    except TypeError:
        return text
