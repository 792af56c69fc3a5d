"""Output rows of the streaming kernel: a thread walks down the source rows and stores what it makes of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from octopus.backends.cuda.language import cuda, device
from octopus.kernels.cuda import ptx
from octopus.kernels.cuda.rows import ONE, Rows

_funnel, _pack = ptx.funnel, ptx.pack
_store_word, _store_four = ptx.store_word, ptx.store_words
_NEVER = np.float32(np.inf)
_LEVEL = np.float32(1 / ONE)
_ZERO = np.float32(ptx.MAGIC_VALUE / ONE)  # what a value of 0 in fixed point is as so many levels


def emitter(values: int, planes: int, store: Callable) -> Callable:
    """A device function that stores one output row's values, `start + weight * change`, of all planes.

    Its last three arguments are for values in fixed point, see `fixed_emitter`.
    """

    def emit_one(out, at, plane, start, change, weight, gains, biases, skip):
        for c in range(planes):
            store(out, at + np.int64(c) * plane, (start[c] + weight * change[c],))

    def emit_two(out, at, plane, start, change, weight, gains, biases, skip):
        for c in range(planes):
            j = 2 * c
            store(
                out, at + np.int64(c) * plane,
                (start[j] + weight * change[j], start[j + 1] + weight * change[j + 1]),
            )  # fmt: skip

    def emit_four(out, at, plane, start, change, weight, gains, biases, skip):
        for c in range(planes):
            j = 4 * c
            store(
                out, at + np.int64(c) * plane,
                (
                    start[j] + weight * change[j], start[j + 1] + weight * change[j + 1],
                    start[j + 2] + weight * change[j + 2], start[j + 3] + weight * change[j + 3],
                ),
            )  # fmt: skip

    return device({1: emit_one, 2: emit_two, 4: emit_four}[values])


def spreader(channels: int, planar: bool, values: int) -> Callable:
    """A device function that makes one number per channel one per value."""
    planes = channels if planar else 1

    @device
    def spread(first, of_channel, into):
        """One number per channel as one per value."""
        for v in range(values):
            if planar:
                for c in range(planes):
                    into[c * values + v] = of_channel[c]
            else:
                value = np.uint32(first + np.int32(v))
                channel = np.uint32(value - np.uint32(value // np.uint32(channels)) * np.uint32(channels))
                into[v] = of_channel[0]
                for c in range(1, channels):
                    if channel == np.uint32(c):
                        into[v] = of_channel[c]

    return spread


def coverer(channels: int, planar: bool, values: int) -> Callable:
    """A device function for the columns beside the image of a letterbox."""
    planes = channels if planar else 1

    @device
    def cover(first, before, columns, pad, gains, into):
        """Put the padding where a thread's columns lie beside the image."""
        for v in range(values):
            value = np.int32(first + np.int32(v))
            column = value if planar else np.int32(np.uint32(value) // np.uint32(channels))
            if column < before or column >= np.int32(before + columns):
                for c in range(planes):
                    into[c * values + v] = pad[c * values + v]

    return cover


class Fixed(NamedTuple):
    """How a thread's values lie in fixed point; it makes all channels of each of its columns.

    Attributes
    ----------
    channels, columns : int
    planar : bool
        Whether the result is NCHW.
    base : float
        What stored values are too large by.
    """

    channels: int
    columns: int
    planar: bool
    base: np.float32

    @property
    def steps(self) -> tuple[int, int]:
        """From a value to that of the next column, and to that of the next channel."""
        return (1, self.columns) if self.planar else (self.channels, 1)


def fixed_form(channels: int, out_dtype: str, planar: bool, values: int) -> Fixed:
    """The form of a thread that stores `values` small floats of each plane, or so many bytes of each plane or of NHWC.

    Sixteen bytes of NHWC may begin and end within a pixel of three channels; they touch six.
    """
    columns = values if planar else -(-values // channels)
    return Fixed(channels, columns, planar, ptx.MAGIC_VALUE if out_dtype == "uint8" else np.float32(0.0))


@device
def _value(start, change, weight, gains, biases, j):
    return (start[j] + weight * change[j]) * gains[j] + biases[j]


def fixed_emitter(form: Fixed, store: Callable) -> Callable:
    """`emitter` for values in fixed point: `(start + weight * change) * gain + bias`.

    `skip` is for NHWC, where a thread's sixteen bytes may begin within a pixel: how many bits of it are another's.
    """
    channels, columns = form.channels, form.columns

    @device
    def word(start, change, weight, gains, biases, j):
        return _pack(
            _value(start, change, weight, gains, biases, j),
            _value(start, change, weight, gains, biases, j + 1),
            _value(start, change, weight, gains, biases, j + 2),
            _value(start, change, weight, gains, biases, j + 3),
        )

    def emit_bytes(out, at, plane, start, change, weight, gains, biases, skip):
        for c in range(channels):
            j = c * columns
            _store_word(out, at + np.int64(c) * plane, (word(start, change, weight, gains, biases, j),))

    def emit_halves(out, at, plane, start, change, weight, gains, biases, skip):
        for c in range(channels):
            j = c * columns
            store(
                out, at + np.int64(c) * plane,
                (
                    _value(start, change, weight, gains, biases, j),
                    _value(start, change, weight, gains, biases, j + 1),
                    _value(start, change, weight, gains, biases, j + 2),
                    _value(start, change, weight, gains, biases, j + 3),
                ),
            )  # fmt: skip

    def emit_pixels(out, at, plane, start, change, weight, gains, biases, skip):
        words = cuda.local.array(5, np.uint32)
        for i in range(4):
            words[i] = word(start, change, weight, gains, biases, 4 * i)
        if channels == 3:
            last = _value(start, change, weight, gains, biases, 17)
            words[4] = _pack(_value(start, change, weight, gains, biases, 16), last, last, last)
            for i in range(4):
                words[i] = _funnel(words[i], words[i + 1], np.uint32(skip))
        _store_four(out, at, (words[0], words[1], words[2], words[3]))

    if not form.planar:
        return device(emit_pixels)
    return device(emit_bytes if form.base else emit_halves)


def fixed_spreader(form: Fixed) -> tuple[Callable, Callable]:
    """`spreader` for values in fixed point, and a device function that puts the padding where a thread's columns lie
    beside the image of a letterbox."""
    channels, columns, base = form.channels, form.columns, form.base
    across, down = form.steps

    @device
    def spread(first, of_channel, into):
        for v in range(columns):
            for c in range(channels):
                into[v * across + c * down] = of_channel[c]

    @device
    def cover(first, before, image_columns, pad, gains, biases):
        for v in range(columns):
            column = np.int32(first + np.int32(v))
            if column < before or column >= np.int32(before + image_columns):
                for c in range(channels):
                    gains[v * across + c * down] = np.float32(0.0)
                    biases[v * across + c * down] = pad[v * across + c * down] + base

    return spread, cover


def streamer(
    source_rows: Rows,
    emit: Callable,
    spread: Callable,
    cover: Callable,
    columns: int,
    every: int,
    per_row: int,
    letterbox: bool,
    summed: bool,
    fixed: Fixed | None,
    index: type[np.generic] = np.int64,
) -> Callable:
    """A device function that makes neighbouring rows of a thread's columns, each source row loaded one ahead.

    With `summed`, a source row is the sum of the one before and the change: good to a few last bits, and no registers
    are held while rows are stored. Elements of the frame are counted by `index`.
    """
    locate, load, interpolate = source_rows
    weights = np.float32 if fixed is None else np.uint32
    normalised, base = fixed is None, np.float32(0.0) if fixed is None else fixed.base
    covers_rows, covers_once = letterbox and fixed is None, letterbox and fixed is not None

    @device
    def stream(
        frame, pitch, width, out, at, plane, row_values, row, count, first, skip, source, left, last_x, origin_x,
        scale_x, top, last_y, origin_y, scale_y, gain, bias, before, image_columns, padding, start, change, mirrored,
        far,
    ):  # fmt: skip
        """Make `count` rows from `row` on, at least one; returns where the next one goes."""
        offset = cuda.local.array(columns, np.int32)
        third = cuda.local.array(columns, np.int32)
        shift = cuda.local.array(columns, np.uint32)
        weight_x = cuda.local.array(columns, weights)
        gains = cuda.local.array(every, np.float32)
        biases = cuda.local.array(every, np.float32)
        following = cuda.local.array(every, np.float32)
        low = cuda.local.array(every, np.uint32)
        high = cuda.local.array(every, np.uint32)
        extra = cuda.local.array(every, np.uint32)
        low_after = cuda.local.array(every, np.uint32)
        high_after = cuda.local.array(every, np.uint32)
        extra_after = cuda.local.array(every, np.uint32)

        limit_x = max(np.int32(last_x - np.int32(1)), np.int32(0))
        limit_x = min(limit_x, np.int32(np.int32(width - np.int32(2)) - left))
        image_first = np.int32(first - np.int32(before * np.int32(per_row))) if letterbox else first
        locate(
            image_first, left, limit_x, last_x, origin_x, scale_x, offset, third, shift, weight_x, mirrored,
            np.int32(image_columns - np.int32(1)),
        )  # fmt: skip
        spread(first, gain, gains)
        spread(first, bias, biases)
        if not normalised:
            for j in range(every):
                biases[j] = biases[j] - gains[j] * _ZERO + base
                gains[j] = gains[j] * _LEVEL
        if covers_once:
            cover(first, before, image_columns, padding, gains, biases)

        limit_y = max(np.int32(last_y - np.int32(1)), np.int32(0))
        last_row = np.float32(last_y)
        last_start = np.float32(limit_y)
        step = index(pitch) if last_y > np.int32(0) else index(0)
        number = np.float32(row) + np.float32(0.5)
        position = min(max(number * scale_y + origin_y, np.float32(0.0)), last_row)
        current = min(np.int32(position), limit_y)
        current_row = np.float32(current)
        source = index(source + index(index(np.int32(top + current)) * index(pitch)))
        load(frame, source, offset, third, low, high, extra)
        if scale_y >= np.float32(2.0):
            # No row is of use to two: both of the next are asked for before these are stored, and none between them.
            load(frame, index(source + step), offset, third, low_after, high_after, extra_after)
            while True:
                interpolate(frame, low, high, extra, third, shift, weight_x, gains, biases, start)
                interpolate(frame, low_after, high_after, extra_after, third, shift, weight_x, gains, biases, following)
                if covers_rows:
                    cover(first, before, image_columns, padding, start, start)
                    cover(first, before, image_columns, padding, following, following)
                for j in range(every):
                    change[j] = following[j] - start[j]
                weight = position - np.float32(current)
                number = number + np.float32(1.0)
                position = min(max(number * scale_y + origin_y, np.float32(0.0)), last_row)
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
        if covers_rows:
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
            if covers_rows:
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
                position = min(max(number * scale_y + origin_y, np.float32(0.0)), last_row)
            current_row = until

    return stream
