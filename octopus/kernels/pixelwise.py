"""Arithmetic of the operations on ragged batches, and the search for an element's item, on every device.

Plain functions of scalars, as in `kernels.geometry`. None of them leaves the compiler a choice (a product that is
added to something is exact, or not added at all), so that every strategy of every device gives the same bits; only
`gamma` calls a library function, whose last bits differ between devices.
"""

import numpy as np

NINTH = np.float32(1 / 9)
TWENTY_FIFTH = np.float32(1 / 25)
TWO, FOUR = np.float32(2), np.float32(4)
FULL = np.float32(255)
PER_FULL = np.float32(1 / 255)


def multiply(value, gain, unused):
    return value * gain


def normalize(value, mean, inverse):
    """`inverse` is that of a standard deviation."""
    return (value - mean) * inverse


def threshold(value, level, unused):
    return np.float32(1.0) if value > level else np.float32(0.0)


def gamma(value, exponent, unused):
    """For values from 0 to 1."""
    return np.float32(value**exponent)


def gamma_of_bytes(value, exponent, unused):
    return FULL * np.float32((value * PER_FULL) ** exponent)


def column3(above, here, below):
    return (above + here) + below


def blur3(left, middle, right):
    return ((left + middle) + right) * NINTH


def column5(a, b, c, d, e):
    return (((a + b) + c) + d) + e


def smooth(above, here, below):
    """A column weighted 1, 2, 1 (Sobel)."""
    return (above + below) + TWO * here


def blur5_sobel(c0, c1, c2, c3, c4, smooth_left, smooth_right, step_left, step_here, step_right):
    """Mean of five columns' sums of five, plus 4/25 of the Sobel gradient's L1 norm. Its two parts come from `smooth`
    of the columns left and right, and the steps from above to below of three columns."""
    total = (((c0 + c1) + c2) + c3) + c4
    across = smooth_right - smooth_left
    down = (step_left + step_right) + TWO * step_here
    return (total + FOUR * (abs(across) + abs(down))) * TWENTY_FIFTH


def last_at_or_before(offsets, low, high, element):
    """The last item in `[low, high)` whose first element is not behind `element`; `offsets[low] <= element` holds. Of
    items that start together, all but the last are empty: the one found is the one that holds the element."""
    while high - low > 1:
        middle = np.int32((low + high) >> 1)
        if offsets[middle] <= element:
            low = middle
        else:
            high = middle
    return low
