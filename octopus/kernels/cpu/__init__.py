"""CPU kernels: functions of one address, at which their arguments lie as 64-bit integers in a row.

Addresses, sizes and switches all are such integers, so that a kernel has one compiled form per dtype, whatever arrays
it is called with. Within, memory is read and written through typed pointers, as in the CUDA kernels. The first
argument is always the address of a counter, from which each thread takes the number of its next block.

Numba compiles these modules' functions when `backends.cpu.compile` finds no object code of a kernel; nothing here is
imported before.
"""

from collections.abc import Callable
from functools import cache

import numba
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_allocate = types.ExternalFunction("malloc", types.int64(types.int64))
release = types.ExternalFunction("free", types.void(types.int64))
FLOAT32_BYTES = 4
NO_MEMORY = -1  # what a kernel makes of the number of its blocks when it is refused memory


@cache
def compiled(function: Callable) -> Callable:
    """A function that kernels call; like what makes one by `cache`, one for all kernels that a process compiles."""
    # Without wrappers for other callers: a tenth of the time that a kernel takes to compile.
    wrapped: Callable = numba.njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)
    return wrapped


@intrinsic
def next_block(typing_context, address):
    """Take the next number from a counter that threads share."""

    def generate(context, builder, signature, arguments):
        counter = builder.inttoptr(arguments[0], ir.IntType(64).as_pointer())
        return builder.atomic_rmw("add", counter, ir.Constant(ir.IntType(64), 1), "monotonic")

    return types.int64(types.int64), generate


@intrinsic
def pointer(typing_context, address, dtype):
    """An address as a pointer to elements of a NumPy scalar type."""
    kind = types.CPointer(dtype.dtype)

    def generate(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], context.get_value_type(kind))

    return kind(types.int64, dtype), generate


@intrinsic
def shifted(typing_context, start, elements):
    """A pointer so many elements further on."""

    def generate(context, builder, signature, arguments):
        return builder.gep(arguments[0], [arguments[1]])

    return start(start, types.int64), generate


@intrinsic
def as_elements(typing_context, memory, like):
    """A pointer to memory as elements of what another points to."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], arguments[1].type)

    return like(memory, like), generate


@intrinsic
def address_of(typing_context, memory):
    return types.int64(memory), lambda context, builder, signature, given: builder.ptrtoint(given[0], ir.IntType(64))


@compiled
def allocate_floats(count):
    """Address of memory for float32 values, to be given to `release`; 0 if there is none."""
    return _allocate(count * FLOAT32_BYTES)
