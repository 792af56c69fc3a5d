"""How rows of resized images are normalised, cast, and put where they belong."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from octopus.kernels import geometry, images
from octopus.kernels.cpu import compiled
from octopus.kernels.cpu.store import _half_bits
from octopus.kernels.cpu.vectors import copy_block

_saturate_uint8 = compiled(geometry.saturate_uint8)
_bfloat16_bits = compiled(images.bfloat16_bits)
# Numba knows neither of the small floats on CPUs: their bits are stored.
STORED = {"float32": np.float32, "uint8": np.uint8, "float16": np.uint16, "bfloat16": np.uint16}


@compiled
def _float32(value):
    return value


@compiled
def _uint8(value):
    return np.uint8(_saturate_uint8(value))


_CAST = {"float32": _float32, "uint8": _uint8, "float16": _half_bits, "bfloat16": _bfloat16_bits}


def finish_of(out_dtype: str) -> Callable:
    """A function that rounds (or not), normalises and casts `count` sums, each with a gain and a bias of its own."""
    cast = _CAST[out_dtype]

    @compiled
    def finish(sums, gain, bias, rounds, count, into):
        if rounds:
            for i in range(count):
                into[i] = cast(_saturate_uint8(np.float32(sums[i])) * gain[i] + bias[i])
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
            copy_block(source + at, target + at, 32)
        copy_block(source + last, target + last, 32)
    elif size >= 16:
        copy_block(source, target, 16)
        copy_block(source + size - 16, target + size - 16, 16)
    else:
        for at in range(size):
            copy_block(source + at, target + at, 1)


@compiled
def place_row(line, room, target, y, start, stop, item):
    """Columns `start` to `stop` of row `y` of an image.

    Parameters
    ----------
    line : address
        Of the first of these columns in the storage type: all channels of a column side by side, or channels `room`
        values apart.
    target : address
        Of the item.
    item
        Rows, columns, channels, whether channels lie apart, bytes of a value.
    """
    rows, columns, channels, planar, size = item
    if not planar:
        _copy(line, target + (y * columns + start) * channels * size, (stop - start) * channels * size)
        return
    for c in range(channels):
        into = target + ((c * rows + y) * columns + start) * size
        _copy(line + c * room * size, into, (stop - start) * size)


@compiled
def place_patches(line, room, target, y, start, stop, item, grid):
    """The same, where the result is rows of patches; `start` and `stop` are whole patches.

    `grid` is the side of a patch, patches along a merged block, and copies in time.
    """
    _, columns, channels, planar, size = item
    patch, merge, temporal = grid
    down, inner = y // patch, y % patch
    block_row = down // merge * (columns // patch // merge) * merge * merge + down % merge * merge
    length = channels * patch * patch * (temporal if planar else 1)
    for across in range(start // patch, stop // patch):
        number = block_row + across // merge * merge * merge + across % merge
        into = target + number * length * size
        values = line + (across * patch - start) * (1 if planar else channels) * size
        if planar:
            for c in range(channels):
                for t in range(temporal):
                    at = into + ((c * temporal + t) * patch + inner) * patch * size
                    _copy(values + c * room * size, at, patch * size)
        else:
            _copy(values, into + inner * patch * channels * size, patch * channels * size)
