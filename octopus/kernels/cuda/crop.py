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
from typing import Any

import numpy as np

from octopus.backends.cuda.language import cuda, device
from octopus.kernels import geometry
from octopus.kernels.cuda.place import image_index, mirror_transform, placer, stand_in, transform_store, usable
from octopus.kernels.cuda.plain import STORES, Items, box_in_memory, entry, reader, steps_of
from octopus.kernels.cuda.rows import Pixels

_sample = device(geometry.sample)
_lerp = device(geometry.lerp)


def build(
    channels: int,
    out_dtype: str,
    layout: str,
    *,
    edge: str = "box",
    letterbox: bool = False,
    indexed: bool = False,
    pad_mode: str = "",
    **items: Any,
) -> Callable:
    """The kernel for a number of channels, an output dtype, a layout, and options; `plain.entry` says what it is given.

    `items` are those of `plain.Items`.

    An item that can't be made (its box is NaN, empty, outside the frame or, with a `pad_mode`, too large; its frame
    doesn't exist) is filled with NaN, or with 0 for uint8; its transform is NaN.
    """
    kind = Items.of(channels, **items)
    tile = _tile(kind, out_dtype, layout, edge, letterbox, indexed, pad_mode)
    return entry("crop_kernel", tile, kind, out_dtype)


def _row_reader(pixels: Pixels, pad_mode: str) -> Callable:
    """A device function: one source row between two of its columns, normalised, of all channels.

    With a `pad_mode` row and columns may be -1, which is the padding.
    """
    padded, channels, pixel = bool(pad_mode), pixels.channels, reader(pixels)

    def read(frame, start, pitch, row, low, high, weight, gain, bias, pad, into):
        source = start + np.int64(row) * pitch
        left = cuda.local.array(channels, np.float32)
        right = cuda.local.array(channels, np.float32)
        if not padded or (row >= 0 and low >= 0):
            pixel(frame, source, low, left)
        if not padded or (row >= 0 and high >= 0):
            pixel(frame, source, high, right)
        for c in range(channels):
            if padded:
                a = b = pad[c]
                if row >= 0 and low >= 0:
                    a = left[c] * gain[c] + bias[c]
                if row >= 0 and high >= 0:
                    b = right[c] * gain[c] + bias[c]
                into[c] = _lerp(a, b, weight)
            else:
                into[c] = _lerp(left[c], right[c], weight) * gain[c] + bias[c]

    return device(read)


def _tile(
    kind: Items, out_dtype: str, layout: str, edge: str, letterbox: bool, indexed: bool, pad_mode: str
) -> Callable:
    """The work of one thread as a device function; `plain.entry` says what its arguments are."""
    store, channels, flipped = STORES[out_dtype], kind.pixels.channels, kind.pixels.flipped
    place, is_usable = placer(edge, letterbox, False, pad_mode), usable(pad_mode)
    read, pixel_of, store_transform = (
        _row_reader(kind.pixels, pad_mode),
        stand_in(pad_mode),
        transform_store(pad_mode),
    )
    steps = steps_of(channels, out_dtype, layout, letterbox, indexed)

    def tile(
        frame, pitch, width, height, boxes, out, out_width, out_height, tiles_x, tiles_y, gain, bias,
        frames, frame_step, frame_index, transform, pad, flip,
    ):  # fmt: skip
        item, row, stop, column, at, channel_step, row_step = steps.place(out_width, out_height, tiles_x, tiles_y)
        if column >= out_width:
            return
        first = row == 0 and column == 0

        x1, y1, x2, y2 = box_in_memory(boxes, item)
        good = is_usable(x1, y1, x2, y2, width, height)
        good, start = steps.frame(good, item, frames, frame_step, frame_index)
        if not good:
            steps.leave(out, at, channel_step, row_step, row, stop, transform, item, first)
            return

        left, last_x, origin_x, extent_x, top, last_y, origin_y, extent_y, before, above, columns, rows = place(
            x1, y1, x2, y2, width, height, out_width, out_height
        )
        if letterbox and first:
            store_transform(transform, item, x1, y1, extent_x, extent_y, before, above, columns, rows)
            if flipped:
                mirror_transform(transform, item, flip, out_width, out_height)
        scale_y = extent_y / np.float32(rows)
        x = np.int32(image_index(column, out_width, flip & 1) - before)
        x_low, x_high, weight_x = _sample(x, extent_x / np.float32(columns), origin_x, last_x)
        x_low, x_high = pixel_of(np.int32(left + x_low), width), pixel_of(np.int32(left + x_high), width)

        upper = cuda.local.array(channels, np.float32)
        lower = cuda.local.array(channels, np.float32)
        current = np.int32(-2)
        while row < stop:
            y = np.int32(image_index(row, out_height, flip & 2) - above)
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

    return device(tile)
