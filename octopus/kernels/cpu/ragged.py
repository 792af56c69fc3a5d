"""Operations on a flat ragged batch on the CPU, by the same four ways to find the owner as on the GPU.

Each way cuts the batch into runs of elements of one item and hands them to `_run`, whose inner loops are vectorised.
What differs is what a run costs to find: A reads an owner per element, B searches for every four elements, C reads one
record per block, D searches once per part and then walks from item to item.
"""

from __future__ import annotations

import numba
import numpy as np
from numba.extending import overload

from octopus.kernels import geometry, pixelwise
from octopus.kernels.cpu import compiled
from octopus.kernels.operations import OPERATIONS, POINTWISE

PART = 1 << 14  # elements per parallel part of A, B and D
_MULTIPLY, _NORMALIZE, _THRESHOLD, _BLUR3X3 = map(
    OPERATIONS.index, ("multiply", "normalize", "threshold", "blur3x3")
)
_FIRST_STENCIL = len(POINTWISE)

_saturate_uint8 = compiled(inline="always")(geometry.saturate_uint8)
_search = compiled(inline="always")(pixelwise.last_at_or_before)
_multiply = compiled(inline="always")(pixelwise.multiply)
_normalize = compiled(inline="always")(pixelwise.normalize)
_threshold = compiled(inline="always")(pixelwise.threshold)
_gamma = compiled(inline="always")(pixelwise.gamma)
_gamma_of_bytes = compiled(inline="always")(pixelwise.gamma_of_bytes)
_column3 = compiled(inline="always")(pixelwise.column3)
_blur3 = compiled(inline="always")(pixelwise.blur3)
_column5 = compiled(inline="always")(pixelwise.column5)
_smooth = compiled(inline="always")(pixelwise.smooth)
_blur5_sobel = compiled(inline="always")(pixelwise.blur5_sobel)


def _put(out, i, value):
    """Store a float32 in the dtype of `out`."""
    raise TypeError("only compiled code calls this")


@overload(_put, inline="always")
def _put_for(out, i, value):
    def as_float(out, i, value):
        out[i] = value

    def as_byte(out, i, value):
        out[i] = np.uint8(_saturate_uint8(value))

    return as_byte if out.dtype == numba.types.uint8 else as_float


def _power(source, value, exponent):
    """`gamma` in the range of the source's dtype."""
    raise TypeError("only compiled code calls this")


@overload(_power, inline="always")
def _power_for(source, value, exponent):
    def of_floats(source, value, exponent):
        return _gamma(value, exponent, exponent)

    def of_bytes(source, value, exponent):
        return _gamma_of_bytes(value, exponent, exponent)

    return of_bytes if source.dtype == numba.types.uint8 else of_floats


@compiled()
def _pointwise(operation, source, out, a, b):
    """All of `source`, elements of one item."""
    if operation == _MULTIPLY:
        for i in range(source.size):
            _put(out, i, _multiply(np.float32(source[i]), a, b))
    elif operation == _NORMALIZE:
        for i in range(source.size):
            _put(out, i, _normalize(np.float32(source[i]), a, b))
    elif operation == _THRESHOLD:
        for i in range(source.size):
            _put(out, i, _threshold(np.float32(source[i]), a, b))
    else:
        for i in range(source.size):
            _put(out, i, _power(source, np.float32(source[i]), a))


@compiled(inline="always")
def _sum3(above, here, below, x):
    return _column3(np.float32(above[x]), np.float32(here[x]), np.float32(below[x]))


@compiled(inline="always")
def _clamp(x, side):
    return max(0, min(x, side - 1))


@compiled()
def _blur3_row(above, here, below, out, first, last):
    """Columns `first` to `last` of a row; the rows are whole, `out` is the row of the result."""
    width = here.size
    for x in range(first, last):
        if x == 0 or x == width - 1:
            left, right = _clamp(x - 1, width), _clamp(x + 1, width)
            sums = (
                _sum3(above, here, below, left),
                _sum3(above, here, below, x),
                _sum3(above, here, below, right),
            )
            _put(out, x - first, _blur3(sums[0], sums[1], sums[2]))
    begin, end = max(first, 1), min(last, width - 1)
    a, b, c = above[begin - 1 : end + 1], here[begin - 1 : end + 1], below[begin - 1 : end + 1]
    inner = out[begin - first :]
    for i in range(end - begin):
        left, middle = _sum3(a, b, c, i), _sum3(a, b, c, i + 1)
        _put(inner, i, _blur3(left, middle, _sum3(a, b, c, i + 2)))


@compiled(inline="always")
def _at5(r0, r1, r2, r3, r4, x0, x1, x2, x3, x4):
    c0 = _column5(
        np.float32(r0[x0]), np.float32(r1[x0]), np.float32(r2[x0]), np.float32(r3[x0]), np.float32(r4[x0])
    )
    c1 = _column5(
        np.float32(r0[x1]), np.float32(r1[x1]), np.float32(r2[x1]), np.float32(r3[x1]), np.float32(r4[x1])
    )
    c2 = _column5(
        np.float32(r0[x2]), np.float32(r1[x2]), np.float32(r2[x2]), np.float32(r3[x2]), np.float32(r4[x2])
    )
    c3 = _column5(
        np.float32(r0[x3]), np.float32(r1[x3]), np.float32(r2[x3]), np.float32(r3[x3]), np.float32(r4[x3])
    )
    c4 = _column5(
        np.float32(r0[x4]), np.float32(r1[x4]), np.float32(r2[x4]), np.float32(r3[x4]), np.float32(r4[x4])
    )
    left = _smooth(np.float32(r1[x1]), np.float32(r2[x1]), np.float32(r3[x1]))
    right = _smooth(np.float32(r1[x3]), np.float32(r2[x3]), np.float32(r3[x3]))
    step1, step2 = np.float32(r3[x1]) - np.float32(r1[x1]), np.float32(r3[x2]) - np.float32(r1[x2])
    return _blur5_sobel(
        c0, c1, c2, c3, c4, left, right, step1, step2, np.float32(r3[x3]) - np.float32(r1[x3])
    )


@compiled()
def _blur5_sobel_row(r0, r1, r2, r3, r4, out, first, last):
    """As `_blur3_row`."""
    width = r2.size
    for x in range(first, last):
        if x < 2 or x >= width - 2:
            x0, x1 = _clamp(x - 2, width), _clamp(x - 1, width)
            x3, x4 = _clamp(x + 1, width), _clamp(x + 2, width)
            _put(out, x - first, _at5(r0, r1, r2, r3, r4, x0, x1, x, x3, x4))
    begin, end = max(first, 2), min(last, width - 2)
    lead = begin - 2
    a, b, c, d, e = r0[lead:], r1[lead:], r2[lead:], r3[lead:], r4[lead:]
    inner = out[max(begin - first, 0) :]
    for i in range(end - begin):
        _put(inner, i, _at5(a, b, c, d, e, i, i + 1, i + 2, i + 3, i + 4))


@compiled(inline="always")
def _row(source, begin, row, width, height):
    at = begin + _clamp(row, height) * width
    return source[at : at + width]


@compiled()
def _stencil(operation, source, out, begin, width, height, low, high):
    """Elements `low` to `high` of the image that begins at `begin`, row by row."""
    row = (low - begin) // width
    column = low - begin - row * width
    at = low
    while at < high:
        last = min(width, column + high - at)
        target = out[at : at + last - column]
        above, here = _row(source, begin, row - 1, width, height), _row(source, begin, row, width, height)
        below = _row(source, begin, row + 1, width, height)
        if operation == _BLUR3X3:
            _blur3_row(above, here, below, target, column, last)
        else:
            top, bottom = (
                _row(source, begin, row - 2, width, height),
                _row(source, begin, row + 2, width, height),
            )
            _blur5_sobel_row(top, above, here, below, bottom, target, column, last)
        at += last - column
        column = 0
        row += 1


@compiled()
def _run(operation, source, out, offsets, first, second, widths, heights, item, low, high):
    """Elements `low` to `high`, all of one item."""
    if operation < _FIRST_STENCIL:
        _pointwise(operation, source[low:high], out[low:high], first[item], second[item])
    else:
        _stencil(operation, source, out, offsets[item], widths[item], heights[item], low, high)


@compiled(parallel=True)
def lookup(operation, source, out, offsets, first, second, widths, heights, owner):
    """A. Neighbours with the same owner are done together."""
    total = source.size
    for part in numba.prange((total + PART - 1) // PART):
        at, stop = part * PART, min((part + 1) * PART, total)
        while at < stop:
            item = owner[at]
            end = at + 1
            while end < stop and owner[end] == item:
                end += 1
            _run(operation, source, out, offsets, first, second, widths, heights, item, at, end)
            at = end


@compiled(parallel=True)
def thread_search(operation, source, out, offsets, first, second, widths, heights, pack):
    """B. Each pack of elements searches all offsets."""
    total, items = source.size, np.int32(offsets.size - 1)
    for part in numba.prange((total + PART - 1) // PART):
        at, stop = part * PART, min((part + 1) * PART, total)
        while at < stop:
            item = _search(offsets, np.int32(0), items, at)
            end = min(at + pack, stop)
            while at < end:
                while offsets[item + 1] <= at:
                    item += np.int32(1)
                until = min(end, offsets[item + 1])
                _run(operation, source, out, offsets, first, second, widths, heights, item, at, until)
                at = until


@compiled(parallel=True)
def block_metadata(operation, source, out, offsets, first, second, widths, heights, owner, starts, threshold):
    """C. One record per block."""
    for block in numba.prange(owner.size):
        item, low = owner[block], starts[block]
        high = min(low + threshold, offsets[item + 1])
        _run(operation, source, out, offsets, first, second, widths, heights, item, low, high)


@compiled(parallel=True)
def block_search(operation, source, out, offsets, first, second, widths, heights, part_size):
    """D. One search per part, then from item to item."""
    total, items = source.size, np.int32(offsets.size - 1)
    for part in numba.prange((total + part_size - 1) // part_size):
        at, stop = part * part_size, min((part + 1) * part_size, total)
        item = _search(offsets, np.int32(0), items, at)
        while at < stop:
            end = min(stop, offsets[item + 1])
            if end > at:
                _run(operation, source, out, offsets, first, second, widths, heights, item, at, end)
            at = end
            item += np.int32(1)


@compiled()
def block_count(offsets, threshold):
    """Blocks of `block_metadata`."""
    total = 0
    for item in range(offsets.size - 1):
        total += (offsets[item + 1] - offsets[item] + threshold - 1) // threshold
    return total


@compiled()
def fill_records(offsets, threshold, owner, starts):
    """Item and first element of each block of `block_metadata`, in order."""
    block = 0
    for item in range(offsets.size - 1):
        at, stop = offsets[item], offsets[item + 1]
        while at < stop:
            owner[block] = item
            starts[block] = at
            block += 1
            at += threshold
