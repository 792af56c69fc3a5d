"""Pixels of video by vectors of 16: converted, and weighted sums of them down the rows; see `vectors`."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from octopus.kernels.cpu.vectors import _FLOAT, _LONG, LANES, _load, _splat, _store, _widened
from octopus.kernels.cpu.vectors_columns import _CONTRACT, _FLOATS, _WORDS, _side_by_side


def _multiply_add(builder: Any, a: Any, b: Any, c: Any) -> Any:
    return builder.fadd(builder.fmul(a, b, flags=_CONTRACT), c, flags=_CONTRACT)


def _splats(builder: Any, values: Any, count: int) -> list:
    return [_splat(builder, builder.load(builder.gep(values, [_LONG(i)]))) for i in range(count)]


def _converted(builder: Any, luma: Any, chroma: Any, coefficients: list) -> list:
    """Red, green and blue, 0 to 255, of 16 pixels of a row; the first one's column is even."""
    yg, rv, r0, gu, gv, g0, bu, b0 = coefficients
    y = _widened(builder, _load(builder, luma, luma.type.pointee), _FLOAT)
    both = _widened(builder, _load(builder, chroma, chroma.type.pointee), _FLOAT)
    u, v = (
        builder.shuffle_vector(both, both, ir.Constant(_WORDS, [i // 2 * 2 + part for i in range(LANES)]))
        for part in range(2)
    )
    green = _multiply_add(builder, u, gu, _multiply_add(builder, v, gv, g0))
    shifts = _multiply_add(builder, v, rv, r0), green, _multiply_add(builder, u, bu, b0)
    return [_clamped(builder, _multiply_add(builder, y, yg, shift)) for shift in shifts]


def _clamped(builder: Any, vector: Any) -> Any:
    for relation, limit in ((">", 0.0), ("<", 255.0)):
        bound = ir.Constant(_FLOATS, [limit] * LANES)
        vector = builder.select(builder.fcmp_ordered(relation, vector, bound), vector, bound)
    return vector


@intrinsic
def planes_of_video(typing_context, luma, chroma, start, stop, width, coefficients, gain, bias, into, plane):
    """Pixels of a row from column `start`, an even one, to before `stop`, normalised, a plane for each channel.

    Parameters
    ----------
    luma, chroma : pointers
        To the frame's row and its chroma's.
    width : int64
        Of the frame, even and at least 16.
    coefficients : pointer to float32
        See `octopus.crop.video.Coding`.
    gain, bias : pointers to float32
    into : pointer to float32
        Where column `start` goes; up to 14 values before it are written, and up to 15 behind the last.
    plane : int64
        Values from one channel to the next.
    """

    def generate(context, builder, signature, arguments):
        luma, chroma, start, stop, width, coefficients, gain, bias, into, plane = arguments
        factors = _splats(builder, coefficients, 8)
        scales, shifts = (_splats(builder, values, 3) for values in (gain, bias))
        last = builder.sub(width, _LONG(LANES))
        with cgutils.for_range_slice(builder, start, stop, _LONG(LANES), _LONG) as (x, _):
            at = builder.select(builder.icmp_signed("<", x, last), x, last)
            pixels = _converted(builder, builder.gep(luma, [at]), builder.gep(chroma, [at]), factors)
            goal = builder.gep(into, [builder.sub(at, start)])
            for c, vector in enumerate(pixels):
                place = builder.gep(goal, [builder.mul(plane, _LONG(c))])
                _store(builder, _multiply_add(builder, vector, scales[c], shifts[c]), place)
        return context.get_dummy_value()

    step, floats = types.int64, types.CPointer(types.float32)
    return types.none(luma, chroma, step, step, step, floats, floats, floats, floats, step), generate


@intrinsic
def sums_of_video(
    typing_context, luma, pitch, chroma, chroma_pitch, row, rows, weights, coefficients, into, line
):
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
            pixels = _converted(builder, source, colours, factors)
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
