"""Arithmetic of crop and resize that holds on every device.

Plain functions of scalars, float32 and int32: `kernels.cpu` compiles them with `numba.njit`, `kernels.cuda` as CUDA
device functions, and the simulator and the tests call them as they are. All work along one axis.

Convention (that of `cv2.resize(crop, INTER_LINEAR)`, torch `interpolate(align_corners=False)` and CV-CUDA):
pixel `i` covers `[i, i + 1)`, so its centre lies at `i + 0.5`; output pixel `j` of `m` samples the box
`[low, high)` at `low + (j + 0.5) * (high - low) / m`; positions beyond the centre of the first or last pixel that
the box touches are clamped there (crop first, then resize: nothing bleeds in from outside the box).
"""

import numpy as np

# Adding 1.5 * 2**23 to a float32 of magnitude below 2**22 leaves no bits for the fraction: the hardware rounds
# it off, half to even, as cv2 and NumPy do. Cheaper than a call and the same on every device.
ROUNDING = np.float32(12582912.0)
# Up to this side of a box a float32 position within it is good to 1/1000 of a pixel.
MAX_BOX_SIDE = 2**14
# Up to here float32 and int32 hold every whole pixel, also of boxes that reach beyond the frame.
MAX_COORDINATE = 2**24
# The least that each corner of a quadrilateral must turn by, as a part of its diagonals' squares: an item of one with
# two corners in one place, or three on a line, has samples at infinity.
FLAT = 2.0**-17
# What `beyond_pixel` makes of a pixel outside the frame.
CONSTANT, NEAREST, REFLECT = 0, 1, 2


def box_axis(low, high, limit):
    """Clip a box to a frame of `limit` pixels: `first, last, origin, extent`. The first pixel that the box touches, the
    number of its last one counted from there, the position of the box's edge from the centre of pixel `first`, and the
    box's length after clipping."""
    low = max(low, np.float32(0.0))
    high = min(high, np.float32(limit))
    first = np.int32(low)
    stop = np.int32(high)
    if np.float32(stop) < high:
        stop += np.int32(1)
    return first, np.int32(stop - first - np.int32(1)), low - np.float32(first) - np.float32(0.5), high - low


def box_is_usable(x1, y1, x2, y2, width, height):
    """Whether any of the box lies inside the frame; False for NaN, since every comparison with it is."""
    return (
        x1 < x2 and y1 < y2 and x1 < np.float32(width) and y1 < np.float32(height)
        and x2 > np.float32(0.0) and y2 > np.float32(0.0)
    )  # fmt: skip


def span(low, high):
    """`box_axis` of a box that is not cut at the frame, whose pixels may lie beyond it."""
    first = np.int32(low)
    if np.float32(first) > low:  # a cast truncates, which rounds negative numbers up
        first -= np.int32(1)
    stop = np.int32(high)
    if np.float32(stop) < high:
        stop += np.int32(1)
    return first, np.int32(stop - first - np.int32(1)), low - np.float32(first) - np.float32(0.5), high - low


def span_is_usable(x1, y1, x2, y2):
    """Whether a box that is not cut can be made: neither empty nor NaN, nor beyond what single precision holds."""
    far, side = np.float32(MAX_COORDINATE), np.float32(MAX_BOX_SIDE)
    return (
        x1 < x2 and y1 < y2 and x1 >= -far and y1 >= -far and x2 <= far and y2 <= far
        and x2 - x1 <= side and y2 - y1 <= side
    )  # fmt: skip


def quad_is_usable(x0, y0, x1, y1, x2, y2, x3, y3):
    """Whether four corners in turn, float64, make a convex quadrilateral that isn't all but flat; False for NaN."""
    a = (x1 - x0) * (y3 - y0) - (x3 - x0) * (y1 - y0)
    b = (x2 - x1) * (y0 - y1) - (x0 - x1) * (y2 - y1)
    c = (x3 - x2) * (y1 - y2) - (x1 - x2) * (y3 - y2)
    d = (x0 - x3) * (y2 - y3) - (x2 - x3) * (y0 - y3)
    flat = FLAT * ((x2 - x0) * (x2 - x0) + (y2 - y0) * (y2 - y0) + (x3 - x1) * (x3 - x1) + (y3 - y1) * (y3 - y1))
    if not ((a > flat and b > flat and c > flat and d > flat) or (a < -flat and b < -flat and c < -flat and d < -flat)):
        return False
    return max(abs(x0), abs(y0), abs(x1), abs(y1), abs(x2), abs(y2), abs(x3), abs(y3)) <= MAX_COORDINATE


def quad_map(x0, y0, x1, y1, x2, y2, x3, y3, columns, rows):
    """The perspective map of a quadrilateral: nine float64, `a` to `i`, that take the centre of the item's pixel `x, y`
    to `(a*x + b*y + c) / w` along the frame's rows, and `(d*x + e*y + f) / w` down, with `w = g*x + h*y + i`. Both
    count from the centre of a first pixel. The corners are those of the item in turn, from its upper left one. Source:
    Heckbert, "Fundamentals of Texture Mapping and Image Warping" (1989), 2.2.3, of the unit square."""
    ux, uy, vx, vy = x1 - x2, y1 - y2, x3 - x2, y3 - y2
    sx, sy = x0 - x1 + x2 - x3, y0 - y1 + y2 - y3
    area = ux * vy - vx * uy
    across, down = 1.0 / np.float64(columns), 1.0 / np.float64(rows)
    g, h = (sx * vy - vx * sy) / area, (ux * sy - sx * uy) / area
    a, b = (x1 - x0 + g * x1) * across, (x3 - x0 + h * x3) * down
    d, e = (y1 - y0 + g * y1) * across, (y3 - y0 + h * y3) * down
    g, h = g * across, h * down
    i = 1.0 + 0.5 * (g + h)
    c, f = x0 + 0.5 * (a + b - i), y0 + 0.5 * (d + e - i)
    return a - 0.5 * g, b - 0.5 * h, c, d - 0.5 * g, e - 0.5 * h, f, g, h, i


def perspective_line(top, bottom, step, turn):
    """Samples along a line of a perspective map, one axis: `top / bottom`, and `(top + k*step) / (bottom + k*turn)`.
    Returns the pixel of the one at 0, the rest of its position, and two numbers with which `along_line` finds others:
    float32 holds their distance from it well, where it would not hold their place in a large frame. That is so where `k
    * turn` is not negative: 0 should be at the end of the line where the map shrinks most."""
    start = top / bottom
    first = np.int32(start)
    if np.float64(first) > start:
        first -= np.int32(1)
    slope, turn = (step - turn * start) / bottom, turn / bottom
    return first, np.float32(start - np.float64(first)), np.float32(slope), np.float32(turn)


def along_line(share, slope, turn, k):
    """Position of sample `k` from the pixel that `perspective_line` found."""
    steps = np.float32(k)
    return share + slope * (steps / (np.float32(1.0) + steps * turn))


def beyond_pixel(index, limit, mode):
    """The pixel of a frame of `limit` pixels that stands for any one, inside or beyond; -1 for the constant. `mode`:
    beyond the frame lies a constant, its nearest pixel, or its mirror image without a second border pixel."""
    if index >= 0 and index < limit:
        return np.int32(index)
    if mode == CONSTANT:
        return np.int32(-1)
    last = np.int32(limit - np.int32(1))
    if mode == NEAREST:
        return np.int32(0) if index < 0 else last
    if last == 0:
        return np.int32(0)
    distance = abs(np.int64(index))  # the least int32 has no opposite in 32 bits
    period = np.uint32(np.uint32(2) * np.uint32(last))
    rest = np.int32(np.uint32(distance) % period)
    return rest if rest <= last else np.int32(np.int32(period) - rest)


def sample(index, scale, origin, last):
    """The neighbours of an output pixel, counted from the box's first, and the share of the upper one, in [0, 1)."""
    position = (np.float32(index) + np.float32(0.5)) * scale + origin
    position = min(max(position, np.float32(0.0)), np.float32(last))
    lower = np.int32(position)
    upper = min(np.int32(lower + np.int32(1)), last)
    return lower, upper, position - np.float32(lower)


def lerp(a, b, weight):
    """Linear interpolation from `a` (weight 0) to `b` (weight 1)."""
    return a + weight * (b - a)


def saturate_uint8(value):
    """Round half to even and clamp to 0..255, as OpenCV's `saturate_cast`; still a float32."""
    return (min(max(value, np.float32(0.0)), np.float32(255.0)) + ROUNDING) - ROUNDING


def widen(first, last, origin, limit, reach):
    """`first, last, origin` of samples that read `reach` pixels beyond the box, where the frame has them. A bilinear
    sample lies within the box, so its neighbours lie at most one pixel outside: `reach` 1 gives torchvision's
    `roi_align(aligned=True, sampling_ratio=1)`. A filter reaches further, see `filter_reach`."""
    start = max(np.int32(first - reach), np.int32(0))
    stop = min(np.int32(first + last + reach), np.int32(limit - np.int32(1)))
    return start, np.int32(stop - start), origin + np.float32(np.int32(first - start))


def reach_out(first, last, origin, reach):
    """`widen` for a box that is not cut: samples read `reach` pixels beyond it, whether the frame has them or not."""
    start = np.int32(first - reach)
    return start, np.int32(last + np.int32(2) * reach), origin + np.float32(reach)


def inner_size(extent_x, extent_y, width, height):
    """Width and height at which a box fills `width` x `height` as far as its aspect ratio allows (`letterbox=True`).
    The shorter side is rounded half to even, as Ultralytics' `LetterBox` does with `round`, and at least 1. Multiplying
    before dividing keeps it exact for integer boxes, so that every device decides alike."""
    across = extent_x * np.float32(height)
    down = extent_y * np.float32(width)
    if across <= down:  # the height limits
        rounded = np.int32((across / extent_y + ROUNDING) - ROUNDING)
        return min(max(rounded, np.int32(1)), np.int32(width)), np.int32(height)
    rounded = np.int32((down / extent_x + ROUNDING) - ROUNDING)
    return np.int32(width), min(max(rounded, np.int32(1)), np.int32(height))


def padding_before(size, inner):
    """Pixels of padding to the left of or above the inner image: half of all, rounded down."""
    return np.int32(np.int32(size - inner) >> np.int32(1))


def way_back(low, extent, inner, before):
    """Scale and shift from a position in the result to one in the frame: `frame = result * scale + shift`. Both
    positions count from the outer edge of the first pixel; `low` is the box's edge before it is cut at the frame."""
    scale = extent / np.float32(inner)
    return scale, max(low, np.float32(0.0)) - np.float32(before) * scale


def way_back_uncut(low, extent, inner, before):
    scale = extent / np.float32(inner)
    return scale, low - np.float32(before) * scale


def filter_support(scale):
    """Half the width of the triangle filter in source pixels: one output pixel's step, at least one pixel. With
    `antialias=True` an output pixel is the mean of the source pixels within the support of its centre, weighted by a
    triangle, as in PIL's `Image.resize(BILINEAR)` and torchvision's `resize(antialias=True)`."""
    return max(scale, np.float32(1.0))


def filter_reach(support):
    """Pixels beyond the box that the filter may touch; one more than it can, against rounding."""
    return np.int32(support) + np.int32(1)


def filter_window(index, scale, origin, last, support):
    """Source pixels, from `start` to before `stop`, under the triangle of an output pixel, at least one, and its peak.
    All count from the first usable pixel, the peak from its centre."""
    centre = (np.float32(index) + np.float32(0.5)) * scale + origin
    # Never outside, but for rounding at the edges of the box: there a triangle of width 1 would weigh nothing.
    centre = min(max(centre, np.float32(-0.5)), np.float32(last) + np.float32(0.5))
    start = np.int32(max(centre - support + np.float32(1.0), np.float32(0.0)))
    stop = min(np.int32(centre + support + np.float32(1.0)), np.int32(last + np.int32(1)))
    start = min(start, last)
    return start, max(stop, np.int32(start + np.int32(1))), centre


def filter_weight(pixel, centre, slope):
    """Height of the triangle over a source pixel, not yet divided by the sum of all; `slope` is 1 / support."""
    return max(np.float32(1.0) - abs(np.float32(pixel) - centre) * slope, np.float32(0.0))
