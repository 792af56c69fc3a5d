"""CPU kernels, compiled by Numba and kept on disk."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numba

from octopus.backends import cache

log = logging.getLogger(__name__)


def compiled(**options: Any) -> Callable[[Callable], Callable]:
    """`numba.njit(cache=True, ...)` whose cache also notices a change in the other kernel files.

    Numba compares the date of the function's own file alone, so the folder carries the digest of all of them.
    The folder is a process-wide setting of Numba that it reads when a function is decorated; it is put back, so that
    a user's own cached functions stay where they were.
    """

    def decorate(function: Callable) -> Callable:
        before = numba.config.CACHE_DIR
        folder = _folder()
        numba.config.CACHE_DIR = str(folder or before)
        try:
            return numba.njit(cache=folder is not None, nogil=True, **options)(function)
        finally:
            numba.config.CACHE_DIR = before

    return decorate


@lru_cache(maxsize=1)
def _folder() -> Path | None:
    """Where compiled code goes; None if nothing can be written there.

    Numba would then fall back to a folder beside the source, whose key doesn't know the other kernel files.
    """
    root = Path(os.environ.get("NUMBA_CACHE_DIR") or cache.cache_dir())
    folder = root / f"cpu-{cache.kernel_digest('cpu')}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        log.warning("compiled kernels are not kept: %s can't be made (%s)", folder, error)
        return None
    return folder if os.access(folder, os.W_OK) else None
