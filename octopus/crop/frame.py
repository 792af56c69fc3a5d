"""Frames: arrays of pixels, one or several, and what video decoders give, luma and chroma at half its sides."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from sys import modules
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np

from octopus.arrays.checks import INT32_MAX, MAX_CHANNELS, MAX_SIDE, ORDERS, channels_first, check_order, of_dtype
from octopus.arrays.results import host_memory
from octopus.arrays.views import ArrayView, c_strides, dtype_name, view
from octopus.errors import InputError, shown, shown_type

DTYPES = ("uint8", "uint16", "float32")
IMAGE_CHANNELS = (1, 3, 4)  # a first axis of so many may be channels, too, where the last one may be
LOOKS_WIDE = 8  # pixels of a row

# Shares of red and blue in the luma: ITU-R BT.601-7 (2.5.1), BT.709-6 (3.2), BT.2020-2 (table 4, non-constant).
LUMA_SHARES = {"bt601": (0.299, 0.114), "bt709": (0.2126, 0.0722), "bt2020": (0.2627, 0.0593)}
RANGES = ("limited", "full")
VIDEO_DTYPES = {"nv12": "uint8", "p010": "uint16"}
TOP = 255.0  # of the result's values
MOST_VALUES = 2**32  # from a plane's first to its last: `kernels.cuda.rows` counts them in 32 bits

Matrix: TypeAlias = Literal["bt601", "bt709", "bt2020"]
Range: TypeAlias = Literal["limited", "full"]


class Coding(NamedTuple):
    """What the numbers of a frame of video mean: "nv12" or "p010", matrix and range as of `NV12`."""

    kind: str
    matrix: str
    range: str

    @property
    def coefficients(self) -> np.ndarray:
        """Eight float32 that make red, green and blue, 0 to 255 before they are clamped, of stored values y, u and v.
        They are yg, rv, r0, gu, gv, g0, bu, b0 of `r = yg*y + rv*v + r0`, `g = yg*y + gu*u + gv*v + g0` and `b = yg*y +
        bu*u + b0`; the same read-only object for equal codings, whose address launches hold."""
        return _coefficients(self)


@lru_cache(maxsize=16)
def _coefficients(coding: Coding) -> np.ndarray:
    """From ITU-R BT.601-7, BT.709-6 and BT.2020-2: R = Y + 2 (1 - KR) CR, B = Y + 2 (1 - KB) CB, Y is the sum of
    all by their shares; quantised as there (limited), or over all numbers, as ITU-T H.273 has it (full)."""
    red, blue = LUMA_SHARES[coding.matrix]
    green = 1 - red - blue
    bits, unit = (10, 64) if coding.kind == "p010" else (8, 1)
    level = 2 ** (bits - 8)
    span = 2**bits - 1
    black, luma, chroma = (16 * level, 219 * level, 224 * level) if coding.range == "limited" else (0, span, span)
    gain, colour = TOP / (luma * unit), TOP / (chroma * unit)
    base, neutral = -gain * black * unit, 128 * level * unit
    rv, bu = 2 * (1 - red) * colour, 2 * (1 - blue) * colour
    gv, gu = -rv * red / green, -bu * blue / green
    values = (gain, rv, base - rv * neutral, gu, gv, base - (gu + gv) * neutral, bu, base - bu * neutral)
    found = np.array(values, np.float32)
    found.flags.writeable = False
    return found


@dataclass(slots=True)
class VideoView(ArrayView):
    """A frame of video. The view itself is of the luma, with the shape (H, W, 3) of the frame that it stands for.
    `chroma` is (H/2, W/2, 2) on the same side, of the same dtype; its strides are (pitch, 2 values, 1 value)."""

    chroma: ArrayView = field(kw_only=True)
    coding: Coding = field(kw_only=True)

    @property
    def layout(self) -> tuple[Any, ...]:
        return self.shape, self.strides, self.dtype, self.device, self.chroma.layout, self.coding

    @property
    def unowned(self) -> VideoView:
        return replace(self, owner=None, chroma=self.chroma.unowned)

    @property
    def planes(self) -> tuple[ArrayView, ...]:
        return self, self.chroma

    @property
    def nbytes(self) -> int:
        height, width, _ = self.shape
        return height * width * self.dtype.itemsize + self.chroma.nbytes

    def packed_at(self, pointer: int) -> VideoView:
        """Contiguous copies on the GPU, the chroma right behind the luma."""
        height, width, _ = self.shape
        item = self.dtype.itemsize
        chroma = self.chroma.packed_at(pointer + height * width * item)
        return replace(self, pointer=pointer, strides=(width * item, item, 0), device="cuda", chroma=chroma)


class Planes:
    kind: ClassVar[str]

    def __init__(self, y: Any, uv: Any, *, matrix: Matrix | None = None, range: Range | None = None) -> None:
        for name, value, allowed, cost in (("matrix", matrix, LUMA_SHARES, 40), ("range", range, RANGES, 20)):
            if not isinstance(value, str) or value not in allowed:
                raise InputError(
                    f"{name}={shown(value)} is unknown; use one of {', '.join(allowed)}, as the video's metadata say: "
                    f"there is no default, since a wrong {name} shifts colours by up to {cost} levels"
                )
        self.y, self.uv, self.coding = y, uv, Coding(self.kind, str(matrix), str(range))
        video_view(self)

    def __repr__(self) -> str:
        height, width, _ = video_view(self).shape  # a decoder's planes may have no shape to ask for
        return f"{type(self).__name__}({width}x{height}, {self.coding.matrix}, {self.coding.range})"


class NV12(Planes):
    """A frame of video in 8 bits, to stand in the place of `frame` in `crop_resize`, `CropPlan` and its runs.

    A pixel takes the chroma of its group of 2x2, as OpenCV's `cvtColor` does. Red, green and blue are computed in
    float32, clamped to 0 to 255 and not rounded; what is then done with them is as for any frame of three channels.

    Parameters
    ----------
    y : array, (H, W) or (H, W, 1), uint8
        Luma; H and W are even. NumPy, torch, CuPy or any array that `crop_resize` takes; not copied, but where the GPU
        works and it lies on the host. Rows may be further apart than their length.
    uv : array, (H/2, W) or (H/2, W/2, 2), uint8
        Chroma, u (Cb) and v (Cr) in turns; on the side of `y`, with a pitch of its own.
    matrix : {"bt601", "bt709", "bt2020"}
        How red, green and blue were mixed, as the video's metadata say; BT.2020 with non-constant luminance.
    range : {"limited", "full"}
        Whether black and white are 16 and 235 or 0 and 255.

    Raises
    ------
    InputError
        For planes that don't fit each other, or an unknown `matrix` or `range`.

    Examples
    --------
    >>> import numpy as np
    >>> import octopus
    >>> decoded = np.full((1080 * 3 // 2, 1920), 128, np.uint8)
    >>> frame = octopus.NV12(decoded[:1080], decoded[1080:], matrix="bt709", range="limited")
    >>> octopus.crop_resize(frame, [[10, 20, 60, 90]], (2, 2), dtype="uint8", device="cpu").ravel().tolist()
    [130, 130, 130, 130, 130, 130, 130, 130, 130, 130, 130, 130]
    """

    kind = "nv12"


class P010(Planes):
    """The same for 10 bits, in the upper bits of uint16; results are on the scale of 8 bits, 0 to 255, with fractions.

    Limited range is 64 to 940 times 64, full range 0 to 1023 times 64; bits below count as fractions. Parameters and
    errors are those of `NV12`, the planes of uint16.
    """

    kind = "p010"


def video_view(frame: Planes) -> VideoView:
    y, uv = view(frame.y, "frame.y"), view(frame.uv, "frame.uv")
    kind, dtype = frame.kind.upper(), VIDEO_DTYPES[frame.kind]
    for plane, name in ((y, "y"), (uv, "uv")):
        if not of_dtype(plane, (dtype,)):
            raise InputError(f"{name} of {kind} must be {dtype} in the machine's byte order, found {plane.dtype}")
    if y.shape[2:] == (1,):
        y = replace(y, shape=y.shape[:2], strides=y.strides[:2])
    if len(y.shape) != 2 or 0 in y.shape or y.shape[0] % 2 or y.shape[1] % 2 or max(y.shape) > MAX_SIDE:
        raise InputError(
            f"y of {kind} must have shape (H, W), even sides from 2 to {MAX_SIDE}, found {y.shape}; of a video with "
            "odd sides the decoder's planes are one larger, pass these"
        )
    height, width = y.shape
    half = height // 2, width // 2, 2
    if uv.shape not in (half, (height // 2, width)):
        raise InputError(
            f"uv of {kind} must have shape {(height // 2, width)} or {half} for y of shape {y.shape}, found {uv.shape}"
        )
    if y.device != uv.device:
        raise InputError(f"y is on {y.device} and uv on {uv.device}; bring both to one side")
    item, pitch, pitch_uv = y.dtype.itemsize, _pitch(y, "y", width), _pitch(uv, "uv", width)
    if uv.device == "cuda" and (uv.pointer | pitch_uv) % (2 * item):
        raise InputError(
            f"the pairs of uv on the GPU must lie at multiples of {2 * item} bytes, found the address {uv.pointer} and "
            f"rows {pitch_uv} bytes apart; pass a contiguous copy"
        )
    return VideoView(
        y.pointer, (height, width, 3), (pitch, item, 0), y.dtype, y.device, y.family, y.owner, y.ordinal, y.after,
        chroma=replace(uv, shape=half, strides=(pitch_uv, 2 * item, item)), coding=frame.coding,
    )  # fmt: skip


def _pitch(plane: ArrayView, name: str, width: int) -> int:
    """Bytes from row to row, of `width` values each, after checks; an axis of length 1 may say anything."""
    item, (rows, *along) = plane.dtype.itemsize, plane.shape
    pitch = plane.strides[0] if rows > 1 else width * item
    packed = c_strides(tuple(along), plane.dtype)
    steps = zip(along, plane.strides[1:], packed, strict=True)
    apart = any(side > 1 and found != right for side, found, right in steps)
    if apart or pitch < width * item or pitch % item or pitch // item > INT32_MAX:
        raise InputError(
            f"the values of a row of {name} must lie next to each other, and its rows one below the other, found "
            f"strides {plane.strides} bytes; pass a contiguous copy"
        )
    if rows * (pitch // item) > MOST_VALUES:
        raise InputError(
            f"{name} has {rows} rows {pitch} bytes apart, more than 32 bits count; pass a part of the frame, or a copy "
            "whose rows lie closer"
        )
    return pitch


class FrameSpec(NamedTuple):
    """All that a kernel is compiled for of a frame, whatever its size."""

    dtype: str  # of `DTYPES` or `VIDEO_DTYPES`
    channels: int  # of the result
    indexed: bool  # whether there are several frames, one of which every box names
    order: str = "RGB"  # how the channels are stored; "RGB" for any number of them, as they are

    @property
    def stored(self) -> int:
        """Channels that lie in the frame: a fourth one that is left out, too."""
        return self.channels if self.order == "RGB" else len(self.order)

    @property
    def name(self) -> str:
        order = "" if self.order == "RGB" else f"-{self.order.lower()}"
        return f"{self.dtype}x{self.channels}{order}"


def pillow_frame(frame: Any, options: dict[str, Any]) -> Any:
    """A frame that may be an image of Pillow as an array; of RGB in four bytes `channels` in the options is changed."""
    if isinstance(frame, Planes) or "PIL" not in modules:
        return frame
    from octopus.arrays.pillow import is_pillow, rasters

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
    if isinstance(frame, Planes):
        return video_view(frame)
    if isinstance(frame, (list, tuple)):
        raise InputError(
            f"frame is {shown_type(frame)} of {len(frame)}; stack frames of one size to an array (F, H, W, C) "
            "(numpy.stack, torch.stack) and give frame_index, or make one call for each"
        )
    return view(frame, "frame")


def upright(frame: ArrayView, copied: bool = True) -> ArrayView:
    """A frame as kernels read it: a grey one (H, W) has an axis of channels, and on the host its rows have no gaps.

    There one whose channels come first, or whose pixels lie apart, is copied, or unless `copied` described as its copy:
    1 ms for 720p, a fifth of what the copy takes by pixels.
    """
    if isinstance(frame, VideoView) or len(frame.shape) not in (2, 3, 4):
        return frame
    if len(frame.shape) == 2:
        frame = replace(frame, shape=(*frame.shape, 1), strides=(*frame.strides, frame.dtype.itemsize))
    first, shape = channels_first(frame.shape), frame.shape
    if first:
        shape = (*shape[:-3], *shape[-2:], shape[-3])
    good = of_dtype(frame, DTYPES) and 0 not in shape and max(shape) <= MAX_SIDE and shape[-1] <= MAX_CHANNELS
    if frame.device != "cpu" or not good or (not first and _is_packed(frame)):
        return frame  # what is wrong is for `frame_spec` to say
    if not copied:
        return replace(frame, shape=shape, strides=c_strides(shape, frame.dtype))
    made, source = host_memory(shape, frame.dtype), frame.numpy()
    source = np.moveaxis(source, -3, -1) if first else source.reshape(shape)
    for channel in range(shape[-1]):  # NumPy copies pixel by pixel otherwise
        made[..., channel] = source[..., channel]
    return replace(view(made, "frame"), family=frame.family)


def _is_packed(frame: ArrayView) -> bool:
    """Whether the pixels of each row lie side by side, and rows one below the other."""
    item = frame.dtype.itemsize
    *between, along, channel = frame.strides  # from row to row, and from frame to frame, if there are several
    packed = (channel == item or frame.shape[-1] == 1) and along == item * frame.shape[-1]
    return packed and not any(step < 0 or step % item for step in between)


def frame_spec(frame: ArrayView, order: str = "RGB") -> FrameSpec:
    """What a frame is, after checking it, its channels by their `order`."""
    if isinstance(frame, VideoView):
        if order != "RGB":
            raise InputError(
                f'channels="{order}" is for frames whose pixels have channels, found {frame.coding.kind.upper()}; '
                "leave it out"
            )
        return FrameSpec(frame.coding.kind, 3, False)
    if len(frame.shape) not in (3, 4) or frame.shape[-1] > MAX_CHANNELS or _looks_channels_first(frame.shape):
        raise InputError(_describe_shape(frame))
    if not of_dtype(frame, DTYPES):
        remedy = "frame.float()" if frame.family == "torch" else f"frame.astype({_library(frame)}.float32)"
        raise InputError(
            f"frame must be uint8, uint16 or float32 in the machine's byte order, found {frame.dtype}; "
            f"convert it first, for instance with {remedy}"
        )
    if 0 in frame.shape or max(frame.shape) > MAX_SIDE:
        raise InputError(f"frame sides must lie between 1 and {MAX_SIDE} pixels, found {frame.shape}")
    if not _is_packed(frame):
        copy = "frame.contiguous()" if frame.family == "torch" else f"{_library(frame)}.ascontiguousarray(frame)"
        bgr = ', or the array itself with channels="BGR"' if frame.strides[-1] < 0 else ""
        raise InputError(
            f"the pixels of a frame row must lie next to each other on the GPU, found strides {frame.strides} bytes; "
            f"pass a contiguous copy: {copy}{bgr}"
        )
    if frame.strides[-3] // frame.dtype.itemsize > INT32_MAX:
        raise InputError(f"a frame row of {frame.strides[-3]} bytes is too long for 32-bit arithmetic")
    channels = check_order(order, frame.shape[-1], "frames")
    return FrameSpec(dtype_name(frame.dtype), channels, len(frame.shape) == 4, order)


def made_channels(frame: ArrayView, order: Any) -> int:
    """Channels of the result, of a frame and an order that may not have been checked."""
    if isinstance(frame, VideoView) or (isinstance(order, str) and order in ORDERS[1:]):
        return 3
    return frame.shape[-1] if frame.shape else 0


def _looks_channels_first(shape: tuple[int, ...]) -> bool:
    """Real frames of so few rows, yet wide and of many channels, are rare."""
    return shape[-3] in IMAGE_CHANNELS and shape[-2] >= LOOKS_WIDE and shape[-1] > max(IMAGE_CHANNELS)


def _describe_shape(frame: ArrayView) -> str:
    found = frame.shape
    if len(found) in (3, 4) and (found[-3] in IMAGE_CHANNELS or channels_first(found)):
        order = "1, 2, 0" if len(found) == 3 else "0, 2, 3, 1"
        torch = frame.family == "torch"
        remedy = f"frame.{'permute' if torch else 'transpose'}({order})"
        if frame.device == "cuda":
            remedy = f"{remedy}.contiguous()" if torch else f"{_library(frame)}.ascontiguousarray({remedy})"
        rare = f". If it has {found[-3]} rows, add some below" if found[-1] <= MAX_CHANNELS else ""
        return f"the channels of a frame come last, found them first in shape {found}; pass {remedy}{rare}"
    return (
        "frame must have shape (H, W, C), or (F, H, W, C) for several frames, with C from 1 to "
        f"{MAX_CHANNELS}, or (H, W), found {found}"
    )


def _library(frame: ArrayView) -> str:
    return "cupy" if frame.family == "cupy" else "numpy"
