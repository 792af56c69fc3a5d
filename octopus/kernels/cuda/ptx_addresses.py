"""Elements at addresses that a kernel reads from memory: pointers to images, of which each has its own.

As `ptx`, with plain versions for Numba's simulator, where the addresses are those of the host.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np
from llvmlite import ir
from numba import types

from octopus.kernels.cuda.ptx import SIMULATED, _assembly, bfloat16_text, intrinsic


def _reader_at(suffix: str, letter: str, kind, element) -> Callable:
    """`load(address)`: one element through the read-only cache; the address is a multiple of the element's size."""

    @intrinsic
    def load(typing_context, address):
        def generate(context, builder, signature, args):
            text = f"ld.global.nc.{suffix} $0, [$1];"
            return builder.call(_assembly(kind, args, text, f"={letter},l"), args)

        return element(types.int64), generate

    return load


def _simulated_at(kind) -> Callable:
    return lambda address: kind.from_address(int(address)).value


if SIMULATED:
    LOADS_AT = {
        "uint8": _simulated_at(ctypes.c_uint8),
        "uint16": _simulated_at(ctypes.c_uint16),
        "float32": _simulated_at(ctypes.c_float),
    }

    def bfloat16_of(value):
        """Bits of the bfloat16 nearest to a float32."""
        from octopus.kernels.images import bfloat16_bits

        return bfloat16_bits(np.float32(value))
else:
    LOADS_AT = {
        "uint8": _reader_at("u8", "r", ir.IntType(32), types.uint32),
        "uint16": _reader_at("u16", "r", ir.IntType(32), types.uint32),
        "float32": _reader_at("f32", "f", ir.FloatType(), types.float32),
    }

    @intrinsic
    def bfloat16_of(typing_context, value):
        """Bits of the bfloat16 nearest to a float32, ties to even; below compute capability 8.0 by integers."""

        def generate(context, builder, signature, args):
            return builder.call(_assembly(ir.IntType(32), args, bfloat16_text("$0", "$1"), "=&r,f"), args)

        return types.uint32(types.float32), generate
