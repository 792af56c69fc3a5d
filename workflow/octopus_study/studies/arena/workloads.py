"""The arena's boxes: of one size, or large, at random places, or the data set's; and what padding them would waste."""

import numpy as np
from numpy.typing import NDArray

from octopus.errors import InputError
from octopus_study.data.workload import sample_boxes
from octopus_study.measure import Budget
from octopus_study.studies.context import Context

VISDRONE, LARGE = "visdrone", "large"
ONE_SCALE = f"{VISDRONE}-onescale"  # all channels have one mean and one deviation
LARGE_SIDES = (400, 900)  # least and most pixels of both sides: such boxes shrink to a usual result
MOST_SHARED = 1000  # boxes of the comparisons that are made at one size only: threads and memory
CHECKED = 50  # crops of the kernel's own comparisons that are compared with the reference


def uniform_boxes(count: int, width: int, height: int, side: int, seed: int) -> NDArray[np.int32]:
    """Boxes, (count, 4) int32, of exactly `side` x `side` pixels at random places of a frame; the first ones don't
    depend on `count`."""
    if side > min(width, height):
        raise InputError(
            f"boxes of {side} x {side} pixels don't fit into a frame of {width} x {height}; set arena.uniform_side"
        )
    corners = np.random.default_rng(seed).random((count, 2))
    first = (corners * (width - side + 1, height - side + 1)).astype(np.int32)
    return np.concatenate([first, first + np.int32(side)], axis=1)


def large_boxes(count: int, width: int, height: int, seed: int) -> NDArray[np.int32]:
    """Boxes, (count, 4) int32, with sides of `LARGE_SIDES`, as far as the frame has them, at random places."""
    generator, limits = np.random.default_rng(seed), np.array([width, height])
    least, most = (np.minimum(limits, side) for side in LARGE_SIDES)
    sides = generator.integers(least, most + 1, (count, 2))
    first = generator.integers(0, limits - sides + 1)
    return np.concatenate([first, first + sides], axis=1).astype(np.int32)


def boxes_of(context: Context, workload: str, count: int) -> NDArray[np.int32]:
    """The boxes of a workload on the data set's frame."""
    if workload in (VISDRONE, ONE_SCALE):
        return sample_boxes(context.workload.pool, count, context.seed)
    height, width, _ = context.workload.frame.shape
    if workload == LARGE:
        return large_boxes(count, width, height, context.seed)
    return uniform_boxes(count, width, height, context.config.arena.uniform_side, context.seed)


def shared_count(context: Context) -> int:
    """Boxes of the comparisons that are made at one size only."""
    return min(max(context.counts(context.config.arena)), MOST_SHARED)


def arena_budget(context: Context) -> Budget:
    """Limits of one comparison."""
    return context.budget_within(context.config.arena.max_seconds)
