"""The plainest version of each operation, in NumPy float64; every fast version is checked against it."""

from typing import NamedTuple

import numpy as np

from octopus.kernels import geometry


class Place(NamedTuple):
    """Where one box goes in its item: all of it, unless the aspect ratio is kept."""

    left: int
    top: int
    width: int
    height: int


def crop_resize(
    frame: np.ndarray,
    boxes: np.ndarray,
    size: tuple[int, int],
    mean: np.ndarray,
    std: np.ndarray,
    layout: str = "NCHW",
    *,
    edge: str = "box",
    antialias: bool = False,
    filter: str = "bilinear",
    letterbox: bool = False,
    outside: str = "clip",
    pad_mode: str = "constant",
    pad_value: float | np.ndarray = 114.0,
    frame_index: np.ndarray | None = None,
) -> np.ndarray:
    """Crop and resize of every box, then `(value - mean) / std`, in float64, not rounded and not saturated; options as
    of `octopus.crop_resize`."""
    frames = frame if frame_index is not None else frame[None]
    index = np.zeros(len(boxes), int) if frame_index is None else frame_index
    resize = {"bilinear": _bilinear, "nearest": _nearest, "bicubic": _bicubic}[filter]
    if antialias:
        resize = _filtered
    items = np.empty((len(boxes), *size, frames.shape[3]))
    items[:] = pad_value
    for item, number, box in zip(items, index, np.asarray(boxes, np.float64), strict=True):
        pixels = frames[number]
        if outside == "clip":
            box = cut(box, pixels)
        at = place(box, size) if letterbox else Place(0, 0, size[1], size[0])
        inner = item[at.top : at.top + at.height, at.left : at.left + at.width]
        if outside == "pad":
            pixels, box = _surroundings(pixels, box, inner.shape[:2], pad_mode, pad_value)
        inner[:] = resize(pixels, box, inner.shape[:2], edge == "image")
    result = (items - mean) / std
    return result.transpose(0, 3, 1, 2) if layout == "NCHW" else result


# Shares of red and blue in the luma: ITU-R BT.601-7 2.5.1, BT.709-6 3.2, BT.2020-2 table 4 (non-constant luminance).
LUMA = {"bt601": (0.299, 0.114), "bt709": (0.2126, 0.0722), "bt2020": (0.2627, 0.0593)}


def rgb_of_video(y: np.ndarray, uv: np.ndarray, matrix: str, range: str) -> np.ndarray:
    """A frame of NV12, or of P010 if it is uint16, as (H, W, 3) float64: red, green and blue from 0 to 255, clamped.
    Luma from 0 to 1 and chroma from -0.5 to 0.5, by the quantisation of these recommendations (limited range), or of
    ITU-T H.273 (full), then the equations by which luma and colour differences are defined, solved for the colours."""
    bits, shift = (10, 64) if y.dtype == np.uint16 else (8, 1)
    height, width = y.shape
    luma, chroma = (y / shift, uv.reshape(height // 2, width // 2, 2).repeat(2, axis=0).repeat(2, axis=1) / shift)
    step, top = 2 ** (bits - 8), 2**bits - 1
    luma = (luma - 16 * step) / (219 * step) if range == "limited" else luma / top
    chroma = (chroma - 128 * step) / (224 * step if range == "limited" else top)
    kr, kb = LUMA[matrix]
    red, blue = luma + 2 * (1 - kr) * chroma[..., 1], luma + 2 * (1 - kb) * chroma[..., 0]
    green = (luma - kr * red - kb * blue) / (1 - kr - kb)
    return np.stack([red, green, blue], axis=-1).clip(0, 1) * 255


def reordered(frame: np.ndarray, order: str) -> np.ndarray:
    """The channels of a frame in the order of the result: red, green, blue; "RGB" leaves any number as they are."""
    return frame if order == "RGB" else frame[..., [order.index(colour) for colour in "RGB"]]


def warp(
    frame: np.ndarray,
    maps: np.ndarray,
    size: tuple[int, int],
    mean: np.ndarray,
    std: np.ndarray,
    layout: str = "NCHW",
    *,
    filter: str = "bilinear",
    outside: str = "clip",
    pad_mode: str = "constant",
    pad_value: float | np.ndarray = 114.0,
    frame_index: np.ndarray | None = None,
) -> np.ndarray:
    """Samples of a frame at the positions of affine maps (N, 2, 3), or in quadrilaterals (N, 4, 2), then
    `(value - mean) / std`; see `crop_resize`."""
    frames = frame if frame_index is not None else frame[None]
    index = np.zeros(len(maps), int) if frame_index is None else frame_index
    mode = pad_mode if outside == "pad" else "edge"
    y, x = np.mgrid[: size[0], : size[1]]
    items = np.zeros((len(maps), *size, frames.shape[3]))
    for item, number, map_ in zip(items, index, np.asarray(maps, np.float64), strict=True):
        positions = in_quad(map_, size) if map_.shape == (4, 2) else map_ @ np.stack([x, y, 0 * x + 1]).reshape(3, -1)
        (across, x_weights), (down, y_weights) = (_taps(part.reshape(size), filter) for part in positions)
        (columns, left_out), (rows, above_out) = (
            _mirrored(pixels, frames.shape[axis], mode) for pixels, axis in ((across, 2), (down, 1))
        )
        for i, row_weight in enumerate(y_weights):
            for j, column_weight in enumerate(x_weights):
                pixels = frames[number][rows[i], columns[j]].astype(np.float64)
                if mode == "constant":
                    pixels[above_out[i] | left_out[j]] = pad_value
                item += (row_weight * column_weight)[..., None] * pixels
    result = (items - mean) / std
    return result.transpose(0, 3, 1, 2) if layout == "NCHW" else result


def in_quad(quad: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Columns and rows, (2, height * width), of an item's samples: the perspective map that takes its corners to four
    others, by the equations that these are, as `cv2.getPerspectiveTransform` solves them."""
    height, width = size
    equations, right = [], []
    for (x, y), (u, v) in zip([(0, 0), (width, 0), (width, height), (0, height)], quad, strict=True):
        equations += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
        right += [u, v]
    y, x = np.mgrid[:height, :width].reshape(2, -1) + 0.5
    there = np.append(np.linalg.solve(equations, right), 1).reshape(3, 3) @ np.stack([x, y, np.ones(x.shape)])
    return there[:2] / there[2] - 0.5  # type: ignore[no-any-return]


def cut(boxes: np.ndarray, frame: np.ndarray) -> np.ndarray:
    """Boxes (..., 4) without what lies beyond a frame (H, W, C)."""
    height, width = frame.shape[:2]
    return np.clip(boxes, 0, (width, height, width, height))


def _surroundings(
    frame: np.ndarray, box: np.ndarray, size: tuple[int, int], pad_mode: str, pad_value: float | np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """All that a box may read of a frame that goes on for ever, and where the box lies in it."""
    low, high = np.floor(box[:2]).astype(int), np.ceil(box[2:]).astype(int)
    reach = ((box[2:] - box[:2]) / size[::-1]).astype(int) + 3
    (across, left_out), (down, above_out) = (
        _mirrored(np.arange(low[axis] - reach[axis], high[axis] + reach[axis]), frame.shape[1 - axis], pad_mode)
        for axis in (0, 1)
    )
    pixels = frame[down[:, None], across].astype(np.float64)
    if pad_mode == "constant":
        pixels[above_out[:, None] | left_out] = pad_value
    return pixels, box - np.tile(low - reach, 2)


def _mirrored(index: np.ndarray, limit: int, pad_mode: str) -> tuple[np.ndarray, np.ndarray]:
    """The pixels that stand for those numbered `index`, of `limit` pixels, and which of these lie outside."""
    outside, last = (index < 0) | (index >= limit), limit - 1
    if pad_mode == "reflect" and last:
        return last - abs(index % (2 * last) - last), outside
    return index.clip(0, last), outside


def place(box: np.ndarray, size: tuple[int, int]) -> Place:
    """Where a box lies in an item that keeps its aspect ratio. To round a side up or down is a decision, not an error
    of rounding: it is taken in single precision here too."""
    x1, y1, x2, y2 = np.asarray(box, np.float32)
    width, height = (int(side) for side in geometry.inner_size(x2 - x1, y2 - y1, size[1], size[0]))
    return Place((size[1] - width) // 2, (size[0] - height) // 2, width, height)


def transforms(boxes: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """`scale_x, scale_y, shift_x, shift_y` from every item back to the frame, (N, 4) float64; boxes are not cut."""
    result = np.empty((len(boxes), 4))
    for row, box in zip(result, np.asarray(boxes, np.float64), strict=True):
        at = place(box, size)
        row[:2] = (box[2] - box[0]) / at.width, (box[3] - box[1]) / at.height
        row[2:] = box[:2] - row[:2] * (at.left, at.top)
    return result


def _bilinear(frame: np.ndarray, box: np.ndarray, size: tuple[int, int], beyond: bool) -> np.ndarray:
    """One box at `size`, (height, width, C), each pixel between its four neighbours."""
    x_low, x_high, x_weight = _neighbours(box[0], box[2], size[1], frame.shape[1] if beyond else None)
    y_low, y_high, y_weight = _neighbours(box[1], box[3], size[0], frame.shape[0] if beyond else None)
    wx, wy = x_weight[None, :, None], y_weight[:, None, None]
    top, bottom = y_low[0], y_high[-1] + 1
    rows = frame[top:bottom]
    wide = rows[:, x_low].astype(np.float64)
    wide += (rows[:, x_high] - wide) * wx
    result = wide[y_low - top]
    result += (wide[y_high - top] - result) * wy
    return result


def _neighbours(low: float, high: float, count: int, limit: int | None) -> tuple[np.ndarray, ...]:
    first, last = _usable(low, high, limit, 1)
    position = np.clip(_centres(low, high, count), first, last)
    lower = np.floor(position).astype(int)
    return lower, np.minimum(lower + 1, last), position - lower


def _taps(position: np.ndarray, filter: str) -> tuple[np.ndarray, np.ndarray]:
    """Pixels around positions, (taps, ...), and their weights."""
    if filter == "nearest":
        return np.floor(position + 0.5).astype(int)[None], np.ones((1, *position.shape))
    first = np.floor(position).astype(int)
    pixels = np.stack([first + i for i in ((0, 1) if filter == "bilinear" else (-1, 0, 1, 2))])
    distance, a = np.abs(position - pixels), -0.75
    if filter == "bilinear":
        return pixels, 1 - distance
    near = ((a + 2) * distance - (a + 3)) * distance**2 + 1
    far = a * (((distance - 5) * distance + 8) * distance - 4)
    return pixels, np.where(distance <= 1, near, far)


def _nearest(frame: np.ndarray, box: np.ndarray, size: tuple[int, int], beyond: bool) -> np.ndarray:
    """One box at `size`, each pixel that of the frame in which its centre lies."""
    across, down = (
        # Multiplied before it is divided, so that a centre on an edge between whole pixels is there exactly.
        np.floor(box[axis] + (2 * np.arange(n) + 1) * (box[axis + 2] - box[axis]) / (2 * n)).astype(int)
        for axis, n in ((0, size[1]), (1, size[0]))
    )
    return frame[down[:, None], across].astype(np.float64)


def _bicubic(frame: np.ndarray, box: np.ndarray, size: tuple[int, int], beyond: bool) -> np.ndarray:
    """One box at `size`, each pixel a sum of four by four around it."""
    weights = []
    for axis, n, limit in ((0, size[1], frame.shape[1]), (1, size[0], frame.shape[0])):
        first, last = _usable(box[axis], box[axis + 2], limit if beyond else None, 2)
        pixels, shares = _taps(_centres(box[axis], box[axis + 2], n), "bicubic")
        matrix = np.zeros((n, limit))
        np.add.at(matrix, (np.arange(n), pixels.clip(first, last)), shares)
        weights.append(matrix)
    across, down = weights
    return np.einsum("yr,xc,rck->yxk", down, across, frame.astype(np.float64), optimize=True)


def _filtered(frame: np.ndarray, box: np.ndarray, size: tuple[int, int], beyond: bool) -> np.ndarray:
    """One box at `size`, (height, width, C), each pixel the weighted mean of those under a triangle."""
    left, across = _triangles(box[0], box[2], size[1], frame.shape[1] if beyond else None)
    top, down = _triangles(box[1], box[3], size[0], frame.shape[0] if beyond else None)
    pixels = frame[top : top + down.shape[1], left : left + across.shape[1]].astype(np.float64)
    return np.einsum("yr,xc,rck->yxk", down, across, pixels, optimize=True)


def _triangles(low: float, high: float, count: int, limit: int | None) -> tuple[int, np.ndarray]:
    """First source pixel, and the weights of all (columns) in every output pixel (rows), each row summing to 1."""
    support = max((high - low) / count, 1.0)
    first, last = _usable(low, high, limit, int(support) + 1)
    distance = np.abs(np.arange(first, last + 1) - _centres(low, high, count)[:, None])
    weights = (1 - distance / support).clip(0)
    return first, weights / weights.sum(axis=1, keepdims=True)


def _usable(low: float, high: float, limit: int | None, reach: int) -> tuple[int, int]:
    """First and last pixel that may be read: those that the box touches, or within a frame of `limit` also beyond."""
    first, last = int(np.floor(low)), int(np.ceil(high)) - 1
    return (first, last) if limit is None else (max(first - reach, 0), min(last + reach, limit - 1))


def _centres(low: float, high: float, count: int) -> np.ndarray:
    """Where output pixels are sampled, relative to the centre of the frame's first pixel."""
    return low + (np.arange(count) + 0.5) * (high - low) / count - 0.5
