"""Operations that read a pixel's neighbours within its image, one pixel or four neighbours of a row at a time.

Beyond the border the nearest pixel counts. Four neighbours share the sums of their columns: a 3x3 mean takes 18 loads
instead of 36, the 5x5 operation 40 instead of 100. `source` is the flat batch, `begin` the image's first element.
"""

from __future__ import annotations

import numpy as np

from octopus.backends.cuda.language import device
from octopus.kernels import pixelwise

_column3 = device(pixelwise.column3)
_blur3 = device(pixelwise.blur3)
_column5 = device(pixelwise.column5)
_smooth = device(pixelwise.smooth)
_blur5_sobel = device(pixelwise.blur5_sobel)


@device
def _inside(at, side):
    return max(np.int32(0), min(at, np.int32(side - np.int32(1))))


@device
def _row(begin, row, width, height):
    return begin + np.int64(_inside(row, height)) * width


@device
def _sum3(source, above, here, below, column, width):
    x = _inside(column, width)
    return _column3(np.float32(source[above + x]), np.float32(source[here + x]), np.float32(source[below + x]))


@device
def _blur3_four(source, begin, row, column, width, height):
    above = _row(begin, np.int32(row - np.int32(1)), width, height)
    here = begin + np.int64(row) * width
    below = _row(begin, np.int32(row + np.int32(1)), width, height)
    a = _sum3(source, above, here, below, np.int32(column - np.int32(1)), width)
    b = _sum3(source, above, here, below, column, width)
    c = _sum3(source, above, here, below, np.int32(column + np.int32(1)), width)
    d = _sum3(source, above, here, below, np.int32(column + np.int32(2)), width)
    e = _sum3(source, above, here, below, np.int32(column + np.int32(3)), width)
    f = _sum3(source, above, here, below, np.int32(column + np.int32(4)), width)
    return _blur3(a, b, c), _blur3(b, c, d), _blur3(c, d, e), _blur3(d, e, f)


@device
def _blur3_one(source, begin, row, column, width, height):
    above = _row(begin, np.int32(row - np.int32(1)), width, height)
    here = begin + np.int64(row) * width
    below = _row(begin, np.int32(row + np.int32(1)), width, height)
    a = _sum3(source, above, here, below, np.int32(column - np.int32(1)), width)
    b = _sum3(source, above, here, below, column, width)
    c = _sum3(source, above, here, below, np.int32(column + np.int32(1)), width)
    return _blur3(a, b, c)


@device
def _sums5(source, r0, r1, r2, r3, r4, column, width):
    """Of a column of five: their sum, the middle three smoothed, and the step across them."""
    x = _inside(column, width)
    b, c, d = np.float32(source[r1 + x]), np.float32(source[r2 + x]), np.float32(source[r3 + x])
    whole = _column5(np.float32(source[r0 + x]), b, c, d, np.float32(source[r4 + x]))
    return whole, _smooth(b, c, d), d - b


@device
def _rows5(begin, row, width, height):
    r0 = _row(begin, np.int32(row - np.int32(2)), width, height)
    r1 = _row(begin, np.int32(row - np.int32(1)), width, height)
    r2 = begin + np.int64(row) * width
    r3 = _row(begin, np.int32(row + np.int32(1)), width, height)
    r4 = _row(begin, np.int32(row + np.int32(2)), width, height)
    return r0, r1, r2, r3, r4


@device
def _combine(a, b, c, d, e):
    """The operation at the third of five columns, each as `_sums5` gives it."""
    return _blur5_sobel(a[0], b[0], c[0], d[0], e[0], b[1], d[1], b[2], c[2], d[2])


@device
def _blur5_sobel_four(source, begin, row, column, width, height):
    r0, r1, r2, r3, r4 = _rows5(begin, row, width, height)
    a = _sums5(source, r0, r1, r2, r3, r4, np.int32(column - np.int32(2)), width)
    b = _sums5(source, r0, r1, r2, r3, r4, np.int32(column - np.int32(1)), width)
    c = _sums5(source, r0, r1, r2, r3, r4, column, width)
    d = _sums5(source, r0, r1, r2, r3, r4, np.int32(column + np.int32(1)), width)
    e = _sums5(source, r0, r1, r2, r3, r4, np.int32(column + np.int32(2)), width)
    f = _sums5(source, r0, r1, r2, r3, r4, np.int32(column + np.int32(3)), width)
    g = _sums5(source, r0, r1, r2, r3, r4, np.int32(column + np.int32(4)), width)
    h = _sums5(source, r0, r1, r2, r3, r4, np.int32(column + np.int32(5)), width)
    return _combine(a, b, c, d, e), _combine(b, c, d, e, f), _combine(c, d, e, f, g), _combine(d, e, f, g, h)


@device
def _blur5_sobel_one(source, begin, row, column, width, height):
    r0, r1, r2, r3, r4 = _rows5(begin, row, width, height)
    a = _sums5(source, r0, r1, r2, r3, r4, np.int32(column - np.int32(2)), width)
    b = _sums5(source, r0, r1, r2, r3, r4, np.int32(column - np.int32(1)), width)
    c = _sums5(source, r0, r1, r2, r3, r4, column, width)
    d = _sums5(source, r0, r1, r2, r3, r4, np.int32(column + np.int32(1)), width)
    e = _sums5(source, r0, r1, r2, r3, r4, np.int32(column + np.int32(2)), width)
    return _combine(a, b, c, d, e)


FUNCTIONS = {"blur3x3": (_blur3_four, _blur3_one), "blur5x5_sobel": (_blur5_sobel_four, _blur5_sobel_one)}
