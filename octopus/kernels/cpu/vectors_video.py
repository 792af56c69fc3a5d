"""Pixels of video by vectors of 16: converted, and weighted sums of them down the rows; see `vectors`."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from octopus.kernels.cpu.vectors import _FLOAT, _INT, _LONG, LANES, _load, _splat, _store, _widened
from octopus.kernels.cpu.vectors_columns import _CONTRACT, _FLOATS, _WORDS, _mixed, _side_by_side, store_columns


def _multiply_add(builder: Any, a: Any, b: Any, c: Any) -> Any:
    return builder.fadd(builder.fmul(a, b, flags=_CONTRACT), c, flags=_CONTRACT)


def _splats(builder: Any, values: Any, count: int) -> list:
    return [_splat(builder, builder.load(builder.gep(values, [_LONG(i)]))) for i in range(count)]


def _converted(builder: Any, y: Any, u: Any, v: Any, coefficients: list) -> list:
    """Red, green and blue, 0 to 255, of 16 pixels."""
    yg, rv, r0, gu, gv, g0, bu, b0 = coefficients
    green = _multiply_add(builder, u, gu, _multiply_add(builder, v, gv, g0))
    shifts = _multiply_add(builder, v, rv, r0), green, _multiply_add(builder, u, bu, b0)
    return [_clamped(builder, _multiply_add(builder, y, yg, shift)) for shift in shifts]


def _neighbours(builder: Any, luma: Any, chroma: Any) -> tuple:
    """Luma and chroma of 16 neighbouring pixels; the first one's column is even."""
    y = _widened(builder, _load(builder, luma, luma.type.pointee), _FLOAT)
    both = _widened(builder, _load(builder, chroma, chroma.type.pointee), _FLOAT)
    masks = (ir.Constant(_WORDS, [i // 2 * 2 + part for i in range(LANES)]) for part in range(2))
    return y, *(builder.shuffle_vector(both, both, mask) for mask in masks)


def _fetched(builder: Any, places: list, values: int, element: Any) -> Any:
    """So many values from each of 16 places on, as whole numbers that begin with the first."""
    word = ir.IntType(values * element.width)
    vector = ir.Constant(ir.VectorType(word, LANES), ir.Undefined)
    for lane, place in enumerate(places):
        found = builder.load(builder.bitcast(place, word.as_pointer()), align=1)
        vector = builder.insert_element(vector, found, _INT(lane))
    return vector


def _part(builder: Any, words: Any, element: Any) -> tuple:
    """The first two values in each of 16 whole numbers, as float32."""
    half, mask = element.width, (1 << element.width) - 1
    if words.type.element.width < _INT.width:
        words = builder.zext(words, _WORDS)
    elif words.type.element.width > _INT.width:
        words = builder.trunc(words, _WORDS)
    second = builder.lshr(words, ir.Constant(_WORDS, [half] * LANES))
    kept = ir.Constant(_WORDS, [mask] * LANES)
    return tuple(builder.sitofp(builder.and_(part, kept), _FLOATS) for part in (words, second))


def _clamped(builder: Any, vector: Any) -> Any:
    for relation, limit in ((">", 0.0), ("<", 255.0)):
        bound = ir.Constant(_FLOATS, [limit] * LANES)
        vector = builder.select(builder.fcmp_ordered(relation, vector, bound), vector, bound)
    return vector


@intrinsic
def columns_of_video(
    typing_context, luma, chroma, lows, places, weights, blocks, odd, coefficients, gain, bias, into, plane
):
    """One row at the result's columns, normalised, as `vectors_columns.columns_of_bytes` does it.

    Parameters
    ----------
    luma, chroma : pointers
        The box's first pixel in the row, and the first value of its chroma. Two values of luma and four of chroma are
        read for each column.
    lows, places : pointers to uint32 and int64
        Each column's left pixel, twice.
    weights : pointer to float32
        The share of its right one.
    blocks : int64
        Of 16 columns.
    odd : int64
        1 if the box begins with the second pixel of a pair, else 0.
    coefficients : pointer to float32
        See `octopus.crop.video.Coding`.
    gain, bias, into : pointers to float32
    plane : int64
        Values from one channel to the next; 0 puts the channels of a column side by side.
    """

    def generate(context, builder, signature, arguments):
        luma, chroma, lows, places, weights, blocks, odd, coefficients, gain, bias, into, plane = arguments
        element, factors = luma.type.pointee, _splats(builder, coefficients, 8)
        scales, shifts = (_splats(builder, values, 3) for values in (gain, bias))
        pair = ir.IntType(4 * element.width)
        second_half = ir.Constant(ir.VectorType(pair, LANES), [2 * element.width] * LANES)
        ones = ir.Constant(_WORDS, [1] * LANES)
        first = _splat(builder, builder.trunc(odd, _INT))
        planar = builder.icmp_signed("!=", plane, _LONG(0))
        with cgutils.for_range(builder, blocks) as loop:
            at = builder.mul(loop.index, _LONG(LANES))
            own = [builder.load(builder.gep(places, [builder.add(at, _LONG(i))])) for i in range(LANES)]
            pairs = [builder.and_(builder.add(place, odd), _LONG(-2)) for place in own]
            lumas = _fetched(builder, [builder.gep(luma, [place]) for place in own], 2, element)
            words = _fetched(builder, [builder.gep(chroma, [place]) for place in pairs], 4, element)
            column = builder.add(_load(builder, builder.gep(lows, [at]), _INT), first)
            behind = builder.icmp_signed("==", builder.and_(column, ones), ones)  # the right one in the next pair
            right = builder.select(behind, builder.lshr(words, second_half), words)
            weight = _load(builder, builder.gep(weights, [at]), _FLOAT)
            pixels = [
                _converted(builder, y, *_part(builder, chroma_words, element), factors)
                for y, chroma_words in zip(_part(builder, lumas, element), (words, right), strict=True)
            ]
            mixed = [_mixed(builder, low, high, weight) for low, high in zip(*pixels, strict=True)]
            values = [_multiply_add(builder, *three) for three in zip(mixed, scales, shifts, strict=True)]
            store_columns(builder, values, into, at, plane, planar)
        return context.get_dummy_value()

    step, floats = types.int64, types.CPointer(types.float32)
    kinds = luma, chroma, types.CPointer(types.uint32), types.CPointer(step), floats, step, step
    return types.none(*kinds, floats, floats, floats, floats, step), generate


@intrinsic
def sums_of_video(typing_context, luma, pitch, chroma, chroma_pitch, row, rows, weights, coefficients, into, line):
    """16 neighbouring pixels of `rows` rows, weighted and added twice, the channels of a pixel side by side.

    Parameters
    ----------
    luma : pointer
        The first pixel, in an even column, in the first of the rows.
    chroma : pointer
        The same column in the frame's first row of chroma.
    pitch, chroma_pitch : int64
        Values from row to row.
    row, rows : int64
        The frame's row that is the first one, and how many there are.
    weights : pointer to float32
        Two for each row.
    coefficients : pointer to float32
        See `octopus.crop.video.Coding`.
    into : pointer to float32
        The first sums; the second ones go `line` values further.
    """

    def generate(context, builder, signature, arguments):
        luma, pitch, chroma, chroma_pitch, row, rows, weights, coefficients, into, line = arguments
        factors = _splats(builder, coefficients, 8)
        zeros = ir.Constant(_FLOATS, [0.0] * LANES)
        totals = [[cgutils.alloca_once_value(builder, zeros) for _ in range(3)] for _ in range(2)]
        with cgutils.for_range(builder, rows) as loop:
            source = builder.gep(luma, [builder.mul(loop.index, pitch)])
            pair = builder.ashr(builder.add(row, loop.index), _LONG(1))
            colours = builder.gep(chroma, [builder.mul(pair, chroma_pitch)])
            pixels = _converted(builder, *_neighbours(builder, source, colours), factors)
            own = _splats(builder, builder.gep(weights, [builder.mul(loop.index, _LONG(2))]), 2)
            for weight, sums in zip(own, totals, strict=True):
                for vector, total in zip(pixels, sums, strict=True):
                    builder.store(_multiply_add(builder, weight, vector, builder.load(total)), total)
        for k, sums in enumerate(totals):
            goal = builder.gep(into, [builder.mul(line, _LONG(k))])
            _store(builder, _side_by_side(builder, [builder.load(total) for total in sums]), goal)
        return context.get_dummy_value()

    step, floats = types.int64, types.CPointer(types.float32)
    return types.none(luma, step, chroma, step, step, step, floats, floats, floats, step), generate
