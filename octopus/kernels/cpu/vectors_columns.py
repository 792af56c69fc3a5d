"""Columns of a result out of a row of bytes, 16 at a time, each from the two pixels beside it.

Both pixels of up to four channels lie within eight bytes, so that one load fetches all that a column needs; vectors
of 64-bit integers are then taken apart by shifts. A gather instruction would fetch every byte by itself. What is
written here is LLVM's general language: every processor that it knows can do it.

`mix_rows` makes rows of the result out of two such rows.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import RequireLiteralValue
from numba.extending import intrinsic

from octopus.kernels.cpu.vectors import _FLOAT, _INT, _LONG, LANES, _load, _splat, _store
from octopus.kernels.cpu.vectors_pairs import _fetch
from octopus.kernels.geometry import ROUNDING

VECTOR_BYTES = 4 * LANES
FETCHED = 8  # bytes read from a column's first pixel on
FETCHED_AHEAD = (0, 5, 10)  # columns whose lines of the cache are asked for in another row: all, up to 1/4
MOST_CHANNELS = FETCHED // 2
_WORDS, _FLOATS = ir.VectorType(_INT, LANES), ir.VectorType(_FLOAT, LANES)
_CONTRACT = ["contract"]


def _words_of(builder: Any, source: Any, places: Any) -> list:
    """The first and the second four bytes that 16 columns fetch.

    The columns of each four are divided between two vectors, so that both are shuffled within 16 bytes alone.
    """
    address = builder.ptrtoint(source, _LONG)
    halves = []
    for first in (0, 2):
        vector = ir.Constant(ir.VectorType(_LONG, LANES // 2), ir.Undefined)
        for lane in range(LANES // 2):
            column = first + lane // 2 * 4 + lane % 2
            place = builder.load(builder.gep(places, [_LONG(column)]))
            pointer = builder.inttoptr(builder.add(address, place), _LONG.as_pointer())
            vector = builder.insert_element(vector, builder.load(pointer, align=1), _INT(lane))
        halves.append(builder.bitcast(vector, _WORDS))
    masks = [[4 * k + word + i for k in range(4) for i in (0, 2, LANES, LANES + 2)] for word in range(2)]
    return [builder.shuffle_vector(*halves, ir.Constant(_WORDS, mask)) for mask in masks]


def _value(builder: Any, words: list, index: int) -> Any:
    """Byte `index` of those that each column fetched, as float32."""
    word, shift = words[index // 4], index % 4 * 8
    if shift:
        word = builder.lshr(word, ir.Constant(_WORDS, [shift] * LANES))
    if shift < 24:
        word = builder.and_(word, ir.Constant(_WORDS, [255] * LANES))
    return builder.sitofp(word, _FLOATS)


def _mixed(builder: Any, low: Any, high: Any, weight: Any) -> Any:
    """`low + weight * (high - low)`."""
    product = builder.fmul(weight, builder.fsub(high, low), flags=_CONTRACT)
    return builder.fadd(low, product, flags=_CONTRACT)


def _side_by_side(builder: Any, vectors: list) -> Any:
    """The values of each column next to each other."""
    count = len(vectors)
    pairs = [(vectors[i], vectors[min(i + 1, count - 1)]) for i in range(0, count, 2)]
    every = ir.Constant(ir.VectorType(_INT, 2 * LANES), list(range(2 * LANES)))
    joined = [builder.shuffle_vector(*pair, every) for pair in pairs]
    places = [i % count * LANES + i // count for i in range(count * LANES)]
    mask = ir.Constant(ir.VectorType(_INT, len(places)), places)
    return builder.shuffle_vector(joined[0], joined[-1], mask)


def store_columns(builder: Any, values: list, into: Any, at: Any, plane: Any, planar: Any) -> None:
    """Write vectors of 16 columns from column `at` on, a plane for each channel if `planar`, else side by side."""
    with builder.if_else(planar) as (apart, together):
        with apart:
            for c, vector in enumerate(values):
                place = builder.add(at, builder.mul(plane, _LONG(c)))
                _store(builder, vector, builder.gep(into, [place]))
        with together:
            place = builder.mul(at, _LONG(len(values)))
            _store(builder, _side_by_side(builder, values), builder.gep(into, [place]))


@intrinsic
def columns_of_bytes(
    typing_context, source, places, weights, blocks, gain, bias, into, plane, ahead, channels, stored, back
):
    """One row of bytes at the result's columns, normalised.

    Parameters
    ----------
    source : pointer to uint8
        The box's first pixel in the row; `FETCHED` bytes from each of `places` on must be readable.
    places, weights : pointers to int64 and float32
        Of each column, where its left pixel begins, in bytes, and the share of its right one.
    blocks : int64
        Of 16 columns.
    gain, bias : pointers to float32
    into : pointer to float32
    plane : int64
        Values from one channel to the next; 0 puts the channels of a column side by side.
    ahead : int64
        Bytes from here to the row that is asked for in the meantime.
    channels : literal int
        1 to `MOST_CHANNELS`.
    stored : literal int
        Bytes from pixel to pixel.
    back : literal bool
        Whether the last of the channels is the first in a pixel.
    """
    if not all(isinstance(kind, types.Literal) for kind in (channels, stored, back)):
        raise RequireLiteralValue("channels, stored, back")
    own, step_bytes = range(channels.literal_value), stored.literal_value
    places_of = own[::-1] if back.literal_value else own

    def generate(context, builder, signature, arguments):
        source, places, weights, blocks, gain, bias, into, plane, ahead, *_ = arguments
        wanted = builder.add(builder.ptrtoint(source, _LONG), ahead)
        scales, shifts = (
            [_splat(builder, builder.load(builder.gep(values, [_LONG(c)]))) for c in own] for values in (gain, bias)
        )
        planar = builder.icmp_signed("!=", plane, _LONG(0))
        with cgutils.for_range(builder, blocks) as loop:
            at = builder.mul(loop.index, _LONG(LANES))
            for column in FETCHED_AHEAD:
                place = builder.load(builder.gep(places, [builder.add(at, _LONG(column))]))
                _fetch(builder, builder.add(wanted, place))
            words = _words_of(builder, source, builder.gep(places, [at]))
            weight = _load(builder, builder.gep(weights, [at]), _FLOAT)
            values = []
            for c in own:
                low, high = (_value(builder, words, tap * step_bytes + places_of[c]) for tap in range(2))
                mixed = builder.fmul(_mixed(builder, low, high, weight), scales[c], flags=_CONTRACT)
                values.append(builder.fadd(mixed, shifts[c], flags=_CONTRACT))
            store_columns(builder, values, into, at, plane, planar)
        return context.get_dummy_value()

    step, floats = types.int64, types.CPointer(types.float32)
    kinds = source, types.CPointer(step), floats, step, floats, floats, floats, step, step
    return types.none(*kinds, channels, stored, back), generate


@intrinsic
def as_elements(typing_context, memory, like):
    """A pointer to memory as elements of what another points to."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], arguments[1].type)

    return like(memory, like), generate


def _byte(builder: Any, vector: Any) -> Any:
    """`geometry.saturate_uint8`: after the rounding addition the lowest byte is the number; of NaN it is 0."""
    for relation, limit in ((">", 0.0), ("<", 255.0)):
        bound = ir.Constant(_FLOATS, [limit] * LANES)
        vector = builder.select(builder.fcmp_ordered(relation, vector, bound), vector, bound)
    rounded = builder.fadd(vector, ir.Constant(_FLOATS, [float(ROUNDING)] * LANES))
    return builder.trunc(builder.bitcast(rounded, _WORDS), ir.VectorType(ir.IntType(8), LANES))


def _mixed_rows(builder: Any, above: Any, below: Any, weights: Any, at: Any, element: Any) -> Any:
    """16 values between two rows, in the type of the result."""
    high, low = (_load(builder, builder.gep(row, [at]), _FLOAT) for row in (above, below))
    mixed = builder.fadd(high, builder.fmul(weights, builder.fsub(low, high)))
    return mixed if element == _FLOAT else _byte(builder, mixed)


@intrinsic
def mix_rows(typing_context, above, below, weight, blocks, out):
    """`above + weight * (below - above)` of `blocks` of 16 values, as float32 or uint8."""

    def generate(context, builder, signature, arguments):
        above, below, weight, blocks, out = arguments
        weights = _splat(builder, weight)
        with cgutils.for_range(builder, blocks) as loop:
            at = builder.mul(loop.index, _LONG(LANES))
            mixed = _mixed_rows(builder, above, below, weights, at, out.type.pointee)
            _store(builder, mixed, builder.gep(out, [at]))
        return context.get_dummy_value()

    return types.none(above, below, types.float32, types.int64, out), generate


@intrinsic
def mix_some(typing_context, above, below, weight, count, out):
    """The same of fewer than 16 values; as many are read."""

    def generate(context, builder, signature, arguments):
        above, below, weight, count, out = arguments
        mixed = _mixed_rows(builder, above, below, _splat(builder, weight), _LONG(0), out.type.pointee)
        lanes = ir.Constant(_WORDS, list(range(LANES)))
        mask = builder.icmp_signed("<", lanes, _splat(builder, builder.trunc(count, _INT)))
        where = builder.bitcast(out, mixed.type.as_pointer())
        name = f"llvm.masked.store.v{LANES}{'f32' if out.type.pointee == _FLOAT else 'i8'}.p0"
        kind = ir.FunctionType(ir.VoidType(), [mixed.type, where.type, _INT, mask.type])
        builder.call(cgutils.get_or_insert_function(builder.module, kind, name), [mixed, where, _INT(1), mask])
        return context.get_dummy_value()

    return types.none(above, below, types.float32, types.int64, out), generate


@intrinsic
def address_of(typing_context, memory):
    """What a pointer holds."""

    def generate(context, builder, signature, arguments):
        return builder.ptrtoint(arguments[0], _LONG)

    return types.int64(memory), generate
