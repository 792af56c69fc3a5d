"""Output rows of the streaming kernel: a thread walks down the source rows and stores what it makes of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import cuda

from octopus.kernels.cuda.rows import Rows

_NEVER = np.float32(np.inf)


def emitter(values: int, planes: int, store: Callable) -> Callable:
    """A device function that stores one output row's values, `start + weight * change`, of all planes."""

    def emit_one(out, at, plane, start, change, weight):
        for c in range(planes):
            store(out, at + np.int64(c) * plane, (start[c] + weight * change[c],))

    def emit_two(out, at, plane, start, change, weight):
        for c in range(planes):
            j = 2 * c
            store(
                out, at + np.int64(c) * plane,
                (start[j] + weight * change[j], start[j + 1] + weight * change[j + 1]),
            )  # fmt: skip

    def emit_four(out, at, plane, start, change, weight):
        for c in range(planes):
            j = 4 * c
            store(
                out, at + np.int64(c) * plane,
                (
                    start[j] + weight * change[j], start[j + 1] + weight * change[j + 1],
                    start[j + 2] + weight * change[j + 2], start[j + 3] + weight * change[j + 3],
                ),
            )  # fmt: skip

    return cuda.jit(device=True)({1: emit_one, 2: emit_two, 4: emit_four}[values])


def spreader(channels: int, planar: bool, values: int) -> Callable:
    """A device function that makes one number per channel one per value."""
    planes = channels if planar else 1

    @cuda.jit(device=True)
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


def _coverer(channels: int, planar: bool, values: int) -> Callable:
    """A device function for the columns beside the image of a letterbox."""
    planes = channels if planar else 1

    @cuda.jit(device=True)
    def cover(first, before, columns, pad, into):
        """Put the padding where a thread's columns lie beside the image."""
        for v in range(values):
            value = np.int32(first + np.int32(v))
            column = value if planar else np.int32(np.uint32(value) // np.uint32(channels))
            if column < before or column >= np.int32(before + columns):
                for c in range(planes):
                    into[c * values + v] = pad[c * values + v]

    return cover


def streamer(
    source_rows: Rows,
    emit: Callable,
    spread: Callable,
    channels: int,
    planar: bool,
    values: int,
    letterbox: bool,
    summed: bool,
) -> Callable:
    """A device function that makes neighbouring rows of a thread's columns, each source row loaded one ahead.

    With `summed`, a source row is the sum of the one before and the change: good to a few last bits, and no registers
    are held while rows are stored.
    """
    locate, load, interpolate = source_rows
    every = values * (channels if planar else 1)
    per_row = 1 if planar else channels
    cover = _coverer(channels, planar, values)

    @cuda.jit(device=True)
    def stream(
        frame, pitch, width, out, at, plane, row_values, row, count, first, source, left, last_x, origin_x,
        scale_x, top, last_y, origin_y, scale_y, gain, bias, before, columns, padding, start, change,
    ):  # fmt: skip
        """Make `count` rows from `row` on, at least one; returns where the next one goes."""
        offset = cuda.local.array(values, np.int32)
        third = cuda.local.array(values, np.int32)
        shift = cuda.local.array(values, np.uint32)
        weight_x = cuda.local.array(values, np.float32)
        gains = cuda.local.array(every, np.float32)
        biases = cuda.local.array(every, np.float32)
        following = cuda.local.array(every, np.float32)
        low = cuda.local.array(every, np.uint32)
        high = cuda.local.array(every, np.uint32)
        extra = cuda.local.array(every, np.uint32)

        limit_x = max(np.int32(last_x - np.int32(1)), np.int32(0))
        limit_x = min(limit_x, np.int32(np.int32(width - np.int32(2)) - left))
        image_first = np.int32(first - np.int32(before * np.int32(per_row))) if letterbox else first
        locate(image_first, left, limit_x, last_x, origin_x, scale_x, offset, third, shift, weight_x)
        spread(first, gain, gains)
        spread(first, bias, biases)

        limit_y = max(np.int32(last_y - np.int32(1)), np.int32(0))
        last_row = np.float32(last_y)
        last_start = np.float32(limit_y)
        step = np.int64(pitch) if last_y > np.int32(0) else np.int64(0)
        number = np.float32(row) + np.float32(0.5)
        position = min(max(number * scale_y + origin_y, np.float32(0.0)), last_row)
        current = min(np.int32(position), limit_y)
        current_row = np.float32(current)
        source = source + np.int64(np.int32(top + current)) * np.int64(pitch)
        load(frame, source, offset, third, low, high, extra)
        interpolate(low, high, extra, shift, weight_x, gains, biases, following)
        if letterbox:
            cover(first, before, columns, padding, following)
        source = source + step
        load(frame, source, offset, third, low, high, extra)
        if summed:
            for j in range(every):
                start[j] = following[j]
                change[j] = np.float32(0.0)
        while True:
            # `following` is row `current_row`; the one after it has been asked for.
            for j in range(every):
                start[j] = start[j] + change[j] if summed else following[j]
            interpolate(low, high, extra, shift, weight_x, gains, biases, following)
            if letterbox:
                cover(first, before, columns, padding, following)
            for j in range(every):
                change[j] = following[j] - start[j]
            until = current_row + np.float32(1.0)
            if current_row >= last_start:
                until = _NEVER
            else:
                source = source + step
            load(frame, source, offset, third, low, high, extra)
            while position < until:
                emit(out, at, plane, start, change, position - current_row)
                at = at + np.int64(row_values)
                count = np.int32(count - np.int32(1))
                if count == np.int32(0):
                    return at
                number = number + np.float32(1.0)
                position = min(max(number * scale_y + origin_y, np.float32(0.0)), last_row)
            current_row = until
            if position >= current_row + np.float32(2.0):
                # Shrinking by more than two: the rows between are of no use.
                current = min(np.int32(position), limit_y)
                source = source + np.int64(
                    np.int32(current - np.int32(current_row) - np.int32(1))
                ) * np.int64(pitch)
                current_row = np.float32(current)
                load(frame, source, offset, third, low, high, extra)
                interpolate(low, high, extra, shift, weight_x, gains, biases, following)
                if letterbox:
                    cover(first, before, columns, padding, following)
                source = source + step
                load(frame, source, offset, third, low, high, extra)
                if summed:
                    for j in range(every):
                        start[j] = following[j]
                        change[j] = np.float32(0.0)

    return stream
