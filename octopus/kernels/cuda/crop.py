"""The plain fused crop: one thread per output column, a loop over rows; the reference on the GPU.

It says in the fewest lines what `kernels.cuda.stream` does faster, and the study `arena` measures both. It also does
what that one can't: frames of a single column, of float32, or of other than 1, 3 or 4 channels, and boxes that are not
cut at the frame. An output row needs two source rows; a thread interpolates them
horizontally once, keeps both in registers, and goes on with one new row when the source row advances. The branch
depends on the row alone: no warp diverges.

A fixed output size makes the grid uniform: a block finds its box by one division, and needs no block metadata.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import cuda, types

from octopus.kernels import geometry
from octopus.kernels.cuda.place import placer, stand_in, transform_store, usable
from octopus.kernels.cuda.ptx_addresses import bfloat16_of
from octopus.kernels.cuda.tiles import ROWS

_sample = cuda.jit(device=True)(geometry.sample)
_lerp = cuda.jit(device=True)(geometry.lerp)
_saturate_uint8 = cuda.jit(device=True)(geometry.saturate_uint8)


@cuda.jit(device=True)
def _store_float32(out, index, value):
    cuda.stcs(out, index, value)


@cuda.jit(device=True)
def _store_float32_plain(out, index, value):
    out[index] = value


@cuda.jit(device=True)
def _store_float16(out, index, value):
    out[index] = np.float16(value)


@cuda.jit(device=True)
def _store_bfloat16(out, index, value):
    out[index] = np.uint16(bfloat16_of(np.float32(value)))


@cuda.jit(device=True)
def _store_uint8(out, index, value):
    out[index] = np.uint8(_saturate_uint8(value))


STORES = {
    # Numba's simulator has no cache hints.
    "float32": _store_float32 if getattr(cuda, "stcs", None) else _store_float32_plain,
    "float16": _store_float16,
    "bfloat16": _store_bfloat16,
    "uint8": _store_uint8,
}
SCALAR_CHANNELS = 4  # more have their gains, biases and padding in memory
NUMBA_TYPES = {
    "uint8": types.uint8,
    "uint16": types.uint16,
    "int32": types.int32,
    "int64": types.int64,
    "float16": types.float16,
    "bfloat16": types.uint16,  # its bits
    "float32": types.float32,
    "float64": types.float64,
}


def argument_types(
    frame_dtype: str,
    box_dtype: str,
    out_dtype: str,
    index_dtype: str | None = None,
    many_channels: bool = False,
) -> tuple:
    """Numba types of the kernel's arguments, in order; with an `index_dtype`, of the one with options. See `entry`."""
    pixel, box, value = (types.CPointer(NUMBA_TYPES[name]) for name in (frame_dtype, box_dtype, out_dtype))
    integers, pointer = (types.int32,), types.CPointer(types.float32)
    of_channels = (pointer,) if many_channels else (types.float32,) * 4
    plain = (pixel, *integers * 3, box, value, *integers * 4, *of_channels * 2)
    if index_dtype is None:
        return plain
    return (*plain, types.int32, types.int64, types.CPointer(NUMBA_TYPES[index_dtype]), pointer, *of_channels)


def build(
    channels: int,
    out_dtype: str,
    layout: str,
    *,
    edge: str = "box",
    letterbox: bool = False,
    indexed: bool = False,
    pad_mode: str = "",
) -> Callable:
    """The kernel for a number of channels, an output dtype, a layout, and options; `entry` says what it is given.

    An item that can't be made (its box is NaN, empty, outside the frame or, with a `pad_mode`, too large; its frame
    doesn't exist) is filled with NaN, or with 0 for uint8; its transform is NaN.
    """
    tile = _tile(channels, out_dtype, layout, edge, letterbox, indexed, pad_mode)
    return entry("crop_kernel", tile, channels, bool(letterbox or indexed or pad_mode))


def entry(name: str, tile: Callable, channels: int, options: bool) -> Callable:
    """A kernel around the device function that does the work of a thread.

    Its arguments are `frame, pitch, width, height, boxes, out, out_width, out_height, tiles_x, tiles_y`, then the gain
    of four channels and the bias of four: `pitch` is the frame's row length in elements, `boxes` holds
    `x1, y1, x2, y2` per item. With `options` follow `frames, frame_step, frame_index, transform`, and four channels of
    padding, normalised: `frame_step` is the way from one frame to the next in elements, `frame_index` holds the frame
    of each item, `transform` takes `scale_x, scale_y, shift_x, shift_y` per item. More than four channels always have
    these, and three pointers to gains, biases and padding in the place of numbers. Grid and block are
    one-dimensional::

        blockIdx.x = (item * tiles_y + band) * tiles_x + strip
        threadIdx.x = column within the strip

            strip 0     strip 1
          +-----------+-----+
          | band 0    |     |   each thread: one column of one band, ROWS rows from top to bottom,
          +-----------+-----+   all channels; the threads of a warp store 32 neighbours
          | band 1    |     |
          +-----------+-----+
    """

    def kernel(
        frame, pitch, width, height, boxes, out, out_width, out_height, tiles_x, tiles_y,
        gain0, gain1, gain2, gain3, bias0, bias1, bias2, bias3,
    ):  # fmt: skip
        gain, bias = (gain0, gain1, gain2, gain3), (bias0, bias1, bias2, bias3)
        # The last arguments are never read.
        tile(frame, pitch, width, height, boxes, out, out_width, out_height, tiles_x, tiles_y, gain, bias,
             np.int32(1), np.int64(0), boxes, out, bias)  # fmt: skip

    def kernel_with_options(
        frame, pitch, width, height, boxes, out, out_width, out_height, tiles_x, tiles_y,
        gain0, gain1, gain2, gain3, bias0, bias1, bias2, bias3,
        frames, frame_step, frame_index, transform, pad0, pad1, pad2, pad3,
    ):  # fmt: skip
        gain, bias = (gain0, gain1, gain2, gain3), (bias0, bias1, bias2, bias3)
        tile(frame, pitch, width, height, boxes, out, out_width, out_height, tiles_x, tiles_y, gain, bias,
             frames, frame_step, frame_index, transform, (pad0, pad1, pad2, pad3))  # fmt: skip

    def kernel_of_many_channels(
        frame, pitch, width, height, boxes, out, out_width, out_height, tiles_x, tiles_y, gain, bias,
        frames, frame_step, frame_index, transform, pad,
    ):  # fmt: skip
        tile(frame, pitch, width, height, boxes, out, out_width, out_height, tiles_x, tiles_y, gain, bias,
             frames, frame_step, frame_index, transform, pad)  # fmt: skip

    chosen = kernel_with_options if options else kernel
    if channels > SCALAR_CHANNELS:
        chosen = kernel_of_many_channels
    chosen.__name__ = chosen.__qualname__ = chosen.__name__.replace("kernel", name)
    return chosen


def _row_reader(channels: int, pad_mode: str) -> Callable:
    """A device function: one source row between two of its columns, normalised, of all channels.

    With a `pad_mode` row and columns may be -1, which is the padding.
    """
    padded = bool(pad_mode)

    def read(frame, start, pitch, row, low, high, weight, gain, bias, pad, into):
        source = start + np.int64(row) * pitch
        low_at, high_at = source + np.int64(low) * channels, source + np.int64(high) * channels
        for c in range(channels):
            if padded:
                a = b = pad[c]
                if row >= 0 and low >= 0:
                    a = np.float32(frame[low_at + c]) * gain[c] + bias[c]
                if row >= 0 and high >= 0:
                    b = np.float32(frame[high_at + c]) * gain[c] + bias[c]
                into[c] = _lerp(a, b, weight)
            else:
                a, b = np.float32(frame[low_at + c]), np.float32(frame[high_at + c])
                into[c] = _lerp(a, b, weight) * gain[c] + bias[c]

    return cuda.jit(device=True)(read)


def _tile(
    channels: int, out_dtype: str, layout: str, edge: str, letterbox: bool, indexed: bool, pad_mode: str
) -> Callable:
    """The work of one thread as a device function; `entry` says what its arguments are."""
    store = STORES[out_dtype]
    place, is_usable = placer(edge, letterbox, False, pad_mode), usable(pad_mode)
    read, pixel_of, store_transform = (
        _row_reader(channels, pad_mode),
        stand_in(pad_mode),
        transform_store(pad_mode),
    )
    planar = layout == "NCHW"
    empty = np.float32(0.0) if out_dtype == "uint8" else np.float32(np.nan)

    def tile(
        frame, pitch, width, height, boxes, out, out_width, out_height, tiles_x, tiles_y, gain, bias,
        frames, frame_step, frame_index, transform, pad,
    ):  # fmt: skip
        band_index = np.int32(cuda.blockIdx.x // tiles_x)
        strip = np.int32(cuda.blockIdx.x - band_index * tiles_x)
        item = np.int32(band_index // tiles_y)
        row = np.int32((band_index - item * tiles_y) * ROWS)
        column = np.int32(strip * cuda.blockDim.x + cuda.threadIdx.x)
        if column >= out_width:
            return
        stop = min(np.int32(row + ROWS), out_height)
        plane = np.int64(out_width) * out_height
        channel_step = plane if planar else np.int64(1)
        column_step = np.int64(1) if planar else np.int64(channels)
        row_step = out_width * column_step
        at = np.int64(item) * plane * channels + row * row_step + column * column_step
        first = row == 0 and column == 0

        x1 = np.float32(boxes[4 * item])
        y1 = np.float32(boxes[4 * item + 1])
        x2 = np.float32(boxes[4 * item + 2])
        y2 = np.float32(boxes[4 * item + 3])
        good = is_usable(x1, y1, x2, y2, width, height)
        start = np.int64(0)
        if indexed:
            number = np.int64(frame_index[item])
            good = good and number >= 0 and number < frames
            start = number * frame_step
        if not good:
            while row < stop:
                for c in range(channels):
                    store(out, at + c * channel_step, empty)
                at += row_step
                row += np.int32(1)
            if letterbox and first:
                for i in range(4):
                    transform[4 * item + i] = np.float32(np.nan)
            return

        left, last_x, origin_x, extent_x, top, last_y, origin_y, extent_y, before, above, columns, rows = (
            place(x1, y1, x2, y2, width, height, out_width, out_height)
        )
        if letterbox and first:
            store_transform(transform, item, x1, y1, extent_x, extent_y, before, above, columns, rows)
        scale_y = extent_y / np.float32(rows)
        x = np.int32(column - before)
        x_low, x_high, weight_x = _sample(x, extent_x / np.float32(columns), origin_x, last_x)
        x_low, x_high = pixel_of(np.int32(left + x_low), width), pixel_of(np.int32(left + x_high), width)

        upper = cuda.local.array(channels, np.float32)
        lower = cuda.local.array(channels, np.float32)
        current = np.int32(-2)
        while row < stop:
            y = np.int32(row - above)
            if letterbox and (x < 0 or x >= columns or y < 0 or y >= rows):
                for c in range(channels):
                    store(out, at + c * channel_step, pad[c])
            else:
                y_low, y_high, weight_y = _sample(y, scale_y, origin_y, last_y)
                if y_low != current:
                    if y_low == current + 1:
                        for c in range(channels):
                            upper[c] = lower[c]
                    else:
                        source = pixel_of(np.int32(top + y_low), height)
                        read(frame, start, pitch, source, x_low, x_high, weight_x, gain, bias, pad, upper)
                    source = pixel_of(np.int32(top + y_high), height)
                    read(frame, start, pitch, source, x_low, x_high, weight_x, gain, bias, pad, lower)
                    current = y_low
                for c in range(channels):
                    store(out, at + c * channel_step, _lerp(upper[c], lower[c], weight_y))
            at += row_step
            row += np.int32(1)

    return cuda.jit(device=True)(tile)
