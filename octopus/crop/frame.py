"""What a frame is: its dtype and channels, and whether there are several."""

from __future__ import annotations

from typing import NamedTuple

from octopus.arrays.checks import INT32_MAX, MAX_SIDE, of_dtype
from octopus.arrays.views import ArrayView, dtype_name
from octopus.errors import InputError

DTYPES = ("uint8", "uint16")
CHANNELS = (1, 3, 4)


class FrameSpec(NamedTuple):
    """All that a kernel is compiled for of a frame, whatever its size.

    Attributes
    ----------
    dtype : {"uint8", "uint16"}
    channels : int
    indexed : bool
        Whether there are several frames, one of which every box names.
    """

    dtype: str
    channels: int
    indexed: bool


def frame_spec(frame: ArrayView) -> FrameSpec:
    """What a frame is, after checking it.

    Raises
    ------
    InputError
        Unless it is (H, W, C), or several (F, H, W, C), of uint8 or uint16, the values of a row side by side.
    """
    if len(frame.shape) not in (3, 4) or frame.shape[-1] not in CHANNELS:
        raise InputError(
            "frame must have shape (H, W, C), or (F, H, W, C) for several frames, with C = 1, 3 or 4, "
            f"found {frame.shape}; a grey image is frame[..., None]"
        )
    if not of_dtype(frame, DTYPES):
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
    return FrameSpec(dtype_name(frame.dtype), frame.shape[-1], len(frame.shape) == 4)
