"""Affine maps of rotated boxes, and from positions in letterboxed items back to the frame."""

import math
import sys
from typing import Any

import numpy as np

from octopus.arrays.checks import box_format, check_dense, checked_size
from octopus.arrays.views import family
from octopus.crop.spec import Size
from octopus.errors import InputError, shown, shown_type


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
        Height and width of the result in pixels, or the side of a square; as `crop_resize` will be given:
        another size there shows a part of the box, or what lies beside it.

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
    boxes = _checked(_listed(boxes, "boxes"), "boxes")
    if tuple(boxes.shape) == (0,):
        boxes = boxes.reshape(0, 5)
    shape = tuple(boxes.shape)
    if len(shape) != 2 or shape[1] != 5:
        raise InputError(
            f"boxes must have shape (N, 5), centre_x, centre_y, width, height and angle in degrees, found {shape}"
        )
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


def map_back(positions: Any, transform: Any, size: Any = None) -> Any:
    """Positions in the items of a batch, as positions in the frame: of letterboxed ones, affine maps or quadrilaterals.

    Parameters
    ----------
    positions : array, (N, ..., 2) or (N, ..., 4)
        Points `x, y`, or boxes `x1, y1, x2, y2`, in pixels of item 0 to N - 1, counted from the outer edge of the
        item's first pixel. NumPy, torch or CuPy, or a list; any integers or floats. Boxes go with (N, 4) alone: others
        turn them.
    transform : array, (N, 4), (N, 2, 3) or (N, 4, 2)
        From `crop_resize` or a plan with `return_transform=True`, of the same library and on the same side; or the
        affine maps, or the quadrilaterals, that were cut out. For detections in one flat array, take the rows of their
        items: `transform[item]`.
    size : (int, int), or array (N, 2) on the host
        Of quadrilaterals, height and width of the items, or of each.

    Returns
    -------
    array, of the shape of `positions`
        In pixels of the frame, floating point, on the same side. Nothing is clipped: what lies on the padding lands
        outside its box. Torch's gradients pass.

    Raises
    ------
    InputError
        For a wrong shape or dtype, or arrays of two libraries or devices.

    Examples
    --------
    >>> import numpy as np
    >>> import octopus
    >>> frame = np.zeros((100, 200, 3), np.uint8)
    >>> options = {"letterbox": True, "return_transform": True, "device": "cpu"}
    >>> crops, transform = octopus.crop_resize(frame, [[10, 20, 110, 70]], (64, 64), **options)
    >>> octopus.map_back([[[0, 16], [64, 48]]], transform).tolist()
    [[[10.0, 20.0], [110.0, 70.0]]]
    """
    positions = _checked(_listed(positions, "positions"), "positions")
    transform = _checked(transform, "transform")
    if box_format(positions) not in ("", "XYXY"):
        raise InputError(
            f"positions are BoundingBoxes of the format {box_format(positions)}; convert them to XYXY first, with "
            "torchvision.transforms.v2.ConvertBoundingBoxFormat"
        )
    if family(positions) != family(transform):
        raise InputError(
            f"positions come from {family(positions)}, the transform from {family(transform)}; convert one of them"
        )
    sides = [str(getattr(array, "device", "cpu")) for array in (positions, transform)]
    if sides[0] != sides[1]:
        raise InputError(f"positions lie on {sides[0]}, the transform on {sides[1]}; bring both to one side")
    shape, rows = tuple(positions.shape), tuple(transform.shape)
    if rows[1:] not in ((4,), (2, 3), (4, 2)):
        raise InputError(
            f"transform must have shape (N, 4), of affine maps (N, 2, 3) or of quadrilaterals (N, 4, 2), found {rows}"
        )
    if (size is not None) != (rows[1:] == (4, 2)):
        raise InputError(f"size goes with quadrilaterals (N, 4, 2), which need it; found {shown(size)} and {rows}")
    if len(rows) == 3 and shape[-1] != 2:
        raise InputError(f"affine maps and quadrilaterals take points (N, ..., 2), found {shape}; pass a box's corners")
    if len(shape) < 2 or shape[0] != rows[0] or shape[-1] not in (2, 4):
        raise InputError(
            f"positions must have shape ({rows[0]}, ..., 2) or ({rows[0]}, ..., 4), one row per item, found {shape}"
            + "; leave out what follows the corners: positions[..., :4]" * (shape[-1] > 4)
        )
    pairs = positions.reshape(shape[0], math.prod(shape[1:]) // 2, 2)
    if rows[1:] == (4,):
        return (pairs * transform[:, None, :2] + transform[:, None, 2:]).reshape(shape)
    x, y = pairs[..., 0, None], pairs[..., 1, None]
    if rows[1:] == (2, 3):
        a, b, c = (transform[:, None, :, i] for i in range(3))
        return (a * (x - 0.5) + b * (y - 0.5) + c + 0.5).reshape(shape)
    library = sys.modules[family(transform)]
    lengths = np.array(checked_size(size) if np.ndim(size) < 2 else size, np.float64)
    if lengths.shape not in ((2,), (rows[0], 2)):
        raise InputError(f"size must be (height, width) or an array ({rows[0]}, 2), found {shown(size)}")
    lengths = np.broadcast_to(lengths, (rows[0], 2)).copy()
    height, width = (
        library.as_tensor(lengths, device=transform.device)
        if family(transform) == "torch"
        else library.asarray(lengths)
    ).T[:, :, None, None]
    corners = transform.to(library.float64) if family(transform) == "torch" else transform.astype("float64")
    across, down = x / width, y / height
    # As `kernels.geometry.quad_map`, of points x, y in the last axis.
    p0, p1, p2, p3 = (corners[:, None, i] for i in range(4))
    u, v, s = p1 - p2, p3 - p2, p0 - p1 + p2 - p3
    area = u[..., :1] * v[..., 1:] - v[..., :1] * u[..., 1:]
    g, h = ((e[..., :1] * f[..., 1:] - f[..., :1] * e[..., 1:]) / area for e, f in ((s, v), (u, s)))
    there = ((p1 - p0 + g * p1) * across + (p3 - p0 + h * p3) * down + p0) / (g * across + h * down + 1)
    return there.reshape(shape)


def _listed(value: Any, name: str) -> Any:
    if not isinstance(value, (list, tuple)):
        return value
    try:
        return np.asarray(value)
    except (ValueError, TypeError, RuntimeError) as error:  # rows of different length, tensors on a GPU
        raise InputError(f"{name} must be an array: {error}") from None


def _checked(array: Any, name: str) -> Any:
    """A dense array of numbers, on which its own library then works."""
    if family(array) not in ("numpy", "torch", "cupy"):
        or_list = "" if name == "transform" else ", or a list"
        raise InputError(
            f"{name} is {shown_type(array)}; pass a NumPy, torch or CuPy array{or_list}"
            " (torch.as_tensor and cupy.asarray take device arrays without a copy)"
        )
    check_dense(array, name)
    if "int" not in str(array.dtype) and "float" not in str(array.dtype):
        raise InputError(f"{name} must be integers or floats, found {array.dtype}")
    return array
