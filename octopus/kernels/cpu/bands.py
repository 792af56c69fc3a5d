"""What both crop kernels have in common: their arguments, and which band of which item a thread makes next."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from octopus.kernels.cpu import NO_MEMORY, compiled, next_block, pointer, shifted
from octopus.kernels.cpu.box import box_axes, fill_padding, place_box, store_transform
from octopus.kernels.cpu.store import STORED
from octopus.kernels.cpu.video import VIDEO


def kernel_of(
    band: Callable,
    frame_dtype: str,
    out_dtype: str,
    *,
    antialias: bool = False,
    options: bool = True,
    order: str = "RGB",
    plain_axes: Callable = box_axes,
    numbers: int = 4,
) -> Callable:
    """A kernel that makes bands of rows by a function, of a pointer to these integers; sizes and steps count elements::

        counter, blocks
        frame, from frame to frame, from row to row, width, height, channels
        index (N,) int32, boxes (N, numbers) float32, out, transform (N, 4) float32
        columns, rows, planes (C, or 1 for NHWC), rows of a band
        gain, bias, padding (C,) float32, padding in the dtype of out
        reach (pixels beyond a box with edge="image", else 0), letterbox (0 or 1)
        outside (-1: cut; else the mode of geometry.beyond_pixel)
        from the gain, bias and padding of an item to those of the next: 0 or C
        of video: chroma, from row to row, coefficients (8,) float32

    `band` makes rows of an item's image: `frame, horizontal, vertical, place, row, stop, out, layout, normal, outside`;
    see `box.place_box`. `frame` is a pointer to one frame, its pitch, width and height, the values that it stores of a
    pixel and whether blue is the first of them, then for video a pointer to the chroma, its pitch, and a pointer to the
    coefficients. `out` is a pointer to the item, `layout` its columns, rows, planes and channels, `normal` pointers to
    gain, bias and padding. It returns whether there was memory for it; without, the number of blocks becomes
    `NO_MEMORY`, which ends all threads.

    Without `options` the kernel is compiled in half the time, for calls without letterbox, `edge="image"` and padding;
    `plain_axes` then makes `horizontal, vertical` of a pointer to a box, of so many `numbers`, and the frame.
    """
    pixel, value = getattr(np, VIDEO.get(frame_dtype, frame_dtype)), STORED[out_dtype]
    plain, stored, back = order == "RGB", len(order), order[0] == "B"

    @compiled
    def frame_of(arguments, pixels):
        step = arguments[7] if plain else stored
        return pixels, arguments[4], arguments[5], arguments[6], step, back

    @compiled
    def video_of(arguments, pixels):
        chroma, coefficients = pointer(arguments[24], pixel), pointer(arguments[26], np.float32)
        pitch, width, height = arguments[4], arguments[5], arguments[6]
        return pixels, pitch, width, height, np.int64(1), back, chroma, arguments[25], coefficients

    one_of = video_of if frame_dtype in VIDEO else frame_of

    def kernel(arguments):
        frames, index = pointer(arguments[2], pixel), pointer(arguments[8], np.int32)
        boxes, out = pointer(arguments[9], np.float32), pointer(arguments[10], value)
        transform, stored_pad = pointer(arguments[11], np.float32), pointer(arguments[19], value)
        columns, rows, rows_per_band = arguments[12], arguments[13], arguments[15]
        layout = (columns, rows, arguments[14], arguments[7])
        gain, bias = pointer(arguments[16], np.float32), pointer(arguments[17], np.float32)
        pad, own = pointer(arguments[18], np.float32), arguments[23]
        reach, letterbox, outside = arguments[20], arguments[21] != 0, arguments[22]
        bands = (rows + rows_per_band - 1) // rows_per_band
        while True:
            block = next_block(arguments[0])
            if block >= arguments[1]:
                return
            item = block // bands
            row = (block - item * bands) * rows_per_band
            stop = min(row + rows_per_band, rows)
            box, into = shifted(boxes, numbers * item), shifted(out, item * rows * columns * arguments[7])
            normal = shifted(gain, item * own), shifted(bias, item * own), shifted(pad, item * own)
            frame = one_of(arguments, shifted(frames, index[item] * arguments[3]))
            if options:
                horizontal, vertical, place = place_box(box, frame, layout, antialias, reach, letterbox, outside)
                if letterbox:
                    fill_padding(into, place, row, stop, shifted(stored_pad, item * own), layout)
                    if row == 0:
                        store_transform(box, horizontal, vertical, place, outside, shifted(transform, 4 * item))
                first, stop = row - place[1], stop - place[1]
                first, stop = first if first > 0 else 0, stop if stop < place[3] else place[3]
                done = first >= stop or band(
                    frame, horizontal, vertical, place, first, stop, into, layout, normal, outside
                )
            else:
                horizontal, vertical = plain_axes(box, frame)
                place = (np.int32(0), np.int32(0), np.int32(columns), np.int32(rows))
                done = band(frame, horizontal, vertical, place, row, stop, into, layout, normal, outside)
            if not done:
                arguments[1] = NO_MEMORY
                return

    return kernel
