"""The images: how many, how large by which rule, which pixels, and what is made of them.

`octopus_study.studies.pictures` has the rules of sizes and pixels.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from octopus_study.studies.context import Context
from octopus_study.studies.pictures import cut, log_uniform

ROWS, BATCH = "rows", "batch"
SIDE = 224  # of the images of a batch


class Batch(NamedTuple):
    """A batch of images."""

    images: int  # how many on a GPU
    # Least and largest height and width
    low: tuple[int, int]
    high: tuple[int, int]
    # {"rows", "batch"}: patch rows as Qwen2-VL takes them, or a batch of 224 x 224 px as SigLIP does
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
    return log_uniform(batch.low, batch.high, count, seed)


def images_of(context: Context, workload: str) -> list[NDArray[np.uint8]]:
    """The images of a workload on this device."""
    sizes = sides(workload, count_of(context, workload), context.seed)
    return cut(context.workload.frame, sizes, context.seed)
