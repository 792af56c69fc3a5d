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

from octopus.backends.cuda.language import bits_as_float, device
from octopus.kernels.cuda import ptx

_load_word = ptx.load_word
_funnel = ptx.funnel
_as_float = ptx.as_float
_permute, _mix_low, _mix_high = ptx.permute, ptx.mix_low, ptx.mix_high
_as_bits, _saturated = bits_as_float, ptx.saturated
_byte0, _byte1, _byte2, _byte3 = ptx.byte0, ptx.byte1, ptx.byte2, ptx.byte3
_MAGIC = ptx.MAGIC_VALUE
ONE = 32768  # a weight of one in fixed point, and one level of a value


class Rows(NamedTuple):
    """Device functions over a thread's local arrays; see `source_rows`."""

    locate: Callable
    load: Callable
    interpolate: Callable


class Pixels(NamedTuple):
    """How a frame's pixels become those of the result.

    Attributes
    ----------
    channels : {1, 3, 4}
        Of the result.
    dtype : {"uint8", "uint16", "nv12", "p010"}
        Of the frame; the last two are video, see `video_rows`.
    order : {"RGB", "BGR", "RGBA", "BGRA"}
        Of the frame's channels; "RGB" also where they aren't colours, and all are kept as they are.
    flipped : bool
        Whether items may be mirrored.
    narrow : bool
        Whether a frame has fewer than 2**32 values, which can then be counted in 32 bits.
    """

    channels: int
    dtype: str
    order: str = "RGB"
    flipped: bool = False
    narrow: bool = False

    @property
    def index(self) -> type[np.generic]:
        """What rows are found by."""
        return np.uint32 if self.narrow else np.int64

    @property
    def stored(self) -> int:
        """Channels of a pixel in the frame."""
        return max(self.channels, len(self.order)) if self.channels == 3 else self.channels

    @property
    def turned(self) -> bool:
        """Whether the first of a pixel's channels in the frame is the third of the result."""
        return self.order.startswith("B")

    @property
    def into_of(self) -> tuple[int, ...]:
        """Which of the result's channels is each of a pixel's in the frame; -1 for one that is left out."""
        places = [2, 1, 0] if self.turned else list(range(self.channels))
        return tuple(places.index(c) if c in places else -1 for c in range(self.stored))

    @property
    def is_video(self) -> bool:
        """Whether luma and chroma lie in planes of their own."""
        return self.dtype in VIDEO


def source_rows(pixels: Pixels, planar: bool, values: int, words: bool) -> Rows:
    """The device functions for a kind of frame.

    Parameters
    ----------
    pixels : Pixels
    planar : bool
    values : int
        Neighbouring values of an output row per thread; of video, all channels of so many columns if `planar`, else of
        one.
    words : bool
        Whether the frame may be read in aligned words of four bytes: uint8, planar, 3 or 4 channels, and address and
        row length multiples of 4. Three loads then bring the two neighbours of a column, which would take six loads
        of single bytes, and as many passes through the L1 cache.
    """
    if pixels.is_video:
        return video_rows(pixels, values if planar else 1)
    stored = pixels.stored
    if words and not (planar and pixels.dtype == "uint8" and stored in (3, 4)):
        raise ValueError("words can be read from uint8 frames of 3 or 4 channels for planar results alone")
    load, interpolate = (
        _bytes(pixels, values, pixels.channels if planar else 1)
        if not words
        else (_words_of_three(pixels, values) if stored == 3 else _words_of_four(pixels, values))
    )
    return Rows(_locate(pixels, planar, values, words and stored == 3), load, interpolate)


def fixed_rows(pixels: Pixels, columns: int, planar: bool) -> Rows:
    """The same in fixed point, from uint8 frames of 3 or 4 channels that may be read in words.

    Parameters
    ----------
    pixels : Pixels
    columns : int
        Of a thread.
    planar : bool
        Whether a thread's values lie channel by channel, or column by column.
    """
    three = pixels.stored == 3
    make = _fixed_three if three else _fixed_four
    across, down = (1, columns) if planar else (pixels.channels, 1)
    interpolate = make(columns, across, _into(pixels, down))
    load = (_words_of_three if three else _words_of_four)(pixels, columns)[0]
    return Rows(_fixed_locate(pixels, columns), load, device(interpolate))


def _into(pixels: Pixels, step: int) -> tuple[int, ...]:
    """Where each of a pixel's channels in the frame goes, `step` apart; -1 for one that is left out."""
    return tuple(c * step if c >= 0 else c for c in pixels.into_of)


def _locate(pixels: Pixels, planar: bool, values: int, unaligned: bool) -> Callable:
    channels, stored, flipped = pixels.channels, pixels.stored, pixels.flipped
    turned = pixels.turned

    def locate(first, left, limit, last, origin, scale, offset, third, shift, weight, mirrored, end):
        """Where the left neighbours of a thread's values lie in a row, in elements, and the weights of the right ones.

        `limit` is the last left neighbour: one pixel before the box's last, so that the next pixel always exists and
        a position on the last has the weight 1 instead. `end` is the image's last column, which is the first of those
        that are `mirrored`.
        """
        for v in range(values):
            value = np.int32(first + np.int32(v))
            column, channel = value, np.int32(0)
            if not planar:
                column = np.int32(np.uint32(value) // np.uint32(channels))
                channel = np.int32(value - np.int32(column * np.int32(channels)))
                if turned:
                    channel = np.int32(np.int32(2) - channel)
            if flipped and mirrored:
                column = np.int32(end - column)
            position = (np.float32(column) + np.float32(0.5)) * scale + origin
            position = min(max(position, np.float32(0.0)), np.float32(last))
            low = min(np.int32(position), limit)
            weight[v] = position - np.float32(low)
            at = np.int32(np.int32(left + low) * np.int32(stored) + channel)
            if unaligned:
                start = np.int32(at & np.int32(3))
                shift[v] = np.uint32(start * np.int32(8))
                # Only from the last byte of a word do six bytes reach into a third one; it may not exist otherwise.
                third[v] = np.int32(8) if start == np.int32(3) else np.int32(4)
                at = np.int32(at - start)
            offset[v] = at

    return device(locate)


@device
def _mix(a, b, weight, gain, bias):
    """Interpolate between two numbers, both 8388608 too large, and normalise; their difference is exact."""
    return ((a - _MAGIC) + weight * (b - a)) * gain + bias


def _bytes(pixels: Pixels, values: int, planes: int) -> tuple[Callable, Callable]:
    load_pixel, stored = ptx.PIXEL_LOADS[pixels.dtype], pixels.stored
    turned = planes > 1 and pixels.turned

    def load(frame, source, offset, third, low, high, extra):
        for v in range(values):
            at = source + np.int64(offset[v])
            for c in range(planes):
                place = planes - 1 - c if turned else c
                low[c * values + v] = load_pixel(frame, at + np.int64(place))
                high[c * values + v] = load_pixel(frame, at + np.int64(stored + place))

    def interpolate(frame, low, high, extra, third, shift, weight, gain, bias, into):
        for v in range(values):
            for c in range(planes):
                j = c * values + v
                into[j] = _mix(_as_float(low[j]), _as_float(high[j]), weight[v], gain[j], bias[j])

    return device(load), device(interpolate)


def _words_of_three(pixels: Pixels, values: int) -> tuple[Callable, Callable]:
    to0, to1, to2 = _into(pixels, values)
    index = pixels.index

    def load(frame, source, offset, third, low, high, extra):
        for v in range(values):
            at = np.int64(index(source + index(offset[v])))
            low[v] = _load_word(frame, at)
            high[v] = _load_word(frame, at + np.int64(4))
            extra[v] = _load_word(frame, at + np.int64(third[v]))

    def interpolate(frame, low, high, extra, third, shift, weight, gain, bias, into):
        for v in range(values):
            first = _funnel(low[v], high[v], shift[v])  # r0 g0 b0 r1
            second = _funnel(high[v], extra[v], shift[v])  # g1 b1 . .
            j0, j1, j2 = to0 + v, to1 + v, to2 + v
            into[j0] = _mix(_byte0(first), _byte3(first), weight[v], gain[j0], bias[j0])
            into[j1] = _mix(_byte1(first), _byte0(second), weight[v], gain[j1], bias[j1])
            into[j2] = _mix(_byte2(first), _byte1(second), weight[v], gain[j2], bias[j2])

    return device(load), device(interpolate)


def _words_of_four(pixels: Pixels, values: int) -> tuple[Callable, Callable]:
    to0, to1, to2, to3 = _into(pixels, values)
    index = pixels.index

    def load(frame, source, offset, third, low, high, extra):
        for v in range(values):
            at = np.int64(index(source + index(offset[v])))
            low[v] = _load_word(frame, at)
            high[v] = _load_word(frame, at + np.int64(4))

    def interpolate(frame, low, high, extra, third, shift, weight, gain, bias, into):
        for v in range(values):
            a, b, w = low[v], high[v], weight[v]
            j0, j1, j2 = to0 + v, to1 + v, to2 + v
            into[j0] = _mix(_byte0(a), _byte0(b), w, gain[j0], bias[j0])
            into[j1] = _mix(_byte1(a), _byte1(b), w, gain[j1], bias[j1])
            into[j2] = _mix(_byte2(a), _byte2(b), w, gain[j2], bias[j2])
            if to3 >= 0:
                j3 = to3 + v
                into[j3] = _mix(_byte3(a), _byte3(b), w, gain[j3], bias[j3])

    return device(load), device(interpolate)


def _fixed_locate(pixels: Pixels, columns: int) -> Callable:
    stored, flipped = pixels.stored, pixels.flipped
    unaligned = stored == 3

    def locate(first, left, limit, last, origin, scale, offset, third, shift, weight, mirrored, end):
        """As `_locate`, of columns; weights are those of both neighbours in one word, and `shift`
        says which bytes of the words are the first channels' (lower half) and the last channel's (upper half)."""
        for v in range(columns):
            column = np.int32(first + np.int32(v))
            if flipped and mirrored:
                column = np.int32(end - column)
            position = (np.float32(column) + np.float32(0.5)) * scale + origin
            position = min(max(position, np.float32(0.0)), np.float32(last))
            low = min(np.int32(position), limit)
            right = np.uint32((position - np.float32(low)) * np.float32(ONE) + np.float32(0.5))
            weight[v] = (np.uint32(ONE) - right) | (right << np.uint32(16))
            at = np.int32(np.int32(left + low) * np.int32(stored))
            if unaligned:
                start = np.uint32(at & np.int32(3))
                third[v] = np.int32(8) if start == np.uint32(3) else np.int32(4)
                blue = np.uint32(0x41) if start == np.uint32(3) else np.uint32(0x52) + start * np.uint32(0x11)
                shift[v] = (np.uint32(0x4130) + start * np.uint32(0x1111)) | (blue << np.uint32(16))
                at = np.int32(at - np.int32(start))
            offset[v] = at

    return device(locate)


def _fixed_three(columns: int, across: int, to: tuple[int, ...]) -> Callable:
    to0, to1, to2 = to

    def interpolate(frame, low, high, extra, third, shift, weight, gain, bias, into):
        for v in range(columns):
            first = _permute(low[v], high[v], shift[v])  # r r' g g'
            # Of the two words that hold blue and its neighbour.
            # Both are loaded before one is chosen: a choice of places would keep them in memory.
            left, right = low[v], high[v]
            word = right if third[v] == np.int32(8) else left
            second = _permute(word, extra[v], shift[v] >> np.uint32(16))  # b b' . .
            into[v * across + to0] = _mix_low(weight[v], first)
            into[v * across + to1] = _mix_high(weight[v], first)
            into[v * across + to2] = _mix_low(weight[v], second)

    return interpolate


def _fixed_four(columns: int, across: int, to: tuple[int, ...]) -> Callable:
    to0, to1, to2, to3 = to

    def interpolate(frame, low, high, extra, third, shift, weight, gain, bias, into):
        for v in range(columns):
            first = _permute(low[v], high[v], np.uint32(0x5140))
            second = _permute(low[v], high[v], np.uint32(0x7362))
            into[v * across + to0] = _mix_low(weight[v], first)
            into[v * across + to1] = _mix_high(weight[v], first)
            into[v * across + to2] = _mix_low(weight[v], second)
            if to3 >= 0:
                into[v * across + to3] = _mix_high(weight[v], second)

    return interpolate


# How the samples of video lie: what loads one of luma, what loads a pair of chroma as one word, and which of its bytes
# are each sample's.
class _Samples(NamedTuple):
    luma: Callable
    pair: Callable
    low: int
    high: int


VIDEO = {
    "nv12": _Samples(ptx.PIXEL_LOADS["uint8"], ptx.load_half, 0x7440, 0x7441),
    "p010": _Samples(ptx.PIXEL_LOADS["uint16"], ptx.load_word, 0x7410, 0x7432),
}


def converter(dtype: str) -> Callable:
    """A device function: red, green and blue, 0 to 1, of a sample of luma and a pair of chroma, as video stores them.

    It is given the eight coefficients of `crop.video.Coding`, each divided by 255.
    """
    low, high = np.uint32(VIDEO[dtype].low), np.uint32(VIDEO[dtype].high)

    @device
    def convert(luma, pair, coefficients):
        yg, rv, r0, gu, gv, g0, bu, b0 = coefficients
        y = _as_float(luma) - _MAGIC
        u = _as_bits(_permute(pair, np.uint32(ptx.MAGIC), low)) - _MAGIC
        v = _as_bits(_permute(pair, np.uint32(ptx.MAGIC), high)) - _MAGIC
        return (
            _saturated(y, yg, rv * v + r0),
            _saturated(y, yg, gu * u + (gv * v + g0)),
            _saturated(y, yg, bu * u + b0),
        )

    return convert


def video_rows(pixels: Pixels, columns: int) -> Rows:
    """The device functions for video: all channels of a thread's columns, planes one after the other.

    The frame is a tuple of the pointers to luma and chroma, the ways from row to row of both in elements, and the
    coefficients of `converter`; `source` is a row's number. A pixel takes the chroma of its group of two by two, is
    converted and clamped, and then interpolated, as if the whole frame had been converted before, without rounding.
    Gains are those of values from 0 to 1.
    """
    load_luma, load_pair, _, _ = VIDEO[pixels.dtype]
    convert, flipped = converter(pixels.dtype), pixels.flipped

    @device
    def locate(first, left, limit, last, origin, scale, offset, third, shift, weight, mirrored, end):
        for v in range(columns):
            column = np.int32(first + np.int32(v))
            if flipped and mirrored:
                column = np.int32(end - column)
            position = (np.float32(column) + np.float32(0.5)) * scale + origin
            position = min(max(position, np.float32(0.0)), np.float32(last))
            low = min(np.int32(position), limit)
            weight[v] = position - np.float32(low)
            offset[v] = np.int32(left + low)

    @device
    def load(frame, source, offset, third, low, high, extra):
        luma, chroma, pitch, chroma_pitch, _ = frame
        # Planes have at most 2**32 samples: half the registers, and instructions, of 64 bits.
        number = np.uint32(source)
        row = np.uint32(number * np.uint32(pitch))
        pairs = np.uint32(np.uint32(number >> np.uint32(1)) * np.uint32(chroma_pitch))
        for v in range(columns):
            at = np.uint32(offset[v])
            after = np.uint32(at + np.uint32(1))
            low[v] = load_luma(luma, np.uint32(row + at))
            high[v] = load_luma(luma, np.uint32(row + after))
            extra[v] = load_pair(chroma, np.uint32(pairs + np.uint32(at & np.uint32(0xFFFFFFFE))))
            extra[columns + v] = load_pair(chroma, np.uint32(pairs + np.uint32(after & np.uint32(0xFFFFFFFE))))

    @device
    def interpolate(frame, low, high, extra, third, shift, weight, gain, bias, into):
        coefficients = frame[4]
        for v in range(columns):
            r, g, b = convert(low[v], extra[v], coefficients)
            red, green, blue = convert(high[v], extra[columns + v], coefficients)
            j0, j1, j2 = v, columns + v, 2 * columns + v
            into[j0] = (r + weight[v] * (red - r)) * gain[j0] + bias[j0]
            into[j1] = (g + weight[v] * (green - g)) * gain[j1] + bias[j1]
            into[j2] = (b + weight[v] * (blue - b)) * gain[j2] + bias[j2]

    return Rows(locate, load, interpolate)
