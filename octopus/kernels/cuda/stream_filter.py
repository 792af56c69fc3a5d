"""Output rows of the streaming kernel under the triangle filter (`antialias=True`): both passes in one walk.

A thread owns neighbouring columns of the result and walks down the source rows. It weighs a row's pixels under each
column's filter once (the first pass), and adds what comes out to the rows of the result whose filters reach that row.
Where the box shrinks these are two at most: centres lie as far apart as a filter reaches. Where it grows, a row of the
result lies between two source rows. Weights along the row are the same for all rows: they are worked out once.
`docs/kernels.md` has its steps, measured.
"""

from collections.abc import Callable

import numpy as np

from octopus.backends.cuda.language import bits_as_float, cuda, device
from octopus.kernels import geometry
from octopus.kernels.cuda import ptx
from octopus.kernels.cuda.rows import Pixels

_window = device(geometry.filter_window)
_weight = device(geometry.filter_weight)
_support = device(geometry.filter_support)
_load_word, _funnel, _reciprocal = ptx.load_word, ptx.funnel, ptx.reciprocal
_permute, _as_bits = ptx.permute, bits_as_float

# Pixels under a filter that are asked for a row ahead: the least that hold all, or the most. Three (shrinking by 1.5 or
# less) take 80 instead of 98 instructions for a row of two columns; with eight 16 frames of 1080p take 113 us, not 142.
FEW, TAPS, WIDE = 3, 4, 8
MOST_TAPS = 20  # whose weights are kept; under wider filters each is worked out anew, and pixels are read one by one
# A byte is, as a float32's bits, `byte * 2**-149`: with weights times 2**126 none needs to be converted.
_LARGE = np.float32(2.0**126)
_SMALL = np.float32(2.0**-23)  # what a byte's bits times such a weight are, for a value of one
_NEVER = np.float32(np.inf)


def _words(stored: int) -> int:
    return WIDE * stored // 4 + 1


def _along_row(pixels: Pixels, columns: int, words: bool) -> tuple[Callable, dict[int, tuple[Callable, Callable]]]:
    """The first pass: device functions that prepare a thread's columns, and for a number of pixels ask for a row's
    words and sum them. In local arrays lie: in `place` and `shift` where the pixels under a column's filter begin in a
    row, and by how many bits off that word; in `held` their words; in `near` the weights of up to four. `far`, shared,
    has those of more."""
    channels, stored, turned = pixels.channels, pixels.stored, pixels.turned
    load_pixel, aligned = ptx.PIXEL_LOADS[pixels.dtype], stored % 4 == 0
    into_of = pixels.into()
    unit = _SMALL if words else np.float32(1.0)
    room, wide_room = _words(stored), columns * WIDE
    held_room, every = columns * room, columns * channels

    @device
    def kept(pixel, start, stop, centre, slope):
        return _weight(pixel, centre, slope) if pixel >= start and pixel < stop else np.float32(0.0)

    @device
    def prepare(column, step, scale, origin, last, left, width, thread, place, shift, near, far):
        """Returns how many pixels of each column are read in words: 0 to read all one by one."""
        if not words:
            return np.int32(0)
        support = _support(scale)
        slope = _reciprocal(support)  # a division is a call: without any, boxes of 320 x 320 252 to 230 us
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

    ask_words, weigh = ({taps: make(taps) for taps in (FEW, TAPS, WIDE)} for make in (asker, weigher))
    ask_more, weigh_more, weigh_held = ask_words[TAPS], weigh[TAPS], weigh[WIDE]

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

    def passes(taps):
        """Device functions for so many pixels, `WIDE` of any number: ask for a row's words; sum them, once held."""
        ask_held, weigh_few = ask_words[taps], weigh[taps]

        @device
        def ask(frame, source, under):
            _, _, _, _, _, _, count, _, place, shift, _, _, held = under
            if taps != WIDE or (words and count > np.int32(0)):
                ask_held(frame, source, place, shift, held)

        @device
        def sums(frame, source, under, line):
            column, across, left, last, origin, scale, count, thread, place, shift, near, far, held = under
            for j in range(every):
                line[j] = np.float32(0.0)
            if taps != WIDE:
                weigh_few(held, shift, near, line)
            elif words and count > np.int32(0):
                weigh_wide(frame, source, count, thread, place, shift, far, held, line)
            else:
                weigh_each(frame, source, column, across, scale, origin, last, left, line)

        return ask, sums

    return prepare, {taps: passes(taps) for taps in (FEW, TAPS, WIDE)}


def filter_streamer(
    pixels: Pixels, columns: int, words: bool, emit: Callable, spread: Callable, cover: Callable, letterbox: bool
) -> Callable:
    """A device function that makes neighbouring rows of a thread's columns, as `stream._streamer`."""
    flipped, every = pixels.flipped, columns * pixels.channels
    room, taps_room = columns * _words(pixels.stored), columns * TAPS
    prepare, passes = _along_row(pixels, columns, words)
    few, single, any_number = [_walk(*passes[taps], every, words, emit) for taps in (FEW, TAPS, WIDE)]

    @device
    def stream(given, target, first, axis_x, axis_y, gain, bias, image, start, change, far):
        """Make `count` rows from `row` on, at least one; returns where the next one goes."""
        _, _, width, _ = given
        left, last_x, origin_x, scale_x = axis_x
        before, image_columns, padding, mirrored = image
        place, shift = cuda.local.array(columns, np.int32), cuda.local.array(columns, np.uint32)
        near, held = cuda.local.array(taps_room, np.float32), cuda.local.array(room, np.uint32)
        gains, biases = cuda.local.array(every, np.float32), cuda.local.array(every, np.float32)
        line = cuda.local.array(every, np.float32)
        spread(first, gain, gains)
        spread(first, bias, biases)
        if letterbox:
            cover(first, before, image_columns, padding, biases, gains)
        thread = np.int32(np.int32(cuda.threadIdx.y * cuda.blockDim.x) + cuda.threadIdx.x)
        column = np.int32(first - before)
        across = np.int32(1)
        if flipped and mirrored:
            column, across = np.int32(np.int32(image_columns - np.int32(1)) - column), np.int32(-1)
        count_x = prepare(column, across, scale_x, origin_x, last_x, left, width, thread, place, shift, near, far)
        under = column, across, left, last_x, origin_x, scale_x, count_x, thread, place, shift, near, far, held
        # Loops of their own for few pixels: with two columns, 85 to 49 instructions for a source row of a column.
        if words and count_x == np.int32(FEW):
            return few(given, target, axis_y, under, line, gains, biases, start, change)
        if words and count_x == np.int32(TAPS):
            return single(given, target, axis_y, under, line, gains, biases, start, change)
        return any_number(given, target, axis_y, under, line, gains, biases, start, change)

    return stream


def _walk(ask: Callable, sums: Callable, every: int, words: bool, emit: Callable) -> Callable:
    """A device function: down the source rows, the words of each asked for a row ahead."""
    inverse_unit = np.float32(1.0) / _SMALL if words else np.float32(1.0)

    @device
    def walk(given, target, axis_y, under, line, gains, biases, start, change):
        frame, pitch, _, source = given
        out, at, plane, row_values, row, count, skip = target
        top, last_y, origin_y, scale_y = axis_y
        step = np.int64(pitch)
        number = np.float32(row) + np.float32(0.5)
        last_row = np.float32(last_y)
        if scale_y < np.float32(1.0):
            # A row of the result lies between two of the source: as `stream._streamer`, of weighed rows.
            limit_y = max(np.int32(last_y - np.int32(1)), np.int32(0))
            last_start = np.float32(limit_y)
            if last_y == np.int32(0):
                step = np.int64(0)
            position = min(max(number * scale_y + origin_y, np.float32(0.0)), last_row)
            current = min(np.int32(position), limit_y)
            current_row = np.float32(current)
            source = source + np.int64(np.int32(top + current)) * np.int64(pitch)
            ask(frame, source, under)
            for j in range(every):
                gains[j] = gains[j] * inverse_unit
                start[j] = np.float32(0.0)
                change[j] = np.float32(0.0)
            # In the first turn only the upper row's sums are worked out, as the change from none.
            current_row = current_row - np.float32(1.0)
            while True:
                sums(frame, source, under, line)
                for j in range(every):
                    start[j] = start[j] + change[j]
                    change[j] = line[j] * gains[j] + biases[j] - start[j]
                until = current_row + np.float32(1.0)
                if current_row >= last_start:
                    until = _NEVER
                else:
                    source = source + step
                    ask(frame, source, under)
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
        ask(frame, source, under)
        while True:
            # `start` is what is known of this row of the result, `after` of the next one.
            sums(frame, source, under, line)
            # From the row's centre to the next one's: 0 to 1.
            distance = (pixel - centre) * slope
            pixel = pixel + np.float32(1.0)
            if pixel <= last_row:
                source = source + step
            ask(frame, source, under)
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
