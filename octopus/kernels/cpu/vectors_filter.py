"""The antialiasing filter by vectors: sums of rows of a frame, and of neighbouring pixels of what these gave.

As in `vectors`, it is LLVM's general language.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import RequireLiteralValue
from numba.extending import intrinsic

from octopus.kernels.cpu.vectors import _FLOAT, _INT, _LONG, LANES, _load, _splat, _store, _widened
from octopus.kernels.cpu.vectors_columns import _CONTRACT, _FLOATS, _WORDS

GROUP = 8  # values that `columns_of_floats` weighs at once


def _halves(builder: Any, vector: Any, by: int, lanes: int) -> Any:
    """A vector plus itself moved down by some lanes."""
    mask = ir.Constant(ir.VectorType(_INT, lanes), [(i + by) % lanes for i in range(lanes)])
    return builder.fadd(vector, builder.shuffle_vector(vector, vector, mask))


@intrinsic
def columns_of_floats(
    typing_context, line, starts, weights, groups, bias, columns, into, steps, channels, stored, back, unrolled
):
    """Two rows' columns, each `bias` and weighted neighbouring pixels, whose channels lie side by side in all rows.

    Parameters
    ----------
    line : pointer to float32
        What lies up to `groups` groups behind a column's first value is read and must be finite.
    starts : pointer to int64
        Of each column: its first value.
    weights : pointer to float32
        `groups * GROUP` for each column, where a group is `GROUP // stored` pixels: those of a pixel's channels side
        by side, 0 where there is none.
    groups : int64
        How many groups a column is made of; no matter if `unrolled`, a literal, isn't 0 but this number.
    bias, into : pointers to float32
        `GROUP` values, of which all but the first `stored` are 0. Four values more than the columns have are written.
    columns : int64
    steps : (int64, int64)
        From the first row to the second one, in `line` and `into`.
    channels, stored, back : literals
        Channels of the result, 1 to 4; of a pixel in `line`; and whether the first three of these lie backwards.
    """
    if not all(isinstance(kind, types.Literal) for kind in (channels, stored, back, unrolled)):
        raise RequireLiteralValue("channels, stored, back, unrolled")
    own, fixed, kind = stored.literal_value, unrolled.literal_value, ir.VectorType(_FLOAT, GROUP)
    order = [2, 1, 0, 3] if back.literal_value else [0, 1, 2, 3]
    pixels = GROUP // own

    def generate(context, builder, signature, arguments):
        line, starts, weights, groups, bias, columns, into, steps, *_ = arguments
        first, count = _load(builder, bias, _FLOAT, GROUP), _LONG(fixed) if fixed else groups
        line_step, into_step = (builder.extract_value(steps, i) for i in range(2))

        def add(sources: list, table: Any, group: Any, totals: list) -> list:
            weight = _load(builder, builder.gep(table, [builder.mul(group, _LONG(GROUP))]), _FLOAT, GROUP)
            place = builder.mul(group, _LONG(pixels * own))
            values = [_load(builder, builder.gep(source, [place]), _FLOAT, GROUP) for source in sources]
            products = [builder.fmul(weight, value, flags=_CONTRACT) for value in values]
            return [builder.fadd(*pair, flags=_CONTRACT) for pair in zip(totals, products, strict=True)]

        slots = [cgutils.alloca_once(builder, kind) for _ in range(2)]
        with cgutils.for_range(builder, columns) as loop:
            x = loop.index
            place = builder.load(builder.gep(starts, [x]))
            sources = [builder.gep(line, [at]) for at in (place, builder.add(place, line_step))]
            table = builder.gep(weights, [builder.mul(x, builder.mul(count, _LONG(GROUP)))])
            totals = [first, first]
            for group in range(fixed):
                totals = add(sources, table, _LONG(group), totals)
            if not fixed:
                for slot in slots:
                    builder.store(first, slot)
                with cgutils.for_range(builder, groups) as taps:
                    sums = add(sources, table, taps.index, [builder.load(slot) for slot in slots])
                    for slot, total in zip(slots, sums, strict=True):
                        builder.store(total, slot)
                totals = [builder.load(slot) for slot in slots]
            to = builder.mul(x, _LONG(channels.literal_value))
            for total, at in zip(totals, (to, builder.add(to, into_step)), strict=True):
                by = pixels * own // 2
                while by >= own:
                    total, by = _halves(builder, total, by, GROUP), by // 2
                four = ir.Constant(ir.VectorType(_INT, 4), order)
                _store(builder, builder.shuffle_vector(total, total, four), builder.gep(into, [at]))
        return context.get_dummy_value()

    step, floats = types.int64, types.CPointer(types.float32)
    both = types.UniTuple(step, 2)
    kinds = floats, types.CPointer(step), floats, step, floats, step, floats, both
    return types.none(*kinds, channels, stored, back, unrolled), generate


@intrinsic
def take_apart(typing_context, row, blocks, into, plane, channels):
    """Put the channels of `blocks` of 16 columns, which lie side by side, `plane` values apart."""
    if not isinstance(channels, types.IntegerLiteral):
        raise RequireLiteralValue("channels")
    own = channels.literal_value

    def generate(context, builder, signature, arguments):
        row, blocks, into, plane, _ = arguments
        with cgutils.for_range(builder, blocks) as loop:
            at = builder.mul(loop.index, _LONG(LANES))
            values = _load(builder, builder.gep(row, [builder.mul(at, _LONG(own))]), _FLOAT, own * LANES)
            for c in range(own):
                places = ir.Constant(_WORDS, [c + own * i for i in range(LANES)])
                place = builder.add(at, builder.mul(plane, _LONG(c)))
                _store(builder, builder.shuffle_vector(values, values, places), builder.gep(into, [place]))
        return context.get_dummy_value()

    step, floats = types.int64, types.CPointer(types.float32)
    return types.none(floats, step, floats, step, channels), generate


@intrinsic
def sum_down(typing_context, source, pitch, weights, count, into, vectors):
    """`vectors` (a literal) times 16 neighbouring values of a frame's rows, weighted and added.

    Parameters
    ----------
    source : pointer
        The first of these values in the first of the rows.
    pitch : int64
        Elements from row to row.
    weights : pointer to float32
        `count` of them.
    into : pointer to float32
    """
    if not isinstance(vectors, types.IntegerLiteral):
        raise RequireLiteralValue("vectors")

    def generate(context, builder, signature, arguments):
        source, pitch, weights, count, into, _ = arguments
        parts = range(vectors.literal_value)
        totals = [cgutils.alloca_once_value(builder, ir.Constant(_FLOATS, [0.0] * LANES)) for _ in parts]
        with cgutils.for_range(builder, count) as loop:
            weight = _splat(builder, builder.load(builder.gep(weights, [loop.index])))
            row = builder.gep(source, [builder.mul(loop.index, pitch)])
            for part, total in zip(parts, totals, strict=True):
                place = builder.gep(row, [_LONG(part * LANES)])
                values = _widened(builder, _load(builder, place, source.type.pointee), _FLOAT)
                product = builder.fmul(weight, values, flags=_CONTRACT)
                builder.store(builder.fadd(builder.load(total), product, flags=_CONTRACT), total)
        for part, total in zip(parts, totals, strict=True):
            _store(builder, builder.load(total), builder.gep(into, [_LONG(part * LANES)]))
        return context.get_dummy_value()

    step, floats = types.int64, types.CPointer(types.float32)
    return types.none(source, step, floats, step, floats, vectors), generate
