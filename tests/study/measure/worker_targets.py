"""What the process of a worker, and that of `measure_memory`, is told to call in tests."""

import gc
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from octopus.errors import InputError
from octopus_study.measure import MemoryProbe, _memory_child, payload


def echo(*arguments, **options):
    print("a library speaks on the standard output")
    return arguments, options


def wrong():
    raise InputError("so not")


def fails():
    return 1 / 0


def dies():
    sys.exit("CUDA error: out of memory")


def killed():
    os.kill(os.getpid(), 9)


def hangs():
    print("still loading", file=sys.stderr, flush=True)
    time.sleep(60)


def leaves_a_child():
    """End, while a process that has all pipes goes on."""
    if os.fork() == 0:
        time.sleep(20)
    os._exit(7)


def large(size):
    return bytes(size)


def process():
    return os.getpid()


def environment(name):
    return os.environ.get(name)


def read_input():
    return subprocess.run(["cat"], stdout=subprocess.PIPE, check=True).stdout


class Counter:
    """Counts how often it was read between requests."""

    def __init__(self, first):
        self.count = first

    def wait_s(self):
        return 0.01

    def read(self):
        self.count += 1

    def found(self):
        return self.count


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
