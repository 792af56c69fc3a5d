"""Operations on a flat ragged batch on the CPU, by the same four ways to find the owner as on the GPU.

Each way cuts the batch into runs of elements of one item and hands them to `_run`, whose inner loops are vectorised.
What differs is what a run costs to find: A reads an owner per element, B searches for every few elements, C reads one
record per block, D searches once per part and then walks from item to item.
"""

from collections.abc import Callable

import numpy as np

from octopus.kernels import pixelwise
from octopus.kernels.cpu import compiled, next_block, pointer, shifted
from octopus.kernels.cpu.store import CAST
from octopus.kernels.operations import OPERATIONS

_MULTIPLY, _NORMALIZE, _THRESHOLD, _BLUR3X3 = map(OPERATIONS.index, ("multiply", "normalize", "threshold", "blur3x3"))

_search = compiled(pixelwise.last_at_or_before)
_multiply, _normalize = compiled(pixelwise.multiply), compiled(pixelwise.normalize)
_threshold = compiled(pixelwise.threshold)
_gamma, _gamma_of_bytes = compiled(pixelwise.gamma), compiled(pixelwise.gamma_of_bytes)
_column3, _column5, _smooth = map(compiled, (pixelwise.column3, pixelwise.column5, pixelwise.smooth))
_blur3, _blur5_sobel = compiled(pixelwise.blur3), compiled(pixelwise.blur5_sobel)


def build(strategy: str, stencil: bool, dtype: str, out_dtype: str, offset_dtype: str) -> Callable:
    """The kernel of a strategy for dtypes of elements, results and offsets, for stencils or for the other operations.
    Its arguments are `counter, blocks, operation, elements, results, number of elements, offsets, number of items,
    first parameters, second parameters, widths, heights, owners, starts, size, pack`; B searches for `pack` elements of
    a block's `size` at once."""
    one_block = _strategies(_runner(stencil, dtype, out_dtype))[strategy]
    source_type, out_type, offset_type = (getattr(np, name) for name in (dtype, out_dtype, offset_dtype))

    def kernel(arguments):
        batch = (
            arguments[2], pointer(arguments[3], source_type), pointer(arguments[4], out_type),
            pointer(arguments[6], offset_type), pointer(arguments[8], np.float32), pointer(arguments[9], np.float32),
            pointer(arguments[10], np.int32), pointer(arguments[11], np.int32),
        )  # fmt: skip
        total, items = arguments[5], np.int32(arguments[7])
        owner, starts = pointer(arguments[12], np.int32), pointer(arguments[13], np.int64)
        while True:
            block = next_block(arguments[0])
            if block >= arguments[1]:
                return
            one_block(batch, block, total, items, owner, starts, arguments[14], arguments[15])

    return kernel


def _strategies(run: Callable) -> dict[str, Callable]:

    @compiled
    def lookup(batch, block, total, items, owner, starts, size, pack):
        """A. Neighbours with the same owner are done together."""
        at, stop = block * size, min((block + 1) * size, total)
        while at < stop:
            item = owner[at]
            end = at + 1
            while end < stop and owner[end] == item:
                end += 1
            run(batch, item, at, end)
            at = end

    @compiled
    def thread_search(batch, block, total, items, owner, starts, size, pack):
        """B. Each pack of elements searches all offsets."""
        offsets = batch[3]
        at, stop = block * size, min((block + 1) * size, total)
        while at < stop:
            item = _search(offsets, np.int32(0), items, at)
            end = min(at + pack, stop)
            while at < end:
                while offsets[item + 1] <= at:
                    item += np.int32(1)
                until = min(end, np.int64(offsets[item + 1]))
                run(batch, item, at, until)
                at = until

    @compiled
    def block_metadata(batch, block, total, items, owner, starts, size, pack):
        """C. One record per block."""
        item, low = owner[block], starts[block]
        run(batch, item, low, min(low + size, np.int64(batch[3][item + 1])))

    @compiled
    def block_search(batch, block, total, items, owner, starts, size, pack):
        """D. One search per part, then from item to item."""
        offsets = batch[3]
        at, stop = block * size, min((block + 1) * size, total)
        item = _search(offsets, np.int32(0), items, at)
        while at < stop:
            end = min(stop, np.int64(offsets[item + 1]))
            if end > at:
                run(batch, item, at, end)
            at = end
            item += np.int32(1)

    found = {"lookup": lookup, "thread_search": thread_search, "block_metadata": block_metadata}
    return found | {"block_search": block_search}


def _runner(stencil: bool, dtype: str, out_dtype: str) -> Callable:
    """A function that does elements `low` to `high`, all of one item."""
    cast = CAST[out_dtype]
    if stencil:
        apply = _stencil(cast)

        @compiled
        def run(batch, item, low, high):
            operation, source, out, offsets, _, _, widths, heights = batch
            begin = np.int64(offsets[item])
            size = (np.int64(widths[item]), np.int64(heights[item]))
            apply(operation, shifted(source, begin), shifted(out, begin), size, low - begin, high - begin)

    else:
        apply = _pointwise(cast, _gamma_of_bytes if dtype == "uint8" else _gamma)

        @compiled
        def run(batch, item, low, high):
            operation, source, out, _, first, second, _, _ = batch
            apply(operation, shifted(source, low), shifted(out, low), high - low, first[item], second[item])

    return run


def _pointwise(cast: Callable, power: Callable) -> Callable:
    @compiled
    def pointwise(operation, source, out, count, a, b):
        if operation == _MULTIPLY:
            for i in range(count):
                out[i] = cast(_multiply(np.float32(source[i]), a, b))
        elif operation == _NORMALIZE:
            for i in range(count):
                out[i] = cast(_normalize(np.float32(source[i]), a, b))
        elif operation == _THRESHOLD:
            for i in range(count):
                out[i] = cast(_threshold(np.float32(source[i]), a, b))
        else:
            for i in range(count):
                out[i] = cast(power(np.float32(source[i]), a, b))

    return pointwise


@compiled
def _clamp(x, side):
    return max(np.int64(0), min(x, side - 1))


@compiled
def _sum3(rows, x):
    return _column3(np.float32(rows[1][x]), np.float32(rows[2][x]), np.float32(rows[3][x]))


@compiled
def _at5(rows, x0, x1, x2, x3, x4):
    r1, r2, r3 = rows[1], rows[2], rows[3]
    left = _smooth(np.float32(r1[x1]), np.float32(r2[x1]), np.float32(r3[x1]))
    right = _smooth(np.float32(r1[x3]), np.float32(r2[x3]), np.float32(r3[x3]))
    step1, step2 = np.float32(r3[x1]) - np.float32(r1[x1]), np.float32(r3[x2]) - np.float32(r1[x2])
    step3 = np.float32(r3[x3]) - np.float32(r1[x3])
    return _blur5_sobel(
        _sum5(rows, x0), _sum5(rows, x1), _sum5(rows, x2), _sum5(rows, x3), _sum5(rows, x4),
        left, right, step1, step2, step3,
    )  # fmt: skip


@compiled
def _sum5(rows, x):
    return _column5(
        np.float32(rows[0][x]), np.float32(rows[1][x]), np.float32(rows[2][x]), np.float32(rows[3][x]),
        np.float32(rows[4][x]),
    )  # fmt: skip


@compiled
def _rows(source, row, width, height):
    """The five rows around one; beyond the image the nearest one counts."""
    return (
        shifted(source, _clamp(row - 2, height) * width), shifted(source, _clamp(row - 1, height) * width),
        shifted(source, row * width),
        shifted(source, _clamp(row + 1, height) * width), shifted(source, _clamp(row + 2, height) * width),
    )  # fmt: skip


@compiled
def _at3(rows, x0, x1, x2, x3, x4):
    return _blur3(_sum3(rows, x1), _sum3(rows, x2), _sum3(rows, x3))


def _row(cast: Callable, at: Callable, reach: int) -> Callable:
    @compiled
    def row(rows, width, out, first, last):
        """Columns `first` to `last` of a row into the row of the result, those near the border by themselves."""
        for x in range(first, last):
            if x < reach or x >= width - reach:
                x0, x1 = _clamp(x - 2, width), _clamp(x - 1, width)
                out[x] = cast(at(rows, x0, x1, x, _clamp(x + 1, width), _clamp(x + 2, width)))
        for x in range(max(first, np.int64(reach)), min(last, width - reach)):
            out[x] = cast(at(rows, x - 2, x - 1, x, x + 1, x + 2))

    return row


def _stencil(cast: Callable) -> Callable:
    blur3_row, blur5_sobel_row = _row(cast, _at3, 1), _row(cast, _at5, 2)

    @compiled
    def stencil(operation, source, out, size, low, high):
        width, height = size
        row = low // width
        column = low - row * width
        while low < high:
            last = min(width, column + high - low)
            rows, target = _rows(source, row, width, height), shifted(out, row * width)
            if operation == _BLUR3X3:
                blur3_row(rows, width, target, column, last)
            else:
                blur5_sobel_row(rows, width, target, column, last)
            low += last - column
            column = np.int64(0)
            row += 1

    return stencil
