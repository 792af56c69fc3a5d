"""What the options are compared with: the same answers by other libraries, and by plain NumPy models of them."""

from __future__ import annotations

import numpy as np
import pytest


def pil(frame, box, size, *, whole):
    """PIL's bilinear resize of float images, channel by channel: of the cut-out, or of a box in the whole frame."""
    Image = pytest.importorskip("PIL.Image")
    planes = []
    for c in range(frame.shape[2]):
        image = Image.fromarray(frame[..., c].astype(np.float32))
        assert image.mode == "F"
        if whole:
            planes.append(image.resize(size[::-1], Image.Resampling.BILINEAR, box=tuple(map(float, box))))
        else:
            cut = image.crop(tuple(int(side) for side in box))
            planes.append(cut.resize(size[::-1], Image.Resampling.BILINEAR))
    return np.stack([np.asarray(plane) for plane in planes])


def letterbox(frame, box, size, pad):
    """`cv2.resize` to the largest size of the same aspect ratio, then `cv2.copyMakeBorder`; and the transform.

    Sizes and borders follow Ultralytics' LetterBox (center=True, scaleup=True), with exact fractions in its place of
    a ratio.
    """
    cv2 = pytest.importorskip("cv2")
    x1, y1, x2, y2 = box
    width, height = x2 - x1, y2 - y1
    ratio = min((size[1], width), (size[0], height), key=lambda pair: pair[0] / pair[1])
    inner = [max(1, round(side * ratio[0] / ratio[1])) for side in (width, height)]
    crop = frame[y1:y2, x1:x2].astype(np.float32)
    resized = cv2.resize(crop, inner, interpolation=cv2.INTER_LINEAR).reshape(inner[1], inner[0], -1)
    dw, dh = (size[1] - inner[0]) / 2, (size[0] - inner[1]) / 2
    top, bottom, left, right = round(dh - 0.1), round(dh + 0.1), round(dw - 0.1), round(dw + 0.1)
    parts = [
        cv2.copyMakeBorder(
            resized[..., c], top, bottom, left, right, cv2.BORDER_CONSTANT, value=float(pad[c])
        )
        for c in range(frame.shape[2])
    ]
    scale = np.array([width / inner[0], height / inner[1]])
    return np.stack(parts), np.concatenate([scale, [x1, y1] - scale * [left, top]])


def roi_align(frame, box, size):
    """torchvision's `roi_align(aligned=True, sampling_ratio=1)`, written after its documentation: (C, height, width).

    One sample in the middle of each bin, at a position shifted by half a pixel; a position beyond the frame by more
    than a pixel gives 0, else it is moved to the border pixel.
    """
    height, width = frame.shape[:2]
    pixels = frame.astype(np.float64)
    result = np.empty((frame.shape[2], *size))
    for j in range(size[0]):
        for i in range(size[1]):
            y = box[1] - 0.5 + (j + 0.5) * (box[3] - box[1]) / size[0]
            x = box[0] - 0.5 + (i + 0.5) * (box[2] - box[0]) / size[1]
            assert -1 <= y <= height and -1 <= x <= width
            y, x = max(y, 0.0), max(x, 0.0)
            y0, x0 = min(int(y), height - 1), min(int(x), width - 1)
            y1, x1 = min(y0 + 1, height - 1), min(x0 + 1, width - 1)
            wy, wx = (y - y0 if y1 > y0 else 0.0), (x - x0 if x1 > x0 else 0.0)
            upper = pixels[y0, x0] * (1 - wx) + pixels[y0, x1] * wx
            lower = pixels[y1, x0] * (1 - wx) + pixels[y1, x1] * wx
            result[:, j, i] = upper * (1 - wy) + lower * wy
    return result
