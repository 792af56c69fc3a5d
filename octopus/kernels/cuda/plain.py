"""What the kernels of one thread per output column, `crop`, `antialias` and `sampled`, have in common: their arguments,
how they read and store, and which rows of which item a thread makes. They do what `stream` can't."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from octopus.backends.cuda.language import cuda, device
from octopus.kernels import geometry
from octopus.kernels.arguments import PLAIN, PLAIN_MANY
from octopus.kernels.cuda import ptx
from octopus.kernels.cuda.ptx import bfloat16_of
from octopus.kernels.cuda.rows import VIDEO, Pixels, converter
from octopus.kernels.cuda.tiles import ROWS

_saturate_uint8 = device(geometry.saturate_uint8)


@device
def _store_float16(out, index, value):
    out[index] = np.float16(value)


@device
def _store_bfloat16(out, index, value):
    out[index] = np.uint16(bfloat16_of(np.float32(value)))


@device
def _store_uint8(out, index, value):
    out[index] = np.uint8(_saturate_uint8(value))


STORES = {"float32": ptx.store_float, "float16": _store_float16, "bfloat16": _store_bfloat16, "uint8": _store_uint8}
SCALAR_CHANNELS = 4  # more have their gains, biases and padding in memory
ELEMENTS = {"uint8": "uint8", "uint16": "uint16", "float32": "float32", "nv12": "uint8", "p010": "uint16"}  # of frames


class Items(NamedTuple):
    """What the plain kernels read, and what each item may have of its own; see `stream.build`."""

    pixels: Pixels
    counted: bool = False
    own: bool = False
    box_dtype: str = "float32"
    index_dtype: str = "int32"

    @classmethod
    def of(
        cls, channels: int, *, frame_dtype: str = "uint8", order: str = "RGB", flipped: bool = False, **more: Any
    ) -> Items:
        """From the arguments with which kernels are built."""
        return cls(Pixels(channels, frame_dtype, order, flipped), **more)


def framer(pixels: Pixels) -> Callable:
    """A device function: a frame as `reader` and `rows.source_rows` take it, and the way from row to row."""

    @device
    def planes(frame, pitch, chroma, chroma_pitch, coefficients):
        """Rows of video are numbered."""
        return (frame, chroma, pitch, chroma_pitch, coefficients), np.int32(1)

    @device
    def itself(frame, pitch, chroma, chroma_pitch, coefficients):
        return frame, pitch

    return planes if pixels.is_video else itself


def reader(pixels: Pixels) -> Callable:
    """A device function: one pixel's values, as float32, of all the result's channels; `source` is its row's."""
    channels, stored, turned = pixels.channels, pixels.stored, pixels.turned
    if pixels.is_video:
        convert, load_pair = converter(pixels.dtype), VIDEO[pixels.dtype].pair

        @device
        def read_video(frame, source, column, into):
            luma, chroma, pitch, chroma_pitch, coefficients = frame
            pair = (source >> np.int64(1)) * np.int64(chroma_pitch) + np.int64(column & np.int32(-2))
            value = np.uint32(luma[source * np.int64(pitch) + np.int64(column)])
            into[0], into[1], into[2] = convert(value, load_pair(chroma, pair), coefficients)

        return read_video

    @device
    def read(frame, source, column, into):
        at = source + np.int64(column) * stored
        for c in range(channels):
            into[c] = np.float32(frame[at + (channels - 1 - c if turned else c)])

    return read


def value_reader(pixels: Pixels) -> Callable:
    """The same of one channel, for `sampling.sampler`."""
    pixel, stored, turned = reader(pixels), pixels.stored, pixels.turned

    @device
    def of_video(frame, start, pitch, row, column, channel):
        values = cuda.local.array(3, np.float32)
        pixel(frame, start + np.int64(row) * pitch, column, values)
        return values[channel]

    @device
    def value(frame, start, pitch, row, column, channel):
        at = start + np.int64(row) * pitch + np.int64(column) * stored
        return np.float32(frame[at + (2 - channel if turned else channel)])

    return of_video if pixels.is_video else value


def of_items(tile: Callable, kind: Items) -> Callable:
    """A device function: `tile` for items of which each may be flipped, and have a normalisation of its own."""
    channels, counted, flipped = kind.pixels.channels, kind.counted, kind.pixels.flipped

    @device
    def shared(item, gain, bias, pad, means, stds, gains, biases, pads):
        return gain, bias, pad

    @device
    def own(item, gain, bias, pad, means, stds, gains, biases, pads):
        for c in range(channels):
            at = np.int64(item) * channels + c
            gains[c] = gain[c] / stds[at]
            biases[c] = -means[at] / stds[at]
            pads[c] = pad[c] / stds[at] + biases[c]
        return gains, biases, pads

    normal_of = own if kind.own else shared

    @device
    def item_tile(
        frame, pitch, width, height, boxes, out, out_width, out_height, tiles_x, tiles_y, gain, bias,
        frames, frame_step, frame_index, transform, pad, count, flips, flip_step, means, stds,
    ):  # fmt: skip
        item = np.int32(np.int32(cuda.blockIdx.x // tiles_x) // tiles_y)
        if counted and item >= np.int32(count[0]):
            return
        # Memory of this function: what a called one has is gone when it returns.
        a, b, c = (
            cuda.local.array(channels, np.float32), cuda.local.array(channels, np.float32),
            cuda.local.array(channels, np.float32),
        )  # fmt: skip
        gains, biases, pads = normal_of(item, gain, bias, pad, means, stds, a, b, c)
        flip = np.int32(flips[np.int64(item) * np.int64(flip_step)]) if flipped else np.int32(0)
        tile(frame, pitch, width, height, boxes, out, out_width, out_height, tiles_x, tiles_y, gains, biases,
             frames, frame_step, frame_index, transform, pads, flip)  # fmt: skip

    return item_tile


def entry(name: str, tile: Callable, kind: Items, out_dtype: str) -> Callable:
    """A kernel around the device function that does the work of a thread.

    Its arguments are `arguments.PLAIN`, or `PLAIN_MANY`; grid and block are one-dimensional::

        blockIdx.x = (item * tiles_y + band) * tiles_x + strip
        threadIdx.x = column within the strip

            strip 0     strip 1
          +-----------+-----+
          | band 0    |     |   each thread: one column of one band, ROWS rows from top to bottom,
          +-----------+-----+   all channels; the threads of a warp store 32 neighbours
          | band 1    |     |
          +-----------+-----+
    """

    frame_of, item_tile = framer(kind.pixels), of_items(tile, kind)

    def kernel(
        frame, pitch, width, height, boxes, out, out_width, out_height, tiles_x, tiles_y,
        gain0, gain1, gain2, gain3, bias0, bias1, bias2, bias3,
        frames, frame_step, frame_index, transform, pad0, pad1, pad2, pad3,
        count, flips, flip_step, means, stds, chroma, chroma_pitch, yg, rv, r0, gu, gv, g0, bu, b0,
    ):  # fmt: skip
        gain, bias = (gain0, gain1, gain2, gain3), (bias0, bias1, bias2, bias3)
        given, step = frame_of(frame, pitch, chroma, chroma_pitch, (yg, rv, r0, gu, gv, g0, bu, b0))
        item_tile(given, step, width, height, boxes, out, out_width, out_height, tiles_x, tiles_y, gain, bias,
                  frames, frame_step, frame_index, transform, (pad0, pad1, pad2, pad3),
                  count, flips, flip_step, means, stds)  # fmt: skip

    def kernel_of_many_channels(
        frame, pitch, width, height, boxes, out, out_width, out_height, tiles_x, tiles_y, gain, bias,
        frames, frame_step, frame_index, transform, pad,
        count, flips, flip_step, means, stds, chroma, chroma_pitch, yg, rv, r0, gu, gv, g0, bu, b0,
    ):  # fmt: skip
        item_tile(frame, pitch, width, height, boxes, out, out_width, out_height, tiles_x, tiles_y, gain, bias,
                  frames, frame_step, frame_index, transform, pad, count, flips, flip_step, means, stds)  # fmt: skip

    many = kind.pixels.channels > SCALAR_CHANNELS
    chosen = kernel_of_many_channels if many else kernel
    chosen.__name__ = chosen.__qualname__ = name
    pixels = kind.pixels.dtype
    table = PLAIN_MANY if many else PLAIN
    chosen.arguments = table.of(frame=pixels, box=kind.box_dtype, out=out_dtype, index=kind.index_dtype)
    return chosen


@device
def box_in_memory(boxes, item):
    """The four numbers of a box."""
    return (
        np.float32(boxes[4 * item]), np.float32(boxes[4 * item + 1]),
        np.float32(boxes[4 * item + 2]), np.float32(boxes[4 * item + 3]),
    )  # fmt: skip


class Steps(NamedTuple):
    """Device functions with which a thread's work begins; see `steps_of`."""

    place: Callable
    frame: Callable
    leave: Callable


def steps_of(channels: int, out_dtype: str, layout: str, letterbox: bool, indexed: bool) -> Steps:
    """What a thread makes, where its frame begins, and what it leaves where its item can't be made."""
    store, planar = STORES[out_dtype], layout == "NCHW"
    empty = np.float32(0.0) if out_dtype == "uint8" else np.float32(np.nan)

    @device
    def place(out_width, out_height, tiles_x, tiles_y):
        """Item, first row, row to stop before and column, where the first value goes, and the ways from there to the
        next channel and row."""
        band_index = np.int32(cuda.blockIdx.x // tiles_x)
        strip = np.int32(cuda.blockIdx.x - band_index * tiles_x)
        item = np.int32(band_index // tiles_y)
        row = np.int32((band_index - item * tiles_y) * ROWS)
        column = np.int32(strip * cuda.blockDim.x + cuda.threadIdx.x)
        plane = np.int64(out_width) * out_height
        channel_step = plane if planar else np.int64(1)
        column_step = np.int64(1) if planar else np.int64(channels)
        row_step = out_width * column_step
        at = np.int64(item) * plane * channels + row * row_step + column * column_step
        return item, row, min(np.int32(row + ROWS), out_height), column, at, channel_step, row_step

    @device
    def frame(good, item, frames, frame_step, frame_index):
        """Whether the item can still be made, and where its frame begins."""
        start = np.int64(0)
        if indexed:
            number = np.int64(frame_index[item])
            good = good and number >= 0 and number < frames
            start = number * frame_step
        return good, start

    @device
    def leave(out, at, channel_step, row_step, row, stop, transform, item, first):
        """Fill the thread's rows, and the first one the item's transform."""
        while row < stop:
            for c in range(channels):
                store(out, at + c * channel_step, empty)
            at += row_step
            row += np.int32(1)
        if letterbox and first:
            for i in range(4):
                transform[4 * item + i] = np.float32(np.nan)

    return Steps(place, frame, leave)
