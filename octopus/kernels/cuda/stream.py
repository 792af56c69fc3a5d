"""The fast crop: source rows stream through registers while the one after is already on its way.

Versions, from plain to fast. 1000 boxes to 224 x 224 float32 NCHW write 602 MB and read a 6 MB frame that stays in the
L2 cache, so the time to write the output is the bound. Two cases: `VisDrone` boxes are enlarged (median 39 x 56 pixels,
four output rows per source row), `large` ones of 320 x 320 are shrunk (every source row is read, 1.4 per output row).
The study `arena` times every step (workloads `ladder` and `ladder-large`); what stands here was seen in Nsight Compute
on an H200 with the clocks left alone: microseconds, millions of instructions of
a warp, share of the time in which the schedulers issued one, share of what the DRAM and the L1's data stage can do.

    version          VisDrone: us  instr  issue  DRAM   L1   | large: us  instr  issue  DRAM   L1   registers
    one pass              160    115   73 %   75 %   26 %          232    191   82 %   52 %   60 %       40
    streamed              152    110   74 %   80 %   37 %          208    181   87 %   58 %   74 %       40
    prefetched            138    110   82 %   88 %   41 %          209    181   88 %   58 %   75 %       40
    paired                140     74   53 %   87 %   42 %          210    130   62 %   57 %   95 %       64
    words (in use)        140     76   55 %   87 %   29 %          164    134   84 %   74 %   73 %       64

1. Two passes (`kernels.cuda.published`): the uint8 crops are written and read again, and each pixel works out the
   addresses of its four neighbours anew.
2. One pass (`kernels.cuda.crop`): each thread owns a column and walks down the rows; two interpolated source rows stay
   in registers. The tile index runs fastest in the grid, so that blocks that run together write memory that lies
   together, and stores stream (`st.global.cs`), so that the frame keeps its place in the L2. Its warps wait for the
   bytes of a source row 5.6 times as long as they work between two waits.
3. Streamed. Predicted: to load the row after next before the rows of this one are stored hides that wait, and a loop
   that counts in floats and 32-bit integers needs fewer instructions. Measured: the wait falls by a fifth, shrunk boxes
   gain a tenth, since each source row is now interpolated once and none is loaded late.
4. Prefetched. Predicted: with a cold L2 every block waits for the DRAM at its first rows; the first threads of the grid
   can ask for the whole frame, 1.5 us of bandwidth. Measured: enlarged boxes lose a tenth of their time and reach the
   DRAM's 88 %; large boxes, bound elsewhere, gain nothing. Done only if the frame is smaller than the result and than
   half of the L2.
5. Paired: two columns per thread, one store of 8 bytes (16 bytes for float16: four columns and `st.v2`). Predicted: a
   third fewer instructions, since row arithmetic is shared. Measured: so it is; enlarged boxes, by now at the DRAM,
   don't show it, but half the issue slots are free for float16, which has half the bytes to write. Large boxes meet the
   next wall: loads of single bytes, six per column and row, fill the L1's data stage (95 %).
6. Words: three aligned 32-bit loads and two funnel shifts bring the six bytes of a column's two neighbours, and `prmt`
   makes a byte the last bits of 8388608.0, which is its conversion. Predicted: half the passes through the L1.
   Measured: 95 % fall to 73 %, large boxes gain a fifth and are now bound by issuing (84 %).

7. Inside: up to 240 boxes from the host are an argument of the launch. Predicted: one copy less to queue and to wait
   for, some 15 us of a call. Measured, a run of a plan from boxes to the synchronised result, the quietest of three
   processes each on a shared host: 28 boxes 67 to 46 us, 100 boxes 75 to 55 us, 240 boxes 101 to 77 us, their check in
   one compiled pass included.

8. Fixed point, for float16 (NCHW) and uint8: `rows.fixed_rows`. What bounded them was issuing. Predicted from the
   machine code: a source row of four columns takes 102 instructions instead of 160, since one (`dp2a`) weighs two
   bytes, where converting, subtracting, mixing and normalising took seven; a row of the result takes as many as
   before. For NHWC a thread stores sixteen bytes at once, of the six pixels that they may touch; it stored four.
   Measured, microseconds, the quieter of two processes: uint8 72 to 64 (NHWC: 99 to 67), boxes of 320 x 320 155 to
   122 (225 to 144); float16 of boxes of 320 x 320 147 to 127, of 256 x 256 125 to 108, of VisDrone, at the DRAM
   before, 80 to 79. Large boxes in float16 now wait for the L1's data stage (92 %; a thread's four columns lie 17
   bytes from the next one's); uint8 issues in 77 % of all cycles, half of them to the integer pipe, which has half
   the width.

9. Even bands (`tiles.tiling`). A block of a small result had bands without rows: 11 of 16 for 32 x 32 in float32, 14
   of 16 in uint8. Measured, 1000 boxes of VisDrone, microseconds, two processes each within 4 %: to 32 x 32 14.6 to
   11.2 (float16 30 to 14, uint8 44 to 14, NHWC 47 to 17); to 64 x 64 21.3 to 19.8 (26 to 20, 34 to 19, 45 to 25); to
   96 x 96 34 in float32 as before (31 to 26, 38 to 29, 50 to 31); to 224 x 224 as before, but for uint8 in NHWC, 67
   to 64.

10. Both rows at once, where no source row is of use to two rows of the result (shrinking by two and more). The row
    after was loaded in vain, and each row waited for the memory twice (in 16 frames of 1080p, letterboxed to 640 x
    640: 10.7 cycles of a warp for each instruction). Predicted: one wait, and a third of the loads less. Measured,
    microseconds, two processes each: these frames 62 to 50 (float16 59 to 44, uint8 55 to 41), 300 boxes of 700 x 700
    79 to 64 (82 to 58, 79 to 57, NHWC 131 to 74); enlarged boxes as before. The price: float32 of boxes of 320 x 320,
    whose loop the compiler orders otherwise, 162 to 172, uint8 in NHWC of VisDrone 64 to 68.

11. Counted in 32 bits. A frame has fewer bytes, and half of the instructions that find a row's words were the upper
    halves of sums. Seen in the machine code: 131 to 115 instructions for a source row of float32. Measured,
    microseconds, two processes each: boxes of 320 x 320 174 to 166, of 256 x 256 155 to 152, VisDrone 146 to 146.5.
    In fixed point fewer registers, but up to 4 % more time: left.

Tried and left: rows interleaved over the block (every row then needs new source rows), the next rows of other boxes
prefetched by each block, four columns per thread for float32 (94 registers), and bands of 12 rows and more (fewer
loads for large boxes, less even work for the rest). In fixed point: a thread's columns a part of the row apart, in
pairs (as quick) or one by one, with halves swapped between lanes (127 to 140); eight columns per thread (178
registers, no gain). Whole warps for each band: float32 of large boxes loses a tenth.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from octopus.backends.cuda.language import cuda, device
from octopus.kernels.arguments import SEEN, STREAM
from octopus.kernels.cuda import ptx
from octopus.kernels.cuda.place import box_in_memory, box_is_usable, framer, no_transform, placer, transform_store
from octopus.kernels.cuda.rows import Pixels, fixed_rows, source_rows
from octopus.kernels.cuda.stream_filter import MOST_TAPS, filter_streamer
from octopus.kernels.cuda.stream_rows import (
    coverer,
    emitter,
    fixed_emitter,
    fixed_form,
    fixed_spreader,
    spreader,
    streamer,
)
from octopus.kernels.cuda.tiles import FILTER_THREADS, FIXED_SHAPES, MOST_BOXES_INSIDE

_prefetch = ptx.prefetch
_LINE = 128  # bytes that one prefetch brings
PIXEL_BLOCKS = 4  # that a processor has registers for, of those that store pixels


def build(
    channels: int,
    out_dtype: str,
    layout: str,
    *,
    frame_dtype: str = "uint8",
    values: int = 1,
    words: bool = False,
    saturate: bool = True,
    pairs: bool = True,
    fixed: bool = False,
    inside: bool = False,
    antialias: bool = False,
    edge: str = "box",
    letterbox: bool = False,
    indexed: bool = False,
    order: str = "RGB",
    counted: bool = False,
    flipped: bool = False,
    own: bool = False,
    box_dtype: str = "float32",
    index_dtype: str = "int32",
) -> Callable:
    """The kernel for a kind of frame, of result, and for options.

    Its arguments are `arguments.STREAM`. The frame is at least two pixels wide. ::

        blockIdx.x = bands of rows      blockIdx.y = item      blockIdx.z = strip of the row
        threadIdx.y = band within them  threadIdx.x = place in the strip

          +-----------+-----+
          | band 0    |     |   each thread: `values` neighbouring values of `rows` rows from top to bottom,
          +-----------+-----+   of all channels for NCHW; a warp stores 32 * values neighbours at a time
          | band 1    |     |
          +-----------+-----+

    An item that can't be made (its box is NaN, empty or outside the frame, its frame doesn't exist) is filled with
    NaN, or with 0 for uint8; its transform is NaN.

    Parameters
    ----------
    values : {1, 2, 4}
        Must divide the values per row, and `out` must lie at a multiple of that many; see `fixed` and `antialias` for
        others.
    words : bool
        See `rows.source_rows`, for NCHW; with `fixed` and `antialias` also for NHWC. The frame has fewer than 2**32
        bytes then.
    saturate : bool
        uint8 results: whether values may lie outside 0 to 255.
    pairs : bool
        See `ptx.streaming_store`.
    fixed : bool
        See `rows.fixed_rows`: small floats for NCHW with 4 values, uint8 with 4, for NHWC with 16; a uint8 result is
        not normalised, and its padding within 0 to 255.
    antialias : bool
        See `stream_filter`. A thread makes `values` columns of all channels for NCHW, one or two, and a pixel for
        NHWC, `values` being its channels, wherever `out` lies. Frames of one channel may be read in `words`, too.
    order : str
        See `rows.Pixels`.
    counted : bool
        Only the first `count[0]` items are made; what others have in `out` is left alone.
    flipped : bool
        Each item may be mirrored, by two bits: 1 left and right, 2 above and below.
    own : bool
        Each item has a mean and a standard deviation of its own, one per channel, which gains and padding are still to
        be divided by.
    inside : bool
        `boxes` is not read; up to `MOST_BOXES_INSIDE` boxes, float32, are one more argument, an array by value. So they
        need no copy before the launch, and no block waits for the memory to know its box.
    """
    narrow = words and out_dtype == "float32" and not (indexed or letterbox or antialias)
    pixels = Pixels(channels, frame_dtype, order, flipped, narrow)
    tile = _tile(
        pixels, out_dtype, layout == "NCHW", values, words, saturate, pairs, fixed, inside, antialias, edge, letterbox,
        indexed, counted, own,
    )  # fmt: skip
    frame_of = framer(pixels)
    kept = (MOST_TAPS, values if layout == "NCHW" else 1, FILTER_THREADS) if antialias and words else (1, 1, 1)

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

    stream_kernel.arguments = STREAM.of(frame=frame_dtype, box=box_dtype, out=out_dtype, index=index_dtype)
    if fixed and layout == "NHWC":
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
def _divide(value, divisor, inverse):
    """`value / divisor` from the divisor's inverse, rounded correctly but for rare last bits; a division is a call."""
    quotient = value * inverse
    return quotient + (value - quotient * divisor) * inverse


@device
def _prefetch_frame(frame, lines, per_line):
    """Spread the frame's cache lines over the first threads of the grid: all of it is on its way within microseconds,
    where every block would wait for the memory anew when it comes to its own rows."""
    block = np.int32(np.int32(cuda.blockIdx.y * cuda.gridDim.x) + cuda.blockIdx.x)
    thread = np.int32(np.int32(cuda.threadIdx.y * cuda.blockDim.x) + cuda.threadIdx.x)
    line = np.int32(np.int32(block * np.int32(cuda.blockDim.x * cuda.blockDim.y)) + thread)
    if np.uint32(line) < np.uint32(lines):  # a grid may hold more threads than int32 counts
        _prefetch(frame, np.int64(line) * per_line)


@device
def _prefetch_planes(frame, lines, per_line):
    _prefetch_frame(frame[0], lines, per_line)
    _prefetch_frame(frame[1], np.int32(lines >> np.int32(1)), per_line)


def own_normalisation(channels: int) -> Callable:
    """A device function: gain, bias and padding, each of four channels, with an item's own mean and deviation."""
    last = channels - 1

    @device
    def one(gain, pad, means, stds, at):
        inverse = np.float32(1.0) / stds[at]
        own, bias = gain * inverse, -means[at] * inverse
        return own, bias, pad * inverse + bias

    @device
    def normalisation(gain, pad, means, stds, item):
        at = np.int64(item) * channels
        g0, b0, p0 = one(gain[0], pad[0], means, stds, at)
        g1, b1, p1 = one(gain[1], pad[1], means, stds, at + min(1, last))
        g2, b2, p2 = one(gain[2], pad[2], means, stds, at + min(2, last))
        g3, b3, p3 = one(gain[3], pad[3], means, stds, at + min(3, last))
        return (g0, g1, g2, g3), (b0, b1, b2, b3), (p0, p1, p2, p3)

    return normalisation


def _begin(channels: int, values: int, pixels: bool) -> Callable:
    """A device function: a thread's first value in a row; its first column, where it makes whole `pixels`, else the
    value again; and what `fixed_emitter` skips."""

    @device
    def begin(place):
        value = np.int32(place * np.int32(values))
        first, skip = value, np.int32(0)
        if pixels:
            first = np.int32(np.uint32(value) // np.uint32(channels))
            skip = np.int32(np.int32(value - np.int32(first * np.int32(channels))) * np.int32(8))
        return value, first, skip

    return begin


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


def _tile(
    pixels: Pixels,
    out_dtype: str,
    planar: bool,
    values: int,
    words: bool,
    saturate: bool,
    pairs: bool,
    fixed: bool,
    inside: bool,
    antialias: bool,
    edge: str,
    letterbox: bool,
    indexed: bool,
    counted: bool,
    own: bool,
) -> Callable:
    """The work of one thread as a device function; `build` says what its arguments are."""
    channels, flipped = pixels.channels, pixels.flipped
    whole = antialias or pixels.is_video  # a thread makes all channels of its columns, also for NHWC
    per_row, across = 1 if planar else channels, values if planar else 1
    form = fixed_form(channels, out_dtype, planar, values) if fixed else None
    if whole:
        columns, every, base = across, across * channels, np.float32(0.0)
        emit = emitter(columns, channels, ptx.streaming_store(out_dtype, columns, saturate, pairs))
        spread, cover = spreader(channels, True, columns), coverer(channels, True, columns)
    elif form:
        columns, every, base = form.columns, form.columns * channels, form.base
        emit = fixed_emitter(form, ptx.streaming_store(out_dtype, values, False, pairs))
        spread, cover = fixed_spreader(form)
        rows_of = fixed_rows(pixels, columns, planar)
    else:
        planes = channels if planar else 1
        columns, every, base = values, values * planes, np.float32(0.0)
        emit = emitter(values, planes, ptx.streaming_store(out_dtype, values, saturate, pairs))
        spread, cover = spreader(channels, planar, values), coverer(channels, planar, values)
    if not form and not antialias:
        rows_of = source_rows(pixels, planar, values, words)
    begin = _begin(channels, values, (fixed or whole) and not planar)
    if antialias:
        stream = filter_streamer(pixels, columns, words, emit, spread, letterbox)
    else:
        stream = streamer(
            rows_of, emit, spread, cover, columns, every, 1 if fixed or whole else per_row, letterbox,
            summed=out_dtype != "float32", fixed=form, index=pixels.index,
        )  # fmt: skip
    fill = _filler(emit, fixed)
    place, store_transform = placer(edge, letterbox, antialias), transform_store("", flipped)
    box_of = _box_inside if inside else box_in_memory
    prefetch = _prefetch_planes if pixels.is_video else _prefetch_frame
    per_line = _LINE // np.dtype(SEEN.get(pixels.dtype, pixels.dtype)).itemsize
    normalisation, index = own_normalisation(channels), pixels.index
    empty = np.float32(0.0) if out_dtype == "uint8" else np.float32(np.nan)

    def tile(
        frame, pitch, width, height, boxes, out, out_width, out_height, inverse_width, inverse_height, rows, lines,
        gain, bias, frames, frame_step, frame_index, transform, pad, made, flips, flip_step, means, stds, far,
    ):  # fmt: skip
        prefetch(frame, lines, np.int64(per_line))
        item = np.int32(cuda.blockIdx.y)
        if counted and item >= np.int32(made[0]):
            return
        place_x = np.int32(np.int32(cuda.blockIdx.z * cuda.blockDim.x) + cuda.threadIdx.x)
        row_values = np.int32(out_width * np.int32(per_row))
        value, first, skip = begin(place_x)
        row = np.int32(np.int32(np.int32(cuda.blockIdx.x * cuda.blockDim.y) + cuda.threadIdx.y) * rows)
        count = min(rows, np.int32(out_height - row))
        if count <= np.int32(0) or value >= row_values:
            return
        plane = np.int64(out_width) * np.int64(out_height)
        at = np.int64(item) * plane * np.int64(channels) + np.int64(np.int32(np.int32(row * row_values) + value))
        if whole and not planar:
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
        start = cuda.local.array(every, np.float32)
        change = cuda.local.array(every, np.float32)

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
            fill(out, at, plane, row_values, count, start, change, skip)
            if letterbox and corner:
                no_transform(transform, item)
            return

        (left, last_x, origin_x, extent_x, top, last_y, origin_y, extent_y, before, above, columns, image_rows) = place(
            x1, y1, x2, y2, width, height, out_width, out_height
        )
        last_y = np.int32(last_y)
        scale_x = _divide(extent_x, np.float32(out_width), inverse_width)
        scale_y = _divide(extent_y, np.float32(out_height), inverse_height)
        padding = cuda.local.array(every, np.float32)
        if letterbox:
            scale_x = extent_x / np.float32(columns)
            scale_y = extent_y / np.float32(image_rows)
            spread(first, pad, padding)
            if corner:
                store_transform(
                    transform, item, x1, y1, extent_x, extent_y, before, above, columns, image_rows, flip, out_width,
                    out_height,
                )  # fmt: skip
            if mirrored:
                before = np.int32(np.int32(out_width - before) - columns)
            for j in range(every):
                start[j] = padding[j] + base
                change[j] = np.float32(0.0)
            # Rows above the image; those below it are left for the end.
            row = np.int32(row - above)
            over = min(max(np.int32(-row), np.int32(0)), count)
            if antialias and (np.int32(first + np.int32(across)) <= before or first >= np.int32(before + columns)):
                over = count  # all of the thread's columns lie beside the image
            at = fill(out, at, plane, row_values, over, start, change, skip)
            row = np.int32(row + over)
            count = np.int32(count - over)
            after = min(max(np.int32(np.int32(row + count) - image_rows), np.int32(0)), count)
            count = np.int32(count - after)

        if count > np.int32(0):
            at = stream(
                frame, pitch, width, out, at, plane, row_values, row, count, first, skip, source, left, last_x,
                origin_x, scale_x, top, last_y, origin_y, scale_y, gain, bias, before, columns, padding, start, change,
                mirrored, far,
            )  # fmt: skip
        if letterbox:
            for j in range(every):
                start[j] = padding[j] + base
                change[j] = np.float32(0.0)
            fill(out, at, plane, row_values, after, start, change, skip)

    return device(tile)
