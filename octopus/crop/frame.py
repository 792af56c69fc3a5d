"""What a frame is: its dtype and channels, and whether there are several."""

from __future__ import annotations

from typing import Any, NamedTuple

from octopus.arrays.channels import ORDERS, check_order
from octopus.arrays.checks import INT32_MAX, MAX_SIDE, of_dtype
from octopus.arrays.pillow import is_pillow, rasters
from octopus.arrays.views import ArrayView, dtype_name, view
from octopus.crop.video import Planes, VideoView, video_view
from octopus.errors import InputError, shown_type

DTYPES = ("uint8", "uint16", "float32")
MAX_CHANNELS = 64
IMAGE_CHANNELS = (1, 3, 4)  # a first axis of so many, before a last one too long for channels, is channels first
LOOKS_WIDE = 8  # pixels of a row


class FrameSpec(NamedTuple):
    """All that a kernel is compiled for of a frame, whatever its size.

    Attributes
    ----------
    dtype : {"uint8", "uint16", "float32", "nv12", "p010"}
        The last two are of the planes of a `VideoView`.
    channels : int
        Of the result, 1 to 64.
    indexed : bool
        Whether there are several frames, one of which every box names.
    order : {"RGB", "BGR", "RGBA", "BGRA"}
        How the channels are stored; "RGB" for any number of them, as they are.
    """

    dtype: str
    channels: int
    indexed: bool
    order: str = "RGB"

    @property
    def stored(self) -> int:
        """Channels that lie in the frame: a fourth one that is left out, too."""
        return self.channels if self.order == "RGB" else len(self.order)

    @property
    def name(self) -> str:
        """As part of a file's name."""
        order = "" if self.order == "RGB" else f"-{self.order.lower()}"
        return f"{self.dtype}x{self.channels}{order}"


def pillow_frame(frame: Any, options: dict[str, Any]) -> Any:
    """A frame that may be an image of Pillow as an array; of RGB in four bytes `channels` in the options is changed."""
    if not is_pillow(type(frame)):
        return frame
    (raster,) = rasters([frame], "frame")
    if len(raster.shape) == 2:
        return raster.array[..., None]
    if raster.shape[2] == 3 and raster.strides[1] == 4:
        order = options.get("channels", "RGB")
        if isinstance(order, str) and order in ORDERS:
            check_order(order, 3, "frames")
        raster = raster._replace(shape=(*raster.shape[:2], 4))
        options["channels"] = {"RGB": "RGBA", "BGR": "BGRA"}.get(order, order)
    return raster.array


def frame_view(frame: Any) -> ArrayView:
    """A frame, several in one array, or one of video.

    Raises
    ------
    InputError
        For a list of frames, and as `view` or `video_view`.
    """
    if isinstance(frame, Planes):
        return video_view(frame)
    if isinstance(frame, (list, tuple)):
        raise InputError(
            f"frame is {shown_type(frame)} of {len(frame)}; stack frames of one size to an array (F, H, W, C) "
            "(numpy.stack, torch.stack) and give frame_index, or make one call for each"
        )
    return view(frame, "frame")


def frame_spec(frame: ArrayView, order: str = "RGB") -> FrameSpec:
    """What a frame is, after checking it.

    Raises
    ------
    InputError
        Unless it is (H, W, C), or several (F, H, W, C), of uint8, uint16 or float32, the values of a row side by side,
        and has the channels of `order`.
    """
    if isinstance(frame, VideoView):
        if order != "RGB":
            raise InputError(
                f'channels="{order}" is for frames whose pixels have channels, found {frame.coding.kind.upper()}; '
                "leave it out"
            )
        return FrameSpec(frame.coding.kind, 3, False)
    if len(frame.shape) not in (3, 4) or frame.shape[-1] > MAX_CHANNELS or _channels_first(frame.shape):
        raise InputError(_describe_shape(frame))
    if not of_dtype(frame, DTYPES):
        remedy = "frame.float()" if frame.family == "torch" else f"frame.astype({_library(frame)}.float32)"
        raise InputError(
            f"frame must be uint8, uint16 or float32 in the machine's byte order, found {frame.dtype}; "
            f"convert it first, for instance with {remedy}"
        )
    if 0 in frame.shape or max(frame.shape) > MAX_SIDE:
        raise InputError(f"frame sides must lie between 1 and {MAX_SIDE} pixels, found {frame.shape}")
    item = frame.dtype.itemsize
    *between, pitch, along, channel = frame.strides  # `between` frames, if there are several
    packed = (channel == item or frame.shape[-1] == 1) and along == item * frame.shape[-1]
    if not packed or any(step < 0 or step % item for step in (*between, pitch)):
        raise InputError(_describe_strides(frame))
    if pitch // item > INT32_MAX:
        raise InputError(f"a frame row of {pitch} bytes is too long for 32-bit arithmetic")
    channels = check_order(order, frame.shape[-1], "frames")
    return FrameSpec(dtype_name(frame.dtype), channels, len(frame.shape) == 4, order)


def made_channels(frame: ArrayView, order: Any) -> int:
    """Channels of the result, of a frame and an order that may not have been checked."""
    if isinstance(frame, VideoView) or (isinstance(order, str) and order in ORDERS[1:]):
        return 3
    return frame.shape[-1] if frame.shape else 0


def _channels_first(shape: tuple[int, ...]) -> bool:
    """Whether a small frame looks like (C, H, W): real ones of so few rows, yet wide and of many channels, are rare."""
    return shape[-3] in IMAGE_CHANNELS and shape[-2] >= LOOKS_WIDE and shape[-1] > max(IMAGE_CHANNELS)


def _describe_shape(frame: ArrayView) -> str:
    found, torch = frame.shape, frame.family == "torch"
    if len(found) in (3, 4) and found[-3] in IMAGE_CHANNELS:
        order = "1, 2, 0" if len(found) == 3 else "0, 2, 3, 1"
        remedy = (
            f"frame.permute({order}).contiguous()"
            if torch
            else f"{_library(frame)}.ascontiguousarray(frame.transpose({order}))"
        )
        rare = f". If it has {found[-3]} rows, add some below" if found[-1] <= MAX_CHANNELS else ""
        return f"the channels of a frame come last, found them first in shape {found}; pass {remedy}{rare}"
    grey = "; a grey image is frame[..., None]" if len(found) == 2 else ""
    return (
        "frame must have shape (H, W, C), or (F, H, W, C) for several frames, with C from 1 to "
        f"{MAX_CHANNELS}, found {found}{grey}"
    )


def _describe_strides(frame: ArrayView) -> str:
    copy = "frame.contiguous()" if frame.family == "torch" else f"{_library(frame)}.ascontiguousarray(frame)"
    why = " (its channels run backwards, as in frame[..., ::-1])" if frame.strides[-1] < 0 else ""
    return (
        f"the pixels of a frame row must lie next to each other, found strides {frame.strides} bytes{why}; "
        f"pass a contiguous copy: {copy}"
    )


def _library(frame: ArrayView) -> str:
    """Whose `ascontiguousarray` to name."""
    return "cupy" if frame.family == "cupy" else "numpy"
