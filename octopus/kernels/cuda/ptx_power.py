"""The instructions of `ptx` that only powers and tables of them need, each with a plain version for the simulator.

The plain versions of numbers take arrays of NumPy too, so that a test can try an arithmetic on many at once.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from llvmlite import ir
from numba import types

from octopus.kernels.cuda.ptx import ROUND, SIMULATED, _assembly, intrinsic

# Byte `j` of two words into one; the upper half gets the second's sign.
PICKS = (0xCC40, 0xDD51, 0xEE62, 0xFF73)


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
