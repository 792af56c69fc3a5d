"""A clock whose methods say how long they took, so that the runner can be tested without waiting."""

from collections.abc import Callable

import numpy as np

from octopus_study.measure import Method


class FakeClock:
    """Returns what the run returns as milliseconds, and reports throttling in the blocks that it is told."""

    def __init__(self, throttled_blocks: Callable[[int], bool] = lambda block: False, layer: str = "host") -> None:
        self.layer = layer
        self.throttled_blocks = throttled_blocks
        self.now = 0.0
        self.block = -2  # settling for the warm-up makes it -1, for the first block 0
        self.slowed = False

    def time(self, run: Callable[[], object]) -> float:
        elapsed = run()
        self.now += elapsed / 1e3
        return elapsed

    def settle(self) -> None:
        self.block += 1
        self.slowed |= self.throttled_blocks(self.block)

    def throttled(self) -> str | None:
        slowed, self.slowed = self.slowed, False
        return "power cap" if slowed else None

    def wall(self) -> float:
        """Seconds that the runs took so far, as the runner's wall clock."""
        return self.now


def steady(name: str, milliseconds: float, calls: list[str] | None = None) -> Method:
    """Make a method that takes the given milliseconds each time, and notes its calls."""

    def run() -> float:
        if calls is not None:
            calls.append(name)
        return milliseconds

    return Method(name, run)


def noisy(name: str, median: float, spread: float, seed: int) -> Method:
    """Make a method whose times scatter log-normally around a median."""
    rng = np.random.default_rng(seed)
    return Method(name, lambda: median * float(np.exp(spread * rng.standard_normal())))
