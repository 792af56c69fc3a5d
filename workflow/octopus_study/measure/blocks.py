"""What every loop of measurements does: warm methods up, run all of them once in random order, and keep what counts."""

import gc
import logging
import math
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from octopus_study.errors import MeasureError
from octopus_study.measure._samples import Question, Samples
from octopus_study.measure.at_work import at_work
from octopus_study.measure.clocks import Clock
from octopus_study.measure.methods import Method
from octopus_study.measure.rows import describe

log = logging.getLogger(__name__)

WARM_UP_RUNS = 2


@dataclass
class Blocks:
    """Blocks of one comparison; `alive` holds the methods that have not failed."""

    question: Question
    alive: list[Method]
    clock: Clock
    seed: int
    samples: Samples

    def warm_up(self, runs: int = WARM_UP_RUNS) -> None:
        """Run each method until compilation, first touches and clocks are out of the way."""
        self.clock.settle()
        for method in list(self.alive):
            self.samples.times[method.name] = {}
            for _ in range(runs):
                if self._time(method) is None:
                    break
        # What was throttled during the warm-up is no block's fault.
        self.clock.throttled()

    def block(self, number: int) -> bool:
        """Run every living method once, keep the block only if all of it can be trusted, and tell whether it is."""
        self.clock.settle()
        order = block_order(self.question, self.seed, number, len(self.alive))
        with no_garbage_collection():
            times = self._times([self.alive[index] for index in order])
        reason = self.clock.throttled()
        if not times:
            return False
        if reason:
            self.samples.throttled.append(reason)
            log.debug("%s: block %d discarded, throttled (%s)", self.question, number, reason)
            return False
        for name, elapsed in times.items():
            self.samples.times[name][number] = elapsed
        return True

    def _times(self, methods: Sequence[Method]) -> dict[str, float]:
        """Return the milliseconds of each method, or nothing when one of them fails."""
        times: dict[str, float] = {}
        for method in methods:
            elapsed = self._time(method)
            if elapsed is None:
                return {}
            times[method.name] = elapsed
        return times

    def _time(self, method: Method) -> float | None:
        """Return the milliseconds of one run; None when it fails, and the method is then taken out."""
        try:
            with at_work(method.name):
                elapsed = self.clock.time(method.run)
            if not (math.isfinite(elapsed) and elapsed > 0):
                raise MeasureError(f"the clock gave {elapsed} ms: below its resolution, or no time at all")
        except Exception as error:  # any failure of a method is a row, never the end of the study
            self.samples.drop(method.name, describe(error))
            self.alive.remove(method)
            return None
        return elapsed


def block_order(question: Question, seed: int, number: int, count: int) -> np.ndarray:
    """Return the order, shape (count,), of the methods in block `number`; the same for the same arguments."""
    group = zlib.crc32(repr(tuple(question)).encode())
    return np.random.default_rng([seed, group, number]).permutation(count)


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Keep Python's cyclic garbage collector from running within a block."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
