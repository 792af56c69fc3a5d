"""Where a box lies in its frame and its image in the item, and what surrounds that; for both crop kernels."""

from __future__ import annotations

import numpy as np

from octopus.kernels import geometry
from octopus.kernels.cpu import compiled, shifted

_box_axis = compiled(geometry.box_axis)
_span = compiled(geometry.span)
_widen = compiled(geometry.widen)
_reach_out = compiled(geometry.reach_out)
_inner_size = compiled(geometry.inner_size)
_padding_before = compiled(geometry.padding_before)
_way_back = compiled(geometry.way_back)
_way_back_uncut = compiled(geometry.way_back_uncut)
_beyond_pixel = compiled(geometry.beyond_pixel)
filter_support = compiled(geometry.filter_support)
_filter_reach = compiled(geometry.filter_reach)


@compiled
def box_axes(box, frame):
    """The two axes of a box that is cut at the frame and fills its item."""
    horizontal = _box_axis(box[0], box[2], np.int32(frame[2]))
    return horizontal, _box_axis(box[1], box[3], np.int32(frame[3]))


@compiled
def place_box(box, frame, layout, antialias, reach, letterbox, outside):
    """The two axes of a box and its place in the item; arguments as in `bands.kernel_of`.

    An axis is `first, last, origin, extent` from `geometry.box_axis` or `geometry.span`, the place columns before the
    image, rows above it, its width and its height.
    """
    cut = outside < 0
    width, height = np.int32(frame[2]), np.int32(frame[3])
    columns, rows = np.int32(layout[0]), np.int32(layout[1])
    left, last_x, origin_x, extent_x = _box_axis(box[0], box[2], width) if cut else _span(box[0], box[2])
    top, last_y, origin_y, extent_y = _box_axis(box[1], box[3], height) if cut else _span(box[1], box[3])
    inner_width, inner_height = columns, rows
    if letterbox:
        inner_width, inner_height = _inner_size(extent_x, extent_y, columns, rows)
    if reach > 0:
        reach_x = reach_y = np.int32(reach)
        if antialias:
            reach_x = _filter_reach(filter_support(extent_x / np.float32(inner_width)))
            reach_y = _filter_reach(filter_support(extent_y / np.float32(inner_height)))
        if cut:
            left, last_x, origin_x = _widen(left, last_x, origin_x, width, reach_x)
            top, last_y, origin_y = _widen(top, last_y, origin_y, height, reach_y)
        else:
            left, last_x, origin_x = _reach_out(left, last_x, origin_x, reach_x)
            top, last_y, origin_y = _reach_out(top, last_y, origin_y, reach_y)
    before, above = _padding_before(columns, inner_width), _padding_before(rows, inner_height)
    horizontal, vertical = (left, last_x, origin_x, extent_x), (top, last_y, origin_y, extent_y)
    return horizontal, vertical, (before, above, inner_width, inner_height)


@compiled
def store_transform(box, horizontal, vertical, place, outside, into):
    """Write `scale_x, scale_y, shift_x, shift_y` from the item back to the frame."""
    if outside < 0:
        into[0], into[2] = _way_back(box[0], horizontal[3], place[2], place[0])
        into[1], into[3] = _way_back(box[1], vertical[3], place[3], place[1])
    else:
        into[0], into[2] = _way_back_uncut(box[0], horizontal[3], place[2], place[0])
        into[1], into[3] = _way_back_uncut(box[1], vertical[3], place[3], place[1])


@compiled
def _fill(line, start, stop, pad, plane, channels):
    """Columns of a row; `plane` is the channel, or -1 where all channels of a column lie side by side."""
    if plane >= 0:
        for i in range(start, stop):
            line[i] = pad[plane]
        return
    for i in range(start, stop):
        for c in range(channels):
            line[i * channels + c] = pad[c]


@compiled
def fill_padding(out, place, row, stop, pad, layout):
    """Write `pad` (C,), in the storage type of `out`, around the image, within rows `row` to `stop`."""
    before, above, inner_columns, inner_rows = place
    columns, rows, planes, channels = layout
    row_values = columns * channels // planes
    for p in range(planes):
        plane = p if planes == channels else -1
        for y in range(row, stop):
            line = shifted(out, (p * rows + y) * row_values)
            if above <= y < above + inner_rows:
                _fill(line, np.int64(0), np.int64(before), pad, plane, channels)
                _fill(line, np.int64(before + inner_columns), columns, pad, plane, channels)
            else:
                _fill(line, np.int64(0), columns, pad, plane, channels)


@compiled
def is_inside(axis, limit):
    """Whether the frame has all pixels of an axis."""
    return axis[0] >= 0 and axis[0] + axis[1] < limit


@compiled
def pixel_of(pixel, limit, outside):
    """The frame's pixel, or row, that stands for one along an axis; -1 where the constant does."""
    return np.int64(_beyond_pixel(np.int32(pixel), np.int32(limit), outside))
