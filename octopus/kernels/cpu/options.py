"""Crop and resize on the CPU with options: several frames, reading beyond the box, keeping the aspect ratio.

The inner loops are those of `kernels.cpu.crop`; what an option costs is paid once per band. The plain call doesn't
come here.
"""

from __future__ import annotations

import numba
import numpy as np

from octopus.kernels import geometry
from octopus.kernels.cpu import compiled
from octopus.kernels.cpu.crop import box_axis, crop_band

_widen = compiled(inline="always")(geometry.widen)
_inner_size = compiled(inline="always")(geometry.inner_size)
_padding_before = compiled(inline="always")(geometry.padding_before)
_way_back = compiled(inline="always")(geometry.way_back)
filter_support = compiled(inline="always")(geometry.filter_support)
_filter_reach = compiled(inline="always")(geometry.filter_reach)


@compiled()
def prepare(frame, box, out, pad, antialias, beyond, letterbox):
    """The two axes of a box and its place in `out` (planes, rows, values per row), as `crop.crop_band` takes them."""
    width, height = np.int32(frame.shape[1]), np.int32(frame.shape[0])
    columns = np.int32(out.shape[2] * out.shape[0] // pad.size)
    rows = np.int32(out.shape[1])
    left, last_x, origin_x, extent_x = box_axis(box[0], box[2], width)
    top, last_y, origin_y, extent_y = box_axis(box[1], box[3], height)
    inner_width, inner_height = columns, rows
    if letterbox:
        inner_width, inner_height = _inner_size(extent_x, extent_y, columns, rows)
    if beyond:
        reach_x = reach_y = np.int32(1)
        if antialias:
            reach_x = _filter_reach(filter_support(extent_x / np.float32(inner_width)))
            reach_y = _filter_reach(filter_support(extent_y / np.float32(inner_height)))
        left, last_x, origin_x = _widen(left, last_x, origin_x, width, reach_x)
        top, last_y, origin_y = _widen(top, last_y, origin_y, height, reach_y)
    before, above = _padding_before(columns, inner_width), _padding_before(rows, inner_height)
    horizontal, vertical = (left, last_x, origin_x, extent_x), (top, last_y, origin_y, extent_y)
    return horizontal, vertical, (before, above, inner_width, inner_height)


@compiled()
def _fill(line, start, stop, pad, plane, step):
    if step == 1:
        line[start:stop] = pad[plane]
        return
    for c in range(step):
        for i in range(start + c, stop, step):
            line[i] = pad[c]


@compiled()
def fill_padding(out, place, row, stop, pad):
    """Write `pad` (C,), in the storage type of `out`, around the image, within rows `row` to `stop`."""
    before, above, columns, rows = place
    planes, _, length = out.shape
    step = pad.size // planes
    for p in range(planes):
        for y in range(row, stop):
            if above <= y < above + rows:
                _fill(out[p, y], 0, before * step, pad, p, step)
                _fill(out[p, y], (before + columns) * step, length, pad, p, step)
            else:
                _fill(out[p, y], 0, length, pad, p, step)


@compiled()
def store_transform(box, horizontal, vertical, place, into):
    """Write `scale_x, scale_y, shift_x, shift_y` from the item back to the frame."""
    into[0], into[2] = _way_back(box[0], horizontal[3], place[2], place[0])
    into[1], into[3] = _way_back(box[1], vertical[3], place[3], place[1])


@compiled(parallel=True)
def crop_resize(frames, index, boxes, out, transform, band, gain, bias, pad, beyond, letterbox):
    """All boxes of several frames.

    Parameters
    ----------
    frames : ndarray, (F, H, W, C), uint8 or uint16
    index : ndarray, (N,), int32
        Frame of each box, in [0, F).
    boxes, out, band, gain, bias
        As in `crop.crop_resize`.
    transform : ndarray, (N, 4), float32
        Written with `letterbox`, else of any length.
    pad : ndarray, (C,)
        What fills the rest of an item, in the dtype of `out`.
    beyond, letterbox : bool
        `edge="image"`, and whether to keep the aspect ratio.
    """
    rows = out.shape[2]
    bands = (rows + band - 1) // band
    for block in numba.prange(boxes.shape[0] * bands):
        item = block // bands
        row = (block - item * bands) * band
        stop = min(row + band, rows)
        frame, box = frames[index[item]], boxes[item]
        horizontal, vertical, place = prepare(frame, box, out[item], pad, False, beyond, letterbox)
        if letterbox:
            fill_padding(out[item], place, row, stop, pad)
            if row == 0:
                store_transform(box, horizontal, vertical, place, transform[item])
        first, end = max(row - place[1], 0), min(stop - place[1], place[3])
        if first < end:
            crop_band(frame, horizontal, vertical, place, first, end, out[item], gain, bias)
