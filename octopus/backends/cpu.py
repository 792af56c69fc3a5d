"""CPU backend: how many threads work, and how much memory is free."""

from __future__ import annotations

import os
import sys

from octopus.errors import InputError


def pool_size() -> int:
    """Threads that Numba's pool can have; fixed when the process starts (`NUMBA_NUM_THREADS`)."""
    import numba

    return int(numba.config.NUMBA_NUM_THREADS)


def set_threads(count: int) -> int:
    """Make the CPU kernels use `count` threads and return the number they used before.

    Raises
    ------
    InputError
        If `count` is not between 1 and the size of Numba's thread pool, which is fixed when it starts.
    """
    import numba

    pool = pool_size()
    if not 1 <= count <= pool:
        raise InputError(
            f"{count} threads were asked for; the pool holds 1 to {pool} (set NUMBA_NUM_THREADS before the start)"
        )
    before = numba.get_num_threads()
    numba.set_num_threads(count)
    return before


def free_bytes() -> int:
    """Host memory that can be had without swapping, in bytes; where the system doesn't say, all that it has."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            return next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):  # not Linux
        known = getattr(os, "sysconf_names", {})
        return (
            os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
            if "SC_PHYS_PAGES" in known
            else sys.maxsize
        )
