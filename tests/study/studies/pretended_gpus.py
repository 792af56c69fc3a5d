"""Devices for workers where there is no GPU: memory of the host, and faults by rank."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus_study.studies.scaling.gpu import VISIBLE

STATUS = 3  # with which a dying process ends


class Pretended:
    """The CPU, in place of a GPU of a rank."""

    name, stream = "cpu", None

    def __init__(self, ordinal: int, alone: bool) -> None:
        self.rank = int(os.environ[VISIBLE]) if alone else ordinal

    def pinned(self, values: NDArray[Any]) -> NDArray[Any]:
        return values.copy()

    place = pinned

    def part(self, there: NDArray[Any], start: int, shape: tuple[int, ...]) -> NDArray[Any]:
        return there[start : start + int(np.prod(shape))].reshape(shape)

    def copy(self, there: NDArray[Any], values: NDArray[Any]) -> None:
        there[...] = values

    def poison(self, there: NDArray[Any]) -> None:
        there.reshape(-1).view(np.uint8)[...] = 0xFF

    def fetch(self, there: NDArray[Any]) -> NDArray[Any]:
        return there

    def synchronize(self) -> None:
        return None

    def throttled(self) -> str | None:
        return None


class Lossy(Pretended):
    """The second one's uploads get lost."""

    def copy(self, there: NDArray[Any], values: NDArray[Any]) -> None:
        if self.rank != 1:
            super().copy(there, values)


class Mortal(Pretended):
    """The second one's process ends within its second block; a thread is well."""

    def __init__(self, ordinal: int, alone: bool) -> None:
        super().__init__(ordinal, alone)
        self._left = 5 if alone and self.rank == 1 else -1

    def synchronize(self) -> None:
        self._left -= 1
        if self._left == 0:
            os._exit(STATUS)


class Failing(Pretended):
    """The second one can't be had."""

    def __init__(self, ordinal: int, alone: bool) -> None:
        super().__init__(ordinal, alone)
        if self.rank == 1:
            raise RuntimeError("no memory is left")


class Slow(Pretended):
    """Each takes ten milliseconds more than the one before; the third one is hot."""

    def synchronize(self) -> None:
        time.sleep(0.01 * (1 + self.rank))

    def throttled(self) -> str | None:
        return "thermal limit" if self.rank == 2 else None
