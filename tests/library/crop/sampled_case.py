"""Calls with filters and affine maps that tests on the CPU and on a GPU share."""

from __future__ import annotations

import numpy as np

FILTERS = ("nearest", "bilinear", "bicubic")
BEYOND = [{"outside": "clip"}] + [
    {"outside": "pad", "pad_mode": mode} for mode in ("constant", "edge", "reflect")
]
BOXES = np.array(
    [(0, 0, 300, 200), (17, 23, 90, 151), (0, 0, 1, 1), (299, 199, 300, 200), (5, 7, 9, 10),
     (20.5, 30.25, 53, 160)], np.float32,
)  # fmt: skip
# Turned and shrunk inside the frame, mirrored, across its border, far outside, all of one pixel, and sheared.
MAPS = np.array(
    [
        [[0.71, 0.23, 60.3], [-0.31, 0.83, 50.7]], [[-1.37, 0.11, 250.2], [0.05, 1.13, 12.9]],
        [[2.13, -1.7, 20.4], [1.9, 2.03, -40.6]], [[0.9, 0.1, 5000.3], [0.2, 0.8, -9000.6]],
        [[0, 0, 17.25], [0, 0, 30.75]], [[3.3, 5.1, -80.2], [0.003, 0.002, 99.4]],
    ]
)  # fmt: skip


def ties(positions):
    """Where a position lies so near a pixel's edge that its rounding decides which pixel is the nearest."""
    return np.abs(positions + 0.5 - np.rint(positions + 0.5)) < 1e-3 * np.maximum(1, np.abs(positions) / 500)


def of_maps(maps, size):
    """Positions of all samples of affine maps, (N, 2, height, width)."""
    y, x = np.mgrid[: size[0], : size[1]]
    return np.einsum("nij,jyx->niyx", np.asarray(maps, np.float64), np.stack([x, y, np.ones_like(x)]))


def of_boxes(boxes, size):
    """The same of boxes."""
    x1, y1, x2, y2 = np.asarray(boxes, np.float64).T[..., None, None]
    x = x1 + (np.arange(size[1]) + 0.5) * (x2 - x1) / size[1] - 0.5
    y = y1 + (np.arange(size[0])[:, None] + 0.5) * (y2 - y1) / size[0] - 0.5
    shape = (len(boxes), *size)
    return np.stack([np.broadcast_to(x, shape), np.broadcast_to(y, shape)], axis=1)


def differences(found, right, positions, filter):
    """Absolute differences of results (N, height, width, C), but for nearest pixels that rounding decides."""
    result = np.abs(np.asarray(found, np.float64) - right)
    if filter == "nearest":
        tied = ties(positions).any(axis=1)
        assert tied.mean() < 0.2
        result[tied] = 0
    return result


def roi_align_rotated(frame, boxes, size):
    """detectron2's `ROIAlignRotated(aligned=True, sampling_ratio=1)` as its documentation says it, (N, h, w, C).

    A box is centre, width, height, and degrees counter-clockwise; its centre is moved by half a pixel, since a pixel's
    value lies in its middle. Each bin takes one bilinear sample in its centre; the frame's last pixels reach half a
    pixel further, which is all that boxes inside it need.
    """
    last = np.array(frame.shape[1::-1]) - 1
    result = np.empty((len(boxes), *size, frame.shape[2]))
    for item, (x, y, width, height, angle) in zip(result, np.asarray(boxes, np.float64), strict=True):
        theta = np.deg2rad(angle)
        right = np.array([np.cos(theta), -np.sin(theta)])  # y points down: counter-clockwise turns it up
        down = np.array([np.sin(theta), np.cos(theta)])
        for i, j in np.ndindex(*size):
            across, along = (j + 0.5) / size[1] - 0.5, (i + 0.5) / size[0] - 0.5
            at = np.array([x, y]) - 0.5 + across * width * right + along * height * down
            at = at.clip(0, last)
            low = np.floor(at).astype(int)
            high, (wx, wy) = np.minimum(low + 1, last), at - low
            pixels = frame[np.ix_([low[1], high[1]], [low[0], high[0]])].astype(np.float64)
            rows = pixels[:, 0] * (1 - wx) + pixels[:, 1] * wx
            item[i, j] = rows[0] * (1 - wy) + rows[1] * wy
    return result
