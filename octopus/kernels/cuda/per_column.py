"""The simple crop kernel, one thread per output column: what `stream` can't do, in the fewest lines.

That is frames of one column, of float32 or of other than 1, 3 or 4 channels, boxes that aren't cut at the frame, video
under a filter, samples ("nearest", "bicubic") and affine maps. The study `arena` measures it beside `stream`, whose
bands and strips these are: `blockIdx.x = (item * tiles_y + band) * tiles_x + strip`. A thread makes `ROWS` rows of one
column, all channels, from top to bottom; the threads of a warp store 32 neighbours.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from octopus.backends.cuda.language import cuda, device
from octopus.kernels import geometry, sampling
from octopus.kernels.arguments import PLAIN, PLAIN_MANY
from octopus.kernels.cuda import ptx
from octopus.kernels.cuda.place import (
    MODES,
    box_in_memory,
    box_is_usable,
    framer,
    no_transform,
    placer,
    transform_store,
)
from octopus.kernels.cuda.rows import VIDEO, Pixels, converter
from octopus.kernels.cuda.tiles import ROWS, SCALAR_CHANNELS

_FAR, _NUMBERS = sampling.FAR, sampling.MAP_NUMBERS
# How a thread makes its pixels: how many integers and floats it keeps of each axis, a device function of what holds for
# its column, and one of a row's values. An axis is `first, last, origin, extent` of `place.placer`, the image's size,
# the step from value to value in the frame, and the frame's size.
Body: TypeAlias = tuple[int, int, Callable, Callable]
_sample, _lerp = device(geometry.sample), device(geometry.lerp)
_support, _window = device(geometry.filter_support), device(geometry.filter_window)
_weight, _beyond_pixel = device(geometry.filter_weight), device(geometry.beyond_pixel)
_centre, _map_is_usable = device(sampling.centre), device(sampling.map_is_usable)
_span_is_usable, _quad_map = device(geometry.span_is_usable), device(geometry.quad_map)
_perspective_line, _along_line = device(geometry.perspective_line), device(geometry.along_line)


def build(
    channels: int,
    out_dtype: str,
    layout: str,
    *,
    frame_dtype: str = "uint8",
    filter: str = "bilinear",
    antialias: bool = False,
    maps: bool = False,  # `boxes` has the six numbers of an affine map per item, never cut: `pad_mode`, or "edge"
    edge: str = "box",
    letterbox: bool = False,
    indexed: bool = False,
    pad_mode: str = "",  # "": boxes are cut at the frame
    order: str = "RGB",
    counted: bool = False,
    flipped: bool = False,
    own: bool = False,
    box_dtype: str = "float32",
    index_dtype: str = "int32",
) -> Callable:
    """The kernel for a kind of frame, of result, and for options; those it shares with `stream.build` are said there.
    Its arguments are `arguments.PLAIN`, or `PLAIN_MANY`. With a `pad_mode` too large boxes can't be made, either."""
    pixels = Pixels(channels, frame_dtype, order, flipped)
    planar, uncut, letterbox = layout == "NCHW", bool(pad_mode), letterbox and not maps
    store = ptx.streaming_store(out_dtype, 1, saturate=True, pairs=False)
    empty = np.float32(0.0) if out_dtype == "uint8" else np.float32(np.nan)
    frame_of, store_transform = framer(pixels), transform_store(pad_mode, flipped)
    place = placer(edge, letterbox, antialias, pad_mode, sampling.REACH[filter])
    ints, floats, begin, make_row = body(pixels, "maps" if maps else "boxes", filter, antialias, pad_mode)

    @device
    def work(
        given, boxes, out, out_width, out_height, tiles_x, tiles_y, normal, frames, frame_step, frame_index, transform,
        count, flips, flip_step, means, stds,
    ):  # fmt: skip
        frame, pitch, width, height = given
        band = np.int32(cuda.blockIdx.x // tiles_x)
        column = np.int32(np.int32(cuda.blockIdx.x - band * tiles_x) * cuda.blockDim.x + cuda.threadIdx.x)
        item = np.int32(band // tiles_y)
        row = np.int32((band - item * tiles_y) * ROWS)
        if column >= out_width or (counted and item >= np.int32(count[0])):
            return
        stop, corner = min(np.int32(row + ROWS), out_height), row == 0 and column == 0
        plane = np.int64(out_width) * out_height
        channel_step, column_step = (plane, np.int64(1)) if planar else (np.int64(1), np.int64(channels))
        row_step = out_width * column_step
        at = np.int64(item) * plane * channels + row * row_step + column * column_step
        flip = np.int32(flips[np.int64(item) * np.int64(flip_step)]) if flipped else np.int32(0)
        normalisation = normal
        if own:
            gains, biases = cuda.local.array(channels, np.float32), cuda.local.array(channels, np.float32)
            pads = cuda.local.array(channels, np.float32)
            for c in range(channels):
                number = np.int64(item) * channels + c
                gains[c] = normal[0][c] / stds[number]
                biases[c] = -means[number] / stds[number]
                pads[c] = normal[2][c] / stds[number] + biases[c]
            normalisation = gains, biases, pads
        pad = normalisation[2]

        if maps:
            ax, bx, cx, ay, by, cy = _map_in_memory(boxes, item)
            good = _map_is_usable(ax, bx, cx, out_width, out_height)
            good = good and _map_is_usable(ay, by, cy, out_width, out_height)
        else:
            x1, y1, x2, y2 = box_in_memory(boxes, item)
            good = _span_is_usable(x1, y1, x2, y2) if uncut else box_is_usable(x1, y1, x2, y2, width, height)
        start = np.int64(0)
        if indexed:
            frame_number = np.int64(frame_index[item])
            good = good and frame_number >= 0 and frame_number < frames
            start = frame_number * frame_step
        values = cuda.local.array(channels, np.float32)
        if not good:
            while row < stop:
                for c in range(channels):
                    store(out, at + c * channel_step, (empty,))
                at += row_step
                row += np.int32(1)
            if letterbox and corner:
                no_transform(transform, item)
            return

        if maps:
            axis_x, axis_y = (ax, bx, cx, width), (ay, by, cy, height)
            before, above, columns, rows = np.int32(0), np.int32(0), out_width, out_height
        else:
            left, last_x, origin_x, extent_x, top, last_y, origin_y, extent_y, before, above, columns, rows = place(
                x1, y1, x2, y2, width, height, out_width, out_height
            )
            axis_x = left, last_x, origin_x, extent_x, columns, extent_x / np.float32(columns), width
            axis_y = top, last_y, origin_y, extent_y, rows, extent_y / np.float32(rows), height
            if letterbox and corner:
                store_transform(
                    transform, item, x1, y1, extent_x, extent_y, before, above, columns, rows, flip, out_width,
                    out_height,
                )  # fmt: skip
        x = np.int32((np.int32(out_width - np.int32(1)) - column if flip & 1 else column) - before)
        ints_x, ints_y = cuda.local.array(ints, np.int32), cuda.local.array(ints, np.int32)
        floats_x, floats_y = cuda.local.array(floats, np.float32), cuda.local.array(floats, np.float32)
        of_column = begin(x, axis_x, ints_x, floats_x)
        source = frame, start, pitch
        while row < stop:
            y = np.int32((np.int32(out_height - np.int32(1)) - row if flip & 2 else row) - above)
            if letterbox and (x < 0 or x >= columns or y < 0 or y >= rows):
                for c in range(channels):
                    values[c] = pad[c]
            else:
                make_row(source, y, axis_y, of_column, ints_x, ints_y, floats_x, floats_y, normalisation, values)
            # All before the first is stored: the compiler can't know that `out` isn't `frame`.
            for c in range(channels):
                store(out, at + c * channel_step, (values[c],))
            at += row_step
            row += np.int32(1)

    def crop_kernel(
        frame, pitch, width, height, boxes, out, out_width, out_height, tiles_x, tiles_y,
        gain0, gain1, gain2, gain3, bias0, bias1, bias2, bias3,
        frames, frame_step, frame_index, transform, pad0, pad1, pad2, pad3,
        count, flips, flip_step, means, stds, chroma, chroma_pitch, yg, rv, r0, gu, gv, g0, bu, b0,
    ):  # fmt: skip
        normal = (gain0, gain1, gain2, gain3), (bias0, bias1, bias2, bias3), (pad0, pad1, pad2, pad3)
        given, step = frame_of(frame, pitch, chroma, chroma_pitch, (yg, rv, r0, gu, gv, g0, bu, b0))
        work((given, step, width, height), boxes, out, out_width, out_height, tiles_x, tiles_y, normal,
             frames, frame_step, frame_index, transform, count, flips, flip_step, means, stds)  # fmt: skip

    def crop_kernel_of_many_channels(
        frame, pitch, width, height, boxes, out, out_width, out_height, tiles_x, tiles_y, gain, bias,
        frames, frame_step, frame_index, transform, pad,
        count, flips, flip_step, means, stds, chroma, chroma_pitch, yg, rv, r0, gu, gv, g0, bu, b0,
    ):  # fmt: skip
        work((frame, pitch, width, height), boxes, out, out_width, out_height, tiles_x, tiles_y, (gain, bias, pad),
             frames, frame_step, frame_index, transform, count, flips, flip_step, means, stds)  # fmt: skip

    many = channels > SCALAR_CHANNELS
    kernel, table = (crop_kernel_of_many_channels, PLAIN_MANY) if many else (crop_kernel, PLAIN)
    kernel.arguments = table.of(frame=frame_dtype, box=box_dtype, out=out_dtype, index=index_dtype)
    return kernel


def body(pixels: Pixels, kind: str, filter: str, antialias: bool, pad_mode: str) -> Body:
    """How a thread makes its pixels of "boxes", affine "maps" or "quads"."""
    if kind != "boxes" or filter != "bilinear":
        return _samples(pixels, filter, pad_mode, kind)
    return (_filtered if antialias else _bilinear)(pixels, pad_mode)


@device
def _map_in_memory(maps, item):
    at = _NUMBERS * item
    return (
        np.float32(maps[at]), np.float32(maps[at + 1]), np.float32(maps[at + 2]),
        np.float32(maps[at + 3]), np.float32(maps[at + 4]), np.float32(maps[at + 5]),
    )  # fmt: skip


def _reader(pixels: Pixels, pad_mode: str, padded: bool) -> tuple[Callable, Callable, Callable]:
    """Device functions: a pixel's values, normalised ones of a mean of them, and the row or column for any index.
    `padded` pixels are normalised one by one, and one whose row or column is -1 is the padding."""
    channels, stored, turned = pixels.channels, pixels.stored, pixels.turned
    uncut, mode = bool(pad_mode), np.int32(MODES.get(pad_mode, 0))
    if pixels.is_video:
        convert, load_pair = converter(pixels.dtype), VIDEO[pixels.dtype].pair

    @device
    def read_video(source, row, column, into):
        (luma, chroma, pitch, chroma_pitch, coefficients), start, _ = source
        number = start + np.int64(row)
        pair = (number >> np.int64(1)) * np.int64(chroma_pitch) + np.int64(column & np.int32(-2))
        value = np.uint32(luma[number * np.int64(pitch) + np.int64(column)])
        into[0], into[1], into[2] = convert(value, load_pair(chroma, pair), coefficients)

    @device
    def read_values(source, row, column, into):
        frame, start, pitch = source
        at = start + np.int64(row) * pitch + np.int64(column) * stored
        for c in range(channels):
            into[c] = np.float32(frame[at + (channels - 1 - c if turned else c)])

    read_one = read_video if pixels.is_video else read_values

    @device
    def read(source, row, column, normal, into):
        gain, bias, pad = normal
        if not padded:
            read_one(source, row, column, into)
            return
        # Any pixel stands for the padding: loads behind a branch would wait for each other (28 boxes: 25 us, not 19).
        read_one(source, max(row, np.int32(0)), max(column, np.int32(0)), into)
        inside = row >= 0 and column >= 0
        for c in range(channels):
            into[c] = into[c] * gain[c] + bias[c] if inside else pad[c]

    @device
    def normalised(value, normal, c):
        return value if padded else value * normal[0][c] + normal[1][c]

    @device
    def pixel_of(index, limit):
        return _beyond_pixel(index, limit, mode) if uncut else index

    return read, normalised, pixel_of


def _bilinear(pixels: Pixels, pad_mode: str) -> Body:
    """Two source rows, interpolated once, are kept until the source row advances, which no warp diverges for."""
    channels = pixels.channels
    read, normalised, pixel_of = _reader(pixels, pad_mode, bool(pad_mode))

    @device
    def line(source, row, of_column, normal, into):
        low, high, weight = of_column
        left, right = cuda.local.array(channels, np.float32), cuda.local.array(channels, np.float32)
        read(source, row, low, normal, left)
        read(source, row, high, normal, right)
        for c in range(channels):
            into[c] = normalised(_lerp(left[c], right[c], weight), normal, c)

    @device
    def begin(x, axis, current, floats):
        left, last, origin, _, _, step, limit = axis
        low, high, weight = _sample(x, step, origin, last)
        current[0] = np.int32(-2)
        return pixel_of(np.int32(left + low), limit), pixel_of(np.int32(left + high), limit), weight

    @device
    def make_row(source, y, axis, of_column, current, ints, upper, lower, normal, into):
        top, last, origin, _, _, step, limit = axis
        low, high, weight = _sample(y, step, origin, last)
        if low != current[0]:
            if low == current[0] + 1:
                for c in range(channels):
                    upper[c] = lower[c]
            else:
                line(source, pixel_of(np.int32(top + low), limit), of_column, normal, upper)
            line(source, pixel_of(np.int32(top + high), limit), of_column, normal, lower)
            current[0] = low
        for c in range(channels):
            into[c] = _lerp(upper[c], lower[c], weight)

    return 1, channels, begin, make_row


def _filtered(pixels: Pixels, pad_mode: str) -> Body:
    """The triangle filter: each pixel walks over the source pixels of its window, which the L1 cache holds."""
    # Weights along the row are worked out for each source row: two operations each cost less than memory for them all.
    channels = pixels.channels
    read, normalised, pixel_of = _reader(pixels, pad_mode, bool(pad_mode))

    @device
    def window(index, axis):
        first, last, origin, _, _, step, limit = axis
        support = _support(step)
        slope = np.float32(1.0) / support
        start, stop, centre = _window(index, step, origin, last, support)
        total, pixel = np.float32(0.0), start
        while pixel < stop:
            total += _weight(pixel, centre, slope)
            pixel += np.int32(1)
        return first, limit, start, stop, centre, slope, total

    @device
    def begin(x, axis, ints, floats):
        return window(x, axis)

    @device
    def make_row(source, y, axis, of_column, ints_x, ints_y, line, values, normal, into):
        left, width, start_x, stop_x, centre_x, slope_x, total_x = of_column
        top, height, start_y, stop_y, centre_y, slope_y, total_y = window(y, axis)
        share = np.float32(1.0) / (total_x * total_y)
        for c in range(channels):
            into[c] = np.float32(0.0)
        for y in range(start_y, stop_y):
            row = pixel_of(np.int32(top + y), height)
            for c in range(channels):
                line[c] = np.float32(0.0)
            for x in range(start_x, stop_x):
                read(source, row, pixel_of(np.int32(left + x), width), normal, values)
                weight = _weight(x, centre_x, slope_x)
                for c in range(channels):
                    line[c] += weight * values[c]
            weight = _weight(y, centre_y, slope_y)
            for c in range(channels):
                into[c] += weight * line[c]
        for c in range(channels):
            into[c] = normalised(into[c] * share, normal, c)

    return 1, channels, begin, make_row


def _samples(pixels: Pixels, filter: str, pad_mode: str, kind: str) -> Body:
    """Single samples: no row is reused. Of a box a column's pixels and weights are found once. The axis of a
    quadrilateral's columns has its corners, the item's sides, the thread's rows, and the frame's sides."""
    maps, quads = kind == "maps", kind == "quads"
    channels, taps, mode = pixels.channels, sampling.TAPS[filter], np.int32(MODES[pad_mode or "edge"])
    locate = sampling.locator(device, filter)
    read, normalised, _ = _reader(pixels, pad_mode, pad_mode == "constant")

    @device
    def of_box(index, axis, pixels, weights):
        first, last, origin, extent, count, _, limit = axis
        locate(_centre(index, extent, count, origin), first, np.int32(0), last, limit, mode, pixels, weights)

    @device
    def of_map(x, y, axis, pixels, weights):
        a, b, c, limit = axis
        position = a * np.float32(x) + b * np.float32(y) + c
        locate(position, np.int32(0), -_FAR, _FAR, limit, mode, pixels, weights)

    @device
    def of_quad(y, line, pixels, weights):
        first, share, slope, turn, row, limit = line
        position = _along_line(share, slope, turn, np.int32(y - row))
        locate(position, first, -_FAR, _FAR, limit, mode, pixels, weights)

    @device
    def begin(x, axis, columns, across):
        if not (maps or quads):
            of_box(x, axis, columns, across)
        return x, axis

    @device
    def begin_quad(x, axis, columns, across):
        corners, width, height, first, stop, right, below = axis
        a, b, c, d, e, f, g, h, i = _quad_map(
            corners[0], corners[1], corners[2], corners[3], corners[4], corners[5], corners[6], corners[7],
            width, height,
        )  # fmt: skip
        row = first if h >= 0 else np.int32(stop - np.int32(1))
        column, line = np.float64(x), np.float64(row)
        bottom = g * column + h * line + i
        u, share, slope, turn = _perspective_line(a * column + b * line + c, bottom, b, h)
        v, part, step, _ = _perspective_line(d * column + e * line + f, bottom, e, h)
        return (u, share, slope, turn, row, right), (v, part, step, turn, row, below)

    @device
    def make_row(source, y, axis, of_column, columns, rows, across, down, normal, into):
        x, axis_x = of_column
        if maps:
            of_map(x, y, axis_x, columns, across)
            of_map(x, y, axis, rows, down)
        elif quads:
            of_quad(y, x, columns, across)
            of_quad(y, axis_x, rows, down)
        else:
            of_box(y, axis, rows, down)
        line, values = cuda.local.array(channels, np.float32), cuda.local.array(channels, np.float32)
        for c in range(channels):
            into[c] = np.float32(0.0)
        for i in range(taps):
            for c in range(channels):
                line[c] = np.float32(0.0)
            for j in range(taps):
                read(source, rows[i], columns[j], normal, values)
                for c in range(channels):
                    line[c] += across[j] * values[c]
            for c in range(channels):
                into[c] += down[i] * line[c]
        for c in range(channels):
            into[c] = normalised(into[c], normal, c)

    return taps, taps, begin_quad if quads else begin, make_row
