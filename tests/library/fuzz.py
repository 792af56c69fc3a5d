"""Random calls on the CPU, with guard pages around all memory, drawn by hypothesis until the time is over.

    python tests/library/fuzz.py crops --seed 7 --seconds 60        the clock starts when the kernels are loaded

The module of a kind has `warm_up`, which compiles or loads its kernels, and `draw`, which answers what a call is and a
function that makes it: that returns the largest error, or None if the call was rightly refused.
What a call is stands in `--progress` before it is made, so that it is known even if the process dies. A wrong answer is
made as small as it can be, and raised.
"""

import argparse
import itertools
import json
import sys
import time
from importlib import import_module
from pathlib import Path

import numpy as np
from guarded import READ, Guard
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import octopus

KINDS = {
    "crops": "fuzz_crops", "samples": "fuzz_crops", "varied": "fuzz_varied", "images": "fuzz_images", "ops": "fuzz_ops",
    "tiles": "fuzz_tiles",
}  # fmt: skip
SLOW = ("samples", "varied")  # to compile their kernels takes minutes
EXAMPLES = 200  # of hypothesis at a time


class Draw:
    """What random calls ask most."""

    guard = Guard()

    def __init__(self, draw: st.DrawFn) -> None:
        self.of, self.regions = draw, []
        self.random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))  # of pixels, which need no shrinking

    def pick(self, *values):
        """One of them; hypothesis prefers the first."""
        return self.of(st.sampled_from(values))

    def few(self, chance: float) -> bool:
        return self.of(st.integers(0, 99)) >= 100 * (1 - chance)

    def upto(self, most: int, least: int = 1) -> int:
        return self.of(st.integers(least, most))

    def array(self, name: str, shape, dtype, off: int = 0) -> np.ndarray:
        """An array that touches a guard page at one of its ends; `check` sees what is written beside it."""
        array = self.guard.array(name, shape, dtype, self.few(0.6), off)
        self.regions.append(self.guard.last)
        return array

    def frozen(self, array: np.ndarray, chance: float = 0.3) -> np.ndarray:
        """Now and then a read-only one, with its page."""
        if self.few(chance):
            array.flags.writeable = False
            self.guard.last.allow(READ)
        return array

    def intact(self) -> None:
        assert all(region.is_intact() for region in self.regions), "something was written beside an array"


class Progress:
    """The call at work, in a file that outlives the process."""

    def __init__(self, path: Path | None) -> None:
        self._file = path and path.open("w")

    def note(self, what: str) -> None:
        if self._file:
            self._file.seek(0)
            self._file.write(f"{what}\n\0")
            self._file.flush()


def loop(kind: str, number: int, seconds: float, progress: Progress) -> dict[str, float]:
    """Calls until the time is over: how many there were, how many were rightly refused, and the largest error."""
    module = import_module(KINDS[kind])
    module.warm_up(kind)
    found, stop = {"calls": 0, "refused": 0, "worst": 0.0}, time.monotonic() + seconds
    phases = [Phase.generate, Phase.shrink]

    @st.composite
    def calls(draw):
        drawn = Draw(draw)
        threads = drawn.pick(1, 1, 2, 3)
        return drawn, threads, module.draw(drawn, kind)

    def check(call):
        drawn, threads, (what, make) = call
        octopus.set_num_threads(threads)
        progress.note(f"{kind}: {what}, {threads} threads")
        try:
            error = make()
            drawn.intact()
        except Exception as wrong:
            raise AssertionError(f"{wrong!r:.1000}\n{kind}: {what}, {threads} threads") from wrong
        found["calls"] += 1
        found["refused"] += error is None
        found["worst"] = max(found["worst"], error or 0.0)

    options = {"database": None, "deadline": None, "phases": phases, "suppress_health_check": list(HealthCheck)}
    for turn in itertools.count():
        if time.monotonic() >= stop:
            return found
        seed(number + 1_000_003 * turn)(settings(max_examples=EXAMPLES, **options)(given(calls())(check)))()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--seed", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--progress", type=Path)
    asked = parser.parse_args()
    print(json.dumps(loop(asked.kind, asked.seed, asked.seconds, Progress(asked.progress))))


if __name__ == "__main__":
    sys.exit(main())
