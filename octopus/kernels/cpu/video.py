"""Rows of a frame of video as red, green and blue, 16 pixels at a time; see `bands.kernel_of` for what a frame is."""

from __future__ import annotations

import numpy as np

from octopus.kernels.cpu import compiled, shifted
from octopus.kernels.cpu.vectors import LANES
from octopus.kernels.cpu.vectors_video import planes_of_video, sums_of_video

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
def video_plane(count):
    """Values from channel to channel in what `convert_row` makes of `count` pixels."""
    return count + 3 * LANES


@compiled
def video_scratch(count):
    """Values that a row of so many pixels needs: three channels, and one more."""
    return 4 * video_plane(count)


@compiled
def convert_row(frame, row, horizontal, normal, plane, into):
    """The box's pixels of one row, normalised, a plane for each channel; returns where the first pixel lies.

    Blocks begin at even columns and may reach beyond the box on both sides, but not beyond the frame's row.
    """
    first = np.int64(horizontal[0])
    start, stop = first & -2, first + horizontal[1] + 1
    luma, chroma = shifted(frame[0], row * frame[1]), shifted(frame[6], (row >> 1) * frame[7])
    planes_of_video(
        luma, chroma, start, stop, frame[2], frame[8], normal[0], normal[1], shifted(into, LANES), plane
    )
    return LANES + first - start


@compiled
def sum_video(frame, row, rows, weights, horizontal, into, line):
    """The box's pixels of `rows` rows from `row` on, weighted and added, for two rows of the result.

    `weights` has those of both for each row; the channels of a pixel lie side by side.
    """
    first = np.int64(horizontal[0])
    start, stop = first & -2, first + horizontal[1] + 1
    luma, goal = shifted(frame[0], row * frame[1]), shifted(into, (start - first) * 3)
    for x in range(start, stop, LANES):
        at = min(x, frame[2] - LANES)
        sums_of_video(
            shifted(luma, at), frame[1], shifted(frame[6], at), frame[7], row, rows, weights, frame[8],
            shifted(goal, (at - start) * 3), line,
        )  # fmt: skip
