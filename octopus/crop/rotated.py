"""Affine maps of rotated boxes."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from octopus.arrays.checks import check_dense, checked_size
from octopus.arrays.views import family
from octopus.crop.options import Size
from octopus.errors import InputError, shown_type


def rotated_boxes(boxes: Any, size: Size = (224, 224)) -> Any:
    """Affine maps that cut rotated boxes out of a frame, for `crop_resize(frame, maps, size)`.

    Inside the frame the crops are those of detectron2's `roi_align_rotated(aligned=True, sampling_ratio=1)`.

    Parameters
    ----------
    boxes : array, (N, 5)
        `centre_x, centre_y, width, height, angle`: pixels from the frame's upper left corner, and degrees
        counter-clockwise as seen, as detectron2's `RotatedBoxes` holds them. NumPy, torch or CuPy, or a list; any
        integers or floats. Angles of OpenCV's `minAreaRect` and of boxes that count clockwise take a minus.
    size : (int, int) or int
        Height and width of the result in pixels, or the side of a square; as `crop_resize` will be given.

    Returns
    -------
    array, (N, 2, 3), float32
        On the side of the boxes and of their library; worked out in float64. No value is read by the host: a box that
        is empty or not finite is not refused, and a width or height of 0 repeats one line of pixels.

    Raises
    ------
    InputError
        For a wrong shape, dtype or size.

    Examples
    --------
    >>> import numpy as np
    >>> import octopus
    >>> frame = np.zeros((100, 200, 3), np.uint8)
    >>> maps = octopus.rotated_boxes([[60, 50, 40, 20, 30]], (32, 64))
    >>> octopus.crop_resize(frame, maps, (32, 64), device="cpu").shape
    (1, 3, 32, 64)
    """
    height, width = checked_size(size)
    boxes = _checked(boxes)
    library = sys.modules[family(boxes)]
    numbers = boxes.to(library.float64) if family(boxes) == "torch" else boxes.astype("float64")
    x, y, across, down, angle = (numbers[:, i] for i in range(5))
    angle = library.deg2rad(angle)
    cosine, sine = library.cos(angle), library.sin(angle)
    step_x, step_y = across / width, down / height
    # Of the result's first pixel from the box's centre, along its sides.
    right, below = (step_x - across) / 2, (step_y - down) / 2
    rows = [
        cosine * step_x, sine * step_y, x - 0.5 + cosine * right + sine * below,
        -sine * step_x, cosine * step_y, y - 0.5 - sine * right + cosine * below,
    ]  # fmt: skip
    maps = library.stack(rows, -1).reshape(-1, 2, 3)
    return maps.to(library.float32) if family(boxes) == "torch" else maps.astype("float32")


def _checked(boxes: Any) -> Any:
    if isinstance(boxes, (list, tuple)):
        try:
            boxes = np.asarray(boxes)
        except (ValueError, TypeError, RuntimeError) as error:  # rows of different length, tensors on a GPU
            raise InputError(f"boxes must be an array: {error}") from None
        if boxes.shape == (0,):
            boxes = boxes.reshape(0, 5)
    if family(boxes) not in ("numpy", "torch", "cupy"):
        raise InputError(f"boxes are {shown_type(boxes)}; pass a NumPy, torch or CuPy array, or a list")
    check_dense(boxes, "boxes")
    shape = tuple(boxes.shape)
    if len(shape) != 2 or shape[1] != 5:
        raise InputError(
            f"boxes must have shape (N, 5), centre_x, centre_y, width, height and angle in degrees, found {shape}"
        )
    if "int" not in str(boxes.dtype) and "float" not in str(boxes.dtype):
        raise InputError(f"boxes must be integers or floats, found {boxes.dtype}")
    return boxes
