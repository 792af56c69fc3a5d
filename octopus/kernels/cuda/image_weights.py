"""The weights of a tile's columns and rows, as the tensor cores take them: one thread works out those of one line.

A weight is Pillow's int32 of 22 fractional bits, as three signed digits of base 256. The weights of up to 16 lines
(columns or rows of the result) form a band: a matrix of 16 x (32 * steps), zero but near its diagonal, whose columns
are the source pixels from the first line's window on. It lies in shared memory in the order in which `load_weights`
hands it out: `steps` products of three digits of 32 lanes of four words.
"""

import math
import operator
from collections.abc import Callable

import numpy as np

from octopus.backends.cuda.language import cuda, device, libdevice
from octopus.kernels import images
from octopus.kernels.cuda import ptx
from octopus.kernels.cuda.image_kind import DIGIT_BYTES, FUSED_ONE, TWO_DIGITS, WEIGHT_BYTES


def _arithmetic(pillow: bool) -> tuple[Callable, Callable, Callable, Callable]:
    """A number's type, its sum and product, and `sin(pi * x)`. In float64, no product fused into a sum, as Pillow's
    weights are; else in float32, whose weights were at most three units off in 3000 random axes."""
    if pillow:
        return np.float64, ptx.add, ptx.times, libdevice.sinpi
    return np.float32, operator.add, operator.mul, libdevice.sinpif


def _curve(code: int, pillow: bool) -> Callable:
    """A device function: `images.CURVES` of a filter."""
    number, add, times, sinpi = _arithmetic(pillow)
    zero, half, one, pi = number(0.0), number(0.5), number(1.0), number(math.pi)

    @device
    def bilinear(x):
        return max(add(one, -abs(x)), zero)

    @device
    def bicubic(x):
        x = abs(x)
        near = times(add(times(number(1.5), x), number(-2.5)), x)
        near = add(times(near, x), one)
        far = times(add(times(add(x, number(-5.0)), x), number(8.0)), x)
        far = times(add(far, number(-4.0)), -half)
        return near if x < one else (far if x < number(2.0) else zero)

    @device
    def lanczos(x):
        if x == zero:
            return one
        if x < number(-3.0) or x >= number(3.0):
            return zero
        third = x / number(3.0)
        wide = sinpi(x) / (x * pi)
        return wide * (sinpi(third) / (third * pi))

    return {images.BILINEAR: bilinear, images.BICUBIC: bicubic, images.LANCZOS: lanczos}[code]


@device
def window(position, scale, support, size):
    """`images.window` with each operation rounded on its own, as int32; `centre` is float64."""
    centre = ptx.times(np.float64(position) + 0.5, scale)
    start = np.int32(max(ptx.add(ptx.add(centre, -support), 0.5), 0.0))
    stop = np.int32(ptx.add(ptx.add(centre, support), 0.5))
    return start, min(stop, np.int32(size)), centre


@device
def _quotient(a, b, inverse):
    """`a / b`, rounded correctly, from `1 / b`."""
    near = ptx.times(a, inverse)
    return cuda.fma(cuda.fma(-near, b, a), inverse, near)


@device
def _place(row, column, spread, product):
    """Byte of a weight within its band's first digit; `spread`: how a lane's two words of pixels lie. Pixels of the
    first pass come as eight neighbouring bytes of a lane (`spread` false), those of the second as four of each of two
    groups of 16 rows. `product` are the bytes of a product's weights."""
    inside = np.int32(column & 31)
    quad = np.int32(inside >> 2)
    lane = np.int32(quad & 3) if spread else np.int32(quad >> 1)
    half = np.int32(quad >> 2) if spread else np.int32(quad & 1)
    lane = np.int32(lane + 4 * (row & 7))
    word = np.int32(2 * half + (row >> 3))
    step = np.int32(np.int32(column >> 5) * np.int32(product))
    return np.int32(step + 16 * lane + 4 * word + (column & 3))


def line_writer(code: int, pillow: bool, fused: bool = False) -> Callable:
    """A device function that adds a line to a band of zeros (at an address), and returns the sum of its weights. `row`
    is the band's, `first` and `step` are its columns of the window's first pixel and from pixel to pixel, `inverse` is
    that of the filter's spread; `spread` as of `_place`. `fused`: two digits of weights in units of 1 / `FUSED_ONE`,
    each with what the one before lost when it was rounded, so that their sum is 1."""
    number, add, times, _ = _arithmetic(pillow)
    curve, zero, half, one = _curve(code, pillow), number(0.0), number(0.5), number(1.0)
    fixed_one, product = number(FUSED_ONE if fused else images.FIXED_ONE), TWO_DIGITS if fused else WEIGHT_BYTES

    @device
    def weight(pixel, centre, inverse):
        return curve(number(ptx.times(ptx.add(ptx.add(np.float64(pixel), -centre), 0.5), inverse)))

    @device
    def share_of(found, total, of_total):
        return times(_quotient(found, total, of_total) if pillow else found * of_total, fixed_one)

    @device
    def fixed(share):
        return np.int32(add(share, -half if share < zero else half))

    @device
    def write(band, row, first, step, start, stop, centre, inverse, spread):
        total, near, narrow = zero, zero, number(inverse)
        if fused:
            near = number(ptx.times(ptx.add(ptx.add(np.float64(start), -centre), 0.5), inverse))
        pixel = np.int32(start)
        while pixel < stop:
            if fused:
                total += curve(near + number(pixel - start) * narrow)
            else:
                total = add(total, weight(pixel, centre, inverse))
            pixel = ptx.opaque(np.int32(pixel + 1))
        of_total = one / total
        pixel, column, whole, lost = np.int32(start), np.int32(first), np.int32(0), zero
        while pixel < stop:
            if fused:
                share = curve(near + number(pixel - start) * narrow) * of_total * fixed_one + lost
            else:
                share = share_of(weight(pixel, centre, inverse), total, of_total)
            value = fixed(share)
            if fused:
                lost = share - number(value)
            whole = np.int32(whole + value)
            at = np.uint32(band + np.uint32(_place(row, column, spread, product)))
            middle = np.int32(np.int32(value + 128) >> 8)
            if fused:
                ptx.store_byte(at, (np.uint32(middle),))
                ptx.store_byte(np.uint32(at + DIGIT_BYTES), (np.uint32(value),))
            else:
                high = np.int32(np.int32(middle + 128) >> 8)
                ptx.store_byte(at, (np.uint32(high),))
                ptx.store_byte(np.uint32(at + DIGIT_BYTES), (np.uint32(middle),))
                ptx.store_byte(np.uint32(at + 2 * DIGIT_BYTES), (np.uint32(value),))
            pixel = ptx.opaque(np.int32(pixel + 1))
            column = np.int32(column + step)
        return whole

    return write
