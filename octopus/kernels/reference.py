"""The plainest version of each operation, in NumPy float64; every fast version is checked against it."""

from __future__ import annotations

import numpy as np


def crop_resize(
    frame: np.ndarray,
    boxes: np.ndarray,
    size: tuple[int, int],
    mean: np.ndarray,
    std: np.ndarray,
    layout: str = "NCHW",
) -> np.ndarray:
    """Bilinear crop and resize of every box, then `(value - mean) / std`, in float64.

    Parameters
    ----------
    frame : ndarray, (H, W, C)
    boxes : ndarray, (N, 4)
        `x1, y1, x2, y2` in pixels.
    size : (int, int)
        Height and width of the result.
    mean, std : ndarray, (C,)
    layout : {"NCHW", "NHWC"}

    Returns
    -------
    ndarray, float64
        (N, C, height, width) or (N, height, width, C); not rounded and not saturated.
    """
    items = [_one(frame, box, size) for box in np.asarray(boxes, np.float64)]
    result = (np.stack(items) - mean) / std if items else np.empty((0, *size, frame.shape[2]))
    return result.transpose(0, 3, 1, 2) if layout == "NCHW" else result


def _one(frame: np.ndarray, box: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    x_low, x_high, x_weight = _axis(box[0], box[2], size[1])
    y_low, y_high, y_weight = _axis(box[1], box[3], size[0])
    wx, wy = x_weight[None, :, None], y_weight[:, None, None]
    top, bottom = y_low[0], y_high[-1] + 1
    rows = frame[top:bottom]
    wide = rows[:, x_low].astype(np.float64)
    wide += (rows[:, x_high] - wide) * wx
    result = wide[y_low - top]
    result += (wide[y_high - top] - result) * wy
    return result


def _axis(low: float, high: float, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    first, last = int(np.floor(low)), int(np.ceil(high)) - 1
    position = low + (np.arange(count) + 0.5) * (high - low) / count - 0.5
    position = np.clip(position, first, last)
    lower = np.floor(position).astype(int)
    return lower, np.minimum(lower + 1, last), position - lower
