"""The two passes of `image_tiles`, a warp's work: source rows to words of intermediate pixels, and those to results."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import cuda

from octopus.kernels import images
from octopus.kernels.cuda import image_ptx as words
from octopus.kernels.cuda.image_kind import GROUP, STEP, WEIGHT_BYTES, slot_bytes

WORD_BYTES = 128  # of the ring: a word of each lane
# The intermediate pixel of the roundings in float is (value + 96) * 128, two bytes: steps of 1/128 level, and room for
# what the filters overshoot (Lanczos: 70 of 255).
OFFSET, FRACTION = 96, 7
LOST = 8  # bits that the second pass leaves out of a product of 22 + FRACTION
SCALE = images.FIXED_BITS + FRACTION - LOST  # fraction of a result


@cuda.jit(device=True)
def _word(memory, offset):
    """The word at an offset, of which only bytes of the image are read: seldom needed, so small rather than fast."""
    base, low, high = memory
    result, i = np.uint32(0), np.int32(0)
    while i < 4:
        place = np.int32(offset + i)
        found = words.load_byte_if(base, place, np.uint32(place >= low and place < high))
        result |= np.uint32(found << np.uint32(8 * i))
        i = words.opaque(np.int32(i + 1))
    return result


@cuda.jit(device=True)
def _three(memory, at):
    """The words of one of `fetch`'s offsets, of which any may be no part of the image."""
    pair = np.int32(np.int32(at + 4) & -8)
    rest = np.int32(at if at & 4 else at + 8)
    return _word(memory, pair), _word(memory, np.int32(pair + 4)), _word(memory, rest)


@cuda.jit(device=True)
def fetch(memory, first, second, wanted, even):
    """The words that hold eight bytes, from each of two offsets on; `second` is not before `first`.

    If both are multiples of 8 (`even`), it is two words and anything; else the neighbours that lie in eight bytes, and
    the third (`_in_order` puts it into its place): loads of half as many bytes would be looked up one by one.

    An image's memory is known by `base`, a multiple of 8, and the offsets `low` and `high` at which it begins and ends.
    """
    base, low, high = memory
    a, b, asked = _asked(memory, first, second)
    if even:
        return words.load_pairs(base, a, b, np.uint32(asked and wanted))
    return words.load_six(base, a, b, np.uint32(asked and wanted))


@cuda.jit(device=True)
def _asked(memory, first, second):
    """Where `fetch`'s words begin, and whether it asks for them: not if any may be no part of the image."""
    a, b = np.int32(first & -4), np.int32(second & -4)
    return a, b, a >= memory[1] and np.int32(b + 12) <= memory[2]


@cuda.jit(device=True)
def _complete(memory, first, second, found):
    """The words of `fetch`, now that they are used: a look at them any sooner would wait for memory."""
    a, b, asked = _asked(memory, first, second)
    if not asked:
        x, y = _three(memory, a), _three(memory, b)
        found = (x[0], x[1], x[2], y[0], y[1], y[2])
    return found


@cuda.jit(device=True)
def _in_order(offset, x, y, z):
    """The three words as they lie in memory."""
    if offset & 4:
        return z, x, y
    return x, y, z


@cuda.jit(device=True)
def _sum(high, middle, low, i):
    """A sum of products from those of the three digits."""
    return np.int32(np.int32(np.int32(np.int32(high[i] << 8) + middle[i]) << 8) + low[i])


def first_pass(pillow: bool, funnel: Callable) -> Callable:
    """A device function: groups of 16 source rows, up to number `upto`, of 16 columns of the result to the ring.

    Group `q` is kept in slot `q & mask` of the ring: for each lane two words, bytes of 4 rows of a column in the
    left and in the right half of the 16; in the float roundings, two for the high bytes and two for the low ones.
    It takes and returns `done` (groups so far), the addresses of the lane's two rows, and the words on their way.
    """
    if pillow:
        begin, shift = images.FIXED_HALF, images.FIXED_BITS
    else:
        shift = images.FIXED_BITS - FRACTION
        begin = (OFFSET << images.FIXED_BITS) + (1 << (shift - 1))

    per_slot = slot_bytes(pillow)

    @cuda.jit(device=True)
    def row_offset(corner, row_step, row, last_row):
        return np.int32(corner + np.int32(min(row, last_row) * row_step))

    @cuda.jit(device=True)
    def keep(left, right, at):
        """`left`, `right`: sums of rows 4t, 4t + 1 and 4t + 2, 4t + 3; 0, 1 of a column, 2, 3 of that 8 on."""
        if pillow:
            words.store1(at, (words.pack_bytes(left[0], left[1], right[0], right[1]),))
            words.store1(
                np.uint32(at + WORD_BYTES), (words.pack_bytes(left[2], left[3], right[2], right[3]),)
            )
        else:
            a, b = words.pack_halves(left[0], left[1]), words.pack_halves(right[0], right[1])
            c, d = words.pack_halves(left[2], left[3]), words.pack_halves(right[2], right[3])
            words.store1(at, (words.high_bytes(a, b),))
            words.store1(np.uint32(at + WORD_BYTES), (words.high_bytes(c, d),))
            words.store1(np.uint32(at + 2 * WORD_BYTES), (words.low_bytes(a, b),))
            words.store1(np.uint32(at + 3 * WORD_BYTES), (words.low_bytes(c, d),))

    @cuda.jit(device=True)
    def turn(memory, corner, row_step, row, last_row, done, last, first, second, found, ends, even):
        """Pixels of a product from the words that have come, and the words after them on their way."""
        found = _complete(memory, first, second, found)
        if even:
            a, b, c, d = found[0], found[1], found[3], found[4]
        else:
            shift, shift_b = np.uint32(np.uint32(first) << 3), np.uint32(np.uint32(second) << 3)
            x = _in_order(first, found[0], found[1], found[2])
            y = _in_order(second, found[3], found[4], found[5])
            a, b = funnel(x[0], x[1], shift), funnel(x[1], x[2], shift)
            c, d = funnel(y[0], y[1], shift_b), funnel(y[1], y[2], shift_b)
        first, second = np.int32(first + STEP), np.int32(second + STEP)
        if ends:
            next_row = np.int32(row + (done + 1) * GROUP)
            first = row_offset(corner, row_step, next_row, last_row)
            second = row_offset(corner, row_step, np.int32(next_row + 2), last_row)
        found = fetch(memory, first, second, not ends or done < last, even)
        return first, second, a, b, c, d, found

    @cuda.jit(device=True)
    def advance(
        ring, mask, bands, weights0, steps, memory, corner, row_step, row, last_row, done, upto, last,
        first, second, found, even,
    ):  # fmt: skip
        """`row`: the lane's first source row; `last`: the last group of all; `weights0`: of the first product."""
        zero = (np.int32(0), np.int32(0), np.int32(0), np.int32(0))
        half = (np.int32(begin), np.int32(begin), np.int32(begin), np.int32(begin))
        while done <= upto:
            band = np.uint32(bands)
            # The first product apart from the others, which are rarely needed: its sums begin as constants.
            first, second, a, b, c, d, found = turn(
                memory, corner, row_step, row, last_row, done, last, first, second, found,
                np.int32(1) == steps, even,
            )  # fmt: skip
            weights = weights0
            left2 = words.multiply(zero, weights[0], a, b)
            right2 = words.multiply(zero, weights[0], c, d)
            left1 = words.multiply(zero, weights[1], a, b)
            right1 = words.multiply(zero, weights[1], c, d)
            left0 = words.multiply(half, weights[2], a, b)
            right0 = words.multiply(half, weights[2], c, d)
            step = words.opaque(np.int32(1))
            while step < steps:
                step = words.opaque(np.int32(step + 1))
                first, second, a, b, c, d, found = turn(
                    memory, corner, row_step, row, last_row, done, last, first, second, found,
                    step == steps, even,
                )  # fmt: skip
                band = np.uint32(band + np.uint32(WEIGHT_BYTES))
                weights = words.load_weights(band)
                left2 = words.multiply(left2, weights[0], a, b)
                right2 = words.multiply(right2, weights[0], c, d)
                left1 = words.multiply(left1, weights[1], a, b)
                right1 = words.multiply(right1, weights[1], c, d)
                left0 = words.multiply(left0, weights[2], a, b)
                right0 = words.multiply(right0, weights[2], c, d)
            left = (
                np.int32(_sum(left2, left1, left0, 0) >> shift),
                np.int32(_sum(left2, left1, left0, 1) >> shift),
                np.int32(_sum(left2, left1, left0, 2) >> shift),
                np.int32(_sum(left2, left1, left0, 3) >> shift),
            )
            right = (
                np.int32(_sum(right2, right1, right0, 0) >> shift),
                np.int32(_sum(right2, right1, right0, 1) >> shift),
                np.int32(_sum(right2, right1, right0, 2) >> shift),
                np.int32(_sum(right2, right1, right0, 3) >> shift),
            )
            keep(left, right, np.uint32(ring + np.uint32(np.int32(done & mask) * per_slot)))
            done = words.opaque(np.int32(done + 1))
        return done, first, second, found

    return advance, row_offset


def second_pass(pillow: bool) -> Callable:
    """A device function: 16 rows of the result of 16 columns, from groups `first` on, as two quads of sums.

    `start`, `start_b`: what the sums of rows g and g + 8 begin with.
    """
    per_slot = slot_bytes(pillow)
    load = words.ring2 if pillow else words.ring4

    @cuda.jit(device=True)
    def combine(high, middle, low):
        return (
            _sum(high, middle, low, 0),
            _sum(high, middle, low, 1),
            _sum(high, middle, low, 2),
            _sum(high, middle, low, 3),
        )

    @cuda.jit(device=True)
    def products(sums, a, b, weights):
        """Sums of the left 8 columns and of the right ones, highest digits first, and one more product of each."""
        left2, left1, left0, right2, right1, right0 = sums
        if pillow:
            left2 = words.multiply(left2, weights[0], a[0], b[0])
            right2 = words.multiply(right2, weights[0], a[1], b[1])
            left1 = words.multiply(left1, weights[1], a[0], b[0])
            right1 = words.multiply(right1, weights[1], a[1], b[1])
            left0 = words.multiply(left0, weights[2], a[0], b[0])
            right0 = words.multiply(right0, weights[2], a[1], b[1])
        else:
            # High and low bytes times the digits, by their place; the lowest, digit 0 of low bytes, is left out.
            left2 = words.multiply(left2, weights[0], a[0], b[0])
            right2 = words.multiply(right2, weights[0], a[1], b[1])
            left1 = words.multiply(left1, weights[1], a[0], b[0])
            right1 = words.multiply(right1, weights[1], a[1], b[1])
            left0 = words.multiply(left0, weights[2], a[0], b[0])
            right0 = words.multiply(right0, weights[2], a[1], b[1])
            left1 = words.multiply(left1, weights[0], a[2], b[2])
            right1 = words.multiply(right1, weights[0], a[3], b[3])
            left0 = words.multiply(left0, weights[1], a[2], b[2])
            right0 = words.multiply(right0, weights[1], a[3], b[3])
        return left2, left1, left0, right2, right1, right0

    @cuda.jit(device=True)
    def second(ring, mask, band, first, steps, start, start_b):
        zero = (np.int32(0), np.int32(0), np.int32(0), np.int32(0))
        begin = (start, start, start_b, start_b)
        a = load(np.uint32(ring + np.uint32(np.int32(first & mask) * per_slot)))
        b = load(np.uint32(ring + np.uint32(np.int32((first + 1) & mask) * per_slot)))
        sums = products((zero, zero, begin, zero, zero, begin), a, b, words.load_weights(band))
        steps = words.opaque(np.int32(steps - 1))
        while steps > 0:
            first = np.int32(first + 2)
            band = np.uint32(band + np.uint32(WEIGHT_BYTES))
            a = load(np.uint32(ring + np.uint32(np.int32(first & mask) * per_slot)))
            b = load(np.uint32(ring + np.uint32(np.int32((first + 1) & mask) * per_slot)))
            sums = products(sums, a, b, words.load_weights(band))
            steps = words.opaque(np.int32(steps - 1))
        return combine(sums[0], sums[1], sums[2]), combine(sums[3], sums[4], sums[5])

    return second
