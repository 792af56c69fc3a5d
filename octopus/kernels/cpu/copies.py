"""Copies from one place of the host's memory to another, many small ones in a call."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import types

from octopus.kernels.cpu import next_block, pointer

_copy = types.ExternalFunction("memcpy", types.int64(types.int64, types.int64, types.int64))


def build() -> Callable:
    """The kernel that makes copies.

    Its arguments are `counter, copies`, then of each where it goes, where it comes from, and its bytes (all int64).
    """

    def copies(arguments):
        to, source, size = (
            pointer(arguments[2], np.int64), pointer(arguments[3], np.int64), pointer(arguments[4], np.int64),
        )  # fmt: skip
        while True:
            number = next_block(arguments[0])
            if number >= arguments[1]:
                return
            _copy(to[number], source[number], size[number])

    return copies
