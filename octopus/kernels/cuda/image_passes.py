"""The two passes of `image_tiles`, a warp's work: source rows to words of intermediate pixels, and those to results."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import cuda

from octopus.kernels import images
from octopus.kernels.cuda import image_ptx as words
from octopus.kernels.cuda.image_weights import STEP

GROUP = 16  # source rows that become words of intermediate pixels at a time
# The intermediate pixel of the roundings in float is (value + 96) * 128, two bytes: steps of 1/128 level, and room for
# what the filters overshoot (Lanczos: 70 of 255).
OFFSET, FRACTION = 96, 7
LOST = 8  # bits that the second pass leaves out of a product of 22 + FRACTION
SCALE = images.FIXED_BITS + FRACTION - LOST  # fraction of a result


@cuda.jit(device=True)
def _word(address, low, high):
    """The word at an address, of which only bytes from `low` to below `high` are read."""
    result = np.uint32(0)
    for i in range(4):
        place = np.int64(address + i)
        inside = place >= low and place < high
        result |= np.uint32(words.load_byte(place, np.uint32(inside)) << np.uint32(8 * i))
    return result


@cuda.jit(device=True)
def fetch(first, second, low, high, wanted):
    """The three words that hold eight bytes, from each of two addresses on; an image's memory ends where it ends."""
    a, b = np.int64(first & np.int64(-4)), np.int64(second & np.int64(-4))
    safe = min(a, b) >= low and max(a, b) + 12 <= high
    found = words.load_six(a, b, np.uint32(safe and wanted))
    if wanted and not safe:
        found = (
            _word(a, low, high),
            _word(a + 4, low, high),
            _word(a + 8, low, high),
            _word(b, low, high),
            _word(b + 4, low, high),
            _word(b + 8, low, high),
        )
    return found


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
    def row_address(base, row_step, row, last_row):
        return np.int64(base + np.int64(min(row, last_row)) * np.int64(row_step))

    @cuda.jit(device=True)
    def keep(left, right, at):
        """`left`, `right`: sums of rows 4t, 4t + 1 and 4t + 2, 4t + 3; 0, 1 of a column, 2, 3 of that 8 on."""
        if pillow:
            a = words.pack_bytes(left[0], left[1], right[0], right[1])
            b = words.pack_bytes(left[2], left[3], right[2], right[3])
            words.store2(at, (a, b))
        else:
            a, b = words.pack_halves(left[0], left[1]), words.pack_halves(right[0], right[1])
            c, d = words.pack_halves(left[2], left[3]), words.pack_halves(right[2], right[3])
            words.store4(
                at,
                (
                    words.high_bytes(a, b),
                    words.high_bytes(c, d),
                    words.low_bytes(a, b),
                    words.low_bytes(c, d),
                ),
            )

    @cuda.jit(device=True)
    def advance(
        ring, mask, bands, steps, base, row_step, row, last_row, low, high, done, upto, last, first, second, found
    ):  # fmt: skip
        """`row`: the lane's first source row; `last`: the last group of all."""
        zero = (np.int32(0), np.int32(0), np.int32(0), np.int32(0))
        half = (np.int32(begin), np.int32(begin), np.int32(begin), np.int32(begin))
        while done <= upto:
            left2, left1, left0, right2, right1, right0 = zero, zero, half, zero, zero, half
            step, band = np.int32(0), np.uint32(bands)
            while step < steps:
                turn, turn_b = np.uint32(np.uint32(first) << 3), np.uint32(np.uint32(second) << 3)
                a = funnel(found[0], found[1], turn)
                b = funnel(found[1], found[2], turn)
                c = funnel(found[3], found[4], turn_b)
                d = funnel(found[4], found[5], turn_b)
                step = np.int32(step + 1)
                first += np.int64(STEP)
                second += np.int64(STEP)
                if step == steps:
                    next_row = np.int32(row + (done + 1) * GROUP)
                    first = row_address(base, row_step, next_row, last_row)
                    second = row_address(base, row_step, np.int32(next_row + 2), last_row)
                found = fetch(first, second, low, high, step < steps or done < last)
                weights = words.load_weights(band)
                band = np.uint32(band + np.uint32(words.WEIGHT_BYTES))
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
            done = np.int32(done + 1)
        return done, first, second, found

    return advance, row_address


def slot_bytes(pillow: bool) -> int:
    """Of a group in the ring."""
    return 256 if pillow else 512


def second_pass(pillow: bool) -> Callable:
    """A device function: 16 rows of the result of 16 columns, from groups `first` on, as two quads of sums.

    `start`, `start_b`: what the sums of rows g and g + 8 begin with.
    """
    per_slot = slot_bytes(pillow)

    @cuda.jit(device=True)
    def combine(high, middle, low):
        return (
            _sum(high, middle, low, 0),
            _sum(high, middle, low, 1),
            _sum(high, middle, low, 2),
            _sum(high, middle, low, 3),
        )

    @cuda.jit(device=True)
    def of_bytes(ring, mask, band, first, steps, start, start_b):
        zero = (np.int32(0), np.int32(0), np.int32(0), np.int32(0))
        begin = (start, start, start_b, start_b)
        left2, left1, left0, right2, right1, right0 = zero, zero, begin, zero, zero, begin
        while steps > 0:
            a = words.load2(np.uint32(ring + np.uint32(np.int32(first & mask) * per_slot)))
            b = words.load2(np.uint32(ring + np.uint32(np.int32((first + 1) & mask) * per_slot)))
            weights = words.load_weights(band)
            left2 = words.multiply(left2, weights[0], a[0], b[0])
            right2 = words.multiply(right2, weights[0], a[1], b[1])
            left1 = words.multiply(left1, weights[1], a[0], b[0])
            right1 = words.multiply(right1, weights[1], a[1], b[1])
            left0 = words.multiply(left0, weights[2], a[0], b[0])
            right0 = words.multiply(right0, weights[2], a[1], b[1])
            first, steps = np.int32(first + 2), np.int32(steps - 1)
            band = np.uint32(band + np.uint32(words.WEIGHT_BYTES))
        return combine(left2, left1, left0), combine(right2, right1, right0)

    @cuda.jit(device=True)
    def of_halves(ring, mask, band, first, steps, start, start_b):
        """Products of high and low bytes with the digits, by their place; the lowest is left out."""
        zero = (np.int32(0), np.int32(0), np.int32(0), np.int32(0))
        begin = (start, start, start_b, start_b)
        left2, left1, left0, right2, right1, right0 = zero, zero, begin, zero, zero, begin
        while steps > 0:
            a = words.load4(np.uint32(ring + np.uint32(np.int32(first & mask) * per_slot)))
            b = words.load4(np.uint32(ring + np.uint32(np.int32((first + 1) & mask) * per_slot)))
            weights = words.load_weights(band)
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
            first, steps = np.int32(first + 2), np.int32(steps - 1)
            band = np.uint32(band + np.uint32(words.WEIGHT_BYTES))
        return combine(left2, left1, left0), combine(right2, right1, right0)

    return of_bytes if pillow else of_halves
