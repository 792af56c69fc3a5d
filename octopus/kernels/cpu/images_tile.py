"""One tile of an image: what is read of its record, and the memory that it works in."""

from __future__ import annotations

import numpy as np

from octopus.kernels.cpu import allocate_floats, compiled, pointer, release
from octopus.kernels.cpu.images_source import ENDS, up
from octopus.kernels.cpu.images_store import LINE
from octopus.kernels.cpu.vectors import LANES, WIDE
from octopus.kernels.images import IMAGE

_WORD = 8
RECORD = IMAGE.itemsize


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
    """Addresses of all a tile needs; the last is the end of it, so that from 0 on it is the size.

    Turned values, behind room for the ends of their rows; sums of 16 columns; the ring; sums, gains, biases and padding
    of a row; finished rows; a patch row; the tables of both axes; places of the rows used; weights of 16 pixels.
    """
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
