"""CPU kernels, compiled by Numba and kept on disk."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numba

from octopus.backends import cache


def compiled(**options: Any) -> Callable[[Callable], Callable]:
    """`numba.njit(cache=True, ...)` whose cache also notices a change in the other kernel files.

    Numba compares the date of the function's own file alone, so the folder carries the digest of all of them.
    The folder is a process-wide setting of Numba that it reads when a function is decorated; it is put back, so that
    a user's own cached functions stay where they were.
    """

    def decorate(function: Callable) -> Callable:
        before = numba.config.CACHE_DIR
        if "NUMBA_CACHE_DIR" not in os.environ:
            numba.config.CACHE_DIR = str(cache.cache_dir() / f"cpu-{cache.kernel_digest('cpu')}")
        try:
            return numba.njit(cache=True, nogil=True, **options)(function)
        finally:
            numba.config.CACHE_DIR = before

    return decorate
