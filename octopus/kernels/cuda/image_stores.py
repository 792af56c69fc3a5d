"""From sums of the second pass to the result of `image_tiles`: rounding, a stage in shared memory, whole stores."""

from collections.abc import Callable

import numpy as np

from octopus.backends.cuda.language import bits_as_float, device, float_as_bits
from octopus.kernels import images
from octopus.kernels.cuda import ptx
from octopus.kernels.cuda.image_kind import ImageKernel
from octopus.kernels.cuda.image_passes import SCALE

HALF = 1 << (SCALE - 1)
MAGIC = ptx.MAGIC_VALUE


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


def stager(kernel: ImageKernel) -> tuple[Callable, Callable]:
    """Device functions: where the sums of a lane go; put those of the left and right 8 columns there, for a channel."""
    side, channels = kernel.side, kernel.together
    to_pixel = _to_byte if kernel.rounding == "pillow" else _to_pixel
    exact = kernel.rounding == "none"
    unit = np.float32(2.0**-SCALE)
    item, spare = kernel.item, kernel.stage_bytes - 32

    @device
    def put(at, a, b):
        if exact:
            first = float_as_bits(np.float32(a) * unit)
            second = float_as_bits(np.float32(b) * unit)
            if channels == 1:
                ptx.store2(at, (first, second))
            else:
                ptx.store1(at, (first,))
                ptx.store1(np.uint32(at + channels * item), (second,))
        else:
            both = ptx.pack_two(to_pixel(a), to_pixel(b))
            if channels == 1:
                ptx.store_half(at, (both,))
            else:
                ptx.store_byte(at, (both,))
                ptx.store_byte(np.uint32(at + channels), (np.uint32(both >> 8),))

    @device
    def place(stage, row, column):
        inside = row < side and column < side
        at = np.int32((row * side + column) * (channels * item))
        return np.uint32(stage + np.uint32(at if inside else spare))

    @device
    def places(stage, lane):
        """Where a lane's four pairs of sums go, those that are no part of the block behind it."""
        row, column = np.int32(lane >> 2), np.int32(2 * (lane & 3))
        return (
            place(stage, row, column), place(stage, np.int32(row + 8), column),
            place(stage, row, np.int32(column + 8)), place(stage, np.int32(row + 8), np.int32(column + 8)),
        )  # fmt: skip

    @device
    def fill(at, left, right, channel):
        shift = np.uint32(channel * item)
        put(np.uint32(at[0] + shift), left[0], left[1])
        put(np.uint32(at[1] + shift), left[2], left[3])
        put(np.uint32(at[2] + shift), right[0], right[1])
        put(np.uint32(at[3] + shift), right[2], right[3])

    return places, fill


@device
def choose(values, channel):
    """One of four values; an index that is not known when compiled would put them into local memory."""
    low = values[1] if channel & 1 else values[0]
    high = values[3] if channel & 1 else values[2]
    return high if channel & 2 else low


def _readers(kernel: ImageKernel) -> tuple[Callable, Callable]:
    """Device functions: four values of the stage from number `i` on, a multiple of 4, normalised, and one as it is."""
    exact = kernel.rounding == "none"

    @device
    def words(stage, i):
        if exact:
            found = ptx.load4(np.uint32(stage + np.uint32(4 * i)))
            return bits_as_float(found[0]), bits_as_float(found[1]), bits_as_float(found[2]), bits_as_float(found[3])
        word = ptx.load1(np.uint32(stage + np.uint32(i)))[0]
        return ptx.byte0(word) - MAGIC, ptx.byte1(word) - MAGIC, ptx.byte2(word) - MAGIC, ptx.byte3(word) - MAGIC

    @device
    def four(stage, i, gain, bias):
        a, b, c, d = words(stage, i)
        return a * gain[0] + bias[0], b * gain[0] + bias[0], c * gain[0] + bias[0], d * gain[0] + bias[0]

    @device
    def one(stage, i):
        if exact:
            return bits_as_float(ptx.load1(np.uint32(stage + np.uint32(4 * i)))[0])
        word = ptx.load1(np.uint32(stage + np.uint32(i & -4)))[0]
        return ptx.byte0(np.uint32(word >> np.uint32(8 * (i & 3)))) - MAGIC

    return four, one


def run_store(kernel: ImageKernel) -> Callable:
    """A device function: a block that is a run of the result, `temporal` times one behind the other."""
    channels, copies = kernel.together, kernel.temporal
    count = kernel.side * kernel.side * channels
    turns = -(-count // 128)
    four, one = _readers(kernel)
    store4, store1 = (ptx.streaming_store(kernel.dtype, number, True, True) for number in (4, 1))

    @device
    def store(out, at, stage, lane, gain, bias, whole):
        if channels == 1 and whole:
            at += np.int64(4 * lane)
            for turn in range(turns):
                i = np.int32(4 * lane + 128 * turn)
                if 128 * (turn + 1) <= count or i < count:
                    values = four(stage, i, gain, bias)
                    for copy in range(copies):
                        store4(out, at + np.int64(128 * turn + copy * count), values)
            return
        i = np.int32(lane)
        while i < count:
            channel = np.int32(np.uint32(i) % np.uint32(channels))
            value = one(stage, i) * choose(gain, channel) + choose(bias, channel)
            for copy in range(copies):
                store1(out, at + np.int64(i + copy * count), (value,))
            i = ptx.opaque(np.int32(i + 32))

    return store


def zeros_store(kernel: ImageKernel) -> Callable:
    """A device function: the zeros behind a row, from element `at` on."""
    store1, zero, count = ptx.streaming_store(kernel.dtype, 1, True, True), ptx.zero_of(kernel.dtype), kernel.zeros

    @device
    def store(out, at, lane):
        i = np.int32(lane)
        while i < count:
            store1(out, at + np.int64(i), (zero,))
            i = ptx.opaque(np.int32(i + 32))

    return store


def rows_store(kernel: ImageKernel) -> Callable:
    """A device function: a block of which each row is a run of the result, `pitch` elements from one to the next."""
    channels = kernel.together
    across = kernel.side * channels
    count = kernel.side * across
    four, one = _readers(kernel)
    store4, store1 = (ptx.streaming_store(kernel.dtype, number, True, True) for number in (4, 1))

    @device
    def store(out, at, pitch, stage, lane, gain, bias, whole, rows, values):
        """`rows`, `values`: how many rows, and values of a row, the result has left."""
        if channels == 1 and whole:
            i = np.int32(4 * lane)
            while i < count:
                row = np.int32(np.uint32(i) // np.uint32(across))
                along = np.int32(i - row * across)
                if row < rows and along < values:
                    found = four(stage, i, gain, bias)
                    store4(out, at + np.int64(row) * np.int64(pitch) + np.int64(along), found)
                i = ptx.opaque(np.int32(i + 128))
            return
        i = np.int32(lane)
        while i < count:
            row = np.int32(np.uint32(i) // np.uint32(across))
            along = np.int32(i - row * across)
            if row < rows and along < values:
                channel = np.int32(np.uint32(along) % np.uint32(channels))
                value = one(stage, i) * choose(gain, channel) + choose(bias, channel)
                store1(out, at + np.int64(row) * np.int64(pitch) + np.int64(along), (value,))
            i = ptx.opaque(np.int32(i + 32))

    return store
