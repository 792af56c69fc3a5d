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

from octopus.backends.cuda.language import cuda, device
from octopus.kernels import geometry
from octopus.kernels.cuda.place import image_index, mirror_transform, placer, stand_in, transform_store, usable
from octopus.kernels.cuda.plain import STORES, Items, box_in_memory, entry, reader, steps_of

_filter_support = device(geometry.filter_support)
_filter_window = device(geometry.filter_window)
_filter_weight = device(geometry.filter_weight)


@device
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
    return entry("antialias_kernel", tile, kind, out_dtype)


def _tile(
    kind: Items, out_dtype: str, layout: str, edge: str, letterbox: bool, indexed: bool, pad_mode: str
) -> Callable:
    """The work of one thread as a device function; `plain.entry` says what its arguments are."""
    store, padded, read = STORES[out_dtype], bool(pad_mode), reader(kind.pixels)
    channels, flipped = kind.pixels.channels, kind.pixels.flipped
    place, is_usable = placer(edge, letterbox, True, pad_mode), usable(pad_mode)
    pixel_of, store_transform = stand_in(pad_mode), transform_store(pad_mode)
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
        good, begin = steps.frame(good, item, frames, frame_step, frame_index)
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

    return device(tile)
