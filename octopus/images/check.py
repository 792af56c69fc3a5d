"""What the images of a call are checked for, all at once; only an error looks for the first that is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus.arrays.checks import INT32_MAX, MAX_SIDE, of_dtype
from octopus.arrays.views import ArrayView
from octopus.errors import InputError

Columns = NDArray[np.int64]

DTYPES = ("uint8", "uint16", "float32")
CHANNELS = (1, 3, 4)


def check_dtype(model: ArrayView) -> None:
    """Images are of a few dtypes."""
    if not of_dtype(model, DTYPES):
        raise InputError(
            f"images must be uint8, uint16 or float32 in the machine's byte order, found {model.dtype}; convert them"
        )


def may_be_channels(sides: Columns) -> Any:
    """Which sides are such as the channels of an image."""
    return (sides == 3) | (sides == 1) | (sides == 4)


def check_images(
    given: Columns, shapes: Columns, steps: Columns, pointers: Columns, item: int, dense: bool = False
) -> int:
    """The number of channels, after checking all images.

    Parameters
    ----------
    given : ndarray, (N, 3), int64
        Shapes as the caller has them.
    shapes, steps : ndarray, (N, 3), int64
        Rows, columns, channels, and the bytes from one to the next.
    pointers : ndarray, (N,), int64
    item : int
        Bytes of a value.
    dense : bool
        Whether the images are known to be contiguous, whose steps are good if their sides are.

    Raises
    ------
    InputError
        Names the first image that is wrong.
    """
    channels = int(shapes[0, 2])
    good = (
        channels in CHANNELS
        and not np.count_nonzero(shapes[:, 2] != channels)
        and np.minimum.reduce(given, None) > 0
        and np.maximum.reduce(given, None) <= MAX_SIDE
        and (dense or np.abs(steps[:, :2]).max() <= INT32_MAX)
        and (item == 1 or not ((pointers % item).any() or (not dense and (steps % item).any())))
    )
    if not good:
        raise InputError(_describe(given, shapes, steps, pointers, item))
    return channels


def _describe(given: Columns, shapes: Columns, steps: Columns, pointers: Columns, item: int) -> str:
    """What is wrong with the first image that is."""
    channels, sides = shapes[0, 2], shapes[:, :2]
    odd = (pointers % item != 0) | (steps % item != 0).any(axis=1)
    words: tuple[tuple[Any, Callable[[int], str]], ...] = (
        (
            (sides < 1).any(axis=1) | (sides > MAX_SIDE).any(axis=1),
            lambda i: f"sides must lie between 1 and {MAX_SIDE} pixels",
        ),
        (
            ~may_be_channels(shapes[:, 2]),
            lambda i: 'channels must be 1, 3 or 4, last or first; source="HWC" or "CHW" says where they are',
        ),
        (
            shapes[:, 2] != channels,
            lambda i: (
                f"it has {shapes[i, 2]} channels and image 0 has {channels}; make them alike, those of Pillow by "
                'image.convert("RGB"), or say by source= where channels are'
            ),
        ),
        (
            (np.abs(steps[:, :2]) > INT32_MAX).any(axis=1),
            lambda i: "its rows or pixels lie too far apart; pass a contiguous copy",
        ),
        (odd, lambda i: f"its values don't lie at multiples of {item} bytes; pass a contiguous copy"),
    )
    number = int(np.argmax(np.logical_or.reduce([wrong for wrong, _ in words])))
    why = next(say for wrong, say in words if wrong[number])
    return f"image {number} of shape {tuple(given[number].tolist())}: {why(number)}"
