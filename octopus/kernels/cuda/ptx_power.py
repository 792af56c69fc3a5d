"""The instructions of `ptx` that only powers and tables of them need, each with a plain version for the simulator.

The plain versions of numbers take arrays of NumPy too, so that a test can try an arithmetic on many at once.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from llvmlite import ir
from numba import types

from octopus.kernels.cuda.ptx import ROUND, SIMULATED, _assembly, _element, intrinsic

PICKS = (
    0xCC40,
    0xDD51,
    0xEE62,
    0xFF73,
)  # byte `j` of two words into one; the upper half gets the second's sign


def _unary(text: str, constraints: str, result, of, to) -> Callable:
    """`result = text(value)`."""

    @intrinsic
    def apply(typing_context, value):
        def generate(context, builder, signature, args):
            return builder.call(_assembly(result, args, text, constraints), args)

        return to(of), generate

    return apply


def _picker(position: int) -> Callable:
    """`pick(low, high)`: byte `position` of `low`, and above it that of `high`, which must be below 128."""

    @intrinsic
    def pick(typing_context, low, high):
        def generate(context, builder, signature, args):
            text = f"prmt.b32 $0, $1, $2, {PICKS[position]};"
            return builder.call(_assembly(ir.IntType(32), args, text, "=r,r,r"), args)

        return types.uint32(types.uint32, types.uint32), generate

    return pick


@intrinsic
def _fma(typing_context, a, b, c):
    def generate(context, builder, signature, args):
        return builder.fma(*args)

    return types.float32(types.float32, types.float32, types.float32), generate


@intrinsic
def _store_words(typing_context, out, index, words):
    def generate(context, builder, signature, args):
        address = _element(context, builder, signature, args)
        arguments = [address, *(builder.extract_value(args[2], i) for i in range(4))]
        text = "st.global.cs.v4.b32 [$0], {$1, $2, $3, $4};"
        builder.call(_assembly(ir.VoidType(), arguments, text, "l,r,r,r,r", True), arguments)
        return context.get_dummy_value()

    return types.void(out, index, types.UniTuple(types.uint32, 4)), generate


@intrinsic
def _join_bytes(typing_context, values):
    def generate(context, builder, signature, args):
        parts = [builder.extract_value(args[0], i) for i in range(4)]
        text = "{.reg .b32 a, b; prmt.b32 a, $1, $2, 0x0040; prmt.b32 b, $3, $4, 0x0040; prmt.b32 $0, a, b, 0x5410;}"
        return builder.call(_assembly(ir.IntType(32), parts, text, "=r,r,r,r,r"), parts)

    return types.uint32(types.UniTuple(types.uint32, 4)), generate


if SIMULATED:

    def fma(a, b, c):
        """`a * b + c`, rounded once: float64 holds the product, and what it rounds of the sum is far below float32."""
        return np.float32(np.float64(a) * np.float64(b) + np.float64(c))

    def exp2(value):
        """`2 ** value`, on GPUs within two units in the last place."""
        with np.errstate(over="ignore"):
            return np.float32(np.exp2(np.float64(value)))

    def bits_of(value):
        """The bits of a float32 as int32."""
        return value.view(np.int32)

    def with_bits(bits):
        """The float32 of these bits."""
        return bits.view(np.float32)

    def rounded_byte(value):
        """The float32, clamped to 0 to 255 and rounded half to even, as uint32."""
        return np.uint32(np.rint(min(max(value, np.float32(0)), np.float32(255))))

    def join_bytes(values):
        """The lowest bytes of four uint32 as one."""
        return np.uint32(sum((int(value) & 255) << 8 * i for i, value in enumerate(values)))

    def store_words(out, index, words):
        """Four uint32 to the sixteen bytes from `index` on, a multiple of 16, leaving the cache first."""
        out[index : index + 16] = np.array(words, np.uint32).view(np.uint8)

    def _simulated_pick(position: int) -> Callable:
        shift = 8 * position
        return lambda low, high: np.uint32((int(low) >> shift & 255) | (int(high) >> shift & 255) << 8)

    pick0, pick1, pick2, pick3 = (_simulated_pick(position) for position in range(4))
else:
    fma = _fma
    _float, _word = ir.FloatType(), ir.IntType(32)
    exp2 = _unary("ex2.approx.f32 $0, $1;", "=f,f", _float, types.float32, types.float32)
    bits_of = _unary("mov.b32 $0, $1;", "=r,f", _word, types.float32, types.int32)
    with_bits = _unary("mov.b32 $0, $1;", "=f,r", _float, types.int32, types.float32)
    rounded_byte = _unary(
        f"{{.reg .f32 v; max.f32 v, $1, 0f00000000; min.f32 v, v, 0f437F0000; add.f32 v, v, {ROUND}; "
        "mov.b32 $0, v;}",
        "=r,f", _word, types.float32, types.uint32,
    )  # fmt: skip
    pick0, pick1, pick2, pick3 = (_picker(position) for position in range(4))
    join_bytes, store_words = _join_bytes, _store_words
