"""Where a box lies, in its frame and in its item, for boxes cut at the frame and for those that reach beyond it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from octopus.backends.cuda.language import device
from octopus.kernels import geometry

MODES = {"constant": geometry.CONSTANT, "edge": geometry.NEAREST, "reflect": geometry.REFLECT}

_box_axis = device(geometry.box_axis)
_box_is_usable = device(geometry.box_is_usable)
_widen = device(geometry.widen)
_span = device(geometry.span)
_span_is_usable = device(geometry.span_is_usable)
_reach_out = device(geometry.reach_out)
_beyond_pixel = device(geometry.beyond_pixel)
_inner_size = device(geometry.inner_size)
_padding_before = device(geometry.padding_before)
_way_back = device(geometry.way_back)
_way_back_uncut = device(geometry.way_back_uncut)
_filter_support = device(geometry.filter_support)
_filter_reach = device(geometry.filter_reach)


def placer(edge: str, letterbox: bool, antialias: bool, pad_mode: str = "", reach: int = 1) -> Callable:
    """A device function: the axes of a usable box and where its image lies in the item.

    Returns `left, last_x, origin_x, extent_x`, the same for y (see `geometry.box_axis`), then the columns before the
    image, the rows above it, its width and its height. With a `pad_mode` the box is not cut, and `left` and `top`
    may lie beyond the frame. With `edge="image"` samples take up to `reach` pixels beyond the box, or as many as the
    filter does.
    """
    beyond, padded = edge == "image", bool(pad_mode)

    def place(x1, y1, x2, y2, width, height, out_width, out_height):
        if padded:
            left, last_x, origin_x, extent_x = _span(x1, x2)
            top, last_y, origin_y, extent_y = _span(y1, y2)
        else:
            left, last_x, origin_x, extent_x = _box_axis(x1, x2, width)
            top, last_y, origin_y, extent_y = _box_axis(y1, y2, height)
        columns, rows = out_width, out_height
        if letterbox:
            columns, rows = _inner_size(extent_x, extent_y, out_width, out_height)
        if beyond:
            reach_x = reach_y = np.int32(reach)
            if antialias:
                reach_x = _filter_reach(_filter_support(extent_x / np.float32(columns)))
                reach_y = _filter_reach(_filter_support(extent_y / np.float32(rows)))
            if padded:
                left, last_x, origin_x = _reach_out(left, last_x, origin_x, reach_x)
                top, last_y, origin_y = _reach_out(top, last_y, origin_y, reach_y)
            else:
                left, last_x, origin_x = _widen(left, last_x, origin_x, width, reach_x)
                top, last_y, origin_y = _widen(top, last_y, origin_y, height, reach_y)
        before, above = _padding_before(out_width, columns), _padding_before(out_height, rows)
        return (
            left, last_x, origin_x, extent_x, top, last_y, origin_y, extent_y, before, above, columns, rows,
        )  # fmt: skip

    return device(place)


def usable(pad_mode: str) -> Callable:
    """A device function: whether an item can be made of `x1, y1, x2, y2` in a frame of `width, height`."""

    def span_is_usable(x1, y1, x2, y2, width, height):
        return _span_is_usable(x1, y1, x2, y2)

    return device(span_is_usable) if pad_mode else _box_is_usable


def transform_store(pad_mode: str) -> Callable:
    """A device function that writes `scale_x, scale_y, shift_x, shift_y` from an item back to the frame."""
    way_back = _way_back_uncut if pad_mode else _way_back

    def store_transform(transform, item, x1, y1, extent_x, extent_y, before, above, columns, rows):
        scale_x, shift_x = way_back(x1, extent_x, columns, before)
        scale_y, shift_y = way_back(y1, extent_y, rows, above)
        transform[4 * item] = scale_x
        transform[4 * item + 1] = scale_y
        transform[4 * item + 2] = shift_x
        transform[4 * item + 3] = shift_y

    return device(store_transform)


@device
def image_index(index, size, mirrored):
    """The row or column of an item before it is flipped, which is shown at `index` of `size`."""
    return np.int32(np.int32(size - np.int32(1)) - index) if mirrored else np.int32(index)


@device
def mirror_transform(transform, item, flip, width, height):
    """Make the way back of an item that of the same one flipped, by two bits: see `stream.build`."""
    for axis in range(2):
        size = width if axis == 0 else height
        if flip & np.int32(1 << axis):
            at = 4 * item + axis
            scale = transform[at]
            transform[at + 2] += np.float32(size) * scale
            transform[at] = -scale


def stand_in(pad_mode: str) -> Callable:
    """A device function: the pixel of the frame that stands for any `index` along an axis of `limit` pixels.

    -1 means the padding; without a `pad_mode` every index is that of a pixel.
    """
    mode = np.int32(MODES.get(pad_mode, 0))

    def beyond(index, limit):
        return _beyond_pixel(index, limit, mode)

    def itself(index, limit):
        return index

    return device(beyond if pad_mode else itself)
