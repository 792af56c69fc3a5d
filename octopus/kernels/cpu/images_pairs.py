"""How images of uint8 are read, and weights kept, for sums of pairs in Pillow's fixed point."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from octopus.kernels.cpu import compiled, pointer, shifted
from octopus.kernels.cpu.images_source import _ALL, APART, MAX_STRIDE, SINGLE, TOGETHER
from octopus.kernels.cpu.vectors import LANES, copy_block
from octopus.kernels.cpu.vectors_pairs import BLOCK, PAIRED, load_pairs

# Before the pairs: room for the ends of 16 rows, twice a block each, and their places.
ENDS = 2 * BLOCK * LANES + 8 * LANES


@compiled
def pair_up(table, count, origin, spare):
    """Turn an axis's table of weights into one of pairs of weights, of pixels counted from `origin` in pairs.

    For each pair of pixels there are two int32, of the low and of the high 16 bits of both weights; one is 0 where the
    window begins or ends within a pair. The table's weights, and `spare`, need two more elements than taps.
    """
    starts, sizes, weights, pitch, _ = table
    for i in range(count):
        own, odd, size = shifted(weights, i * pitch), (starts[i] - origin) & 1, sizes[i]
        spare[0], spare[odd + size] = 0, 0
        for k in range(size):
            spare[odd + k] = own[k]
        pairs = (odd + size + 1) // 2
        for pair in range(pairs):
            one, other = spare[2 * pair], spare[2 * pair + 1]
            own[2 * pair] = (one & 0xFFFF) | (other << 16)
            own[2 * pair + 1] = (((one + 0x8000) >> 16) & 0xFFFF) | (((other + 0x8000) >> 16) << 16)
        starts[i], sizes[i] = (starts[i] - origin) // 2, pairs


@cache
def pair_reader_of(channels: int) -> tuple[Callable, Callable]:
    """Functions that describe a run of pixels, and that read it from 16 rows; as `images_source.reader_of`.

    A vector holds one value of two neighbouring pixels, for each of the rows, as int16.
    """

    @compiled
    def describe(steps, first, count):
        """As in `reader_of`; the vectors are those from pair to pair, and the values are bytes of a row."""
        plane, _, stride = steps
        between = plane if channels > 1 else 0
        reach = abs(between) * (channels - 1)
        values = (count - 1) * stride + 1
        if stride >= 1 and stride <= MAX_STRIDE and reach < stride and values + reach >= BLOCK:
            begin = reach if between < 0 else 0
            return TOGETHER, first * stride - begin, values + reach, stride, between, begin
        if stride == 1 and values >= BLOCK:
            return APART, first, values, stride, (count + BLOCK - 1) // BLOCK * (BLOCK // 2), 0
        return SINGLE, first * stride, count * channels, channels, 1, 0

    @compiled
    def read_single(image, steps, source, rows, into):
        for x in range(source[2] // channels):
            for c in range(channels):
                for r in range(LANES):
                    at = image + source[1] + rows[r] + x * steps[2] + c * steps[0]
                    into[(x // 2 * channels + c) * PAIRED + 2 * r + x % 2] = pointer(at, np.uint8)[0]

    @compiled
    def load(address, rows, stride, into):
        if stride == 1:
            load_pairs(pointer(address, np.uint8), rows, into, 1)
        elif stride == 2:
            load_pairs(pointer(address, np.uint8), rows, into, 2)
        elif stride == 3:
            load_pairs(pointer(address, np.uint8), rows, into, 3)
        else:
            load_pairs(pointer(address, np.uint8), rows, into, 4)

    @compiled
    def load_end(address, at, values, rows, stride, into, ends):
        """A block that reaches beyond the row's `values`: by way of memory of which all may be read."""
        places = pointer(ends + 2 * BLOCK * LANES, np.int64)
        for r in range(LANES):
            places[r] = 2 * BLOCK * r
            copy_block(address + rows[r] + values - BLOCK, ends + places[r], BLOCK, False)
        load(ends + at - (values - BLOCK), places, stride, into)

    @compiled
    def read(image, steps, source, rows, ready, needed, into, ends):
        """Read on until `needed` vectors are there; returns how many are. `ends` is memory of `ENDS` bytes."""
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
                    load(address + at, rows, stride, to)
                else:
                    load_end(address, at, values, rows, stride, to, ends)
            ready += vectors
        return ready

    return describe, read
