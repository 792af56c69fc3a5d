"""The fast crop: source rows stream through registers while the one after is already on its way.

`docs/kernels.md` has its steps, measured.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from octopus.backends.cuda.language import cuda, device
from octopus.kernels.arguments import SEEN, STREAM
from octopus.kernels.cuda import ptx
from octopus.kernels.cuda.place import box_in_memory, box_is_usable, framer, no_transform, placer, transform_store
from octopus.kernels.cuda.rows import ONE, Pixels, Rows, fixed_rows, source_rows
from octopus.kernels.cuda.stream_filter import MOST_TAPS, filter_streamer
from octopus.kernels.cuda.tiles import FILTER_THREADS, FIXED_SHAPES, MOST_BOXES_INSIDE

_funnel, _pack, _prefetch = ptx.funnel, ptx.pack, ptx.prefetch
_store_word, _store_four = ptx.store_word, ptx.store_words
_NEVER = np.float32(np.inf)
_LEVEL = np.float32(1 / ONE)
_ZERO = np.float32(ptx.MAGIC_VALUE / ONE)  # what a value of 0 in fixed point is as so many levels
_LINE = 128  # bytes that one prefetch brings
PIXEL_BLOCKS = 4  # that a processor has registers for, of those that store pixels


def build(
    channels: int,
    out_dtype: str,
    layout: str,
    *,
    frame_dtype: str = "uint8",
    values: int = 1,  # of a store; must divide those of a row, and `out` must lie at a multiple of so many
    words: bool = False,  # see `rows.source_rows`, for NCHW; with `fixed` and `antialias` for NHWC, too
    saturate: bool = True,  # uint8: whether values may lie outside 0 to 255
    pairs: bool = True,  # see `ptx.streaming_store`
    fixed: bool = False,  # see `rows.fixed_rows`; 4 values, or for NHWC 16 bytes that may begin and end within a pixel
    inside: bool = False,  # up to `MOST_BOXES_INSIDE` float32 boxes are one more argument, an array by value
    antialias: bool = False,  # see `stream_filter`; one or two values, for NHWC a pixel's, wherever `out` lies
    edge: str = "box",
    letterbox: bool = False,
    indexed: bool = False,
    order: str = "RGB",  # see `rows.Pixels`
    counted: bool = False,  # only the first `count[0]` items are made; what others have in `out` is left alone
    flipped: bool = False,  # each item may be mirrored, by two bits: 1 left and right, 2 above and below
    own: bool = False,  # each item has a mean and a deviation per channel, by which gains and padding are to be divided
    box_dtype: str = "float32",
    index_dtype: str = "int32",
) -> Callable:
    """The kernel for a kind of frame, at least two pixels wide, of result, and for options.

    Its arguments are `arguments.STREAM`; frames read in `words` have fewer than 2**32 bytes. ::

        blockIdx.x = bands of rows      blockIdx.y = item      blockIdx.z = strip of the row
        threadIdx.y = band within them  threadIdx.x = place in the strip

          +-----------+-----+
          | band 0    |     |   each thread: `values` neighbouring values of `rows` rows from top to bottom,
          +-----------+-----+   of all channels for NCHW; a warp stores 32 * values neighbours at a time
          | band 1    |     |
          +-----------+-----+

    An item that can't be made (its box is NaN, empty or outside the frame, its frame doesn't exist) is filled with
    NaN, or with 0 for uint8; its transform is NaN. In fixed point uint8 is not normalised, and its padding within 0 to
    255.
    """
    planar = layout == "NCHW"
    # Counted in 32 bits a source row takes 115 instead of 131 instructions (boxes of 320 x 320 174 to 166 us, of
    # 256 x 256 155 to 152). In fixed point up to 4 % slower, so not there.
    narrow = words and out_dtype == "float32" and not (indexed or letterbox or antialias)
    pixels = Pixels(channels, frame_dtype, order, flipped, narrow)
    whole = antialias or pixels.is_video
    lanes = lanes_of(channels, values, planar, whole, fixed, out_dtype)
    columns, planes, _, _, base, spread, _ = lanes
    every, pixel_by_pixel = columns * planes, planes == channels and not planar
    if fixed and not planar:
        emit = _pixel_emitter(channels)
    else:
        store = _store_packed if base else ptx.streaming_store(out_dtype, columns, saturate, pairs)
        emit = _emitter(columns, planes, store, _normalised if fixed else mixed)
    if antialias:
        stream = filter_streamer(pixels, columns, words, emit, spread, lanes.cover, letterbox)
    else:
        source_of = fixed_rows(pixels, columns, planar) if fixed else source_rows(pixels, planar, values, words)
        stream = streamer(source_of, emit, lanes, letterbox, out_dtype != "float32", pixels.index)
    fill, place = _filler(emit, fixed), placer(edge, letterbox, antialias)
    store_transform = transform_store("", flipped)
    # In the arguments boxes need no copy before: 28 of them 67 to 46 us from boxes to result, 240 101 to 77 us.
    box_of = _box_inside if inside else box_in_memory
    frame_of, prefetch = framer(pixels), _prefetch_planes if pixels.is_video else _prefetch_frame
    per_line = _LINE // np.dtype(SEEN.get(frame_dtype, frame_dtype)).itemsize
    per_row, normalisation, index = 1 if planar else channels, _own_normalisation(channels), pixels.index
    empty = np.float32(0.0) if out_dtype == "uint8" else np.float32(np.nan)
    kept = (MOST_TAPS, columns, FILTER_THREADS) if antialias and words else (1, 1, 1)

    def stream_kernel(
        frame, pitch, width, height, boxes, out, out_width, out_height, inverse_width, inverse_height, rows, lines,
        gain0, gain1, gain2, gain3, bias0, bias1, bias2, bias3,
        frames, frame_step, frame_index, transform, pad0, pad1, pad2, pad3,
        count, flips, flip_step, means, stds, chroma, chroma_pitch, yg, rv, r0, gu, gv, g0, bu, b0,
    ):  # fmt: skip
        gain, bias = (gain0, gain1, gain2, gain3), (bias0, bias1, bias2, bias3)
        far = cuda.shared.array(kept, np.float32)
        given, step = frame_of(frame, pitch, chroma, chroma_pitch, (yg, rv, r0, gu, gv, g0, bu, b0))
        tile(given, step, width, height, boxes, out, out_width, out_height, inverse_width, inverse_height, rows,
             lines, gain, bias, frames, frame_step, frame_index, transform, (pad0, pad1, pad2, pad3),
             count, flips, flip_step, means, stds, far)  # fmt: skip

    @device
    def tile(
        given, step, width, height, boxes, out, out_width, out_height, inverse_width, inverse_height, rows, lines,
        gain, bias, frames, frame_step, frame_index, transform, pad, count, flips, flip_step, means, stds, far,
    ):  # fmt: skip
        prefetch(given, lines, np.int64(per_line))
        item = np.int32(cuda.blockIdx.y)
        if counted and item >= np.int32(count[0]):
            return
        place_x = np.int32(np.int32(cuda.blockIdx.z * cuda.blockDim.x) + cuda.threadIdx.x)
        row_values = np.int32(out_width * np.int32(per_row))
        value = np.int32(place_x * np.int32(values))
        first, skip = value, np.int32(0)
        if pixel_by_pixel:
            first = np.int32(np.uint32(value) // np.uint32(channels))
            skip = np.int32(np.int32(value - np.int32(first * np.int32(channels))) * np.int32(8))
        row = np.int32(np.int32(np.int32(cuda.blockIdx.x * cuda.blockDim.y) + cuda.threadIdx.y) * rows)
        rest = min(rows, np.int32(out_height - row))  # rows still to make
        if rest <= np.int32(0) or value >= row_values:
            return
        plane = np.int64(out_width) * np.int64(out_height)
        at = np.int64(item) * plane * np.int64(channels) + np.int64(np.int32(np.int32(row * row_values) + value))
        if pixel_by_pixel:
            plane = np.int64(1)  # the way to a pixel's next channel
        flip = np.int32(0)
        if flipped:
            flip = np.int32(flips[np.int64(item) * np.int64(flip_step)])
            if flip & np.int32(2):
                lowest = np.int32(np.int32(out_height - np.int32(1)) - row)
                at += np.int64(np.int32(np.int32(lowest - row) * row_values))
                row_values = np.int32(-row_values)
        mirrored = flipped and (flip & np.int32(1)) != np.int32(0)
        if own:
            gain, bias, pad = normalisation(gain, pad, means, stds, item)
        start, change = cuda.local.array(every, np.float32), cuda.local.array(every, np.float32)
        padding = cuda.local.array(every, np.float32)

        x1, y1, x2, y2 = box_of(boxes, item)
        usable = box_is_usable(x1, y1, x2, y2, width, height)
        source = index(0)
        if indexed:
            number = np.int64(frame_index[item])
            usable = usable and number >= np.int64(0) and number < np.int64(frames)
            source = index(number * frame_step)
        corner = row == np.int32(0) and place_x == np.int32(0)
        if not usable:
            for j in range(every):
                start[j] = empty + base
                change[j] = np.float32(0.0)
            fill(out, at, plane, row_values, rest, start, change, skip)
            if letterbox and corner:
                no_transform(transform, item)
            return

        left, last_x, origin_x, extent_x, top, last_y, origin_y, extent_y, before, above, image_columns, image_rows = (
            place(x1, y1, x2, y2, width, height, out_width, out_height)
        )
        last_y = np.int32(last_y)
        scale_x = divide(extent_x, np.float32(out_width), inverse_width)
        scale_y = divide(extent_y, np.float32(out_height), inverse_height)
        if letterbox:
            scale_x = extent_x / np.float32(image_columns)
            scale_y = extent_y / np.float32(image_rows)
            spread(first, pad, padding)
            if corner:
                store_transform(
                    transform, item, x1, y1, extent_x, extent_y, before, above, image_columns, image_rows, flip,
                    out_width, out_height,
                )  # fmt: skip
            if mirrored:
                before = np.int32(np.int32(out_width - before) - image_columns)
            for j in range(every):
                start[j] = padding[j] + base
                change[j] = np.float32(0.0)
            # Rows above the image; those below it are left for the end.
            row = np.int32(row - above)
            over = min(max(np.int32(-row), np.int32(0)), rest)
            if antialias and (
                np.int32(first + np.int32(columns)) <= before or first >= np.int32(before + image_columns)
            ):
                over = rest  # all of the thread's columns lie beside the image
            at = fill(out, at, plane, row_values, over, start, change, skip)
            row = np.int32(row + over)
            rest = np.int32(rest - over)
            after = min(max(np.int32(np.int32(row + rest) - image_rows), np.int32(0)), rest)
            rest = np.int32(rest - after)

        if rest > np.int32(0):
            at = stream(
                (given, step, width, source), (out, at, plane, row_values, row, rest, skip), first,
                (left, last_x, origin_x, scale_x), (top, last_y, origin_y, scale_y), gain, bias,
                (before, image_columns, padding, mirrored), start, change, far,
            )  # fmt: skip
        if letterbox:
            for j in range(every):
                start[j] = padding[j] + base
                change[j] = np.float32(0.0)
            fill(out, at, plane, row_values, after, start, change, skip)

    stream_kernel.arguments = STREAM.of(frame=frame_dtype, box=box_dtype, out=out_dtype, index=index_dtype)
    if fixed and not planar:
        stream_kernel.launch_bounds = (FIXED_SHAPES[out_dtype, False].threads, PIXEL_BLOCKS)
    if antialias and words:
        stream_kernel.launch_bounds = (FILTER_THREADS, 2 if letterbox or indexed else 3)
    if inside:
        stream_kernel.tail_bytes = 16 * MOST_BOXES_INSIDE
    return stream_kernel


@device
def _box_inside(boxes, item):
    return ptx.tail_floats(item)


@device
def divide(value, divisor, inverse):
    """`value / divisor` from the divisor's inverse, rounded correctly but for rare last bits; a division is a call."""
    quotient = value * inverse
    return quotient + (value - quotient * divisor) * inverse


@device
def _prefetch_frame(frame, lines, per_line):
    """Spread the frame's cache lines over the grid's first threads: no block waits for the memory at its own rows."""
    # All of it is on its way within microseconds: enlarged boxes 152 to 138 us with a cold L2.
    block = np.int32(np.int32(cuda.blockIdx.y * cuda.gridDim.x) + cuda.blockIdx.x)
    thread = np.int32(np.int32(cuda.threadIdx.y * cuda.blockDim.x) + cuda.threadIdx.x)
    line = np.int32(np.int32(block * np.int32(cuda.blockDim.x * cuda.blockDim.y)) + thread)
    if np.uint32(line) < np.uint32(lines):  # a grid may hold more threads than int32 counts
        _prefetch(frame, np.int64(line) * per_line)


@device
def _prefetch_planes(frame, lines, per_line):
    _prefetch_frame(frame[0], lines, per_line)
    _prefetch_frame(frame[1], np.int32(lines >> np.int32(1)), per_line)


def _own_normalisation(channels: int) -> Callable:
    """A device function: gain, bias and padding, each of four channels, with an item's own mean and deviation."""
    last = channels - 1

    @device
    def one(gain, pad, means, stds, item, c):
        at = np.int64(item) * channels + min(c, last)
        inverse = np.float32(1.0) / stds[at]
        own, bias = gain[c] * inverse, -means[at] * inverse
        return own, bias, pad[c] * inverse + bias

    @device
    def normalisation(gain, pad, means, stds, item):
        g0, b0, p0 = one(gain, pad, means, stds, item, 0)
        g1, b1, p1 = one(gain, pad, means, stds, item, 1)
        g2, b2, p2 = one(gain, pad, means, stds, item, 2)
        g3, b3, p3 = one(gain, pad, means, stds, item, 3)
        return (g0, g1, g2, g3), (b0, b1, b2, b3), (p0, p1, p2, p3)

    return normalisation


def _filler(emit: Callable, fixed: bool) -> Callable:
    """A device function: rows of the same values, which lie in `start`, beside zeros in `change`."""

    @device
    def fill(out, at, plane, row_values, count, start, change, skip):
        while count > np.int32(0):
            if fixed:
                emit(out, at, plane, change, change, np.float32(0.0), change, start, skip)
            else:
                emit(out, at, plane, start, change, np.float32(0.0), start, start, skip)
            at += np.int64(row_values)
            count = np.int32(count - np.int32(1))
        return at

    return fill


@device
def mixed(start, change, weight, gains, biases, j):
    return start[j] + weight * change[j]


@device
def _normalised(start, change, weight, gains, biases, j):
    return (start[j] + weight * change[j]) * gains[j] + biases[j]


@device
def _packed(values):
    return _pack(values[0], values[1], values[2], values[3])


@device
def _store_packed(out, at, values):
    _store_word(out, at, (_packed(values),))


def _values_of(count: int, value: Callable) -> Callable:
    """A device function: so many neighbouring values of an output row as a tuple."""

    @device
    def two(start, change, weight, gains, biases, j):
        return (
            value(start, change, weight, gains, biases, j), value(start, change, weight, gains, biases, j + 1),
        )  # fmt: skip

    @device
    def four(start, change, weight, gains, biases, j):
        return (
            value(start, change, weight, gains, biases, j), value(start, change, weight, gains, biases, j + 1),
            value(start, change, weight, gains, biases, j + 2), value(start, change, weight, gains, biases, j + 3),
        )  # fmt: skip

    return {2: two, 4: four}[count]


def _emitter(columns: int, planes: int, store: Callable, value: Callable) -> Callable:
    """A device function that stores one output row's values of all planes, those of a plane by one store. Pairs share
    what a row needs: 110 to 74 million instructions of a warp. The last argument is `_pixel_emitter`'s."""
    values_of = value if columns == 1 else _values_of(columns, value)

    @device
    def emit(out, at, plane, start, change, weight, gains, biases, skip):
        for c in range(planes):
            made = values_of(start, change, weight, gains, biases, c * columns)
            # numba-cuda-mlir 0.6.0 can't compile a function that returns a tuple of one.
            store(out, at + np.int64(c) * plane, (made,) if columns == 1 else made)

    return emit


def _pixel_emitter(channels: int) -> Callable:
    """The same of sixteen bytes of NHWC, in fixed point, which may begin within a pixel: `skip` bits are another's."""
    four = _values_of(4, _normalised)

    @device
    def emit(out, at, plane, start, change, weight, gains, biases, skip):
        words = cuda.local.array(5, np.uint32)
        for i in range(4):
            words[i] = _packed(four(start, change, weight, gains, biases, 4 * i))
        if channels == 3:
            last = _normalised(start, change, weight, gains, biases, 17)
            words[4] = _pack(_normalised(start, change, weight, gains, biases, 16), last, last, last)
            for i in range(4):
                words[i] = _funnel(words[i], words[i + 1], np.uint32(skip))
        _store_four(out, at, (words[0], words[1], words[2], words[3]))

    return emit


class Lanes(NamedTuple):
    """What a thread makes of a row: all channels of its columns, or single values, each of its own channel."""

    columns: int  # or single values
    planes: int  # values of each
    of_column: int  # values of a row per column, counted as a thread counts its own
    fixed: bool
    base: np.float32  # what stored values are too large by
    spread: Callable  # a device function that makes one number per channel one per value
    cover: Callable  # one that puts the padding, and no gains, where columns lie beside the image of a letterbox


def lanes_of(
    channels: int, values: int, planar: bool, whole: bool, fixed: bool, out_dtype: str, apart: int = 1
) -> Lanes:  # fmt: skip
    """What a thread of a kernel makes, whose values lie next to each other, or `apart`."""
    base = ptx.MAGIC_VALUE if fixed and out_dtype == "uint8" else np.float32(0.0)
    columns, planes, across, down = values, channels if planar or whole or fixed else 1, 1, values  # steps of values
    if whole and not planar:
        columns, down = 1, 1
    elif fixed and not planar:  # sixteen bytes of three channels touch six pixels
        columns, across, down = -(-values // channels), channels, 1
    of_column = channels // planes

    @device
    def spread_columns(first, of_channel, into):
        for v in range(columns):
            for c in range(channels):
                into[v * across + c * down] = of_channel[c]

    @device
    def spread_values(first, of_channel, into):
        for v in range(columns):
            value = np.uint32(first + np.int32(v * apart))
            channel = np.uint32(value - np.uint32(value // np.uint32(channels)) * np.uint32(channels))
            into[v] = of_channel[0]
            for c in range(1, channels):
                if channel == np.uint32(c):
                    into[v] = of_channel[c]

    @device
    def cover(first, before, image_columns, pad, into, gains):
        for v in range(columns):
            value = np.int32(first + np.int32(v))
            column = np.int32(np.uint32(value) // np.uint32(of_column)) if of_column > 1 else value
            if column < before or column >= np.int32(before + image_columns):
                for c in range(planes):
                    j = v * across + c * down
                    gains[j] = np.float32(0.0)
                    into[j] = pad[j] + base if fixed else pad[j]

    spread = spread_columns if planes == channels else spread_values
    return Lanes(columns, planes, of_column, fixed, base, spread, cover)


@device
def _position(number, scale, origin, last):
    """Of a row of the result among the source's, within the box's first and last."""
    return min(max(number * scale + origin, np.float32(0.0)), last)


def streamer(source_of: Rows, emit: Callable, lanes: Lanes, letterbox: bool, summed: bool, index: Any) -> Callable:
    """A device function that makes neighbouring rows of a thread's columns, each source row loaded one ahead. With
    `summed`, a source row is the sum of the one before and the change: good to a few last bits, and no registers are
    held while rows are stored. Elements of the frame are counted by `index`."""
    locate, load, interpolate = source_of
    columns, planes, of_column, fixed, base, spread, cover = lanes
    every, weights = columns * planes, np.uint32 if fixed else np.float32

    @device
    def stream(given, target, first, axis_x, axis_y, gain, bias, image, start, change, far):
        """Make `count` rows from `row` on, at least one; returns where the next one goes."""
        frame, pitch, width, source = given
        out, at, plane, row_values, row, count, skip = target
        left, last_x, origin_x, scale_x = axis_x
        top, last_y, origin_y, scale_y = axis_y
        before, image_columns, padding, mirrored = image
        offset, third = cuda.local.array(columns, np.int32), cuda.local.array(columns, np.int32)
        shift, weight_x = cuda.local.array(columns, np.uint32), cuda.local.array(columns, weights)
        gains, biases = cuda.local.array(every, np.float32), cuda.local.array(every, np.float32)
        following = cuda.local.array(every, np.float32)
        low, low_after = cuda.local.array(every, np.uint32), cuda.local.array(every, np.uint32)
        high, high_after = cuda.local.array(every, np.uint32), cuda.local.array(every, np.uint32)
        extra, extra_after = cuda.local.array(every, np.uint32), cuda.local.array(every, np.uint32)

        limit_x = max(np.int32(last_x - np.int32(1)), np.int32(0))
        limit_x = min(limit_x, np.int32(np.int32(width - np.int32(2)) - left))
        image_first = np.int32(first - np.int32(before * np.int32(of_column))) if letterbox else first
        locate(
            image_first, left, limit_x, last_x, origin_x, scale_x, offset, third, shift, weight_x, mirrored,
            np.int32(image_columns - np.int32(1)),
        )  # fmt: skip
        spread(first, gain, gains)
        spread(first, bias, biases)
        if fixed:
            for j in range(every):
                biases[j] = biases[j] - gains[j] * _ZERO + base
                gains[j] = gains[j] * _LEVEL
        if fixed and letterbox:
            cover(first, before, image_columns, padding, biases, gains)

        limit_y = max(np.int32(last_y - np.int32(1)), np.int32(0))
        last_row = np.float32(last_y)
        last_start = np.float32(limit_y)
        step = index(pitch) if last_y > np.int32(0) else index(0)
        number = np.float32(row) + np.float32(0.5)
        position = _position(number, scale_y, origin_y, last_row)
        current = min(np.int32(position), limit_y)
        current_row = np.float32(current)
        source = index(source + index(index(np.int32(top + current)) * index(pitch)))
        load(frame, source, offset, third, low, high, extra)
        if scale_y >= np.float32(2.0):
            # No row is of use to two: both of the next are asked for before these are stored, and none between them.
            # 16 frames of 1080p to 640 x 640 62 to 50 us (float16 59 to 44), 300 boxes of 700 x 700 79 to 64 (uint8 in
            # NHWC 131 to 74). The price: float32 of boxes of 320 x 320, whose loop is ordered otherwise, 162 to 172.
            load(frame, index(source + step), offset, third, low_after, high_after, extra_after)
            while True:
                interpolate(frame, low, high, extra, third, shift, weight_x, gains, biases, start)
                interpolate(frame, low_after, high_after, extra_after, third, shift, weight_x, gains, biases, following)
                if letterbox and not fixed:
                    cover(first, before, image_columns, padding, start, start)
                    cover(first, before, image_columns, padding, following, following)
                for j in range(every):
                    change[j] = following[j] - start[j]
                weight = position - np.float32(current)
                number = number + np.float32(1.0)
                position = _position(number, scale_y, origin_y, last_row)
                behind, current = current, min(np.int32(position), limit_y)
                source = index(source + index(index(np.int32(current - behind)) * index(pitch)))
                load(frame, source, offset, third, low, high, extra)
                load(frame, index(source + step), offset, third, low_after, high_after, extra_after)
                emit(out, at, plane, start, change, weight, gains, biases, skip)
                at = at + np.int64(row_values)
                count = np.int32(count - np.int32(1))
                if count == np.int32(0):
                    return at
        interpolate(frame, low, high, extra, third, shift, weight_x, gains, biases, following)
        if letterbox and not fixed:
            cover(first, before, image_columns, padding, following, following)
        source = index(source + step)
        load(frame, source, offset, third, low, high, extra)
        if summed:
            for j in range(every):
                start[j] = following[j]
                change[j] = np.float32(0.0)
        while True:
            # `following` is row `current_row`; the one after it has been asked for.
            for j in range(every):
                start[j] = start[j] + change[j] if summed else following[j]
            interpolate(frame, low, high, extra, third, shift, weight_x, gains, biases, following)
            if letterbox and not fixed:
                cover(first, before, image_columns, padding, following, following)
            for j in range(every):
                change[j] = following[j] - start[j]
            until = current_row + np.float32(1.0)
            if current_row >= last_start:
                until = _NEVER
            else:
                source = index(source + step)
            load(frame, source, offset, third, low, high, extra)
            while position < until:
                emit(out, at, plane, start, change, position - current_row, gains, biases, skip)
                at = at + np.int64(row_values)
                count = np.int32(count - np.int32(1))
                if count == np.int32(0):
                    return at
                number = number + np.float32(1.0)
                position = _position(number, scale_y, origin_y, last_row)
            current_row = until

    return stream
