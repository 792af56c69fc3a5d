"""Operations on a flat ragged batch: one launch for items that all differ in size, by four ways to find the owner.

A. `lookup`: a table with the item of each element, half as many bytes again as a float32 read and written.
B. `thread_search`: each thread searches the offsets by halving, 17 dependent steps for 100,000 items.
C. `block_metadata`: a block is told its item and its part; items below the threshold get one each, however small.
D. `block_search`: a block owns a run of elements, whichever items they belong to. Its warps search the item of the
   first element, 32 probes at a time, while the elements are on their way. Mostly that is the only item of the block;
   if not, threads search among the items of the block alone.

A, B and D share the layout of the work: consecutive threads own consecutive packs of four elements, loaded and stored
in one instruction, `packs` of them per thread and all asked for before any is used. A block of C starts where its item
does, so that its first and last pack may be cut. `values=1` is the published form: one element per thread.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from octopus.backends.cuda.language import cuda, device
from octopus.kernels.arguments import RAGGED
from octopus.kernels.cuda.ragged_tiles import Kind
from octopus.kernels.cuda.ragged_work import QUAD, Work, search, search_by_warp, work_of
from octopus.kernels.operations import POINTWISE


def build(kind: Kind) -> Callable:
    """The kernel of a kind.

    `first` and `second` have one parameter per item, `widths` and `heights` the sides of images. `owner` is the item of
    each element for `lookup` and of each block for `block_metadata`, whose blocks begin at `starts` and end `threshold`
    elements on, or with their item. What a kind doesn't need is never read. ::

        block_search, values=4, packs=2, a warp of four threads

        elements   0    4    8    12   16   20   24   28
                 | t0 | t1 | t2 | t3 | t0 | t1 | t2 | t3 |   one block: packs * threads * 4 elements
        items    |--- 7 ---|- 8 -|--------- 9 ----------     first = 7; t2 walks from 8 to 9 within its pack
    """
    searched = _at_once if kind.operation in POINTWISE and kind.values > 1 else _in_turn
    make = {"block_metadata": _by_metadata, "lookup": _by_owner}.get(kind.strategy, searched)
    run = make(kind, work_of(kind))

    def kernel(
        source, out, total, offsets, items, first, second, widths, heights, owner, starts, threshold
    ):  # fmt: skip
        run(source, out, total, offsets, items, first, second, widths, heights, owner, starts, threshold)

    kernel.arguments = RAGGED.of(source=kind.dtype, out=kind.out_dtype, offset=kind.offset_dtype)
    return kernel


def _boundary(kind: Kind, work: Work) -> Callable:
    """A device function for a pack that more than one item may own, the first of them known."""
    one, quad, values = work.one, work.quad, kind.values
    wide = quad is not None
    if not wide:
        quad = one  # never called

    @device
    def cross(source, out, at, item, items, offsets, first, second, widths, heights):
        stop = at + values
        while at < stop:
            # Offsets in GPU memory may end before the values do; the last item then owns the rest.
            while item + 1 < items and at >= offsets[item + 1]:
                item += np.int32(1)
            if wide and at + QUAD <= min(np.int64(offsets[item + 1]), stop) and at % QUAD == 0:
                quad(source, out, at, item, offsets, first, second, widths, heights)
                at += QUAD
            else:
                one(source, out, at, item, offsets, first, second, widths, heights)
                at += 1

    return cross


def _range(kind: Kind) -> Callable:
    """A device function: among which items a block's threads search, `[low, high)`."""
    together = kind.strategy == "block_search"

    @device
    def among(offsets, items, begin, stop):
        low, high = np.int32(0), items
        if together:
            low = search_by_warp(offsets, items, begin)
            if offsets[low + 1] >= stop:
                high = np.int32(low + 1)
            else:
                high = np.int32(search_by_warp(offsets, items, stop - 1) + 1)
        return low, high

    return among


def _in_turn(kind: Kind, work: Work) -> Callable:
    """B and D, a thread's packs one after the other: for operations that wait for arithmetic, not for memory."""
    fetch, pack, one, cross, among = work.fetch, work.pack, work.one, _boundary(kind, work), _range(kind)
    values, step = kind.values, kind.threads * kind.values
    tile = step * kind.packs

    @device
    def run(source, out, total, offsets, items, first, second, widths, heights, owner, starts, threshold):
        begin = np.int64(cuda.blockIdx.x) * tile
        stop = min(begin + tile, total)
        item, high = among(offsets, items, begin, stop)
        at = begin + np.int64(cuda.threadIdx.x) * values
        end = np.int64(offsets[item + 1])
        while at + values <= stop:
            if at >= end:
                item = search(offsets, item, high, at)
                end = np.int64(offsets[item + 1])
            if values == 1:
                one(source, out, at, item, offsets, first, second, widths, heights)
            elif at + values <= end:
                pack(source, out, at, fetch(source, at), item, offsets, first, second, widths, heights)
            else:
                cross(source, out, at, item, items, offsets, first, second, widths, heights)
            at += step
        while at < stop:
            item = search(offsets, item, high, at)
            one(source, out, at, item, offsets, first, second, widths, heights)
            at += 1

    return run


def _at_once(kind: Kind, work: Work) -> Callable:
    """B and D, all packs of a thread asked for before the search: for operations that wait for memory."""
    values, packs = kind.values, kind.packs
    fetch, pack, cross, among = work.fetch, work.pack, _boundary(kind, work), _range(kind)
    step = kind.threads * values
    tile = step * packs
    last_block = _in_turn(kind, work)

    @device
    def mixed(source, out, at, held, low, high, items, offsets, first, second, widths, heights):
        item = search(offsets, low, high, at)
        if at + values <= offsets[item + 1]:
            pack(source, out, at, held, item, offsets, first, second, widths, heights)
        else:
            cross(source, out, at, item, items, offsets, first, second, widths, heights)

    @device
    def run(source, out, total, offsets, items, first, second, widths, heights, owner, starts, threshold):
        begin = np.int64(cuda.blockIdx.x) * tile
        if begin + tile > total:
            last_block(source, out, total, offsets, items, first, second, widths, heights, owner, starts, threshold)
            return
        at = begin + np.int64(cuda.threadIdx.x) * values
        end = at + (packs - 1) * step
        held, ended = fetch(source, at), fetch(source, end)
        more, most = held, held
        if packs > 2:
            more, most = fetch(source, at + step), fetch(source, at + 2 * step)
        low, high = among(offsets, items, begin, begin + tile)
        mixed(source, out, at, held, low, high, items, offsets, first, second, widths, heights)
        if packs > 2:
            mixed(source, out, at + step, more, low, high, items, offsets, first, second, widths, heights)
            mixed(source, out, at + 2 * step, most, low, high, items, offsets, first, second, widths, heights)
        if packs > 1:
            mixed(source, out, end, ended, low, high, items, offsets, first, second, widths, heights)

    return run


def _by_owner(kind: Kind, work: Work) -> Callable:
    """A. The owners of a pack's first and last element tell whether it has one owner."""
    fetch, pack, one, cross = work.fetch, work.pack, work.one, _boundary(kind, work)
    values, packs = kind.values, kind.packs
    step = kind.threads * values
    tile = step * packs

    @device
    def run(source, out, total, offsets, items, first, second, widths, heights, owner, starts, threshold):
        begin = np.int64(cuda.blockIdx.x) * tile
        stop = min(begin + tile, total)
        at = begin + np.int64(cuda.threadIdx.x) * values
        while at + values <= stop:
            item = owner[at]
            if values == 1:
                one(source, out, at, item, offsets, first, second, widths, heights)
            elif item == owner[at + values - 1]:
                pack(source, out, at, fetch(source, at), item, offsets, first, second, widths, heights)
            else:
                cross(source, out, at, item, items, offsets, first, second, widths, heights)
            at += step
        while at < stop:
            one(source, out, at, owner[at], offsets, first, second, widths, heights)
            at += 1

    return run


def _by_metadata(kind: Kind, work: Work) -> Callable:
    """C."""
    fetch, pack, one = work.fetch, work.pack, work.one
    values, packs = kind.values, kind.packs

    @device
    def run(source, out, total, offsets, items, first, second, widths, heights, owner, starts, threshold):
        item, begin = owner[cuda.blockIdx.x], starts[cuda.blockIdx.x]
        stop = min(begin + threshold, np.int64(offsets[item + 1]))
        threads = np.int64(cuda.blockDim.x)
        if values == 1:
            at = begin + np.int64(cuda.threadIdx.x)
            while at < stop:
                one(source, out, at, item, offsets, first, second, widths, heights)
                at += threads
            return
        # The packs that lie in the block whole; a few elements before and behind them are done singly.
        aligned = min((begin + values - 1) // values * values, stop)
        end = max(stop // values * values, aligned)
        step = threads * values
        at = aligned + np.int64(cuda.threadIdx.x) * values
        while packs > 2 and at + 3 * step < end:
            a, b = fetch(source, at), fetch(source, at + step)
            c, d = fetch(source, at + 2 * step), fetch(source, at + 3 * step)
            pack(source, out, at, a, item, offsets, first, second, widths, heights)
            pack(source, out, at + step, b, item, offsets, first, second, widths, heights)
            pack(source, out, at + 2 * step, c, item, offsets, first, second, widths, heights)
            pack(source, out, at + 3 * step, d, item, offsets, first, second, widths, heights)
            at += 4 * step
        while at < end:
            pack(source, out, at, fetch(source, at), item, offsets, first, second, widths, heights)
            at += step
        at = begin + np.int64(cuda.threadIdx.x)
        if at >= aligned:
            at += end - aligned
        while at < stop:
            one(source, out, at, item, offsets, first, second, widths, heights)
            at += threads
            if at >= aligned and at < end:
                at += end - aligned

    return run
