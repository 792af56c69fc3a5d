"""Copies from one place of the host's memory to another, by threads that need no lock of Python's in between."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from octopus.kernels.cpu import next_block, pointer

_copy = types.ExternalFunction("memcpy", types.int64(types.int64, types.int64, types.int64))


def build() -> Callable:
    """The kernel that makes copies.

    Its arguments are `counter, copies`, then of each where it goes, where it comes from, and its bytes (all int64), a
    byte that becomes 1 when it is made, and how many are made at most.
    """

    def copies(arguments):
        to, source, size = (
            pointer(arguments[2], np.int64), pointer(arguments[3], np.int64), pointer(arguments[4], np.int64),
        )  # fmt: skip
        for _ in range(arguments[6]):
            number = next_block(arguments[0])
            if number >= arguments[1]:
                return
            _copy(to[number], source[number], size[number])
            _set(arguments[5] + number)

    return copies


@intrinsic
def _set(typing_context, address):
    """Make a byte 1, for threads that then find all that was written before."""

    def generate(context, builder, signature, arguments):
        byte = builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())
        builder.store_atomic(ir.Constant(ir.IntType(8), 1), byte, "release", 1)
        return context.get_dummy_value()

    return types.void(types.int64), generate
