"""The few instructions that Numba's kernel language has no words for, as inline PTX.

Each also has a plain version for Numba's simulator, which executes Python. Nothing else in the kernels knows how Numba
makes code, so that a successor of Numba needs another version of this file alone.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from llvmlite import ir
from numba import config, cuda, types

from octopus.backends.cuda.launch import TAIL
from octopus.kernels.images import bfloat16_bits

SIMULATED = bool(config.ENABLE_CUDASIM)
MAGIC = 0x4B000000  # bits of the float32 8388608.0, whose last bits count ones
MAGIC_VALUE = np.float32(8388608.0)
ROUND = "0f4B400000"  # 1.5 * 2**23: adding it rounds half to even and leaves the integer in the low bits
HALF_PAIR_CAPABILITY = (8, 0)  # from here on one instruction converts two float32 to float16

if SIMULATED:

    def intrinsic(function: Callable) -> Callable:
        """Stand-in: in the simulator none of these is ever called."""
        return function

else:
    from numba.cuda.extending import intrinsic


def _element(context, builder, signature, args):
    """Address of element `index` of the pointer in front of it."""
    return builder.gep(args[0], [context.cast(builder, args[1], signature.args[1], types.int64)])


def _assembly(result, arguments, text: str, constraints: str, side_effect: bool = False):
    kind = ir.FunctionType(result, [argument.type for argument in arguments])
    return ir.InlineAsm(kind, text, constraints, side_effect=side_effect)


def _reader(suffix: str) -> Callable:
    """`load(frame, index)`: through the read-only cache, as uint32; `index` counts elements of the frame."""

    @intrinsic
    def load(typing_context, frame, index):
        def generate(context, builder, signature, args):
            address = _element(context, builder, signature, args)
            text = f"ld.global.nc.{suffix} $0, [$1];"
            return builder.call(_assembly(ir.IntType(32), [address], text, "=r,l"), [address])

        return types.uint32(frame, index), generate

    return load


def _quad_reader(suffix: str, letter: str, kind, element) -> Callable:
    """`load(source, index)`: four neighbouring 32-bit elements at once; the address is a multiple of 16."""

    @intrinsic
    def load(typing_context, source, index):
        def generate(context, builder, signature, args):
            address = _element(context, builder, signature, args)
            text = f"ld.global.nc.L1::no_allocate.v4.{suffix} {{$0, $1, $2, $3}}, [$4];"
            constraints = ",".join([f"={letter}"] * 4 + ["l"])
            found = builder.call(_assembly(ir.LiteralStructType([kind] * 4), [address], text, constraints), [address])
            parts = [builder.extract_value(found, i) for i in range(4)]
            return context.make_tuple(builder, signature.return_type, parts)

        return types.UniTuple(element, 4)(source, index), generate

    return load


@intrinsic
def _tail_floats(typing_context, item):
    def generate(context, builder, signature, args):
        text = f"{{.reg .b64 a, b; mov.b64 a, {TAIL}; mul.wide.s32 b, $4, 16; add.s64 a, a, b; "
        text += "ld.param.v4.f32 {$0, $1, $2, $3}, [a];}"
        kind = ir.LiteralStructType([ir.FloatType()] * 4)
        found = builder.call(_assembly(kind, args, text, "=f,=f,=f,=f,r"), args)
        parts = [builder.extract_value(found, i) for i in range(4)]
        return context.make_tuple(builder, signature.return_type, parts)

    return types.UniTuple(types.float32, 4)(types.int32), generate


@intrinsic
def _prefetch(typing_context, frame, index):
    def generate(context, builder, signature, args):
        address = _element(context, builder, signature, args)
        call = _assembly(ir.VoidType(), [address], "prefetch.global.L2 [$0];", "l", True)
        builder.call(call, [address])
        return context.get_dummy_value()

    return types.void(frame, index), generate


@intrinsic
def _funnel(typing_context, low, high, shift):
    def generate(context, builder, signature, args):
        return builder.call(_assembly(ir.IntType(32), args, "shf.r.wrap.b32 $0, $1, $2, $3;", "=r,r,r,r"), args)

    return types.uint32(types.uint32, types.uint32, types.uint32), generate


@intrinsic
def _permute(typing_context, low, high, selector):
    def generate(context, builder, signature, args):
        return builder.call(_assembly(ir.IntType(32), args, "prmt.b32 $0, $1, $2, $3;", "=r,r,r,r"), args)

    return types.uint32(types.uint32, types.uint32, types.uint32), generate


def _mixer(half: str) -> Callable:
    """`8388608 + a * low + b * high` as float32, of two bytes of a word and two weights of 16 bits in another."""

    @intrinsic
    def mix(typing_context, weights, pairs):
        def generate(context, builder, signature, args):
            text = f"{{.reg .b32 s; dp2a.{half}.u32.u32 s, $1, $2, {MAGIC}; mov.b32 $0, s;}}"
            return builder.call(_assembly(ir.FloatType(), args, text, "=f,r,r"), args)

        return types.float32(types.uint32, types.uint32), generate

    return mix


def _byte_joiner(kind, letter: str) -> Callable:
    """`join(a, b, c, d)`: the lowest bytes of four numbers of 32 bits as one word."""

    @intrinsic
    def join(typing_context, a, b, c, d):
        def generate(context, builder, signature, args):
            text = "prmt.b32 x, $1, $2, 0x0040; prmt.b32 y, $3, $4, 0x0040; prmt.b32 $0, x, y, 0x5410;"
            text, constraints = f"{{.reg .b32 x, y; {text}}}", ",".join(["=r", *letter * 4])
            return builder.call(_assembly(ir.IntType(32), args, text, constraints), args)

        return types.uint32(kind, kind, kind, kind), generate

    return join


def _word_writer(count: int) -> Callable:
    """`store(out, index, words)`: so many words to `out[index:index + 4 * count]`, which leave the cache first."""
    vector = f".v{count}" if count > 1 else ""
    text = f"st.global.cs{vector}.b32 [$0], {{{', '.join(_registers(count))}}};"

    @intrinsic
    def store(typing_context, out, index, words):
        def generate(context, builder, signature, args):
            parts = [builder.extract_value(args[2], i) for i in range(count)]
            given = [_element(context, builder, signature, args), *parts]
            builder.call(_assembly(ir.VoidType(), given, text, ",".join(["l", *"r" * count]), True), given)
            return context.get_dummy_value()

        return types.void(out, index, words), generate

    return store


@intrinsic
def _bits_as_float(typing_context, bits):
    def generate(context, builder, signature, args):
        return builder.bitcast(args[0], ir.FloatType())

    return types.float32(types.uint32), generate


@intrinsic
def _reciprocal(typing_context, value):
    def generate(context, builder, signature, args):
        return builder.call(_assembly(ir.FloatType(), args, "rcp.approx.ftz.f32 $0, $1;", "=f,f"), args)

    return types.float32(types.float32), generate


@intrinsic
def _saturated(typing_context, a, b, c):
    def generate(context, builder, signature, args):
        text = "fma.rn.sat.f32 $0, $1, $2, $3;"
        return builder.call(_assembly(ir.FloatType(), args, text, "=f,f,f,f"), args)

    return types.float32(types.float32, types.float32, types.float32), generate


def _byte_reader(position: int) -> Callable:
    """`8388608 + byte` of a word as float32 in one instruction: the byte becomes the last bits of that number."""

    @intrinsic
    def byte(typing_context, word):
        def generate(context, builder, signature, args):
            text = f"{{.reg .b32 p; prmt.b32 p, $1, {MAGIC}, 0x744{position}; mov.b32 $0, p;}}"
            return builder.call(_assembly(ir.FloatType(), args, text, "=f,r"), args)

        return types.float32(types.uint32), generate

    return byte


def _writer(text: str, count: int) -> Callable:
    """`store(out, index, values)`: `count` float32 to `out[index:index + count]`, converted by `text`."""

    @intrinsic
    def store(typing_context, out, index, values):
        def generate(context, builder, signature, args):
            address = _element(context, builder, signature, args)
            parts = [builder.extract_value(args[2], i) for i in range(count)]
            constraints = ",".join(["l", *"f" * count])
            builder.call(_assembly(ir.VoidType(), [address, *parts], text, constraints, True), [address, *parts])
            return context.get_dummy_value()

        return types.void(out, index, values), generate

    return store


def _registers(count: int, first: int = 1) -> list[str]:
    return [f"${first + i}" for i in range(count)]


def _float32_text(count: int) -> str:
    vector = f".v{count}" if count > 1 else ""
    return f"st.global.cs{vector}.f32 [$0], {{{', '.join(_registers(count))}}};"


def _float16_text(count: int, pairs: bool) -> str:
    """Two float16 per 32-bit register; the first of them in its lower half."""
    if count == 1:
        return "{.reg .b16 h; cvt.rn.f16.f32 h, $1; st.global.cs.b16 [$0], h;}"
    words = [f"w{i}" for i in range(count // 2)]
    lines = [f".reg .b32 {', '.join(words)}; .reg .b16 lo, hi;"]
    for i, word in enumerate(words):
        low, high = f"${2 * i + 1}", f"${2 * i + 2}"
        if pairs:
            lines.append(f"cvt.rn.f16x2.f32 {word}, {high}, {low};")
        else:
            lines.append(f"cvt.rn.f16.f32 lo, {low}; cvt.rn.f16.f32 hi, {high}; mov.b32 {word}, {{lo, hi}};")
    vector = f".v{len(words)}" if len(words) > 1 else ""
    lines.append(f"st.global.cs{vector}.b32 [$0], {{{', '.join(words)}}};")
    return "{" + " ".join(lines) + "}"


def bfloat16_text(word: str, value: str) -> str:
    """The bits of the bfloat16 nearest to a float32, by integers; for NaN, a quiet one."""
    return (
        f"{{.reg .b32 b; .reg .pred n; mov.b32 b, {value}; testp.notanumber.f32 n, {value}; shr.u32 {word}, b, 16; "
        f"and.b32 {word}, {word}, 1; add.u32 {word}, {word}, 0x7FFF; add.u32 {word}, {word}, b; "
        f"@n or.b32 {word}, b, 0x400000; shr.u32 {word}, {word}, 16;}}"
    )


def _bfloat16_store(count: int, pairs: bool) -> str:
    """Two bfloat16 per 32-bit register; memory is seen as uint16."""
    if count == 1 and pairs:
        return "{.reg .b16 h; cvt.rn.bf16.f32 h, $1; st.global.cs.b16 [$0], h;}"
    if count == 1:
        return f"{{.reg .b32 w; .reg .b16 h; {bfloat16_text('w', '$1')} cvt.u16.u32 h, w; st.global.cs.b16 [$0], h;}}"
    words = [f"w{i}" for i in range(count // 2)]
    lines = [f".reg .b32 {', '.join(words)}, lo, hi;"]
    for i, word in enumerate(words):
        low, high = f"${2 * i + 1}", f"${2 * i + 2}"
        if pairs:
            lines.append(f"cvt.rn.bf16x2.f32 {word}, {high}, {low};")
        else:
            lines.append(f"{bfloat16_text('lo', low)} {bfloat16_text('hi', high)} prmt.b32 {word}, lo, hi, 0x5410;")
    vector = f".v{len(words)}" if len(words) > 1 else ""
    return "{" + " ".join([*lines, f"st.global.cs{vector}.b32 [$0], {{{', '.join(words)}}};"]) + "}"


def _uint8_text(count: int, saturate: bool) -> str:
    """Rounded to integers by one addition each; `prmt` puts the four low bytes into one word."""
    lines = [".reg .f32 v; .reg .b16 h; .reg .b32 a, b, c, d, w0, w1, w2, w3;"]
    for word in range(-(-count // 4)):
        for register, name in zip(_registers(min(count, 4), 4 * word + 1), "abcd", strict=False):
            clamp = f"max.f32 v, {register}, 0f00000000; min.f32 v, v, 0f437F0000;" if saturate else ""
            lines.append(f"{clamp} add.f32 v, {'v' if saturate else register}, {ROUND}; mov.b32 {name}, v;")
        if count == 2:
            lines.append("prmt.b32 a, a, b, 0x0040; cvt.u16.u32 h, a;")
        elif count > 1:
            lines.append(f"prmt.b32 a, a, b, 0x0040; prmt.b32 c, c, d, 0x0040; prmt.b32 w{word}, a, c, 0x5410;")
    stores = {1: "u8 [$0], a", 2: "u16 [$0], h", 4: "b32 [$0], w0", 16: "v4.b32 [$0], {w0, w1, w2, w3}"}
    lines.append(f"st.global.cs.{stores[count]};")
    return "{" + " ".join(lines) + "}"


def streaming_store(dtype: str, count: int, saturate: bool, pairs: bool) -> Callable:
    """`store(out, index, values)` for a tuple of `count` float32, in one store that leaves the cache first.

    Parameters
    ----------
    dtype : {"float32", "float16", "bfloat16", "uint8"}
        Of `out`.
    count : {1, 2, 4, 16}
        1, 2, 4 or 16 for uint8, up to 4 for the others. The address must be a multiple of the size of all of them.
    saturate : bool
        uint8: whether values may lie outside 0 to 255.
    pairs : bool
        float16, bfloat16: whether the GPU converts two numbers at once (compute capability 8.0).
    """
    if SIMULATED:
        return _simulated_store(dtype, count)
    texts = {
        "float32": lambda: _float32_text(count),
        "float16": lambda: _float16_text(count, pairs),
        "bfloat16": lambda: _bfloat16_store(count, pairs),
        "uint8": lambda: _uint8_text(count, saturate),
    }
    return _writer(texts[dtype](), count)


def _simulated_store(dtype: str, count: int) -> Callable:
    def store(out, index, values):
        for i in range(count):
            value = values[i]
            if dtype == "uint8":
                value = np.rint(value).clip(0, 255).astype(np.uint8)
            elif dtype == "bfloat16":
                value = bfloat16_bits(np.float32(value))
            out[index + i] = value

    return store


if SIMULATED:

    def load_floats(source, index):
        """Four float32 from `index` on, whose address is a multiple of 16, past the L1."""
        return tuple(source[index : index + 4])

    def tail_floats(item):
        """Four float32 of the kernel's last argument, an array by value; the simulator has no such arguments."""
        raise NotImplementedError

    def load_words(source, index):
        """Sixteen bytes from `index` on, which is a multiple of 16, as four uint32, past the L1."""
        return tuple(source[index : index + 16].view(np.uint32))

    def load_pixel(frame, index):
        """Element `index` of the frame, as uint32."""
        return np.uint32(frame[index])

    def load_word(frame, index):
        """The four bytes from element `index` on, whose address is a multiple of 4, as uint32."""
        return np.uint32(frame[index : index + 4 // frame.itemsize].view(np.uint32)[0])

    def load_half(frame, index):
        """The same of two bytes."""
        return np.uint32(frame[index : index + 2].view(np.uint16)[0])

    def prefetch(frame, index):
        """Ask for the cache line of an element; nothing waits for it."""

    def funnel(low, high, shift):
        """The 32 bits of `high:low` from bit `shift` on."""
        return np.uint32((((int(high) << 32) | int(low)) >> int(shift)) & 0xFFFFFFFF)

    def permute(low, high, selector):
        """Four of the eight bytes of `high:low`, as the four lowest hexadecimal digits of the selector say."""
        both = int(high) << 32 | int(low)
        return np.uint32(sum((both >> 8 * (int(selector) >> 4 * i & 7) & 255) << 8 * i for i in range(4)))

    def _simulated_mix(shift: int) -> Callable:
        return lambda weights, pairs: np.float32(
            MAGIC_VALUE
            + (int(weights) & 0xFFFF) * (int(pairs) >> shift & 255)
            + (int(weights) >> 16) * (int(pairs) >> shift + 8 & 255)
        )

    mix_low, mix_high = _simulated_mix(0), _simulated_mix(16)

    def join_bytes(a, b, c, d):
        """The lowest bytes of four uint32 as one."""
        return np.uint32(sum((int(value) & 255) << 8 * i for i, value in enumerate((a, b, c, d))))

    def pack(a, b, c, d):
        """Four integers, each 8388608 too large, as the bytes of a word."""
        return join_bytes(*(value - MAGIC_VALUE for value in (a, b, c, d)))

    def store_words(out, index, words):
        """One word, or four, to bytes from `index` on, whose address is a multiple of their size."""
        out[index : index + 4 * len(words)] = np.array(words, np.uint32).view(np.uint8)

    store_word = store_words

    def as_float(value):
        """`8388608 + value` for a value below 2**23."""
        return np.float32(int(value) + MAGIC_VALUE)

    def bits_as_float(bits):
        """A uint32's bits as those of a float32."""
        return np.uint32(bits).view(np.float32)

    def reciprocal(value):
        """`1 / value`, but for the last bit."""
        return np.float32(1.0) / value

    def saturated(a, b, c):
        """`a * b + c`, cut to 0 and 1."""
        return min(max(a * b + c, np.float32(0.0)), np.float32(1.0))

    def _simulated_byte(position: int) -> Callable:
        return lambda word: np.float32(((int(word) >> (8 * position)) & 255) + MAGIC_VALUE)

    PIXEL_LOADS = {"uint8": load_pixel, "uint16": load_pixel}
    byte0, byte1, byte2, byte3 = (_simulated_byte(position) for position in range(4))
else:
    PIXEL_LOADS = {"uint8": _reader("u8"), "uint16": _reader("u16")}
    load_word, load_half = _reader("u32"), _reader("u16")
    load_floats = _quad_reader("f32", "f", ir.FloatType(), types.float32)
    load_words = _quad_reader("u32", "r", ir.IntType(32), types.uint32)
    prefetch, funnel, tail_floats = _prefetch, _funnel, _tail_floats
    bits_as_float, reciprocal, saturated = _bits_as_float, _reciprocal, _saturated
    permute, mix_low, mix_high = _permute, _mixer("lo"), _mixer("hi")
    pack, join_bytes = _byte_joiner(types.float32, "f"), _byte_joiner(types.uint32, "r")
    store_word, store_words = _word_writer(1), _word_writer(4)
    byte0, byte1, byte2, byte3 = (_byte_reader(position) for position in range(4))

    @cuda.jit(device=True)
    def as_float(value):
        """`8388608 + value` for a value below 2**23, by putting it into that number's last bits."""
        return _bits_as_float(value | np.uint32(MAGIC))
