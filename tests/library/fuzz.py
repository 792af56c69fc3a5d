"""Random calls, one after the other until the time is over, with guard pages around all memory.

    python tests/library/fuzz.py crop --seed 7 --seconds 60     many calls; the clock starts when the kernels are loaded
    python tests/library/fuzz.py crop --seed 7 --case 123       one of them again
    python tests/library/fuzz.py crop --seed 7 --case 123 --show    what it is, without doing it

A case follows from its kind, seed and number alone. The number is written to `--progress` before the call, so that it
is known even if the process dies.
"""

from __future__ import annotations

import argparse
import json
import mmap
import sys
import time
from importlib import import_module
from pathlib import Path

import numpy as np
from dice import Dice
from guarded import Guard

KINDS = {
    "crop": "fuzz_crop",
    "samples": "fuzz_samples",
    "images": "fuzz_images",
    "ops": "fuzz_ops",
    "tiles": "fuzz_tiles",
}
SLOW = ("samples",)  # to compile their kernels takes minutes


class Progress:
    """The number of the case at work, in a file that outlives the process."""

    def __init__(self, path: Path) -> None:
        path.write_bytes(bytes(8))
        with path.open("r+b") as file:
            self._number = np.frombuffer(mmap.mmap(file.fileno(), 8), np.int64)

    def note(self, number: int) -> None:
        """This one comes next."""
        self._number[0] = number


def command(kind: str, seed: int, number: int) -> str:
    """What repeats a case."""
    return f"python tests/library/fuzz.py {kind} --seed {seed} --case {number}"


def made(kind: str, seed: int, number: int, guard: Guard):
    """The case of that number."""
    return import_module(KINDS[kind]).make(Dice(np.random.default_rng([seed, number])), guard)


def loop(kind: str, seed: int, seconds: float, progress: Progress) -> dict[str, float]:
    """Cases from 0 on until the time is over: how many there were, and the largest of their errors."""
    import_module(KINDS[kind]).warm_up()
    guard, number, worst, refused = Guard(), 0, 0.0, 0
    stop = time.monotonic() + seconds
    while time.monotonic() < stop:
        progress.note(number)
        error = checked(kind, seed, number, guard)
        worst, refused = max(worst, error or 0.0), refused + (error is None)
        number += 1
    return {"calls": number, "refused": refused, "worst": worst}


def checked(kind: str, seed: int, number: int, guard: Guard) -> float | None:
    """Do one case and return its error as a part of the tolerance, None if the call was rightly refused."""
    case = made(kind, seed, number, guard)
    try:
        return case.check()
    except Exception as error:
        raise AssertionError(f"{error!r:.1000}\n{case}\nagain: {command(kind, seed, number)}") from error


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--seed", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--case", type=int)
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--progress", type=Path)
    given = parser.parse_args()
    if given.show:
        print(made(given.kind, given.seed, given.case, Guard()))
    elif given.case is not None:
        print(f"error {checked(given.kind, given.seed, given.case, Guard())} of the tolerance")
    else:
        print(json.dumps(loop(given.kind, given.seed, given.seconds, Progress(given.progress))))


if __name__ == "__main__":
    sys.exit(main())
