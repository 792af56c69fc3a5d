"""`gamma` of bytes by a table: of 256 possible results a block of threads works out each once, and looks up the rest.

In shared memory 32 lanes that read different words of one bank wait for each other. Each lane therefore has a table of
its own, all of it in the lane's bank. Four results share a word, so that 32 tables take 8 KiB::

    address of lane `l`'s result of byte `v`, in bits    12 ... 7   6 ... 2   1 0
                                                         v >> 2        l      v & 3

With one address in two parts of a byte each, the four bytes of a word take five instructions together, and one each.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from octopus.backends.cuda.language import cuda, device
from octopus.kernels.cuda.ptx import join_bytes, pick0, pick1, pick2, pick3, rounded_byte, store_words
from octopus.kernels.cuda.ragged_power import gamma_of_bytes
from octopus.kernels.cuda.ragged_tiles import LEVELS, TABLE_ITEM, Kind

LANES = 32
TABLE_WORDS = LEVELS // 4 * LANES
NOTHING = np.uint32(0)
EVERY = np.uint32(0x01010101)
LOWEST, BIT2, UPPER = np.uint32(0x03030303), np.uint32(0x80808080), np.uint32(0x1F1F1F1F)
# Of two kinds Numba would make an int64.
TWO, THREE, FOUR, FIVE, SEVEN = (np.uint32(n) for n in (2, 3, 4, 5, 7))


def filler(threads: int) -> Callable:
    """A device function that makes an exponent's tables, by the threads of a block, whose number divides 256."""

    @device
    def fill(levels, tables, exponent):
        # Nobody reads `levels` any more, and those who still read the tables are waited for before these are written.
        thread = np.uint32(cuda.threadIdx.x)
        for i in range(LEVELS // threads):
            level = np.uint32(thread + np.uint32(i * threads))
            levels[level] = np.uint8(rounded_byte(gamma_of_bytes(np.float32(level), exponent, exponent)))
        cuda.syncthreads()
        words = levels.view(np.uint32)
        for i in range(TABLE_WORDS // threads):
            place = np.uint32(thread + np.uint32(i * threads))
            tables[place] = words[place >> FIVE]
        cuda.syncthreads()

    return fill


@device
def _four(tables, lane, word):
    """The results of a word's four bytes as one word; `lane` holds four times the lane, in each byte."""
    low = np.uint32((word & LOWEST) | ((word << FIVE) & BIT2) | lane)
    high = np.uint32((word >> THREE) & UPPER)
    return join_bytes(
        np.uint32(tables[pick0(low, high)]), np.uint32(tables[pick1(low, high)]),
        np.uint32(tables[pick2(low, high)]), np.uint32(tables[pick3(low, high)]),
    )  # fmt: skip


@device
def look_up(out, at, held, tables):
    """Do a pack of one item by the item's tables."""
    lane = np.uint32(np.uint32(cuda.threadIdx.x & (LANES - 1)) * FOUR * EVERY)
    results = tables.view(np.uint8)
    a, b = _four(results, lane, held[0]), _four(results, lane, held[1])
    c, d = _four(results, lane, held[2]), _four(results, lane, held[3])
    store_words(out, at, (a, b, c, d))


@device
def look_up_singly(source, out, at, stop, tables):
    """Do a few elements."""
    lane = np.uint32(np.uint32(cuda.threadIdx.x & (LANES - 1)) * FOUR)
    results = tables.view(np.uint8)
    while at < stop:
        value = np.uint32(source[at])
        out[at] = results[((value >> TWO) << SEVEN) | lane | (value & THREE)]
        at += 1


def runner(kind: Kind, fetch: Callable, among: Callable, many: Callable) -> Callable:
    """The body of `block_search` by tables: item by item, each with its own; `many` does a block of many items.

    Arguments are device functions: `fetch` as of `Work`, `among` the items of a block, `many` a body too.
    """
    values, packs, fill = kind.values, kind.packs, filler(kind.threads)
    step = kind.threads * values
    tile = step * packs
    most_items = max(tile // TABLE_ITEM, 1)

    @device
    def run(source, out, total, offsets, items, first, second, widths, heights, owner, starts, threshold):
        levels = cuda.shared.array(LEVELS, np.uint8)
        tables = cuda.shared.array(TABLE_WORDS, np.uint32)
        begin = np.int64(cuda.blockIdx.x) * tile
        whole = begin + tile <= total
        at, stop = begin + np.int64(cuda.threadIdx.x) * values, min(begin + tile, total)
        held = more = most = ended = (NOTHING, NOTHING, NOTHING, NOTHING)
        if whole:
            held, ended = fetch(source, at), fetch(source, at + (packs - 1) * step)
            if packs > 2:
                more, most = fetch(source, at + step), fetch(source, at + 2 * step)
        item, high = among(offsets, items, begin, stop)
        if high - item > most_items:
            many(source, out, total, offsets, items, first, second, widths, heights, owner, starts, threshold)
        elif whole and high - item == 1:
            fill(levels, tables, first[item])
            look_up(out, at, held, tables)
            if packs > 2:
                look_up(out, at + step, more, tables)
                look_up(out, at + 2 * step, most, tables)
            if packs > 1:
                look_up(out, at + (packs - 1) * step, ended, tables)
        else:
            while item < high:
                start, end = np.int64(offsets[item]), np.int64(offsets[item + 1])
                # Offsets in GPU memory may end before the values do; the last item then owns the rest.
                start, end = max(start, begin), stop if item + 1 == items else min(end, stop)
                if start < end:
                    fill(levels, tables, first[item])
                    here = at
                    while here < end:
                        if here >= start and here + values <= end:
                            look_up(out, here, fetch(source, here), tables)
                        else:
                            look_up_singly(source, out, max(here, start), min(here + values, end), tables)
                        here += step
                item += np.int32(1)

    return run
