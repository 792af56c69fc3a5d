"""What a tile of an image reads and works in: its record, its memory, and 16 rows, however pixels and channels lie.

What is read is turned: a vector holds one value of each of the rows, or, as int16, of two neighbouring pixels of each.
"""

from collections.abc import Callable
from functools import cache

import numpy as np

from octopus.kernels.cpu import allocate_floats, compiled, pointer, release, shifted
from octopus.kernels.cpu.images_store import LINE
from octopus.kernels.cpu.vectors import BLOCK, LANES, PAIRED, WIDE, copy_block, load_across, load_pairs
from octopus.kernels.images import IMAGE

MAX_STRIDE = 4  # values from pixel to pixel, up to which reading all of them costs less than fetching single ones
# Channels of a pixel lie within the values up to the next pixel; each in a plane of its own; or in some other way.
TOGETHER, APART, SINGLE = range(3)
# Before pairs: room for the ends of 16 rows, twice a block each, and their places.
ENDS = 2 * BLOCK * LANES + 8 * LANES
_ALL = 1 << 60
_WORD = 8
RECORD = IMAGE.itemsize


@compiled
def up(count, unit):
    return (count + unit - 1) // unit * unit


@cache
def reader_of(source_dtype: str, channels: int, paired: bool) -> tuple[Callable, Callable]:
    """Functions that describe a run of pixels, and that read it from 16 rows."""
    pixel, size = getattr(np, source_dtype), np.dtype(source_dtype).itemsize

    @compiled
    def describe(steps, first, count):
        """Of `count` pixels from pixel `first` on: `mode, bytes from the row's first pixel, values, stride, channel
        step, begin`; the last three count vectors, from pixel to pixel (or pair) and from channel to channel, and up to
        the first. `steps` are the image's, in bytes: from channel to channel, row to row, pixel to pixel."""
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
            return APART, first * step, values, stride, up(values, BLOCK) // 2 if paired else values, 0
        return SINGLE, first * step, count * channels, channels, 1, 0

    @compiled
    def read_single(image, steps, source, rows, into):
        for x in range(source[2] // channels):
            for c in range(channels):
                for r in range(LANES):
                    at = image + source[1] + rows[r] + x * steps[2] + c * steps[0]
                    value = pointer(at, pixel)[0]
                    if paired:
                        into[(x // 2 * channels + c) * PAIRED + 2 * r + x % 2] = value
                    else:
                        into[(x * channels + c) * LANES + r] = value

    @compiled
    def read_values(image, steps, source, rows, ready, needed, into, ends):
        """Read on until `needed` vectors are there; returns how many are. `image` is the image's address, `rows` has
        the rows' places in bytes from there, `ends` is memory of `ENDS` bytes. The last 16 values may be read again, so
        that nothing beyond the row is."""
        mode, begin, values, _, _, _ = source
        if mode == SINGLE:
            if ready == 0:
                read_single(image, steps, source, rows, into)
            return _ALL
        while ready < min(needed, values):
            at = min(ready, values - LANES)
            for c in range(channels if mode == APART else 1):
                address = image + begin + at * size + c * steps[0]
                load_across(pointer(address, pixel), rows, shifted(into, (c * values + at) * LANES))
            ready = at + LANES
        return ready

    @compiled
    def load_end(address, at, values, rows, stride, into, ends):
        """A block that reaches beyond the row's `values`: by way of memory of which all may be read."""
        places = pointer(ends + 2 * BLOCK * LANES, np.int64)
        for r in range(LANES):
            places[r] = 2 * BLOCK * r
            copy_block(address + rows[r] + values - BLOCK, ends + places[r], BLOCK, False)
        load_pairs(pointer(ends + at - (values - BLOCK), np.uint8), places, into, stride)

    @compiled
    def read_pairs(image, steps, source, rows, ready, needed, into, ends):
        mode, begin, values, stride, channel_step, _ = source
        if mode == SINGLE:
            if ready == 0:
                read_single(image, steps, source, rows, into)
            return _ALL
        vectors, used = (6, 12) if stride == 3 else (BLOCK // 2, BLOCK)
        while ready < needed:
            at = ready // vectors * used
            for c in range(channels if mode == APART else 1):
                address = image + begin + c * steps[0]
                to = shifted(into, (ready + c * channel_step) * PAIRED)
                if at + BLOCK <= values:
                    load_pairs(pointer(address + at, np.uint8), rows, to, stride)
                else:
                    load_end(address, at, values, rows, stride, to, ends)
            ready += vectors
        return ready

    return describe, read_pairs if paired else read_values


@compiled
def read_record(address):
    """The record of an image: address, place in the result, steps, sides before and after, corner of the item."""
    long, short = pointer(address, np.int64), pointer(address + 3 * _WORD, np.int32)
    steps = (long[2], np.int64(short[0]), np.int64(short[1]))
    sides = (np.int64(short[2]), np.int64(short[3]), np.int64(short[4]), np.int64(short[5]))
    return long[0], long[1], steps, sides, (np.int64(short[6]), np.int64(short[7]))


@compiled
def inside(start, stop, before, count):
    """The part of an item's rows or columns that the resized image has; `before` is its corner."""
    low = min(max(start, -before), stop)
    return low, max(min(stop, count - before), low)


@compiled
def _table(at, count, taps):
    """Addresses of an axis's starts, sizes and weights, and the end of them."""
    weights = at + 2 * _WORD * count
    return at, at + _WORD * count, weights, weights + up(4 * count * taps, _WORD)


@compiled
def carve(at, shape, turned, staged, patch_row, used):
    """Addresses of all that a tile needs; the last is the end of it, so that from 0 on it is the size."""
    # Turned values, behind room for the ends of their rows; sums of 16 columns; the ring; sums, gains, biases and
    # padding of a row; finished rows; a patch row; tables of both axes; places of rows used; weights of 16 pixels.
    wide, tall, _, line, slots, (taps_x, taps_y) = shape
    sums = at + ENDS + up(turned, LINE)
    ring = sums + WIDE * LANES * LINE
    total = ring + 4 * slots * line
    done = total + 4 * 4 * line
    row = done + up(staged, LINE)
    across = _table(row + up(patch_row, LINE), wide, taps_x)
    down = _table(across[3], tall, taps_y)
    scratch = down[3] + _WORD * (used + LANES)
    end = scratch + _WORD * LANES * (max(taps_x, taps_y) + 2)
    lines = (total, total + 4 * line, total + 8 * line, total + 12 * line)
    return at + ENDS, sums, ring, lines, done, row, across, down, down[3], scratch, end


@compiled
def grown(memory, needed):
    """Address and size of memory for so many bytes, by giving up what there was if that is smaller."""
    address, size = memory
    if needed + LINE <= size:
        return memory
    if address != 0:
        release(address)
    return allocate_floats((needed + LINE + 3) // 4), needed + LINE
