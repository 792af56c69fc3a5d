"""Source rows for the streaming kernel: where a thread reads, how it loads, and how it interpolates along the row.

A thread makes `values` neighbouring values of an output row. For planar results (NCHW) these are columns, and the
thread makes them for all channels; for interleaved ones (NHWC) they are single values, each of its own channel.

In fixed point a thread makes `columns`, all channels of each, whatever the layout: one instruction (`dp2a`) weighs two
neighbours by weights of 15 bits, and its sum is the last bits of a float32, `8388608 + 32768 * value`. Rows are then
mixed and normalised as such floats. A weight is at most 1 / 65536 off, a value 0.004 levels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import cuda

from octopus.kernels.cuda import ptx

_load_word = ptx.load_word
_funnel = ptx.funnel
_as_float = ptx.as_float
_permute, _mix_low, _mix_high = ptx.permute, ptx.mix_low, ptx.mix_high
_byte0, _byte1, _byte2, _byte3 = ptx.byte0, ptx.byte1, ptx.byte2, ptx.byte3
_MAGIC = ptx.MAGIC_VALUE
ONE = 32768  # a weight of one in fixed point, and one level of a value


class Rows(NamedTuple):
    """Device functions over a thread's local arrays; see `source_rows`."""

    locate: Callable
    load: Callable
    interpolate: Callable


def source_rows(channels: int, frame_dtype: str, planar: bool, values: int, words: bool) -> Rows:
    """The device functions for a kind of frame.

    Parameters
    ----------
    channels : {1, 3, 4}
    frame_dtype : {"uint8", "uint16"}
    planar : bool
    values : int
        Neighbouring values of an output row per thread.
    words : bool
        Whether the frame may be read in aligned words of four bytes: uint8, planar, 3 or 4 channels, and address and
        row length multiples of 4. Three loads then bring the two neighbours of a column, which would take six loads
        of single bytes, and as many passes through the L1 cache.
    """
    if words and not (planar and frame_dtype == "uint8" and channels in (3, 4)):
        raise ValueError("words can be read from uint8 frames of 3 or 4 channels for planar results alone")
    load, interpolate = (
        _bytes(channels, frame_dtype, values, channels if planar else 1)
        if not words
        else (_words_of_three(values) if channels == 3 else _words_of_four(values))
    )
    return Rows(_locate(channels, planar, values, words and channels == 3), load, interpolate)


def fixed_rows(channels: int, columns: int, planar: bool) -> Rows:
    """The same in fixed point, from uint8 frames of 3 or 4 channels that may be read in words.

    Parameters
    ----------
    columns : int
        Of a thread.
    planar : bool
        Whether a thread's values lie channel by channel, or column by column.
    """
    make = _fixed_three if channels == 3 else _fixed_four
    interpolate = make(columns, 1 if planar else channels, columns if planar else 1)
    load = (_words_of_three if channels == 3 else _words_of_four)(columns)[0]
    return Rows(_fixed_locate(channels, columns), load, cuda.jit(device=True)(interpolate))


def _locate(channels: int, planar: bool, values: int, unaligned: bool) -> Callable:
    def locate(first, left, limit, last, origin, scale, offset, third, shift, weight):
        """Where the left neighbours of a thread's values lie in a row, in elements, and the weights of the right ones.

        `limit` is the last left neighbour: one pixel before the box's last, so that the next pixel always exists and
        a position on the last has the weight 1 instead.
        """
        for v in range(values):
            value = np.int32(first + np.int32(v))
            column, channel = value, np.int32(0)
            if not planar:
                column = np.int32(np.uint32(value) // np.uint32(channels))
                channel = np.int32(value - np.int32(column * np.int32(channels)))
            position = (np.float32(column) + np.float32(0.5)) * scale + origin
            position = min(max(position, np.float32(0.0)), np.float32(last))
            low = min(np.int32(position), limit)
            weight[v] = position - np.float32(low)
            at = np.int32(np.int32(left + low) * np.int32(channels) + channel)
            if unaligned:
                start = np.int32(at & np.int32(3))
                shift[v] = np.uint32(start * np.int32(8))
                # Only from the last byte of a word do six bytes reach into a third one; it may not exist otherwise.
                third[v] = np.int32(8) if start == np.int32(3) else np.int32(4)
                at = np.int32(at - start)
            offset[v] = at

    return cuda.jit(device=True)(locate)


@cuda.jit(device=True)
def _mix(a, b, weight, gain, bias):
    """Interpolate between two numbers, both 8388608 too large, and normalise; their difference is exact."""
    return ((a - _MAGIC) + weight * (b - a)) * gain + bias


def _bytes(channels: int, frame_dtype: str, values: int, planes: int) -> tuple[Callable, Callable]:
    load_pixel = ptx.PIXEL_LOADS[frame_dtype]

    def load(frame, source, offset, third, low, high, extra):
        for v in range(values):
            at = source + np.int64(offset[v])
            for c in range(planes):
                low[c * values + v] = load_pixel(frame, at + np.int64(c))
                high[c * values + v] = load_pixel(frame, at + np.int64(channels + c))

    def interpolate(low, high, extra, third, shift, weight, gain, bias, into):
        for v in range(values):
            for c in range(planes):
                j = c * values + v
                into[j] = _mix(_as_float(low[j]), _as_float(high[j]), weight[v], gain[j], bias[j])

    return cuda.jit(device=True)(load), cuda.jit(device=True)(interpolate)


def _words_of_three(values: int) -> tuple[Callable, Callable]:
    def load(frame, source, offset, third, low, high, extra):
        for v in range(values):
            at = source + np.int64(offset[v])
            low[v] = _load_word(frame, at)
            high[v] = _load_word(frame, at + np.int64(4))
            extra[v] = _load_word(frame, at + np.int64(third[v]))

    def interpolate(low, high, extra, third, shift, weight, gain, bias, into):
        for v in range(values):
            first = _funnel(low[v], high[v], shift[v])  # r0 g0 b0 r1
            second = _funnel(high[v], extra[v], shift[v])  # g1 b1 . .
            red, green, blue = v, values + v, 2 * values + v
            into[red] = _mix(_byte0(first), _byte3(first), weight[v], gain[red], bias[red])
            into[green] = _mix(_byte1(first), _byte0(second), weight[v], gain[green], bias[green])
            into[blue] = _mix(_byte2(first), _byte1(second), weight[v], gain[blue], bias[blue])

    return cuda.jit(device=True)(load), cuda.jit(device=True)(interpolate)


def _words_of_four(values: int) -> tuple[Callable, Callable]:
    def load(frame, source, offset, third, low, high, extra):
        for v in range(values):
            at = source + np.int64(offset[v])
            low[v] = _load_word(frame, at)
            high[v] = _load_word(frame, at + np.int64(4))

    def interpolate(low, high, extra, third, shift, weight, gain, bias, into):
        for v in range(values):
            a, b, w = low[v], high[v], weight[v]
            j0, j1, j2, j3 = v, values + v, 2 * values + v, 3 * values + v
            into[j0] = _mix(_byte0(a), _byte0(b), w, gain[j0], bias[j0])
            into[j1] = _mix(_byte1(a), _byte1(b), w, gain[j1], bias[j1])
            into[j2] = _mix(_byte2(a), _byte2(b), w, gain[j2], bias[j2])
            into[j3] = _mix(_byte3(a), _byte3(b), w, gain[j3], bias[j3])

    return cuda.jit(device=True)(load), cuda.jit(device=True)(interpolate)


def _fixed_locate(channels: int, columns: int) -> Callable:
    unaligned = channels == 3

    def locate(first, left, limit, last, origin, scale, offset, third, shift, weight):
        """As `_locate`, of columns; weights are those of both neighbours in one word, and `shift`
        says which bytes of the words are the first channels' (lower half) and the last channel's (upper half)."""
        for v in range(columns):
            position = (np.float32(np.int32(first + np.int32(v))) + np.float32(0.5)) * scale + origin
            position = min(max(position, np.float32(0.0)), np.float32(last))
            low = min(np.int32(position), limit)
            right = np.uint32((position - np.float32(low)) * np.float32(ONE) + np.float32(0.5))
            weight[v] = (np.uint32(ONE) - right) | (right << np.uint32(16))
            at = np.int32(np.int32(left + low) * np.int32(channels))
            if unaligned:
                start = np.uint32(at & np.int32(3))
                third[v] = np.int32(8) if start == np.uint32(3) else np.int32(4)
                blue = np.uint32(0x41) if start == np.uint32(3) else np.uint32(0x52) + start * np.uint32(0x11)
                shift[v] = (np.uint32(0x4130) + start * np.uint32(0x1111)) | (blue << np.uint32(16))
                at = np.int32(at - np.int32(start))
            offset[v] = at

    return cuda.jit(device=True)(locate)


def _fixed_three(columns: int, across: int, down: int) -> Callable:
    def interpolate(low, high, extra, third, shift, weight, gain, bias, into):
        for v in range(columns):
            first = _permute(low[v], high[v], shift[v])  # r r' g g'
            # Of the two words that hold blue and its neighbour.
            word = high[v] if third[v] == np.int32(8) else low[v]
            second = _permute(word, extra[v], shift[v] >> np.uint32(16))  # b b' . .
            into[v * across] = _mix_low(weight[v], first)
            into[v * across + down] = _mix_high(weight[v], first)
            into[v * across + 2 * down] = _mix_low(weight[v], second)

    return interpolate


def _fixed_four(columns: int, across: int, down: int) -> Callable:
    def interpolate(low, high, extra, third, shift, weight, gain, bias, into):
        for v in range(columns):
            first = _permute(low[v], high[v], np.uint32(0x5140))
            second = _permute(low[v], high[v], np.uint32(0x7362))
            into[v * across] = _mix_low(weight[v], first)
            into[v * across + down] = _mix_high(weight[v], first)
            into[v * across + 2 * down] = _mix_low(weight[v], second)
            into[v * across + 3 * down] = _mix_high(weight[v], second)

    return interpolate
