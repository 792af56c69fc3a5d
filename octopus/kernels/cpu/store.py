"""How results are stored, by their dtype; all functions of pointers to a row."""

from collections.abc import Callable
from functools import cache

import numpy as np

from octopus.kernels import geometry, images
from octopus.kernels.cpu import FLOAT32_BYTES, address_of, compiled, shifted
from octopus.kernels.cpu.vectors import LANES, VECTOR_BYTES, mix_rows, mix_some, take_apart

saturate_uint8 = compiled(geometry.saturate_uint8)
# Numba knows neither of the small floats on CPUs: their bits are stored, and those of a byte less 128.
STORED = {
    "float32": np.float32, "uint8": np.uint8, "int8": np.uint8, "float16": np.uint16, "bfloat16": np.uint16,
}  # fmt: skip

bfloat16_bits = compiled(images.bfloat16_bits)


@compiled
def half_bits(value):
    """Bits of the float16 nearest to a float32, ties to even."""
    bits = np.float32(value).view(np.uint32)
    sign = np.uint32(bits & np.uint32(0x80000000))
    bits = np.uint32(bits ^ sign)
    if bits >= np.uint32(0x47800000):  # 65536 and more, infinity, NaN
        half = np.uint32(0x7E00) if bits > np.uint32(0x7F800000) else np.uint32(0x7C00)
    elif bits < np.uint32(0x38800000):  # below 2**-14
        # Adding 0.5 lets the floating-point unit do the shift and the rounding.
        shifted = np.float32(bits.view(np.float32) + np.float32(0.5))
        half = np.uint32(shifted.view(np.uint32) - np.uint32(0x3F000000))
    else:
        # One integer addition moves the exponent and rounds the 13 lost bits.
        odd = np.uint32((bits >> np.uint32(13)) & np.uint32(1))
        half = np.uint32((bits - np.uint32(0x38000000) + np.uint32(0xFFF) + odd) >> np.uint32(13))
    return np.uint16(half | (sign >> np.uint32(16)))


# A value as it is stored.
CAST = {
    "float32": compiled(lambda value: value), "float16": half_bits, "bfloat16": bfloat16_bits,
    "uint8": compiled(lambda value: np.uint8(saturate_uint8(value))),
    "int8": compiled(lambda value: np.uint8(np.uint8(saturate_uint8(value)) ^ np.uint8(128))),
}  # fmt: skip


@compiled
def _float32(out, above, below, weight, count):
    at = min(-address_of(out) % VECTOR_BYTES // FLOAT32_BYTES, count)  # where a line of the cache begins
    mix_some(above, below, weight, at, out)
    blocks = (count - at) // LANES
    mix_rows(shifted(above, at), shifted(below, at), weight, blocks, shifted(out, at))
    at += blocks * LANES
    mix_some(shifted(above, at), shifted(below, at), weight, count - at, shifted(out, at))


@compiled
def _uint8(out, above, below, weight, count):
    blocks = count // LANES
    mix_rows(above, below, weight, blocks, out)
    at = blocks * LANES
    mix_some(shifted(above, at), shifted(below, at), weight, count - at, shifted(out, at))


def _small(out_dtype: str) -> Callable:
    bits_of = CAST[out_dtype]

    @compiled
    def store(out, above, below, weight, count):
        for i in range(count):
            out[i] = bits_of(above[i] + weight * (below[i] - above[i]))

    return store


# Write a row between two float32 ones: `out, above, below, weight of the one below, number of values`.
ROWS = {"float32": _float32, "uint8": _uint8, "float16": _small("float16"), "bfloat16": _small("bfloat16")}


@compiled
def _planes_of_row(row, room, channels, into):
    """Channels that lie side by side, `room` values apart."""
    if channels == 3 or channels == 4:
        take_apart(row, room // LANES, into, room, channels)
    else:
        for c in range(channels):
            line = shifted(into, c * room)
            for x in range(room):
                line[x] = row[x * channels + c]


@cache
def run_of(out_dtype: str) -> Callable:
    """What writes `count` neighbouring pixels of a row of the result, whose channels lie side by side in `line`."""
    store = ROWS[out_dtype]

    @compiled
    def store_run(line, apart, column, row, count, out, layout):
        columns, rows, planes, channels = layout
        if planes == 1:
            store(shifted(out, (row * columns + column) * channels), line, line, np.float32(0.0), count * channels)
            return
        room = (count + LANES - 1) // LANES * LANES
        _planes_of_row(line, room, channels, apart)
        for p in range(planes):
            part = shifted(apart, p * room)
            store(shifted(out, (p * rows + row) * columns + column), part, part, np.float32(0.0), count)

    return store_run
