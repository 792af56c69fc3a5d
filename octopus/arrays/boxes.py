"""Boxes in the forms in which detectors and their tools hold them."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np

from octopus.arrays import streams
from octopus.arrays.views import ArrayView, c_strides, family, view, view_of
from octopus.backends.cuda import stream_of
from octopus.errors import InputError


def boxes_view(boxes: Any, name: str = "boxes") -> ArrayView:
    """Boxes of any form as an array; what is empty holds no boxes.

    Parameters
    ----------
    boxes : array (N, 4) or list, torchvision's `BoundingBoxes`, or an object that has such as `xyxy`
        `BoundingBoxes` are converted by their format, on their side; the others are x1, y1, x2, y2.
    name : str
        What the caller calls them, for the error.

    Raises
    ------
    InputError
        For rotated `BoundingBoxes`, and as `view`.
    """
    if not isinstance(boxes, (np.ndarray, list, tuple, ArrayView)):
        if family(boxes) != "torch":
            boxes = getattr(boxes, "xyxy", boxes)
        elif type(boxes) is not sys.modules["torch"].Tensor and (layout := box_format(boxes)):
            return _converted(boxes, layout, name)
    found = view_of(boxes, name)
    return _no_boxes(found) if found.shape == (0,) else found


def box_format(array: Any) -> str:
    """The format of torchvision's `BoundingBoxes`, such as XYWH; "" for anything else."""
    layout = getattr(array, "format", None)
    return "" if layout is None or family(array) != "torch" else str(getattr(layout, "value", layout))


def _no_boxes(found: ArrayView) -> ArrayView:
    if found.device == "cpu":
        return view(np.empty((0, 4), found.dtype), "boxes")
    return replace(found, shape=(0, 4), strides=c_strides((0, 4), found.dtype))


def _converted(boxes: Any, layout: str, name: str) -> ArrayView:
    """Torchvision's `BoundingBoxes` as x1, y1, x2, y2, known to be written on torch's current stream."""
    given, torch = view(boxes, name), sys.modules["torch"]
    if layout == "XYXY":
        return given
    tensor = boxes.as_subclass(torch.Tensor)
    first, sides = tensor[..., :2], tensor[..., 2:]
    if layout == "XYWH":
        corners = [first, first + sides]
    elif layout == "CXCYWH":
        corners = [first - sides / 2, first + sides / 2]
    else:
        raise InputError(
            f"{name} are BoundingBoxes of the format {layout}; only upright ones can be cut out: XYXY, XYWH, CXCYWH"
        )
    made = view(torch.cat(corners, -1), name)
    if made.device == "cpu":
        return made
    return replace(made, after=int(stream_of(streams.current_stream(made)).handle))
