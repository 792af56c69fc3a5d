"""Fused crop, resize, normalise and convert on the CPU, over bands of rows as on the GPU.

A band is a run of one item's output rows; `prange` hands bands to threads. Within a band two source rows,
interpolated horizontally and already normalised, are kept and reused for every output row between them, so that the
inner loop is one vectorised multiply-add per value, straight into the result's memory.
"""

from __future__ import annotations

import numba
import numpy as np
from numba.extending import overload

from octopus.kernels import geometry
from octopus.kernels.cpu import compiled

ROWS = 56  # output rows per band where items alone can't fill the threads: one 224-row crop then feeds four
ITEMS_PER_THREAD = (
    4  # with this many items per thread or more, a band is a whole item and no row is read twice
)

box_axis = compiled(inline="always")(geometry.box_axis)
_sample = compiled(inline="always")(geometry.sample)
_saturate_uint8 = compiled(inline="always")(geometry.saturate_uint8)


@compiled(inline="always")
def _half_bits(value):
    """Bits of the float16 nearest to a float32, ties to even; Numba has no float16 arithmetic on CPUs.

    For normal numbers the exponent is rebiased and the 13 lost bits rounded by one integer addition; for results
    below 2**-14 adding 0.5 lets the floating-point unit do the shift and the rounding.
    """
    bits = np.float32(value).view(np.uint32)
    sign = np.uint32(bits & np.uint32(0x80000000))
    bits = np.uint32(bits ^ sign)
    if bits >= np.uint32(0x47800000):  # 65536 and more, infinity, NaN
        half = np.uint32(0x7E00) if bits > np.uint32(0x7F800000) else np.uint32(0x7C00)
    elif bits < np.uint32(0x38800000):  # below 2**-14
        shifted = np.float32(bits.view(np.float32) + np.float32(0.5))
        half = np.uint32(shifted.view(np.uint32) - np.uint32(0x3F000000))
    else:
        odd = np.uint32((bits >> np.uint32(13)) & np.uint32(1))
        half = np.uint32((bits - np.uint32(0x38000000) + np.uint32(0xFFF) + odd) >> np.uint32(13))
    return np.uint16(half | (sign >> np.uint32(16)))


def store_row(out, above, below, weight):
    """Write one output row between two interpolated source rows; compiled per dtype of `out`."""
    raise TypeError("only compiled code calls this")


@overload(store_row, inline="always")
def _store_row_for(out, above, below, weight):
    def store_float32(out, above, below, weight):
        for i in range(out.size):
            out[i] = above[i] + weight * (below[i] - above[i])

    def store_uint8(out, above, below, weight):
        for i in range(out.size):
            out[i] = np.uint8(_saturate_uint8(above[i] + weight * (below[i] - above[i])))

    def store_half(out, above, below, weight):
        for i in range(out.size):
            out[i] = _half_bits(above[i] + weight * (below[i] - above[i]))

    return {"float32": store_float32, "uint8": store_uint8, "uint16": store_half}[str(out.dtype)]


@compiled()
def _interpolate_row(source, left, count, x_low, weight, gain, bias, planes, values, steps, into):
    """One source row at the output's columns, normalised.

    The box's `count` pixels of `source` (W, C) are normalised first, once each, into `values` (float32, at least
    `count`), with the `steps` to their right neighbours (0 after the last), so that the loop over the columns, of
    which an enlarged box has many more, is two gathers and a multiply-add.
    `into` is flat and holds either `planes = C` runs of one value per column, or for `planes = 1` all channels of a
    column side by side.
    """
    channels = source.shape[1]
    columns = x_low.size
    column_step = 1 if planes == channels else channels
    channel_step = columns if planes == channels else 1
    for c in range(channels):
        for i in range(count):
            values[i] = np.float32(source[left + i, c]) * gain[c] + bias[c]
        for i in range(count - 1):
            steps[i] = values[i + 1] - values[i]
        steps[count - 1] = np.float32(0.0)
        if column_step == 1:
            line = into[c * channel_step : c * channel_step + columns]
            for x in range(columns):
                line[x] = values[x_low[x]] + weight[x] * steps[x_low[x]]
        else:
            for x in range(columns):
                into[x * column_step + c] = values[x_low[x]] + weight[x] * steps[x_low[x]]


@compiled()
def crop_band(frame, horizontal, vertical, place, row, stop, out, gain, bias):
    """Rows `row` to `stop` of one item's image.

    `horizontal` and `vertical` are the box's axes, from `geometry.box_axis`; `out` is (planes, rows, values per row),
    in which the image lies at `place = left, top, columns, rows`.
    """
    left, last_x, origin_x, extent_x = horizontal
    top, last_y, origin_y, extent_y = vertical
    before, above_it, columns, rows = place
    planes = out.shape[0]
    step = gain.size // planes
    begin, length = before * step, columns * step
    count = last_x + 1
    x_low = np.empty(columns, np.uint32)
    weight_x = np.empty(columns, np.float32)
    for x in range(columns):
        x_low[x], _, weight_x[x] = _sample(x, extent_x / np.float32(columns), origin_x, last_x)
    values, steps = np.empty(count, np.float32), np.empty(count, np.float32)
    scale_y = extent_y / np.float32(rows)
    above = np.empty(planes * length, np.float32)
    below = np.empty_like(above)
    current = -2
    for y in range(row, stop):
        low, high, weight = _sample(y, scale_y, origin_y, last_y)
        if low != current:
            if low == current + 1:
                above, below = below, above
            else:
                _interpolate_row(
                    frame[top + low], left, count, x_low, weight_x, gain, bias, planes, values, steps, above
                )
            _interpolate_row(
                frame[top + high], left, count, x_low, weight_x, gain, bias, planes, values, steps, below
            )
            current = low
        for p in range(planes):
            at = p * length
            line = out[p, above_it + y][begin : begin + length]
            store_row(line, above[at : at + length], below[at : at + length], weight)


@compiled(parallel=True)
def crop_resize(frame, boxes, out, columns, band, gain, bias):
    """All boxes of a frame.

    Parameters
    ----------
    frame : ndarray, (H, W, C), uint8 or uint16
    boxes : ndarray, (N, 4), float32
        `x1, y1, x2, y2`, inside the frame and not empty.
    out : ndarray, (N, planes, rows, values)
        NCHW as it is; NHWC as (N, 1, rows, columns * C); float32, uint8, or uint16 for the bits of float16.
    columns : int
        Width of the result in pixels.
    band : int
        Rows per band, from `band_rows`.
    gain, bias : ndarray, (C,), float32
    """
    rows = out.shape[2]
    bands = (rows + band - 1) // band
    for block in numba.prange(boxes.shape[0] * bands):
        item = block // bands
        row = (block - item * bands) * band
        box = boxes[item]
        horizontal = box_axis(box[0], box[2], np.int32(frame.shape[1]))
        vertical = box_axis(box[1], box[3], np.int32(frame.shape[0]))
        place = (0, 0, columns, rows)
        crop_band(frame, horizontal, vertical, place, row, min(row + band, rows), out[item], gain, bias)


def band_rows(items: int, rows: int) -> int:
    """Rows per band for a batch: the whole item where there are plenty of them, else a part of it."""
    # Not within compiled code: asking for the thread count there would keep Numba from caching it on disk.
    plenty = items >= ITEMS_PER_THREAD * numba.get_num_threads()
    return rows if plenty else min(ROWS, rows)
