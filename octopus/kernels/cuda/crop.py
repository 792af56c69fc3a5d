"""Fused crop, resize, normalise and convert: one launch for all boxes of a frame.

Versions, from plain to fast. N = 1000 VisDrone boxes to 224 x 224 float32 NCHW write 602 MB and read a 6 MB frame that
stays in the L2 cache, so the time to write the output is the bound; "share" is bound / time on an H200 with a cold L2.
The study `stage_timing` measures the first and the last version; the steps between were timed once, while this was
written, with other numbers of rows and registers, so that each comparison stands for its own step alone.

1. Two passes, one block per crop (`kernels.cuda.published`): the uint8 crops are written and read again, and every
   pixel works out the addresses of its four neighbours. Share 0.10.
2. One pass, one thread per output column, a loop over `ROWS` rows (this file). An output row needs two source rows;
   a thread interpolates them horizontally once, keeps both in registers, and goes on with one new row when the
   source row advances. Enlarging a 56-row box to 224 rows takes 4 output rows per source row, so three of four
   iterations load nothing at all. The branch depends on the row alone: no warp diverges.
3. The tile index runs fastest in the grid, so that blocks that run together write memory that lies together: share
   0.74 against 0.66 with the box index fastest (28 rows per block).
4. Streaming stores (`st.global.cs`): the output is not read again, and the frame keeps its place in the L2: 0.74
   against 0.68.
5. 12 rows per block: 0.78, against 0.76 for 16 and 0.73 for 24.
6. Gain and bias of the normalisation go into the horizontal step, which runs less often than the stores.

Tried and left: the source rows of a band in shared memory (0.55).

A fixed output size makes the grid uniform: a block finds its box by one division, and needs no block metadata.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import cuda, types

from octopus.kernels import geometry
from octopus.kernels.cuda.tiles import ROWS

_box_axis = cuda.jit(device=True)(geometry.box_axis)
_box_is_usable = cuda.jit(device=True)(geometry.box_is_usable)
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
def _store_uint8(out, index, value):
    out[index] = np.uint8(_saturate_uint8(value))


STORES = {
    # Numba's simulator has no cache hints.
    "float32": _store_float32 if getattr(cuda, "stcs", None) else _store_float32_plain,
    "float16": _store_float16,
    "uint8": _store_uint8,
}
NUMBA_TYPES = {
    "uint8": types.uint8,
    "uint16": types.uint16,
    "int32": types.int32,
    "int64": types.int64,
    "float16": types.float16,
    "float32": types.float32,
    "float64": types.float64,
}


def argument_types(frame_dtype: str, box_dtype: str, out_dtype: str) -> tuple:
    """Numba types of the kernel's arguments, in order; see `build`."""
    pixel, box, value = (types.CPointer(NUMBA_TYPES[name]) for name in (frame_dtype, box_dtype, out_dtype))
    integers, floats = (types.int32,), (types.float32,)
    return (pixel, *integers * 3, box, value, *integers * 4, *floats * 8)


def build(channels: int, out_dtype: str, layout: str) -> Callable:
    """The kernel for a number of channels, an output dtype and a layout.

    Its arguments are `frame, pitch, width, height, boxes, out, out_width, out_height, tiles_x, tiles_y`, then the gain
    of four channels and the bias of four: `pitch` is the frame's row length in elements, `boxes` holds
    `x1, y1, x2, y2` per item. Grid and block are one-dimensional::

        blockIdx.x = (item * tiles_y + band) * tiles_x + strip
        threadIdx.x = column within the strip

            strip 0     strip 1
          +-----------+-----+
          | band 0    |     |   each thread: one column of one band, ROWS rows from top to bottom,
          +-----------+-----+   all channels; the threads of a warp store 32 neighbours
          | band 1    |     |
          +-----------+-----+

    A box that can't be used (NaN, empty, outside the frame) fills its item with NaN, or with 0 for uint8.
    """
    store = STORES[out_dtype]
    planar = layout == "NCHW"
    empty = np.float32(0.0) if out_dtype == "uint8" else np.float32(np.nan)

    def crop_kernel(
        frame, pitch, width, height, boxes, out, out_width, out_height, tiles_x, tiles_y,
        gain0, gain1, gain2, gain3, bias0, bias1, bias2, bias3,
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

        x1 = np.float32(boxes[4 * item])
        y1 = np.float32(boxes[4 * item + 1])
        x2 = np.float32(boxes[4 * item + 2])
        y2 = np.float32(boxes[4 * item + 3])
        if not _box_is_usable(x1, y1, x2, y2, width, height):
            while row < stop:
                for c in range(channels):
                    store(out, at + c * channel_step, empty)
                at += row_step
                row += np.int32(1)
            return

        left, last_x, origin_x, extent_x = _box_axis(x1, x2, width)
        top, last_y, origin_y, extent_y = _box_axis(y1, y2, height)
        scale_y = extent_y / np.float32(out_height)
        x_low, x_high, weight_x = _sample(column, extent_x / np.float32(out_width), origin_x, last_x)
        low_at = np.int64(left + x_low) * channels
        high_at = np.int64(left + x_high) * channels

        gain = (gain0, gain1, gain2, gain3)
        bias = (bias0, bias1, bias2, bias3)
        above = cuda.local.array(channels, np.float32)
        below = cuda.local.array(channels, np.float32)

        current = np.int32(-2)
        while row < stop:
            y_low, y_high, weight_y = _sample(row, scale_y, origin_y, last_y)
            if y_low != current:
                if y_low == current + 1:
                    for c in range(channels):
                        above[c] = below[c]
                else:
                    source = np.int64(top + y_low) * pitch
                    for c in range(channels):
                        a = np.float32(frame[source + low_at + c])
                        b = np.float32(frame[source + high_at + c])
                        above[c] = _lerp(a, b, weight_x) * gain[c] + bias[c]
                source = np.int64(top + y_high) * pitch
                for c in range(channels):
                    a = np.float32(frame[source + low_at + c])
                    b = np.float32(frame[source + high_at + c])
                    below[c] = _lerp(a, b, weight_x) * gain[c] + bias[c]
                current = y_low
            for c in range(channels):
                store(out, at + c * channel_step, _lerp(above[c], below[c], weight_y))
            at += row_step
            row += np.int32(1)

    return crop_kernel
