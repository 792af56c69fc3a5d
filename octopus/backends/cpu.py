"""CPU backend: how many threads work, and how much memory is free."""

from __future__ import annotations

import os

import psutil

from octopus.errors import InputError


def available_threads() -> int:
    """Threads that this process may run at once, whatever `OMP_NUM_THREADS` says.

    Snakemake's `--cores 1` exports `OMP_NUM_THREADS=1` to its jobs, which is its own scheduling and no wish
    of the user, so the affinity mask decides.
    """
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else (os.cpu_count() or 1)


def set_threads(count: int) -> int:
    """Make the CPU kernels use `count` threads and return the number they used before.

    Raises
    ------
    InputError
        If `count` is not between 1 and the size of Numba's thread pool, which is fixed when it starts.
    """
    import numba

    pool = numba.config.NUMBA_NUM_THREADS
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
