"""Kernels for the CPU that only the studies need, compiled by Numba's own dispatcher and run by its threads."""

import os
from collections.abc import Callable
from typing import Any

import numba

from octopus.backends import cache


def compiled(**options: Any) -> Callable[[Callable], Callable]:
    """`numba.njit(cache=True, ...)` whose cache also notices a change in the library's kernel files. Numba compares the
    date of the function's own file alone, so the folder carries the digest of all of them. The folder is a process-wide
    setting of Numba that it reads when a function is decorated; it is put back."""

    def decorate(function: Callable) -> Callable:
        before = numba.config.CACHE_DIR
        folder = cache.own_dir() / f"numba-{cache.kernel_digest('cpu')}"
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:  # the library's own kernels say so
            return numba.njit(nogil=True, **options)(function)
        numba.config.CACHE_DIR = str(folder)
        try:
            return numba.njit(cache=os.access(folder, os.W_OK), nogil=True, **options)(function)
        finally:
            numba.config.CACHE_DIR = before

    return decorate
