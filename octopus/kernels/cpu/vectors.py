"""What kernels do by whole vectors, in LLVM's general language, which each processor has instructions for.

LLVM finds no good code for these in loops of scalars, it would gather single bytes: two to four times slower, see
`docs/kernels.md`.
"""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import binding, ir
from numba import config, types
from numba.core import cgutils
from numba.core.errors import RequireLiteralValue
from numba.extending import intrinsic

from octopus.kernels.geometry import ROUNDING
from octopus.kernels.images import FIXED_BITS, FIXED_HALF

LANES = 16
PAIRED = 2 * LANES  # int16 of a vector of pairs
WIDE = 4  # vectors that `sum_along` keeps: enough sums at once to hide how long one addition takes
VECTOR_BYTES = 4 * LANES
BLOCK = 16  # bytes of a row that `load_pairs` reads at a time
AHEAD = 128  # bytes from there to what is asked for: 16 rows at once are more than a processor foresees
FETCHED = 8  # bytes that `columns_of_bytes` reads from a column's first pixel on
FETCHED_AHEAD = (0, 5, 10)  # columns whose lines of the cache are asked for in another row: all, up to 1/4
MOST_CHANNELS = FETCHED // 2
GROUP = 8  # values that `columns_of_floats` weighs at once
LEAST = 4  # values that `sums_of_taps` fetches or stores at once, at least
_BYTE, _SHORT, _INT, _LONG, _FLOAT = ir.IntType(8), ir.IntType(16), ir.IntType(32), ir.IntType(64), ir.FloatType()
_CONTRACT = ["contract"]  # a product and a sum may become one instruction


def fetched(taps: int, stored: int) -> int:
    """Values of a row from a sample's first one on that `sums_of_taps` reads."""
    return max(LEAST, 1 << (taps * stored - 1).bit_length())


class _Code:
    """Writes LLVM's language by its builder `b`: what the functions below are made of."""

    def __init__(self, builder: Any) -> None:
        self.b = builder

    def at(self, start: Any, index: Any, step: Any = 1) -> Any:
        """A pointer `index` times `step` elements further on."""
        if step != 1:
            index = self.b.mul(_long(index), _long(step))
        return self.b.gep(start, [_long(index)])

    def load(self, place: Any, element: Any = None, lanes: int = LANES) -> Any:
        """Neighbouring values at an address or a pointer, of any alignment."""
        kind = ir.VectorType(element or place.type.pointee, lanes).as_pointer()
        cast = self.b.inttoptr if isinstance(place.type, ir.IntType) else self.b.bitcast
        return self.b.load(cast(place, kind), align=1)

    def store(self, vector: Any, place: Any) -> Any:
        cast = self.b.inttoptr if isinstance(place.type, ir.IntType) else self.b.bitcast
        return self.b.store(vector, cast(place, vector.type.as_pointer()), align=1)

    def pick(self, places: list[int], one: Any, other: Any = None) -> Any:
        """Lanes of one vector or two."""
        return self.b.shuffle_vector(one, other or one, ir.Constant(ir.VectorType(_INT, len(places)), places))

    def join(self, parts: list) -> Any:
        while len(parts) > 1:
            every = list(range(2 * parts[0].type.count))
            parts = [self.pick(every, a, b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
        return parts[0]

    def splat(self, value: Any, lanes: int = LANES) -> Any:
        empty = ir.Constant(ir.VectorType(value.type, lanes), ir.Undefined)
        return self.pick([0] * lanes, self.b.insert_element(empty, value, _INT(0)))

    def splats(self, values: Any, count: int) -> list:
        """Vectors of the first values behind a pointer."""
        return [self.splat(self.b.load(self.at(values, i))) for i in range(count)]

    def floats(self, vector: Any) -> Any:
        """Values of an image as float32."""
        if vector.type.element == _FLOAT:
            return vector
        lanes = vector.type.count
        wide = self.b.zext(vector, ir.VectorType(_INT, lanes)) if vector.type.element.width < _INT.width else vector
        return self.b.sitofp(wide, ir.VectorType(_FLOAT, lanes))

    def times(self, a: Any, b: Any) -> Any:
        return self.b.fmul(a, b, flags=_CONTRACT)

    def plus(self, a: Any, b: Any) -> Any:
        return self.b.fadd(a, b, flags=_CONTRACT)

    def mixed(self, low: Any, high: Any, weight: Any) -> Any:
        return self.plus(low, self.times(weight, self.b.fsub(high, low)))

    def clamped(self, vector: Any) -> Any:
        """From 0 to 255; of NaN 0."""
        for relation, limit in ((">", 0.0), ("<", 255.0)):
            bound = _all(limit, _FLOAT)
            vector = self.b.select(self.b.fcmp_ordered(relation, vector, bound), vector, bound)
        return vector

    def sums(self, number: int, start: Any) -> list:
        return [cgutils.alloca_once_value(self.b, start) for _ in range(number)]

    def add(self, total: Any, value: Any) -> None:
        whole = isinstance(value.type.element, ir.IntType)
        self.b.store((self.b.add if whole else self.plus)(self.b.load(total), value), total)

    def call(self, name: str, result: Any, arguments: list) -> Any:
        """An instruction that LLVM has by a name."""
        kind = ir.FunctionType(result, [argument.type for argument in arguments])
        return self.b.call(cgutils.get_or_insert_function(self.b.module, kind, name), arguments)

    def fetch(self, place: Any) -> None:
        """Ask for the line of the cache at a place, which need not exist: to be read, into all caches."""
        cast = self.b.inttoptr if isinstance(place.type, ir.IntType) else self.b.bitcast
        self.call("llvm.prefetch.p0", ir.VoidType(), [cast(place, _BYTE.as_pointer()), _INT(0), _INT(3), _INT(1)])

    @contextmanager
    def loop(self, count: Any) -> Iterator[Any]:
        with cgutils.for_range(self.b, count) as loop:
            yield loop.index


def _long(value: Any) -> Any:
    return _LONG(value) if isinstance(value, int) else value


def _all(value: Any, element: Any, lanes: int = LANES) -> Any:
    return ir.Constant(ir.VectorType(element, lanes), [value] * lanes)


def _passed(kind: Any) -> Any:
    if isinstance(kind, types.Integer | types.Boolean):
        return types.int64
    return types.float32 if isinstance(kind, types.Float) else kind


def _vectors(*literals: str, **cases: tuple[int, ...]) -> Callable[[Callable], Callable]:
    """Makes a function for kernels of one that writes it, given `_Code`. Parameters named in `literals` are constants
    to it; one in `cases` is made one of so many, each with code of its own (the last stands for all others), unless it
    is a constant anyway."""

    def decorate(write: Callable) -> Callable:
        parameters = inspect.signature(write)
        names = list(parameters.parameters)[1:]

        def typed(typing_context: Any, *kinds: Any) -> Any:
            own = dict(zip(names, kinds, strict=True))
            if not all(isinstance(own[name], types.Literal) for name in literals):
                raise RequireLiteralValue(", ".join(literals))
            for name in own.keys() - literals:
                if name not in cases or not isinstance(own[name], types.Literal):
                    own[name] = _passed(own[name])

            def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
                values = dict(zip(names, arguments, strict=True))
                values |= {name: own[name].literal_value for name in names if isinstance(own[name], types.Literal)}
                _write(builder, write, values, cases)
                return context.get_dummy_value()

            return types.none(*own.values()), generate

        typed.__name__, typed.__signature__ = write.__name__, parameters  # type: ignore[attr-defined]
        return intrinsic(typed)

    return decorate


def _write(builder: Any, write: Callable, values: dict[str, Any], cases: dict[str, tuple[int, ...]]) -> None:
    """Write code for each of the cases of the first parameter that has any."""
    name = next((name for name in cases if not isinstance(values[name], int)), None)
    if name is None:
        write(_Code(builder), **values)
        return
    number, *others = cases[name]
    if not others:
        _write(builder, write, values | {name: number}, cases)
        return
    with builder.if_else(builder.icmp_signed("==", values[name], _LONG(number))) as (same, other):
        with same:
            _write(builder, write, values | {name: number}, cases)
        with other:
            _write(builder, write, values, cases | {name: tuple(others)})


# ---------------------------------------------------------------------------------- images: rows and columns turned


def _turned(v: _Code, rows: list) -> list:
    """The columns of a 16 x 16 block: four times, two vectors half the block apart are interleaved."""
    half = LANES // 2
    masks = [[i // 2 + first + (i % 2) * LANES for i in range(LANES)] for first in (0, half)]
    for _ in range(LANES.bit_length() - 1):
        rows = [v.pick(mask, a, b) for a, b in zip(rows[:half], rows[half:], strict=True) for mask in masks]
    return rows


def _words(v: _Code, rows: list, places: list | None) -> list:
    """16 rows of 16 bytes as four vectors: word k of all rows; the bytes of a row are put at `places` before."""

    def lanes(pattern: list, other: int) -> list:
        """A pattern of four in each 16 bytes; its numbers from 4 on mean the second vector, which begins at `other`."""
        return [4 * lane + (i if i < 4 else i - 4 + other) for lane in range(4) for i in pattern]

    four = [v.join(rows[k::4]) for k in range(4)]
    if places:
        inside = [16 * lane + place for lane in range(4) for place in places]
        four = [v.pick(inside, part) for part in four]
    a, b, c, d = (v.b.bitcast(part, ir.VectorType(_INT, LANES)) for part in four)
    low, high = [0, 4, 1, 5], [2, 6, 3, 7]
    halves = [[v.pick(lanes(half, LANES), x, y) for x, y in ((a, b), (c, d))] for half in (low, high)]
    return [v.pick(lanes(half, LANES), *pair) for pair in halves for half in ([0, 1, 4, 5], [2, 3, 6, 7])]


@_vectors()
def load_across(v, source, rows, into):
    """16 neighbouring values of 16 rows, at `rows` bytes from `source`, those of a column side by side."""
    address = v.b.ptrtoint(source, _LONG)
    places = [v.b.add(address, v.b.load(v.at(rows, row))) for row in range(LANES)]
    for column, vector in enumerate(_turned(v, [v.load(place, source.type.pointee) for place in places])):
        v.store(vector, v.at(into, column * LANES))


@_vectors(stride=(1, 2, 3, 4))
def load_pairs(v, source, rows, into, stride):
    """16 neighbouring bytes of 16 rows as pairs of neighbouring pixels, whose values are `stride` (1 to 4) bytes apart.
    `source` and `rows` as of `load_across`. `into` gets vectors of int16, `stride` for each pair of pixels: 8, or with
    a stride of 3 only 6, of the first 12 bytes."""
    quads = 4 // stride  # of pixels
    # Byte b of word q * stride + j: value j of pixel 4 q + b.
    places = [(4 * (word // stride) + b) * stride + word % stride for word in range(quads * stride) for b in range(4)]
    places += [0] * (BLOCK - len(places))
    address, kind = v.b.ptrtoint(source, _LONG), ir.VectorType(_BYTE, 4 * LANES)
    at = [v.b.add(address, v.b.load(v.at(rows, row))) for row in range(LANES)]
    for row in at:
        v.fetch(v.b.add(row, _LONG(AHEAD)))
    words = _words(v, [v.load(row, _BYTE) for row in at], places if stride > 1 else None)
    for number, word in enumerate(words[: quads * stride]):
        quad, value = divmod(number, stride)
        for half in range(2):
            widened = [i for row in range(LANES) for b in range(2) for i in (4 * row + 2 * half + b, 4 * LANES)]
            pair = v.pick(widened, v.b.bitcast(word, kind), _all(0, _BYTE, 4 * LANES))
            v.store(pair, v.at(into, ((2 * quad + half) * stride + value) * PAIRED))


@_vectors()
def store_along(v, values, into, row_step):
    """16 float32 of 16 rows, those of a column side by side, as 16 rows, `row_step` elements from one to the next."""
    for row, vector in enumerate(_turned(v, [v.load(v.at(values, i * LANES)) for i in range(LANES)])):
        v.store(vector, v.at(into, row, row_step))


@_vectors()
def store_pairs(v, values, into, step):
    """The same of int16 as 8 vectors of pairs of rows, `step` apart."""
    for half in range(2):
        rows = [v.load(v.at(values, i * LANES + 8 * half), lanes=8) for i in range(LANES)]
        words = _words(v, [v.b.bitcast(row, ir.VectorType(_BYTE, BLOCK)) for row in rows], None)
        for k, word in enumerate(words):
            v.store(word, v.at(into, 4 * half + k, step))


# ------------------------------------------------------------------------------------------------ images: sums of taps


def _multiply_add() -> tuple[str, int]:
    """The processor's instruction for `_products`, as LLVM names it, and its int16; none: "" and all."""
    # LLVM would find it, had its earlier passes not put the additions in another order by then.
    features = config.CPU_FEATURES
    if features is None:
        features = "" if config.CPU_NAME else binding.get_host_cpu_features().flatten()
    known = (("+avx512bw", "llvm.x86.avx512.pmaddw.d.512", 32), ("+avx2", "llvm.x86.avx2.pmadd.wd", 16))
    return next(((name, size) for feature, name, size in known if feature in features.split(",")), ("", PAIRED))


def _products(v: _Code, one: Any, other: Any) -> Any:
    """Products of pairs of int16, added: 16 int32."""
    name, size = _multiply_add()
    if name:
        parts = [[v.pick(list(range(at, at + size)), each) for each in (one, other)] for at in range(0, PAIRED, size)]
        return v.join([v.call(name, ir.VectorType(_INT, size // 2), pair) for pair in parts])
    products = v.b.mul(*(v.b.sext(each, ir.VectorType(_INT, PAIRED)) for each in (one, other)))
    return v.b.add(*(v.pick(list(range(i, PAIRED, 2)), products) for i in range(2)))


def _sums(v: _Code, weights: Any, count: Any, number: int, places: Callable) -> list:
    """`number` vectors of float32: sums of the products of `count` weights and the values at `places(tap)`. Of int32,
    pairs of weights, and int16, pairs of bytes, they are Pillow's fixed point, rounded and cut to a byte. Processors
    multiply two pairs of int16 and add both products in one instruction (SSE2's and AVX2's pmaddwd, with VNNI the sum
    before, too). Weights have more than 16 bits, so there are two sums, of their low and of their high 16; int32 wraps,
    and nothing is lost."""
    if weights.type.pointee == _FLOAT:
        totals = v.sums(number, _all(0.0, _FLOAT))
        with v.loop(count) as tap:
            weight = v.splat(v.b.load(v.at(weights, tap)))
            for total, place in zip(totals, places(tap), strict=True):
                v.add(total, v.times(weight, v.floats(v.load(place))))
        return [v.b.load(total) for total in totals]
    halves = [v.sums(number, _all(start, _INT)) for start in (FIXED_HALF, 0)]
    with v.loop(count) as tap:
        both = v.splats(v.at(weights, tap, 2), 2)
        pairs = [v.load(place, lanes=PAIRED) for place in places(tap)]
        for totals, weight in zip(halves, both, strict=True):
            for total, pair in zip(totals, pairs, strict=True):
                v.add(total, _products(v, pair, v.b.bitcast(weight, ir.VectorType(_SHORT, PAIRED))))
    lows, highs = ([v.b.load(total) for total in totals] for totals in halves)
    return [_fixed_pixel(v, v.b.add(low, v.b.shl(high, _all(16, _INT)))) for low, high in zip(lows, highs, strict=True)]


def _fixed_pixel(v: _Code, total: Any) -> Any:
    """`images.fixed_pixel` of 16 sums that hold the half already."""
    low, high = _all(0, _INT), _all(255, _INT)
    value = v.b.ashr(total, _all(FIXED_BITS, _INT))
    value = v.b.select(v.b.icmp_signed("<", value, low), low, value)
    return v.b.select(v.b.icmp_signed(">", value, high), high, value)


def _store_sums(v: _Code, sums: list, into: Any, step: Any) -> None:
    element = into.type.pointee
    for i, total in enumerate(sums):
        narrow = total.type.element == _INT != element
        v.store(v.b.trunc(total, ir.VectorType(element, LANES)) if narrow else total, v.at(into, i, step))


@_vectors("channels")
def sum_across(v, values, pixel_step, channel_step, weights, count, into, into_step, channels):
    """The horizontal pass of one output column in 16 rows, as `_sums` makes it. `values` points to what `load_across`
    or `load_pairs` gave, at the first channel of the first pixel, or pair of pixels, under the filter. Steps count
    elements: from pixel to pixel, from channel to channel, and from one channel's sums to the next one's."""

    def places(tap):
        first = v.at(values, tap, pixel_step)
        return [v.at(first, channel_step, c) for c in range(channels)]

    _store_sums(v, _sums(v, weights, count, channels, places), into, into_step)


@_vectors()
def sum_along(v, ring, line, slots, first, weights, count, into):
    """The vertical pass of 64 values side by side: rows (or pairs) of a ring from slot `first` on, `line` apart."""

    def places(tap):
        slot = v.b.add(first, tap)
        slot = v.b.select(v.b.icmp_signed(">=", slot, slots), v.b.sub(slot, slots), slot)
        row, size = v.at(ring, slot, line), PAIRED if ring.type.pointee == _SHORT else LANES
        return [v.at(row, part * size) for part in range(WIDE)]

    _store_sums(v, _sums(v, weights, count, WIDE, places), into, LANES)


@_vectors("size", "streams")
def copy_block(v, source, target, size, streams):
    """Copy bytes from address to address; with `streams` past the caches, to a multiple of `size`."""
    store = v.store(v.load(source, _BYTE, size), target)
    if streams:
        store.align = size
        store.set_metadata("nontemporal", v.b.module.add_metadata([_INT(1)]))


@_vectors()
def squeeze_four(v, source, target):
    """The first three of each four of 16 bytes, and four more behind these that the next pixels overwrite."""
    order = [place for place in range(16) if place % 4 < 3] + [3, 7, 11, 15]
    v.store(v.pick(order, v.load(source, _BYTE, 16)), target)


# -------------------------------------------------------------------------------------- crops: two pixels for a column


def _side_by_side(v: _Code, vectors: list) -> Any:
    count = len(vectors)
    pairs = [(vectors[i], vectors[min(i + 1, count - 1)]) for i in range(0, count, 2)]
    joined = [v.join(list(pair)) for pair in pairs]
    return v.pick([i % count * LANES + i // count for i in range(count * LANES)], joined[0], joined[-1])


def _store_columns(v: _Code, values: list, into: Any, at: Any, plane: Any) -> None:
    """Write vectors of 16 columns from column `at` on, a plane for each channel, or with `plane` 0 side by side."""
    with v.b.if_else(v.b.icmp_signed("!=", plane, _LONG(0))) as (apart, together):
        with apart:
            for c, vector in enumerate(values):
                v.store(vector, v.at(into, v.b.add(at, v.b.mul(plane, _LONG(c)))))
        with together:
            v.store(_side_by_side(v, values), v.at(into, at, len(values)))


def _fetched_words(v: _Code, source: Any, places: Any) -> list:
    """The first and the second four bytes that 16 columns fetch."""
    address, halves = v.b.ptrtoint(source, _LONG), []
    # The columns of each four are divided between two vectors, so that both are shuffled within 16 bytes alone.
    for first in (0, 2):
        vector = ir.Constant(ir.VectorType(_LONG, LANES // 2), ir.Undefined)
        for lane in range(LANES // 2):
            place = v.b.load(v.at(places, first + lane // 2 * 4 + lane % 2))
            pointer = v.b.inttoptr(v.b.add(address, place), _LONG.as_pointer())
            vector = v.b.insert_element(vector, v.b.load(pointer, align=1), _INT(lane))
        halves.append(v.b.bitcast(vector, ir.VectorType(_INT, LANES)))
    return [
        v.pick([4 * k + word + i for k in range(4) for i in (0, 2, LANES, LANES + 2)], *halves) for word in range(2)
    ]


def _byte_of(v: _Code, words: list, index: int) -> Any:
    """Byte `index` of those that each column fetched, as float32."""
    word, shift = words[index // 4], index % 4 * 8
    if shift:
        word = v.b.lshr(word, _all(shift, _INT))
    if shift < 24:
        word = v.b.and_(word, _all(255, _INT))
    return v.floats(word)


@_vectors("stored", "back", channels=(1, 3, 4))
def columns_of_bytes(v, source, places, weights, blocks, gain, bias, into, plane, ahead, channels, stored, back):
    """One row of bytes at the result's columns, normalised, 16 at a time, each from the two pixels beside it. Both
    pixels of up to four channels lie within eight bytes, so that one load fetches all that a column needs; vectors of
    64-bit integers are then taken apart by shifts. A gather instruction would fetch every byte by itself. `source` is
    the box's first pixel in the row; `FETCHED` bytes from each of `places` on must be readable. These are, of each of
    16 times `blocks` columns, where its left pixel begins, `weights` the shares of its right one. `plane` is how many
    values lie between channels; 0 puts those of a column side by side. `ahead` leads to the row that is asked for in
    the meantime. There are 1, 3 or 4 channels, `stored` bytes from pixel to pixel, 0 for as many as channels; `back` is
    whether the last of these is the first in a pixel."""
    own, stored = range(channels), stored or channels
    wanted = v.b.add(v.b.ptrtoint(source, _LONG), ahead)
    scales, shifts = (v.splats(values, channels) for values in (gain, bias))
    with v.loop(blocks) as block:
        at = v.b.mul(block, _LONG(LANES))
        for column in FETCHED_AHEAD:
            v.fetch(v.b.add(wanted, v.b.load(v.at(places, v.b.add(at, _LONG(column))))))
        words, weight = _fetched_words(v, source, v.at(places, at)), v.load(v.at(weights, at))
        values = []
        for c, place in enumerate(own[::-1] if back else own):
            mixed = v.mixed(*(_byte_of(v, words, pixel * stored + place) for pixel in range(2)), weight)
            values.append(v.plus(v.times(mixed, scales[c]), shifts[c]))
        _store_columns(v, values, into, at, plane)


def _mixed_rows(v: _Code, above: Any, below: Any, weights: Any, element: Any) -> Any:
    """16 values between two rows, in the type of the result; products are rounded as everywhere else."""
    high, low = v.load(above), v.load(below)
    mixed = v.b.fadd(high, v.b.fmul(weights, v.b.fsub(low, high)))
    if element == _FLOAT:
        return mixed
    # `geometry.saturate_uint8`: after the rounding addition the lowest byte is the number.
    rounded = v.b.fadd(v.clamped(mixed), _all(float(ROUNDING), _FLOAT))
    return v.b.trunc(v.b.bitcast(rounded, ir.VectorType(_INT, LANES)), ir.VectorType(_BYTE, LANES))


@_vectors()
def mix_rows(v, above, below, weight, blocks, out):
    """`above + weight * (below - above)` of `blocks` of 16 values, as float32 or uint8."""
    weights = v.splat(weight)
    with v.loop(blocks) as block:
        rows = (v.at(row, block, LANES) for row in (above, below))
        v.store(_mixed_rows(v, *rows, weights, out.type.pointee), v.at(out, block, LANES))


@_vectors()
def mix_some(v, above, below, weight, count, out):
    """The same of fewer than 16 values; as many are read."""
    mixed = _mixed_rows(v, above, below, v.splat(weight), out.type.pointee)
    lanes = ir.Constant(ir.VectorType(_INT, LANES), list(range(LANES)))
    mask = v.b.icmp_signed("<", lanes, v.splat(v.b.trunc(count, _INT)))
    where = v.b.bitcast(out, mixed.type.as_pointer())
    name = f"llvm.masked.store.v{LANES}{'f32' if out.type.pointee == _FLOAT else 'i8'}.p0"
    v.call(name, ir.VoidType(), [mixed, where, _INT(1), mask])


# ------------------------------------------------------------------------------------------------------- crops: video


def _converted(v: _Code, y: Any, chroma: Any, coefficients: list) -> list:
    """Red, green and blue, 0 to 255, of 16 pixels."""
    (first, second), (yg, rv, r0, gu, gv, g0, bu, b0) = chroma, coefficients
    green = v.plus(v.times(first, gu), v.plus(v.times(second, gv), g0))
    shifts = v.plus(v.times(second, rv), r0), green, v.plus(v.times(first, bu), b0)
    return [v.clamped(v.plus(v.times(y, yg), shift)) for shift in shifts]


def _fetched_values(v: _Code, places: list, values: int, element: Any) -> Any:
    """So many values from each of 16 places on, as whole numbers that begin with the first."""
    word = ir.IntType(values * element.width)
    vector = ir.Constant(ir.VectorType(word, LANES), ir.Undefined)
    for lane, place in enumerate(places):
        found = v.b.load(v.b.bitcast(place, word.as_pointer()), align=1)
        vector = v.b.insert_element(vector, found, _INT(lane))
    return vector


def _first_two(v: _Code, words: Any, element: Any) -> list:
    """The first two values in each of 16 whole numbers, as float32."""
    width, wide = words.type.element.width, ir.VectorType(_INT, LANES)
    if width != _INT.width:
        words = (v.b.zext if width < _INT.width else v.b.trunc)(words, wide)
    mask = _all((1 << element.width) - 1, _INT)
    return [v.floats(v.b.and_(part, mask)) for part in (words, v.b.lshr(words, _all(element.width, _INT)))]


@_vectors()
def columns_of_video(v, luma, chroma, lows, places, weights, blocks, odd, coefficients, gain, bias, into, plane):
    """One row at the result's columns, normalised, as `columns_of_bytes` does it. `luma` and `chroma` are the box's
    first pixel in the row, and the first value of its chroma, of which two and four are read for each column; `lows`
    and `places` each column's left pixel, twice; `odd` is 1 if the box begins with the second pixel of a pair; for
    `coefficients` see `octopus.crop.frame.Coding`."""
    element, factors = luma.type.pointee, v.splats(coefficients, 8)
    scales, shifts = (v.splats(values, 3) for values in (gain, bias))
    first, ones = v.splat(v.b.trunc(odd, _INT)), _all(1, _INT)
    with v.loop(blocks) as block:
        at = v.b.mul(block, _LONG(LANES))
        own = [v.b.load(v.at(places, v.b.add(at, _LONG(i)))) for i in range(LANES)]
        pairs = [v.b.and_(v.b.add(place, odd), _LONG(-2)) for place in own]
        lumas = _fetched_values(v, [v.at(luma, place) for place in own], 2, element)
        left = _fetched_values(v, [v.at(chroma, place) for place in pairs], 4, element)
        column = v.b.add(v.load(v.at(lows, at)), first)
        behind = v.b.icmp_signed("==", v.b.and_(column, ones), ones)  # the right one in the next pair
        right = v.b.select(behind, v.b.lshr(left, _all(2 * element.width, left.type.element)), left)
        weight = v.load(v.at(weights, at))
        low, high = (
            _converted(v, y, _first_two(v, words, element), factors)
            for y, words in zip(_first_two(v, lumas, element), (left, right), strict=True)
        )
        mixed = [v.mixed(*both, weight) for both in zip(low, high, strict=True)]
        values = [v.plus(v.times(*two), shift) for *two, shift in zip(mixed, scales, shifts, strict=True)]
        _store_columns(v, values, into, at, plane)


@_vectors()
def sums_of_video(v, luma, pitch, chroma, chroma_pitch, row, rows, weights, coefficients, into, line):
    """16 neighbouring pixels of `rows` rows from `row` on, weighted and added, the channels of a pixel side by side.
    Each row has two weights; the second sums go `line` values further. `luma` is the first pixel, in an even column, in
    the first of the rows, `chroma` that column in the frame's first row of chroma."""
    factors = v.splats(coefficients, 8)
    totals = [v.sums(3, _all(0.0, _FLOAT)) for _ in range(2)]
    with v.loop(rows) as number:
        y = v.floats(v.load(v.at(luma, number, pitch)))
        both = v.floats(v.load(v.at(chroma, v.b.ashr(v.b.add(row, number), _LONG(1)), chroma_pitch)))
        colours = [v.pick([i // 2 * 2 + part for i in range(LANES)], both) for part in range(2)]
        pixels = _converted(v, y, colours, factors)
        for weight, sums in zip(v.splats(v.at(weights, number, 2), 2), totals, strict=True):
            for vector, total in zip(pixels, sums, strict=True):
                v.add(total, v.times(weight, vector))
    for k, sums in enumerate(totals):
        v.store(_side_by_side(v, [v.b.load(total) for total in sums]), v.at(into, line, k))


# ------------------------------------------------------------------------------------------------- crops: antialiasing


@_vectors("stored", "back", channels=(1, 2, 4), unrolled=(1, 2, 3, 4, 0))
def columns_of_floats(
    v, line, starts, weights, groups, bias, columns, into, line_step, into_step, channels, stored, back, unrolled
):
    """Two rows' columns, each `bias` and weighted neighbouring pixels, whose channels lie side by side in all rows. A
    column begins at one of `starts` in `line`; what lies up to `groups` groups behind is read and must be finite. Its
    weights are `groups * GROUP`, where a group is `GROUP // stored` pixels: those of a pixel's channels side by side, 0
    where there is none. `unrolled` is `groups` again if that is up to 4, else 0; of three channels alone. Of `bias`
    `GROUP` values are read, all but the first `stored` 0; four values more than the columns have are written. The steps
    lead from the first row to the second one. `stored` is channels of a pixel in `line`, 0 for as many; `back` whether
    the first three of these lie backwards."""
    stored = stored or channels
    kind, pixels = ir.VectorType(_FLOAT, GROUP), GROUP // stored
    first, count = v.load(bias, lanes=GROUP), _LONG(unrolled) if unrolled else groups

    def add(sources: list, table: Any, group: Any, totals: list) -> list:
        weight = v.load(v.at(table, group, GROUP), lanes=GROUP)
        values = [v.load(v.at(source, group, pixels * stored), lanes=GROUP) for source in sources]
        return [v.plus(total, v.times(weight, value)) for total, value in zip(totals, values, strict=True)]

    slots = [cgutils.alloca_once(v.b, kind) for _ in range(2)]
    with v.loop(columns) as x:
        place = v.b.load(v.at(starts, x))
        sources = [v.at(line, at) for at in (place, v.b.add(place, line_step))]
        table = v.at(weights, x, v.b.mul(count, _LONG(GROUP)))
        totals = [first, first]
        for group in range(unrolled):
            totals = add(sources, table, _LONG(group), totals)
        if not unrolled:
            for slot in slots:
                v.b.store(first, slot)
            with v.loop(groups) as group:
                sums = add(sources, table, group, [v.b.load(slot) for slot in slots])
                for slot, total in zip(slots, sums, strict=True):
                    v.b.store(total, slot)
            totals = [v.b.load(slot) for slot in slots]
        to = v.b.mul(x, _LONG(channels))
        for total, at in zip(totals, (to, v.b.add(to, into_step)), strict=True):
            by = pixels * stored // 2
            while by >= stored:  # a vector plus itself moved down
                total, by = v.b.fadd(total, v.pick([(i + by) % GROUP for i in range(GROUP)], total)), by // 2
            v.store(v.pick([2, 1, 0, 3] if back else [0, 1, 2, 3], total), v.at(into, at))


@_vectors(channels=(3, 4))
def take_apart(v, row, blocks, into, plane, channels):
    """Put the channels of `blocks` of 16 columns, which lie side by side, `plane` values apart."""
    with v.loop(blocks) as block:
        at = v.b.mul(block, _LONG(LANES))
        values = v.load(v.at(row, at, channels), lanes=channels * LANES)
        for c in range(channels):
            apart = v.pick([c + channels * i for i in range(LANES)], values)
            v.store(apart, v.at(into, v.b.add(at, v.b.mul(plane, _LONG(c)))))


@_vectors("vectors")
def sum_down(v, source, pitch, weights, count, into, vectors):
    """`vectors` times 16 neighbouring values of a frame's `count` rows, `pitch` elements apart, weighted and added."""

    def places(tap):
        row = v.at(source, tap, pitch)
        return [v.at(row, part * LANES) for part in range(vectors)]

    _store_sums(v, _sums(v, weights, count, vectors, places), into, LANES)


# ----------------------------------------------------------------------------------------------- crops: single samples


@_vectors("rows", "taps", "stored", "back", channels=(3, 1, 4))
def sums_of_taps(v, source, pitch, places, down, across, count, gain, bias, into, rows, taps, channels, stored, back):
    """Pixels of a result, normalised, whose channels lie side by side. One load fetches the neighbouring pixels of a
    sample with all their channels, and rows are weighted and added as they are; what is left is a sum over a few lanes.
    A pixel takes `taps` pixels of each of `rows` rows (1, 2 or 4), which begin at one of `places`; `fetched` values
    must be readable from there on, and where `rows` is 1 the next row is asked for in the meantime. `down` has `rows`
    weights for each pixel, `across` `taps`, `LEAST` times each where `rows` is 1; a single one is 1 and not read.
    `LEAST` values more than there are get written. `stored` and `back` as of `columns_of_floats`; there are 1, 3 or 4
    channels."""
    stored = stored or channels
    lanes, order = fetched(taps, stored), [2, 1, 0, 3] if back else [0, 1, 2, 3]
    scale = shift = _all(0.0, _FLOAT, LEAST)
    for c in range(channels):
        scale = v.b.insert_element(scale, v.b.load(v.at(gain, c)), _INT(c))
        shift = v.b.insert_element(shift, v.b.load(v.at(bias, c)), _INT(c))
    with v.loop(count) as x:
        place, total = v.b.load(v.at(places, x)), None
        if rows == 1:
            v.fetch(v.at(source, v.b.add(place, pitch)))
        for row in range(rows):
            at = v.at(source, v.b.add(place, v.b.mul(pitch, _LONG(row))))
            values = v.floats(v.load(at, lanes=lanes))
            if rows > 1:
                values = v.times(v.splat(v.b.load(v.at(v.at(down, x, rows), row)), lanes), values)
            total = values if total is None else v.plus(total, values)
        total = v.pick([(k * stored + c) % lanes for k in range(taps) for c in order], total)
        if taps > 1:
            each = LEAST * taps if rows == 1 else taps
            weights = v.load(v.at(across, x, each), lanes=each)
            if rows > 1:
                weights = v.pick([k for k in range(taps) for _ in range(LEAST)], weights)
            total = v.times(weights, total)
        for half in (taps // 2 >> i for i in range(taps.bit_length() - 1)):
            both = [list(range(start, start + half * LEAST)) for start in (0, half * LEAST)]
            total = v.plus(*(v.pick(part, total) for part in both))
        v.store(v.plus(v.times(total, scale), shift), v.at(into, x, channels))
