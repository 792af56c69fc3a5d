"""Images of any size resized, normalised and put in their final order on the CPU, all in one launch.

A block is a tile of one image's item: a strip of columns and a band of rows. Each source row that the tile needs goes
through the horizontal pass once, into a ring of rows a little longer than the vertical filter is high.

The horizontal pass works on 16 source rows at once. Their values are turned, so that a vector holds one value of each
row; a sum over taps then reads whole vectors, whatever pixels a column is made of, and one weight for all of them.
They stay as small as they are in the image until then: that costs a conversion for each tap, and less than it saves in
the second cache.
The sums are turned back into rows, with the channels of a column side by side or in lines of their own, as the result
wants them; the vertical pass and all that follows runs along such a row.

The fixed point of Pillow and torch (`rounding`) is a matter of integers, and sums pairs of neighbours.
`docs/kernels.md` has its steps, measured.
"""

from collections.abc import Callable

import numpy as np

from octopus.kernels.cpu import NO_MEMORY, compiled, next_block, pointer, release, shifted
from octopus.kernels.cpu.images_axis import counted_from, most_taps, pair_up, used_rows, weights_of
from octopus.kernels.cpu.images_source import ENDS, MAX_STRIDE, RECORD, carve, grown, inside, read_record, reader_of, up
from octopus.kernels.cpu.images_store import LINE, fill_zeros, finish_of, place_patches, place_row
from octopus.kernels.cpu.store import STORED
from octopus.kernels.cpu.vectors import LANES, WIDE, store_along, store_pairs, sum_across, sum_along


def build(source_dtype: str, out_dtype: str, channels: int, rounding: str) -> Callable:
    """The kernel for dtypes of images and results, up to 4 channels, and whose fixed point images of uint8 are made in
    ("pillow", "torch"; "" is float), of a pointer to these integers; sizes count elements::

        counter, blocks
        records of the images, their tiles (N + 1, 3) int64: number of the first, rows, columns
        out
        rows and columns of an item (0: each has its own), whether items are rows of patches
        whether channels lie apart, patch, merge, temporal
        filter, antialias, whether to round to uint8
        gain, bias, padding (C,) float32
        rows of each item (0: as many as it has), whether to write past the caches, values of a row of patches
    """
    stored, fixed = STORED[out_dtype], bool(rounding)
    number, out_size = np.int32 if fixed else np.float32, np.int64(np.dtype(stored).itemsize)
    weigh, finish = weights_of(rounding), finish_of(out_dtype)
    pixel = getattr(np, source_dtype)
    describe, read = reader_of(source_dtype, channels, fixed)
    turn_back = store_pairs if fixed else store_along
    settle, group = (pair_up, np.int64(2)) if fixed else (counted_from, np.int64(1))
    direct = fixed and out_dtype == "uint8"  # values that are neither scaled nor cast need no float between
    turned_type, sum_type = (np.int16, np.int16) if fixed else (pixel, np.float32)
    vector, spare, turned_size = LANES * group, 2 * (group - 1), np.int64(np.dtype(turned_type).itemsize)

    @compiled
    def axis_of(table, taps, scratch):
        starts, sizes = pointer(table[0], np.int64), pointer(table[1], np.int64)
        return starts, sizes, pointer(table[2], number), taps, pointer(scratch, np.float64)

    @compiled
    def set_lines(lines, line, room, planar, normal, padded):
        """Gain and bias of each value of a row, a row of padding if there is any, and whether all gains are 1."""
        total, padding = pointer(lines[0], number), pointer(lines[3], stored)
        gains, biases = pointer(lines[1], np.float32), pointer(lines[2], np.float32)
        gain, bias, pad = normal
        plain = direct
        for c in range(channels):
            plain = plain and gain[c] == 1.0 and bias[c] == 0.0
        if padded:
            for i in range(line):
                c = min(i // room, channels - 1) if planar else i % channels
                total[i], gains[i], biases[i] = number(0), gain[c], pad[c]
            finish(total, gains, biases, False, line, padding)
        if not plain:
            for i in range(line):
                c = min(i // room, channels - 1) if planar else i % channels
                gains[i], biases[i] = gain[c], bias[c]
        return total, gains, biases, plain

    @compiled
    def finish_row(ring, line, slots, first, weights, count, totals, rounds, done):
        """The vertical pass of a row of the result, and its values, at `done`."""
        total, gains, biases, plain = totals
        if plain:
            for at in range(0, line, WIDE * LANES):
                sum_along(
                    shifted(ring, at * group), line * group, slots, first, weights, count,
                    shifted(pointer(done, np.uint8), at),
                )  # fmt: skip
            return
        for at in range(0, line, WIDE * LANES):
            sum_along(shifted(ring, at * group), line * group, slots, first, weights, count, shifted(total, at))
        finish(total, gains, biases, rounds, line, pointer(done, stored))

    @compiled
    def pad_around(padding, room, out, band, strip, rows, columns, item):
        """Write the padding of a tile, of which the image has `rows` and `columns`."""
        for y in range(band[0], band[1]):
            outside = y < rows[0] or y >= rows[1]
            for side in range(2):
                start = columns[1] if side else strip[0]
                stop = strip[1] if side or outside else columns[0]
                if not (side and outside):
                    place_row(padding, room, out, y, start, stop, item)

    @compiled
    def pass_across(image, steps, source, count, across, places, planar, room, turned, sums, ring, line, ends):
        """16 source rows at the tile's `count` columns; their rows of the ring are neighbours."""
        starts, sizes, weights, taps, _ = across
        _, _, _, stride, channel_step, begin = source
        column_step, sums_step = (LANES, LANES * LANES) if planar else (channels * LANES, LANES)
        ready = np.int64(0)
        for low in range(0, count, LANES):
            high = min(low + LANES, count)
            needed = (starts[high - 1] + sizes[high - 1]) * stride
            if ready < needed:
                ready = read(image, steps, source, places, ready, needed, turned, ends)
            for x in range(low, high):
                values = shifted(turned, (starts[x] * stride + begin) * vector)
                sum_across(
                    values, stride * vector, channel_step * vector, shifted(weights, x * taps), sizes[x],
                    shifted(sums, (x - low) * column_step), sums_step, channels,
                )  # fmt: skip
            for part in range(channels):
                to = part * room + low if planar else low * channels + part * LANES
                turn_back(shifted(sums, part * LANES * LANES), shifted(ring, to * group), line * group)

    @compiled
    def make_rows(image, steps, source, shape, across, down, space, totals, corner, out, call):
        """The part of a tile that the image has, row by row; `corner` is its first row and column in the item."""
        wide, tall, room, line, slots, (_, taps) = shape
        patches, planar, grid, _, _, rounds, _, item = call
        starts, sizes, weights, _, _ = down
        turned, sums, ring = (
            pointer(space[0], turned_type), pointer(space[1], sum_type), pointer(space[2], sum_type)
        )  # fmt: skip
        places, loaded, patch, (top, left) = pointer(space[8], np.int64), np.int64(0), grid[0], corner
        for i in range(tall):
            while loaded < (starts[i] + sizes[i]) * group:
                pass_across(
                    image, steps, source, wide, across, shifted(places, loaded), planar, room, turned, sums,
                    shifted(ring, loaded % slots * line), line, space[0] - ENDS,
                )  # fmt: skip
                loaded += LANES
            y = top + i
            done = space[4] + (y % patch * line * out_size if patches else 0)
            finish_row(
                ring, line, slots // group, starts[i] % (slots // group), shifted(weights, i * taps), sizes[i],
                totals, rounds, done,
            )  # fmt: skip
            if not patches:
                place_row(done, room, out, y, left, left + wide, item)
            elif y % patch == patch - 1:
                place_patches(space[4], line * out_size, room, out, y // patch, left, left + wide, item, grid, space[5])

    @compiled
    def make_tile(record, band, strip, call, memory):
        """One tile; returns the memory for it, in place of `memory`: of address 0 if there is none."""
        image, out, steps, (height, width, all_rows, all_columns), (top, left) = record
        patches, planar, grid, filter, antialias, _, normal, item = call
        columns, rows = (inside(strip[0], strip[1], left, all_columns), inside(band[0], band[1], top, all_rows))
        wide, tall, room = columns[1] - columns[0], rows[1] - rows[0], up(strip[1] - strip[0], LANES)
        taps = (
            most_taps(width, all_columns, filter, antialias), most_taps(height, all_rows, filter, antialias)
        )  # fmt: skip
        line = up(room * channels, WIDE * LANES)
        shape = (
            wide, tall, room, line, up(taps[1] + 2, LANES) + LANES, (taps[0] + spare, taps[1] + spare)
        )  # fmt: skip
        span = min(np.int64(wide * (np.float64(width) / np.float64(all_columns))) + taps[0] + 2, width)
        needs = (
            (span + LANES) * MAX_STRIDE * LANES * turned_size,
            line * out_size * grid[0],
            grid[3] * out_size if patches else np.int64(0),
            min(tall * taps[1], height),
        )
        memory = grown(memory, carve(np.int64(0), shape, *needs)[10])
        if memory[0] == 0:
            return memory
        space = carve(up(memory[0], LINE), shape, *needs)
        padded = wide < strip[1] - strip[0] or tall < band[1] - band[0]
        totals = set_lines(space[3], line, room, planar, normal, padded)
        if padded:
            pad_around(space[3][3], room, out, band, strip, rows, columns, item)
        if wide == 0 or tall == 0:
            return memory
        across, down = axis_of(space[6], shape[5][0], space[9]), axis_of(space[7], shape[5][1], space[9])
        weigh(width, all_columns, filter, antialias, columns[0] + left, columns[1] + left, across)
        weigh(height, all_rows, filter, antialias, rows[0] + top, rows[1] + top, down)
        used_rows(down[0], down[1], tall, steps[1], LANES, pointer(space[8], np.int64))
        first = across[0][0]
        source = describe(steps, first, across[0][wide - 1] + across[1][wide - 1] - first)
        settle(across, wide, first, pointer(space[9], number))
        settle(down, tall, 0, pointer(space[9], number))
        corner = (rows[0], columns[0])
        make_rows(image, steps, source, shape, across, down, space, totals, corner, out, call)
        return memory

    def kernel(arguments):
        tiles, out, max_rows = pointer(arguments[3], np.int64), arguments[4], arguments[18]
        patches, planar = arguments[7] != 0, arguments[8] != 0
        grid = (arguments[9], arguments[10], arguments[11], arguments[20])
        row_bytes = grid[3] * out_size
        normal = (
            pointer(arguments[15], np.float32), pointer(arguments[16], np.float32),
            pointer(arguments[17], np.float32),
        )  # fmt: skip
        image, memory = np.int64(0), (np.int64(0), np.int64(0))
        while True:
            block = next_block(arguments[0])
            if block >= arguments[1]:
                break
            while tiles[3 * image + 3] <= block:
                image += 1
            address, begin, steps, sides, corner = read_record(arguments[2] + RECORD * image)
            rows, columns = (arguments[5], arguments[6]) if arguments[5] else (sides[2], sides[3])
            tile, high, wide = block - tiles[3 * image], tiles[3 * image + 1], tiles[3 * image + 2]
            bands = (rows + high - 1) // high
            band, strip = tile % bands * high, tile // bands * wide
            into = out + begin * (row_bytes if patches else out_size)
            if tile == 0 and max_rows > 0:
                used = rows * columns // (grid[0] * grid[0])
                fill_zeros(into + used * row_bytes, (max_rows - used) * row_bytes)
            item = (rows, columns, np.int64(channels), planar, out_size, arguments[19] != 0)
            rules = (arguments[12], arguments[13] != 0, arguments[14] != 0)
            call = (patches, planar, grid, *rules, normal, item)
            memory = make_tile(
                (address, into, steps, sides, corner), (band, min(band + high, rows)),
                (strip, min(strip + wide, columns)), call, memory,
            )  # fmt: skip
            if memory[0] == 0:
                arguments[1] = NO_MEMORY
                return
        if memory[0] != 0:
            release(memory[0])

    return kernel
