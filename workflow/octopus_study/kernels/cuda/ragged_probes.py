"""Kernels that the studies on ragged batches need beside the operations: the table on the device, the ladder of
baselines, and whether two results are the same.
"""

from collections.abc import Callable

import numpy as np

from octopus.backends.cuda.language import cuda
from octopus.kernels.arguments import Arguments
from octopus.kernels.cuda import ptx
from octopus.kernels.cuda.ragged import FOUR_PIXELS, search, search_by_warp

TABLE_PART = 4096  # elements per block of `table_of_owners`
THREADS = 256
_blur3 = FOUR_PIXELS["blur3x3"]  # of which the first is wanted
_store = ptx.streaming_store("uint8", 1, True, False)


def table_of_owners(offsets, items, total, owner):
    """The item of every element, from the offsets alone: one search per block, then among the block's items."""
    begin = np.int64(cuda.blockIdx.x) * TABLE_PART
    stop = min(begin + TABLE_PART, total)
    item = search_by_warp(offsets, items, begin)
    high = np.int32(search_by_warp(offsets, items, stop - 1) + 1)
    at = begin + np.int64(cuda.threadIdx.x)
    while at < stop:
        item = search(offsets, item, high, at)
        owner[at] = item
        at += THREADS


def image_per_thread(source, out, offsets, items, widths, heights):
    """The naive baseline: every thread does a whole image, 3x3 means of uint8 pixels."""
    item = np.int32(cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x)
    if item >= items:
        return
    begin, width, height = np.int64(offsets[item]), widths[item], heights[item]
    for row in range(height):
        for column in range(width):
            value = _blur3(source, begin, np.int32(row), np.int32(column), width, height)[0]
            _store(out, begin + np.int64(row) * width + column, (value,))


def linear_search(source, out, offsets, items, widths, heights):
    """Grid-stride: every thread goes through the offsets from the first on, for each of its pixels."""
    total = np.int64(offsets[items])
    at = np.int64(cuda.blockIdx.x) * cuda.blockDim.x + cuda.threadIdx.x
    threads = np.int64(cuda.gridDim.x) * cuda.blockDim.x
    while at < total:
        item = np.int32(0)
        while offsets[item + 1] <= at:
            item += np.int32(1)
        begin, width = np.int64(offsets[item]), widths[item]
        row = np.int32((at - begin) // width)
        column = np.int32(at - begin - np.int64(row) * width)
        value = _blur3(source, begin, row, column, width, heights[item])[0]
        _store(out, at, (value,))
        at += threads


def differ(left, right, count, flag):
    """Set `flag[0]` to 1 if any of `count` 32-bit words differ."""
    at = np.int64(cuda.blockIdx.x) * cuda.blockDim.x + cuda.threadIdx.x
    threads = np.int64(cuda.gridDim.x) * cuda.blockDim.x
    while at < count:
        if left[at] != right[at]:
            flag[0] = np.int32(1)
        at += threads


def kernel_of(name: str, offset_dtype: str = "int32") -> Callable:
    """A kernel, for offsets of a dtype."""
    images = ("*uint8 source out", "*offset offsets", "int32 items", "*int32 widths heights")
    kernel, *table = {
        "table": (table_of_owners, "*offset offsets", "int32 items", "int64 total", "*int32 owner"),
        "image_per_thread": (image_per_thread, *images),
        "linear_search": (linear_search, *images),
        "differ": (differ, "*uint32 left right", "int64 count", "*int32 flag"),
    }[name]
    kernel.arguments = Arguments.table(*table).of(offset=offset_dtype)
    return kernel
