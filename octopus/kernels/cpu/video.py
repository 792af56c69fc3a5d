"""Rows of a frame of video as red, green and blue, 16 pixels at a time; see `bands.kernel_of` for what a frame is."""

import numpy as np

from octopus.kernels.cpu import as_elements, compiled, shifted
from octopus.kernels.cpu.vectors import LANES, sums_of_video

VIDEO = {"nv12": "uint8", "p010": "uint16"}  # dtypes of the planes
EDGE = 3 * LANES  # values that may be written before and behind those of the box


@compiled
def value_of_video(frame, row, pixel, channel):
    """One value of one pixel, 0 to 255."""
    k, pair = frame[8], shifted(frame[6], (row >> 1) * frame[7] + (pixel & -2))
    y, u, v = np.float32(frame[0][row * frame[1] + pixel]), np.float32(pair[0]), np.float32(pair[1])
    if channel == 0:
        value = k[0] * y + k[1] * v + k[2]
    elif channel == 1:
        value = k[0] * y + k[3] * u + (k[4] * v + k[5])
    else:
        value = k[0] * y + k[6] * u + k[7]
    return min(max(value, np.float32(0.0)), np.float32(255.0))


@compiled
def readable_row(frame, row, horizontal, values):
    """The box's luma and chroma in a row, with one pixel more and a pair; at the frame's right edge copies."""
    first, count = np.int64(horizontal[0]), np.int64(horizontal[1]) + 1
    luma = shifted(frame[0], row * frame[1] + first)
    chroma = shifted(frame[6], (row >> 1) * frame[7] + (first & -2))
    if first + count + 1 >= frame[2]:  # a column fetches two pixels, and two pairs
        copied = as_elements(values, luma)
        for i in range(count):
            copied[i] = luma[i]
        pairs = shifted(copied, count + 1)
        for i in range(frame[2] - (first & -2)):
            pairs[i] = chroma[i]
        luma, chroma = copied, pairs
    return luma, chroma


@compiled
def sum_video(frame, row, rows, weights, horizontal, into, line):
    """`rows` rows of the box from `row` on, weighted and added for two rows of the result, channels side by side."""
    first = np.int64(horizontal[0])
    start, stop = first & -2, first + horizontal[1] + 1
    luma, goal = shifted(frame[0], row * frame[1]), shifted(into, (start - first) * 3)
    for x in range(start, stop, LANES):
        at = min(x, frame[2] - LANES)
        sums_of_video(
            shifted(luma, at), frame[1], shifted(frame[6], at), frame[7], row, rows, weights, frame[8],
            shifted(goal, (at - start) * 3), line,
        )  # fmt: skip
