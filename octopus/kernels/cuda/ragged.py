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

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from octopus.backends.cuda.language import cuda, device, emulated
from octopus.kernels import pixelwise
from octopus.kernels.arguments import RAGGED
from octopus.kernels.cuda import ptx
from octopus.kernels.cuda.ptx import MAGIC_VALUE as MAGIC
from octopus.kernels.cuda.ragged_tiles import Kind
from octopus.kernels.operations import POINTWISE
from octopus.kernels.pixelwise import FULL, PER_FULL

QUAD = 4  # elements
ONE, EVEN = np.float32(1), np.float32(2**24)  # from here on all floats are even

search = device(pixelwise.last_at_or_before)


@device
def _together(offsets, items, element):
    """32 lanes probe at once and keep the part that holds the element: 4 rounds for a million items, where a thread
    alone takes 20 steps that each wait for the one before."""
    lane = np.int32(cuda.threadIdx.x & 31)
    low, high = np.int32(0), items
    while high - low > 1:
        step = np.int32((high - low + np.int32(31)) >> 5)
        at = np.int32(low + lane * step)
        # The first lane always says yes, and those that do are the first ones.
        yes = at < high and offsets[at] <= element
        count = np.int32(cuda.popc(cuda.ballot_sync(np.uint32(0xFFFFFFFF), yes)))
        low = np.int32(low + (count - np.int32(1)) * step)
        high = min(np.int32(low + step), high)
    return low


search_by_warp = emulated("search_by_warp", _together)


# Stencils read a pixel's neighbours within its image, whose first element is `begin`; beyond the border the nearest one
# counts. Four neighbours of a row share the sums of their columns: 18 loads instead of 36, of the 5x5 operation 40
# instead of 100.
_column3, _column5, _smooth = map(device, (pixelwise.column3, pixelwise.column5, pixelwise.smooth))
_blur3, _blur5_sobel = device(pixelwise.blur3), device(pixelwise.blur5_sobel)


@device
def _inside(at, side):
    return max(np.int32(0), min(at, np.int32(side - np.int32(1))))


@device
def _row(begin, row, width, height):
    return begin + np.int64(_inside(row, height)) * width


@device
def _rows3(begin, row, width, height):
    above = _row(begin, np.int32(row - np.int32(1)), width, height)
    return above, begin + np.int64(row) * width, _row(begin, np.int32(row + np.int32(1)), width, height)


@device
def _sum3(source, above, here, below, column, width):
    x = _inside(column, width)
    return _column3(np.float32(source[above + x]), np.float32(source[here + x]), np.float32(source[below + x]))


@device
def _blur3_four(source, begin, row, column, width, height):
    above, here, below = _rows3(begin, row, width, height)
    a = _sum3(source, above, here, below, np.int32(column - np.int32(1)), width)
    b = _sum3(source, above, here, below, column, width)
    c = _sum3(source, above, here, below, np.int32(column + np.int32(1)), width)
    d = _sum3(source, above, here, below, np.int32(column + np.int32(2)), width)
    e = _sum3(source, above, here, below, np.int32(column + np.int32(3)), width)
    f = _sum3(source, above, here, below, np.int32(column + np.int32(4)), width)
    return _blur3(a, b, c), _blur3(b, c, d), _blur3(c, d, e), _blur3(d, e, f)


@device
def _sums5(source, r0, r1, r2, r3, r4, column, width):
    """Of a column of five: their sum, the middle three smoothed, and the step across them."""
    x = _inside(column, width)
    b, c, d = np.float32(source[r1 + x]), np.float32(source[r2 + x]), np.float32(source[r3 + x])
    whole = _column5(np.float32(source[r0 + x]), b, c, d, np.float32(source[r4 + x]))
    return whole, _smooth(b, c, d), d - b


@device
def _combine(a, b, c, d, e):
    """The operation at the third of five columns, each as `_sums5` gives it."""
    return _blur5_sobel(a[0], b[0], c[0], d[0], e[0], b[1], d[1], b[2], c[2], d[2])


@device
def _blur5_sobel_four(source, begin, row, column, width, height):
    r0 = _row(begin, np.int32(row - np.int32(2)), width, height)
    r1, r2, r3 = _rows3(begin, row, width, height)
    r4 = _row(begin, np.int32(row + np.int32(2)), width, height)
    a = _sums5(source, r0, r1, r2, r3, r4, np.int32(column - np.int32(2)), width)
    b = _sums5(source, r0, r1, r2, r3, r4, np.int32(column - np.int32(1)), width)
    c = _sums5(source, r0, r1, r2, r3, r4, column, width)
    d = _sums5(source, r0, r1, r2, r3, r4, np.int32(column + np.int32(1)), width)
    e = _sums5(source, r0, r1, r2, r3, r4, np.int32(column + np.int32(2)), width)
    f = _sums5(source, r0, r1, r2, r3, r4, np.int32(column + np.int32(3)), width)
    g = _sums5(source, r0, r1, r2, r3, r4, np.int32(column + np.int32(4)), width)
    h = _sums5(source, r0, r1, r2, r3, r4, np.int32(column + np.int32(5)), width)
    return _combine(a, b, c, d, e), _combine(b, c, d, e, f), _combine(c, d, e, f, g), _combine(d, e, f, g, h)


FOUR_PIXELS = {"blur3x3": _blur3_four, "blur5x5_sobel": _blur5_sobel_four}  # of which one alone costs no more


class Work(NamedTuple):
    """Device functions of an operation: what a pack needs before its owner is known, and to do a pack of one item, one
    element, and of packs of sixteen elements four, fetched again."""

    fetch: Callable
    pack: Callable
    one: Callable
    quad: Callable | None = None


# `value ** exponent` by two instructions of the special function unit: `powf`, of 63, left float32 0.65 of a copy's
# speed (H200). Off by up to 2.4e-7 * (1 + |exponent| * max(1, |log2(value)|)) of the result.
@device
def _gamma(value, exponent, unused):
    bounded = min(max(exponent, -EVEN), EVEN)
    whole = np.int32(bounded)
    sign = np.float32(1 - 2 * (whole & 1)) if whole == bounded else np.float32(np.nan)
    found = ptx.power(abs(value), exponent) * (sign if value < 0 else ONE)
    return ONE if exponent == 0 else found


@device
def _gamma_of_bytes(value, exponent, unused):
    return FULL * (ONE if exponent == 0 else ptx.power_of_byte(value * PER_FULL, exponent))


@device
def _load_bytes(source, index):
    word = ptx.load_word(source, index)
    return ptx.byte0(word) - MAGIC, ptx.byte1(word) - MAGIC, ptx.byte2(word) - MAGIC, ptx.byte3(word) - MAGIC


def _pointwise_work(kind: Kind) -> Work:
    is_byte = kind.dtype == "uint8"
    if kind.operation == "gamma":
        apply = _gamma_of_bytes if is_byte else _gamma
    else:
        apply = device(getattr(pixelwise, kind.operation))
    load = _load_bytes if is_byte else ptx.load_floats
    store, store_one = (ptx.streaming_store(kind.out_dtype, count, True, False) for count in (QUAD, 1))

    @device
    def apply_four(held, a, b):
        return apply(held[0], a, b), apply(held[1], a, b), apply(held[2], a, b), apply(held[3], a, b)

    @device
    def pack(source, out, at, held, item, offsets, first, second, widths, heights):
        store(out, at, apply_four(held, first[item], second[item]))

    @device
    def one(source, out, at, item, offsets, first, second, widths, heights):
        store_one(out, at, (apply(np.float32(source[at]), first[item], second[item]),))

    if kind.values <= QUAD:
        return Work(load, pack, one)
    store_wide = ptx.streaming_store("uint8", 16, True, False)

    @device
    def apply_word(word, a, b):
        return (
            apply(ptx.byte0(word) - MAGIC, a, b), apply(ptx.byte1(word) - MAGIC, a, b),
            apply(ptx.byte2(word) - MAGIC, a, b), apply(ptx.byte3(word) - MAGIC, a, b),
        )  # fmt: skip

    @device
    def wide(source, out, at, held, item, offsets, first, second, widths, heights):
        a, b = first[item], second[item]
        p, q = apply_word(held[0], a, b), apply_word(held[1], a, b)
        r, s = apply_word(held[2], a, b), apply_word(held[3], a, b)
        store_wide(out, at, p + q + r + s)

    @device
    def quad(source, out, at, item, offsets, first, second, widths, heights):
        pack(source, out, at, load(source, at), item, offsets, first, second, widths, heights)

    return Work(ptx.load_words, wide, one, quad)


def _stencil_work(kind: Kind) -> Work:
    """There is nothing to fetch before the owner is known."""
    four = FOUR_PIXELS[kind.operation]
    store, store_one = (ptx.streaming_store(kind.out_dtype, count, True, False) for count in (QUAD, 1))

    @device
    def fetch(source, at):
        return at

    @device
    def one(source, out, at, item, offsets, first, second, widths, heights):
        begin, width = np.int64(offsets[item]), widths[item]
        inside = np.uint32(at - begin)
        row = np.int32(inside // np.uint32(width))
        column = np.int32(inside - np.uint32(row) * np.uint32(width))
        store_one(out, at, (four(source, begin, row, column, width, heights[item])[0],))

    @device
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
                store_one(out, at + j, (four(source, begin, row, column, width, height)[0],))
                column += np.int32(1)
                if column == width:
                    column = np.int32(0)
                    row += np.int32(1)

    return Work(fetch, pack, one)


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
    run = make(kind, _stencil_work(kind) if kind.operation in FOUR_PIXELS else _pointwise_work(kind))

    def kernel(source, out, total, offsets, items, first, second, widths, heights, owner, starts, threshold):
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


def among_items(strategy: str) -> Callable:
    """A device function: among which items a block's threads search, `[low, high)`."""
    together = strategy == "block_search"

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
    fetch, pack, one, cross, among = work.fetch, work.pack, work.one, _boundary(kind, work), among_items(kind.strategy)
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
    fetch, pack, cross, among = work.fetch, work.pack, _boundary(kind, work), among_items(kind.strategy)
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
