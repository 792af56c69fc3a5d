"""Crops by single samples on the CPU: nearest, bicubic, and affine maps; the simple road, on which no row is reused.

Bands are those of `bands`. Of a box the columns' pixels and weights are found once per band, of an affine map for each
sample anew.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from octopus.kernels import geometry, sampling
from octopus.kernels.cpu import allocate_floats, compiled, pointer, release, shifted
from octopus.kernels.cpu.bands import kernel_of
from octopus.kernels.cpu.store import bfloat16_bits, half_bits
from octopus.kernels.cpu.video import VIDEO, value_of_video

_centre = compiled(sampling.centre)
_saturate_uint8 = compiled(geometry.saturate_uint8)
_FAR = sampling.FAR


@compiled
def _itself(value):
    return value


@compiled
def _byte(value):
    return np.uint8(_saturate_uint8(value))


_VALUES = {"float32": _itself, "uint8": _byte, "float16": half_bits, "bfloat16": bfloat16_bits}


@compiled
def _read(frame, start, pitch, row, column, channel):
    place = 2 - channel if frame[5] else channel
    return np.float32(frame[0][np.int64(row) * frame[1] + np.int64(column) * frame[4] + place])


@compiled
def _read_video(frame, start, pitch, row, column, channel):
    return value_of_video(frame, np.int64(row), np.int64(column), channel)


def build(frame_dtype: str, out_dtype: str, kind: str, maps: bool, order: str = "RGB") -> Callable:
    """The kernel for frames, a dtype of results and a filter, of boxes or of affine maps; see `bands.kernel_of`."""
    read, taps, value_of = (
        _read_video if frame_dtype in VIDEO else _read,
        sampling.TAPS[kind],
        _VALUES[out_dtype],
    )
    locate, mix = sampling.sampler(compiled, kind, read, padded=True)

    @compiled
    def store_pixel(frame, rows, columns, down, across, out, step, channels, normal):
        """All channels of a pixel of the result, `step` values apart."""
        gain, bias, pad = normal
        for c in range(channels):
            value = mix(
                frame, np.int64(0), frame[1], c, rows, columns, down, across, gain[c], bias[c], pad[c]
            )
            out[c * step] = value_of(value)

    @compiled
    def box_band(frame, horizontal, vertical, place, row, stop, out, layout, normal, outside):
        """Rows `row` to `stop` of one item's image; whether there was memory for it."""
        left, last_x, origin_x, extent_x = horizontal
        top, last_y, origin_y, extent_y = vertical
        before, above, inner_columns, inner_rows = place
        columns, rows, planes, channels = layout
        width, height = np.int32(frame[2]), np.int32(frame[3])
        inner = np.int64(inner_columns)
        memory = allocate_floats(2 * taps * (inner + 1))
        if memory == 0:
            return False
        across, pixels = pointer(memory, np.float32), pointer(memory + 4 * taps * inner, np.int32)
        down, lines = shifted(across, 2 * taps * inner), shifted(pixels, taps * (inner + 1))
        for x in range(inner):
            position = _centre(np.int32(x), extent_x, inner_columns, origin_x)
            locate(
                position, left, np.int32(0), last_x, width, outside, shifted(pixels, taps * x),
                shifted(across, taps * x),
            )  # fmt: skip
        step, along = (rows * columns, np.int64(1)) if planes == channels else (np.int64(1), channels)
        for y in range(row, stop):
            position = _centre(np.int32(y), extent_y, inner_rows, origin_y)
            locate(position, top, np.int32(0), last_y, height, outside, lines, down)
            into = shifted(out, ((above + y) * columns + before) * along)
            for x in range(inner):
                store_pixel(
                    frame, lines, shifted(pixels, taps * x), down, shifted(across, taps * x),
                    shifted(into, x * along), step, channels, normal,
                )  # fmt: skip
        release(memory)
        return True

    @compiled
    def map_band(frame, horizontal, vertical, place, row, stop, out, layout, normal, outside):
        """The same for an affine map, whose two axes are three numbers each."""
        columns, rows, planes, channels = layout
        width, height = np.int32(frame[2]), np.int32(frame[3])
        memory = allocate_floats(np.int64(4 * taps))
        if memory == 0:
            return False
        across, pixels = pointer(memory, np.float32), pointer(memory + 8 * taps, np.int32)
        down, lines = shifted(across, taps), shifted(pixels, taps)
        step, along = (rows * columns, np.int64(1)) if planes == channels else (np.int64(1), channels)
        for y in range(row, stop):
            into = shifted(out, y * columns * along)
            for x in range(columns):
                at = horizontal[0] * np.float32(x) + horizontal[1] * np.float32(y) + horizontal[2]
                locate(at, np.int32(0), -_FAR, _FAR, width, outside, pixels, across)
                at = vertical[0] * np.float32(x) + vertical[1] * np.float32(y) + vertical[2]
                locate(at, np.int32(0), -_FAR, _FAR, height, outside, lines, down)
                store_pixel(
                    frame, lines, pixels, down, across, shifted(into, x * along), step, channels, normal
                )
        release(memory)
        return True

    if maps:
        return kernel_of(
            map_band, frame_dtype, out_dtype, options=False, plain_axes=_map_axes, numbers=sampling.MAP_NUMBERS,
            order=order,
        )  # fmt: skip
    return kernel_of(box_band, frame_dtype, out_dtype, order=order)


@compiled
def _map_axes(numbers, frame):
    return (numbers[0], numbers[1], numbers[2]), (numbers[3], numbers[4], numbers[5])
