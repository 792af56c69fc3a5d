"""Output rows of the streaming kernel under the triangle filter (`antialias=True`): both passes in one walk.

A thread owns neighbouring columns of the result and walks down the source rows. It weighs a row's pixels under each
column's filter once (the first pass), and adds what comes out to the rows of the result whose filters reach that row.
Where the box shrinks these are two at most: centres lie as far apart as a filter reaches. Where it grows, a row of the
result lies between two source rows.

Weights along the row are the same for all rows, so they are worked out once: those of up to four pixels lie in
registers, of more in shared memory. Frames that can be read in words bring four pixels at a time. A byte of a word is,
as the bits of a float32, `byte * 2**-149`, which a multiplication takes as it takes any number: with weights times
2**126 no byte needs to be converted.

Versions, 1000 boxes to 224 x 224 float32 NCHW on an H200, the L2 cold: microseconds, and millions of instructions of a
warp for the boxes of 320 x 320. Writing the result alone takes 131.

    version                                  320 x 320  instr   48 x 48   VisDrone
    a window per pixel (`cuda.antialias`)          777              601        603
    one walk                                       351    319       168        173
    two columns, few or many pixels                252              150        155
    weights without divisions                      230    176       154        156
    three pixels; eight in words (in use)          200              152        154

1. A window per pixel. Each source row is weighed for every row of the result that it reaches, and each weight is worked
   out for each of these.
2. One walk. Predicted: 31 instructions for a source row of a column, once, so a third of the time. Measured: less than
   half; 203 instructions for a pixel of the result, where 101 were counted by hand.
3. Two columns of a thread share what a row needs besides its pixels, and those with one word's worth of pixels have a
   loop of their own: 85 instructions of a source row and column become 49.
4. A division is a call. Without it, and with weights summed as they are worked out, a thread begins sooner: boxes of
   320 x 320 lost 66 us to that with 28 rows a thread.
5. Shrinking by 1.5 and less needs three pixels (80 instead of 98 instructions for a row of two columns), and filters of
   five to eight pixels have all of them a row ahead: 16 letterboxed frames of 1080p 142 to 113 us.

What bounds it now: boxes of 320 x 320 issuing (75 % of all cycles, 176 million instructions at version 4, half of them
on the integer pipe); whole frames waiting for memory with 15 warps a processor, since 120 registers leave no more.
Longer bands help shrinking boxes and cost growing ones (with 14, 20, 28 rows 207, 200, 195 and 147, 152, 157). Tried
and left: asking for a band's rows ahead in the L2 (frames 113 to 108, nothing for boxes), four blocks a processor. A
processor with less shared memory than 164 KB has fewer blocks than these bounds are for; not measured there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from octopus.backends.cuda.language import bits_as_float, cuda, device
from octopus.kernels import geometry
from octopus.kernels.cuda import ptx
from octopus.kernels.cuda.rows import Pixels
from octopus.kernels.cuda.stream_rows import coverer

_window = device(geometry.filter_window)
_weight = device(geometry.filter_weight)
_support = device(geometry.filter_support)
_load_word, _funnel, _reciprocal = ptx.load_word, ptx.funnel, ptx.reciprocal
_permute, _as_bits = ptx.permute, bits_as_float

# Pixels under a filter that are asked for a row ahead: the least that hold all, or the most.
FEW, TAPS, WIDE = 3, 4, 8
# Pixels whose weights are kept. Under wider filters each is worked out anew, and pixels are read one by one.
MOST_TAPS = 20
_LARGE = np.float32(2.0**126)
_SMALL = np.float32(2.0**-23)  # what a byte's bits times such a weight are, for a value of one
_NEVER = np.float32(np.inf)


class Pass(NamedTuple):
    """Device functions over a thread's local arrays, see `_along_row`; `ask` and `weigh` by the number of pixels."""

    prepare: Callable
    ask: dict[int, Callable]
    weigh: dict[int, Callable]
    weigh_wide: Callable
    weigh_each: Callable


def _words(stored: int) -> int:
    """Words that `WIDE` pixels of so many channels lie in."""
    return WIDE * stored // 4 + 1


def _along_row(pixels: Pixels, columns: int, words: bool) -> Pass:
    """The first pass.

    What a thread knows of its columns lies in local arrays: in `place` and `shift` where the pixels under a filter
    begin in a row, in elements, and by how many bits they lie off that word; in `held` their words; in `near` the
    weights of up to four. `far`, in shared memory, has the weights of wider filters.
    """
    channels, stored, turned = pixels.channels, pixels.stored, pixels.turned
    load_pixel, aligned = ptx.PIXEL_LOADS[pixels.dtype], stored % 4 == 0
    into_of = pixels.into()
    unit = _SMALL if words else np.float32(1.0)
    room, wide_room = _words(stored), columns * WIDE
    held_room = columns * room

    @device
    def kept(pixel, start, stop, centre, slope):
        return _weight(pixel, centre, slope) if pixel >= start and pixel < stop else np.float32(0.0)

    @device
    def prepare(column, step, scale, origin, last, left, width, thread, place, shift, near, far):
        """Returns how many pixels of each column are read in words: 0 to read all one by one."""
        if not words:
            return np.int32(0)
        support = _support(scale)
        slope = _reciprocal(support)
        reach = np.int32(support + support)  # no more pixels have a weight, rounded up
        if np.float32(reach) < support + support:
            reach = np.int32(reach + np.int32(1))
        taps = np.int32(np.int32(reach + np.int32(TAPS - 1)) & np.int32(-TAPS))
        if reach <= np.int32(FEW):
            taps = np.int32(FEW)
        if taps > np.int32(TAPS):
            taps = max(taps, np.int32(WIDE))
        if taps > np.int32(MOST_TAPS) or taps > width:
            return np.int32(0)
        for v in range(columns):
            start, stop, centre = _window(np.int32(column + np.int32(np.int32(v) * step)), scale, origin, last, support)
            # The last pixel that is read must be one of the frame's.
            first = min(start, np.int32(np.int32(width - taps) - left))
            total = np.float32(0.0)
            for tap in range(TAPS):
                near[v * TAPS + tap] = kept(np.int32(first + np.int32(tap)), start, stop, centre, slope)
                total += near[v * TAPS + tap]
            for tap in range(TAPS, taps):
                total += kept(np.int32(first + np.int32(tap)), start, stop, centre, slope)
            share = _reciprocal(total) * _LARGE
            for tap in range(TAPS):
                near[v * TAPS + tap] *= share
            # Wider filters have all of their weights in shared memory.
            for tap in range(taps if taps > np.int32(TAPS) else 0):
                weight = kept(np.int32(first + np.int32(tap)), start, stop, centre, slope)
                far[tap, v, thread] = weight * share
            at = np.int32(np.int32(left + first) * np.int32(stored))
            off = np.int32(at & np.int32(3))
            place[v], shift[v] = np.int32(at - off), np.uint32(off * np.int32(8))
        return taps

    def asker(taps):
        """A device function: load the words of so many pixels of each column."""
        whole = -(-taps * stored // 4)
        spare = 4 * whole - taps * stored
        within, further = np.uint32(8 * spare), not aligned and spare < 3

        @device
        def ask(frame, source, place, shift, held):
            for v in range(columns):
                at = source + np.int64(place[v])
                for i in range(whole):
                    held[v * room + i] = _load_word(frame, at + np.int64(4 * i))
                if further:  # one word more, where pixels end in it; it may not exist otherwise
                    last = np.int64(4 * whole) if shift[v] > within else np.int64(4 * whole - 4)
                    held[v * room + whole] = _load_word(frame, at + last)

        return ask

    def weigher(taps):
        """A device function: weigh so many pixels of each column and add them, in units of `unit`."""
        whole = -(-taps * stored // 4)
        last, stride = whole if 4 * whole - taps * stored < 3 else whole - 1, max(taps, TAPS)

        @device
        def weigh(held, shift, weights, into):
            for v in range(columns):
                for i in range(whole):
                    word = held[v * room + i]
                    if not aligned:
                        word = _funnel(word, held[v * room + min(i + 1, last)], shift[v])
                    for j in range(min(4, taps * stored - 4 * i)):
                        tap, channel = (4 * i + j) // stored, into_of[(4 * i + j) % stored]
                        if channel >= 0:
                            value = _as_bits(_permute(word, np.uint32(0), np.uint32(0x4440 + j)))
                            into[channel * columns + v] += weights[v * stride + tap] * value

        return weigh

    ask = {taps: asker(taps) for taps in (FEW, TAPS, WIDE)}
    weigh = {taps: weigher(taps) for taps in (FEW, TAPS, WIDE)}
    ask_more, weigh_more, weigh_held = ask[TAPS], weigh[TAPS], weigh[WIDE]

    @device
    def weigh_wide(frame, source, taps, thread, place, shift, far, held, into):
        """Weigh the pixels of a wide filter, of which the first `WIDE` are held."""
        weights = cuda.local.array(wide_room, np.float32)
        more = cuda.local.array(held_room, np.uint32)
        for v in range(columns):
            for tap in range(WIDE):
                weights[v * WIDE + tap] = far[tap, v, thread]
        weigh_held(held, shift, weights, into)
        done = np.int32(WIDE)
        while done < taps:
            ask_more(frame, source + np.int64(np.int32(done * np.int32(stored))), place, shift, more)
            for v in range(columns):
                for tap in range(TAPS):
                    weights[v * TAPS + tap] = far[done + tap, v, thread]
            weigh_more(more, shift, weights, into)
            done = np.int32(done + np.int32(TAPS))

    @device
    def weigh_each(frame, source, column, step, scale, origin, last, left, into):
        """Add all pixels one by one."""
        support = _support(scale)
        slope = _reciprocal(support)
        for v in range(columns):
            start, stop, centre = _window(np.int32(column + np.int32(np.int32(v) * step)), scale, origin, last, support)
            total = np.float32(0.0)
            for pixel in range(start, stop):
                total += _weight(pixel, centre, slope)
            share = _reciprocal(total) * unit
            at = source + np.int64(np.int32(left + start)) * np.int64(stored)
            for pixel in range(start, stop):
                weight = _weight(pixel, centre, slope) * share
                for c in range(channels):
                    place = channels - 1 - c if turned else c
                    into[c * columns + v] += weight * np.float32(load_pixel(frame, at + np.int64(place)))
                at += np.int64(stored)

    return Pass(prepare, ask, weigh, weigh_wide, weigh_each)


def filter_streamer(
    pixels: Pixels, columns: int, words: bool, emit: Callable, spread: Callable, letterbox: bool
) -> Callable:
    """A device function that makes neighbouring rows of a thread's columns; its arguments are those of
    `stream_rows.streamer`."""
    channels, flipped = pixels.channels, pixels.flipped
    first_pass = _along_row(pixels, columns, words)
    prepare, cover = first_pass.prepare, coverer(channels, True, columns)
    every, room, taps_room = columns * channels, columns * _words(pixels.stored), columns * TAPS
    few, single, any_number = [_walk(first_pass, channels, columns, words, taps, emit) for taps in (FEW, TAPS, WIDE)]

    @device
    def stream(
        frame, pitch, width, out, at, plane, row_values, row, count, first, skip, source, left, last_x, origin_x,
        scale_x, top, last_y, origin_y, scale_y, gain, bias, before, image_columns, padding, start, change, mirrored,
        far,
    ):  # fmt: skip
        """Make `count` rows from `row` on, at least one; returns where the next one goes."""
        place = cuda.local.array(columns, np.int32)
        shift = cuda.local.array(columns, np.uint32)
        near = cuda.local.array(taps_room, np.float32)
        held = cuda.local.array(room, np.uint32)
        line = cuda.local.array(every, np.float32)
        gains = cuda.local.array(every, np.float32)
        biases = cuda.local.array(every, np.float32)
        spread(first, gain, gains)
        spread(first, bias, biases)
        if letterbox:
            cover(first, before, image_columns, change, change, gains)  # zeros
            cover(first, before, image_columns, padding, padding, biases)
        thread = np.int32(np.int32(cuda.threadIdx.y * cuda.blockDim.x) + cuda.threadIdx.x)
        column = np.int32(first - before)
        across = np.int32(1)
        if flipped and mirrored:
            column, across = np.int32(np.int32(image_columns - np.int32(1)) - column), np.int32(-1)
        count_x = prepare(column, across, scale_x, origin_x, last_x, left, width, thread, place, shift, near, far)
        given = (
            frame, pitch, out, at, plane, row_values, row, count, skip, source, column, across, left, last_x, origin_x,
            scale_x, top, last_y, origin_y, scale_y, count_x, thread, place, shift, near, far, held, line, gains,
            biases, start, change,
        )  # fmt: skip
        if words and count_x == np.int32(FEW):
            return few(given)
        if words and count_x == np.int32(TAPS):
            return single(given)
        return any_number(given)

    return stream


def _walk(first_pass: Pass, channels: int, columns: int, words: bool, taps: int, emit: Callable) -> Callable:
    """A device function: down the source rows, `taps` pixels under a filter a row ahead; `WIDE` of any number."""
    ask_words, weigh = first_pass.ask[taps], first_pass.weigh[taps]
    weigh_wide, weigh_each = first_pass.weigh_wide, first_pass.weigh_each
    every = columns * channels
    inverse_unit = np.float32(1.0) / _SMALL if words else np.float32(1.0)

    @device
    def ask(frame, source, pixels, place, shift, held):
        if taps != WIDE or (words and pixels > np.int32(0)):
            ask_words(frame, source, place, shift, held)

    @device
    def sums(
        frame, source, column, across, scale_x, origin_x, last_x, left, pixels, thread, place, shift, near, far, held,
        line,
    ):  # fmt: skip
        """A row's sums, whose first words are held."""
        for j in range(every):
            line[j] = np.float32(0.0)
        if taps != WIDE:
            weigh(held, shift, near, line)
        elif words and pixels > np.int32(0):
            weigh_wide(frame, source, pixels, thread, place, shift, far, held, line)
        else:
            weigh_each(frame, source, column, across, scale_x, origin_x, last_x, left, line)

    @device
    def walk(given):
        (
            frame, pitch, out, at, plane, row_values, row, count, skip, source, column, across, left, last_x, origin_x,
            scale_x, top, last_y, origin_y, scale_y, pixels, thread, place, shift, near, far, held, line, gains,
            biases, start, change,
        ) = given  # fmt: skip
        step = np.int64(pitch)
        number = np.float32(row) + np.float32(0.5)
        last_row = np.float32(last_y)
        if scale_y < np.float32(1.0):
            # A row of the result lies between two of the source: as `stream_rows.streamer`, of weighed rows.
            limit_y = max(np.int32(last_y - np.int32(1)), np.int32(0))
            last_start = np.float32(limit_y)
            if last_y == np.int32(0):
                step = np.int64(0)
            position = min(max(number * scale_y + origin_y, np.float32(0.0)), last_row)
            current = min(np.int32(position), limit_y)
            current_row = np.float32(current)
            source = source + np.int64(np.int32(top + current)) * np.int64(pitch)
            ask(frame, source, pixels, place, shift, held)
            for j in range(every):
                gains[j] = gains[j] * inverse_unit
                start[j] = np.float32(0.0)
                change[j] = np.float32(0.0)
            # In the first turn only the upper row's sums are worked out, as the change from none.
            current_row = current_row - np.float32(1.0)
            while True:
                sums(frame, source, column, across, scale_x, origin_x, last_x, left, pixels, thread, place, shift, near,
                     far, held, line)  # fmt: skip
                for j in range(every):
                    start[j] = start[j] + change[j]
                    change[j] = line[j] * gains[j] + biases[j] - start[j]
                until = current_row + np.float32(1.0)
                if current_row >= last_start:
                    until = _NEVER
                else:
                    source = source + step
                    ask(frame, source, pixels, place, shift, held)
                while position < until:
                    emit(out, at, plane, start, change, position - current_row, gains, biases, skip)
                    at = at + np.int64(row_values)
                    count = np.int32(count - np.int32(1))
                    if count == np.int32(0):
                        return at
                    number = number + np.float32(1.0)
                    position = min(max(number * scale_y + origin_y, np.float32(0.0)), last_row)
                current_row = until

        slope = _reciprocal(scale_y)
        after = cuda.local.array(every, np.float32)
        for j in range(every):
            start[j] = np.float32(0.0)
            after[j] = np.float32(0.0)
        total, total_after = np.float32(0.0), np.float32(0.0)
        first_row, _, centre = _window(row, scale_y, origin_y, last_y, scale_y)
        pixel, until = np.float32(first_row), min(centre + scale_y, last_row)
        source = source + np.int64(np.int32(top + first_row)) * step
        ask(frame, source, pixels, place, shift, held)
        while True:
            # `start` is what is known of this row of the result, `after` of the next one.
            sums(frame, source, column, across, scale_x, origin_x, last_x, left, pixels, thread, place, shift, near,
                 far, held, line)  # fmt: skip
            # From the row's centre to the next one's: 0 to 1.
            distance = (pixel - centre) * slope
            pixel = pixel + np.float32(1.0)
            if pixel <= last_row:
                source = source + step
            ask(frame, source, pixels, place, shift, held)
            weight, weight_after = np.float32(1.0) - abs(distance), max(distance, np.float32(0.0))
            total += weight
            total_after += weight_after
            for j in range(every):
                start[j] += weight * line[j]
                after[j] += weight_after * line[j]
            while pixel > until:
                factor = _reciprocal(total) * inverse_unit
                for j in range(every):
                    start[j] = start[j] * factor * gains[j] + biases[j]
                    change[j] = np.float32(0.0)
                emit(out, at, plane, start, change, np.float32(0.0), gains, biases, skip)
                count = np.int32(count - np.int32(1))
                if count == np.int32(0):
                    return at + np.int64(row_values)
                at = at + np.int64(row_values)
                for j in range(every):
                    start[j] = after[j]
                    after[j] = np.float32(0.0)
                total, total_after = total_after, np.float32(0.0)
                number = number + np.float32(1.0)
                centre = number * scale_y + origin_y
                until = min(centre + scale_y, last_row)

    return walk
