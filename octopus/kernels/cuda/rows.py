"""Source rows for the streaming kernel: where a thread reads, how it loads, and how it interpolates along the row.

A thread makes `values` neighbouring values of an output row. For planar results (NCHW) these are columns, and the
thread makes them for all channels; for interleaved ones (NHWC) they are single values, each of its own channel.

In fixed point a thread makes `columns`, all channels of each, whatever the layout: one instruction (`dp2a`) weighs two
neighbours by weights of 15 bits, and its sum is the last bits of a float32, `8388608 + 32768 * value`. Rows are then
mixed and normalised as such floats. A weight is at most 1 / 65536 off, a value 0.004 levels.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from octopus.backends.cuda.language import bits_as_float, device
from octopus.kernels.cuda import ptx
from octopus.kernels.cuda.ptx import byte0, byte1, byte2, byte3, load_word, permute

ONE = 32768  # a weight of one in fixed point, and one level of a value
_MAGIC = ptx.MAGIC_VALUE

Rows = tuple[Callable, Callable, Callable]  # device functions over a thread's local arrays: locate, load, interpolate


class Pixels(NamedTuple):
    """How a frame's pixels become those of the result."""

    channels: int  # of the result: 1, 3 or 4
    dtype: str  # of the frame: "uint8", "uint16", or of video "nv12", "p010"
    order: str = "RGB"  # of the frame's channels; "RGB" also where they aren't colours, and all are kept as they are
    flipped: bool = False  # whether items may be mirrored
    narrow: bool = False  # whether a frame has fewer than 2**32 values, which can then be counted in 32 bits

    @property
    def index(self) -> type[np.generic]:
        """What rows are found by."""
        return np.uint32 if self.narrow else np.int64

    @property
    def stored(self) -> int:
        return max(self.channels, len(self.order)) if self.channels == 3 else self.channels

    @property
    def turned(self) -> bool:
        """Whether the first of a pixel's channels in the frame is the third of the result."""
        return self.order.startswith("B")

    def into(self, step: int = 1) -> tuple[int, ...]:
        """Where each of four channels in the frame goes, `step` apart; -1 for one that is left out."""
        places = [2, 1, 0] if self.turned else list(range(self.channels))
        return tuple(places.index(c) * step if c in places else -1 for c in range(4))

    @property
    def is_video(self) -> bool:
        return self.dtype in VIDEO


def source_rows(pixels: Pixels, planar: bool, values: int, words: bool, apart: int = 1) -> Rows:
    """The device functions for a kind of frame; of video, all channels of `values` columns if `planar`, else of one.
    Values of a thread may lie `apart`, but not those of video. `words`: the frame may be read in aligned words of four
    bytes, for address and row length are multiples of 4. Three loads then bring the two neighbours of a column instead
    of six of single bytes: boxes of 320 x 320 to 224 x 224 took 164 us for 210, and the L1's data stage was busy in 73
    % of cycles for 95 (see `docs/kernels.md`)."""
    if pixels.is_video:
        return _video_rows(pixels, values if planar else 1)
    if not words:
        return _locate(pixels, planar, values, False, apart=apart), *_bytes(
            pixels, values, pixels.channels if planar else 1
        )
    if not (planar and pixels.dtype == "uint8" and pixels.stored in (3, 4)):
        raise ValueError("words can be read from uint8 frames of 3 or 4 channels for planar results alone")
    locate = _locate(pixels, planar, values, True, apart=apart)
    return locate, _load_words(pixels, values), _mix_words(pixels, values)


def fixed_rows(pixels: Pixels, columns: int, planar: bool) -> Rows:
    """The same in fixed point, from uint8 frames of 3 or 4 channels that may be read in words. `planar`: whether the
    values of a thread's columns lie channel by channel, or column by column."""
    across, down = (1, columns) if planar else (pixels.channels, 1)
    interpolate = _mix_fixed(pixels, columns, across, pixels.into(down))
    return _locate(pixels, True, columns, True, fixed=True), _load_words(pixels, columns), interpolate


def _neighbours(flipped: bool) -> Callable:
    """A device function: the left neighbour of a column of the result in the box, and the weight of the right one.
    `limit` is the last left neighbour: one pixel before the box's last, so that the next pixel always exists and a
    position on the last has the weight 1 instead. `end` is the image's last column, which is the first of those that
    are `mirrored`."""

    @device
    def neighbours(column, limit, last, origin, scale, mirrored, end):
        if flipped and mirrored:
            column = np.int32(end - column)
        position = (np.float32(column) + np.float32(0.5)) * scale + origin
        position = min(max(position, np.float32(0.0)), np.float32(last))
        low = min(np.int32(position), limit)
        return low, position - np.float32(low)

    return neighbours


def _locate(
    pixels: Pixels, planar: bool, values: int, words: bool, fixed: bool = False, apart: int = 1
) -> Callable:  # fmt: skip
    """Where the left neighbours of a thread's values lie in a row, in elements, and the weights of the right ones. In
    fixed point those of both neighbours in one word, and `shift` says which bytes of the words are the first channels'
    (lower half) and the last channel's (upper half)."""
    channels, turned, stored = pixels.channels, pixels.turned, 1 if pixels.is_video else pixels.stored
    unaligned, neighbours = words and stored == 3, _neighbours(pixels.flipped)

    @device
    def locate(first, left, limit, last, origin, scale, offset, third, shift, weight, mirrored, end):
        for v in range(values):
            value = np.int32(first + np.int32(v * apart))
            column, channel = value, np.int32(0)
            if not planar:
                column = np.int32(np.uint32(value) // np.uint32(channels))
                channel = np.int32(value - np.int32(column * np.int32(channels)))
                if turned:
                    channel = np.int32(np.int32(2) - channel)
            low, share = neighbours(column, limit, last, origin, scale, mirrored, end)
            if fixed:
                right = np.uint32(share * np.float32(ONE) + np.float32(0.5))
                weight[v] = (np.uint32(ONE) - right) | (right << np.uint32(16))
            else:
                weight[v] = share
            at = np.int32(np.int32(left + low) * np.int32(stored) + channel)
            if unaligned:
                start = np.uint32(at & np.int32(3))
                # Only from the last byte of a word do six bytes reach into a third one; it may not exist otherwise.
                third[v] = np.int32(8) if start == np.uint32(3) else np.int32(4)
                if fixed:
                    blue = np.uint32(0x41) if start == np.uint32(3) else np.uint32(0x52) + start * np.uint32(0x11)
                    shift[v] = (np.uint32(0x4130) + start * np.uint32(0x1111)) | (blue << np.uint32(16))
                else:
                    shift[v] = start * np.uint32(8)
                at = np.int32(at - np.int32(start))
            offset[v] = at

    return locate


@device
def _mix(a, b, weight, gain, bias):
    """Interpolate between two numbers, both 8388608 too large, and normalise; their difference is exact."""
    return ((a - _MAGIC) + weight * (b - a)) * gain + bias


def _bytes(pixels: Pixels, values: int, planes: int) -> tuple[Callable, Callable]:
    load_pixel, stored = ptx.PIXEL_LOADS[pixels.dtype], pixels.stored
    turned, as_float = planes > 1 and pixels.turned, ptx.as_float

    @device
    def load(frame, source, offset, third, low, high, extra):
        for v in range(values):
            at = source + np.int64(offset[v])
            for c in range(planes):
                place = planes - 1 - c if turned else c
                low[c * values + v] = load_pixel(frame, at + np.int64(place))
                high[c * values + v] = load_pixel(frame, at + np.int64(stored + place))

    @device
    def interpolate(frame, low, high, extra, third, shift, weight, gain, bias, into):
        for v in range(values):
            for c in range(planes):
                j = c * values + v
                into[j] = _mix(as_float(low[j]), as_float(high[j]), weight[v], gain[j], bias[j])

    return load, interpolate


def _load_words(pixels: Pixels, values: int) -> Callable:
    index, three = pixels.index, pixels.stored == 3

    @device
    def load(frame, source, offset, third, low, high, extra):
        for v in range(values):
            at = np.int64(index(source + index(offset[v])))
            low[v] = load_word(frame, at)
            high[v] = load_word(frame, at + np.int64(4))
            if three:
                extra[v] = load_word(frame, at + np.int64(third[v]))

    return load


def _mix_words(pixels: Pixels, values: int) -> Callable:
    three, (to0, to1, to2, to3) = pixels.stored == 3, pixels.into(values)

    @device
    def interpolate(frame, low, high, extra, third, shift, weight, gain, bias, into):
        for v in range(values):
            j0, j1, j2 = to0 + v, to1 + v, to2 + v
            if three:
                first = ptx.funnel(low[v], high[v], shift[v])  # r0 g0 b0 r1
                second = ptx.funnel(high[v], extra[v], shift[v])  # g1 b1 . .
                into[j0] = _mix(byte0(first), byte3(first), weight[v], gain[j0], bias[j0])
                into[j1] = _mix(byte1(first), byte0(second), weight[v], gain[j1], bias[j1])
                into[j2] = _mix(byte2(first), byte1(second), weight[v], gain[j2], bias[j2])
            else:
                a, b, w = low[v], high[v], weight[v]
                into[j0] = _mix(byte0(a), byte0(b), w, gain[j0], bias[j0])
                into[j1] = _mix(byte1(a), byte1(b), w, gain[j1], bias[j1])
                into[j2] = _mix(byte2(a), byte2(b), w, gain[j2], bias[j2])
                if to3 >= 0:
                    j3 = to3 + v
                    into[j3] = _mix(byte3(a), byte3(b), w, gain[j3], bias[j3])

    return interpolate


def _mix_fixed(pixels: Pixels, columns: int, across: int, to: tuple[int, ...]) -> Callable:
    three, (to0, to1, to2, to3) = pixels.stored == 3, to

    @device
    def interpolate(frame, low, high, extra, third, shift, weight, gain, bias, into):
        for v in range(columns):
            if three:
                first = permute(low[v], high[v], shift[v])  # r r' g g'
                # Of the two words that hold blue and its neighbour.
                # Both are loaded before one is chosen: a choice of places would keep them in memory.
                left, right = low[v], high[v]
                word = right if third[v] == np.int32(8) else left
                second = permute(word, extra[v], shift[v] >> np.uint32(16))  # b b' . .
            else:
                first = permute(low[v], high[v], np.uint32(0x5140))
                second = permute(low[v], high[v], np.uint32(0x7362))
            into[v * across + to0] = ptx.mix_low(weight[v], first)
            into[v * across + to1] = ptx.mix_high(weight[v], first)
            into[v * across + to2] = ptx.mix_low(weight[v], second)
            if to3 >= 0:
                into[v * across + to3] = ptx.mix_high(weight[v], second)

    return interpolate


class _Samples(NamedTuple):
    """How those of video lie: what loads luma, a pair of chroma as one word, and which of its bytes are each's."""

    luma: Callable
    pair: Callable
    low: int
    high: int


VIDEO = {
    "nv12": _Samples(ptx.PIXEL_LOADS["uint8"], ptx.load_half, 0x7440, 0x7441),
    "p010": _Samples(ptx.PIXEL_LOADS["uint16"], load_word, 0x7410, 0x7432),
}


def converter(dtype: str) -> Callable:
    """A device function: red, green and blue, 0 to 1, of a sample of luma and a pair of chroma, as video stores them.
    It is given the eight coefficients of `crop.frame.Coding`, each divided by 255."""
    low, high, magic = np.uint32(VIDEO[dtype].low), np.uint32(VIDEO[dtype].high), np.uint32(ptx.MAGIC)

    @device
    def convert(luma, pair, coefficients):
        yg, rv, r0, gu, gv, g0, bu, b0 = coefficients
        y = ptx.as_float(luma) - _MAGIC
        u = bits_as_float(permute(pair, magic, low)) - _MAGIC
        v = bits_as_float(permute(pair, magic, high)) - _MAGIC
        return (
            ptx.saturated(y, yg, rv * v + r0),
            ptx.saturated(y, yg, gu * u + (gv * v + g0)),
            ptx.saturated(y, yg, bu * u + b0),
        )

    return convert


def _video_rows(pixels: Pixels, columns: int) -> Rows:
    """The device functions for video: all channels of a thread's columns, planes one after the other. The frame is a
    tuple of the pointers to luma and chroma, the ways from row to row of both in elements, and the coefficients of
    `converter`; `source` is a row's number. A pixel takes the chroma of its group of two by two, is converted and
    clamped, and then interpolated, as if the whole frame had been converted before, without rounding. Gains are those
    of values from 0 to 1."""
    load_luma, load_pair, _, _ = VIDEO[pixels.dtype]
    convert = converter(pixels.dtype)

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

    return _locate(pixels, True, columns, False), load, interpolate
