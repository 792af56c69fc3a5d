"""Fused crop, resize, normalise and convert on the CPU, over bands of rows as on the GPU.

A band is a run of one item's output rows; threads take one after the other. Within a band two source rows,
interpolated horizontally and already normalised, are kept and reused for every output row between them, so that the
inner loop is one vectorised multiply-add per value, straight into the result's memory.

A source row of bytes becomes columns 16 at a time, by one load of eight bytes for each, see `vectors`. Of any
other frame a row is normalised first, once each pixel, where a box grows, since the result has many more columns; where
it shrinks, only the two pixels that each column needs. `docs/kernels.md` has its steps, measured.
"""

from collections.abc import Callable
from functools import cache

import numpy as np

from octopus.kernels import geometry
from octopus.kernels.cpu import allocate_floats, as_elements, compiled, pointer, release, shifted
from octopus.kernels.cpu.bands import is_inside, kernel_of, pixel_of
from octopus.kernels.cpu.store import ROWS
from octopus.kernels.cpu.vectors import FETCHED, LANES, MOST_CHANNELS, VECTOR_BYTES, columns_of_bytes, columns_of_video
from octopus.kernels.cpu.video import VIDEO, readable_row, value_of_video

_sample = compiled(geometry.sample)


def build(
    frame_dtype: str, out_dtype: str, options: bool, order: str = "RGB", make: Callable = kernel_of
) -> Callable:  # fmt: skip
    """The kernel for frames and a dtype of results, with options or without; see `bands.kernel_of`, which is `make`."""
    band = band_of(frame_dtype, out_dtype, options, order)
    return make(band, frame_dtype, out_dtype, options=options, order=order)


@cache
def band_of(frame_dtype: str, out_dtype: str, options: bool, order: str = "RGB") -> Callable:
    store = ROWS[out_dtype]
    inside, beyond = _interpolate, _beyond_of(load_any_of(frame_dtype))
    if frame_dtype == "uint8":
        inside = _interpolate_bytes if order == "RGB" else _ordered_bytes_of(order)
    if frame_dtype in VIDEO:
        inside = _interpolate_video

    @compiled
    def interpolate_any(frame, row, horizontal, taps, layout, normal, outside, values, into):
        """The same for a box that may reach beyond the frame; `row` is -1 where the constant is all there is."""
        if row >= 0 and is_inside(horizontal, frame[2]):
            inside(frame, row, horizontal, taps, layout, normal, outside, values, into)
        else:
            beyond(frame, row, horizontal, taps, layout, normal, outside, values, into)

    interpolate, row_of = (interpolate_any, pixel_of) if options else (inside, _row)

    @compiled
    def crop_band(frame, horizontal, vertical, place, row, stop, out, layout, normal, outside):
        """Rows `row` to `stop` of one item's image; whether there was memory for it."""
        _, last_x, origin_x, extent_x = horizontal
        top, last_y, origin_y, extent_y = vertical
        before, above_it, columns, rows = place
        all_columns, all_rows, planes, channels = layout
        step = channels // planes
        room = (np.int64(columns) + LANES - 1) // LANES * LANES
        length, line, count = np.int64(columns) * step, room * step, np.int64(last_x) + 1
        memory = allocate_floats(4 * room + 2 * count + 2 * planes * line + channels + FETCHED + 2 * LANES)
        if memory == 0:
            return False
        start = memory + (-memory & (VECTOR_BYTES - 1))
        places, weights = pointer(start, np.int64), pointer(start + 8 * room, np.float32)
        lows = pointer(start + 12 * room, np.uint32)
        above = shifted(weights, 2 * room)
        below = shifted(above, planes * line)
        values = shifted(below, planes * line)
        _sample_columns(
            lows, places, weights, columns, room, extent_x / np.float32(columns), origin_x, last_x, frame[4]
        )
        scale_y = extent_y / np.float32(rows)
        current = np.int32(-2)
        for y in range(row, stop):
            low, high, weight = _sample(np.int64(y), scale_y, origin_y, last_y)
            if low != current:
                ahead = _next_row(y, low, scale_y, origin_y, last_y) * frame[1]
                taps = (lows, places, weights, np.int64(columns), room, ahead)
                if low == current + 1:
                    above, below = below, above
                else:
                    interpolate(
                        frame, row_of(top + low, frame[3], outside), horizontal, taps, layout, normal, outside,
                        values, above,
                    )  # fmt: skip
                interpolate(
                    frame, row_of(top + high, frame[3], outside), horizontal, taps, layout, normal, outside,
                    values, below,
                )  # fmt: skip
                current = low
            for p in range(planes):
                into = shifted(out, (p * all_rows + above_it + y) * all_columns * step + before * step)
                store(into, shifted(above, p * line), shifted(below, p * line), weight, length)
        release(memory)
        return True

    return crop_band


@compiled
def _next_row(y, low, scale, origin, last):
    """Rows from the one above row `y` of the result to that above the next, which is asked for in the meantime."""
    return np.int64(_sample(np.int64(y) + 1, scale, origin, last)[0]) - np.int64(low)


@compiled
def _sample_columns(lows, places, weights, columns, room, scale, origin, last, channels):
    """Each column's left pixel, its place in the row, and the share of its right one; up to `room` the last repeats."""
    for x in range(room):
        low, _, weights[x] = _sample(min(np.int64(x), np.int64(columns) - 1), scale, origin, last)
        lows[x], places[x] = low, np.int64(low) * channels


@compiled
def _row(row, limit, outside):
    return np.int64(row)


@compiled
def _interpolate(frame, row, horizontal, taps, layout, normal, outside, values, into):
    """One source row at the output's columns, normalised. `into` holds either `planes = C` runs of one value per
    column, or for `planes = 1` all channels of a column side by side. `values` is memory for twice the pixels of the
    box."""
    gain, bias, _ = normal
    count = np.int64(horizontal[1]) + 1
    step = frame[4]
    source = shifted(frame[0], row * frame[1] + horizontal[0] * step)
    for c in range(layout[3]):
        own = shifted(source, place_of(c, frame[5]))
        if count > taps[3]:
            _from_pixels(own, count, step, c, gain[c], bias[c], taps, layout, into)
        else:
            load(own, count, step, gain[c], bias[c], values)
            _from_values(values, count, c, taps, layout, into)


@compiled
def _interpolate_bytes(frame, row, horizontal, taps, layout, normal, outside, values, into):
    """The same for uint8; a row of which columns would fetch bytes behind its end is copied before."""
    _, places, weights, _, room, ahead = taps
    gain, bias, _ = normal
    _, _, planes, channels = layout
    if channels > MOST_CHANNELS or channels == 2:
        _interpolate(frame, row, horizontal, taps, layout, normal, outside, values, into)
        return
    source = _readable_bytes(frame, row, horizontal, values)
    blocks, plane = room // LANES, room if planes == channels else np.int64(0)
    columns_of_bytes(source, places, weights, blocks, gain, bias, into, plane, ahead, channels, 0, False)


@compiled
def _readable_bytes(frame, row, horizontal, values):
    """The box's part of a row, or its copy."""
    step = frame[4]
    source = shifted(frame[0], row * frame[1] + horizontal[0] * step)
    size = (np.int64(horizontal[1]) + 1) * step
    if horizontal[0] * step + size - step + FETCHED > frame[2] * step:
        copied = as_elements(values, source)
        for i in range(size):
            copied[i] = source[i]
        source = copied
    return source


@cache
def _ordered_bytes_of(order: str) -> Callable:
    """The same for channels in another order, or with a fourth one that is left out."""
    stored, back = len(order), order[0] == "B"

    @compiled
    def interpolate(frame, row, horizontal, taps, layout, normal, outside, values, into):
        _, places, weights, _, room, ahead = taps
        gain, bias, _ = normal
        source = _readable_bytes(frame, row, horizontal, values)
        blocks, plane = room // LANES, room if layout[2] > 1 else np.int64(0)
        columns_of_bytes(source, places, weights, blocks, gain, bias, into, plane, ahead, 3, stored, back)

    return interpolate


@compiled
def _interpolate_video(frame, row, horizontal, taps, layout, normal, outside, values, into):
    """The same for video, whose pixels are converted where columns need them."""
    lows, places, weights, _, room, _ = taps
    gain, bias, _ = normal
    plane = room if layout[2] > 1 else np.int64(0)
    luma, chroma = readable_row(frame, row, horizontal, values)
    columns_of_video(
        luma, chroma, lows, places, weights, room // LANES, np.int64(horizontal[0]) & 1, frame[8], gain, bias, into,
        plane,
    )  # fmt: skip


@cache
def _beyond_of(load_any: Callable) -> Callable:
    """The same for a row, or columns, beyond the frame."""

    @compiled
    def interpolate(frame, row, horizontal, taps, layout, normal, outside, values, into):
        count = np.int64(horizontal[1]) + 1
        for c in range(layout[3]):
            load_any(frame, row, c, horizontal, normal, outside, values)
            _from_values(values, count, c, taps, layout, into)

    return interpolate


@compiled
def load(source, count, channels, gain, bias, into):
    """One channel of neighbouring pixels of a row, normalised."""
    for i in range(count):
        into[i] = np.float32(source[i * channels]) * gain + bias


@cache
def load_any_of(frame_dtype: str) -> Callable:
    """The same along an axis that may reach beyond the frame's row, which is -1 where the constant is all there is."""
    value = value_of_video if frame_dtype in VIDEO else _value

    @compiled
    def load_any(frame, row, channel, axis, normal, outside, into):
        gain, bias, pad = normal
        scale, shift, constant = gain[channel], bias[channel], pad[channel]
        for i in range(axis[1] + 1):
            pixel = pixel_of(axis[0] + i, frame[2], outside) if row >= 0 else np.int64(-1)
            into[i] = constant if pixel < 0 else value(frame, row, pixel, channel) * scale + shift

    return load_any


@compiled
def _value(frame, row, pixel, channel):
    return np.float32(frame[0][row * frame[1] + pixel * frame[4] + place_of(channel, frame[5])])


@compiled
def place_of(channel, back):
    """Which of a pixel's stored values a channel of the result is."""
    return np.int64(2 - channel if back else channel)


@compiled
def _line_of(channel, taps, layout, into):
    """Where the values of a channel begin in a row at the output's columns, and how far apart they are."""
    _, _, planes, channels = layout
    if planes == channels:
        return shifted(into, channel * taps[4]), np.int64(1)
    return shifted(into, channel), channels


@compiled
def _from_values(values, count, channel, taps, layout, into):
    """Columns out of all of a row's pixels, by two gathers and a multiply-add."""
    lows, _, weight, columns, _, _ = taps
    line, step = _line_of(channel, taps, layout, into)
    steps = shifted(values, count)
    for i in range(count - 1):
        steps[i] = values[i + 1] - values[i]
    steps[count - 1] = np.float32(0.0)
    for x in range(columns):
        line[x * step] = values[lows[x]] + weight[x] * steps[lows[x]]


@compiled
def _from_pixels(source, count, apart, channel, gain, bias, taps, layout, into):
    _, places, weight, columns, _, _ = taps
    line, step = _line_of(channel, taps, layout, into)
    end = (count - 1) * apart
    for x in range(columns):
        at = places[x]
        a = np.float32(source[at]) * gain + bias
        b = np.float32(source[at + apart if at < end else at]) * gain + bias
        line[x * step] = a + weight[x] * (b - a)
