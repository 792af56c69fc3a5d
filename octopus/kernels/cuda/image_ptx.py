"""The instructions of `image_tiles`: byte products on the tensor cores, shared memory by address, packing of bytes.

A product is `mma.sync.m16n8k32` of int8 weights and uint8 pixels, exact in int32. Lane `l = 4 * g + t` of a warp holds
(PTX ISA, "Matrix Fragments for mma.m16n8k32"; four values of a row lie in one word)::

    A (16 x 32 weights)  words 0, 1: rows g and g + 8, columns 4t to 4t + 3;  words 2, 3: the same rows, 16 columns on
    B (32 x 8 pixels)    word 0: rows 4t to 4t + 3 of column g;               word 1: 16 rows on
    D (16 x 8 sums)      0, 1: row g, columns 2t and 2t + 1;                  2, 3: row g + 8
"""

from __future__ import annotations

from llvmlite import ir
from numba import types

from octopus.kernels.cuda.image_kind import CHUNK, DIGIT_BYTES, NARROW_PLACES, PLACES
from octopus.kernels.cuda.ptx import _assembly, intrinsic

_WORD = ir.IntType(32)
CACHE = "cg"  # the cache that a copy's bytes stay in: "ca" L1 as well, "cg" L2 alone
_WORDS = types.UniTuple(types.uint32, 4)
_SUMS = types.UniTuple(types.int32, 4)


def _parts(builder, value, count: int) -> list:
    return [builder.extract_value(value, i) for i in range(count)]


def _list(first: int, count: int = 4) -> str:
    return "{" + ", ".join(f"${first + i}" for i in range(count)) + "}"


@intrinsic
def multiply(typing_context, sums, weights, low, high):
    """`sums + weights @ pixels`; all lanes of a warp take part."""

    def generate(context, builder, signature, args):
        arguments = [*_parts(builder, args[1], 4), args[2], args[3], *_parts(builder, args[0], 4)]
        text = "mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 "
        text += ", ".join([_list(0), _list(4), _list(8, 2), _list(10)]) + ";"
        call = _assembly(ir.LiteralStructType([_WORD] * 4), arguments, text, ",".join(["=r"] * 4 + ["r"] * 10), True)
        return context.make_tuple(builder, signature.return_type, _parts(builder, builder.call(call, arguments), 4))

    return _SUMS(_SUMS, _WORDS, types.uint32, types.uint32), generate


@intrinsic
def load_weights(typing_context, address):
    """The words of a lane of one product's weights: those of the highest digit, of the middle one, of the lowest."""

    def generate(context, builder, signature, args):
        loads = [f"ld.shared.v4.b32 {_list(4 * digit)}, [$12 + {DIGIT_BYTES * digit}];" for digit in range(3)]
        kind = ir.LiteralStructType([_WORD] * 12)
        words = _parts(
            builder,
            builder.call(_assembly(kind, args, " ".join(loads), ",".join(["=&r"] * 12 + ["r"]), True), args),
            12,
        )
        quads = [context.make_tuple(builder, _WORDS, words[4 * i : 4 * i + 4]) for i in range(3)]
        return context.make_tuple(builder, signature.return_type, quads)

    return types.UniTuple(_WORDS, 3)(types.uint32), generate


def _shared_load(count: int):
    @intrinsic
    def load(typing_context, address):
        def generate(context, builder, signature, args):
            text = f"ld.shared{f'.v{count}' if count > 1 else ''}.b32 {_list(0, count)}, [${count}];"
            kind = ir.LiteralStructType([_WORD] * count) if count > 1 else _WORD
            call = _assembly(kind, args, text, ",".join(["=r"] * count + ["r"]), True)
            found = builder.call(call, args)
            parts = _parts(builder, found, count) if count > 1 else [found]
            return context.make_tuple(builder, signature.return_type, parts)

        return types.UniTuple(types.uint32, count)(types.uint32), generate

    return load


def _shared_store(kind: str, count: int):
    vector = f".v{count}" if count > 1 else ""

    @intrinsic
    def store(typing_context, address, values):
        def generate(context, builder, signature, args):
            arguments = [args[0], *_parts(builder, args[1], count)]
            text = f"st.shared{vector}.{kind} [$0], {_list(1, count)};"
            if kind in ("b8", "b16"):
                text = "{.reg .b16 h; cvt.u16.u32 h, $1; st.shared." + kind + " [$0], h;}"
            call = _assembly(ir.VoidType(), arguments, text, ",".join(["r"] * (1 + count)), True)
            builder.call(call, arguments)
            return context.get_dummy_value()

        return types.void(types.uint32, types.UniTuple(types.uint32, count)), generate

    return store


def _words_load(count: int, apart: int):
    """Words that lie some bytes apart, each into a register of its own: products want them in other pairs."""

    @intrinsic
    def load(typing_context, address):
        def generate(context, builder, signature, args):
            text = " ".join(f"ld.shared.b32 ${i}, [${count} + {apart * i}];" for i in range(count))
            kind = ir.LiteralStructType([_WORD] * count)
            call = _assembly(kind, args, text, ",".join(["=&r"] * count + ["r"]), True)
            return context.make_tuple(builder, signature.return_type, _parts(builder, builder.call(call, args), count))

        return types.UniTuple(types.uint32, count)(types.uint32), generate

    return load


load1, load2, load4 = (_shared_load(count) for count in (1, 2, 4))
ring2, ring4, row3 = _words_load(2, 128), _words_load(4, 128), _words_load(3, 4)
store_byte, store_half, store1, store2, store4 = (
    _shared_store(kind, count) for kind, count in (("b8", 1), ("b16", 1), ("b32", 1), ("b32", 2), ("b32", 4))
)


@intrinsic
def shared_address(typing_context, array):
    """Where in shared memory the first element of a shared array lies."""

    def generate(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        address = builder.ptrtoint(data, ir.IntType(64))
        text = "{.reg .b64 a; cvta.to.shared.u64 a, $1; cvt.u32.u64 $0, a;}"
        return builder.call(_assembly(_WORD, [address], text, "=r,l"), [address])

    return types.uint32(array), generate


def _copies() -> str:
    """Of `copy_piece`: places and conditions first, for copies that are not neighbours cost a wait each."""
    text = "{.reg .pred p0, p1, p2; .reg .b64 a0, a1, a2; .reg .b32 x; "
    for i in range(3):
        text += f"setp.lt.s32 p{i}, $3, ${7 + i}; add.s32 x, $2, ${4 + i}; "
        text += f"cvt.u64.u32 a{i}, x; add.s64 a{i}, a{i}, $1; "
    for i in range(3):
        text += f"@p{i} cp.async.{CACHE}.shared.global [$0 + {32 * CHUNK * i}], [a{i}], {CHUNK}; "
    return text + "}"


@intrinsic
def copy_piece(typing_context, place, base, run, piece, offsets, wanted):
    """Have three times 16 bytes copied into shared memory, each if `piece < wanted`; nothing waits for them.

    They go to `place` and 32 copies on, from `base + run` and an offset of each on.
    """

    def generate(context, builder, signature, args):
        arguments = [*args[:4], *_parts(builder, args[4], 3), *_parts(builder, args[5], 3)]
        builder.call(_assembly(ir.VoidType(), arguments, _copies(), "r,l" + 8 * ",r", True), arguments)
        return context.get_dummy_value()

    three = types.UniTuple(types.int32, 3)
    return types.void(types.uint32, types.int64, types.int32, types.int32, three, three), generate


def _instruction(text: str):
    @intrinsic
    def apply(typing_context):
        def generate(context, builder, signature, args):
            builder.call(_assembly(ir.VoidType(), [], text, "", True), [])
            return context.get_dummy_value()

        return types.void(), generate

    return apply


commit = _instruction("cp.async.commit_group;")  # what a lane asked for since the last is a piece
# For all pieces of a lane but the last ones.
wait = _instruction(f"cp.async.wait_group {PLACES - 2};")
wait_narrow = _instruction(f"cp.async.wait_group {NARROW_PLACES - 2};")
wait_all = _instruction("cp.async.wait_all;")


@intrinsic
def load_byte(typing_context, base, offset):
    """The byte at an offset from `base` on."""

    def generate(context, builder, signature, args):
        text = "{.reg .b64 a; cvt.u64.u32 a, $2; add.s64 a, a, $1; ld.global.nc.u8 $0, [a];}"
        return builder.call(_assembly(_WORD, args, text, "=r,l,r", True), args)

    return types.uint32(types.int64, types.int32), generate


@intrinsic
def opaque(typing_context, value):
    """The value; the compiler doesn't know that, and so doesn't unroll a loop that it counts."""

    def generate(context, builder, signature, args):
        return builder.call(_assembly(_WORD, args, "mov.b32 $0, $1;", "=r,r", True), args)

    return types.int32(types.int32), generate


def _apply(text: str, count: int, result=types.uint32, argument=types.int32, letter: str = "r", kind=_WORD):
    """`result = text(...)` of `count` arguments."""
    places = ", ".join(f"${i}" for i in range(1 + count))

    def generate(context, builder, signature, args):
        constraints = ",".join([f"={letter}", *[letter] * count])
        return builder.call(_assembly(kind, args, text.replace("@", places), constraints), args)

    return result(*[argument] * count), generate


@intrinsic
def pack_bytes(typing_context, a, b, c, d):
    """Four int32, each cut to 0..255, as the bytes of a word, `a` the lowest."""
    text = "{.reg .b32 h; cvt.pack.sat.u8.s32.b32 h, $4, $3, 0; cvt.pack.sat.u8.s32.b32 $0, $2, $1, h;}"
    return _apply(text, 4)


@intrinsic
def pack_two(typing_context, a, b):
    """Two int32, each cut to 0..255, as the two low bytes of a word."""
    return _apply("cvt.pack.sat.u8.s32.b32 $0, $2, $1, 0;", 2)


@intrinsic
def pack_halves(typing_context, a, b):
    """Two int32, each cut to 0..65535, as the halves of a word, `a` the lower."""
    return _apply("cvt.pack.sat.u16.s32 $0, $2, $1;", 2)


@intrinsic
def low_bytes(typing_context, a, b):
    """Bytes 0 and 2 of `a`, then of `b`."""
    return _apply("prmt.b32 $0, $1, $2, 0x6420;", 2, argument=types.uint32)


@intrinsic
def high_bytes(typing_context, a, b):
    """Bytes 1 and 3 of `a`, then of `b`."""
    return _apply("prmt.b32 $0, $1, $2, 0x7531;", 2, argument=types.uint32)


@intrinsic
def float_bits(typing_context, value):
    """The bits of a float32."""

    def generate(context, builder, signature, args):
        return builder.bitcast(args[0], _WORD)

    return types.uint32(types.float32), generate


@intrinsic
def bits_float(typing_context, bits):
    """The float32 of these bits."""

    def generate(context, builder, signature, args):
        return builder.bitcast(args[0], ir.FloatType())

    return types.float32(types.uint32), generate


def _double(text: str):
    @intrinsic
    def apply(typing_context, a, b):
        return _apply(f"{text} @;", 2, types.float64, types.float64, "d", ir.DoubleType())

    return apply


# Never fused into one rounding with what follows: Pillow's last bits.
add, times = _double("add.rn.f64"), _double("mul.rn.f64")


@intrinsic
def address(typing_context, pointer):
    """Of a pointer's first element."""

    def generate(context, builder, signature, args):
        return builder.ptrtoint(args[0], ir.IntType(64))

    return types.int64(pointer), generate
