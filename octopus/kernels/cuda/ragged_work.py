"""What the kernels on ragged batches do: the search for an element's item, and the operations on packs of elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from octopus.backends.cuda.language import cuda, device, emulated
from octopus.kernels import pixelwise
from octopus.kernels.cuda import ptx
from octopus.kernels.cuda.ptx import MAGIC_VALUE as MAGIC
from octopus.kernels.cuda.ragged_tiles import Kind
from octopus.kernels.pixelwise import FULL, PER_FULL

QUAD = 4  # elements
ONE, EVEN = np.float32(1), np.float32(2**24)  # from here on all floats are even

search = device(pixelwise.last_at_or_before)


@device
def _together(offsets, items, element):
    """32 lanes probe at once and keep the part that holds the element: 4 rounds for a million items, where a thread
    alone takes 20 steps that each wait for the one before."""
    lane = np.int32(cuda.threadIdx.x & 31)
    low, high = np.int32(0), items
    while high - low > 1:
        step = np.int32((high - low + np.int32(31)) >> 5)
        at = np.int32(low + lane * step)
        # The first lane always says yes, and those that do are the first ones.
        yes = at < high and offsets[at] <= element
        count = np.int32(cuda.popc(cuda.ballot_sync(np.uint32(0xFFFFFFFF), yes)))
        low = np.int32(low + (count - np.int32(1)) * step)
        high = min(np.int32(low + step), high)
    return low


search_by_warp = emulated("search_by_warp", _together)


# Stencils read a pixel's neighbours within its image, whose first element is `begin`; beyond the border the nearest one
# counts. Four neighbours of a row share the sums of their columns: 18 loads instead of 36, of the 5x5 operation 40
# instead of 100.
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
def _rows3(begin, row, width, height):
    above = _row(begin, np.int32(row - np.int32(1)), width, height)
    return above, begin + np.int64(row) * width, _row(begin, np.int32(row + np.int32(1)), width, height)


@device
def _sum3(source, above, here, below, column, width):
    x = _inside(column, width)
    return _column3(np.float32(source[above + x]), np.float32(source[here + x]), np.float32(source[below + x]))


@device
def _blur3_four(source, begin, row, column, width, height):
    above, here, below = _rows3(begin, row, width, height)
    a = _sum3(source, above, here, below, np.int32(column - np.int32(1)), width)
    b = _sum3(source, above, here, below, column, width)
    c = _sum3(source, above, here, below, np.int32(column + np.int32(1)), width)
    d = _sum3(source, above, here, below, np.int32(column + np.int32(2)), width)
    e = _sum3(source, above, here, below, np.int32(column + np.int32(3)), width)
    f = _sum3(source, above, here, below, np.int32(column + np.int32(4)), width)
    return _blur3(a, b, c), _blur3(b, c, d), _blur3(c, d, e), _blur3(d, e, f)


@device
def _blur3_one(source, begin, row, column, width, height):
    above, here, below = _rows3(begin, row, width, height)
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
    r1, r2, r3 = _rows3(begin, row, width, height)
    return r0, r1, r2, r3, _row(begin, np.int32(row + np.int32(2)), width, height)


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


class Work(NamedTuple):
    """Device functions of an operation: what a pack needs before its owner is known, and to do a pack of one item, one
    element, and of packs of sixteen elements four, fetched again."""

    fetch: Callable
    pack: Callable
    one: Callable
    quad: Callable | None = None


def work_of(kind: Kind) -> Work:
    """The device functions of a kind's operation."""
    return _stencil_work(kind) if kind.operation in FUNCTIONS else _pointwise_work(kind)


# `value ** exponent` by two instructions of the special function unit: `powf`, of 63, left float32 0.65 of a copy's
# speed (H200). Off by up to 2.4e-7 * (1 + |exponent| * max(1, |log2(value)|)) of the result.
@device
def _gamma(value, exponent, unused):
    bounded = min(max(exponent, -EVEN), EVEN)
    whole = np.int32(bounded)
    sign = np.float32(1 - 2 * (whole & 1)) if whole == bounded else np.float32(np.nan)
    found = ptx.power(abs(value), exponent) * (sign if value < 0 else ONE)
    return ONE if exponent == 0 else found


@device
def _gamma_of_bytes(value, exponent, unused):
    return FULL * (ONE if exponent == 0 else ptx.power_of_byte(value * PER_FULL, exponent))


@device
def _load_bytes(source, index):
    """Four bytes, from an index that is a multiple of four."""
    word = ptx.load_word(source, index)
    return ptx.byte0(word) - MAGIC, ptx.byte1(word) - MAGIC, ptx.byte2(word) - MAGIC, ptx.byte3(word) - MAGIC


def _pointwise_work(kind: Kind) -> Work:
    is_byte = kind.dtype == "uint8"
    if kind.operation == "gamma":
        apply = _gamma_of_bytes if is_byte else _gamma
    else:
        apply = device(getattr(pixelwise, kind.operation))
    load = _load_bytes if is_byte else ptx.load_floats
    store, store_one = (ptx.streaming_store(kind.out_dtype, count, True, False) for count in (QUAD, 1))

    @device
    def apply_four(held, a, b):
        return apply(held[0], a, b), apply(held[1], a, b), apply(held[2], a, b), apply(held[3], a, b)

    @device
    def pack(source, out, at, held, item, offsets, first, second, widths, heights):
        store(out, at, apply_four(held, first[item], second[item]))

    @device
    def one(source, out, at, item, offsets, first, second, widths, heights):
        store_one(out, at, (apply(np.float32(source[at]), first[item], second[item]),))

    if kind.values <= QUAD:
        return Work(load, pack, one)
    store_wide = ptx.streaming_store("uint8", 16, True, False)

    @device
    def apply_word(word, a, b):
        return (
            apply(ptx.byte0(word) - MAGIC, a, b), apply(ptx.byte1(word) - MAGIC, a, b),
            apply(ptx.byte2(word) - MAGIC, a, b), apply(ptx.byte3(word) - MAGIC, a, b),
        )  # fmt: skip

    @device
    def wide(source, out, at, held, item, offsets, first, second, widths, heights):
        a, b = first[item], second[item]
        p, q = apply_word(held[0], a, b), apply_word(held[1], a, b)
        r, s = apply_word(held[2], a, b), apply_word(held[3], a, b)
        store_wide(out, at, p + q + r + s)

    @device
    def quad(source, out, at, item, offsets, first, second, widths, heights):
        pack(source, out, at, load(source, at), item, offsets, first, second, widths, heights)

    return Work(ptx.load_words, wide, one, quad)


def _stencil_work(kind: Kind) -> Work:
    """There is nothing to fetch before the owner is known."""
    four, single = FUNCTIONS[kind.operation]
    store, store_one = (ptx.streaming_store(kind.out_dtype, count, True, False) for count in (QUAD, 1))

    @device
    def fetch(source, at):
        return at

    @device
    def one(source, out, at, item, offsets, first, second, widths, heights):
        begin, width = np.int64(offsets[item]), widths[item]
        inside = np.uint32(at - begin)
        row = np.int32(inside // np.uint32(width))
        column = np.int32(inside - np.uint32(row) * np.uint32(width))
        store_one(out, at, (single(source, begin, row, column, width, heights[item]),))

    @device
    def pack(source, out, at, held, item, offsets, first, second, widths, heights):
        begin, width = np.int64(offsets[item]), widths[item]
        inside = np.uint32(at - begin)
        row = np.int32(inside // np.uint32(width))
        column = np.int32(inside - np.uint32(row) * np.uint32(width))
        height = heights[item]
        if column + QUAD <= width:
            store(out, at, four(source, begin, row, column, width, height))
        else:
            for j in range(QUAD):
                store_one(out, at + j, (single(source, begin, row, column, width, height),))
                column += np.int32(1)
                if column == width:
                    column = np.int32(0)
                    row += np.int32(1)

    return Work(fetch, pack, one)
