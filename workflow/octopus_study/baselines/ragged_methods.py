"""Methods on ragged batches by the names of the rows: how Octopus, an engineer and the publication make their maps."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus.ragged import blockmap
from octopus_study.measure import Method

Run = Callable[[], object]
STRATEGIES = {
    "octopus": "block_search",
    "thread-search": "thread_search",
    "block-metadata": "block_metadata",
    "block-metadata-published": "block_metadata",
    "block-metadata-tuned": "block_metadata",
    "lookup": "lookup",
    "lookup-vectorised": "lookup",
    "lookup-published": "lookup",
}
THRESHOLDS = {"block-metadata": blockmap.PUBLISHED_THRESHOLD, "block-metadata-tuned": blockmap.DEFAULT_THRESHOLD}
ON_DEVICE = "lookup-device"  # whose table is made by a kernel


@dataclass(frozen=True)
class StagedMethod:
    """A method on one batch, stage by stage and as a whole."""

    name: str
    bytes: int  # of what `setup` makes: the map, or the padding
    setup: Run  # make the map, the padded batch or the nested tensor
    kernel: Run  # the operation, on what `setup` made before
    total: Run  # all of it
    # The map's way to the device and the result's way back; None where nothing is copied
    upload: Run | None = None
    download: Run | None = None


def stage(methods: Iterable[StagedMethod], quantity: str) -> list[Method]:
    """One stage of the methods, or their `total`, to be timed."""
    return [Method(method.name, getattr(method, quantity)) for method in methods]


def build_of(method: str, offsets: NDArray[np.int64]) -> Callable[[], blockmap.BlockMap]:
    """How a method's map is made on the host."""
    if method == "lookup-published":
        return lambda: blockmap.BlockMap(
            "lookup", blockmap.narrowed(offsets, copy=True), published_table(offsets), checked=True
        )
    if method == "block-metadata-published":
        return lambda: published_records(offsets, blockmap.PUBLISHED_THRESHOLD)
    if method in THRESHOLDS:
        return lambda: blockmap.build(STRATEGIES[method], offsets, threshold=THRESHOLDS[method])
    return lambda: blockmap.build(STRATEGIES[method], offsets)


def published_table(offsets: NDArray[np.int64]) -> NDArray[np.int32]:
    """The lookup table as published: filled item by item on the host."""
    owner = np.empty(int(offsets[-1]), np.int32)
    for item in range(len(offsets) - 1):
        owner[offsets[item] : offsets[item + 1]] = item
    return owner


@dataclass(frozen=True, eq=False)
class PublishedRecords(blockmap.BlockMap):
    """Block metadata with the 20 bytes per block that follow from the published ones: item, first and last element."""

    # (blocks,) int64, behind the last element of each block; the kernel knows it from the threshold, so it is
    # brought there unread
    ends: NDArray[np.int64] | None = None

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays by name."""
        return super().arrays | ({} if self.ends is None else {"ends": self.ends})


def published_records(offsets: NDArray[np.int64], threshold: int) -> PublishedRecords:
    """Block metadata as published: written block by block by a loop over the items on the host."""
    owner, starts, ends = [], [], []
    bounds = offsets.tolist()
    for item, (start, stop) in enumerate(pairwise(bounds)):
        for begin in range(start, stop, threshold):
            owner.append(item)
            starts.append(begin)
            ends.append(min(begin + threshold, stop))
    return PublishedRecords(
        "block_metadata", blockmap.narrowed(offsets, copy=True), np.array(owner, np.int32),
        np.array(starts, np.int64), threshold, ends=np.array(ends, np.int64), checked=True,
    )  # fmt: skip


def table_on_device(offsets: Any, items: int, total: int, owner: Any) -> Run:
    """A launch that fills the lookup table from offsets in device memory."""
    from cuda.core import LaunchConfig, launch

    from octopus.backends.cuda import stream_of
    from octopus_study.kernels.cuda.ragged_probes import TABLE_PART, THREADS

    kernel = _table_kernel(offsets.dtype.name)
    config, stream = LaunchConfig(grid=max(-(-total // TABLE_PART), 1), block=THREADS), stream_of(None)
    return lambda: launch(stream, config, kernel, offsets.pointer, np.int32(items), np.int64(total), owner.pointer)


@cache
def _table_kernel(dtype: str) -> Any:
    """Loaded once: a method that is timed as a whole would load it again and again."""
    from octopus.backends.cuda import compile
    from octopus_study.kernels.cuda import FOLDER
    from octopus_study.kernels.cuda.ragged_probes import kernel_of

    return compile.load(f"ragged-probe-table-{dtype}", lambda: kernel_of("table", dtype), FOLDER)
