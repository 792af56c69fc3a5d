"""Boxes from the host, converted and checked in one pass: for a few of them the machine takes less than a microsecond,
and NumPy, a dozen calls, seven."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from octopus.kernels.cpu import compiled, pointer
from octopus.kernels.geometry import MAX_BOX_SIDE, MAX_COORDINATE

# Numbers of `crop.check.RULES`, and of the first `BOX_DTYPES` there
CLIP, ERROR = 0, 1
INT32, INT64, FLOAT64 = 0, 1, 3


@compiled
def _number(address, dtype):
    """The number of a dtype at an address, as float32."""
    if dtype == INT32:
        return np.float32(pointer(address, np.int32)[0])
    if dtype == INT64:
        return np.float32(pointer(address, np.int64)[0])
    if dtype == FLOAT64:
        return np.float32(pointer(address, np.float64)[0])
    return pointer(address, np.float32)[0]


def build_check() -> Callable[..., None]:
    """The kernel that converts and checks boxes; the rule is that of `crop.check`.

    `counter, blocks (1), address of the boxes, bytes from one to the next and between its numbers, number of their
    dtype, boxes, width and height of the frame, number of the rule, result (N, 4) float32, good`: the last argument
    becomes the number of good boxes. What is not a number fails every comparison.
    """
    most_side, farthest = np.float32(MAX_BOX_SIDE), np.float32(MAX_COORDINATE)

    def check(arguments):
        start, step, along, dtype, count = (
            arguments[2],
            arguments[3],
            arguments[4],
            arguments[5],
            arguments[6],
        )
        width, height, rule = np.float32(arguments[7]), np.float32(arguments[8]), arguments[9]
        result = pointer(arguments[10], np.float32)
        zero, good = np.float32(0.0), np.int64(0)
        for i in range(count):
            at = start + i * step
            x1, y1 = _number(at, dtype), _number(at + along, dtype)
            x2, y2 = _number(at + 2 * along, dtype), _number(at + 3 * along, dtype)
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
        arguments[11] = good

    return check
