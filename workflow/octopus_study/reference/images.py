"""Resizing images in the plainest way, in NumPy float64; every fast version is checked against it.

Each pass is a matrix of weights, one row for each output pixel. Semantics: `octopus.images.resize`; sources of the
arithmetic: `kernels.images`.
"""

from collections.abc import Callable, Sequence

import numpy as np

BITS = 22  # fraction of Pillow's weights


def _triangle(x: np.ndarray) -> np.ndarray:
    return np.where(x < 1, 1 - x, 0)


def _cubic(a: float) -> Callable[[np.ndarray], np.ndarray]:
    def weight(x: np.ndarray) -> np.ndarray:
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        return np.where(x < 1, near, np.where(x < 2, (((x - 5) * x + 8) * x - 4) * a, 0))

    return weight


def _lanczos(x: np.ndarray) -> np.ndarray:
    return np.where(x < 3, np.sinc(x) * np.sinc(x / 3), 0)


FILTERS = {"bilinear": (1.0, _triangle), "bicubic": (2.0, _cubic(-0.5)), "lanczos": (3.0, _lanczos)}


def weights(size: int, count: int, filter: str, antialias: bool) -> np.ndarray:
    """Weights of all source pixels (columns) in every output pixel (rows), (count, size) float64, each row summing to
    1, of an axis of `size` pixels that becomes `count`."""
    scale = size / count
    if filter == "nearest":
        positions = np.cumsum([scale / 2] + [scale] * (count - 1))  # one after the other, as Pillow does
        return np.eye(size)[np.minimum(positions.astype(int), size - 1)]
    centres = (np.arange(count) + 0.5)[:, None] * scale
    if filter == "bicubic" and not antialias:
        return _clamped(size, centres)
    spread = max(scale, 1.0) if antialias else 1.0
    support, weight = FILTERS[filter]
    support *= spread
    pixels = np.arange(size)
    inside = pixels >= np.trunc(centres - support + 0.5)
    inside &= pixels < np.trunc(centres + support + 0.5)
    result = np.where(inside, weight(np.abs((pixels - centres + 0.5) * (1 / spread))), 0.0)
    total: np.ndarray = result / np.cumsum(result, axis=1)[:, -1:]
    return total


def _clamped(size: int, centres: np.ndarray) -> np.ndarray:
    """Torch's bicubic: four pixels each, those beyond the image being its border's."""
    result = np.zeros((len(centres), size))
    for row, centre in zip(result, centres[:, 0] - 0.5, strict=True):
        pixels = np.floor(centre) + np.arange(-1, 3)
        np.add.at(row, pixels.clip(0, size - 1).astype(int), _cubic(-0.75)(np.abs(pixels - centre)))
    return result


def resized(
    image: np.ndarray, size: tuple[int, int], filter: str, antialias: bool = True, rounding: str = "none"
) -> np.ndarray:
    """One image (H, W, C) at a size (height, width), in float64."""
    down = weights(image.shape[0], size[0], filter, antialias)
    across = weights(image.shape[1], size[1], filter, antialias)
    if rounding in ("pillow", "pillow12", "torch"):
        lost = np.subtract(image.shape[:2], size)
        if rounding == "pillow" and filter != "nearest" and lost[0] > max(2 * lost[1], 0):  # the vertical pass first
            image = _fixed_pass(down, image.astype(np.int64), rounding)
            down = np.eye(size[0])
        rows = _fixed_pass(across, image.astype(np.int64).transpose(1, 0, 2), rounding).transpose(1, 0, 2)
        return _fixed_pass(down, rows, rounding).astype(np.float64)
    rows = np.einsum("xc,rck->rxk", across, image.astype(np.float64), optimize=True)
    result: np.ndarray = np.einsum("yr,rxk->yxk", down, rows, optimize=True)
    return np.rint(result).clip(0, 255) if rounding == "uint8" else result


def _fixed_pass(share: np.ndarray, pixels: np.ndarray, rounding: str) -> np.ndarray:
    """One pass along the first axis: weights of 22 binary places, of torch as many as leave them below 2**15; then
    bytes again."""
    bits = BITS
    if rounding == "torch":
        bits = next(b for b in range(BITS + 1) if b == BITS or int(0.5 + share.max() * 2 ** (b + 1)) >= 1 << 15)
    fixed = np.trunc(share * 2**bits + np.where(share < 0, -0.5, 0.5)).astype(np.int64)
    total = np.einsum("yr,rxk->yxk", fixed, pixels) + (1 << (bits - 1))
    result: np.ndarray = (total >> bits).clip(0, 255)
    return result


def batch(
    images: Sequence[np.ndarray],
    sizes: Sequence[tuple[int, int]],
    item: tuple[int, int],
    *,
    corners: Sequence[tuple[int, int]] | None = None,
    layout: str = "NCHW",
    gain: np.ndarray | float = 1.0,
    bias: np.ndarray | float = 0.0,
    pad: np.ndarray | float = 0.0,
    filter: str = "bilinear",
    antialias: bool = True,
    rounding: str = "none",
) -> np.ndarray:
    """Images (H, W, C) resized, each to a size of its own, and cut or padded to one; float64, options as of
    `octopus.images.resize`. `corners` say where in the resized image an item begins, negative: so much padding before
    it; `gain` and `bias` are the normalisation, and `pad` is normalised."""
    result = np.empty((len(images), *item, images[0].shape[2]))
    result[:] = pad
    for target, image, size, (top, left) in zip(result, images, sizes, corners or [(0, 0)] * len(images), strict=True):
        y, x = np.arange(item[0]) + top, np.arange(item[1]) + left
        rows, columns = (y >= 0) & (y < size[0]), (x >= 0) & (x < size[1])
        pixels = resized(image, size, filter, antialias, rounding) * gain + bias
        target[np.ix_(rows, columns)] = pixels[np.ix_(y[rows], x[columns])]
    return result.transpose(0, 3, 1, 2) if layout == "NCHW" else result


def each(
    images: Sequence[np.ndarray], sizes: Sequence[tuple[int, int]], *, layout: str = "NCHW", **options: object
) -> np.ndarray:
    """Images resized to sizes of their own, one after the other, flat; options as of `batch`."""
    items = [
        batch([image], [size], size, layout=layout, **options)  # type: ignore[arg-type]
        for image, size in zip(images, sizes, strict=True)
    ]
    return np.concatenate([item.ravel() for item in items])


def rows(
    images: Sequence[np.ndarray],
    sizes: Sequence[tuple[int, int]],
    patch: int,
    merge: int,
    temporal: int,
    *,
    order: str = "CTPP",
    max_rows: int | None = None,
    **options: object,
) -> np.ndarray:
    """Patch rows of images, (R, K) or, with `max_rows`, (N, max_rows, K), in the order (grid_h/merge, grid_w/merge,
    merge, merge) of their patches; in a row (C, T, P, P) or (P, P, C). Options as of `batch`."""
    blocks = [
        _patches(batch([image], [size], size, layout="NHWC", **options)[0], patch, merge, temporal, order)  # type: ignore[arg-type]
        for image, size in zip(images, sizes, strict=True)
    ]
    if max_rows is None:
        return np.concatenate(blocks)
    padded = np.zeros((len(images), max_rows, blocks[0].shape[1]))
    for target, block in zip(padded, blocks, strict=True):
        target[: len(block)] = block
    return padded


def _patches(image: np.ndarray, patch: int, merge: int, temporal: int, order: str) -> np.ndarray:
    height, width, channels = image.shape
    side = patch * merge
    parts = image.reshape(height // side, merge, patch, width // side, merge, patch, channels)
    if order == "PPC":
        return parts.transpose(0, 3, 1, 4, 2, 5, 6).reshape(-1, patch * patch * channels)
    parts = parts.transpose(0, 3, 1, 4, 6, 2, 5).reshape(-1, channels, 1, patch * patch)
    return np.repeat(parts, temporal, axis=2).reshape(len(parts), -1)


def cast(values: np.ndarray, dtype: str) -> np.ndarray:
    """Results in a dtype; bfloat16 as its bits, uint16."""
    if dtype == "uint8":
        return np.rint(values).clip(0, 255).astype(np.uint8)
    if dtype != "bfloat16":
        with np.errstate(over="ignore"):
            return values.astype(np.float32).astype(dtype)
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
