"""What a call is asked for beside frame and boxes, and what that comes to for a kind of frame."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, TypedDict, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from octopus.arrays import checks
from octopus.arrays.results import itemsize
from octopus.arrays.views import ArrayView
from octopus.crop.frame import VIDEO_DTYPES, FrameSpec, frame_spec
from octopus.errors import InputError, shown

MAX_LETTERBOX_SIDE = 2**22  # `geometry.inner_size` rounds exactly up to here


class TorchDtype(Protocol):
    @property
    def is_floating_point(self) -> bool: ...


DtypeName: TypeAlias = Literal["float32", "float16", "bfloat16", "uint8"]
Layout: TypeAlias = Literal["NCHW", "NHWC"]
Edge: TypeAlias = Literal["box", "image"]
Outside: TypeAlias = Literal["clip", "error", "pad"]
Channels: TypeAlias = Literal["RGB", "BGR", "RGBA", "BGRA"]
PadMode: TypeAlias = Literal["constant", "edge", "reflect"]
Filter: TypeAlias = Literal["bilinear", "nearest", "bicubic"]
Dtype: TypeAlias = DtypeName | type[np.generic] | np.dtype[Any] | TorchDtype
Size: TypeAlias = int | Sequence[int] | np.ndarray[Any, np.dtype[np.integer[Any]]] | np.integer[Any]
Sizes: TypeAlias = "Size | Sequence[Sequence[int]] | FitHeight"  # where each item may have its own

_WORDS = {"layout": Layout, "edge": Edge, "dtype": DtypeName, "outside": Outside, "pad_mode": PadMode,
          "channels": Channels, "filter": Filter}  # fmt: skip
CHOICES = {name: get_args(words) for name, words in _WORDS.items()}
DTYPES, PAD_MODES = CHOICES["dtype"], CHOICES["pad_mode"]


class Options(TypedDict, total=False):
    """What items are made like: keyword arguments of `crop_resize`, `CropPlan` and `FrameStream`, but
    `return_transform`."""

    mean: Any
    std: Any
    scale: Any
    dtype: Dtype
    layout: Layout
    edge: Edge
    antialias: bool
    letterbox: bool
    filter: Filter
    outside: Outside
    pad_mode: PadMode
    pad_value: Any
    channels: Channels


class ItemOptions(TypedDict, total=False):
    """What each item has of its own: keyword arguments of `crop_resize` and `CropPlan.run`."""

    frame_index: Any
    flip: Any
    count: Any


class CallOptions(Options, ItemOptions, total=False):
    """Keyword arguments of `crop_resize` that don't decide what it returns, but for `pad_to`."""

    pad_to: Any
    invalid: Literal["error", "nan", "drop"]
    device: checks.Device


class PlanOptions(Options, total=False):
    return_transform: bool


class RunOptions(ItemOptions, total=False):
    mean: Any
    std: Any


# Names of all of them: annotations of a class don't have those of its bases on every Python.
PLAN_OPTIONS, CALL_OPTIONS, RUN_OPTIONS = (
    tuple(get_type_hints(kind)) for kind in (PlanOptions, CallOptions, RunOptions)
)


class FitHeight(NamedTuple):
    """A rule for sizes: all items have one height, and are as wide as their aspect ratio asks; in place of `size`.

    The width is `height * width / height` of the box, rounded up, then up to a `multiple`, at most `max_width`. Of a
    quadrilateral each side is the longer of two that face each other. Boxes that `outside="clip"` cuts are cut before.
    """

    height: int
    max_width: int | None = None
    multiple: int = 1

    def sizes(self, boxes: Any) -> NDArray[np.int64]:
        """What the rule makes of boxes (N, 4) or quadrilaterals (N, 4, 2) on the host; none is cut here.

        Returns
        -------
        ndarray, (N, 2), int64
            Heights and widths. `InputError` for a rule that isn't of positive integers, and for other shapes.
        """
        fields: Any = self._asdict()
        for name, value in fields.items():
            if not (checks.is_count(value) and value > 0) and (name, value) != ("max_width", None):
                raise InputError(f"{name} of FitHeight must be a positive integer, found {shown(value)}")
        given = np.asarray(checks.boxes_view(boxes).numpy(), np.float64)
        if given.shape[1:] == (4, 2):
            sides = np.linalg.norm(given - np.roll(given, -1, axis=1), axis=2)  # upper, right, lower, left
            across, down = np.maximum(sides[:, 0], sides[:, 2]), np.maximum(sides[:, 1], sides[:, 3])
        elif given.shape[1:] == (4,):
            across, down = given[:, 2] - given[:, 0], given[:, 3] - given[:, 1]
        else:
            raise InputError(f"FitHeight takes boxes (N, 4) or quadrilaterals (N, 4, 2), found {given.shape}")
        with np.errstate(all="ignore"):  # of boxes on the GPU that are none
            width = np.ceil(self.height * across / down - 1e-6)
        width = np.where((down > 0) & (width > 1), width, 1).clip(max=checks.INT32_MAX)
        most = self.max_width or checks.INT32_MAX
        widths = np.minimum(-(-width.astype(np.int64) // self.multiple) * self.multiple, most)
        return np.stack([np.full(len(widths), self.height), widths], axis=1)


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
    quads: bool = False  # or quadrilaterals

    @property
    def streams(self) -> bool:
        if self.pad_mode or self.samples or (self.antialias and self.frame.dtype in VIDEO_DTYPES):
            return False
        return self.frame.channels in (1, 3, 4) and self.frame.dtype != "float32"

    @property
    def samples(self) -> bool:
        return self.maps or self.quads or self.filter != "bilinear"

    @property
    def many_channels(self) -> bool:
        """Whether the CUDA kernel reads gains, biases and padding from memory."""
        from octopus.kernels.cuda.tiles import SCALAR_CHANNELS

        return self.frame.channels > SCALAR_CHANNELS

    @property
    def options(self) -> dict[str, Any]:
        return {
            "edge": self.edge, "antialias": self.antialias, "letterbox": self.letterbox, "indexed": self.frame.indexed,
            "order": self.frame.order,
        }  # fmt: skip

    @property
    def name(self) -> str:
        options = {"image": self.edge == "image", "antialias": self.antialias, "letterbox": self.letterbox,
                   "frames": self.frame.indexed, f"pad-{self.pad_mode}": bool(self.pad_mode),
                   self.filter: self.samples, "maps": self.maps, "quads": self.quads}  # fmt: skip
        plain = f"{self.frame.name}-{self.dtype}-{self.layout.lower()}"
        return "-".join([plain, *(name for name, wanted in options.items() if wanted)])


@dataclass(frozen=True, eq=False, slots=True)
class CropOptions:
    """The options of `crop_resize`, which says what each of them means; checked when made, alone and together.

    Mean, standard deviation, scale and padding are checked against a frame's channels by `make_spec`.
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
    return_transform: bool = False
    padded: bool = False  # items are filled up by the padding, see `pad_to` of `crop_resize`

    def __post_init__(self) -> None:
        size = checks.checked_size(self.size)
        object.__setattr__(self, "size", size)
        object.__setattr__(self, "dtype", checks.dtype_text(self.dtype, DTYPES))
        for name, words in CHOICES.items():
            checks.check_choice(name, getattr(self, name), words)
        if self.pad_mode != "constant" and self.outside != "pad":
            raise InputError(
                f'pad_mode={shown(self.pad_mode)} needs outside="pad", found outside={self.outside!r}; '
                "otherwise nothing beyond the frame is made up"
            )
        for name in ("antialias", "letterbox", "return_transform"):
            object.__setattr__(self, name, checks.switch(name, getattr(self, name)))
        checks.check_return_transform(self.letterbox, self.return_transform)
        if self.antialias and self.filter != "bilinear":
            raise InputError(
                f'antialias=True goes with filter="bilinear", found filter={self.filter!r}; whole images are reduced '
                "with other filters by octopus.images.resize"
            )
        if self.letterbox and max(size) > MAX_LETTERBOX_SIDE:
            raise InputError(f"letterbox=True takes sides up to {MAX_LETTERBOX_SIDE}, found {size[0]}x{size[1]}")
        if self.pad_value is not None and not self.is_padded:
            raise InputError(
                f"pad_value={shown(self.pad_value)} was given, but nothing is padded with it; leave it out, or ask for "
                'letterbox=True, pad_to=, or outside="pad" with pad_mode="constant"'
            )

    @property
    def is_padded(self) -> bool:
        return self.letterbox or self.padded or (self.outside, self.pad_mode) == ("pad", "constant")

    def check_maps(self, kind: str = "maps") -> None:
        what = {"maps": "(N, 2, 3) are affine maps", "quads": "(N, 4, 2) are quadrilaterals"}[kind]
        for name, usual in (("edge", "box"), ("antialias", False), ("letterbox", False)):
            found = getattr(self, name)
            if found != usual:
                raise InputError(f"boxes of shape {what}, which take no {name}; found {name}={found!r}, leave it out")


@dataclass(frozen=True, eq=False)
class CropSpec:
    """Everything about a call but the frame's pixels and the boxes."""

    frame: FrameSpec
    options: CropOptions
    gain: np.ndarray  # (C,), float32: the normalisation as `value * gain + bias`
    bias: np.ndarray
    pad: np.ndarray  # what surrounds a letterboxed image, and the constant beyond the frame, normalised

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
        return math.prod(self.shape(count)) * itemsize(self.dtype)

    @property
    def dtype(self) -> str:
        """Of the result."""
        return str(self.options.dtype)

    @cached_property
    def saturates(self) -> bool:
        """Whether values may lie so far outside 0 to 255 that a uint8 result must clamp them."""
        if self.frame.dtype == "float32" or self.dtype != "uint8":
            return self.dtype == "uint8"
        top = np.float32(checks.TOPS[self.frame.dtype])
        reached = [self.bias, self.gain * top + self.bias, *[self.pad] * self.options.letterbox]
        return bool(np.min(reached) < -0.49 or np.max(reached) > 255.49)

    @cached_property
    def is_plain(self) -> bool:
        return bool(np.all(self.gain == 1) and np.all(self.bias == 0))

    @cached_property
    def kernel(self) -> Kernel:
        options = self.options
        pad_mode = options.pad_mode if options.outside == "pad" else ""
        return Kernel(
            self.frame, self.dtype, options.layout, options.edge, options.antialias, options.letterbox, pad_mode,
            options.filter,
        )  # fmt: skip


def make_spec(frame: ArrayView, options: CropOptions) -> CropSpec:
    """Check options against a frame like those to come: its number of channels, and the size of an item."""
    kind = frame_spec(frame, options.channels)
    height, width = options.size
    if height * width * kind.channels > checks.INT32_MAX:
        raise InputError(
            f"one item of {height}x{width}x{kind.channels} has more than 2**31 - 1 values; ask for a smaller size"
        )
    given = options.mean, options.std, options.scale, kind.channels
    gain, bias = checks.units("frame", kind.dtype, options.dtype, *given)
    pad = options.pad_value
    if pad is None and options.is_padded:
        pad = checks.usual_padding("frame", kind.dtype, options.scale, kind.channels)
    return CropSpec(kind, options, gain, bias, checks.padding(pad, gain, bias))
