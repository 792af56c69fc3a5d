"""Samples of a frame at any position: which pixels each takes, and how much of each, on every device.

Plain functions of scalars, as in `kernels.geometry`. A position counts from the centre of a first pixel: along an axis
pixel `i` covers `[i - 0.5, i + 0.5)`.
"""

from collections.abc import Callable

import numpy as np

from octopus.kernels import geometry

TAPS = {"nearest": 1, "bilinear": 2, "bicubic": 4}  # pixels of a sample along each axis
REACH = {"nearest": 0, "bilinear": 1, "bicubic": 2}  # pixels beyond a box that its samples take
KEYS = np.float32(-0.75)  # slope of the cubic at distance 1, as in OpenCV and torch; PIL's is -0.5
MAP_NUMBERS, QUAD_NUMBERS = 6, 8  # of an affine map, and of four corners
FAR = np.int32(2**30)  # beyond any pixel that a position may have for a neighbour


def centre(index, extent, count, origin):
    """Position of one of `count` samples of a box along one axis. For boxes on whole pixels the product is exact and
    the quotient the nearest number, which is no less than a whole one where the true quotient is none: every device
    decides alike which pixel is "nearest". A rounded scale would not."""
    steps = np.float32(np.int32(2) * index + np.int32(1))
    return steps * extent / np.float32(np.int32(2) * count) + origin


def map_is_usable(a, b, c, columns, rows):
    """Whether an axis of an affine map, `a * x + b * y + c`, keeps its samples where float32 holds them; not NaN."""
    across, down = np.float32(columns - np.int32(1)), np.float32(rows - np.int32(1))
    return abs(a) * across + abs(b) * down + abs(c) <= np.float32(geometry.MAX_COORDINATE)


def whole(position):
    """The largest whole number not above a position."""
    below = np.int32(position)  # a cast truncates, which rounds negative numbers up
    return np.int32(below - np.int32(1)) if np.float32(below) > position else below


def nearest(first, share):
    """The pixel, and its weight, of a sample that lies `share` of a pixel behind the edge of pixel `first`."""
    return (first,), (np.float32(1.0),)


def bilinear(first, share):
    """The two pixels around a sample that lies `share` of a pixel behind the centre of `first`, and their weights."""
    return (first, np.int32(first + np.int32(1))), (np.float32(1.0) - share, share)


def bicubic(first, share):
    """The four pixels around it, and their weights by Keys' cubic convolution."""
    rest = np.float32(1.0) - share
    before, after = KEYS * share * rest * rest, KEYS * rest * share * share
    lower = np.float32(1.0) + share * share * ((KEYS + np.float32(2.0)) * share - (KEYS + np.float32(3.0)))
    upper = np.float32(1.0) - lower - before - after
    pixels = (
        np.int32(first - np.int32(1)), first, np.int32(first + np.int32(1)), np.int32(first + np.int32(2)),
    )  # fmt: skip
    return pixels, (before, lower, upper, after)


AROUND = {"nearest": nearest, "bilinear": bilinear, "bicubic": bicubic}


def locator(compiled: Callable, kind: str) -> Callable:
    """A compiled function: which pixels of the frame a sample takes along one axis, and how much of each. `compiled`
    compiles a function of scalars and pointers for a device, `kind` is of `AROUND`."""
    taps, half = TAPS[kind], np.float32(0.5 if kind == "nearest" else 0.0)
    around = compiled(AROUND[kind])
    floor, beyond_pixel = compiled(whole), compiled(geometry.beyond_pixel)

    @compiled
    def locate(position, first, low, high, limit, mode, pixels, weights):
        """`position` counts from pixel `first`; of the pixels around it, those before `low` and behind `high` (counted
        so, too) are replaced by these, and those beyond the frame's `limit` by `geometry.beyond_pixel`."""
        position += half
        start = floor(position)
        found, shares = around(start, position - np.float32(start))
        for i in range(taps):
            within = min(max(found[i], low), high)
            pixels[i] = beyond_pixel(np.int32(first + within), limit, mode)
            weights[i] = shares[i]

    return locate


def mixer(compiled: Callable, kind: str, read: Callable, *, padded: bool) -> Callable:
    """A compiled function: one channel of a sample, normalised. `read` is compiled: one channel of a pixel, `frame,
    start, pitch, row, column, channel`, as float32. With `padded` pixels may be -1, which stands for the padding; that
    is normalised."""
    taps = TAPS[kind]

    @compiled
    def mix(frame, start, pitch, channel, rows, columns, down, across, gain, bias, pad):
        total = np.float32(0.0)
        for i in range(taps):
            line = np.float32(0.0)
            for j in range(taps):
                if padded:
                    value = pad
                    if rows[i] >= 0 and columns[j] >= 0:
                        value = read(frame, start, pitch, rows[i], columns[j], channel) * gain + bias
                else:
                    value = read(frame, start, pitch, rows[i], columns[j], channel)
                line += across[j] * value
            total += down[i] * line
        return total if padded else total * gain + bias

    return mix
