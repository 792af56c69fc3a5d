"""Fused crop, resize, normalise and convert on the CPU, over bands of rows as on the GPU.

A band is a run of one item's output rows; threads take one after the other. Within a band two source rows,
interpolated horizontally and already normalised, are kept and reused for every output row between them, so that the
inner loop is one vectorised multiply-add per value, straight into the result's memory.

A source row of a box that grows is normalised first, once each pixel, since the result has many more columns; of one
that shrinks, only the two pixels that each column needs.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from octopus.kernels import geometry
from octopus.kernels.cpu import allocate_floats, compiled, pointer, release, shifted
from octopus.kernels.cpu.bands import kernel_of
from octopus.kernels.cpu.box import is_inside, pixel_of, row_of
from octopus.kernels.cpu.store import ROWS

_sample = compiled(geometry.sample)


def build(frame_dtype: str, out_dtype: str, options: bool) -> Callable:
    """The kernel for a dtype of frames and one of results, with options or without; see `bands.kernel_of`."""
    store = ROWS[out_dtype]
    interpolate, row_of = (_interpolate_any, _row_or_constant) if options else (_interpolate, _row)

    @compiled
    def crop_band(frame, horizontal, vertical, place, row, stop, out, layout, normal, outside):
        """Rows `row` to `stop` of one item's image; whether there was memory for it."""
        _, last_x, origin_x, extent_x = horizontal
        top, last_y, origin_y, extent_y = vertical
        before, above_it, columns, rows = place
        all_columns, all_rows, planes, channels = layout
        step = channels // planes
        length, count = np.int64(columns) * step, np.int64(last_x) + 1
        memory = allocate_floats(2 * columns + 2 * count + 2 * planes * length)
        if memory == 0:
            return False
        x_low, weight_x = pointer(memory, np.uint32), pointer(memory + 4 * columns, np.float32)
        values = shifted(weight_x, np.int64(columns))
        above = shifted(values, 2 * count)
        below = shifted(above, planes * length)
        for x in range(columns):
            x_low[x], _, weight_x[x] = _sample(np.int64(x), extent_x / np.float32(columns), origin_x, last_x)
        taps = (x_low, weight_x, np.int64(columns))
        scale_y = extent_y / np.float32(rows)
        current = np.int32(-2)
        for y in range(row, stop):
            low, high, weight = _sample(np.int64(y), scale_y, origin_y, last_y)
            if low != current:
                if low == current + 1:
                    above, below = below, above
                else:
                    interpolate(
                        frame, row_of(top + low, frame, outside), horizontal, taps, layout, normal, outside,
                        values, above,
                    )  # fmt: skip
                interpolate(
                    frame,
                    row_of(top + high, frame, outside),
                    horizontal,
                    taps,
                    layout,
                    normal,
                    outside,
                    values,
                    below,
                )
                current = low
            for p in range(planes):
                line = shifted(out, (p * all_rows + above_it + y) * all_columns * step + before * step)
                store(line, shifted(above, p * length), shifted(below, p * length), weight, length)
        release(memory)
        return True

    return kernel_of(crop_band, frame_dtype, out_dtype, options=options)


@compiled
def _row(row, frame, outside):
    return np.int64(row)


@compiled
def _row_or_constant(row, frame, outside):
    return row_of(row, frame, outside)


@compiled
def _interpolate(frame, row, horizontal, taps, layout, normal, outside, values, into):
    """One source row at the output's columns, normalised.

    `into` holds either `planes = C` runs of one value per column, or for `planes = 1` all channels of a column side by
    side. `values` is memory for twice the pixels of the box.
    """
    gain, bias, _ = normal
    count, columns = np.int64(horizontal[1]) + 1, taps[2]
    _, _, planes, channels = layout
    step = 1 if planes == channels else channels
    source = shifted(frame[0], row * frame[1] + horizontal[0] * channels)
    for c in range(channels):
        line = shifted(into, c * (columns if step == 1 else 1))
        if count > columns:
            _from_pixels(shifted(source, c), count, channels, gain[c], bias[c], taps, step, line)
        else:
            load(shifted(source, c), count, channels, gain[c], bias[c], values)
            _from_values(values, count, taps, step, line)


@compiled
def _interpolate_any(frame, row, horizontal, taps, layout, normal, outside, values, into):
    """The same for a box that may reach beyond the frame; `row` is -1 where the constant is all there is."""
    if row >= 0 and is_inside(horizontal, frame[2]):
        _interpolate(frame, row, horizontal, taps, layout, normal, outside, values, into)
        return
    gain, bias, pad = normal
    count, columns = np.int64(horizontal[1]) + 1, taps[2]
    _, _, planes, channels = layout
    step = 1 if planes == channels else channels
    source = shifted(frame[0], max(row, np.int64(0)) * frame[1])
    for c in range(channels):
        line = shifted(into, c * (columns if step == 1 else 1))
        load_any(
            shifted(source, c), row, horizontal, frame[2], channels, gain[c], bias[c], pad[c], outside, values
        )
        _from_values(values, count, taps, step, line)


@compiled
def load(source, count, channels, gain, bias, into):
    """One channel of neighbouring pixels of a row, normalised."""
    for i in range(count):
        into[i] = np.float32(source[i * channels]) * gain + bias


@compiled
def load_any(source, row, axis, limit, channels, gain, bias, pad, outside, into):
    """The same along an axis that may reach beyond the frame's row, which begins at `source`."""
    for i in range(axis[1] + 1):
        pixel = pixel_of(axis[0] + i, limit, outside) if row >= 0 else np.int64(-1)
        into[i] = pad if pixel < 0 else np.float32(source[pixel * channels]) * gain + bias


@compiled
def _from_values(values, count, taps, step, line):
    """Columns out of all of a row's pixels, by two gathers and a multiply-add."""
    x_low, weight, columns = taps
    steps = shifted(values, count)
    for i in range(count - 1):
        steps[i] = values[i + 1] - values[i]
    steps[count - 1] = np.float32(0.0)
    if step == 1:
        for x in range(columns):
            line[x] = values[x_low[x]] + weight[x] * steps[x_low[x]]
    else:
        for x in range(columns):
            line[x * step] = values[x_low[x]] + weight[x] * steps[x_low[x]]


@compiled
def _from_pixels(source, count, channels, gain, bias, taps, step, line):
    """Columns out of the two pixels that each needs."""
    x_low, weight, columns = taps
    for x in range(columns):
        at = np.int64(x_low[x])
        a = np.float32(source[at * channels]) * gain + bias
        b = np.float32(source[(at + 1 if at + 1 < count else at) * channels]) * gain + bias
        line[x * step] = a + weight[x] * (b - a)
