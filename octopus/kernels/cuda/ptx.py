"""The instructions that the kernel language has no words for: one table of PTX.

Each line is a device function: its emulation's name, its text, its result, its arguments (see `language.instruction`).

A product is `mma.sync.m16n8k32` of int8 weights and uint8 pixels, exact in int32. Lane `l = 4 * g + t` of a warp holds
(PTX ISA, "Matrix Fragments for mma.m16n8k32"; four values of a row lie in one word)::

    A (16 x 32 weights)  words 0, 1: rows g and g + 8, columns 4t to 4t + 3;  words 2, 3: the same rows, 16 columns on
    B (32 x 8 pixels)    word 0: rows 4t to 4t + 3 of column g;               word 1: 16 rows on
    D (16 x 8 sums)      0, 1: row g, columns 2t and 2t + 1;                  2, 3: row g + 8
"""

from collections.abc import Callable
from functools import partial

import numpy as np

from octopus.backends.cuda.language import TAIL_PLACE, bits_as_float, device, instruction
from octopus.kernels.cuda.image_kind import CHUNK, DIGIT_BYTES, NARROW_PLACES, PLACES

MAGIC = 0x4B000000  # bits of the float32 8388608.0, whose last bits count ones
MAGIC_VALUE = np.float32(8388608.0)
ROUND = "0f4B400000"  # 1.5 * 2**23: adding it rounds half to even and leaves the integer in the low bits
HALF_PAIR_CAPABILITY = (8, 0)  # from here on one instruction converts two float32 to float16
WORD, FLOAT, DOUBLE, INT, LONG, AT, VOID = "uint32", "float32", "float64", "int32", "int64", "address", "void"
_active = partial(instruction, volatile=True)  # for what does more than give a result


def _list(first: int, count: int) -> str:
    return "{" + ", ".join(f"${first + i}" for i in range(count)) + "}"


# Elements of a frame, through the read-only cache, as uint32. Words and halves lie at multiples of their size.
PIXEL_LOADS = {
    "uint8": instruction("load_pixel", "ld.global.nc.u8 $0, [$1];", WORD, AT),
    "uint16": instruction("load_pixel", "ld.global.nc.u16 $0, [$1];", WORD, AT),
}
load_word = instruction("load_word", "ld.global.nc.u32 $0, [$1];", WORD, AT)
load_half = instruction("load_half", "ld.global.nc.u16 $0, [$1];", WORD, AT)
# Sixteen bytes at a multiple of 16, past the L1.
_FOUR = "ld.global.nc.L1::no_allocate.v4.{} {{$0, $1, $2, $3}}, [$4];"
load_floats = instruction("load_floats", _FOUR.format("f32"), f"{FLOAT}*4", AT)
load_words = instruction("load_words", _FOUR.format("u32"), f"{WORD}*4", AT)
# Elements at an address that a kernel reads from memory: images of which each has its own.
LOADS_AT = {
    "uint8": instruction("load_uint8_at", "ld.global.nc.u8 $0, [$1];", WORD, LONG),
    "uint16": instruction("load_uint16_at", "ld.global.nc.u16 $0, [$1];", WORD, LONG),
    "float32": instruction("load_float32_at", "ld.global.nc.f32 $0, [$1];", FLOAT, LONG),
}
load_byte = _active(
    "load_byte", "{.reg .b64 a; cvt.u64.u32 a, $2; add.s64 a, a, $1; ld.global.nc.u8 $0, [a];}", WORD, LONG, INT
)
# Ask for the cache line of an element; nothing waits for it. Enlarged boxes took 138 us for 152, see `docs/kernels.md`.
prefetch = _active("prefetch", "prefetch.global.L2 [$0];", VOID, AT)
# Four float32 of the kernel's last argument, an array by value.
tail_floats = instruction(
    "tail_floats",
    f"{{.reg .b64 a, b; mov.b64 a, {TAIL_PLACE}; mul.wide.s32 b, $4, 16; add.s64 a, a, b; "
    "ld.param.v4.f32 {$0, $1, $2, $3}, [a];}",
    f"{FLOAT}*4", INT,
)  # fmt: skip

# The 32 bits of two words (low, high) from a bit on; four of their eight bytes, as a selector's digits say.
funnel = instruction("funnel", "shf.r.wrap.b32 $0, $1, $2, $3;", WORD, WORD, WORD, WORD)
permute = instruction("permute", "prmt.b32 $0, $1, $2, $3;", WORD, WORD, WORD, WORD)
# `8388608 + byte` of a word as float32: the byte becomes the last bits of that number.
byte0, byte1, byte2, byte3 = (
    instruction(f"byte{i}", f"{{.reg .b32 p; prmt.b32 p, $1, {MAGIC}, 0x744{i}; mov.b32 $0, p;}}", FLOAT, WORD)
    for i in range(4)
)
# `8388608 + a * low + b * high` as float32, of two bytes of a word and two weights of 16 bits in another.
mix_low, mix_high = (
    instruction(
        f"mix_{name}", f"{{.reg .b32 s; dp2a.{half}.u32.u32 s, $1, $2, {MAGIC}; mov.b32 $0, s;}}", FLOAT, WORD, WORD
    )
    for name, half in (("low", "lo"), ("high", "hi"))
)
# Four numbers as the bytes of a word, each 8388608 too large.
pack = instruction(
    "pack", "{.reg .b32 x, y; prmt.b32 x, $1, $2, 0x0040; prmt.b32 y, $3, $4, 0x0040; prmt.b32 $0, x, y, 0x5410;}",
    WORD, FLOAT, FLOAT, FLOAT, FLOAT,
)  # fmt: skip
# Bytes 0 and 2 of two words, bytes 1 and 3 of them.
low_bytes = instruction("low_bytes", "prmt.b32 $0, $1, $2, 0x6420;", WORD, WORD, WORD)
high_bytes = instruction("high_bytes", "prmt.b32 $0, $1, $2, 0x7531;", WORD, WORD, WORD)
# int32, each cut to 0..255 (or 65535), as the bytes (halves) of a word, the first the lowest.
pack_bytes = instruction(
    "pack_bytes",
    "{.reg .b32 h; cvt.pack.sat.u8.s32.b32 h, $4, $3, 0; cvt.pack.sat.u8.s32.b32 $0, $2, $1, h;}",
    WORD, INT, INT, INT, INT,
)  # fmt: skip
pack_two = instruction("pack_two", "cvt.pack.sat.u8.s32.b32 $0, $2, $1, 0;", WORD, INT, INT)
pack_halves = instruction("pack_halves", "cvt.pack.sat.u16.s32 $0, $2, $1;", WORD, INT, INT)
# The sum of a word's bytes (halves), each times the byte of another beside it, and a third number.
dot_bytes = instruction("dot_bytes", "dp4a.u32.u32 $0, $1, $2, $3;", WORD, WORD, WORD, WORD)
dot_halves = instruction("dot_halves", "dp2a.lo.u32.u32 $0, $1, $2, $3;", WORD, WORD, WORD, WORD)
# The bits from one number to below another, of at most 31.
byte_mask = instruction(
    "byte_mask", "{.reg .b32 a, b; shl.b32 a, 1, $1; shl.b32 b, 1, $2; sub.u32 $0, b, a;}", WORD, INT, INT, early=True
)
# Of two int32 that are not negative, rounded down, without the 64 bits that Numba would take.
quotient = instruction("quotient", "div.u32 $0, $1, $2;", INT, INT, INT)
# The value; the compiler doesn't know that, and so doesn't unroll a loop that it counts.
opaque = _active("opaque", "mov.b32 $0, $1;", INT, INT)

reciprocal = instruction("reciprocal", "rcp.approx.ftz.f32 $0, $1;", FLOAT, FLOAT)  # but for the last bit
saturated = instruction("saturated", "fma.rn.sat.f32 $0, $1, $2, $3;", FLOAT, FLOAT, FLOAT, FLOAT)  # a * b + c, 0 to 1
# `x ** e` for x that is not negative; of bytes, where nothing is so small that it matters, without subnormal numbers.
power, power_of_byte = (
    instruction(
        name, f"{{.reg .f32 t; lg2.approx{flush}.f32 t, $1; mul.f32 t, t, $2; ex2.approx{flush}.f32 $0, t;}}",
        FLOAT, FLOAT, FLOAT,
    )
    for name, flush in (("power", ""), ("power_of_byte", ".ftz"))
)  # fmt: skip
# Never fused into one rounding with what follows: Pillow's last bits.
add = instruction("add", "add.rn.f64 $0, $1, $2;", DOUBLE, DOUBLE, DOUBLE)
times = instruction("times", "mul.rn.f64 $0, $1, $2;", DOUBLE, DOUBLE, DOUBLE)

# `sums + weights @ pixels`, of pixels without and with sign; all lanes of a warp take part.
multiply, multiply_signed = (
    _active(
        name, f"mma.sync.aligned.m16n8k32.row.col.s32.s8.{kind}8.s32 "
        + ", ".join([_list(0, 4), _list(8, 4), _list(12, 2), _list(4, 4)]) + ";",
        f"{INT}*4", f"{INT}*4", f"{WORD}*4", WORD, WORD,
    )
    for name, kind in (("multiply", "u"), ("multiply_signed", "s"))
)  # fmt: skip
# A lane's words of one product's weights, at an address in shared memory: highest digit, middle one, lowest.
load_weights = _active(
    "load_weights",
    " ".join(f"ld.shared.v4.b32 {_list(4 * digit, 4)}, [$12 + {DIGIT_BYTES * digit}];" for digit in range(3)),
    f"{WORD}*4*3", WORD, early=True,
)  # fmt: skip
load_two = _active(
    "load_two", f"ld.shared.v4.b32 {_list(0, 4)}, [$8]; ld.shared.v4.b32 {_list(4, 4)}, [$8 + {DIGIT_BYTES}];",
    f"{WORD}*4*2", WORD, early=True,
)  # fmt: skip
# Words of shared memory.
load1, load4 = (
    _active(f"load{n}", f"ld.shared{f'.v{n}' if n > 1 else ''}.b32 {_list(0, n)}, [${n}];", f"{WORD}*{n}", WORD)
    for n in (1, 4)
)
store1, store2, store4 = (
    _active(f"store{n}", f"st.shared{f'.v{n}' if n > 1 else ''}.b32 [$0], {_list(1, n)};", VOID, WORD, f"{WORD}*{n}")
    for n in (1, 2, 4)
)
store_byte, store_half = (
    _active(f"store_{kind}", f"{{.reg .b16 h; cvt.u16.u32 h, $1; st.shared.{kind} [$0], h;}}", VOID, WORD, f"{WORD}*1")
    for kind in ("b8", "b16")
)
# Words that lie some bytes apart, each into a register of its own: products want them in other pairs.
ring2, ring4, row3, row7, row9 = (
    _active(
        f"words_{n}_{apart}", " ".join(f"ld.shared.b32 ${i}, [${n} + {apart * i}];" for i in range(n)),
        f"{WORD}*{n}", WORD, early=True,
    )
    for n, apart in ((2, 128), (4, 128), (3, 4), (7, 4), (9, 4))
)  # fmt: skip


def _copies(count: int, counted: bool) -> str:
    """Of `copy_piece`: places and conditions first, for copies that are not neighbours cost a wait each."""
    text, first = f"{{.reg .pred p<{count}>; .reg .b64 a<{count}>; .reg .b32 x; ", 4 if counted else 3
    for i in range(count):
        text += f"setp.lt.s32 p{i}, $3, ${first + count + i}; " if counted else f"setp.ge.s32 p{i}, ${first + i}, 0; "
        text += f"add.s32 x, $2, ${first + i}; cvt.u64.u32 a{i}, x; add.s64 a{i}, a{i}, $1; "
    for i in range(count):  # into L2 alone: in L1 as well 224 x 224 took 313 us instead of 290
        text += f"@p{i} cp.async.cg.shared.global [$0 + {32 * CHUNK * i}], [a{i}], {CHUNK}; "
    return text + "}"


# `copy_piece(place, base, run, piece, offsets, wanted)`: have three times 16 bytes copied to `place` and 32 copies on,
# from `base + run` and an offset of each on, each if `piece < wanted`; nothing waits for them. `copy_pieces` has five,
# each if its offset is not negative.
copy_piece = _active("copy_piece", _copies(3, True), VOID, WORD, LONG, INT, INT, f"{INT}*3", f"{INT}*3")
copy_pieces = _active("copy_pieces", _copies(5, False), VOID, WORD, LONG, INT, f"{INT}*5")
commit = _active("commit", "cp.async.commit_group;", VOID)  # what a lane asked for since the last is a piece
# For all pieces of a lane but the last ones.
wait = _active("wait", f"cp.async.wait_group {PLACES - 2};", VOID)
wait_but_one = _active("wait_but_one", "cp.async.wait_group 1;", VOID)
wait_narrow = _active("wait_narrow", f"cp.async.wait_group {NARROW_PLACES - 2};", VOID)
wait_all = _active("wait_all", "cp.async.wait_all;", VOID)


# Sixteen bytes past the L1, and a byte; zeros unless wanted, and nothing waits for them.
load_words_if = instruction(
    "load_words_if",
    "{.reg .pred p; setp.ne.u32 p, $5, 0; mov.u32 $0, 0; mov.u32 $1, 0; mov.u32 $2, 0; mov.u32 $3, 0; @p "
    + _FOUR.format("u32") + "}",
    f"{WORD}*4", AT, WORD, early=True,
)  # fmt: skip
load_byte_if = instruction(
    "load_byte_if", "{.reg .pred p; setp.ne.u32 p, $2, 0; mov.u32 $0, 0; @p ld.global.nc.u8 $0, [$1];}",
    WORD, AT, WORD, early=True,
)  # fmt: skip
fence = _active("fence", "membar.gl;", VOID)  # all see what was written before it first
# On a 64-bit word of device memory; what was there before.
atomic_add = _active("atomic_add", "atom.global.add.u64 $0, [$1], $2;", LONG, AT, LONG)

store_word = _active("store_words", "st.global.cs.b32 [$0], {$1};", VOID, AT, f"{WORD}*1")
store_words = _active("store_words", "st.global.cs.v4.b32 [$0], {$1, $2, $3, $4};", VOID, AT, f"{WORD}*4")


def _bfloat16_text(word: str, value: str) -> str:
    """The bits of the bfloat16 nearest to a float32, by integers; for NaN, a quiet one."""
    return (
        f"{{.reg .b32 b; .reg .pred n; mov.b32 b, {value}; testp.notanumber.f32 n, {value}; shr.u32 {word}, b, 16; "
        f"and.b32 {word}, {word}, 1; add.u32 {word}, {word}, 0x7FFF; add.u32 {word}, {word}, b; "
        f"@n or.b32 {word}, b, 0x400000; shr.u32 {word}, {word}, 16;}}"
    )


def _half_text(kind: str, count: int, pairs: bool) -> str:
    """Two numbers of 16 bits, "f16" or "bf16", per 32-bit register; the first of them in its lower half."""
    by_integers = kind == "bf16" and not pairs
    if count == 1:
        made, bits = f"cvt.rn.{kind}.f32 h, $1;", ".reg .b16 h;"
        if by_integers:
            made, bits = f"{_bfloat16_text('w', '$1')} cvt.u16.u32 h, w;", ".reg .b32 w; .reg .b16 h;"
        return f"{{{bits} {made} st.global.cs.b16 [$0], h;}}"
    words = [f"w{i}" for i in range(count // 2)]
    lines = [f".reg .b32 {', '.join(words)}{', lo, hi;' if kind == 'bf16' else '; .reg .b16 lo, hi;'}"]
    for i, word in enumerate(words):
        low, high = f"${2 * i + 1}", f"${2 * i + 2}"
        if pairs:
            lines.append(f"cvt.rn.{kind}x2.f32 {word}, {high}, {low};")
        elif by_integers:
            lines.append(f"{_bfloat16_text('lo', low)} {_bfloat16_text('hi', high)} prmt.b32 {word}, lo, hi, 0x5410;")
        else:
            lines.append(f"cvt.rn.f16.f32 lo, {low}; cvt.rn.f16.f32 hi, {high}; mov.b32 {word}, {{lo, hi}};")
    vector = f".v{len(words)}" if len(words) > 1 else ""
    return f"{{{' '.join(lines)} st.global.cs{vector}.b32 [$0], {{{', '.join(words)}}};}}"


def zero_of(dtype: str) -> np.float32:
    """What `streaming_store` writes as 0."""
    return np.float32(128.0 if dtype == "int8" else 0.0)


def _byte_text(count: int, saturate: bool, signed: bool) -> str:
    """Rounded to integers by one addition each; `prmt` puts the four low bytes into one word, less 128 if signed."""
    lines = [".reg .f32 v; .reg .b16 h; .reg .b32 a, b, c, d, w0, w1, w2, w3;"]
    for word in range(-(-count // 4)):
        for number, name in enumerate("abcd"[: min(count, 4)]):
            register = f"${4 * word + 1 + number}"
            clamp = f"max.f32 v, {register}, 0f00000000; min.f32 v, v, 0f437F0000;" if saturate else ""
            lines.append(f"{clamp} add.f32 v, {'v' if saturate else register}, {ROUND}; mov.b32 {name}, v;")
        if count == 2:
            lines.append("prmt.b32 a, a, b, 0x0040; cvt.u16.u32 h, a;")
        elif count > 1:
            lines.append(f"prmt.b32 a, a, b, 0x0040; prmt.b32 c, c, d, 0x0040; prmt.b32 w{word}, a, c, 0x5410;")
    if signed:
        made = {1: "a", 2: "h"}.get(count)
        for word in [made] if made else [f"w{i}" for i in range(count // 4)]:
            lines.append(f"xor.b{16 if word == 'h' else 32} {word}, {word}, {0x8080 if word == 'h' else 0x80808080};")
    stores = {1: "u8 [$0], a", 2: "u16 [$0], h", 4: "b32 [$0], w0", 16: "v4.b32 [$0], {w0, w1, w2, w3}"}
    return "{" + " ".join([*lines, f"st.global.cs.{stores[count]};"]) + "}"


def streaming_store(dtype: str, count: int, saturate: bool, pairs: bool) -> Callable:
    """`store(out, index, values)` for a tuple of `count` float32, in one store that leaves the cache first. `count` is
    1, 2, 4 or 16 for uint8 and int8 (the byte less 128), up to 4 for others; the address is a multiple of their size.
    `saturate`: values may lie outside 0 to 255. `pairs`: the GPU converts two numbers at once to 16 bits (compute
    capability 8.0)."""
    if dtype == "float32":
        text = f"st.global.cs{f'.v{count}' if count > 1 else ''}.f32 [$0], {_list(1, count)};"
    elif dtype in ("uint8", "int8"):
        text = _byte_text(count, saturate, dtype == "int8")
    else:
        text = _half_text({"float16": "f16", "bfloat16": "bf16"}[dtype], count, pairs)
    return _active(f"store_{dtype}_{count}", text, VOID, AT, f"{FLOAT}*{count}")


@device
def as_float(value):
    """`8388608 + value` for a value below 2**23, by putting it into that number's last bits."""
    return bits_as_float(value | np.uint32(MAGIC))
