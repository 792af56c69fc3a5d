"""What the crop kernels have in common: their arguments, which band of which item a thread makes next, where a box lies
in its frame and its image in the item, and what surrounds that."""

from collections.abc import Callable

import numpy as np

from octopus.kernels import geometry
from octopus.kernels.arguments import ITEM
from octopus.kernels.cpu import NO_MEMORY, compiled, next_block, pointer, shifted
from octopus.kernels.cpu.store import STORED
from octopus.kernels.cpu.video import VIDEO

_box_axis, _span = compiled(geometry.box_axis), compiled(geometry.span)
_widen, _reach_out = compiled(geometry.widen), compiled(geometry.reach_out)
_inner_size, _padding_before = compiled(geometry.inner_size), compiled(geometry.padding_before)
_way_back, _way_back_uncut = compiled(geometry.way_back), compiled(geometry.way_back_uncut)
_beyond_pixel, _filter_reach = compiled(geometry.beyond_pixel), compiled(geometry.filter_reach)
filter_support = compiled(geometry.filter_support)
_LONGS, _INTS = ITEM.itemsize // 8, ITEM.itemsize // 4


@compiled
def box_axes(box, frame, columns, rows):
    """The two axes of a box that is cut at the frame and fills its item."""
    horizontal = _box_axis(box[0], box[2], np.int32(frame[2]))
    return horizontal, _box_axis(box[1], box[3], np.int32(frame[3]))


@compiled
def place_box(box, frame, layout, antialias, reach, letterbox, outside):
    """The two axes of a box and its place in the item; arguments as in `kernel_of`. An axis is `first, last, origin,
    extent` from `geometry.box_axis` or `geometry.span`, the place columns before the image, rows above it, its width
    and its height."""
    cut = outside < 0
    width, height = np.int32(frame[2]), np.int32(frame[3])
    columns, rows = np.int32(layout[0]), np.int32(layout[1])
    left, last_x, origin_x, extent_x = _box_axis(box[0], box[2], width) if cut else _span(box[0], box[2])
    top, last_y, origin_y, extent_y = _box_axis(box[1], box[3], height) if cut else _span(box[1], box[3])
    inner_width, inner_height = columns, rows
    if letterbox:
        inner_width, inner_height = _inner_size(extent_x, extent_y, columns, rows)
    if reach > 0:
        reach_x = reach_y = np.int32(reach)
        if antialias:
            reach_x = _filter_reach(filter_support(extent_x / np.float32(inner_width)))
            reach_y = _filter_reach(filter_support(extent_y / np.float32(inner_height)))
        if cut:
            left, last_x, origin_x = _widen(left, last_x, origin_x, width, reach_x)
            top, last_y, origin_y = _widen(top, last_y, origin_y, height, reach_y)
        else:
            left, last_x, origin_x = _reach_out(left, last_x, origin_x, reach_x)
            top, last_y, origin_y = _reach_out(top, last_y, origin_y, reach_y)
    before, above = _padding_before(columns, inner_width), _padding_before(rows, inner_height)
    horizontal, vertical = (left, last_x, origin_x, extent_x), (top, last_y, origin_y, extent_y)
    return horizontal, vertical, (before, above, inner_width, inner_height)


@compiled
def store_transform(box, horizontal, vertical, place, outside, into):
    """Write `scale_x, scale_y, shift_x, shift_y` from the item back to the frame."""
    if outside < 0:
        into[0], into[2] = _way_back(box[0], horizontal[3], place[2], place[0])
        into[1], into[3] = _way_back(box[1], vertical[3], place[3], place[1])
    else:
        into[0], into[2] = _way_back_uncut(box[0], horizontal[3], place[2], place[0])
        into[1], into[3] = _way_back_uncut(box[1], vertical[3], place[3], place[1])


@compiled
def _fill(line, start, stop, pad, plane, channels):
    """Columns of a row; `plane` is the channel, or -1 where all channels of a column lie side by side."""
    if plane >= 0:
        for i in range(start, stop):
            line[i] = pad[plane]
        return
    for i in range(start, stop):
        for c in range(channels):
            line[i * channels + c] = pad[c]


@compiled
def fill_padding(out, place, row, stop, pad, layout):
    """Write `pad` (C,), in the storage type of `out`, around the image, within rows `row` to `stop`."""
    before, above, inner_columns, inner_rows = place
    columns, rows, planes, channels = layout
    row_values = columns * channels // planes
    for p in range(planes):
        plane = p if planes == channels else -1
        for y in range(row, stop):
            line = shifted(out, (p * rows + y) * row_values)
            if above <= y < above + inner_rows:
                _fill(line, np.int64(0), np.int64(before), pad, plane, channels)
                _fill(line, np.int64(before + inner_columns), columns, pad, plane, channels)
            else:
                _fill(line, np.int64(0), columns, pad, plane, channels)


@compiled
def is_inside(axis, limit):
    return axis[0] >= 0 and axis[0] + axis[1] < limit


@compiled
def pixel_of(pixel, limit, outside):
    """The frame's pixel, or row, that stands for one along an axis; -1 where the constant does."""
    return np.int64(_beyond_pixel(np.int32(pixel), np.int32(limit), outside))


def kernel_of(
    band: Callable,
    frame_dtype: str,
    out_dtype: str,
    *,
    antialias: bool = False,
    options: bool = True,
    order: str = "RGB",
    plain_axes: Callable = box_axes,
    numbers: int = 4,
) -> Callable:
    """A kernel that makes bands of rows by a function, of a pointer to these integers; sizes and steps count elements::

        counter, blocks
        frame, from frame to frame, from row to row, width, height, channels
        index (N,) int32, boxes (N, numbers) float32, out, transform (N, 4) float32
        columns, rows, planes (C, or 1 for NHWC), rows of a band
        gain, bias, padding (C,) float32, padding in the dtype of out
        reach (pixels beyond a box with edge="image", else 0), letterbox (0 or 1)
        outside (-1: cut; else the mode of geometry.beyond_pixel)
        from the gain, bias and padding of an item to those of the next: 0 or C
        of video: chroma, from row to row, coefficients (8,) float32

    `band` makes rows of an item's image: `frame, horizontal, vertical, place, row, stop, out, layout, normal, outside`;
    see `place_box`. `frame` is a pointer to one frame, its pitch, width and height, the values that it stores of a
    pixel and whether blue is the first of them, then for video a pointer to the chroma, its pitch, and a pointer to the
    coefficients. `out` is a pointer to the item, `layout` its columns, rows, planes and channels, `normal` pointers to
    gain, bias and padding. It returns whether there was memory for it; without, the number of blocks becomes
    `NO_MEMORY`, which ends all threads.

    Without `options` the kernel is compiled in half the time, for calls without letterbox, `edge="image"` and padding;
    `plain_axes` then makes `horizontal, vertical` of a pointer to a box, of so many `numbers`, the frame, and columns
    and rows.
    """
    pixel, value = getattr(np, VIDEO.get(frame_dtype, frame_dtype)), STORED[out_dtype]
    plain, stored, back = order == "RGB", len(order), order[0] == "B"

    @compiled
    def frame_of(arguments, pixels):
        step = arguments[7] if plain else stored
        return pixels, arguments[4], arguments[5], arguments[6], step, back

    @compiled
    def video_of(arguments, pixels):
        chroma, coefficients = pointer(arguments[24], pixel), pointer(arguments[26], np.float32)
        pitch, width, height = arguments[4], arguments[5], arguments[6]
        return pixels, pitch, width, height, np.int64(1), back, chroma, arguments[25], coefficients

    one_of = video_of if frame_dtype in VIDEO else frame_of

    def kernel(arguments):
        frames, index = pointer(arguments[2], pixel), pointer(arguments[8], np.int32)
        boxes, out = pointer(arguments[9], np.float32), pointer(arguments[10], value)
        transform, stored_pad = pointer(arguments[11], np.float32), pointer(arguments[19], value)
        columns, rows, rows_per_band = arguments[12], arguments[13], arguments[15]
        layout = (columns, rows, arguments[14], arguments[7])
        gain, bias = pointer(arguments[16], np.float32), pointer(arguments[17], np.float32)
        pad, own = pointer(arguments[18], np.float32), arguments[23]
        reach, letterbox, outside = arguments[20], arguments[21] != 0, arguments[22]
        bands = (rows + rows_per_band - 1) // rows_per_band
        while True:
            block = next_block(arguments[0])
            if block >= arguments[1]:
                return
            item = block // bands
            row = (block - item * bands) * rows_per_band
            stop = min(row + rows_per_band, rows)
            box, into = shifted(boxes, numbers * item), shifted(out, item * rows * columns * arguments[7])
            normal = shifted(gain, item * own), shifted(bias, item * own), shifted(pad, item * own)
            frame = one_of(arguments, shifted(frames, index[item] * arguments[3]))
            if options:
                horizontal, vertical, place = place_box(box, frame, layout, antialias, reach, letterbox, outside)
                if letterbox:
                    fill_padding(into, place, row, stop, shifted(stored_pad, item * own), layout)
                    if row == 0:
                        store_transform(box, horizontal, vertical, place, outside, shifted(transform, 4 * item))
                first, stop = row - place[1], stop - place[1]
                first, stop = first if first > 0 else 0, stop if stop < place[3] else place[3]
                done = first >= stop or band(
                    frame, horizontal, vertical, place, first, stop, into, layout, normal, outside
                )
            else:
                place = (np.int32(0), np.int32(0), np.int32(columns), np.int32(rows))
                horizontal, vertical = plain_axes(box, frame, place[2], place[3])
                done = band(frame, horizontal, vertical, place, row, stop, into, layout, normal, outside)
            if not done:
                arguments[1] = NO_MEMORY
                return

    return kernel


def varied_kernel_of(
    band: Callable,
    frame_dtype: str,
    out_dtype: str,
    *,
    antialias: bool = False,
    options: bool = True,
    order: str = "RGB",
    plain_axes: Callable = box_axes,
    numbers: int = 4,  # which a record's `box` counts
) -> Callable:
    """The same for items that each have a record of `arguments.ITEM`, and of which a table tells the bands.

    Its arguments are::

        counter, blocks
        table, item (blocks,) int32 and first row (blocks,) int64 of each band, rows of a band at most
        boxes float32, out, transform (N, 4) float32
        planes (C, or 1 for NHWC), channels
        gain, bias, padding (C,) float32, padding in the dtype of out
        reach, letterbox, outside
    """
    pixel, value = getattr(np, frame_dtype), STORED[out_dtype]
    plain, stored, back = order == "RGB", len(order), order[0] == "B"

    def kernel(arguments):
        table, sides = pointer(arguments[2], np.int64), pointer(arguments[2], np.int32)
        owner, first_row = pointer(arguments[3], np.int32), pointer(arguments[4], np.int64)
        boxes, results = pointer(arguments[6], np.float32), pointer(arguments[7], value)
        transform, stored_pad = pointer(arguments[8], np.float32), pointer(arguments[14], value)
        planes, channels = arguments[9], arguments[10]
        gain, bias = pointer(arguments[11], np.float32), pointer(arguments[12], np.float32)
        normal = gain, bias, pointer(arguments[13], np.float32)
        reach, letterbox, outside = arguments[15], arguments[16] != 0, arguments[17]
        while True:
            block = next_block(arguments[0])
            if block >= arguments[1]:
                return
            item, row = np.int64(owner[block]), first_row[block]
            record, words = shifted(table, _LONGS * item), shifted(sides, _INTS * item + 8)
            columns, rows = np.int64(words[2]), np.int64(words[3])
            stop = min(row + arguments[5], rows)
            step = channels if plain else stored
            frame = pointer(record[0], pixel), record[3], np.int64(words[0]), np.int64(words[1]), step, back
            box, into = shifted(boxes, record[1]), shifted(results, record[2])
            layout = (columns, rows, planes, channels)
            inner = (np.int64(words[4]), np.int64(words[5]), planes, channels)
            if options:
                horizontal, vertical, place = place_box(box, frame, inner, antialias, reach, letterbox, outside)
                if letterbox and row == 0:
                    store_transform(box, horizontal, vertical, place, outside, shifted(transform, 4 * item))
            else:
                horizontal, vertical = plain_axes(box, frame, words[4], words[5])
                place = (np.int32(0), np.int32(0), words[4], words[5])
            fill_padding(into, place, row, stop, stored_pad, layout)
            first, stop = row - place[1], stop - place[1]
            first, stop = first if first > 0 else 0, stop if stop < place[3] else place[3]
            if first < stop and not band(
                frame, horizontal, vertical, place, first, stop, into, layout, normal, outside
            ):
                arguments[1] = NO_MEMORY
                return

    return kernel
