"""Crop and resize on the CPU with the triangle filter: down the source's columns first, then across what they gave.

The first pass adds neighbouring values of a row to those of the rows below, which are whole vectors wherever a box
begins; a box that shrinks has more of them than the second pass, which weighs pixel by pixel, then has left. Where a
box grows on both sides the filter is the bilinear one, and its kernel makes the rows.

A box that shrinks across and grows down is filtered across in more rows than it has.
`docs/kernels.md` has its steps, measured.
"""

from collections.abc import Callable
from functools import cache

import numpy as np

from octopus.kernels import geometry
from octopus.kernels.cpu import allocate_floats, compiled, pointer, release, shifted
from octopus.kernels.cpu.bands import filter_support, is_inside, kernel_of, pixel_of
from octopus.kernels.cpu.crop import band_of, load_any_of, place_of
from octopus.kernels.cpu.store import run_of
from octopus.kernels.cpu.vectors import GROUP, LANES, MOST_CHANNELS, VECTOR_BYTES, WIDE, columns_of_floats, sum_down
from octopus.kernels.cpu.video import EDGE, VIDEO, sum_video

_filter_window = compiled(geometry.filter_window)
_filter_weight = compiled(geometry.filter_weight)


def build(frame_dtype: str, out_dtype: str, order: str = "RGB", make: Callable = kernel_of) -> Callable:
    """The kernel for frames and a dtype of results; see `bands.kernel_of`, which is `make`."""
    store_run, grown_band = run_of(out_dtype), band_of(frame_dtype, out_dtype, True, order)
    video, add_outside = frame_dtype in VIDEO, _outside_of(load_any_of(frame_dtype))
    add_inside, ordered = _add_video if video else _add_rows, order != "RGB"
    add_ordered = _groups_of(len(order), order[0] == "B")
    exact = frame_dtype == "float32"  # whose values may be infinite, and that times a weight of 0 is NaN

    @compiled
    def filter_band(frame, horizontal, vertical, place, row, stop, out, layout, normal, outside):
        """Rows `row` to `stop` of one item's image; whether there was memory for it."""
        before, above, columns, rows = place
        if horizontal[3] <= np.float32(columns) and vertical[3] <= np.float32(rows):
            return grown_band(frame, horizontal, vertical, place, row, stop, out, layout, normal, outside)
        channels, width, tall = layout[3], np.int64(columns), np.int64(rows)
        pixels = np.int64(horizontal[1]) + 1
        wide, high = _most_taps(horizontal, columns), _most_taps(vertical, rows)
        pitch = (wide * channels + GROUP) * 2 if channels <= MOST_CHANNELS else np.int64(0)
        room = (width + LANES - 1) // LANES * LANES
        line, sum_room = pixels * max(frame[4], channels) + pitch + 2 * EDGE, room * channels + LANES
        memory = allocate_floats(
            3 * line + 4 * high + 3 * sum_room + GROUP + (4 + wide + pitch) * width + (4 + high) * tall + VECTOR_BYTES
        )
        if memory == 0:
            return False
        start = memory + (-memory & (VECTOR_BYTES - 1))
        across, down = (
            _places(start, width, wide), _places(start + ((16 + 4 * wide) * width + 7) // 8 * 8, tall, high)
        )  # fmt: skip
        grouped = shifted(down[2], high * tall)
        sums = shifted(grouped, pitch * width)
        apart = shifted(sums, 2 * sum_room)
        bias = shifted(apart, sum_room)
        spare = shifted(bias, GROUP)
        values = shifted(spare, 4 * high + EDGE)
        _windows(horizontal, across)
        _windows(vertical, down)
        inside, groups = is_inside(horizontal, frame[2]) and is_inside(vertical, frame[3]), np.int64(0)
        if video:
            inside = inside and frame[2] >= LANES
        held, back = (frame[4], frame[5]) if ordered and inside else (channels, False)
        for x in range(width):
            across[0][x] *= held
        if channels <= MOST_CHANNELS and not exact:
            groups = _group(across, channels, held, back, normal, inside, grouped, bias)
        starts, sizes, weights, _, _ = down
        for i in range(-EDGE, 3 * line - EDGE):
            values[i] = np.float32(0.0)
        for y in range(row, stop, 2):
            pair = min(stop - y, 2)
            if inside:
                add_inside(frame, horizontal, vertical, down, y, pair, values, line, spare)
            else:
                for k in range(pair):
                    add_outside(
                        frame, starts[y + k], sizes[y + k], shifted(weights, (y + k) * high), horizontal, vertical,
                        normal, outside, channels, shifted(values, k * line), shifted(values, 2 * line),
                    )  # fmt: skip
            if groups and ordered and inside:
                add_ordered(values, across, grouped, groups, bias, sums, line, sum_room)
            elif groups:
                _add_groups(values, across, grouped, groups, bias, channels, sums, line, sum_room)
            else:
                for k in range(pair):
                    own, into = shifted(values, k * line), shifted(sums, k * sum_room)
                    _add_columns(own, across, normal, inside, channels, held, back, into)
            for k in range(pair):
                store_run(shifted(sums, k * sum_room), apart, before, above + y + k, width, out, layout)
        release(memory)
        return True

    return make(filter_band, frame_dtype, out_dtype, antialias=True, order=order)


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
def _group(across, channels, held, back, normal, scales, grouped, first):
    """Weights as `columns_of_floats` takes them, times the gain, bias in `first`; returns the groups of each column."""
    _, sizes, weights, taps, columns = across
    gain, bias, _ = normal
    pixels, most, lane = GROUP // held, np.int64(0), np.int64(0)
    for i in range(GROUP):
        first[i] = np.float32(0.0)
    if scales:
        for c in range(channels):
            first[place_of(c, back)] = bias[c]
    for x in range(columns):
        most = max(most, sizes[x])
    groups = (most + pixels - 1) // pixels
    for x in range(columns):
        own, size = shifted(weights, x * taps), sizes[x]
        for group in range(groups):
            for pixel in range(group * pixels, group * pixels + pixels):
                weight = own[pixel] if pixel < size else np.float32(0.0)
                for c in range(held):
                    grouped[lane + c] = weight
                if scales:
                    for c in range(channels):
                        grouped[lane + place_of(c, back)] = weight * gain[c]
                lane += held
            for _ in range(GROUP - pixels * held):
                grouped[lane] = np.float32(0.0)
                lane += 1
    return groups


@compiled
def _add_rows(frame, horizontal, vertical, down, y, pair, values, line, spare):
    """Neighbouring values of a frame's rows, weighted and added, for one or two rows of the result."""
    starts, sizes, weights, high, _ = down
    count = (np.int64(horizontal[1]) + 1) * frame[4]
    for k in range(y, y + pair):
        first = (vertical[0] + starts[k]) * frame[1] + horizontal[0] * frame[4]
        own, into = shifted(weights, k * high), shifted(values, (k - y) * line)
        sum_rows(shifted(frame[0], first), frame[1], own, sizes[k], count, into)


@compiled
def _add_video(frame, horizontal, vertical, down, y, pair, values, line, spare):
    """The same for video: of the rows under both filters each is converted once."""
    starts, sizes, weights, high, _ = down
    first, last = starts[y], y + pair - 1
    rows = starts[last] + sizes[last] - first
    for i in range(rows):
        spare[2 * i] = spare[2 * i + 1] = np.float32(0.0)
    for k in range(pair):
        own = shifted(weights, (y + k) * high)
        for i in range(sizes[y + k]):
            spare[2 * (starts[y + k] - first + i) + k] = own[i]
    sum_video(frame, vertical[0] + first, rows, spare, horizontal, values, line)


@compiled
def sum_rows(source, pitch, weights, rows, count, into):
    """`count` neighbouring values of a frame's rows, weighted and added; the last vectors may overlap."""
    block = WIDE * LANES if count >= WIDE * LANES else LANES
    if count < LANES:
        for i in range(count):
            into[i] = np.float32(0.0)
            for k in range(rows):
                into[i] += weights[k] * np.float32(source[k * pitch + i])
        return
    low = np.int64(0)
    while low < count:
        at = min(low, count - block)
        if block > LANES:
            sum_down(shifted(source, at), pitch, weights, rows, shifted(into, at), WIDE)
        else:
            sum_down(shifted(source, at), pitch, weights, rows, shifted(into, at), 1)
        low += block


@cache
def _outside_of(load_any: Callable) -> Callable:
    """The same of one row where pixels lie beyond the frame, normalised, since what stands for them is."""

    @compiled
    def add_outside(frame, start, rows, weights, horizontal, vertical, normal, outside, channels, into, values):
        count = np.int64(horizontal[1]) + 1
        for i in range(count * channels):
            into[i] = np.float32(0.0)
        for k in range(rows):
            row = pixel_of(vertical[0] + start + k, frame[3], outside)
            for c in range(channels):
                load_any(frame, row, c, horizontal, normal, outside, values)
                for i in range(count):
                    into[i * channels + c] += weights[k] * values[i]

    return add_outside


@cache
def _groups_of(stored: int, back: bool) -> Callable:
    """What makes three channels of a column out of as many stored ones, see `columns_of_floats`."""

    @compiled
    def add(line, across, grouped, groups, first, into, line_step, into_step):
        columns_of_floats(
            line, across[0], grouped, groups, first, across[4], into, line_step, into_step, 3, stored, back,
            groups if groups <= 4 else 0,
        )  # fmt: skip

    return add


_add_threes = _groups_of(3, False)


@compiled
def _add_groups(line, across, grouped, groups, first, channels, into, line_step, into_step):
    """The columns of two rows, normalised; all channels of a column lie side by side."""
    if channels == 3:
        _add_threes(line, across, grouped, groups, first, into, line_step, into_step)
    else:
        columns_of_floats(
            line, across[0], grouped, groups, first, across[4], into, line_step, into_step, channels, 0, False, 0
        )


@compiled
def _add_columns(line, across, normal, scales, channels, held, back, into):
    """The same of one row, for any number of channels and any values."""
    starts, sizes, weights, taps, columns = across
    gain, bias, _ = normal
    for x in range(columns):
        own, values = shifted(weights, x * taps), shifted(line, starts[x])
        for c in range(channels):
            total, place = np.float32(0.0), place_of(c, back)
            for k in range(sizes[x]):
                total += own[k] * values[k * held + place]
            into[x * channels + c] = total * gain[c] + bias[c] if scales else total
