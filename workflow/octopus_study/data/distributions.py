"""Box-size distributions of the published experiments, and what padding them would waste.

The generators repeat the published draws one by one (`numpy.random.RandomState`, ``randint`` with an
exclusive upper end), so that counts and sizes can be compared to the digit: they are written as loops
on purpose, since a vectorised draw takes the numbers in another order.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray

from octopus.errors import InputError

MEBIBYTE = 2**20
SMALLEST = 16
"""Smallest side, in pixels, that any generator draws."""

Boxes = NDArray[np.int32]
"""N x 4 int32, ``xyxy`` in pixels; the right and lower ends are exclusive."""


def uniform(n: int, width: int, height: int, seed: int = 42) -> Boxes:
    """Sides uniform in 16..512; returns (n, 4) int32 ``xyxy`` inside a width x height frame."""
    return _generate(n, width, height, seed, lambda random: (16, 513))


def long_tail(n: int, width: int, height: int, seed: int = 42) -> Boxes:
    """80 % of the boxes with sides 16..60, 15 % 60..150, 5 % 150..400; returns (n, 4) int32 ``xyxy``."""
    return _generate(n, width, height, seed, _long_tail_range)


def bimodal(n: int, width: int, height: int, seed: int = 42) -> Boxes:
    """60 % of the boxes with sides 96..160, 40 % 384..512; returns (n, 4) int32 ``xyxy``."""
    return _generate(n, width, height, seed, _bimodal_range)


@dataclass(frozen=True)
class PaddingWaste:
    """Bytes of the boxes' own pixels, bytes when all are padded to the largest, and the share wasted."""

    actual_bytes: int
    padded_bytes: int

    @property
    def fraction(self) -> float:
        """Share of the padded batch that is padding, 0..1."""
        return 1.0 - self.actual_bytes / self.padded_bytes if self.padded_bytes else 0.0


def padding_waste(boxes: ArrayLike, channels: int = 3, itemsize: int = 1) -> PaddingWaste:
    """Memory of a batch of crops, ragged and padded to (largest width) x (largest height) of the batch. The two maxima
    may come from different boxes, (N, 4) ``xyxy`` in whole pixels. Published values are in MB = 2**20 bytes, and both
    MB and per cent are rounded to the nearest whole number: 17.76 MB is printed as 18, 72.7 % as 73 %."""
    widths, heights = _sides(boxes)
    pixel = channels * itemsize
    largest = int(widths.max(initial=0)) * int(heights.max(initial=0))
    return PaddingWaste(int((widths * heights).sum()) * pixel, len(widths) * largest * pixel)


def size_quantiles(boxes: ArrayLike, percentiles: Sequence[float] = range(101)) -> NDArray[np.float64]:
    """Percentiles of the boxes' width and height in pixels, (len(percentiles), 2) float64, linear between boxes."""
    return np.percentile(np.stack(_sides(boxes), axis=1), percentiles, axis=0)


def satellite_tiles(width: int, height: int, seed: int = 42) -> Boxes:
    """Cut a scene into rows of tiles with random sides; (T, 4) int32 ``xyxy``, row by row, that cover it exactly once.

    The rule that gives the published 727 tiles for 8192 x 8192: from the top, draw *one height per row* (``randint(128,
    513)``), then from the left draw a width per tile (the same range) until the row is full. Tiles are clipped at the
    right and lower edges, and clipped tiles are kept however small.
    """
    if width < 1 or height < 1:
        raise InputError(f"a scene of {width} x {height} px has nothing to cut; give sides of at least 1 px")
    random, tiles, top = RandomState(seed), [], 0
    while top < height:
        bottom, left = top + random.randint(128, 513), 0
        while left < width:
            right = left + random.randint(128, 513)
            tiles.append((left, top, min(right, width), min(bottom, height)))
            left = right
        top = bottom
    return np.array(tiles, dtype=np.int32)


def _long_tail_range(random: RandomState) -> tuple[int, int]:
    draw = random.random_sample()
    if draw < 0.80:
        return 16, 61
    return (60, 151) if draw < 0.95 else (150, 401)


def _bimodal_range(random: RandomState) -> tuple[int, int]:
    return (96, 161) if random.random_sample() < 0.60 else (384, 513)


def _generate(
    n: int, width: int, height: int, seed: int, side_range: Callable[[RandomState], tuple[int, int]]
) -> Boxes:
    if n < 0:
        raise InputError(f"asked for {n} boxes; n must be 0 or more")
    random = RandomState(seed)
    boxes = np.empty((n, 4), dtype=np.int32)
    for box in boxes:
        low, high = side_range(random)
        w, h = random.randint(low, high), random.randint(low, high)
        x = random.randint(1, max(2, width - w - 2))
        y = random.randint(1, max(2, height - h - 2))
        box[:] = x, y, x + w, y + h
    _check_inside(boxes, width, height)
    return boxes


def _check_inside(boxes: Boxes, width: int, height: int) -> None:
    if len(boxes) and (boxes[:, 2].max() > width or boxes[:, 3].max() > height):
        right, bottom = boxes[:, 2:].max(axis=0)
        raise InputError(
            f"asked for boxes in a {width} x {height} frame, but they reach ({right}, {bottom}); "
            "use a frame larger than the distribution's largest box"
        )


def _sides(boxes: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    array = np.asarray(boxes)
    if array.ndim != 2 or array.shape[1] != 4:
        raise InputError(f"boxes have the shape {array.shape}; expected (N, 4), xyxy in pixels")
    array = array.astype(np.int64)
    return array[:, 2] - array[:, 0], array[:, 3] - array[:, 1]
