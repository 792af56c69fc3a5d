"""Samples of a frame's integers by vectors: all that a pixel of the result takes of a row lies side by side.

One load fetches the neighbouring pixels of a sample with all their channels, and rows are weighted and added as they
are; what is left is a sum over a few lanes. As in `vectors`, it is LLVM's general language.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import RequireLiteralValue
from numba.extending import intrinsic

from octopus.kernels.cpu.vectors import _FLOAT, _INT, _LONG, _load, _store
from octopus.kernels.cpu.vectors_columns import _CONTRACT
from octopus.kernels.cpu.vectors_pairs import _fetch

LEAST = 4  # values that are fetched or stored at once, at least


def fetched(taps: int, stored: int) -> int:
    """Values of a row from a sample's first one on that `sums_of_taps` reads."""
    return max(LEAST, 1 << (taps * stored - 1).bit_length())


def _picked(builder: Any, vector: Any, places: list) -> Any:
    return builder.shuffle_vector(vector, vector, ir.Constant(ir.VectorType(_INT, len(places)), places))


@intrinsic
def sums_of_taps(
    typing_context, source, pitch, places, down, across, count, gain, bias, into, rows, taps, channels, stored, back
):
    """Pixels of a result, normalised, whose channels lie side by side.

    Parameters
    ----------
    source : pointer to unsigned integers
    pitch : int64
        Values from row to row; where `rows` is 1 the next one is asked for in the meantime.
    places : pointer to int64
        Of each pixel, where the first of the frame's pixels begins that it takes; in each row `fetched` values must be
        readable from there on.
    down, across : pointers to float32
        For each pixel `rows` and `taps` weights, the latter `LEAST` times each where `rows` is 1; a single one is 1
        and not read.
    count : int64
    gain, bias : pointers to float32
    into : pointer to float32
        `LEAST` values more than there are get written.
    rows, taps, channels, stored : literal ints
        Neighbouring rows that a pixel takes, and pixels of each: 1, 2 or 4; channels of the result, and of a pixel of
        the frame.
    back : literal bool
        Whether the first three channels of a pixel of the frame lie backwards.
    """
    if not all(isinstance(kind, types.Literal) for kind in (rows, taps, channels, stored, back)):
        raise RequireLiteralValue("rows, taps, channels, stored, back")
    tall, size, own, pixel = (rows.literal_value, taps.literal_value, channels.literal_value, stored.literal_value)
    lanes = fetched(size, pixel)
    order = [2, 1, 0, 3] if back.literal_value else [0, 1, 2, 3]

    def generate(context, builder, signature, arguments):
        source, pitch, places, down, across, count, gain, bias, into, *_ = arguments
        kind, wide = ir.VectorType(_FLOAT, lanes), ir.VectorType(_INT, lanes)
        scale, shift = (ir.Constant(ir.VectorType(_FLOAT, LEAST), [0.0] * LEAST) for _ in range(2))
        for c in range(own):
            scale = builder.insert_element(scale, builder.load(builder.gep(gain, [_LONG(c)])), _INT(c))
            shift = builder.insert_element(shift, builder.load(builder.gep(bias, [_LONG(c)])), _INT(c))
        with cgutils.for_range(builder, count) as loop:
            x = loop.index
            place, total = builder.load(builder.gep(places, [x])), None
            shares = builder.gep(down, [builder.mul(x, _LONG(tall))])
            if tall == 1:
                _fetch(builder, builder.ptrtoint(builder.gep(source, [builder.add(place, pitch)]), _LONG))
            for row in range(tall):
                at = builder.gep(source, [builder.add(place, builder.mul(pitch, _LONG(row)))])
                values = _load(builder, at, source.type.pointee, lanes)
                values = builder.sitofp(builder.zext(values, wide), kind)
                if tall > 1:
                    weight = builder.load(builder.gep(shares, [_LONG(row)]))
                    one = builder.insert_element(ir.Constant(kind, ir.Undefined), weight, _INT(0))
                    values = builder.fmul(_picked(builder, one, [0] * lanes), values, flags=_CONTRACT)
                total = values if total is None else builder.fadd(total, values, flags=_CONTRACT)
            total = _picked(builder, total, [(k * pixel + c) % lanes for k in range(size) for c in order])
            if size > 1:
                each = LEAST * size if tall == 1 else size
                weights = _load(builder, builder.gep(across, [builder.mul(x, _LONG(each))]), _FLOAT, each)
                if tall > 1:
                    weights = _picked(builder, weights, [k for k in range(size) for _ in range(LEAST)])
                total = builder.fmul(weights, total, flags=_CONTRACT)
            for half in (size // 2 >> i for i in range(size.bit_length() - 1)):
                both = [list(range(start, start + half * LEAST)) for start in (0, half * LEAST)]
                total = builder.fadd(*(_picked(builder, total, part) for part in both), flags=_CONTRACT)
            total = builder.fadd(builder.fmul(total, scale, flags=_CONTRACT), shift, flags=_CONTRACT)
            _store(builder, total, builder.gep(into, [builder.mul(x, _LONG(own))]))
        return context.get_dummy_value()

    long, floats = types.int64, types.CPointer(types.float32)
    kinds = source, long, types.CPointer(long), floats, floats, long, floats, floats, floats
    return types.none(*kinds, rows, taps, channels, stored, back), generate
