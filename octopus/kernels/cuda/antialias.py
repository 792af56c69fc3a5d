"""Crop and resize with the triangle filter (`antialias=True`), simply: the reference on the GPU.

It also does what `kernels.cuda.stream_filter`, which is faster, can't: see `kernels.cuda.crop`.

One thread per output column and band, as in `crop`. Every output pixel walks over the source pixels of its window, so
that reducing by `s` reads about `4 s * s` pixels per output pixel; neighbouring threads read neighbouring windows,
which the L1 cache holds. The horizontal weights are worked out anew for each source row: two operations per weight
cost less than memory for as many as the largest box needs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import cuda

from octopus.kernels import geometry
from octopus.kernels.cuda.crop import STORES, Items, entry, reader
from octopus.kernels.cuda.place import (
    image_index,
    mirror_transform,
    placer,
    stand_in,
    transform_store,
    usable,
)
from octopus.kernels.cuda.tiles import ROWS

_filter_support = cuda.jit(device=True)(geometry.filter_support)
_filter_window = cuda.jit(device=True)(geometry.filter_window)
_filter_weight = cuda.jit(device=True)(geometry.filter_weight)


@cuda.jit(device=True)
def _sum_of_weights(start, stop, centre, slope):
    total = np.float32(0.0)
    while start < stop:
        total += _filter_weight(start, centre, slope)
        start += np.int32(1)
    return total


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
    """The kernel for a number of channels, an output dtype, a layout, and options; see `crop.build`."""
    kind = Items.of(channels, **items)
    tile = _tile(kind, out_dtype, layout, edge, letterbox, indexed, pad_mode)
    return entry("antialias_kernel", tile, kind, bool(letterbox or indexed or pad_mode))


def _tile(
    kind: Items, out_dtype: str, layout: str, edge: str, letterbox: bool, indexed: bool, pad_mode: str
) -> Callable:
    """The work of one thread as a device function; `crop.entry` says what its arguments are."""
    store, padded, read = STORES[out_dtype], bool(pad_mode), reader(kind.pixels)
    channels, flipped = kind.pixels.channels, kind.pixels.flipped
    place, is_usable = placer(edge, letterbox, True, pad_mode), usable(pad_mode)
    pixel_of, store_transform = stand_in(pad_mode), transform_store(pad_mode)
    planar = layout == "NCHW"
    empty = np.float32(0.0) if out_dtype == "uint8" else np.float32(np.nan)

    def tile(
        frame, pitch, width, height, boxes, out, out_width, out_height, tiles_x, tiles_y, gain, bias,
        frames, frame_step, frame_index, transform, pad, flip,
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
        begin = np.int64(0)
        if indexed:
            number = np.int64(frame_index[item])
            good = good and number >= 0 and number < frames
            begin = number * frame_step
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
            if flipped:
                mirror_transform(transform, item, flip, out_width, out_height)
        x = np.int32(image_index(column, out_width, flip & 1) - before)
        scale_x, scale_y = extent_x / np.float32(columns), extent_y / np.float32(rows)
        support_x, support_y = _filter_support(scale_x), _filter_support(scale_y)
        slope_x, slope_y = np.float32(1.0) / support_x, np.float32(1.0) / support_y
        start_x, stop_x, centre_x = _filter_window(x, scale_x, origin_x, last_x, support_x)
        total_x = _sum_of_weights(start_x, stop_x, centre_x, slope_x)

        line = cuda.local.array(channels, np.float32)
        total = cuda.local.array(channels, np.float32)
        values = cuda.local.array(channels, np.float32)
        while row < stop:
            y = np.int32(image_index(row, out_height, flip & 2) - above)
            if letterbox and (x < 0 or x >= columns or y < 0 or y >= rows):
                for c in range(channels):
                    store(out, at + c * channel_step, pad[c])
            else:
                start_y, stop_y, centre_y = _filter_window(y, scale_y, origin_y, last_y, support_y)
                share = np.float32(1.0) / (total_x * _sum_of_weights(start_y, stop_y, centre_y, slope_y))
                for c in range(channels):
                    total[c] = np.float32(0.0)
                for source_y in range(start_y, stop_y):
                    source_row = pixel_of(np.int32(top + source_y), height)
                    source = begin + np.int64(source_row) * pitch
                    for c in range(channels):
                        line[c] = np.float32(0.0)
                    for source_x in range(start_x, stop_x):
                        weight = _filter_weight(source_x, centre_x, slope_x)
                        pixel = pixel_of(np.int32(left + source_x), width)
                        within = not padded or (source_row >= 0 and pixel >= 0)
                        if within:
                            read(frame, source, pixel, values)
                        for c in range(channels):
                            if padded:
                                value = values[c] * gain[c] + bias[c] if within else pad[c]
                                line[c] += weight * value
                            else:
                                line[c] += weight * values[c]
                    weight = _filter_weight(source_y, centre_y, slope_y)
                    for c in range(channels):
                        total[c] += weight * line[c]
                for c in range(channels):
                    value = total[c] * share
                    store(out, at + c * channel_step, value if padded else value * gain[c] + bias[c])
            at += row_step
            row += np.int32(1)

    return cuda.jit(device=True)(tile)
