"""The weights of a tile's columns and rows, as the tensor cores take them: one thread works out those of one line.

A weight is Pillow's int32 of 22 fractional bits, as three signed digits of base 256. The weights of up to 16 lines
(columns or rows of the result) form a band: a matrix of 16 x (32 * steps), zero but near its diagonal, whose columns
are the source pixels from the first line's window on. It lies in shared memory in the order in which `load_weights`
hands it out: `steps` products of three digits of 32 lanes of four words.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from octopus.backends.cuda.language import cuda, device, libdevice
from octopus.kernels import images
from octopus.kernels.cuda import ptx as words
from octopus.kernels.cuda.image_kind import DIGIT_BYTES, WEIGHT_BYTES


@device
def _bilinear(x):
    return max(words.add(np.float64(1.0), -abs(x)), np.float64(0.0))


@device
def _bicubic(x):
    x = abs(x)
    near = words.times(words.add(words.times(1.5, x), -2.5), x)
    near = words.add(words.times(near, x), 1.0)
    far = words.times(words.add(words.times(words.add(x, -5.0), x), 8.0), x)
    far = words.times(words.add(far, -4.0), -0.5)
    return near if x < 1.0 else (far if x < 2.0 else 0.0)


@device
def _lanczos(x):
    if x == 0.0:
        return 1.0
    if x < -3.0 or x >= 3.0:
        return 0.0
    third = x / 3.0
    wide = libdevice.sinpi(x) / (x * math.pi)
    return wide * (libdevice.sinpi(third) / (third * math.pi))


WEIGHTS = {images.BILINEAR: _bilinear, images.BICUBIC: _bicubic, images.LANCZOS: _lanczos}
ZERO, HALF, ONE, TWO, THREE = (np.float32(number) for number in (0.0, 0.5, 1.0, 2.0, 3.0))
PI = np.float32(math.pi)


@device
def _bilinear32(x):
    return max(ONE - abs(x), ZERO)


@device
def _bicubic32(x):
    x = abs(x)
    near = (np.float32(1.5) * x - np.float32(2.5)) * x * x + ONE
    far = (((x - np.float32(5.0)) * x + np.float32(8.0)) * x - np.float32(4.0)) * -HALF
    return near if x < ONE else (far if x < TWO else ZERO)


@device
def _lanczos32(x):
    if x == ZERO:
        return ONE
    if x < -THREE or x >= THREE:
        return ZERO
    third = x / THREE
    wide = libdevice.sinpif(x) / (x * PI)
    return wide * (libdevice.sinpif(third) / (third * PI))


WEIGHTS32 = {images.BILINEAR: _bilinear32, images.BICUBIC: _bicubic32, images.LANCZOS: _lanczos32}


@device
def window(position, scale, support, size):
    """`images.window` with each operation rounded on its own, as int32; `centre` is float64."""
    centre = words.times(np.float64(position) + 0.5, scale)
    start = np.int32(max(words.add(words.add(centre, -support), 0.5), 0.0))
    stop = np.int32(words.add(words.add(centre, support), 0.5))
    return start, min(stop, np.int32(size)), centre


@device
def _quotient(a, b, inverse):
    """`a / b`, rounded correctly, from `1 / b`."""
    near = words.times(a, inverse)
    return cuda.fma(cuda.fma(-near, b, a), inverse, near)


@device
def _place(row, column, spread):
    """Byte of a weight within its band's first digit; `spread`: how a lane's two words of pixels lie.

    Pixels of the first pass come as eight neighbouring bytes of a lane (`spread` false), those of the second as four
    of each of two groups of 16 rows.
    """
    inside = np.int32(column & 31)
    quad = np.int32(inside >> 2)
    lane = np.int32(quad & 3) if spread else np.int32(quad >> 1)
    half = np.int32(quad >> 2) if spread else np.int32(quad & 1)
    lane = np.int32(lane + 4 * (row & 7))
    word = np.int32(2 * half + (row >> 3))
    step = np.int32(np.int32(column >> 5) * np.int32(WEIGHT_BYTES))
    return np.int32(step + 16 * lane + 4 * word + (column & 3))


def _share(code: int, pillow: bool) -> tuple[Callable, Callable]:
    """Device functions of a filter: its weight at a pixel, and that over the total as `images.fixed_weight`."""
    weight, weight32 = WEIGHTS[code], WEIGHTS32[code]

    @device
    def at(pixel, centre, inverse):
        x = words.times(words.add(words.add(np.float64(pixel), -centre), 0.5), inverse)
        return weight(x) if pillow else weight32(np.float32(x))

    @device
    def fixed(found, total, of_total):
        if pillow:
            share = words.times(_quotient(found, total, of_total), np.float64(images.FIXED_ONE))
            return np.int32(words.add(share, -0.5 if share < 0.0 else 0.5))
        share = found * of_total * np.float32(images.FIXED_ONE)
        return np.int32(share + (-HALF if share < ZERO else HALF))

    return at, fixed


def line_writer(code: int, pillow: bool) -> Callable:
    """A device function that adds a line to a band of zeros.

    Its arguments are `band` (address), `row` (of the band), `first` and `step` (the band's columns of the window's
    first pixel, and from pixel to pixel), the window's `start, stop, centre`, the filter's `inverse` spread, and
    `spread` (see `_place`). It returns the sum of the line's weights.

    Parameters
    ----------
    code : {images.BILINEAR, images.BICUBIC, images.LANCZOS}
    pillow : bool
        Whether weights are worked out in float64, as Pillow does; in float32 they were at most three units off in 3000
        random axes.
    """
    weight, fixed = _share(code, pillow)
    zero, one = (np.float64(0.0), np.float64(1.0)) if pillow else (ZERO, ONE)

    @device
    def write(band, row, first, step, start, stop, centre, inverse, spread):
        total = zero
        pixel = np.int32(start)
        while pixel < stop:
            found = weight(pixel, centre, inverse)
            total = words.add(total, found) if pillow else total + found
            pixel = words.opaque(np.int32(pixel + 1))
        of_total = one / total
        pixel, column, whole = np.int32(start), np.int32(first), np.int32(0)
        while pixel < stop:
            value = fixed(weight(pixel, centre, inverse), total, of_total)
            whole = np.int32(whole + value)
            at = np.uint32(band + np.uint32(_place(row, column, spread)))
            middle = np.int32(np.int32(value + 128) >> 8)
            high = np.int32(np.int32(middle + 128) >> 8)
            words.store_byte(at, (np.uint32(high),))
            words.store_byte(np.uint32(at + DIGIT_BYTES), (np.uint32(middle),))
            words.store_byte(np.uint32(at + 2 * DIGIT_BYTES), (np.uint32(value),))
            pixel = words.opaque(np.int32(pixel + 1))
            column = np.int32(column + step)
        return whole

    return write
