"""Boxes in the forms in which detectors and their tools hold them, and frames that are not one array."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np

from octopus.arrays import streams
from octopus.arrays.views import ArrayView, c_strides, family, view, view_of
from octopus.backends.cuda import stream_of
from octopus.errors import InputError, shown_type


def frame_view(frame: Any) -> ArrayView:
    """A frame, or several in one array.

    Raises
    ------
    InputError
        For a list of frames, and as `view`.
    """
    if isinstance(frame, (list, tuple)):
        raise InputError(
            f"frame is {shown_type(frame)} of {len(frame)}; stack frames of one size to an array (F, H, W, C) "
            "(numpy.stack, torch.stack) and give frame_index, or make one call for each"
        )
    return view(frame, "frame")


def boxes_view(boxes: Any) -> ArrayView:
    """Boxes of any form as an array; what is empty holds no boxes.

    Parameters
    ----------
    boxes : array (N, 4) or list, torchvision's `BoundingBoxes`, or an object that has such as `xyxy`
        `BoundingBoxes` are converted by their format, on their side; the others are x1, y1, x2, y2.

    Raises
    ------
    InputError
        For rotated `BoundingBoxes`, and as `view`.
    """
    if not isinstance(boxes, (np.ndarray, ArrayView, list, tuple)):
        if family(boxes) == "torch":
            layout = getattr(boxes, "format", None)
            if layout is not None:
                return _converted(boxes, str(getattr(layout, "value", layout)))
        else:
            boxes = getattr(boxes, "xyxy", boxes)
    found = view_of(boxes, "boxes")
    return _no_boxes(found) if found.shape == (0,) else found


def _no_boxes(found: ArrayView) -> ArrayView:
    if found.device == "cpu":
        return view(np.empty((0, 4), found.dtype), "boxes")
    return replace(found, shape=(0, 4), strides=c_strides((0, 4), found.dtype))


def _converted(boxes: Any, layout: str) -> ArrayView:
    """Torchvision's `BoundingBoxes` as x1, y1, x2, y2, known to be written on torch's current stream."""
    given, torch = view(boxes, "boxes"), sys.modules["torch"]
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
            f"boxes are BoundingBoxes of the format {layout}; only upright ones can be cut out: XYXY, XYWH, CXCYWH"
        )
    made = view(torch.cat(corners, -1), "boxes")
    if made.device == "cpu":
        return made
    return replace(made, after=int(stream_of(streams.current_stream(made)).handle))
