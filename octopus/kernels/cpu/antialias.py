"""Crop and resize on the CPU with the triangle filter: rows of the source first, then columns of what they gave.

A source row under the window of some output row is filtered horizontally once per band; the results wait in a ring as
long as the window is high, from which each output row takes its weighted mean.
"""

from __future__ import annotations

import numba
import numpy as np

from octopus.kernels import geometry
from octopus.kernels.cpu import compiled
from octopus.kernels.cpu.crop import store_row
from octopus.kernels.cpu.options import fill_padding, filter_support, prepare, store_transform

_filter_window = compiled(inline="always")(geometry.filter_window)
_filter_weight = compiled(inline="always")(geometry.filter_weight)


@compiled()
def _windows(axis, count):
    """First pixel, number of pixels and weights, summing to 1, of `count` output pixels along one axis."""
    _, last, origin, extent = axis
    scale = extent / np.float32(count)
    support = filter_support(scale)
    starts, sizes = np.empty(count, np.int64), np.empty(count, np.int64)
    weights = np.empty((count, int(np.float32(2.0) * support) + 3), np.float32)
    for i in range(count):
        start, stop, centre = _filter_window(i, scale, origin, last, support)
        total = np.float32(0.0)
        for pixel in range(start, stop):
            weight = _filter_weight(pixel, centre, np.float32(1.0) / support)
            weights[i, pixel - start] = weight
            total += weight
        for k in range(stop - start):
            weights[i, k] /= total
        starts[i], sizes[i] = start, stop - start
    return starts, sizes, weights


@compiled()
def _filter_row(source, left, count, windows, gain, bias, planes, values, into):
    """One source row at the output's columns, normalised; `into` is laid out as in `crop._interpolate_row`."""
    starts, sizes, weights = windows
    channels, columns = source.shape[1], starts.size
    column_step = 1 if planes == channels else channels
    channel_step = columns if planes == channels else 1
    for c in range(channels):
        for i in range(count):
            values[i] = np.float32(source[left + i, c])
        for x in range(columns):
            total = np.float32(0.0)
            for k in range(sizes[x]):
                total += weights[x, k] * values[starts[x] + k]
            into[x * column_step + c * channel_step] = total * gain[c] + bias[c]


@compiled()
def _filter_band(frame, horizontal, vertical, place, row, stop, out, gain, bias):
    """Rows `row` to `stop` of one item's image; arguments as in `crop.crop_band`."""
    left, top = horizontal[0], vertical[0]
    before, above, columns, rows = place
    planes = out.shape[0]
    step = gain.size // planes
    begin, length = before * step, columns * step
    count = horizontal[1] + 1
    across = _windows(horizontal, columns)
    starts, sizes, weights = _windows(vertical, rows)
    height = weights.shape[1]
    ring = np.empty((height, planes * length), np.float32)
    values, mean = np.empty(count, np.float32), np.empty(planes * length, np.float32)
    done = 0
    for y in range(row, stop):
        done = max(done, starts[y])
        while done < starts[y] + sizes[y]:
            _filter_row(
                frame[top + done], left, count, across, gain, bias, planes, values, ring[done % height]
            )
            done += 1
        mean[:] = np.float32(0.0)
        for k in range(sizes[y]):
            line, weight = ring[(starts[y] + k) % height], weights[y, k]
            for i in range(mean.size):
                mean[i] += weight * line[i]
        for p in range(planes):
            part = mean[p * length : (p + 1) * length]
            store_row(out[p, above + y][begin : begin + length], part, part, np.float32(0.0))


@compiled(parallel=True)
def crop_resize(frames, index, boxes, out, transform, band, gain, bias, pad, beyond, letterbox):
    """All boxes of several frames; arguments as in `options.crop_resize`."""
    rows = out.shape[2]
    bands = (rows + band - 1) // band
    for block in numba.prange(boxes.shape[0] * bands):
        item = block // bands
        row = (block - item * bands) * band
        stop = min(row + band, rows)
        frame, box = frames[index[item]], boxes[item]
        horizontal, vertical, place = prepare(frame, box, out[item], pad, True, beyond, letterbox)
        if letterbox:
            fill_padding(out[item], place, row, stop, pad)
            if row == 0:
                store_transform(box, horizontal, vertical, place, transform[item])
        first, end = max(row - place[1], 0), min(stop - place[1], place[3])
        if first < end:
            _filter_band(frame, horizontal, vertical, place, first, end, out[item], gain, bias)
