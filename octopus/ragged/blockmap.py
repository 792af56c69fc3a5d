"""The strategies of `octopus.blockmap`, the maps that they need, and which `tune` found the best."""

import json
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, TypeGuard, get_args

import numpy as np
from numpy.typing import NDArray

from octopus import backends
from octopus.arrays.checks import INT32_MAX
from octopus.arrays.memo import dynamo_disabled
from octopus.arrays.views import view_of
from octopus.backends import cache
from octopus.errors import InputError, shown
from octopus.kernels.operations import POINTWISE
from octopus.ragged.check import check_rising, sealed, whole

Strategy = Literal["lookup", "thread_search", "block_metadata", "block_search"]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)
DEFAULT: Strategy = "block_search"
PUBLISHED_THRESHOLD = 65_536  # elements per block of `block_metadata`, as published
DEFAULT_THRESHOLD = 16_384  # the fastest on an H200, where larger blocks leave processors idle at the end
SMALL = 512  # elements of an item on average below which a batch counts as one of small items
# Calls that the same strategy serves best, in words.
GROUPS = {
    "pointwise": "operations on single elements",
    "stencil": "operations on neighbourhoods",
    "pointwise_small": f"operations on single elements, items below {SMALL} elements",
    "stencil_small": f"operations on neighbourhoods, items below {SMALL} elements",
}


@dataclass(frozen=True, eq=False)
class BlockMap:
    """What a kernel must be told, beside the elements, to know each element's item.

    The arrays are read-only copies. A plan that is given a map which `build` didn't make makes sure that it is right.

    Attributes
    ----------
    strategy : str
        One of `STRATEGIES`.
    offsets : ndarray, (N + 1,), int32 or int64
        int32 where the elements can be counted in it.
    owner : ndarray, int32, or None
        Item of each element (`lookup`) or of each block (`block_metadata`).
    starts, threshold : ndarray, (blocks,), int64, or None; int
        First element of each block, and of how many it has at most (`block_metadata`), else 0.
    checked : bool
        Whether the maker vouches for the arrays and hands them over: they are neither copied nor made sure of.
    """

    strategy: Strategy
    offsets: NDArray[np.integer]
    owner: NDArray[np.int32] | None = None
    starts: NDArray[np.int64] | None = None
    threshold: int = 0
    checked: bool = field(default=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        for name, array in self.arrays.items():
            object.__setattr__(self, name, sealed(array if self.checked else np.array(array)))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled and copied as a map that is yet to be checked."""
        return BlockMap, (self.strategy, self.offsets, self.owner, self.starts, self.threshold)

    @property
    @dynamo_disabled
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self.arrays.values())

    @property
    @dynamo_disabled
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays by name, without those that the strategy does without."""
        found = {"offsets": self.offsets, "owner": self.owner, "starts": self.starts}
        return {name: array for name, array in found.items() if array is not None}

    @property
    @dynamo_disabled
    def blocks(self) -> int | None:
        """Blocks of `block_metadata`; the others take as many as their kernels like."""
        return None if self.starts is None else len(self.starts)


@dynamo_disabled
def build(strategy: Strategy, offsets: Any, *, threshold: int = DEFAULT_THRESHOLD) -> BlockMap:
    """Make the map of a batch on the host.

    Parameters
    ----------
    strategy : {"lookup", "thread_search", "block_metadata", "block_search"}
    offsets : array, (N + 1,), integer, on the host
        Item `i` holds the elements `offsets[i]` to `offsets[i + 1]`; starts at 0 and never falls.
    threshold : int
        `block_metadata`: items with more elements than this are split into blocks of this many, 1 to 2**31 - 1.

    Returns
    -------
    BlockMap

    Raises
    ------
    InputError
        For anything else, or more than 2**31 - 1 items or blocks.

    Examples
    --------
    >>> found = build("block_metadata", [0, 3, 8], threshold=4)
    >>> found.owner.tolist(), found.starts.tolist()
    ([0, 1, 1], [0, 3, 7])
    """
    if not is_strategy(strategy):
        raise InputError(f"there is no strategy {shown(strategy)}; use one of {', '.join(STRATEGIES)}")
    threshold, offsets = whole("threshold", threshold), _checked(offsets)
    narrow = narrowed(offsets, copy=True)
    if strategy == "lookup":
        owner = np.repeat(np.arange(len(offsets) - 1, dtype=np.int32), np.diff(offsets))
        return BlockMap(strategy, narrow, owner, checked=True)
    if strategy == "block_metadata":
        return BlockMap(strategy, narrow, *block_records(offsets, threshold), threshold, checked=True)
    return BlockMap(strategy, narrow, checked=True)


def is_strategy(name: Any) -> TypeGuard[Strategy]:
    return isinstance(name, str) and name in STRATEGIES


def offsets_of(shapes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where items of these shapes (N, D) begin when they lie one after the other, (N + 1,), the end included."""
    offsets = np.zeros(len(shapes) + 1, np.int64)
    np.cumsum(shapes.prod(axis=1), out=offsets[1:])
    return offsets


def narrowed(offsets: NDArray[np.integer], copy: bool = False) -> NDArray[np.integer]:
    """Offsets in int32 where the last one fits: they are searched, so that half the bytes matter."""
    return offsets.astype(np.int32 if offsets[-1] <= INT32_MAX else np.int64, copy=copy)


def block_records(offsets: NDArray[np.integer], threshold: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Item (blocks,) and first element (blocks,) of each block: an item of up to `threshold` elements has one, a larger
    one more, an empty one none."""
    bounds: NDArray[np.int64] = np.asarray(offsets, np.int64)
    lengths = np.diff(bounds)
    if len(lengths) and lengths.min() > 0 and lengths.max() <= threshold:  # a block per item, the common case
        return np.arange(len(lengths), dtype=np.int32), bounds[:-1].copy()
    parts = -(-lengths // threshold)
    blocks = int(parts.sum())
    if blocks > INT32_MAX:
        raise InputError(f"{blocks:,} blocks of {threshold} elements are more than a grid holds; raise threshold")
    owner = np.repeat(np.arange(len(lengths), dtype=np.int32), parts)
    number = np.arange(blocks) - np.repeat(np.cumsum(parts) - parts, parts)
    return owner, bounds[owner] + number * threshold


def _checked(offsets: Any) -> NDArray[np.integer]:
    found = view_of(offsets, "offsets")
    if len(found.shape) != 1 or not found.shape[0] or found.dtype.kind not in "iu" or found.device != "cpu":
        raise InputError(
            "offsets must be a flat integer array of N + 1 entries on the host, found "
            f"{found.dtype} of {found.shape} on {found.device}"
        )
    if found.shape[0] - 1 > INT32_MAX:
        raise InputError(f"{found.shape[0] - 1:,} items are more than int32 counts; split the batch")
    array: NDArray[np.integer] = found.numpy()
    if array.dtype.kind == "u":
        array = array.astype(np.int64)  # whose differences may be negative
    if array[0] != 0:
        raise InputError(f"offsets must start at 0, found {array[0]}")
    check_rising(array)
    return array


def group_of(operation: str, elements: int, items: int) -> str:
    group = "pointwise" if operation in POINTWISE else "stencil"
    return group + "_small" * (elements < SMALL * items)


@lru_cache(maxsize=4)
def tuned(device: str) -> dict[str, Strategy]:
    """What `tune` found the fastest on this device: a strategy for each group; the default for what is not there."""
    text = cache.load(_tuned_file(device))
    try:
        stored = json.loads(text) if text else {}
    except ValueError:
        stored = {}
    found = dict.fromkeys(GROUPS, DEFAULT)
    for group, strategy in stored.items() if isinstance(stored, dict) else ():
        if group in GROUPS and is_strategy(strategy):
            found[group] = strategy
    return found


def store(device: str, choice: dict[str, str]) -> None:
    """Keep a strategy for each group that was probed, for this device and this version of the kernels."""
    cache.store(_tuned_file(device), json.dumps(tuned(device) | choice, indent=1))
    tuned.cache_clear()


def _tuned_file(device: str) -> str:
    name = "cpu"
    if device == "cuda":
        name = "".join(c if c.isalnum() else "-" for c in backends.cuda.device.current().name.lower())
    return f"tuned-{name}-{cache.kernel_digest(device)}.json"
