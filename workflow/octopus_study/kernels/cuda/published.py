"""The published kernels, written anew after their description: two passes, launched through Numba's dispatcher.

The first pass crops and resizes to uint8, one block per crop whose threads stride over its pixels; the second
normalises to float32 NCHW. Per object the host prepares eight int32. With `first` and a grid of its own the same
kernels serve the method that launches once per object: there a crop gets as many blocks as keep the GPU busy, since
one block alone would make N launches look slower than their overhead does.
"""

import numpy as np
from numba import cuda

from octopus.kernels import geometry

THREADS = 256

_sample = cuda.jit(device=True)(geometry.sample)
_lerp = cuda.jit(device=True)(geometry.lerp)
_saturate_uint8 = cuda.jit(device=True)(geometry.saturate_uint8)


@cuda.jit
def crop_resize(frame, metadata, crops, first):
    """Grid (blocks per crop, crops); thread `t` of a crop takes pixels `t`, `t + all threads`, … `frame` (H, W, C)
    uint8, `metadata` (N, 8) int32, `crops` (N, height, width, C) uint8; `first` is the item of block row 0."""
    item = first + cuda.blockIdx.y
    height, width, channels = crops.shape[1], crops.shape[2], crops.shape[3]
    x, y, w, h = metadata[item, 0], metadata[item, 1], metadata[item, 2], metadata[item, 3]
    half = np.float32(-0.5)
    scale_x = np.float32(w) / np.float32(width)
    scale_y = np.float32(h) / np.float32(height)
    pixel = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    while pixel < height * width:
        row = pixel // width
        column = pixel - row * width
        y_low, y_high, wy = _sample(row, scale_y, half, np.int32(h - 1))
        x_low, x_high, wx = _sample(column, scale_x, half, np.int32(w - 1))
        for c in range(channels):
            top = _lerp(np.float32(frame[y + y_low, x + x_low, c]), np.float32(frame[y + y_low, x + x_high, c]), wx)
            bottom = _lerp(
                np.float32(frame[y + y_high, x + x_low, c]), np.float32(frame[y + y_high, x + x_high, c]), wx
            )
            crops[item, row, column, c] = np.uint8(_saturate_uint8(_lerp(top, bottom, wy)))
        pixel += cuda.gridDim.x * cuda.blockDim.x


@cuda.jit
def normalize(crops, mean, inverse_std, out, first):
    """Grid (blocks per crop, crops); `(crops - mean) * inverse_std` into `out` (N, C, height, width) float32."""
    item = first + cuda.blockIdx.y
    height, width, channels = crops.shape[1], crops.shape[2], crops.shape[3]
    pixel = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    while pixel < height * width:
        row = pixel // width
        column = pixel - row * width
        for c in range(channels):
            value = np.float32(crops[item, row, column, c])
            out[item, c, row, column] = (value - mean[c]) * inverse_std[c]
        pixel += cuda.gridDim.x * cuda.blockDim.x


@cuda.jit
def empty(frame, metadata, crops, first):
    """Nothing, with the arguments of `crop_resize`: what remains of its time is the launch and their unpacking."""
