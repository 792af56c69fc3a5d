"""The two passes of `image_tiles`, a warp's work: source rows to words of intermediate pixels, and those to results."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import cuda

from octopus.kernels import images
from octopus.kernels.cuda import image_ptx as words
from octopus.kernels.cuda.image_kind import AHEAD, GROUP, QUEUE_BYTES, STEP, WEIGHT_BYTES, slot_bytes

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
    """The words of one of `_ask`'s offsets, of which any may be no part of the image."""
    pair = np.int32(np.int32(at + 4) & -8)
    rest = np.int32(at if at & 4 else at + 8)
    return _word(memory, pair), _word(memory, np.int32(pair + 4)), _word(memory, rest)


@cuda.jit(device=True)
def _inside(memory, first, second):
    """Multiples of 4 before two offsets, and whether all twelve bytes from each of these on are the image's."""
    a, b = np.int32(first & -4), np.int32(second & -4)
    return a, b, a >= memory[1] and np.int32(b + 12) <= memory[2]


@cuda.jit(device=True)
def _ask(place, memory, first, second, wanted, even):
    """Have the words that hold eight bytes from each of two offsets on copied; `second` is not before `first`.

    If both are multiples of 8 (`even`), it is two words; else the neighbours that lie in eight bytes, and the third
    (`_in_order` puts it into its place): loads of half as many bytes would be looked up one by one.

    An image's memory is known by `base`, a multiple of 8, and the offsets `low` and `high` at which it begins and ends.
    """
    a, b, inside = _inside(memory, first, second)
    if even:
        words.copy_pairs(place, memory[0], a, b, np.uint32(inside and wanted))
    else:
        words.copy_six(place, memory[0], a, b, np.uint32(inside and wanted))


@cuda.jit(device=True)
def _take(place, memory, first, second):
    """The words of the oldest `_ask` on its way."""
    words.wait()
    x = words.load2(place)
    y = words.load2(np.uint32(place + 8))
    z = words.load2(np.uint32(place + 16))
    found = (x[0], x[1], z[0], y[0], y[1], z[1])
    a, b, inside = _inside(memory, first, second)
    if not inside:
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
    It takes and returns `done` (groups so far), `taken` (products so far) and the cursor of the product that is asked
    for next. `source` is what a warp knows of a channel: its memory, the offset of the corner, the row step, the lane's
    first row, the last row, the products of a group and whether offsets are multiples of 8.
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
    def ask(queue, number, source, cursor, last):
        """Product `number` of a warp is asked for, if it is one of a group up to `last`; the cursor of the next."""
        memory, steps, even = source[0], source[5], source[6]
        first, second, step, group = cursor
        place = np.uint32(queue + np.uint32(np.int32(number & (AHEAD - 1)) * QUEUE_BYTES))
        _ask(place, memory, first, second, group <= last, even)
        first, second, step = np.int32(first + STEP), np.int32(second + STEP), np.int32(step + 1)
        if step == steps:
            step, group = np.int32(0), np.int32(group + 1)
            first, second = rows_at(source, group)
        return first, second, step, group

    @cuda.jit(device=True)
    def rows_at(source, group):
        """Where a lane's two rows of a group begin."""
        _, corner, row_step, row, last_row, _, _ = source
        row = np.int32(row + group * GROUP)
        first = row_offset(corner, row_step, row, last_row)
        return first, row_offset(corner, row_step, np.int32(row + 2), last_row)

    @cuda.jit(device=True)
    def ask_first(queue, taken, source, group, last):
        """Ask for the first products, from `group` on; `taken`: products of the warp so far."""
        first, second = rows_at(source, group)
        cursor, ahead = (first, second, np.int32(0), np.int32(group)), np.int32(0)
        while ahead < AHEAD - 1:
            cursor = ask(queue, np.int32(taken + ahead), source, cursor, last)
            ahead = words.opaque(np.int32(ahead + 1))
        return cursor

    @cuda.jit(device=True)
    def turn(queue, taken, source, cursor, last, first, second):
        """Pixels of a product, and a later one on its way."""
        even = source[6]
        place = np.uint32(queue + np.uint32(np.int32(taken & (AHEAD - 1)) * QUEUE_BYTES))
        come = _take(place, source[0], first, second)
        if even:
            a, b, c, d = come[0], come[1], come[3], come[4]
        else:
            shift, shift_b = np.uint32(np.uint32(first) << 3), np.uint32(np.uint32(second) << 3)
            x = _in_order(first, come[0], come[1], come[2])
            y = _in_order(second, come[3], come[4], come[5])
            a, b = funnel(x[0], x[1], shift), funnel(x[1], x[2], shift)
            c, d = funnel(y[0], y[1], shift_b), funnel(y[1], y[2], shift_b)
        return ask(queue, np.int32(taken + (AHEAD - 1)), source, cursor, last), a, b, c, d

    @cuda.jit(device=True)
    def advance(ring, mask, bands, weights0, done, upto, last, queue, taken, source, cursor):
        """`last`: the last group of all; `weights0`: of the first product."""
        zero = (np.int32(0), np.int32(0), np.int32(0), np.int32(0))
        half = (np.int32(begin), np.int32(begin), np.int32(begin), np.int32(begin))
        steps = source[5]
        while done <= upto:
            band = np.uint32(bands)
            first, second = rows_at(source, done)
            # The first product apart from the others, which are rarely needed: its sums begin as constants.
            cursor, a, b, c, d = turn(queue, taken, source, cursor, last, first, second)
            weights = weights0
            left2 = words.multiply(zero, weights[0], a, b)
            right2 = words.multiply(zero, weights[0], c, d)
            left1 = words.multiply(zero, weights[1], a, b)
            right1 = words.multiply(zero, weights[1], c, d)
            left0 = words.multiply(half, weights[2], a, b)
            right0 = words.multiply(half, weights[2], c, d)
            step = words.opaque(np.int32(1))
            while step < steps:
                first, second = np.int32(first + STEP), np.int32(second + STEP)
                cursor, a, b, c, d = turn(queue, np.int32(taken + step), source, cursor, last, first, second)
                step = words.opaque(np.int32(step + 1))
                band = np.uint32(band + np.uint32(WEIGHT_BYTES))
                weights = words.load_weights(band)
                left2 = words.multiply(left2, weights[0], a, b)
                right2 = words.multiply(right2, weights[0], c, d)
                left1 = words.multiply(left1, weights[1], a, b)
                right1 = words.multiply(right1, weights[1], c, d)
                left0 = words.multiply(left0, weights[2], a, b)
                right0 = words.multiply(right0, weights[2], c, d)
            taken = np.int32(taken + steps)
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
        return done, taken, cursor

    return advance, ask_first


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
