"""Sums of bytes in Pillow's fixed point by whole vectors: pairs of neighbours as int16 times pairs of weights.

Processors multiply two pairs of int16 and add both products in one instruction (SSE2's and AVX2's pmaddwd, with VNNI
the sum before, too), and LLVM finds it in what is written here in its general language. Weights have more than 16
bits, so there are two sums, of their low and of their high 16; int32 wraps, and nothing is lost.

A vector holds a pair for each of 16 rows, or of 16 neighbouring values of two rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import binding, ir
from numba import config, types
from numba.core import cgutils
from numba.core.errors import RequireLiteralValue
from numba.extending import intrinsic

from octopus.kernels.cpu.vectors import _INT, _LONG, LANES, WIDE, _fixed_pixel, _load, _splat, _store
from octopus.kernels.images import FIXED_HALF

PAIRED = 2 * LANES  # int16 of a vector
BLOCK = 16  # bytes of a row that are read at a time
AHEAD = 128  # bytes from there to what is asked for: 16 rows at once are more than a processor foresees
_SHORT, _BYTE = ir.IntType(16), ir.IntType(8)
_WORDS, _SHORTS, _BYTES = (
    ir.VectorType(kind, size) for kind, size in ((_INT, LANES), (_SHORT, PAIRED), (_BYTE, 4 * LANES))
)


def _picked(builder: Any, one: Any, other: Any, places: list) -> Any:
    return builder.shuffle_vector(one, other, ir.Constant(ir.VectorType(_INT, len(places)), places))


def _joined(builder: Any, parts: list) -> Any:
    while len(parts) > 1:
        every = list(range(2 * parts[0].type.count))
        parts = [_picked(builder, a, b, every) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def _lanes(pattern: list, other: int) -> list:
    """A pattern of four within each 16 bytes; its numbers from 4 on mean the second vector, which begins at `other`."""
    return [4 * lane + (i if i < 4 else i - 4 + other) for lane in range(4) for i in pattern]


def _words_of(builder: Any, rows: list, places: list | None) -> list:
    """16 rows of 16 bytes as four vectors: word k of all rows; the bytes of a row are put at `places` before."""
    four = [_joined(builder, rows[k::4]) for k in range(4)]
    if places:
        inside = [16 * lane + place for lane in range(4) for place in places]
        four = [_picked(builder, part, part, inside) for part in four]
    a, b, c, d = (builder.bitcast(part, _WORDS) for part in four)
    low, high = [0, 4, 1, 5], [2, 6, 3, 7]
    halves = [[_picked(builder, x, y, _lanes(half, LANES)) for x, y in ((a, b), (c, d))] for half in (low, high)]
    return [_picked(builder, *pair, _lanes(half, LANES)) for pair in halves for half in ([0, 1, 4, 5], [2, 3, 6, 7])]


def _fetch(builder: Any, address: Any) -> None:
    """Ask for the line of the cache at an address, which need not exist: to be read, into all caches."""
    kind, place = ir.FunctionType(ir.VoidType(), [_BYTE.as_pointer(), *[_INT] * 3]), _BYTE.as_pointer()
    fetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    builder.call(fetch, [builder.inttoptr(address, place), _INT(0), _INT(3), _INT(1)])


@intrinsic
def load_pairs(typing_context, source, rows, into, stride):
    """16 neighbouring bytes of 16 rows as pairs of neighbouring pixels, whose values are `stride` (1 to 4) bytes apart.

    `source` points to the first byte of row 0, `rows` to the rows' places in bytes from there (int64). `into` gets
    vectors of int16, `stride` for each pair of pixels: 8, or with a stride of 3 only 6, of the first 12 bytes.
    """
    if not isinstance(stride, types.IntegerLiteral):
        raise RequireLiteralValue("stride")
    apart = stride.literal_value
    quads = 4 // apart  # of pixels
    # Byte b of word q * stride + j: value j of pixel 4 q + b.
    places = [(4 * (word // apart) + b) * apart + word % apart for word in range(quads * apart) for b in range(4)]
    places += [0] * (BLOCK - len(places))

    def generate(context, builder, signature, arguments):
        source, rows, into, _ = arguments
        address, zeros = builder.ptrtoint(source, _LONG), ir.Constant(_BYTES, [0] * 4 * LANES)
        at = [builder.add(address, builder.load(builder.gep(rows, [_LONG(row)]))) for row in range(LANES)]
        for row in at:
            _fetch(builder, builder.add(row, _LONG(AHEAD)))
        words = _words_of(builder, [_load(builder, row, _BYTE) for row in at], places if apart > 1 else None)
        for number, word in enumerate(words[: quads * apart]):
            quad, value = divmod(number, apart)
            for half in range(2):
                widened = [i for row in range(LANES) for b in range(2) for i in (4 * row + 2 * half + b, 4 * LANES)]
                pair = _picked(builder, builder.bitcast(word, _BYTES), zeros, widened)
                to = _LONG(((2 * quad + half) * apart + value) * PAIRED)
                _store(builder, pair, builder.bitcast(builder.gep(into, [to]), _BYTE.as_pointer()))
        return context.get_dummy_value()

    return types.none(source, types.CPointer(types.int64), into, stride), generate


@intrinsic
def store_pairs(typing_context, values, into, step):
    """16 values of 16 rows, those of a value side by side, as 8 vectors of pairs of rows, `step` int16 apart."""

    def generate(context, builder, signature, arguments):
        values, into, step = arguments
        for half in range(2):
            rows = [
                builder.bitcast(
                    _load(builder, builder.gep(values, [_LONG(i * LANES + 8 * half)]), _SHORT, 8),
                    ir.VectorType(_BYTE, BLOCK),
                )
                for i in range(LANES)
            ]
            for k, word in enumerate(_words_of(builder, rows, None)):
                _store(builder, word, builder.gep(into, [builder.mul(step, _LONG(4 * half + k))]))
        return context.get_dummy_value()

    return types.none(values, values, types.int64), generate


def _multiply_add(builder: Any) -> tuple[str, int]:
    """The processor's instruction for `_products`, as LLVM names it, and its int16; none: "" and all.

    LLVM would find it, had its earlier passes not put the additions in another order by then.
    """
    features = config.CPU_FEATURES
    if features is None:
        features = "" if config.CPU_NAME else binding.get_host_cpu_features().flatten()
    known = (("+avx512bw", "llvm.x86.avx512.pmaddw.d.512", 32), ("+avx2", "llvm.x86.avx2.pmadd.wd", 16))
    return next(((name, size) for feature, name, size in known if feature in features.split(",")), ("", PAIRED))


def _products(builder: Any, one: Any, other: Any) -> Any:
    """Products of pairs of int16, added: 16 int32."""
    name, size = _multiply_add(builder)
    parts = [
        [_picked(builder, vector, vector, list(range(at, at + size))) for at in range(0, PAIRED, size)]
        for vector in (one, other)
    ]
    if name:
        small, wide = ir.VectorType(_SHORT, size), ir.VectorType(_INT, size // 2)
        call = cgutils.get_or_insert_function(builder.module, ir.FunctionType(wide, [small, small]), name)
        return _joined(builder, [builder.call(call, pair) for pair in zip(*parts, strict=True)])
    wide = ir.VectorType(_INT, PAIRED)
    products = builder.mul(builder.sext(one, wide), builder.sext(other, wide))
    even, odd = (_picked(builder, products, products, list(range(i, PAIRED, 2))) for i in range(2))
    return builder.add(even, odd)


def _sums(builder: Any, weights: Any, count: Any, sums: int, pairs: Callable) -> list:
    """`sums` vectors of bytes as int32: of the products of `count` pairs of weights and what `pairs(index)` yields."""
    totals = [
        [cgutils.alloca_once_value(builder, ir.Constant(_WORDS, [start] * LANES)) for _ in range(sums)]
        for start in (FIXED_HALF, 0)
    ]
    with cgutils.for_range(builder, count) as loop:
        own = builder.gep(weights, [builder.mul(loop.index, _LONG(2))])
        both = [_splat(builder, builder.load(builder.gep(own, [_LONG(part)]))) for part in range(2)]
        for number, pair in enumerate(pairs(loop.index)):
            for total, weight in zip(totals, both, strict=True):
                product = _products(builder, pair, builder.bitcast(weight, _SHORTS))
                builder.store(builder.add(builder.load(total[number]), product), total[number])
    bits = ir.Constant(_WORDS, [16] * LANES)
    whole = [
        builder.add(builder.load(low), builder.shl(builder.load(high), bits)) for low, high in zip(*totals, strict=True)
    ]
    return [_fixed_pixel(builder, total) for total in whole]


def _store_as(builder: Any, vector: Any, address: Any) -> None:
    """Store bytes in int32 as what the address points to."""
    element = address.type.pointee
    narrow = vector if element == _INT else builder.trunc(vector, ir.VectorType(element, LANES))
    _store(builder, narrow, address)


@intrinsic
def sum_pairs_across(typing_context, values, pair_step, channel_step, weights, count, into, into_step, channels):
    """As `vectors.sum_across`, of pairs of pixels, by `count` pairs of pairs of weights; sums are bytes in int16."""
    if not isinstance(channels, types.IntegerLiteral):
        raise RequireLiteralValue("channels")

    def generate(context, builder, signature, arguments):
        values, pair_step, channel_step, weights, count, into, into_step, _ = arguments

        def pairs(index):
            first = builder.gep(values, [builder.mul(index, pair_step)])
            for c in range(channels.literal_value):
                address = builder.gep(first, [builder.mul(channel_step, _LONG(c))])
                yield _load(builder, address, _SHORT, PAIRED)

        for c, total in enumerate(_sums(builder, weights, count, channels.literal_value, pairs)):
            _store_as(builder, total, builder.gep(into, [builder.mul(into_step, _LONG(c))]))
        return context.get_dummy_value()

    step = types.int64
    return types.none(values, step, step, weights, step, into, step, channels), generate


@intrinsic
def sum_pairs_along(typing_context, ring, line, slots, first, weights, count, into):
    """As `vectors.sum_along`, of pairs of rows, which `line`, `slots` and `first` count; sums are bytes in integers."""

    def generate(context, builder, signature, arguments):
        ring, line, slots, first, weights, count, into = arguments

        def pairs(index):
            slot = builder.add(first, index)
            beyond = builder.icmp_signed(">=", slot, slots)
            slot = builder.select(beyond, builder.sub(slot, slots), slot)
            row = builder.gep(ring, [builder.mul(slot, line)])
            for part in range(WIDE):
                yield _load(builder, builder.gep(row, [_LONG(part * PAIRED)]), _SHORT, PAIRED)

        for part, total in enumerate(_sums(builder, weights, count, WIDE, pairs)):
            _store_as(builder, total, builder.gep(into, [_LONG(part * LANES)]))
        return context.get_dummy_value()

    step = types.int64
    return types.none(ring, step, step, step, weights, step, into), generate
