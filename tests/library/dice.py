"""Choices of random calls."""

from __future__ import annotations

from typing import Any

import numpy as np


class Dice:
    """A generator of random numbers, and the two questions that are asked most."""

    def __init__(self, random: np.random.Generator) -> None:
        self.random = random

    def pick(self, *values: Any) -> Any:
        """One of them, all as likely."""
        return values[self.random.integers(len(values))]

    def few(self, chance: float) -> bool:
        """Whether it happens."""
        return bool(self.random.random() < chance)

    def upto(self, most: int) -> int:
        """A whole number from 1 to `most`."""
        return int(self.random.integers(1, most + 1))
