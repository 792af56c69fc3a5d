"""From sums of the second pass to the result of `image_tiles`: rounding, a stage in shared memory, whole stores."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from octopus.backends.cuda.language import bits_as_float, device, float_as_bits
from octopus.kernels import images
from octopus.kernels.cuda import ptx
from octopus.kernels.cuda import ptx as words
from octopus.kernels.cuda.image_kind import Block
from octopus.kernels.cuda.image_passes import SCALE

HALF = 1 << (SCALE - 1)
_byte0, _byte1, _byte2, _byte3 = ptx.byte0, ptx.byte1, ptx.byte2, ptx.byte3
MAGIC = np.float32(8388608.0)


@device
def _to_pixel(moved):
    """A sum of the second pass and `HALF`, rounded half to even, not yet cut to 0..255."""
    value = np.int32(moved >> SCALE)
    if np.int32(moved & (2 * HALF - 1)) == 0:
        value = np.int32(value & -2)
    return value


@device
def _to_byte(total):
    return np.int32(total >> images.FIXED_BITS)


def stager(block: Block) -> tuple[Callable, Callable]:
    """Device functions: where the sums of a lane go; put those of the left and right 8 columns there, for a channel."""
    rows, columns, channels = block.rows, block.columns, block.channels
    to_pixel = _to_byte if block.rounding == "pillow" else _to_pixel
    exact = block.rounding == "none"
    unit = np.float32(2.0**-SCALE)
    item, spare = block.item, block.stage_bytes - 32

    @device
    def put(at, a, b):
        if exact:
            first = float_as_bits(np.float32(a) * unit)
            second = float_as_bits(np.float32(b) * unit)
            if channels == 1:
                words.store2(at, (first, second))
            else:
                words.store1(at, (first,))
                words.store1(np.uint32(at + channels * item), (second,))
        else:
            both = words.pack_two(to_pixel(a), to_pixel(b))
            if channels == 1:
                words.store_half(at, (both,))
            else:
                words.store_byte(at, (both,))
                words.store_byte(np.uint32(at + channels), (np.uint32(both >> 8),))

    @device
    def place(stage, row, column):
        inside = row < rows and column < columns
        at = np.int32((row * columns + column) * (channels * item))
        return np.uint32(stage + np.uint32(at if inside else spare))

    @device
    def places(stage, lane):
        """Where a lane's four pairs of sums go, those that are no part of the block behind it."""
        row, column = np.int32(lane >> 2), np.int32(2 * (lane & 3))
        return (
            place(stage, row, column),
            place(stage, np.int32(row + 8), column),
            place(stage, row, np.int32(column + 8)),
            place(stage, np.int32(row + 8), np.int32(column + 8)),
        )

    @device
    def fill(at, left, right, channel):
        shift = np.uint32(channel * item)
        put(np.uint32(at[0] + shift), left[0], left[1])
        put(np.uint32(at[1] + shift), left[2], left[3])
        put(np.uint32(at[2] + shift), right[0], right[1])
        put(np.uint32(at[3] + shift), right[2], right[3])

    return places, fill


def _readers(block: Block) -> tuple[Callable, Callable]:
    """Device functions: four values of the stage from number `i` on, a multiple of 4, and value number `i` alone."""
    exact = block.rounding == "none"

    @device
    def four(stage, i):
        if exact:
            found = words.load4(np.uint32(stage + np.uint32(4 * i)))
            return (
                bits_as_float(found[0]), bits_as_float(found[1]),
                bits_as_float(found[2]), bits_as_float(found[3]),
            )  # fmt: skip
        word = words.load1(np.uint32(stage + np.uint32(i)))[0]
        return _byte0(word) - MAGIC, _byte1(word) - MAGIC, _byte2(word) - MAGIC, _byte3(word) - MAGIC

    @device
    def one(stage, i):
        if exact:
            return bits_as_float(words.load1(np.uint32(stage + np.uint32(4 * i)))[0])
        word = words.load1(np.uint32(stage + np.uint32(i & -4)))[0]
        return _byte0(np.uint32(word >> np.uint32(8 * (i & 3)))) - MAGIC

    return four, one


@device
def choose(values, channel):
    """One of four values; an index that is not known when compiled would put them into local memory."""
    low = values[1] if channel & 1 else values[0]
    high = values[3] if channel & 1 else values[2]
    return high if channel & 2 else low


def run_store(block: Block, copies: int, pairs: bool = True) -> Callable:
    """A device function: a block that is a run of the result, `copies` times one behind the other."""
    count = block.rows * block.columns * block.channels
    four, one = _readers(block)
    store4 = ptx.streaming_store(block.dtype, 4, True, pairs)
    store1 = ptx.streaming_store(block.dtype, 1, True, pairs)
    channels, turns = block.channels, -(-count // 128)

    @device
    def store(out, at, stage, lane, gain, bias, whole):
        if channels == 1 and whole:
            at += np.int64(4 * lane)
            for turn in range(turns):
                i = np.int32(4 * lane + 128 * turn)
                if 128 * (turn + 1) <= count or i < count:
                    a, b, c, d = four(stage, i)
                    values = (
                        a * gain[0] + bias[0], b * gain[0] + bias[0],
                        c * gain[0] + bias[0], d * gain[0] + bias[0],
                    )  # fmt: skip
                    for copy in range(copies):
                        store4(out, at + np.int64(128 * turn + copy * count), values)
            return
        i = np.int32(lane)
        while i < count:
            channel = np.int32(np.uint32(i) % np.uint32(channels))
            value = one(stage, i) * choose(gain, channel) + choose(bias, channel)
            for copy in range(copies):
                store1(out, at + np.int64(i + copy * count), (value,))
            i = words.opaque(np.int32(i + 32))

    return store


def rows_store(block: Block, pairs: bool = True) -> Callable:
    """A device function: a block of which each row is a run of the result, `pitch` elements from one to the next."""
    columns, channels = block.columns, block.channels
    across = columns * channels
    count = block.rows * across
    four, one = _readers(block)
    store4 = ptx.streaming_store(block.dtype, 4, True, pairs)
    store1 = ptx.streaming_store(block.dtype, 1, True, pairs)

    @device
    def store(out, at, pitch, stage, lane, gain, bias, whole, rows, values):
        """`rows`, `values`: how many rows, and values of a row, the result has left."""
        if channels == 1 and whole:
            i = np.int32(4 * lane)
            while i < count:
                row = np.int32(np.uint32(i) // np.uint32(across))
                along = np.int32(i - row * across)
                if row < rows and along < values:
                    a, b, c, d = four(stage, i)
                    found = (
                        a * gain[0] + bias[0], b * gain[0] + bias[0],
                        c * gain[0] + bias[0], d * gain[0] + bias[0],
                    )  # fmt: skip
                    store4(out, at + np.int64(row) * np.int64(pitch) + np.int64(along), found)
                i = words.opaque(np.int32(i + 128))
            return
        i = np.int32(lane)
        while i < count:
            row = np.int32(np.uint32(i) // np.uint32(across))
            along = np.int32(i - row * across)
            if row < rows and along < values:
                channel = np.int32(np.uint32(along) % np.uint32(channels))
                value = one(stage, i) * choose(gain, channel) + choose(bias, channel)
                store1(out, at + np.int64(row) * np.int64(pitch) + np.int64(along), (value,))
            i = words.opaque(np.int32(i + 32))

    return store
