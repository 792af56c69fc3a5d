"""The other ways for a block of `octopus.kernels.cuda.image_tiles` to know its image, from the table, the count of its
records, and the block's number.
"""

from collections.abc import Callable

import numpy as np

from octopus.backends.cuda.language import cuda, device
from octopus.kernels.cuda.image_kind import ImageKernel
from octopus.kernels.cuda.image_tiles import build


@device
def _thread_search(table, count, block):
    """Each thread searches by itself."""
    low, high = np.int32(0), count
    while np.int32(high - low) > 1:
        middle = np.int32(np.int32(low + high) >> 1)
        if np.int32(table[8 * middle + 7]) <= block:
            low = middle
        else:
            high = middle
    return low


@device
def _block_metadata(table, count, index):
    """An int32 for each block lies behind the records."""
    both = table[np.int64(8 * count) + np.int64(index >> 1)]
    return np.int32(both >> np.int64(32)) if index & 1 else np.int32(both)


@device
def _lookup(table, count, block):
    """One for each thread does."""
    index = np.int32(block * np.int32(cuda.blockDim.x) + np.int32(cuda.threadIdx.x))
    return _block_metadata(table, count, index)


@device
def _padded_grid(table, count, block):
    """Every image has a row of blocks, as many as the largest one needs."""
    return np.int32(cuda.blockIdx.y)


OWNERS = {
    "thread_search": _thread_search, "block_metadata": _block_metadata, "lookup": _lookup,
    "padded_grid": _padded_grid,
}  # fmt: skip


def build_owned(kernel: ImageKernel, owner: str) -> Callable:
    """The kernel by one of these."""
    return build(kernel, OWNERS[owner], owner == "padded_grid")
