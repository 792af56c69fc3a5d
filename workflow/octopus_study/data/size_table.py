"""Joint size statistics of the VisDrone pool, and the drawing of boxes from them.

``visdrone_sizes.csv`` holds them: statistics of the real boxes, none of the boxes themselves. It is what `size_table`
gives for `octopus_study.data.visdrone.load_pool` of the real val set (a test compares the two). Boxes are sorted by
width into ten bins of equal count. Each bin has 21 quantiles of its widths and 21 of its heights, so that wide boxes
keep the heights of wide boxes and the distribution of all heights is kept too; within a bin, width and height are drawn
independently.
"""

from pathlib import Path

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray

from octopus_study.data.visdrone import LARGEST, SMALLEST

TABLE_CSV = Path(__file__).with_name("visdrone_sizes.csv")
BINS = 10
LEVELS = np.linspace(0, 1, 21)


def size_table(boxes: ArrayLike) -> NDArray[np.float64]:
    """Quantiles of width and height in pixels per width bin and level (0, 0.05, ... 1), (10, 21, 2) float64, of at
    least ten boxes (N, 4) ``xyxy``."""
    corners = np.asarray(boxes, dtype=np.float64)
    sizes = corners[:, 2:] - corners[:, :2]
    order = np.lexsort((sizes[:, 1], sizes[:, 0]))
    return np.stack([np.quantile(sizes[chosen], LEVELS, axis=0) for chosen in np.array_split(order, BINS)])


def read_size_table(path: str | Path = TABLE_CSV) -> NDArray[np.float64]:
    """Read the committed table; returns (10, 21, 2) float64 as `size_table` does."""
    rows = np.loadtxt(path, delimiter=",", skiprows=1)
    return rows[:, 2:].reshape(BINS, len(LEVELS), 2)


def draw_sizes(table: NDArray[np.float64], n: int, random: RandomState) -> NDArray[np.int64]:
    """Draw `n` box sizes, (n, 2) int64 width and height within the pool's range of 16..320, with the distribution of
    `table`. Widths, and the heights of each bin, are stratified: one draw from each 1/n of the distribution, in random
    order. So the quantiles of even a small draw are close to the table's."""
    position = (np.arange(n) + random.random_sample(n)) / n * BINS
    bins = np.minimum(position.astype(int), BINS - 1)
    sizes = np.empty((n, 2))
    for index, quantiles in enumerate(table):
        inside = np.flatnonzero(bins == index)
        levels = (random.permutation(len(inside)) + random.random_sample(len(inside))) / max(len(inside), 1)
        sizes[inside, 0] = np.interp(position[inside] - index, LEVELS, quantiles[:, 0])
        sizes[inside, 1] = np.interp(levels, LEVELS, quantiles[:, 1])
    return np.clip(np.rint(random.permutation(sizes)), SMALLEST, LARGEST).astype(np.int64)
