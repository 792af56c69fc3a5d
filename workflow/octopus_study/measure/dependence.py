"""Samples that don't stand for themselves: blocks of one process resemble each other, and so do neighbouring blocks.

A host's times differ from one process to the next by more than the blocks of one tell (addresses, the order in which
libraries were loaded, the state of the machine). Where several processes measured a comparison, its interval is over
their medians. Within one process the bootstrap takes blocks to be independent; where neighbours resemble each other,
runs of neighbours are drawn instead (Künsch, "The jackknife and the bootstrap for general stationary observations",
1989).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

# The column `block` numbers the blocks of process p from p times this on. Blocks of one process are never so many.
PROCESS_BLOCKS = 10_000_000
LAYERS = ("host", "pipeline")  # that several processes measure
_LEAST = 10  # samples below which nothing can be said about neighbours
_ONE_SIDED = 1.645  # quantile of 95 %


def blocks_of(samples: object) -> np.ndarray | None:
    """Return the numbers of the blocks where the samples carry them, as a pandas Series indexed by block does."""
    index = getattr(samples, "index", None)
    kind = getattr(getattr(index, "dtype", None), "kind", "")
    return np.asarray(index) if kind in ("i", "u") else None


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


def autocorrelation(samples: np.ndarray) -> float:
    """Return the correlation of each sample's rank with the next one's where it is significant (5 %), else 0.

    Ranks, since one block that something disturbed shall not decide. Equal samples have equal ranks.
    """
    return next(_correlations(samples), 0.0)


def persistence(samples: np.ndarray) -> float:
    """Return the correlation of neighbours in a first-order autoregression whose memory is as long as the samples'.

    0 where neighbours are not alike. A drift remembers for longer than its first correlation tells, so all of them are
    summed up to the first that isn't significant.
    """
    memory = 1 + 2 * sum(_correlations(samples))
    return (memory - 1) / (memory + 1)


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
