"""Crop and resize on the CPU with the triangle filter: rows of the source first, then columns of what they gave.

A source row under the window of some output row is filtered horizontally once per band; the results wait in a ring as
long as the window is high, from which each output row takes its weighted mean.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from octopus.kernels import geometry
from octopus.kernels.cpu import allocate_floats, compiled, pointer, release, shifted
from octopus.kernels.cpu.bands import kernel_of
from octopus.kernels.cpu.box import filter_support, is_inside, row_of
from octopus.kernels.cpu.crop import load, load_any
from octopus.kernels.cpu.store import ROWS

_filter_window = compiled(geometry.filter_window)
_filter_weight = compiled(geometry.filter_weight)


def build(frame_dtype: str, out_dtype: str) -> Callable:
    """The kernel for a dtype of frames and one of results; see `bands.kernel_of`."""
    store = ROWS[out_dtype]

    @compiled
    def filter_band(frame, horizontal, vertical, place, row, stop, out, layout, normal, outside):
        """Rows `row` to `stop` of one item's image; whether there was memory for it."""
        before, above, columns, rows = place
        all_columns, all_rows, planes, channels = layout
        step = channels // planes
        length, count = np.int64(columns) * step, np.int64(horizontal[1]) + 1
        wide, high = _most_taps(horizontal, columns), _most_taps(vertical, rows)
        line = planes * length
        memory = allocate_floats(columns * (wide + 2) + rows * (high + 2) + count + (high + 1) * line)
        if memory == 0:
            return False
        across = _places(memory, np.int64(columns), wide)
        down = _places(memory + 4 * columns * (wide + 2), np.int64(rows), high)
        values = pointer(memory + 4 * (columns * (wide + 2) + rows * (high + 2)), np.float32)
        mean = shifted(values, count)
        ring = shifted(mean, line)
        _windows(horizontal, across)
        _windows(vertical, down)
        starts, sizes, weights, _, _ = down
        done = np.int64(0)
        for y in range(row, stop):
            start, size = np.int64(starts[y]), np.int64(sizes[y])
            done = max(done, start)
            while done < start + size:
                source, into = row_of(vertical[0] + done, frame, outside), shifted(ring, done % high * line)
                _filter_row(frame, source, horizontal, across, layout, normal, outside, values, into)
                done += 1
            for i in range(line):
                mean[i] = np.float32(0.0)
            for k in range(size):
                _add(mean, shifted(ring, (start + k) % high * line), weights[y * high + k], line)
            for p in range(planes):
                part = shifted(mean, p * length)
                target = shifted(out, (p * all_rows + above + y) * all_columns * step + before * step)
                store(target, part, part, np.float32(0.0), length)
        release(memory)
        return True

    return kernel_of(filter_band, frame_dtype, out_dtype, antialias=True)


@compiled
def _most_taps(axis, count):
    """Pixels under the filter of an output pixel along an axis, at most."""
    return np.int64(np.float32(2.0) * filter_support(axis[3] / np.float32(count))) + 3


@compiled
def _places(memory, count, taps):
    """Where `_windows` puts first pixel, number of pixels, and weights of each output pixel; and the most of these."""
    starts, sizes = pointer(memory, np.int32), pointer(memory + 4 * count, np.int32)
    return starts, sizes, pointer(memory + 8 * count, np.float32), taps, count


@compiled
def _windows(axis, places):
    """First pixel, number of pixels and weights, summing to 1, of the output pixels along one axis."""
    starts, sizes, weights, taps, count = places
    scale = axis[3] / np.float32(count)
    support = filter_support(scale)
    for i in range(count):
        start, stop, centre = _filter_window(i, scale, axis[2], axis[1], support)
        total = np.float32(0.0)
        own = shifted(weights, i * taps)
        for pixel in range(start, stop):
            weight = _filter_weight(pixel, centre, np.float32(1.0) / support)
            own[pixel - start] = weight
            total += weight
        for k in range(stop - start):
            own[k] /= total
        starts[i], sizes[i] = start, stop - start


@compiled
def _add(total, line, weight, count):
    for i in range(count):
        total[i] += weight * line[i]


@compiled
def _filter_row(frame, row, horizontal, across, layout, normal, outside, values, into):
    """One source row at the output's columns, normalised; `into` is laid out as in `crop`."""
    starts, sizes, weights, taps, columns = across
    gain, bias, pad = normal
    _, _, planes, channels = layout
    step, count = 1 if planes == channels else channels, np.int64(horizontal[1]) + 1
    inside = row >= 0 and is_inside(horizontal, frame[2])
    source = shifted(frame[0], max(row, np.int64(0)) * frame[1])
    one, none = np.float32(1.0), np.float32(0.0)
    for c in range(channels):
        line = shifted(into, c * (columns if step == 1 else 1))
        scale, shift = gain[c], bias[c]
        if inside:
            load(shifted(source, horizontal[0] * channels + c), count, channels, one, none, values)
        else:  # the constant is normalised already, so that all is
            load_any(
                shifted(source, c), row, horizontal, frame[2], channels, scale, shift, pad[c], outside, values
            )
            scale, shift = one, none
        for x in range(columns):
            total = none
            own, first = shifted(weights, x * taps), np.int64(starts[x])
            for k in range(sizes[x]):
                total += own[k] * values[first + k]
            line[x * step] = total * scale + shift
