"""How rows of resized images are normalised, cast, and put where they belong."""

from collections.abc import Callable
from functools import cache

import numpy as np

from octopus.kernels.cpu import compiled, pointer
from octopus.kernels.cpu.store import CAST, saturate_uint8
from octopus.kernels.cpu.vectors import copy_block

LINE = 64  # bytes of a line of the cache


@cache
def finish_of(out_dtype: str) -> Callable:
    """A function that rounds (or not), normalises and casts `count` sums, each with a gain and a bias of its own."""
    cast = CAST[out_dtype]

    @compiled
    def finish(sums, gain, bias, rounds, count, into):
        if rounds:
            for i in range(count):
                into[i] = cast(saturate_uint8(np.float32(sums[i])) * gain[i] + bias[i])
        else:
            for i in range(count):
                into[i] = cast(np.float32(sums[i]) * gain[i] + bias[i])

    return finish


@compiled
def _copy(source, target, size):
    """Copy bytes; the last block may overlap the one before."""
    if size >= 32:
        last = size - 32
        for at in range(0, last, 32):
            copy_block(source + at, target + at, 32, False)
        copy_block(source + last, target + last, 32, False)
    elif size >= 16:
        copy_block(source, target, 16, False)
        copy_block(source + size - 16, target + size - 16, 16, False)
    else:
        for at in range(size):
            copy_block(source + at, target + at, 1, False)


@compiled
def _put(source, target, size, streams):
    """Copy bytes into the result; with `streams`, whole lines of the cache past it."""
    before = min(-target & (LINE - 1), size) if streams else size
    whole = (size - before) // LINE * LINE
    _copy(source, target, before)
    for at in range(before, before + whole, LINE):
        copy_block(source + at, target + at, LINE, True)
    _copy(source + before + whole, target + before + whole, size - before - whole)


@compiled
def place_row(line, room, target, y, start, stop, item):
    """Columns `start` to `stop` of row `y` of an image. `line` is the address of the first of these columns in the
    storage type: all channels of a column side by side, or channels `room` values apart; `target` that of the item,
    which is rows, columns, channels, whether channels lie apart, bytes of a value, whether to write past the caches."""
    rows, columns, channels, planar, size, streams = item
    planes, step = (channels, 1) if planar else (1, channels)
    for plane in range(planes):
        into = target + ((plane * rows + y) * columns + start) * step * size
        _put(line + plane * room * size, into, (stop - start) * step * size, streams)


@compiled
def _gather(source, step, target, size, count):
    """Runs of `size` bytes, `step` bytes apart, put one after the other."""
    if 32 <= size <= 64:
        for i in range(count):
            copy_block(source + i * step, target + i * size, 32, False)
            copy_block(source + i * step + size - 32, target + i * size + size - 32, 32, False)
    elif 16 <= size < 32:
        for i in range(count):
            copy_block(source + i * step, target + i * size, 16, False)
            copy_block(source + i * step + size - 16, target + i * size + size - 16, 16, False)
    else:
        for i in range(count):
            _copy(source + i * step, target + i * size, size)


@compiled
def place_patches(lines, line, room, target, down, start, stop, item, grid, row):
    """The patches number `down` from above, of columns `start` to `stop`, whole patches, as rows of the result. `lines`
    are as many rows as a patch is high, `line` bytes apart, within a row as for `place_row`; `target` is the item's
    first row, `row` memory for a row; `grid` the side of a patch, patches along a merged block, copies in time, values
    of a row."""
    _, columns, channels, planar, size, streams = item
    patch, merge, temporal, row_values = grid
    area, times = patch * patch * size, temporal if planar else 1
    row_bytes, filled = row_values * size, channels * area * times
    fill_zeros(row + filled, row_bytes - filled)
    above = down // merge * (columns // patch // merge) * merge * merge + down % merge * merge
    for across in range(start // patch, stop // patch):
        into = target + (above + across // merge * merge * merge + across % merge) * row_bytes
        values = lines + (across * patch - start) * (1 if planar else channels) * size
        if planar:
            for c in range(channels):
                block = row + c * times * area
                _gather(values + c * room * size, line, block, patch * size, patch)
                for t in range(1, times):
                    _copy(block, block + t * area, area)
        else:
            _gather(values, line, row, patch * channels * size, patch)
        _put(row, into, row_bytes, streams)


@compiled
def fill_zeros(target, size):
    into = pointer(target, np.uint8)
    for i in range(size):
        into[i] = 0
