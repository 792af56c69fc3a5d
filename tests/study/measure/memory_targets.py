"""Targets of `measure_memory`, imported by its fresh process."""

import gc
import os
import sys
from pathlib import Path

import numpy as np

from octopus_study.measure import MemoryProbe, _memory_child, payload

MIB = 1 << 20


def blocks(keep: int, scratch: int = 0, fixed: int = 0, allocator: int | None = None) -> MemoryProbe:
    """Hold `fixed` MiB from the start; the run needs `scratch` MiB for a while and keeps `keep` MiB."""
    state = np.ones(fixed * MIB, np.uint8)

    def run() -> object:
        temporary = np.ones(scratch * MIB, np.uint8)
        del temporary
        return state, np.ones(keep * MIB, np.uint8)

    peak = None if allocator is None else lambda: allocator
    return MemoryProbe(payload(((keep * MIB,), "uint8")), run, peak)


def littered(litter: int, keep: int) -> MemoryProbe:
    """Leave cyclic garbage of `litter` MiB behind, which goes away at the beginning of the run."""
    ring: list[object] = [np.ones(litter * MIB, np.uint8)]
    ring.append(ring)

    def run() -> object:
        gc.collect()
        return np.ones(keep * MIB, np.uint8)

    return MemoryProbe(keep * MIB, run)


def broken() -> MemoryProbe:
    """Fail as a method does that is not installed."""
    raise ImportError("No module named 'cvcuda'")


def silent() -> MemoryProbe:
    """End the process without a word, as a crash does."""
    sys.exit(3)


def unforgetting() -> MemoryProbe:
    """Have a kernel that doesn't let the peak of resident memory be forgotten."""
    _memory_child.CLEAR_REFS = Path(os.devnull, "clear_refs")
    return blocks(4)
