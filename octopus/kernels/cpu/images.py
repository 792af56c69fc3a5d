"""Images of any size resized, normalised and put in their final order on the CPU, all in one launch.

A block is a tile of one image's item: a run of columns and a band of rows. Each source row that the tile needs goes
through the horizontal pass once, into a ring of rows as long as the vertical filter is high.

The horizontal pass works on 16 source rows at once. Their values are turned, so that a vector holds one value of each
row; a sum over taps then reads whole vectors, whatever pixels a column is made of, and one weight for all of them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from octopus.kernels.cpu import NO_MEMORY, compiled, next_block, pointer, release, shifted
from octopus.kernels.cpu import _allocate as allocate
from octopus.kernels.cpu.images_axis import most_taps, weights_of
from octopus.kernels.cpu.images_store import STORED, finish_of, place_patches, place_row
from octopus.kernels.cpu.vectors import LANES, load_across, store_along, sum_across, sum_along

VECTOR = 64  # bytes of 16 values
_WORD = 8


@compiled
def _up(count, unit):
    return (count + unit - 1) // unit * unit


@compiled
def read_image(address):
    """The record of an image as integers."""
    wide, narrow = pointer(address, np.int64), pointer(address + 3 * _WORD, np.int32)
    steps = (wide[2], np.int64(narrow[0]), np.int64(narrow[1]))
    sides = (np.int64(narrow[2]), np.int64(narrow[3]), np.int64(narrow[4]), np.int64(narrow[5]))
    return wide[0], wide[1], steps, sides, (np.int64(narrow[6]), np.int64(narrow[7]))


def build(source_dtype: str, out_dtype: str, channels: int, fixed: bool) -> Callable:
    pixel, stored = getattr(np, source_dtype), STORED[out_dtype]
    number = np.int32 if fixed else np.float32
    size, out_size = np.dtype(source_dtype).itemsize, np.dtype(stored).itemsize
    weigh, finish = weights_of(fixed), finish_of(out_dtype)

    @compiled
    def layout_of(steps):
        """How the values of a row lie: values from pixel to pixel and from channel to channel, and channel 0's place
        among them; 0 where each must be fetched on its own."""
        plane, _, step = steps
        if channels == 1:
            plane = 0
        stride = step // size
        if step % size != 0 or plane % size != 0 or stride < 1 or stride > 4:
            return 0, 0, 0
        plane //= size
        if abs(plane) * (channels - 1) < stride:
            return stride, plane, max(-plane * (channels - 1), 0)
        return stride, plane, -1

    @compiled
    def load_each(source, steps, first, count, last, into):
        """`load_across` for pixels that lie in any other way: all channels of `count` pixels."""
        plane, row_step, step = steps
        for x in range(count):
            for c in range(channels):
                for r in range(LANES):
                    at = source + min(r, last) * row_step + (first + x) * step + c * plane
                    into[(x * channels + c) * LANES + r] = number(pointer(at, pixel)[0])

    @compiled
    def fill(source, steps, last, across, first, count, columns, planar, room, turned, sums, ring, line):
        """16 source rows, the first at address `source`, through the horizontal pass into the ring."""
        starts, sizes, weights, taps, _ = across
        plane_step, row_step, pixel_step = steps
        stride, plane, origin = layout_of(steps)
        apart = origin < 0
        values = (count - 1) * stride + 1 + (0 if apart else abs(plane) * (channels - 1))
        ready = np.int64(0)
        step, channel_step, begin = stride, plane, origin
        base = source + first * pixel_step
        if apart:
            channel_step, begin = values, 0
        else:
            base -= origin * size
        if stride == 0 or values < LANES:
            load_each(source, steps, first, count, last, turned)
            step, channel_step, begin, ready = channels, 1, 0, values + (1 << 40)
        for x0 in range(0, columns, LANES):
            x1 = min(x0 + LANES, columns)
            needed = min((starts[x1 - 1] + sizes[x1 - 1] - first) * stride, values)
            while ready < needed:
                at = min(ready, values - LANES)
                if apart:
                    for c in range(channels):
                        load_across(
                            pointer(base + at * size + c * plane_step, pixel), row_step, last,
                            shifted(turned, (c * values + at) * LANES),
                        )
                else:
                    load_across(pointer(base + at * size, pixel), row_step, last, shifted(turned, at * LANES))
                ready = at + LANES
            into_column, into_channel = (LANES, LANES * LANES) if planar else (channels * LANES, LANES)
            for x in range(x0, x1):
                sum_across(
                    shifted(turned, ((starts[x] - first) * step + begin) * LANES), step * LANES,
                    channel_step * LANES, shifted(weights, x * taps), sizes[x],
                    shifted(sums, (x - x0) * into_column), into_channel, channels,
                )
            for part in range(channels):
                to = part * room + x0 if planar else x0 * channels + part * LANES
                store_along(shifted(sums, part * LANES * LANES), shifted(ring, to), line)

    @compiled
    def make_tile(image, band, strip, call, memory, capacity):
        base, out, steps, (height, width, rows, columns), (top, left) = image
        kind, planar, grid, code, antialias, rounds, gain, bias, pad, item_rows, item_columns, streams = call
        y0, y1 = band
        x0, x1 = strip
        a, b = min(max(x0, -left), x1), max(min(x1, columns - left), x0)
        ya, yb = min(max(y0, -top), y1), max(min(y1, rows - top), y0)
        b, yb = max(a, b), max(ya, yb)
        inner, tall, wide = b - a, yb - ya, x1 - x0
        tx, ty = most_taps(width, columns, code, antialias), most_taps(height, rows, code, antialias)
        room = _up(wide, LANES)
        line = _up(room * channels, 4 * LANES)
        slots = _up(ty, LANES) + LANES
        span = min(np.int64((inner + 1) * np.float64(width) / np.float64(columns)) + tx + 2, width) + 1
        turned_size = (span * 4 if channels < 4 else span * channels) + LANES
        patch = grid[0]
        row_bytes = _up(channels * patch * patch * grid[2] * out_size, VECTOR) if kind != 0 else 0
        staged = line * out_size * (patch if kind != 0 else 1)
        needed = (
            row_bytes + _up(staged, VECTOR) +
            2 * _WORD * (wide + tall) + 4 * (wide * tx + tall * ty) + _WORD * max(tx, ty)
            + VECTOR * (turned_size + channels * LANES) + 4 * line * (slots + 4) + 16 * VECTOR
        )
        if needed > capacity:
            if memory != 0:
                release(memory)
            memory, capacity = allocate(needed), needed
            if memory == 0:
                return memory, capacity
        at = _up(memory, VECTOR)
        turned = pointer(at, number)
        at += VECTOR * turned_size
        sums = pointer(at, number)
        at += VECTOR * channels * LANES
        ring = pointer(at, number)
        at += 4 * line * slots
        total, gains = pointer(at, number), pointer(at + 4 * line, np.float32)
        biases, padding = pointer(at + 8 * line, np.float32), at + 12 * line
        at += 16 * line
        done, patch_row = at, at + _up(staged, VECTOR)
        at = patch_row + row_bytes
        starts_x, sizes_x = pointer(at, np.int64), pointer(at + _WORD * wide, np.int64)
        at += 2 * _WORD * wide
        starts_y, sizes_y = pointer(at, np.int64), pointer(at + _WORD * tall, np.int64)
        at += 2 * _WORD * tall
        scratch = pointer(at, np.float64)
        at += _WORD * max(tx, ty)
        across = (starts_x, sizes_x, pointer(at, number), tx, scratch)
        down = (starts_y, sizes_y, pointer(at + 4 * wide * tx, number), ty, scratch)

        for i in range(line):
            c = min(i // room, channels - 1) if planar else i % channels
            gains[i], biases[i], total[i] = gain[c], pad[c], number(0)
        finish(total, gains, biases, False, line, pointer(padding, stored))
        for i in range(line):
            c = min(i // room, channels - 1) if planar else i % channels
            biases[i] = bias[c]

        item = (item_rows, item_columns, channels, planar, np.int64(out_size), streams)
        for y in range(y0, y1):
            if y < ya or y >= yb:
                place_row(padding, room, out, y, x0, x1, item)
            else:
                if x0 < a:
                    place_row(padding, room, out, y, x0, a, item)
                if b < x1:
                    place_row(padding, room, out, y, b, x1, item)
        if inner == 0 or tall == 0:
            return memory, capacity
        weigh(width, columns, code, antialias, a + left, b + left, across)
        weigh(height, rows, code, antialias, ya + top, yb + top, down)
        first = starts_x[0]
        count = starts_x[inner - 1] + sizes_x[inner - 1] - first
        top_row = starts_y[0]
        loaded = top_row
        for y in range(ya, yb):
            i = y - ya
            while loaded < starts_y[i] + sizes_y[i]:
                slot = (loaded - top_row) % slots
                fill(
                    base + loaded * steps[1], steps, min(np.int64(LANES), height - loaded) - 1, across, first, count, inner,
                    planar, room, turned, sums, shifted(ring, slot * line), line,
                )
                loaded += LANES
            slot = (starts_y[i] - top_row) % slots
            weights = shifted(down[2], i * ty)
            for part in range(0, line, 4 * LANES):
                sum_along(shifted(ring, part), line, slots, slot, weights, sizes_y[i], shifted(total, part))
            inner_row = y % patch if kind != 0 else 0
            finish(total, gains, biases, rounds, line, pointer(done + inner_row * line * out_size, stored))
            if kind == 0:
                place_row(done, room, out, y, a, b, item)
            elif inner_row == patch - 1:
                place_patches(done, line * out_size, room, out, y // patch, a, b, item, grid, patch_row)
        return memory, capacity

    def kernel(arguments):
        tiles = pointer(arguments[3], np.int64)
        planar = arguments[8] != 0
        grid = (arguments[9], arguments[10], arguments[11])
        images = np.int64(0)
        memory, capacity = np.int64(0), np.int64(0)
        while True:
            block = next_block(arguments[0])
            if block >= arguments[1]:
                break
            while tiles[3 * (images + 1)] <= block:
                images += 1
            base, out, steps, sides, corner = read_image(arguments[2] + 64 * images)
            item_rows, item_columns = arguments[5], arguments[6]
            if item_rows == 0:
                item_rows, item_columns = sides[2], sides[3]
            number_of = block - tiles[3 * images]
            high, wide = tiles[3 * images + 1], tiles[3 * images + 2]
            bands = (item_rows + high - 1) // high
            y0, x0 = number_of % bands * high, number_of // bands * wide
            if arguments[7] != 0:
                length = channels * grid[0] * grid[0] * (grid[2] if planar else 1)
                out = arguments[4] + out * length * out_size
            else:
                out = arguments[4] + out * out_size
            call = (
                arguments[7], planar, grid, arguments[12], arguments[13] != 0, arguments[14] != 0,
                pointer(arguments[15], np.float32), pointer(arguments[16], np.float32),
                pointer(arguments[17], np.float32), item_rows, item_columns, arguments[19] != 0,
            )
            memory, capacity = make_tile(
                (base, out, steps, sides, corner), (y0, min(y0 + high, item_rows)),
                (x0, min(x0 + wide, item_columns)), call, memory, capacity,
            )
            if memory == 0:
                arguments[1] = NO_MEMORY
                return
        if memory != 0:
            release(memory)

    return kernel
