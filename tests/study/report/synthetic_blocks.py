"""Paired blocks for made-up rows, as `measure` times methods. No value here was measured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from octopus_study.measure.rows import Case, Row

BLOCKS = 24


def timed(
    rng: np.random.Generator, case: Case, layer: str, quantity: str, times: dict[str, float], answer: str = "same"
) -> Iterator[Row]:
    """Yield paired blocks: noise of the block shared by all methods, and a little of each method's own."""
    for block in range(BLOCKS):
        shared = rng.normal(1, 0.02)
        for method, time in times.items():
            value = time * shared * rng.normal(1, 0.005)
            yield case.row(method, layer, quantity, "ms", value, block=block, answer=answer)


def again(times: dict[str, Any], method: str = "octopus") -> dict[str, Any]:
    """Enter a method, Octopus by default, a second time."""
    return times | {f"{method}-again": times[method]}
