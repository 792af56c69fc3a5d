"""How 16 rows of an image are read, however its pixels and channels lie."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from octopus.kernels.cpu import compiled, pointer, shifted
from octopus.kernels.cpu.vectors import LANES, load_across

MAX_STRIDE = 4  # values from pixel to pixel, up to which reading all of them costs less than fetching single ones
# Channels of a pixel lie within the values up to the next pixel; each in a plane of its own; or in some other way.
TOGETHER, APART, SINGLE = range(3)
_ALL = 1 << 60


@cache
def reader_of(source_dtype: str, channels: int) -> tuple[Callable, Callable]:
    """Functions that describe a run of pixels, and that read it from 16 rows.

    What is read is *turned*: a vector holds one value of each of the rows. `describe` tells where these are: the
    vectors from pixel to pixel and from channel to channel, and that of the first pixel's first channel.
    """
    pixel = getattr(np, source_dtype)
    size = np.dtype(source_dtype).itemsize

    @compiled
    def describe(steps, first, count):
        """Of `count` pixels from pixel `first` on: `mode, bytes from the row's first pixel, values, stride, channel
        step, begin`; `steps` are the image's, in bytes: from channel to channel, row to row, pixel to pixel."""
        plane, _, step = steps
        if channels == 1:
            plane = 0
        stride, between = step // size, plane // size
        reach = abs(between) * (channels - 1)
        whole = step % size == 0 and plane % size == 0 and stride >= 1 and stride <= MAX_STRIDE
        values = (count - 1) * stride + 1
        if whole and reach < stride and values + reach >= LANES:
            begin = reach if between < 0 else 0
            return TOGETHER, first * step - begin * size, values + reach, stride, between, begin
        if whole and stride == 1 and values >= LANES:
            return APART, first * step, values, stride, values, 0
        return SINGLE, first * step, count * channels, channels, 1, 0

    @compiled
    def read_single(image, steps, source, rows, into):
        for x in range(source[2] // channels):
            for c in range(channels):
                for r in range(LANES):
                    at = image + source[1] + rows[r] + x * steps[2] + c * steps[0]
                    into[(x * channels + c) * LANES + r] = pointer(at, pixel)[0]

    @compiled
    def read(image, steps, source, rows, ready, needed, into, ends):
        """Read on until `needed` values of 16 rows are there; returns how many are.

        `image` is the image's address, `rows` has the rows' places in bytes from there. The last 16 values may be read
        again, so that nothing beyond the row is.
        """
        if source[0] == SINGLE:
            if ready == 0:
                read_single(image, steps, source, rows, into)
            return _ALL
        values = source[2]
        while ready < min(needed, values):
            at = min(ready, values - LANES)
            for c in range(channels if source[0] == APART else 1):
                address = image + source[1] + at * size + c * steps[0]
                load_across(pointer(address, pixel), rows, shifted(into, (c * values + at) * LANES))
            ready = at + LANES
        return ready

    return describe, read
