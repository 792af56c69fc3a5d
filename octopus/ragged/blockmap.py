"""Who works on which element of a ragged batch: four strategies under one interface.

======================  =============================================  ======================  ======================
strategy                what it stores                                 what an element costs   known from
======================  =============================================  ======================  ======================
`lookup` (A)            the item of every element, int32               4 bytes read            a table
`thread_search` (B)     offsets                                        a search per thread     grid-stride kernels
`block_metadata` (C)    item and start of every block                  nothing                 DALI until 2022
`block_search` (D)      offsets                                        a search per block      DALI since 2022
======================  =============================================  ======================  ======================

The names in the last column are public systems that find their work in this way, for other data. Octopus uses D unless
it is told otherwise: it has nothing to build and is the only one that needs no host copy of the offsets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus.arrays.checks import INT32_MAX
from octopus.errors import InputError

STRATEGIES = ("lookup", "thread_search", "block_metadata", "block_search")
DEFAULT = "block_search"
PUBLISHED_THRESHOLD = 65_536  # elements per block of `block_metadata`, as published
DEFAULT_THRESHOLD = 16_384  # the fastest on an H200, where larger blocks leave processors idle at the end


@dataclass(frozen=True, eq=False)
class BlockMap:
    """What a kernel must be told, beside the elements, to know each element's item.

    Attributes
    ----------
    strategy : str
        One of `STRATEGIES`.
    offsets : ndarray, (N + 1,), int32 or int64
        int32 where the elements can be counted in it.
    owner : ndarray, int32, or None
        Item of each element (`lookup`) or of each block (`block_metadata`).
    starts : ndarray, (blocks,), int64, or None
        First element of each block (`block_metadata`).
    threshold : int
        Elements of a block at most (`block_metadata`), else 0.
    """

    strategy: str
    offsets: NDArray[np.integer]
    owner: NDArray[np.int32] | None = None
    starts: NDArray[np.int64] | None = None
    threshold: int = 0

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self.arrays.values())

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays by name, without those that the strategy does without."""
        found = {"offsets": self.offsets, "owner": self.owner, "starts": self.starts}
        return {name: array for name, array in found.items() if array is not None}

    @property
    def blocks(self) -> int | None:
        """Blocks of `block_metadata`; the others take as many as their kernels like."""
        return None if self.starts is None else len(self.starts)


def build(strategy: str, offsets: NDArray[np.integer], *, threshold: int = DEFAULT_THRESHOLD) -> BlockMap:
    """Make the map of a batch on the host.

    Parameters
    ----------
    strategy : str
        One of `STRATEGIES`.
    offsets : ndarray, (N + 1,)
        Item `i` holds the elements `offsets[i]` to `offsets[i + 1]`; starts at 0 and never falls.
    threshold : int
        `block_metadata`: items with more elements than this are split into blocks of this many.

    Raises
    ------
    InputError
        For an unknown strategy, a threshold below 1, more than 2**31 - 1 items, or as many blocks.
    """
    if strategy not in STRATEGIES:
        raise InputError(f"there is no strategy {strategy!r}; use one of {', '.join(STRATEGIES)}")
    offsets = _checked(offsets)
    narrow = narrowed(offsets)
    if strategy == "lookup":
        return BlockMap(strategy, narrow, owner=lookup_table(offsets))
    if strategy == "block_metadata":
        owner, starts = block_records(offsets, threshold)
        return BlockMap(strategy, narrow, owner, starts, threshold)
    return BlockMap(strategy, narrow)


def offsets_of(shapes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where items of these shapes (N, D) begin when they lie one after the other, (N + 1,), the end included."""
    offsets = np.zeros(len(shapes) + 1, np.int64)
    np.cumsum(shapes.prod(axis=1), out=offsets[1:])
    return offsets


def narrowed(offsets: NDArray[np.integer]) -> NDArray[np.integer]:
    """Offsets in int32 where the last one fits: they are searched, so that half the bytes matter."""
    return offsets.astype(np.int32 if offsets[-1] <= INT32_MAX else np.int64, copy=False)


def lookup_table(offsets: NDArray[np.integer]) -> NDArray[np.int32]:
    """The item of every element, (offsets[-1],) int32."""
    return np.repeat(np.arange(len(offsets) - 1, dtype=np.int32), np.diff(offsets))


def block_records(
    offsets: NDArray[np.integer], threshold: int
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Item and first element of each block: one block for an item of up to `threshold` elements, more for a larger one.

    Empty items have no block.

    Raises
    ------
    InputError
        For a threshold below 1, or more than 2**31 - 1 blocks.
    """
    if threshold < 1:
        raise InputError(f"threshold must be at least 1 element per block, found {threshold}")
    from octopus.backends.cpu import compile, threads

    bounds: NDArray[np.int64] = np.asarray(offsets, np.int64)
    lengths = np.diff(bounds)
    if len(lengths) and lengths.min() > 0 and lengths.max() <= threshold:  # a block per item, the common case
        return np.arange(len(lengths), dtype=np.int32), bounds[:-1].copy()
    blocks = int((-(-lengths // threshold)).sum())
    if blocks > INT32_MAX:
        raise InputError(
            f"{blocks:,} blocks of {threshold} elements are more than a grid holds; raise threshold"
        )
    owner, starts = np.empty(blocks, np.int32), np.empty(blocks, np.int64)
    kernel = compile.load("ragged-records", _build_records)
    arrays = np.ascontiguousarray(bounds), owner, starts
    first, *others = (array.ctypes.data for array in arrays)
    threads.launch(kernel, 1, first, len(lengths), threshold, *others)
    return owner, starts


def _build_records() -> Callable[..., None]:
    from octopus.kernels.cpu import ragged

    return ragged.build_records()


def _checked(offsets: NDArray[np.integer]) -> NDArray[np.integer]:
    offsets = np.asarray(offsets)
    if offsets.ndim != 1 or not len(offsets) or offsets.dtype.kind not in "iu":
        raise InputError(
            f"offsets must be a flat integer array of N + 1 entries, found {offsets.dtype} of {offsets.shape}"
        )
    if len(offsets) - 1 > INT32_MAX:
        raise InputError(f"{len(offsets) - 1:,} items are more than int32 counts; split the batch")
    return offsets
