"""What the image kernels do by whole vectors of 16: sums over taps, and turning blocks of 16 x 16 values.

LLVM finds no good code for these in loops of scalars: it would gather single bytes. Written as vectors of its own
language they become what each processor has, two registers of eight floats where there are none of sixteen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import RequireLiteralValue
from numba.extending import intrinsic

from octopus.kernels.images import FIXED_BITS, FIXED_HALF

LANES = 16
WIDE = 4  # vectors that `sum_along` keeps: enough sums at once to hide how long one addition takes
_INT, _LONG, _FLOAT = ir.IntType(32), ir.IntType(64), ir.FloatType()


def _load(builder: Any, address: Any, element: Any, lanes: int = LANES) -> Any:
    """Neighbouring values at an address or a pointer, of any alignment."""
    kind = ir.VectorType(element, lanes).as_pointer()
    cast = builder.inttoptr if isinstance(address.type, ir.IntType) else builder.bitcast
    return builder.load(cast(address, kind), align=1)


def _store(builder: Any, vector: Any, address: Any) -> Any:
    cast = builder.inttoptr if isinstance(address.type, ir.IntType) else builder.bitcast
    return builder.store(vector, cast(address, vector.type.as_pointer()), align=1)


def _splat(builder: Any, value: Any) -> Any:
    kind = ir.VectorType(value.type, LANES)
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), value, _INT(0))
    zeros = ir.Constant(ir.VectorType(_INT, LANES), [0] * LANES)
    return builder.shuffle_vector(one, ir.Constant(kind, ir.Undefined), zeros)


def _turned(builder: Any, rows: list) -> list:
    """The columns of a 16 x 16 block: four times, two vectors half the block apart are interleaved."""
    mask_type = ir.VectorType(_INT, LANES)
    half = LANES // 2
    masks = [ir.Constant(mask_type, [i // 2 + first + (i % 2) * LANES for i in range(LANES)]) for first in (0, half)]
    for _ in range(LANES.bit_length() - 1):
        pairs = zip(rows[:half], rows[half:], strict=True)
        rows = [builder.shuffle_vector(a, b, mask) for a, b in pairs for mask in masks]
    return rows


def _widened(builder: Any, vector: Any, element: Any) -> Any:
    """Values of a source as 32-bit integers or floats."""
    if vector.type.element == element:
        return vector
    wide = builder.zext(vector, ir.VectorType(_INT, LANES))
    return wide if isinstance(element, ir.IntType) else builder.sitofp(wide, ir.VectorType(_FLOAT, LANES))


@intrinsic
def load_across(typing_context, source, rows, into):
    """16 neighbouring values of 16 rows, those of a column side by side.

    `source` points to the first value of row 0, `rows` to the rows' places in bytes from there (int64), `into` to 256
    values.
    """

    def generate(context, builder, signature, arguments):
        source, rows, into = arguments
        address = builder.ptrtoint(source, _LONG)
        places = [builder.load(builder.gep(rows, [_LONG(row)])) for row in range(LANES)]
        block = [_load(builder, builder.add(address, place), source.type.pointee) for place in places]
        for column, vector in enumerate(_turned(builder, block)):
            _store(builder, vector, builder.gep(into, [_LONG(column * LANES)]))
        return context.get_dummy_value()

    return types.none(source, types.CPointer(types.int64), source), generate


@intrinsic
def store_along(typing_context, values, into, row_step):
    """The way back: a 16 x 16 block of float32 or int32 as 16 rows, `row_step` elements from one to the next."""

    def generate(context, builder, signature, arguments):
        values, into, row_step = arguments
        element = values.type.pointee
        columns = [_load(builder, builder.gep(values, [_LONG(i * LANES)]), element) for i in range(LANES)]
        for row, vector in enumerate(_turned(builder, columns)):
            _store(builder, vector, builder.gep(into, [builder.mul(row_step, _LONG(row))]))
        return context.get_dummy_value()

    return types.none(values, values, types.int64), generate


def _sums(builder: Any, weights: Any, count: Any, sums: int, values: Callable) -> list:
    """`sums` vectors, each of the products of `count` weights and what `values(tap)` yields."""
    element = weights.type.pointee
    fixed = isinstance(element, ir.IntType)
    kind = ir.VectorType(element, LANES)
    start = ir.Constant(kind, [FIXED_HALF if fixed else 0.0] * LANES)
    totals = [cgutils.alloca_once_value(builder, start) for _ in range(sums)]
    with cgutils.for_range(builder, count) as loop:
        weight = _splat(builder, builder.load(builder.gep(weights, [loop.index])))
        for total, value in zip(totals, values(loop.index), strict=True):
            before = builder.load(total)
            if fixed:
                after = builder.add(before, builder.mul(weight, value))
            else:
                after = builder.fadd(before, builder.fmul(weight, value, flags=["contract"]), flags=["contract"])
            builder.store(after, total)
    results = [builder.load(total) for total in totals]
    return [_fixed_pixel(builder, result) for result in results] if fixed else results


def _fixed_pixel(builder: Any, total: Any) -> Any:
    """`images.fixed_pixel` of 16 sums that hold the half already."""
    low, high, bits = (ir.Constant(total.type, [value] * LANES) for value in (0, 255, FIXED_BITS))
    value = builder.ashr(total, bits)
    value = builder.select(builder.icmp_signed("<", value, low), low, value)
    return builder.select(builder.icmp_signed(">", value, high), high, value)


@intrinsic
def sum_across(typing_context, values, pixel_step, channel_step, weights, count, into, into_step, channels):
    """The horizontal pass of one output column in 16 rows.

    Parameters
    ----------
    values : pointer
        From `load_across`: the first channel of the first pixel under the filter.
    pixel_step, channel_step, into_step : int64
        In elements: from pixel to pixel, from channel to channel, from one channel's sums to the next one's.
    weights : pointer
        `count` float32, or int32 in fixed point, whose sums are rounded and cut to a byte.
    channels : literal int
    """
    if not isinstance(channels, types.IntegerLiteral):
        raise RequireLiteralValue("channels")

    def generate(context, builder, signature, arguments):
        values, pixel_step, channel_step, weights, count, into, into_step, _ = arguments

        def taps(index):
            first = builder.gep(values, [builder.mul(index, pixel_step)])
            for c in range(channels.literal_value):
                address = builder.gep(first, [builder.mul(channel_step, _LONG(c))])
                yield _widened(builder, _load(builder, address, values.type.pointee), weights.type.pointee)

        for c, total in enumerate(_sums(builder, weights, count, channels.literal_value, taps)):
            _store(builder, total, builder.gep(into, [builder.mul(into_step, _LONG(c))]))
        return context.get_dummy_value()

    step = types.int64
    return types.none(values, step, step, weights, step, into, step, channels), generate


@intrinsic
def sum_along(typing_context, ring, line, slots, first, weights, count, into):
    """The vertical pass of 64 neighbouring values: rows of a ring from slot `first` on, `line` elements each."""

    def generate(context, builder, signature, arguments):
        ring, line, slots, first, weights, count, into = arguments

        def taps(index):
            slot = builder.add(first, index)
            beyond = builder.icmp_signed(">=", slot, slots)
            slot = builder.select(beyond, builder.sub(slot, slots), slot)
            row = builder.gep(ring, [builder.mul(slot, line)])
            for part in range(WIDE):
                yield _load(builder, builder.gep(row, [_LONG(part * LANES)]), ring.type.pointee)

        for part, total in enumerate(_sums(builder, weights, count, WIDE, taps)):
            _store(builder, total, builder.gep(into, [_LONG(part * LANES)]))
        return context.get_dummy_value()

    step = types.int64
    return types.none(ring, step, step, step, weights, step, into), generate


@intrinsic
def copy_block(typing_context, source, target, size, streams):
    """Copy `size` bytes from address to address; `size` and `streams` are literals.

    With `streams` the target, a multiple of `size`, is written past the caches, without being read first.
    """
    if not (isinstance(size, types.IntegerLiteral) and isinstance(streams, types.BooleanLiteral)):
        raise RequireLiteralValue("size, streams")

    def generate(context, builder, signature, arguments):
        block = _load(builder, arguments[0], ir.IntType(8), size.literal_value)
        store = _store(builder, block, arguments[1])
        if streams.literal_value:
            store.align = size.literal_value
            store.set_metadata("nontemporal", builder.module.add_metadata([_INT(1)]))
        return context.get_dummy_value()

    return types.none(types.int64, types.int64, size, streams), generate
