"""Maps of the strategies by the names of the rows' methods, as Octopus, an engineer and the publication make them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus.ragged import blockmap

STRATEGIES = {
    "octopus": "block_search",
    "thread-search": "thread_search",
    "block-metadata": "block_metadata",
    "block-metadata-tuned": "block_metadata",
    "lookup": "lookup",
    "lookup-vectorised": "lookup",
    "lookup-published": "lookup",
}
THRESHOLDS = {
    "block-metadata": blockmap.PUBLISHED_THRESHOLD,
    "block-metadata-tuned": blockmap.DEFAULT_THRESHOLD,
}
ON_DEVICE = "lookup-device"  # whose table is made by a kernel


def build_of(method: str, offsets: NDArray[np.int64]) -> Callable[[], blockmap.BlockMap]:
    """How a method's map is made on the host."""
    if method == "lookup-published":
        return lambda: blockmap.BlockMap("lookup", blockmap.narrowed(offsets), published_table(offsets))
    if method in THRESHOLDS:
        return lambda: blockmap.build(STRATEGIES[method], offsets, threshold=THRESHOLDS[method])
    return lambda: blockmap.build(STRATEGIES[method], offsets)


def published_table(offsets: NDArray[np.int64]) -> NDArray[np.int32]:
    """The lookup table as published: filled item by item on the host."""
    owner = np.empty(int(offsets[-1]), np.int32)
    for item in range(len(offsets) - 1):
        owner[offsets[item] : offsets[item + 1]] = item
    return owner


def table_on_device(offsets: Any, items: int, total: int, owner: Any) -> Callable[[], object]:
    """A launch that fills the lookup table from offsets in device memory."""
    from cuda.core import LaunchConfig, launch

    from octopus.backends.cuda import compile, stream_of
    from octopus_study.kernels.cuda import FOLDER
    from octopus_study.kernels.cuda.ragged_probes import TABLE_PART, THREADS, signature

    dtype = offsets.dtype.name
    kernel = compile.load(f"ragged-probe-table-{dtype}", lambda: signature("table", dtype), FOLDER)
    config, stream = LaunchConfig(grid=max(-(-total // TABLE_PART), 1), block=THREADS), stream_of(None)
    return lambda: launch(
        stream, config, kernel, offsets.pointer, np.int32(items), np.int64(total), owner.pointer
    )
