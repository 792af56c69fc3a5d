"""Kernels that measure the machine's memory with all threads, and a call that does nothing."""

import numba
import numpy as np

from octopus_study.kernels.cpu import compiled

PART = 1 << 16  # floats per parallel block: 256 KiB, so that every thread has its own pages


@compiled(parallel=True)
def write(target, value):
    """Set every element of a flat float32 array."""
    for block in numba.prange((target.size + PART - 1) // PART):
        part = target[block * PART : (block + 1) * PART]
        for i in range(part.size):
            part[i] = value


@compiled(parallel=True)
def copy(source, target):
    """Copy a flat float32 array."""
    for block in numba.prange((target.size + PART - 1) // PART):
        mine, yours = target[block * PART : (block + 1) * PART], source[block * PART : (block + 1) * PART]
        for i in range(mine.size):
            mine[i] = yours[i]


@compiled(parallel=True)
def read(source):
    """Bits of all elements, combined by exclusive or: integer arithmetic, so that it can be vectorised freely."""
    bits = source.view(np.uint32)
    combined = np.zeros((bits.size + PART - 1) // PART, np.uint32)
    for block in numba.prange(combined.size):
        value = np.uint32(0)
        part = bits[block * PART : (block + 1) * PART]
        for i in range(part.size):
            value ^= part[i]
        combined[block] = value
    return combined


@compiled(parallel=True)
def empty(flags):
    """One parallel region that does next to nothing: what remains is the call and the hand-over to the threads."""
    for thread in numba.prange(flags.size):
        flags[thread] = 1
