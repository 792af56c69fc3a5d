"""The naive baselines of the study `total_cost` on the CPU: 3x3 means of uint8 images."""

from __future__ import annotations

import numba
import numpy as np

from octopus.kernels import pixelwise
from octopus_study.kernels.cpu import compiled

_column3 = compiled(inline="always")(pixelwise.column3)
_blur3 = compiled(inline="always")(pixelwise.blur3)
PART = 1 << 14


@compiled()
def _column(source, begin, row, column, width, height):
    x = max(0, min(column, width - 1))
    above, below = max(row - 1, 0), min(row + 1, height - 1)
    a, b = np.float32(source[begin + above * width + x]), np.float32(source[begin + row * width + x])
    return _column3(a, b, np.float32(source[begin + below * width + x]))


@compiled()
def _pixel(source, begin, row, column, width, height):
    left = _column(source, begin, row, column - 1, width, height)
    middle = _column(source, begin, row, column, width, height)
    right = _column(source, begin, row, column + 1, width, height)
    return np.uint8(np.rint(_blur3(left, middle, right)))


@compiled(parallel=True)
def image_per_thread(source, out, offsets, widths, heights):
    """Every thread takes whole images, one after the other, pixel by pixel."""
    for item in numba.prange(offsets.size - 1):
        begin, width, height = offsets[item], widths[item], heights[item]
        for row in range(height):
            for column in range(width):
                out[begin + row * width + column] = _pixel(source, begin, row, column, width, height)


@compiled(parallel=True)
def linear_search(source, out, offsets, widths, heights):
    """Every pixel goes through the offsets from the first on."""
    total = source.size
    for part in numba.prange((total + PART - 1) // PART):
        for at in range(part * PART, min((part + 1) * PART, total)):
            item = 0
            while offsets[item + 1] <= at:
                item += 1
            begin, width = offsets[item], widths[item]
            row = (at - begin) // width
            out[at] = _pixel(source, begin, row, at - begin - row * width, width, heights[item])
