"""Which bytes of a tile each thread of the kernel of tile sums loads, wherever the tile's rows begin and end."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from octopus.backends.cuda.language import cuda, device
from octopus.kernels.cuda import ptx
from octopus.kernels.cuda.tile_grid import THREADS, Kind
from octopus.kernels.cuda.tile_values import absent_of, add_of


def sum_parts_of(kind: Kind) -> Callable:
    """A device function: what a thread adds up of its block's parts, how many values are no data, and how many blocks
    of the tile have anything to do."""
    sum_rows, ends, divide = _sum_rows(kind), _ends(kind), ptx.quotient
    aligned = kind.aligned

    @device
    def sum_parts(
        source, head, end, pitch, first, row_bytes, rows, passes, block, blocks, strips, nodata
    ):  # fmt: skip
        # Loads per row: as many as any row needs, if they don't all begin alike.
        lead = np.int32(first & 15) if aligned else np.int32(15)
        columns = np.int32((lead + row_bytes + 15) >> 4)
        if columns > THREADS * strips:
            strips = np.int32((columns + THREADS - 1) // THREADS)
        strip = divide(np.int32(columns + strips - 1), strips)
        together = divide(np.int32(THREADS), strip)  # rows that a block loads at once
        band = np.int32(together * passes)
        bands = divide(np.int32(rows + band - 1), band)
        row_of_thread = divide(np.int32(cuda.threadIdx.x), strip)
        column_of_thread = np.int32(np.int32(cuda.threadIdx.x) - row_of_thread * strip)
        inside = first - 15 >= head and first + np.int64(rows - 1) * pitch + row_bytes + 15 <= end
        total, missing, part = np.int64(0), np.int64(0), block
        while part < strips * bands:
            column, number = column_of_thread, part
            if strips > 1:
                across = divide(part, bands)
                number = np.int32(part - across * bands)
                column = np.int32(column + across * strip)
            row = np.int32(number * band + row_of_thread)
            stop = min(np.int32((number + 1) * band), rows)
            if row_of_thread < together and row < stop and column < columns:
                start = first + row * pitch
                if not inside:
                    row, start, stop, total, missing = ends(
                        source, head, end, pitch, start, column, row_bytes, row, stop, together, total, missing,
                        nodata,
                    )  # fmt: skip
                total, missing = sum_rows(
                    source, pitch, start, column, row_bytes, row, stop, together, total, missing, nodata
                )  # fmt: skip
            part = np.int32(part + blocks)
        return total, missing, min(np.int32(strips * bands), blocks)

    return sum_parts


@device
def _locate(start, column, row_bytes):
    """Load number `column` of the row from `start` on: its index, and a bit for each of its bytes that count."""
    lead = np.int32(start & 15)
    low = lead if column == 0 else np.int32(0)
    high = min(max(np.int32(lead + row_bytes - (column << 4)), low), np.int32(16))
    return start - lead + (np.int64(column) << 4), ptx.byte_mask(low, high)


@device
def _load_bytes(source, index, mask):
    """Those of sixteen bytes that count, as four words: at the image's very ends the others may not be read."""
    return (
        _word_of_bytes(source, index, mask),
        _word_of_bytes(source, index + 4, mask >> 4),
        _word_of_bytes(source, index + 8, mask >> 8),
        _word_of_bytes(source, index + 12, mask >> 12),
    )


@device
def _word_of_bytes(source, index, mask):
    a = ptx.load_byte_if(source, index, np.uint32(mask & 1))
    b = ptx.load_byte_if(source, index + 1, np.uint32(mask & 2))
    c = ptx.load_byte_if(source, index + 2, np.uint32(mask & 4))
    d = ptx.load_byte_if(source, index + 3, np.uint32(mask & 8))
    return np.uint32(a | b << 8 | c << 16 | d << 24)


def _ends(kind: Kind) -> Callable:
    """A device function: do the rows of a thread whose sixteen bytes reach beyond the image, and leave the others."""
    locate, load, add, absent_in, skips = _locate, _load_bytes, add_of(kind), absent_of(kind), kind.nodata
    divide = ptx.quotient

    @device
    def one(source, start, column, row_bytes, nodata):
        index, mask = locate(start, column, row_bytes)
        words = load(source, index, mask)
        return np.int64(add(words, mask)), np.int64(absent_in(words, mask, nodata) if skips else 0)

    @device
    def ends(
        source, head, end, pitch, start, column, row_bytes, row, stop, together, total, missing, nodata
    ):  # fmt: skip
        while row < stop and locate(start, column, row_bytes)[0] < head:
            found, gone = one(source, start, column, row_bytes, nodata)
            total += found
            missing += gone
            row = np.int32(row + together)
            start += together * pitch
        last = np.int32(row + divide(np.int32(max(stop - 1 - row, 0)), together) * together)
        while row < stop:
            behind = start + (last - row) * pitch
            if locate(behind, column, row_bytes)[0] + 16 <= end:
                break
            found, gone = one(source, behind, column, row_bytes, nodata)
            total += found
            missing += gone
            stop = last
            last = np.int32(last - together)
        return row, start, stop, total, missing

    return ends


def _sum_rows(kind: Kind) -> Callable:
    """A device function: a thread's rows of its column, four at a time."""
    locate, load, add, absent_in = _locate, ptx.load_four_if, add_of(kind), absent_of(kind)
    aligned, skips = kind.aligned, kind.nodata

    @device
    def place(start, column, row_bytes, offset, mask, live):
        """Where a row's bytes are, and which of them count: none behind the last row."""
        index = start + offset
        if not aligned:
            index, mask = locate(start, column, row_bytes)
        return index, mask if live else np.uint32(0)

    @device
    def sum_rows(source, pitch, start, column, row_bytes, row, stop, together, total, missing, nodata):
        index, mask = locate(start, column, row_bytes)
        offset, step = index - start, together * pitch
        while row < stop:
            at, m = place(start, column, row_bytes, offset, mask, True)
            at_b, n = place(start + step, column, row_bytes, offset, mask, row + together < stop)
            at_c, o = place(start + 2 * step, column, row_bytes, offset, mask, row + 2 * together < stop)
            at_d, p = place(start + 3 * step, column, row_bytes, offset, mask, row + 3 * together < stop)
            a, b, c, d = load(source, (at, at_b, at_c, at_d), (m, n, o, p))
            if aligned:  # what was not loaded is 0
                total += np.int64(add(a, mask)) + add(b, mask) + add(c, mask) + add(d, mask)
            else:
                total += np.int64(add(a, m)) + add(b, n) + add(c, o) + add(d, p)
            if skips:
                missing += absent_in(a, m, nodata) + absent_in(b, n, nodata)
                missing += absent_in(c, o, nodata) + absent_in(d, p, nodata)
            row = np.int32(row + 4 * together)
            start += 4 * step
        return total, missing

    return sum_rows
