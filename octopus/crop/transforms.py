"""From positions in letterboxed items back to the frame."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from octopus.arrays.boxes import box_format
from octopus.arrays.checks import check_dense
from octopus.arrays.views import family
from octopus.errors import InputError, shown_type


def map_back(positions: Any, transform: Any) -> Any:
    """Positions in the items of a letterboxed batch, as positions in the frame.

    Parameters
    ----------
    positions : array, (N, ..., 2) or (N, ..., 4)
        Points `x, y`, or boxes `x1, y1, x2, y2`, in pixels of item 0 to N - 1, counted from the outer edge of the
        item's first pixel. NumPy, torch or CuPy, or a list; any integers or floats.
    transform : array, (N, 4)
        From `crop_resize(..., letterbox=True)` or `CropPlan.run`, of the same library and on the same side. For
        detections in one flat array, take the rows of their items: `transform[item]`.

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
    >>> crops, transform = octopus.crop_resize(frame, [[10, 20, 110, 70]], (64, 64), letterbox=True, device="cpu")
    >>> octopus.map_back([[[0, 16], [64, 48]]], transform).tolist()
    [[[10.0, 20.0], [110.0, 70.0]]]
    """
    positions = _listed(positions)
    _check(positions, transform)
    shape = tuple(positions.shape)
    pairs = positions.reshape(shape[0], math.prod(shape[1:]) // 2, 2)
    scale, shift = transform[:, None, :2], transform[:, None, 2:]
    return (pairs * scale + shift).reshape(shape)


def _listed(positions: Any) -> Any:
    if not isinstance(positions, (list, tuple)):
        return positions
    try:
        return np.asarray(positions)
    except (ValueError, TypeError, RuntimeError) as error:  # rows of different length, tensors on a GPU
        raise InputError(f"positions must be an array: {error}") from None


def _check(positions: Any, transform: Any) -> None:
    for name, array in (("positions", positions), ("transform", transform)):
        if family(array) not in ("numpy", "torch", "cupy"):
            raise InputError(
                f"{name} is {shown_type(array)}; pass a NumPy, torch or CuPy array (torch.as_tensor and "
                "cupy.asarray take device arrays without a copy)"
            )
        check_dense(array, name)
        if "int" not in str(array.dtype) and "float" not in str(array.dtype):
            raise InputError(f"{name} must be integers or floats, found {array.dtype}")
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
    found, rows = tuple(positions.shape), tuple(transform.shape)
    if len(rows) != 2 or rows[1] != 4:
        raise InputError(f"transform must have shape (N, 4), found {rows}")
    if len(found) < 2 or found[0] != rows[0] or found[-1] not in (2, 4):
        raise InputError(
            f"positions must have shape ({rows[0]}, ..., 2) or ({rows[0]}, ..., 4), one row per item, found {found}"
        )
