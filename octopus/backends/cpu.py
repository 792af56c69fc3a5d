"""CPU backend: how many threads work, and how much memory is free."""

from __future__ import annotations

import psutil

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
    """Host memory that can be had without swapping, in bytes."""
    return int(psutil.virtual_memory().available)
