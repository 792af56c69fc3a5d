"""Images of sizes of their own, made of the data set's frame.

Each side by itself is log-uniform between two ends, so that every octave has as many sides as the next, rounded to
whole pixels, from a generator seeded with the run's seed and the ends. An image is the part of the frame that begins at
a random pixel; where the frame ends it goes on mirrored.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Sides = tuple[int, int]


class Batch(NamedTuple):
    """Images: how many on a GPU, and their least and largest height and width."""

    images: int
    least: Sides
    largest: Sides

    def number_on(self, device: str, cpu_part: int) -> int:
        """How many a device gets: a CPU one of `cpu_part`, and one at least."""
        return self.images if device == "cuda" else max(1, self.images // cpu_part)

    def cut(self, frame: NDArray[np.uint8], count: int, seed: int) -> list[NDArray[np.uint8]]:
        """So many of them, (height, width, C); sizes and places follow from the seed."""
        return cut(frame, log_uniform(self.least, self.largest, count, seed), seed)


def log_uniform(least: Sides, largest: Sides, count: int, seed: int) -> NDArray[np.int64]:
    """Heights and widths, (count, 2); the first ones don't depend on `count`."""
    low, high = np.array(least), np.array(largest)
    drawn = np.random.default_rng([seed, *least, *largest]).random((count, 2))
    return np.rint(low * (high / low) ** drawn).astype(np.int64)


def cut(frame: NDArray[np.uint8], sizes: NDArray[np.int64], seed: int) -> list[NDArray[np.uint8]]:
    """One image (height, width, C) per size, C-contiguous, at a random place of the frame."""
    places = np.random.default_rng(seed).random((len(sizes), 2))
    return [_cut(frame, *size, *place) for size, place in zip(sizes.tolist(), places.tolist(), strict=True)]


def _cut(frame: NDArray[np.uint8], height: int, width: int, down: float, right: float) -> NDArray[np.uint8]:
    rows, columns = (
        _mirrored(side, length, int(start * side))
        for side, length, start in zip(frame.shape, (height, width), (down, right), strict=False)
    )
    return frame[rows[:, None], columns]


def _mirrored(side: int, length: int, start: int) -> NDArray[np.int64]:
    """Numbers of `length` pixels from `start` on, back and forth between the ends of a side."""
    place = np.arange(start, start + length) % (2 * side)
    return np.minimum(place, 2 * side - 1 - place)
