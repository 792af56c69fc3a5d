"""Crop and resize on the CPU with the triangle filter: columns of the source first, then rows of what they gave.

The first pass adds neighbouring values of a row to those of the rows below, which are whole vectors wherever a box
begins; a box that shrinks has more of them than the second pass, which weighs pixel by pixel, then has left. Where a
box grows on both sides the filter is the bilinear one, and its kernel makes the rows.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from octopus.kernels import geometry
from octopus.kernels.cpu import allocate_floats, compiled, pointer, release, shifted
from octopus.kernels.cpu.bands import kernel_of
from octopus.kernels.cpu.box import filter_support, is_inside, row_of
from octopus.kernels.cpu.crop import band_of, load_any
from octopus.kernels.cpu.store import ROWS
from octopus.kernels.cpu.vectors import LANES, WIDE
from octopus.kernels.cpu.vectors_columns import GROUP, VECTOR_BYTES, columns_of_floats, sum_down

_filter_window = compiled(geometry.filter_window)
_filter_weight = compiled(geometry.filter_weight)


def build(frame_dtype: str, out_dtype: str) -> Callable:
    """The kernel for a dtype of frames and one of results; see `bands.kernel_of`."""
    store, grown_band = ROWS[out_dtype], band_of(frame_dtype, out_dtype, True)

    @compiled
    def filter_band(frame, horizontal, vertical, place, row, stop, out, layout, normal, outside):
        """Rows `row` to `stop` of one item's image; whether there was memory for it."""
        before, above, columns, rows = place
        if horizontal[3] <= np.float32(columns) and vertical[3] <= np.float32(rows):
            return grown_band(frame, horizontal, vertical, place, row, stop, out, layout, normal, outside)
        all_columns, all_rows, planes, channels = layout
        step, width = channels // planes, np.int64(columns)
        count = (np.int64(horizontal[1]) + 1) * channels
        wide, high = _most_taps(horizontal, columns), _most_taps(vertical, rows)
        pitch = max((wide * channels + GROUP - 1) // GROUP + 1, wide // max(GROUP // channels, 1) + 1) * GROUP
        room = (width * channels + LANES + 3) // LANES * LANES
        line = (count + GROUP + LANES - 1) // LANES * LANES
        needs = (2 * line, 2 * room, LANES + 4 * width + pitch * width + (high + 4) * (np.int64(rows) + 1))
        memory = allocate_floats(needs[0] + needs[1] + needs[2] + LANES)
        if memory == 0:
            return False
        start = memory + (-memory & (VECTOR_BYTES - 1))
        values, sums = pointer(start, np.float32), pointer(start + 4 * needs[0], np.float32)
        tables = start + 4 * (needs[0] + needs[1])
        across = _places(tables, width, pitch)
        down = _places(tables + 8 * (2 + width) * 2 + 4 * width * pitch, np.int64(rows), high)
        _windows(horizontal, across)
        _windows(vertical, down)
        _group(across, channels)
        starts, sizes, weights, _, _ = down
        for i in range(count, line):
            values[i] = np.float32(0.0)
        inside = is_inside(horizontal, frame[2]) and is_inside(vertical, frame[3])
        for y in range(row, stop):
            own = shifted(weights, y * high)
            if inside:
                first = (vertical[0] + starts[y]) * frame[1] + horizontal[0] * channels
                _add_rows(shifted(frame[0], first), frame[1], own, sizes[y], count, values)
            else:
                _add_outside(
                    frame, starts[y], sizes[y], own, horizontal, vertical, normal, outside, channels, values,
                    shifted(values, line),
                )  # fmt: skip
            _add_columns(values, across, channels, sums)
            parts = shifted(sums, room)
            _finish(sums, width, planes, channels, normal, inside, parts)
            for p in range(planes):
                part = shifted(parts, p * width)
                target = shifted(out, (p * all_rows + above + y) * all_columns * step + before * step)
                store(target, part, part, np.float32(0.0), width * step)
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
    starts, sizes = pointer(memory, np.int64), pointer(memory + 8 * count, np.int64)
    return starts, sizes, pointer(memory + 16 * count, np.float32), taps, count


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
def _group(across, channels):
    """Lay the weights of the columns out as `columns_of_floats` takes them; of more channels only count values."""
    starts, sizes, weights, pitch, columns = across
    pixels = GROUP // channels
    for x in range(columns):
        starts[x] *= channels
        if pixels < 2:
            continue
        own, size = shifted(weights, x * pitch), sizes[x]
        sizes[x] = (size + pixels - 1) // pixels
        for lane in range(sizes[x] * GROUP - 1, -1, -1):
            pixel = lane // GROUP * pixels + lane % GROUP // channels
            used = lane % GROUP < pixels * channels and pixel < size
            own[lane] = own[pixel] if used else np.float32(0.0)


@compiled
def _add_rows(source, pitch, weights, rows, count, into):
    """`count` neighbouring values of a frame's rows, weighted and added; the last vectors may overlap."""
    block = WIDE * LANES if count >= WIDE * LANES else LANES
    if count < LANES:
        for i in range(count):
            into[i] = np.float32(0.0)
            for k in range(rows):
                into[i] += weights[k] * np.float32(source[k * pitch + i])
        return
    for low in range(0, count, block):
        at = min(low, count - block)
        if block > LANES:
            sum_down(shifted(source, at), pitch, weights, rows, shifted(into, at), WIDE)
        else:
            sum_down(shifted(source, at), pitch, weights, rows, shifted(into, at), 1)


@compiled
def _add_outside(
    frame, start, rows, weights, horizontal, vertical, normal, outside, channels, into, values
):
    """The same where pixels lie beyond the frame, normalised, since what stands for them is."""
    gain, bias, pad = normal
    count = np.int64(horizontal[1]) + 1
    for i in range(count * channels):
        into[i] = np.float32(0.0)
    for k in range(rows):
        row = row_of(vertical[0] + start + k, frame, outside)
        source = shifted(frame[0], max(row, np.int64(0)) * frame[1])
        for c in range(channels):
            load_any(
                shifted(source, c), row, horizontal, frame[2], channels, gain[c], bias[c], pad[c], outside, values
            )
            for i in range(count):
                into[i * channels + c] += weights[k] * values[i]


@compiled
def _add_columns(line, across, channels, into):
    """The columns of one row; all channels of a column lie side by side."""
    starts, sizes, weights, pitch, columns = across
    if channels == 1:
        columns_of_floats(line, starts, sizes, weights, pitch, columns, into, 1)
    elif channels == 2:
        columns_of_floats(line, starts, sizes, weights, pitch, columns, into, 2)
    elif channels == 3:
        columns_of_floats(line, starts, sizes, weights, pitch, columns, into, 3)
    elif channels == 4:
        columns_of_floats(line, starts, sizes, weights, pitch, columns, into, 4)
    else:
        for x in range(columns):
            own, first = shifted(weights, x * pitch), shifted(line, starts[x])
            for c in range(channels):
                total = np.float32(0.0)
                for k in range(sizes[x]):
                    total += own[k] * first[k * channels + c]
                into[x * channels + c] = total


@compiled
def _finish(sums, columns, planes, channels, normal, scales, into):
    """Normalise what isn't yet, and put the channels apart where the result wants it so."""
    gain, bias, _ = normal
    column_step, channel_step = (1, columns) if planes == channels else (channels, 1)
    for c in range(channels):
        scale, shift = (gain[c], bias[c]) if scales else (np.float32(1.0), np.float32(0.0))
        line = shifted(into, c * channel_step)
        for x in range(columns):
            line[x * column_step] = sums[x * channels + c] * scale + shift
