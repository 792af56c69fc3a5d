"""Where a box lies, in its frame and in its item, for boxes cut at the frame and for those that reach beyond it."""

from collections.abc import Callable

import numpy as np

from octopus.backends.cuda.language import device
from octopus.kernels import geometry
from octopus.kernels.cuda.rows import Pixels

MODES = {"constant": geometry.CONSTANT, "edge": geometry.NEAREST, "reflect": geometry.REFLECT}

_box_axis, box_is_usable = device(geometry.box_axis), device(geometry.box_is_usable)
_span, _widen, _reach_out = device(geometry.span), device(geometry.widen), device(geometry.reach_out)
_way_back, _way_back_uncut = device(geometry.way_back), device(geometry.way_back_uncut)
_inner_size, _padding_before = device(geometry.inner_size), device(geometry.padding_before)
_filter_support, _filter_reach = device(geometry.filter_support), device(geometry.filter_reach)


def framer(pixels: Pixels) -> Callable:
    """A device function: a frame as its readers take it, and the way from row to row; rows of video are numbered."""

    @device
    def planes(frame, pitch, chroma, chroma_pitch, coefficients):
        return (frame, chroma, pitch, chroma_pitch, coefficients), np.int32(1)

    @device
    def itself(frame, pitch, chroma, chroma_pitch, coefficients):
        return frame, pitch

    return planes if pixels.is_video else itself


@device
def box_in_memory(boxes, item):
    return (
        np.float32(boxes[4 * item]), np.float32(boxes[4 * item + 1]),
        np.float32(boxes[4 * item + 2]), np.float32(boxes[4 * item + 3]),
    )  # fmt: skip


def placer(edge: str, letterbox: bool, antialias: bool, pad_mode: str = "", reach: int = 1) -> Callable:
    """A device function: the axes of a usable box and where its image lies in the item. Returns `left, last_x,
    origin_x, extent_x`, the same for y (see `geometry.box_axis`), the columns before the image, the rows above it, its
    width and height. With a `pad_mode` the box isn't cut and may begin beyond the frame; with `edge="image"` samples
    take up to `reach` pixels beyond the box, or as many as the filter does."""
    beyond, padded = edge == "image" and reach > 0, bool(pad_mode)

    @device
    def axis(low, high, limit):
        return _span(low, high) if padded else _box_axis(low, high, limit)

    @device
    def taken(extent, count):
        return _filter_reach(_filter_support(extent / np.float32(count))) if antialias else np.int32(reach)

    @device
    def wider(first, last, origin, limit, taken):
        return _reach_out(first, last, origin, taken) if padded else _widen(first, last, origin, limit, taken)

    @device
    def place(x1, y1, x2, y2, width, height, out_width, out_height):
        left, last_x, origin_x, extent_x = axis(x1, x2, width)
        top, last_y, origin_y, extent_y = axis(y1, y2, height)
        columns, rows = out_width, out_height
        if letterbox:
            columns, rows = _inner_size(extent_x, extent_y, out_width, out_height)
        if beyond:
            reach_x, reach_y = taken(extent_x, columns), taken(extent_y, rows)
            left, last_x, origin_x = wider(left, last_x, origin_x, width, reach_x)
            top, last_y, origin_y = wider(top, last_y, origin_y, height, reach_y)
        before, above = _padding_before(out_width, columns), _padding_before(out_height, rows)
        return (
            left, last_x, origin_x, extent_x, top, last_y, origin_y, extent_y, before, above, columns, rows,
        )  # fmt: skip

    return place


def transform_store(pad_mode: str, flipped: bool) -> Callable:
    """A device function that writes `scale_x, scale_y, shift_x, shift_y` from an item, or its mirror, to the frame."""
    way_back = _way_back_uncut if pad_mode else _way_back

    @device
    def store_transform(transform, item, x1, y1, extent_x, extent_y, before, above, columns, rows, flip, width, height):
        scale_x, shift_x = way_back(x1, extent_x, columns, before)
        scale_y, shift_y = way_back(y1, extent_y, rows, above)
        transform[4 * item] = scale_x
        transform[4 * item + 1] = scale_y
        transform[4 * item + 2] = shift_x
        transform[4 * item + 3] = shift_y
        for axis in range(2 if flipped else 0):
            size = height if axis else width
            if flip & np.int32(1 << axis):
                at = 4 * item + axis
                scale = transform[at]
                transform[at + 2] += np.float32(size) * scale
                transform[at] = -scale

    return store_transform


@device
def no_transform(transform, item):
    """What an item that can't be made has in the place of one."""
    for i in range(4):
        transform[4 * item + i] = np.float32(np.nan)
