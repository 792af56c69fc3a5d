"""Crops by single samples on the GPU: nearest, bicubic, and affine maps; no row is reused.

One thread per output column and band, as in `crop`, which also says what the arguments are; `boxes` may hold an affine
map's six numbers per item. Of a box a thread finds its column's pixels and weights once, and a row's for each row; of a
map both for each sample. Neighbouring threads read neighbouring pixels, which the L1 cache holds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from octopus.backends.cuda.language import cuda, device
from octopus.kernels import sampling
from octopus.kernels.cuda.place import MODES, image_index, mirror_transform, placer, transform_store, usable
from octopus.kernels.cuda.plain import STORES, Items, entry, steps_of, value_reader

_compiled = device
_centre = _compiled(sampling.centre)
_map_is_usable = _compiled(sampling.map_is_usable)
_FAR, _NUMBERS = sampling.FAR, sampling.MAP_NUMBERS


def build(
    channels: int,
    out_dtype: str,
    layout: str,
    *,
    filter: str,
    maps: bool = False,
    edge: str = "box",
    letterbox: bool = False,
    indexed: bool = False,
    pad_mode: str = "",
    **items: Any,
) -> Callable:
    """The kernel for a number of channels, an output dtype, a layout, a filter, and options; see `crop.build`.

    With `maps` items are made by affine maps, whose samples beyond the frame follow `pad_mode`, or take its nearest
    pixel. One that can't be used fills its item as such a box does.
    """
    kind = Items.of(channels, **items)
    tile = _tile(kind, out_dtype, layout, filter, maps, edge, letterbox, indexed, pad_mode)
    return entry("sampled_kernel", tile, kind, out_dtype)


def _tile(
    kind: Items,
    out_dtype: str,
    layout: str,
    filter: str,
    maps: bool,
    edge: str,
    letterbox: bool,
    indexed: bool,
    pad_mode: str,
) -> Callable:
    """The work of one thread as a device function; `plain.entry` says what its arguments are."""
    store, taps, reach = STORES[out_dtype], sampling.TAPS[filter], sampling.REACH[filter]
    channels, flipped = kind.pixels.channels, kind.pixels.flipped
    locate, mix = sampling.sampler(_compiled, filter, value_reader(kind.pixels), padded=pad_mode == "constant")
    place = placer(edge if reach else "box", letterbox, False, pad_mode, reach)
    is_usable, store_transform = usable(pad_mode), transform_store(pad_mode)
    mode = np.int32(MODES[pad_mode or "edge"])
    steps = steps_of(channels, out_dtype, layout, letterbox, indexed)

    def tile(
        frame, pitch, width, height, boxes, out, out_width, out_height, tiles_x, tiles_y, gain, bias,
        frames, frame_step, frame_index, transform, pad, flip,
    ):  # fmt: skip
        item, row, stop, column, at, channel_step, row_step = steps.place(out_width, out_height, tiles_x, tiles_y)
        if column >= out_width:
            return
        first = row == 0 and column == 0

        numbers = (_NUMBERS if maps else 4) * item
        n0, n1 = np.float32(boxes[numbers]), np.float32(boxes[numbers + 1])
        n2, n3 = np.float32(boxes[numbers + 2]), np.float32(boxes[numbers + 3])
        if maps:
            n4, n5 = np.float32(boxes[numbers + 4]), np.float32(boxes[numbers + 5])
            good = _map_is_usable(n0, n1, n2, out_width, out_height)
            good = good and _map_is_usable(n3, n4, n5, out_width, out_height)
        else:
            good = is_usable(n0, n1, n2, n3, width, height)
        good, start = steps.frame(good, item, frames, frame_step, frame_index)
        if not good:
            steps.leave(out, at, channel_step, row_step, row, stop, transform, item, first)
            return

        columns_at, across = cuda.local.array(taps, np.int32), cuda.local.array(taps, np.float32)
        rows_at, down = cuda.local.array(taps, np.int32), cuda.local.array(taps, np.float32)
        values = cuda.local.array(channels, np.float32)
        x = image_index(column, out_width, flip & 1)
        if not maps:
            (left, last_x, origin_x, extent_x, top, last_y, origin_y, extent_y, before, above, columns, rows) = place(
                n0, n1, n2, n3, width, height, out_width, out_height
            )
            if letterbox and first:
                store_transform(transform, item, n0, n1, extent_x, extent_y, before, above, columns, rows)
                if flipped:
                    mirror_transform(transform, item, flip, out_width, out_height)
            x = np.int32(x - before)
            position = _centre(x, extent_x, columns, origin_x)
            locate(position, left, np.int32(0), last_x, width, mode, columns_at, across)
        while row < stop:
            inside, y = True, image_index(row, out_height, flip & 2)
            if maps:
                position = n0 * np.float32(x) + n1 * np.float32(y) + n2
                locate(position, np.int32(0), -_FAR, _FAR, width, mode, columns_at, across)
                position = n3 * np.float32(x) + n4 * np.float32(y) + n5
                locate(position, np.int32(0), -_FAR, _FAR, height, mode, rows_at, down)
            else:
                y = np.int32(y - above)
                if letterbox:
                    inside = x >= 0 and x < columns and y >= 0 and y < rows
                position = _centre(y, extent_y, rows, origin_y)
                locate(position, top, np.int32(0), last_y, height, mode, rows_at, down)
            for c in range(
                channels
            ):  # all before the first is stored: the compiler can't know that `out` isn't `frame`
                values[c] = pad[c]
                if inside:
                    values[c] = mix(frame, start, pitch, c, rows_at, columns_at, down, across, gain[c], bias[c], pad[c])
            for c in range(channels):
                store(out, at + c * channel_step, values[c])
            at += row_step
            row += np.int32(1)

    return _compiled(tile)
