"""The instructions of `ptx` that only sums of pixels need: loads that may be left out, dot products of bytes, atomics.

Like `ptx`, each with a plain version for Numba's simulator.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import cuda, types

from octopus.kernels.cuda.ptx import SIMULATED, _assembly, _element, intrinsic
from octopus.kernels.cuda.tile_grid import BATCH as LOADS
from octopus.kernels.cuda.tile_grid import THREADS

WORDS = 4  # of a load
WARPS = THREADS // 32


def _load_text() -> str:
    """Four loads of sixteen bytes, each on its own condition, none of which waits for another."""
    lines = [".reg .pred p;", *(f"mov.u32 ${i}, 0;" for i in range(LOADS * WORDS))]
    for i in range(LOADS):
        words = ", ".join(f"${i * WORDS + j}" for j in range(WORDS))
        address, wanted = LOADS * WORDS + i, LOADS * WORDS + LOADS + i
        lines.append(f"setp.ne.u32 p, ${wanted}, 0;")
        lines.append(f"@p ld.global.nc.L1::no_allocate.v4.u32 {{{words}}}, [${address}];")
    return "{" + " ".join(lines) + "}"


@intrinsic
def _load_four_if(typing_context, source, indices, wanted):
    def generate(context, builder, signature, args):
        word, arguments = ir.IntType(32), []
        for i in range(LOADS):
            arguments.append(builder.gep(args[0], [builder.extract_value(args[1], i)]))
        arguments += [builder.extract_value(args[2], i) for i in range(LOADS)]
        # Written before the last input is read: none of them may share a register.
        constraints = ",".join(["=&r"] * (LOADS * WORDS) + ["l"] * LOADS + ["r"] * LOADS)
        result = ir.LiteralStructType([word] * (LOADS * WORDS))
        found = builder.call(_assembly(result, arguments, _load_text(), constraints), arguments)
        loads = []
        for i in range(LOADS):
            words = [builder.extract_value(found, i * WORDS + j) for j in range(WORDS)]
            loads.append(context.make_tuple(builder, signature.return_type.dtype, words))
        return context.make_tuple(builder, signature.return_type, loads)

    words = types.UniTuple(types.UniTuple(types.uint32, WORDS), LOADS)
    return words(source, types.UniTuple(types.int64, LOADS), types.UniTuple(types.uint32, LOADS)), generate


@intrinsic
def _load_byte_if(typing_context, source, index, wanted):
    def generate(context, builder, signature, args):
        address = _element(context, builder, signature, args)
        text = "{.reg .pred p; setp.ne.u32 p, $2, 0; mov.u32 $0, 0; @p ld.global.nc.u8 $0, [$1];}"
        call = _assembly(ir.IntType(32), [address, args[2]], text, "=&r,l,r")
        return builder.call(call, [address, args[2]])

    return types.uint32(source, types.int64, types.uint32), generate


@intrinsic
def _quotient(typing_context, dividend, divisor):
    def generate(context, builder, signature, args):
        return builder.call(_assembly(ir.IntType(32), args, "div.u32 $0, $1, $2;", "=r,r,r"), args)

    return types.int32(types.int32, types.int32), generate


def _three(text: str):
    """`result = text(a, b, c)` on 32-bit words."""

    @intrinsic
    def apply(typing_context, a, b, c):
        def generate(context, builder, signature, args):
            return builder.call(_assembly(ir.IntType(32), args, f"{text} $0, $1, $2, $3;", "=r,r,r,r"), args)

        return types.uint32(types.uint32, types.uint32, types.uint32), generate

    return apply


@intrinsic
def _byte_mask(typing_context, low, high):
    def generate(context, builder, signature, args):
        text = "{.reg .b32 a, b; shl.b32 a, 1, $1; shl.b32 b, 1, $2; sub.u32 $0, b, a;}"
        return builder.call(_assembly(ir.IntType(32), args, text, "=&r,r,r"), args)

    return types.uint32(types.int32, types.int32), generate


def _atomic(name: str):
    """`before = name(words, index, value)` on 64-bit words of device memory."""

    @intrinsic
    def apply(typing_context, words, index, value):
        def generate(context, builder, signature, args):
            address = _element(context, builder, signature, args)
            text = f"atom.global.{name} $0, [$1], $2;"
            call = _assembly(ir.IntType(64), [address, args[2]], text, "=l,l,l", True)
            return builder.call(call, [address, args[2]])

        return types.int64(words, types.int64, types.int64), generate

    return apply


@cuda.jit(device=True)
def _block_total_by_warps(value):
    """The sum of `value` over the block's `THREADS` threads; right in the first thread alone."""
    parts = cuda.shared.array(WARPS, np.int64)
    step = np.int32(16)
    while step > 0:
        value += cuda.shfl_down_sync(np.uint32(0xFFFFFFFF), value, step)
        step >>= 1
    if cuda.threadIdx.x & 31 == 0:
        parts[cuda.threadIdx.x >> 5] = value
    cuda.syncthreads()
    total = np.int64(0)
    if cuda.threadIdx.x == 0:
        for warp in range(WARPS):
            total += parts[warp]
    cuda.syncthreads()  # the memory may serve again
    return total


@cuda.jit(device=True)
def _block_total_one_by_one(value):
    """The same where there are no shuffles."""
    total = cuda.shared.array(1, np.int64)
    if cuda.threadIdx.x == 0:
        total[0] = 0
    cuda.syncthreads()
    cuda.atomic.add(total, 0, value)
    cuda.syncthreads()
    found = total[0]
    cuda.syncthreads()
    return found


if SIMULATED:

    def load_four_if(source, indices, wanted):
        """Sixteen bytes from each index on, a multiple of 16, as four uint32, past the L1; zeros unless wanted."""
        nothing = (np.uint32(0),) * WORDS
        both = zip(indices, wanted, strict=True)
        return tuple(tuple(source[i : i + 16].view(np.uint32)) if w else nothing for i, w in both)

    def load_byte_if(source, index, wanted):
        """The byte at `index` as uint32; 0 unless `wanted`."""
        return np.uint32(source[index]) if wanted else np.uint32(0)

    def quotient(dividend, divisor):
        """Of two int32 that are not negative, rounded down, without the 64 bits that Numba would take."""
        return np.int32(int(dividend) // int(divisor))

    def dot_bytes(word, factors, total):
        """`total` plus the four bytes of `word`, each times the byte of `factors` beside it."""
        parts = [(int(word) >> 8 * i & 255) * (int(factors) >> 8 * i & 255) for i in range(4)]
        return np.uint32(int(total) + sum(parts))

    def dot_halves(word, factors, total):
        """`total` plus the two halves of `word`, times the first and the second byte of `factors`."""
        parts = [(int(word) >> 16 * i & 65535) * (int(factors) >> 8 * i & 255) for i in range(2)]
        return np.uint32(int(total) + sum(parts))

    def byte_mask(low, high):
        """The bits from `low` to below `high`."""
        return np.uint32((1 << int(high)) - (1 << int(low)))

    @cuda.jit(device=True)
    def atomic_add(words, index, value):
        """Add to a 64-bit word of device memory; returns what was there."""
        return cuda.atomic.add(words, index, value)

    @cuda.jit(device=True)
    def atomic_exchange(words, index, value):
        """Put a value into a 64-bit word of device memory; returns what was there."""
        return cuda.atomic.exch(words, index, value)

    block_total = _block_total_one_by_one
else:
    load_four_if, load_byte_if, quotient = _load_four_if, _load_byte_if, _quotient
    dot_bytes, dot_halves = _three("dp4a.u32.u32"), _three("dp2a.lo.u32.u32")
    byte_mask = _byte_mask
    atomic_add, atomic_exchange = _atomic("add.u64"), _atomic("exch.b64")
    block_total = _block_total_by_warps
