"""Arithmetic of crop and resize that holds on every device.

Plain functions of scalars: `kernels.cpu` compiles them with `numba.njit`, `kernels.cuda` as CUDA device
functions, and the simulator and the tests call them as they are. They use `np.float32` and `np.int32` casts
so that all three compute in single precision.

Convention (that of `cv2.resize(crop, INTER_LINEAR)`, torch `interpolate(align_corners=False)` and CV-CUDA):
pixel `i` covers `[i, i + 1)`, so its centre lies at `i + 0.5`; output pixel `j` of `m` samples the box
`[low, high)` at `low + (j + 0.5) * (high - low) / m`; positions beyond the centre of the first or last pixel that
the box touches are clamped there (crop first, then resize: nothing bleeds in from outside the box).
"""

from __future__ import annotations

import numpy as np

# Adding 1.5 * 2**23 to a float32 of magnitude below 2**22 leaves no bits for the fraction: the hardware rounds
# it off, half to even, as cv2 and NumPy do. Cheaper than a call and the same on every device.
ROUNDING = np.float32(12582912.0)


def box_axis(low, high, limit):
    """Clip one axis of a box to the frame.

    Parameters
    ----------
    low, high : float32
        Edges of the box in pixels; it covers `[low, high)`.
    limit : int32
        Pixels of the frame along this axis.

    Returns
    -------
    first : int32
        First pixel that the box touches.
    last : int32
        Index of its last pixel, counted from `first`.
    origin : float32
        Position of the box's edge relative to the centre of pixel `first`.
    extent : float32
        Length of the box in pixels after clipping.
    """
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
        x1 < x2
        and y1 < y2
        and x1 < np.float32(width)
        and y1 < np.float32(height)
        and x2 > np.float32(0.0)
        and y2 > np.float32(0.0)
    )


def sample(index, scale, origin, last):
    """Neighbours and weight of one output pixel along one axis.

    Returns
    -------
    lower, upper : int32
        The two pixels between which to interpolate, counted from the box's first.
    weight : float32
        Share of `upper`, in [0, 1).
    """
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
