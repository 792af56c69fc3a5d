"""Operations on a flat ragged batch: one launch for items that all differ in size, by four ways to find the owner.

Every element needs its item: for the item's parameters, and for an image's width and height. From naive to fast, with
what each must read beside the element itself:

A. `lookup`: a table with the item of each element. 4 bytes per element, half as much again as a float32 read and
   written; nothing to search.
B. `thread_search`: each thread searches the offsets by halving, 17 dependent steps for 100,000 items.
C. `block_metadata`: a block is told its item and its part; 12 bytes per block. Items below the threshold get a block
   each, however small they are.
D. `block_search`: a block owns a run of elements, whichever items they belong to, and needs the offsets alone. Its
   warps search the item of the first element, 32 probes at a time, while the elements are on their way. Mostly that
   is the only item of the block; if not, threads search among the items of the block alone.

A, B and D share the layout of the work: consecutive threads own consecutive packs of four elements, loaded and stored
in one instruction, `packs` of them per thread and all asked for before any is used. A block of C starts where its item
does, so that its first and last pack may be cut. `values=1` is the published form: one element per thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import cuda, types

from octopus.kernels import pixelwise
from octopus.kernels.cuda import ptx
from octopus.kernels.cuda.crop import NUMBA_TYPES
from octopus.kernels.cuda.ragged_search import search, search_by_warp
from octopus.kernels.cuda.ragged_stencil import STENCILS
from octopus.kernels.cuda.raggedtiles import BOUND_BY_MEMORY

POINTWISE = ("multiply", "normalize", "threshold", "gamma")
QUAD = 4  # elements


class Work(NamedTuple):
    """Device functions of an operation.

    Attributes
    ----------
    fetch : callable
        What a pack needs before its owner is known.
    pack : callable
        Do a pack of one item.
    one : callable
        Do one element.
    quad : callable or None
        Of packs of sixteen elements, do four, fetched again.
    """

    fetch: Callable
    pack: Callable
    one: Callable
    quad: Callable | None = None


class Kind(NamedTuple):
    """What distinguishes the kernels.

    Attributes
    ----------
    operation : str
    strategy : {"lookup", "thread_search", "block_metadata", "block_search"}
    dtype, out_dtype : {"float32", "uint8"}
    offset_dtype : {"int32", "int64"}
    values : {1, 4, 16}
        Elements per load and store, a pack; 16 for bytes that become bytes.
    packs : int
        Loads of a thread before it uses any.
    threads : int
        Of a block; `block_metadata` takes any number.
    """

    operation: str
    strategy: str
    dtype: str
    out_dtype: str
    offset_dtype: str
    values: int
    packs: int
    threads: int

    @property
    def name(self) -> str:
        """Unique among kernels."""
        return "ragged-" + "-".join(str(part) for part in self)


def argument_types(kind: Kind) -> tuple:
    """Numba types of the kernel's arguments, in order; see `build`."""
    offset = types.CPointer(NUMBA_TYPES[kind.offset_dtype])
    integer, real = types.CPointer(types.int32), types.CPointer(types.float32)
    source, target = (types.CPointer(NUMBA_TYPES[name]) for name in (kind.dtype, kind.out_dtype))
    return (
        source, target, types.int64, offset, types.int32, real, real, integer, integer, integer,
        types.CPointer(types.int64), types.int64,
    )  # fmt: skip


def build(kind: Kind) -> Callable:
    """The kernel of a kind.

    Its arguments are `source, out, total, offsets, items, first, second, widths, heights, owner, starts, threshold`:
    `offsets` has `items + 1` entries, `first` and `second` one parameter per item, `widths` and `heights` the sides of
    images. `owner` is the item of each element for `lookup` and of each block for `block_metadata`, whose blocks begin
    at `starts` and end `threshold` elements on, or with their item. What a kind doesn't need is never read. ::

        block_search, values=4, packs=2, a warp of four threads

        elements   0    4    8    12   16   20   24   28
                 | t0 | t1 | t2 | t3 | t0 | t1 | t2 | t3 |   one block: packs * threads * 4 elements
        items    |--- 7 ---|- 8 -|--------- 9 ----------     first = 7; t2 walks from 8 to 9 within its pack
    """
    work = _stencil_work(kind) if kind.operation in STENCILS else _pointwise_work(kind)
    make = {"block_metadata": _by_metadata, "lookup": _by_owner}.get(kind.strategy)
    if make is None:
        make = _at_once if kind.operation in BOUND_BY_MEMORY and kind.values > 1 else _in_turn
    run = make(kind, work)

    def kernel(
        source, out, total, offsets, items, first, second, widths, heights, owner, starts, threshold
    ):  # fmt: skip
        run(source, out, total, offsets, items, first, second, widths, heights, owner, starts, threshold)

    return kernel


def _arithmetic(kind: Kind) -> Callable:
    name = "gamma_of_bytes" if (kind.operation, kind.dtype) == ("gamma", "uint8") else kind.operation
    return cuda.jit(device=True)(getattr(pixelwise, name))


def _quad_access(dtype: str) -> Callable:
    """`load(source, index)`: four elements as float32, from an index that is a multiple of four."""
    if dtype == "float32":
        return ptx.load_floats
    byte0, byte1, byte2, byte3 = ptx.byte0, ptx.byte1, ptx.byte2, ptx.byte3
    magic = ptx.MAGIC_VALUE
    load_word = ptx.load_word

    @cuda.jit(device=True)
    def load(source, index):
        word = load_word(source, index)
        return byte0(word) - magic, byte1(word) - magic, byte2(word) - magic, byte3(word) - magic

    return load


def _pointwise_work(kind: Kind) -> Work:
    apply = _arithmetic(kind)
    load, store = _quad_access(kind.dtype), ptx.streaming_store(kind.out_dtype, QUAD, True, False)
    store_one = ptx.streaming_store(kind.out_dtype, 1, True, False)

    @cuda.jit(device=True)
    def fetch(source, at):
        return load(source, at)

    @cuda.jit(device=True)
    def pack(source, out, at, held, item, offsets, first, second, widths, heights):
        a, b = first[item], second[item]
        store(
            out, at, (apply(held[0], a, b), apply(held[1], a, b), apply(held[2], a, b), apply(held[3], a, b))
        )

    @cuda.jit(device=True)
    def one(source, out, at, item, offsets, first, second, widths, heights):
        store_one(out, at, (apply(np.float32(source[at]), first[item], second[item]),))

    return Work(fetch, pack, one) if kind.values <= QUAD else _wide_work(kind, apply, pack, one)


def _wide_work(kind: Kind, apply: Callable, quad: Callable, one: Callable) -> Work:
    """Sixteen bytes per load and store: the same for four quads, taken apart only when they are needed."""
    store, load_words, load_quad = (
        ptx.streaming_store("uint8", 16, True, False),
        ptx.load_words,
        _quad_access(kind.dtype),
    )
    byte0, byte1, byte2, byte3, magic = ptx.byte0, ptx.byte1, ptx.byte2, ptx.byte3, ptx.MAGIC_VALUE

    @cuda.jit(device=True)
    def fetch(source, at):
        return load_words(source, at)

    @cuda.jit(device=True)
    def apply_word(word, a, b):
        return (
            apply(byte0(word) - magic, a, b), apply(byte1(word) - magic, a, b),
            apply(byte2(word) - magic, a, b), apply(byte3(word) - magic, a, b),
        )  # fmt: skip

    @cuda.jit(device=True)
    def pack(source, out, at, held, item, offsets, first, second, widths, heights):
        a, b = first[item], second[item]
        p, q = apply_word(held[0], a, b), apply_word(held[1], a, b)
        r, s = apply_word(held[2], a, b), apply_word(held[3], a, b)
        store(out, at, p + q + r + s)

    @cuda.jit(device=True)
    def quad_at(source, out, at, item, offsets, first, second, widths, heights):
        quad(source, out, at, load_quad(source, at), item, offsets, first, second, widths, heights)

    return Work(fetch, pack, one, quad_at)


def _stencil_work(kind: Kind) -> Work:
    """Operations that read an image's neighbouring pixels; there is nothing to fetch before the owner is known."""
    four, single = STENCILS[kind.operation]
    store = ptx.streaming_store(kind.out_dtype, QUAD, True, False)
    store_one = ptx.streaming_store(kind.out_dtype, 1, True, False)

    @cuda.jit(device=True)
    def fetch(source, at):
        return at

    @cuda.jit(device=True)
    def one(source, out, at, item, offsets, first, second, widths, heights):
        begin, width = np.int64(offsets[item]), widths[item]
        inside = np.uint32(at - begin)
        row = np.int32(inside // np.uint32(width))
        column = np.int32(inside - np.uint32(row) * np.uint32(width))
        store_one(out, at, (single(source, begin, row, column, width, heights[item]),))

    @cuda.jit(device=True)
    def pack(source, out, at, held, item, offsets, first, second, widths, heights):
        begin, width = np.int64(offsets[item]), widths[item]
        inside = np.uint32(at - begin)
        row = np.int32(inside // np.uint32(width))
        column = np.int32(inside - np.uint32(row) * np.uint32(width))
        height = heights[item]
        if column + QUAD <= width:
            store(out, at, four(source, begin, row, column, width, height))
        else:
            for j in range(QUAD):
                store_one(out, at + j, (single(source, begin, row, column, width, height),))
                column += np.int32(1)
                if column == width:
                    column = np.int32(0)
                    row += np.int32(1)

    return Work(fetch, pack, one)


def _boundary(kind: Kind, work: Work) -> Callable:
    """A device function for a pack that more than one item may own, the first of them known."""
    one, quad, values = work.one, work.quad, kind.values
    wide = quad is not None
    if not wide:
        quad = one  # never called

    @cuda.jit(device=True)
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

    @cuda.jit(device=True)
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

    @cuda.jit(device=True)
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

    @cuda.jit(device=True)
    def mixed(source, out, at, held, low, high, items, offsets, first, second, widths, heights):
        item = search(offsets, low, high, at)
        if at + values <= offsets[item + 1]:
            pack(source, out, at, held, item, offsets, first, second, widths, heights)
        else:
            cross(source, out, at, item, items, offsets, first, second, widths, heights)

    @cuda.jit(device=True)
    def run(source, out, total, offsets, items, first, second, widths, heights, owner, starts, threshold):
        begin = np.int64(cuda.blockIdx.x) * tile
        if begin + tile > total:
            last_block(
                source, out, total, offsets, items, first, second, widths, heights, owner, starts, threshold
            )
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

    @cuda.jit(device=True)
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

    @cuda.jit(device=True)
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
