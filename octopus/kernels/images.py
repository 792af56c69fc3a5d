"""Arithmetic of resizing whole images that holds on every device, and the record that describes one image.

Plain functions of scalars, as in `geometry`; positions and weights are float64, as Pillow's: the last bit decides.

Convention (Pillow's `Image.resize`, torchvision's `resize(antialias=True)`): pixel `i` covers `[i, i + 1)`; output
pixel `i` of `m` lies around `(i + 0.5) * scale` with `scale = n / m`; the filter is `spread` times as wide as at scale
1; the pixels whose centres it covers are weighted and the weights divided by their sum.
Source: Pillow, `src/libImaging/Resample.c` (`precompute_coeffs`) and `Geometry.c` (`ImagingScaleAffine`).
"""

import math

import numpy as np

# One image of a call: 64 bytes, so that a table of them is one upload. `pointer` is of channel 0, row 0, column 0, and
# `out` the element of the result where the item begins, or the number of its first patch row. Steps count bytes,
# negative from plane to plane for BGR. `rows`, `columns` are the resized image's; `top`, `left` the item's first in it,
# negative for so much padding before it; `first_tile` is the number of the image's first block.
_LONGS = ("pointer", "out", "plane_step")
_INTS = ("row_step", "pixel_step", "height", "width", "rows", "columns", "top", "left", "first_tile", "spare")
IMAGE = np.dtype([(name, "i8") for name in _LONGS] + [(name, "i4") for name in _INTS])
WORDS = IMAGE.itemsize // 4  # of 32 bits in a record; then which of them the int32 are
ROW_STEP, PIXEL_STEP, HEIGHT, WIDTH, ROWS, COLUMNS, TOP, LEFT, FIRST_TILE, _ = range(2 * len(_LONGS), WORDS)

# How a pixel is weighted. TORCH_BICUBIC is what torch takes without antialias: sharper, and pixels beyond the image are
# those of its border; all others leave out what lies beyond.
NEAREST, BILINEAR, BICUBIC, LANCZOS, TORCH_BICUBIC = range(5)
FILTERS = {"nearest": NEAREST, "bilinear": BILINEAR, "bicubic": BICUBIC, "lanczos": LANCZOS}

FIXED_BITS = 22  # fraction of Pillow's weights
FIXED_ONE = 1 << FIXED_BITS
FIXED_HALF = 1 << (FIXED_BITS - 1)
SHORT_END = 1 << 15  # beyond torch's weights


def filter_code(name: str, antialias: bool) -> int:
    return TORCH_BICUBIC if name == "bicubic" and not antialias else FILTERS[name]


def filter_support(code: int) -> float:
    """Half the width of a filter in pixels at scale 1; float64, 0 for nearest."""
    if code == BILINEAR:
        return 1.0
    if code == LANCZOS:
        return 3.0
    return 0.0 if code == NEAREST else 2.0


def axis_scale(size, count, antialias):
    """Source pixels per output pixel along an axis, and how much wider than at scale 1 the filter is."""
    scale = np.float64(size) / np.float64(count)
    return scale, max(scale, 1.0) if antialias else 1.0


def window_taps(support):
    """Source pixels under a filter, at most; `support` is that of the filter times `spread`."""
    return np.int64(math.ceil(support)) * 2 + 1


def window(index, scale, support, size):
    """Source pixels under the filter of an output pixel: `start`, `stop`, and the filter's middle. `support` is
    `filter_support` times the spread of `axis_scale`. Never empty, and within the image; the middle counts from the
    outer edge of the first pixel."""
    centre = (np.float64(index) + 0.5) * scale
    start = np.int64(max(centre - support + 0.5, 0.0))
    stop = min(np.int64(centre + support + 0.5), np.int64(size))
    return start, stop, centre


def whole_window(centre, support):
    """`start` and `stop` of a window that isn't cut at the image: what `TORCH_BICUBIC` weighs."""
    return np.int64(math.floor(centre - support + 0.5)), np.int64(math.floor(centre + support + 0.5))


def nearest_pixel(index, size, count):
    """The source pixel of output pixel `index` with the filter nearest, `floor((index + 0.5) * scale)`. Pillow adds up
    the scale from pixel to pixel; what that leaves of precision decides only where the exact position is a whole
    number, so there, and where the scale has no exact float64, it is added up here, too."""
    twice = (np.int64(2) * np.int64(index) + np.int64(1)) * np.int64(size)
    pixel = twice // (np.int64(2) * np.int64(count))
    if pixel * np.int64(2) * np.int64(count) == twice and size % count != 0:
        scale = np.float64(size) / np.float64(count)
        position = scale * 0.5
        for _ in range(index):
            position += scale
        pixel = np.int64(position)
    return min(pixel, np.int64(size) - np.int64(1))


def bilinear(x):
    """The triangle of support 1."""
    return max(1.0 - abs(x), 0.0)


def bicubic(x):
    """Keys' cubic convolution with a = -0.5, of support 2; operations in Pillow's order."""
    x = abs(x)
    if x < 1.0:
        return (1.5 * x - 2.5) * x * x + 1.0
    if x < 2.0:
        return (((x - 5.0) * x + 8.0) * x - 4.0) * -0.5
    return 0.0


def torch_bicubic(x):
    """Keys' cubic convolution with a = -0.75."""
    x = abs(x)
    if x < 1.0:
        return (1.25 * x - 2.25) * x * x + 1.0
    if x < 2.0:
        return (((x - 5.0) * x + 8.0) * x - 4.0) * -0.75
    return 0.0


def lanczos(x):
    """The sinc, times one three times as wide, of support 3."""
    if x == 0.0:
        return 1.0
    if x < -3.0 or x >= 3.0:
        return 0.0
    wide, third = x * math.pi, x / 3.0 * math.pi
    return math.sin(wide) / wide * (math.sin(third) / third)


# The weight of pixel `i`, not yet divided by the sum of all, is that at `(i - centre + 0.5) / spread`.
CURVES = {BILINEAR: bilinear, BICUBIC: bicubic, LANCZOS: lanczos, TORCH_BICUBIC: torch_bicubic}


def fixed_weight(weight):
    """A weight, divided by the sum, in Pillow's fixed point; int32."""
    return np.int32(weight * FIXED_ONE + (-0.5 if weight < 0.0 else 0.5))


def short_bits(most):
    """Fraction of torch's weights for uint8 on a CPU, int16, by the greatest one along an axis (float64)."""
    bits = np.int64(0)
    while bits < FIXED_BITS and np.int64(0.5 + most * np.float64(np.int64(2) << bits)) < SHORT_END:
        bits += 1
    return bits


def short_weight(weight, bits):
    """A weight, divided by the sum, with so many bits of fraction, in Pillow's fixed point; int32. Sums of such are
    torch's, shifted: rounding and cutting them as Pillow does gives torch's bytes."""
    short = np.int32(weight * np.float64(np.int64(1) << bits) + (-0.5 if weight < 0.0 else 0.5))
    return np.int32(short << np.int32(FIXED_BITS - bits))


def fixed_pixel(total):
    """What Pillow makes of a sum of fixed-point products (int32) at the end of each pass: 0 to 255."""
    return min(max((total + np.int32(FIXED_HALF)) >> np.int32(FIXED_BITS), np.int32(0)), np.int32(255))


def bfloat16_bits(value):
    """Bits of the bfloat16 nearest to a float32, ties to even; for NaN, a quiet one."""
    bits = np.float32(value).view(np.uint32)
    if np.uint32(bits & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000):
        return np.uint16((bits >> np.uint32(16)) | np.uint32(0x40))
    odd = np.uint32((bits >> np.uint32(16)) & np.uint32(1))
    return np.uint16(np.uint32(bits + np.uint32(0x7FFF) + odd) >> np.uint32(16))
