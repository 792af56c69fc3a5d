"""Samples that don't stand for themselves: blocks of one process resemble each other, and so do neighbouring blocks.

A host's times differ from one process to the next by more than the blocks of one tell (addresses, the order in which
libraries were loaded, the state of the machine). Where several processes measured a comparison, its interval is over
their medians. Within one process blocks are taken to be independent; where neighbours resemble each other, they tell as
much as fewer independent ones would.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from octopus.errors import InputError

# The column `block` numbers the blocks of process p from p times this on. Blocks of one process are never so many.
PROCESS_BLOCKS = 10_000_000
LAYERS = ("host", "pipeline", "pipelined")  # of the host's clock, that several processes measure
WINDOWS = ("back_to_back", "paced")  # of energies, timed by the host's clock too
_LEAST = 10  # samples below which nothing can be said about neighbours
_ONE_SIDED = 1.645  # quantile of 95 %


def blocks_of(samples: object) -> np.ndarray | None:
    """Return the numbers of the blocks of a pandas Series or table indexed by ``block``; None of plain samples, which
    are those of one process. Any other index is an `InputError`: whatever it counts would be taken for blocks."""
    index = getattr(samples, "index", None)
    if not hasattr(index, "dtype"):  # a list has a method of that name
        return None
    if index.name != "block":
        raise InputError(f"Samples must be indexed by block, found the index {index.name!r}: use set_index.")
    return np.asarray(index)


def by_process(samples: np.ndarray, blocks: Sequence[int] | np.ndarray | None) -> list[np.ndarray]:
    """Split samples, shape (blocks,), into those of each process; without numbers of blocks there is one process."""
    if blocks is None:
        return [samples]
    processes = np.asarray(blocks) // PROCESS_BLOCKS
    return [samples[processes == process] for process in np.unique(processes)]


def process_count(samples: object) -> int:
    """Return how many processes measured samples that carry the numbers of their blocks; 1 for others."""
    blocks = blocks_of(samples)
    return 1 if blocks is None or not blocks.size else int(np.unique(blocks // PROCESS_BLOCKS).size)


def memory(samples: np.ndarray) -> float:
    """Return how many samples tell as much as one independent one would: 1 where neighbours are not alike. A drift
    remembers for longer than its first correlation tells, so all of them are summed up to the first that isn't
    significant."""
    return 1 + 2 * sum(_correlations(samples))


def _correlations(samples: np.ndarray) -> Iterator[float]:
    """Yield the correlations of ranks with those one, two … blocks later, as long as they are significant."""
    if samples.size < _LEAST:
        return
    ranks = np.unique(samples, return_inverse=True)[1].astype(np.float64)
    ranks -= ranks.mean()
    spread = float((ranks**2).sum())
    for lag in range(1, samples.size // 3):
        found = float((ranks[lag:] * ranks[:-lag]).sum()) / spread if spread else 0.0
        if found <= _ONE_SIDED / math.sqrt(samples.size):
            return
        yield found
