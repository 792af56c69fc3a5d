"""Copies from one place of the host's memory to another, by threads that need no lock of Python's in between."""

from collections.abc import Callable

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from octopus.kernels.cpu import compiled, next_block, pointer
from octopus.kernels.cpu.vectors import squeeze_four

SQUEEZED_ROOM = 6  # pixels whose 18 bytes hold the 16 that four pixels are written as

_copy = types.ExternalFunction("memcpy", types.int64(types.int64, types.int64, types.int64))


def build() -> Callable:
    """The kernel that makes copies. Its arguments are `counter, copies`, then of each where it goes, where it comes
    from, its bytes there, and whether it is pixels of four bytes that become three (all int64), a byte that becomes 1
    when it is made, and how many are made at most."""

    def copies(arguments):
        to, source, size, squeezed = (
            pointer(arguments[2], np.int64), pointer(arguments[3], np.int64), pointer(arguments[4], np.int64),
            pointer(arguments[5], np.int64),
        )  # fmt: skip
        for _ in range(arguments[7]):
            number = next_block(arguments[0])
            if number >= arguments[1]:
                return
            if squeezed[number]:
                squeeze(to[number], source[number], size[number] >> 2)
            else:
                _copy(to[number], source[number], size[number])
            _set(arguments[6] + number)

    return copies


@compiled
def squeeze(to, source, pixels):
    """The first three bytes of each four: by vectors as fast as a copy (10 GB/s on a thread), by bytes a tenth."""
    pixel = 0
    while pixel + SQUEEZED_ROOM <= pixels:
        squeeze_four(source + 4 * pixel, to + 3 * pixel)
        pixel += 4
    three, four = pointer(to, np.uint8), pointer(source, np.uint8)
    while pixel < pixels:
        for channel in range(3):
            three[3 * pixel + channel] = four[4 * pixel + channel]
        pixel += 1


@intrinsic
def _set(typing_context, address):
    """Make a byte 1, for threads that then find all that was written before."""

    def generate(context, builder, signature, arguments):
        byte = builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())
        builder.store_atomic(ir.Constant(ir.IntType(8), 1), byte, "release", 1)
        return context.get_dummy_value()

    return types.void(types.int64), generate
