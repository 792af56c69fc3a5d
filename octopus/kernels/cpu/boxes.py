"""Boxes from the host, converted and checked in one pass: for a few of them the machine takes less than a microsecond,
and NumPy, a dozen calls, seven."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from octopus.kernels.cpu import pointer
from octopus.kernels.geometry import MAX_BOX_SIDE, MAX_COORDINATE

CLIP, ERROR = 0, 1  # numbers of `crop.check.RULES`


def build_check(dtype: Any) -> Callable[..., None]:
    """The kernel for boxes of a dtype of NumPy; the rule is that of `crop.check`.

    `counter, blocks (1), address of the boxes, bytes from one to the next and between its numbers, boxes, width and
    height of the frame, number of the rule, result (N, 4) float32, good`: the last argument becomes the number of good
    boxes. What is not a number fails every comparison.
    """
    most_side, farthest = np.float32(MAX_BOX_SIDE), np.float32(MAX_COORDINATE)

    def check(arguments):
        start, step, along, count = arguments[2], arguments[3], arguments[4], arguments[5]
        width, height, rule = np.float32(arguments[6]), np.float32(arguments[7]), arguments[8]
        result = pointer(arguments[9], np.float32)
        zero, good = np.float32(0.0), np.int64(0)
        for i in range(count):
            at = start + i * step
            x1 = np.float32(pointer(at, dtype)[0])
            y1 = np.float32(pointer(at + along, dtype)[0])
            x2 = np.float32(pointer(at + 2 * along, dtype)[0])
            y2 = np.float32(pointer(at + 3 * along, dtype)[0])
            result[4 * i], result[4 * i + 1], result[4 * i + 2], result[4 * i + 3] = x1, y1, x2, y2
            fits = x1 < x2 and y1 < y2 and min(x1, y1) > -np.inf and max(x2, y2) < np.inf
            if rule == CLIP:
                fits = fits and x1 < width and y1 < height and x2 > zero and y2 > zero
            elif rule == ERROR:
                fits = fits and x1 >= zero and y1 >= zero and x2 <= width and y2 <= height
            else:
                fits = fits and min(x1, y1) >= -farthest and max(x2, y2) <= farthest
            if rule == CLIP:
                x1, y1, x2, y2 = max(x1, zero), max(y1, zero), min(x2, width), min(y2, height)
            good += fits and max(x2 - x1, y2 - y1) <= most_side
        arguments[10] = good

    return check
