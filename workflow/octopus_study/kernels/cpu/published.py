"""The published two-pass kernels on the CPU: crop and resize to uint8, then normalise; see `kernels.cuda.published`."""

import numba
import numpy as np

from octopus.kernels import geometry
from octopus_study.kernels.cpu import compiled

_sample = compiled(inline="always")(geometry.sample)
_lerp = compiled(inline="always")(geometry.lerp)
_saturate_uint8 = compiled(inline="always")(geometry.saturate_uint8)


ROWS = 56  # rows per parallel block: also the method that passes one box at a time keeps four threads busy


@compiled(parallel=True)
def crop_resize(frame, metadata, crops):
    """First pass: every box of `metadata` (N, 8) int32 into `crops` (N, height, width, C) uint8."""
    height, width, channels = crops.shape[1], crops.shape[2], crops.shape[3]
    half = np.float32(-0.5)
    bands = (height + ROWS - 1) // ROWS
    for block in numba.prange(crops.shape[0] * bands):
        item = block // bands
        first = (block - item * bands) * ROWS
        x, y = (np.uint32(metadata[item, 0]), np.uint32(metadata[item, 1]))  # unsigned: no test for negative indices
        w, h = metadata[item, 2], metadata[item, 3]
        scale_x, scale_y = np.float32(w) / np.float32(width), np.float32(h) / np.float32(height)
        for row in range(first, min(first + ROWS, height)):
            y_low, y_high, wy = _sample(row, scale_y, half, np.int32(h - 1))
            above, below = frame[y + np.uint32(y_low)], frame[y + np.uint32(y_high)]
            for column in range(width):
                x_low, x_high, wx = _sample(column, scale_x, half, np.int32(w - 1))
                left, right = x + np.uint32(x_low), x + np.uint32(x_high)
                for c in range(channels):
                    top = _lerp(np.float32(above[left, c]), np.float32(above[right, c]), wx)
                    bottom = _lerp(np.float32(below[left, c]), np.float32(below[right, c]), wx)
                    crops[item, row, column, c] = np.uint8(_saturate_uint8(_lerp(top, bottom, wy)))


@compiled(parallel=True)
def normalize(crops, mean, inverse_std, out):
    """Second pass: `(crops - mean) * inverse_std` into `out` (N, C, height, width) float32."""
    count, height, width, channels = crops.shape
    bands = (height + ROWS - 1) // ROWS
    for block in numba.prange(count * bands):
        item = block // bands
        first = (block - item * bands) * ROWS
        for c in range(channels):
            for row in range(first, min(first + ROWS, height)):
                for column in range(width):
                    value = np.float32(crops[item, row, column, c])
                    out[item, c, row, column] = (value - mean[c]) * inverse_std[c]
