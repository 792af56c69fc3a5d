"""What both crop kernels have in common: their arguments, and which band of which item a thread makes next."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from octopus.kernels.cpu import NO_MEMORY, next_block, pointer, shifted
from octopus.kernels.cpu.box import box_axes, fill_padding, place_box, store_transform
from octopus.kernels.cpu.store import STORED


def kernel_of(
    band: Callable,
    frame_dtype: str,
    out_dtype: str,
    *,
    antialias: bool = False,
    options: bool = True,
    plain_axes: Callable = box_axes,
    numbers: int = 4,
) -> Callable:
    """A kernel that makes bands of rows by a function.

    Parameters
    ----------
    band : callable
        Makes rows of one item's image: `frame, horizontal, vertical, place, row, stop, out, layout, normal, outside`;
        see `box.place_box`. `frame` is a pointer to one frame, its pitch, width and height, `out` a pointer to the
        item, `layout` its columns, rows, planes and channels, `normal` pointers to gain, bias and padding. Returns
        whether there was memory for it; without, the number of blocks becomes `NO_MEMORY`, which ends all threads.
    antialias : bool
    options : bool
        False makes a kernel that is compiled in half the time, for calls without letterbox, `edge="image"` and padding.
    plain_axes : callable
        Without `options`, what the band is given as `horizontal, vertical`, of a pointer to a box and the frame.
    numbers : int
        Of a box.

    Returns
    -------
    callable
        Of a pointer to these integers; sizes and steps count elements::

            counter, blocks
            frame, from frame to frame, from row to row, width, height, channels
            index (N,) int32, boxes (N, numbers) float32, out, transform (N, 4) float32
            columns, rows, planes (C, or 1 for NHWC), rows of a band
            gain, bias, padding (C,) float32, padding in the dtype of out
            reach (pixels beyond a box with edge="image", else 0), letterbox (0 or 1), outside (-1: cut; else the mode of geometry.beyond_pixel)
    """
    pixel, value = getattr(np, frame_dtype), STORED[out_dtype]

    def kernel(arguments):
        frames, index = pointer(arguments[2], pixel), pointer(arguments[8], np.int32)
        boxes, out = pointer(arguments[9], np.float32), pointer(arguments[10], value)
        transform, stored_pad = pointer(arguments[11], np.float32), pointer(arguments[19], value)
        columns, rows, rows_per_band = arguments[12], arguments[13], arguments[15]
        layout = (columns, rows, arguments[14], arguments[7])
        normal = (
            pointer(arguments[16], np.float32), pointer(arguments[17], np.float32),
            pointer(arguments[18], np.float32),
        )  # fmt: skip
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
            frame = (shifted(frames, index[item] * arguments[3]), arguments[4], arguments[5], arguments[6])
            if options:
                horizontal, vertical, place = place_box(
                    box, frame, layout, antialias, reach, letterbox, outside
                )
                if letterbox:
                    fill_padding(into, place, row, stop, stored_pad, layout)
                    if row == 0:
                        store_transform(
                            box, horizontal, vertical, place, outside, shifted(transform, 4 * item)
                        )
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
