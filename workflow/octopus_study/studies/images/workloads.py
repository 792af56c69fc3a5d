"""The images: how many, how large by which rule, which pixels, and what is made of them.

The rule of the sizes: each side by itself is log-uniform between two ends, so that every octave has as many sides as
the next, rounded to whole pixels, from a generator seeded with the run's seed and the ends. An image is the part of the
data set's frame that begins at a random pixel; where the frame ends it goes on mirrored.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from octopus_study.studies.context import Context

ROWS, BATCH = "rows", "batch"
SIDE = 224  # of the images of a batch


class Batch(NamedTuple):
    """A batch of images.

    Attributes
    ----------
    images : int
        How many on a GPU.
    low, high : (int, int)
        Least and largest height and width.
    task : {"rows", "batch"}
        Patch rows as Qwen2-VL takes them, or a batch of 224 x 224 px as SigLIP does.
    """

    images: int
    low: tuple[int, int]
    high: tuple[int, int]
    task: str = ROWS


BATCHES = {
    "large": Batch(32, (512, 512), (2048, 2048)),
    "small": Batch(256, (64, 64), (512, 512)),
    "thumbnails": Batch(256, (256, 256), (1024, 1024), BATCH),
    "equal": Batch(32, (1024, 1024), (1024, 1024)),
    "one": Batch(1, (1080, 1920), (1080, 1920)),
}


def count_of(context: Context, workload: str) -> int:
    """How many images a batch has on this device."""
    count = BATCHES[workload].images
    return count if context.device == "cuda" else max(1, count // context.config.images.cpu_part)


def sides(workload: str, count: int, seed: int) -> NDArray[np.int64]:
    """Heights and widths, (count, 2); the first ones don't depend on `count`."""
    batch = BATCHES[workload]
    low, high = np.array(batch.low), np.array(batch.high)
    drawn = np.random.default_rng([seed, *batch.low, *batch.high]).random((count, 2))
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


def images_of(context: Context, workload: str) -> list[NDArray[np.uint8]]:
    """The images of a workload on this device."""
    sizes = sides(workload, count_of(context, workload), context.seed)
    return cut(context.workload.frame, sizes, context.seed)
