"""Crops by single samples on the CPU: nearest, bicubic, and affine maps.

In a frame of bytes with 1, 3 or 4 channels, samples whose pixels all lie in the frame are summed by vectors. Of a box
inside the frame each source row is summed across once, and as many rows are kept as a sample takes. Of a map runs of
columns are looked at together, whose first and last positions say whether all are inside, since along a row positions
only grow or only fall. All others, and other frames, go pixel by pixel, where the columns' pixels and weights are found
once per band of a box, and per sample of a map.

LLVM makes whole vectors of what finds a map's positions and weights, too. `docs/kernels.md` has its steps, measured.
"""

from collections.abc import Callable
from functools import cache

import numpy as np

from octopus.kernels import geometry, sampling
from octopus.kernels.cpu import allocate_floats, as_elements, compiled, pointer, release, shifted
from octopus.kernels.cpu.antialias import sum_rows
from octopus.kernels.cpu.bands import is_inside, kernel_of
from octopus.kernels.cpu.store import CAST, run_of
from octopus.kernels.cpu.vectors import LANES, LEAST, fetched, sums_of_taps
from octopus.kernels.cpu.video import VIDEO, value_of_video

RUN = 32  # columns of a map that are looked at together

_centre = compiled(sampling.centre)
_whole = compiled(sampling.whole)
_quad_map, _perspective_line = compiled(geometry.quad_map), compiled(geometry.perspective_line)
_along_line = compiled(geometry.along_line)
_FAR = sampling.FAR


_locator, _mixer = cache(sampling.locator), cache(sampling.mixer)


@compiled
def _read(frame, start, pitch, row, column, channel):
    place = 2 - channel if frame[5] else channel
    return np.float32(frame[0][np.int64(row) * frame[1] + np.int64(column) * frame[4] + place])


@compiled
def _read_video(frame, start, pitch, row, column, channel):
    return value_of_video(frame, np.int64(row), np.int64(column), channel)


@cache
def _sums_of(tall: int, wide: int, order: str) -> Callable:
    """`vectors.sums_of_taps` of so many rows and pixels of each, of frames in an order of channels."""
    held, back = len(order), order[0] == "B"

    @compiled
    def sums(source, pitch, places, down, across, count, gain, bias, into, channels):
        sums_of_taps(source, pitch, places, down, across, count, gain, bias, into, tall, wide, channels, 0, False)

    @compiled
    def sums_of_three(source, pitch, places, down, across, count, gain, bias, into, channels):
        sums_of_taps(source, pitch, places, down, across, count, gain, bias, into, tall, wide, 3, held, back)

    return sums if order == "RGB" else sums_of_three


def build(
    frame_dtype: str, out_dtype: str, kind: str, form: str, order: str = "RGB", make: Callable = kernel_of
) -> Callable:  # fmt: skip
    """The kernel for frames, a dtype of results and a filter, of "boxes", affine "maps" or "quads", quadrilaterals; see
    `bands.kernel_of`, which is `make`."""
    maps, quads = form != "boxes", form == "quads"
    read, taps, value_of = (_read_video if frame_dtype in VIDEO else _read, sampling.TAPS[kind], CAST[out_dtype])
    locate, mix_padded = _locator(compiled, kind), _mixer(compiled, kind, read, padded=True)
    mix = _mixer(compiled, kind, read, padded=False)
    around, half = compiled(sampling.AROUND[kind]), np.float32(0.5 if kind == "nearest" else 0.0)
    wide = fetched(taps, 4)  # which is fetched of three channels, too
    vectors, sums, store_run = frame_dtype == "uint8", _sums_of(taps if maps else 1, taps, order), run_of(out_dtype)

    @compiled
    def store_pixel(frame, rows, columns, down, across, out, step, channels, normal, outside):
        """All channels of a pixel of the result, `step` values apart."""
        gain, bias, pad = normal
        start = np.int64(0)
        if outside == geometry.CONSTANT:
            for c in range(channels):
                out[c * step] = value_of(
                    mix_padded(frame, start, frame[1], c, rows, columns, down, across, gain[c], bias[c], pad[c])
                )
            return
        for c in range(channels):
            out[c * step] = value_of(
                mix(frame, start, frame[1], c, rows, columns, down, across, gain[c], bias[c], pad[c])
            )

    @compiled
    def readable(frame, row, place):
        """Whether the frame has all that is fetched from a place in a row."""
        return (frame[3] - 1 - row) * frame[1] + frame[2] * frame[4] - place >= (wide if frame[4] > 1 else LEAST)

    @compiled
    def gather(pixels, weights, limit, into):
        """The first of as many neighbouring pixels that hold all of a sample, which get their weights."""
        first = min(pixels[0], np.int32(limit - taps))
        for k in range(taps):
            into[k] = np.float32(0.0)
        for k in range(taps):
            into[pixels[k] - first] += weights[k]
        return np.int64(first)

    @compiled
    def inside_band(frame, horizontal, vertical, place, row, stop, out, layout, normal, outside):
        """The same of a box inside the frame: rows are summed across once, and `taps` of them kept."""
        left, last_x, origin_x, extent_x = horizontal
        top, last_y, origin_y, extent_y = vertical
        before, above, inner_columns, inner_rows = place
        width, height = np.int32(frame[2]), np.int32(frame[3])
        channels, stored, count = layout[3], frame[4], np.int64(inner_columns)
        line = (count + LANES - 1) // LANES * LANES * channels + LEAST
        memory = allocate_floats(
            2 * (count + taps) + (LEAST * count + 4) * taps + (taps + 2) * line + (np.int64(last_x) + 1 + taps) * stored
        )
        if memory == 0:
            return False
        places, held = pointer(memory, np.int64), pointer(memory + 8 * count, np.int64)
        weights = pointer(memory + 8 * (count + taps), np.float32)
        pixels = pointer(memory + 8 * (count + taps) + 4 * taps, np.int32)
        gathered, down = shifted(weights, 2 * taps), shifted(weights, 3 * taps)
        across = shifted(weights, 4 * taps)
        ring = shifted(across, LEAST * taps * count)
        made, apart = shifted(ring, taps * line), shifted(ring, (taps + 1) * line)
        spare = shifted(ring, (taps + 2) * line)
        for x in range(count):
            at = _centre(np.int32(x), extent_x, inner_columns, origin_x)
            locate(at, left, np.int32(0), last_x, width, outside, pixels, weights)
            places[x] = gather(pixels, weights, width, gathered) * stored
            for i in range(taps * LEAST):
                across[taps * LEAST * x + i] = gathered[i // LEAST]
        for k in range(taps):
            held[k] = -1
        begin, end = places[0], places[count - 1]
        for y in range(row, stop):
            at = _centre(np.int32(y), extent_y, inner_rows, origin_y)
            locate(at, top, np.int32(0), last_y, height, outside, pixels, weights)
            first = gather(pixels, weights, height, gathered)
            for k in range(taps):
                number, slot = first + k, (first + k) % taps
                down[slot] = gathered[k]
                if held[slot] != number:
                    held[slot], source = number, shifted(frame[0], number * frame[1])
                    if not readable(frame, number, end):
                        copied = as_elements(spare, source)
                        for i in range(end - begin + taps * stored):
                            copied[i] = source[begin + i]
                        source = shifted(copied, -begin)
                    own = shifted(ring, slot * line)
                    sums(source, frame[1], places, down, across, count, normal[0], normal[1], own, channels)
            if taps > 1:
                sum_rows(ring, line, down, taps, count * channels, made)
                store_run(made, apart, before, above + y, count, out, layout)
            else:
                store_run(ring, apart, before, above + y, count, out, layout)
        release(memory)
        return True

    @compiled
    def box_band(frame, horizontal, vertical, place, row, stop, out, layout, normal, outside):
        """Rows `row` to `stop` of one item's image; whether there was memory for it."""
        left, last_x, origin_x, extent_x = horizontal
        top, last_y, origin_y, extent_y = vertical
        before, above, inner_columns, inner_rows = place
        columns, rows, planes, channels = layout
        width, height = np.int32(frame[2]), np.int32(frame[3])
        inner = np.int64(inner_columns)
        inside = is_inside(horizontal, frame[2]) and is_inside(vertical, frame[3])
        if vectors and inside and width >= taps and height >= taps and channels <= 4 and channels != 2:
            return inside_band(frame, horizontal, vertical, place, row, stop, out, layout, normal, outside)
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
                    shifted(into, x * along), step, channels, normal, outside,
                )  # fmt: skip
        release(memory)
        return True

    @compiled
    def position(axis, x, y):
        return axis[0] * np.float32(x) + axis[1] * np.float32(y) + axis[2]

    # A run of a row's samples, from column `x` on; `affine_at` tells where each lies: pixels, and what is more.
    affine_line = compiled(lambda horizontal, vertical, x, stop, y: (horizontal, vertical, x, y))

    @compiled
    def affine_at(line, i):
        horizontal, vertical, x, y = line
        return (
            np.int32(0), position(horizontal, np.int32(x + i), y), np.int32(0), position(vertical, np.int32(x + i), y),
        )  # fmt: skip

    @compiled
    def quad_line(horizontal, vertical, x, stop, y):
        a, b, c, g, h, i = horizontal
        d, e, f, _, _, _ = vertical
        origin = x if g >= 0 else stop - 1
        column, row = np.float64(origin), np.float64(y)
        bottom = g * column + h * row + i
        left, from_left, across, turn = _perspective_line(a * column + b * row + c, bottom, a, g)
        top, from_top, down, _ = _perspective_line(d * column + e * row + f, bottom, d, g)
        return left, from_left, across, top, from_top, down, turn, x - origin

    @compiled
    def quad_at(line, i):
        left, from_left, across, top, from_top, down, turn, start = line
        k = np.int32(start + i)
        return left, _along_line(from_left, across, turn, k), top, _along_line(from_top, down, turn, k)

    line_of, at_of = (quad_line, quad_at) if quads else (affine_line, affine_at)

    @compiled
    def span(first, low, high, limit):
        """The most of the first pixels along an axis of a row's samples, of which the ends are known; -1 if not all
        pixels lie inside."""
        ends = low + half, high + half
        least = first + _whole(min(ends[0], ends[1])) - taps // 4
        most = first + _whole(max(ends[0], ends[1])) - taps // 4
        return np.int64(most) if least >= 0 and most + taps <= limit else np.int64(-1)

    @compiled
    def find(frame, line, count, places, across, down):
        """Where samples begin in the frame, and their weights."""
        for i in range(count):
            left, at, top, to = at_of(line, i)
            at, to = at + half, to + half
            column, row = _whole(at), _whole(to)
            columns, shares = around(np.int32(left + column), at - np.float32(column))
            lines, parts = around(np.int32(top + row), to - np.float32(row))
            places[i] = np.int64(lines[0]) * frame[1] + np.int64(columns[0]) * frame[4]
            if taps > 1:
                for k in range(taps):
                    across[i * taps + k] = shares[k]
                    down[i * taps + k] = parts[k]

    @compiled
    def map_band(frame, horizontal, vertical, place, row, stop, out, layout, normal, outside):
        """The same for an affine map, whose axes are three numbers each, or of a quadrilateral six."""
        columns, rows, planes, channels = layout
        width, height, inner = np.int32(frame[2]), np.int32(frame[3]), np.int64(place[2])
        room = (inner + LANES - 1) // LANES * LANES
        memory = allocate_floats(2 * RUN + 2 * taps * RUN + 4 * taps + 2 * (room + LEAST) * channels)
        if memory == 0:
            return False
        places, across = pointer(memory, np.int64), pointer(memory + 8 * RUN, np.float32)
        down = shifted(across, taps * RUN)
        line = shifted(down, taps * RUN + 4 * taps)
        apart = shifted(line, (room + LEAST) * channels)
        pixels = pointer(memory + 8 * RUN + 8 * taps * RUN, np.int32)
        lines = shifted(pixels, taps)
        step, along = (rows * columns, np.int64(1)) if planes == channels else (np.int64(1), channels)
        fast = vectors and channels <= 4 and channels != 2
        for y in range(row, stop):
            into, kept = shifted(out, y * columns * along), np.int64(0)
            for first in range(0, inner, RUN):
                last = min(first + RUN, inner)
                line_here = line_of(horizontal, vertical, np.int64(first), np.int64(last), y)
                if vectors and fast:
                    (left, low, top, high), ends = at_of(line_here, 0), at_of(line_here, last - 1 - first)
                    right, below = span(left, low, ends[1], width), span(top, high, ends[3], height)
                    if min(right, below) >= 0 and readable(frame, below + taps - 1, right * frame[4]):
                        find(frame, line_here, last - first, places, across, down)
                        sums(
                            frame[0], frame[1], places, down, across, last - first, normal[0], normal[1],
                            shifted(line, first * channels), channels,
                        )  # fmt: skip
                        continue
                    store_run(shifted(line, kept * channels), apart, kept, y, first - kept, out, layout)
                    kept = last
                for x in range(first, last):
                    left, at, top, to = at_of(line_here, x - first)
                    locate(at, left, -_FAR, _FAR, width, outside, pixels, across)
                    locate(to, top, -_FAR, _FAR, height, outside, lines, down)
                    store_pixel(
                        frame, lines, pixels, down, across, shifted(into, x * along), step, channels, normal, outside,
                    )  # fmt: skip
            if vectors and fast:
                store_run(shifted(line, kept * channels), apart, kept, y, inner - kept, out, layout)
        release(memory)
        return True

    if maps:
        axes, numbers = (_quad_axes, sampling.QUAD_NUMBERS) if quads else (_map_axes, sampling.MAP_NUMBERS)
        own = {"options": False, "plain_axes": axes, "numbers": numbers}
    return make(map_band if maps else box_band, frame_dtype, out_dtype, order=order, **(own if maps else {}))


_map_axes = compiled(lambda n, frame, columns, rows: ((n[0], n[1], n[2]), (n[3], n[4], n[5])))


@compiled
def _quad_axes(numbers, frame, columns, rows):
    a, b, c, d, e, f, g, h, i = _quad_map(
        np.float64(numbers[0]), np.float64(numbers[1]), np.float64(numbers[2]), np.float64(numbers[3]),
        np.float64(numbers[4]), np.float64(numbers[5]), np.float64(numbers[6]), np.float64(numbers[7]), columns, rows,
    )  # fmt: skip
    return (a, b, c, g, h, i), (d, e, f, g, h, i)
