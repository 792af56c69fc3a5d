"""The crop kernel for items that differ: of frames and sizes of their own, boxes, affine maps or quadrilaterals.

A warp makes a band of rows of 32 columns of an item, or of some times 32, of which each thread has every 32nd: so all
stores are of neighbours, wherever items begin and however wide they are. A thread makes one column as those of
`per_column` do, whose bodies these are; or `values` of what `stream` can do, by its row loop. It finds its item in one
of the four ways of `kernels.cuda.ragged`, among the numbers of each item's first unit, and reads the item's record; a
unit is a thread's work.
"""

from collections.abc import Callable

import numpy as np

from octopus.backends.cuda.language import cuda, device
from octopus.kernels import geometry, sampling
from octopus.kernels.arguments import ITEM, VARIED, VARIED_MANY
from octopus.kernels.cuda import per_column, ptx
from octopus.kernels.cuda.place import box_is_usable, no_transform, placer, transform_store
from octopus.kernels.cuda.ragged import among_items, search
from octopus.kernels.cuda.rows import Pixels, source_rows
from octopus.kernels.cuda.stream import divide, lanes_of, mixed, streamer
from octopus.kernels.cuda.tiles import SCALAR_CHANNELS, STREAM_BLOCKS, UNITS, WARP

_LONGS, _INTS = ITEM.itemsize // 8, ITEM.itemsize // 4
_map_is_usable, _span_is_usable = device(sampling.map_is_usable), device(geometry.span_is_usable)
_quad_is_usable = device(geometry.quad_is_usable)


def _finder(strategy: str) -> Callable:
    """A device function: a thread's item, the number of its unit in that, and whether there is such a unit."""
    among = among_items(strategy)

    @device
    def of_block(offsets, items, units, owner, starts):
        item = np.int32(owner[cuda.blockIdx.x])
        unit = np.int32(starts[cuda.blockIdx.x] + np.int64(cuda.threadIdx.x))
        return item, np.int32(unit - offsets[item]), unit < offsets[item + 1]

    @device
    def in_table(offsets, items, units, owner, starts):
        unit = np.int32(np.int32(cuda.blockIdx.x * UNITS) + np.int32(cuda.threadIdx.x))
        item = np.int32(owner[min(unit, np.int32(units - np.int32(1)))])
        return item, np.int32(unit - offsets[item]), unit < units

    @device
    def searched(offsets, items, units, owner, starts):
        begin = np.int32(cuda.blockIdx.x * UNITS)
        stop = min(np.int32(begin + np.int32(UNITS)), units)
        low, high = among(offsets, items, begin, stop)  # in which all threads of a warp take part
        unit = np.int32(begin + np.int32(cuda.threadIdx.x))
        item = np.int32(search(offsets, low, high, unit))
        return item, np.int32(unit - offsets[item]), unit < units

    return {"block_metadata": of_block, "lookup": in_table}.get(strategy, searched)


def build(
    channels: int,
    out_dtype: str,
    layout: str,
    *,
    kind: str,  # "boxes", "maps" or "quads"
    strategy: str,
    frame_dtype: str,
    box_dtype: str,
    filter: str,
    antialias: bool,
    edge: str,
    letterbox: bool,
    pad_mode: str,
    order: str,
    values: int = 0,  # of a thread in a row, or for NCHW columns, by the loop of `stream`; 0: by a body of `per_column`
    words: bool = False,  # see `rows.source_rows`
) -> Callable:
    """The kernel for a kind of frame, of result and of boxes, with the arguments `VARIED` or `VARIED_MANY`."""
    pixels = Pixels(channels, frame_dtype, order, narrow=words and out_dtype == "float32")  # as in `stream`
    planar, uncut, index = layout == "NCHW", bool(pad_mode), pixels.index
    maps, quads, find = kind == "maps", kind == "quads", _finder(strategy)
    store = ptx.streaming_store(out_dtype, 1, saturate=True, pairs=False)
    empty = np.float32(0.0) if out_dtype == "uint8" else np.float32(np.nan)
    place, store_transform = (
        placer(edge, letterbox, antialias, pad_mode, sampling.REACH[filter]), transform_store(pad_mode, False),
    )  # fmt: skip
    ints, floats, begin, make_row = per_column.body(pixels, kind, filter, antialias, pad_mode)
    per_row, across = channels if values and not planar else 1, max(values, 1)  # values of a column that threads share
    lanes = lanes_of(channels, across, planar, False, False, out_dtype, apart=WARP)
    planes, every = lanes.planes, lanes.columns * lanes.planes

    @device
    def emit(out, at, plane, first, change, weight, gains, biases, count):
        for c in range(planes):
            for v in range(across):
                if v < count:
                    value = mixed(first, change, weight, gains, biases, c * across + v)
                    store(out, at + np.int64(c) * plane + np.int64(v * WARP), (value,))

    if values:
        rows = source_rows(pixels, planar, values, words, WARP)
        stream = streamer(rows, emit, lanes, False, out_dtype != "float32", index)
    else:
        stream = emit  # never called

    @device
    def count_of(column, stop):
        return min(np.int32((stop - column + np.int32(WARP - 1)) >> np.int32(5)), np.int32(across))

    @device
    def work(frame, table, sides, boxes, out, transform, offsets, items, units, band, owner, starts, normal):
        item, unit, is_one = find(offsets, items, units, owner, starts)
        if not is_one:
            return
        start, box, into, pitch = (
            table[_LONGS * item], table[_LONGS * item + 1], table[_LONGS * item + 2], table[_LONGS * item + 3],
        )  # fmt: skip
        side = np.int64(_INTS) * item + 8
        width, height, out_width, out_height = sides[side], sides[side + 1], sides[side + 2], sides[side + 3]
        inner_width, inner_height = sides[side + 4], sides[side + 5]
        task, row_values = np.int32(unit >> np.int32(5)), np.int32(out_width * np.int32(per_row))
        chunks = np.int32((row_values + np.int32(WARP * across - 1)) // np.int32(WARP * across))
        number = np.int32(np.uint32(task) // np.uint32(chunks))
        column = np.int32((task - number * chunks) * np.int32(WARP * across) + (unit & np.int32(WARP - 1)))
        row = np.int32(number * band)
        if column >= row_values:
            return
        stop = min(np.int32(row + band), out_height)
        # An item has less than 2**31 values.
        channel_step, column_step = (
            (out_width * out_height, np.int32(1)) if planar else (np.int32(1), np.int32(channels))
        )
        plane, row_step = np.int64(channel_step), np.int64(np.int32(out_width * column_step))
        at = into + np.int64(np.int32(row * np.int32(row_step) + (column if values else column * column_step)))
        pad = normal[2]
        made = cuda.local.array(channels, np.float32)
        ints_x, ints_y = cuda.local.array(ints, np.int32), cuda.local.array(ints, np.int32)
        floats_x, floats_y = cuda.local.array(floats, np.float32), cuda.local.array(floats, np.float32)
        before, above, columns, rows = np.int32(0), np.int32(0), inner_width, inner_height
        if quads:
            x0, y0, x1, y1 = _four(boxes, box)
            x2, y2, x3, y3 = _four(boxes, box + 4)
            corners = (
                np.float64(x0), np.float64(y0), np.float64(x1), np.float64(y1),
                np.float64(x2), np.float64(y2), np.float64(x3), np.float64(y3),
            )  # fmt: skip
            good = _quad_is_usable(
                corners[0], corners[1], corners[2], corners[3], corners[4], corners[5], corners[6], corners[7]
            )
            last = min(stop, inner_height)
            axis_x, axis_y = (corners, inner_width, inner_height, row, last, width, height), height
        elif maps:
            ax, bx, cx, ay = _four(boxes, box)
            by, cy = np.float32(boxes[box + 4]), np.float32(boxes[box + 5])
            good = _map_is_usable(ax, bx, cx, inner_width, inner_height)
            good = good and _map_is_usable(ay, by, cy, inner_width, inner_height)
            axis_x, axis_y = (ax, bx, cx, width), (ay, by, cy, height)
        else:
            x1, y1, x2, y2 = _four(boxes, box)
            good = _span_is_usable(x1, y1, x2, y2) if uncut else box_is_usable(x1, y1, x2, y2, width, height)
            if good:
                left, last_x, origin_x, extent_x, top, last_y, origin_y, extent_y, before, above, columns, rows = place(
                    x1, y1, x2, y2, width, height, inner_width, inner_height
                )
            else:
                left, last_x, origin_x, extent_x = np.int32(0), np.int32(0), np.float32(0), np.float32(1)
                top, last_y, origin_y, extent_y = np.int32(0), np.int32(0), np.float32(0), np.float32(1)
            wide, high = np.float32(columns), np.float32(rows)
            scale_x = divide(extent_x, wide, ptx.reciprocal(wide))
            scale_y = divide(extent_y, high, ptx.reciprocal(high))
            if values:
                start_of, change = cuda.local.array(every, np.float32), cuda.local.array(every, np.float32)
                inside = count_of(column, np.int32(inner_width * np.int32(per_row)))
                if good and inside > 0 and row < inner_height:
                    stream(
                        (frame, pitch, width, index(start)),
                        (out, at, plane, row_step, row, np.int32(min(stop, inner_height) - row), inside), column,
                        (left, last_x, origin_x, scale_x), (top, np.int32(last_y), origin_y, scale_y), normal[0],
                        normal[1], (np.int32(0), inner_width, start_of, False), start_of, change, change,
                    )  # fmt: skip
                if good and inner_width == out_width and inner_height == out_height:
                    return
                # What lies beside the crop, or is no crop.
                lanes.spread(column, pad, change)
                end = count_of(column, row_values)
                while row < stop:
                    for c in range(planes):
                        for v in range(across):
                            is_crop = v < inside and row < inner_height
                            if v < end and not (good and is_crop):
                                value = empty if is_crop else change[c * across + v]
                                store(out, at + np.int64(c) * plane + np.int64(v * WARP), (value,))
                    at += row_step
                    row += np.int32(1)
                return
            axis_x = left, last_x, origin_x, extent_x, columns, scale_x, width
            axis_y = top, last_y, origin_y, extent_y, rows, scale_y, height
            if letterbox and row == 0 and column == 0:
                if good:
                    store_transform(
                        transform, item, x1, y1, extent_x, extent_y, before, above, columns, rows, np.int32(0),
                        inner_width, inner_height,
                    )  # fmt: skip
                else:
                    no_transform(transform, item)
        x = np.int32(column - before)
        if good and x >= 0 and x < columns:
            of_column = begin(x, axis_x, ints_x, floats_x)
            source = frame, start, pitch
            while row < stop:
                y = np.int32(row - above)
                if y < 0 or y >= rows:
                    for c in range(channels):
                        made[c] = pad[c]
                else:
                    make_row(source, y, axis_y, of_column, ints_x, ints_y, floats_x, floats_y, normal, made)
                # All before the first is stored: the compiler can't know that `out` isn't `frame`.
                for c in range(channels):
                    store(out, at + c * plane, (made[c],))
                at += row_step
                row += np.int32(1)
            return
        inside = not good and column < inner_width
        while row < stop:
            for c in range(channels):
                store(out, at + c * plane, (empty if inside and row < inner_height else pad[c],))
            at += row_step
            row += np.int32(1)

    def varied_kernel(
        frame, table, sides, boxes, out, transform, offsets, items, units, band, owner, starts,
        gain0, gain1, gain2, gain3, bias0, bias1, bias2, bias3, pad0, pad1, pad2, pad3,
    ):  # fmt: skip
        normal = (gain0, gain1, gain2, gain3), (bias0, bias1, bias2, bias3), (pad0, pad1, pad2, pad3)
        work(frame, table, sides, boxes, out, transform, offsets, items, units, band, owner, starts, normal)

    def varied_kernel_of_many_channels(
        frame, table, sides, boxes, out, transform, offsets, items, units, band, owner, starts, gain, bias, pad
    ):
        normal = gain, bias, pad
        work(frame, table, sides, boxes, out, transform, offsets, items, units, band, owner, starts, normal)

    many = channels > SCALAR_CHANNELS
    kernel, arguments = (varied_kernel_of_many_channels, VARIED_MANY) if many else (varied_kernel, VARIED)
    if values:
        kernel.launch_bounds = (UNITS, STREAM_BLOCKS)
    kernel.arguments = arguments.of(frame=frame_dtype, box=box_dtype, out=out_dtype)
    return kernel


@device
def _four(boxes, at):
    return np.float32(boxes[at]), np.float32(boxes[at + 1]), np.float32(boxes[at + 2]), np.float32(boxes[at + 3])
