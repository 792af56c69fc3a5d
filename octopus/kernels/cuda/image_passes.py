"""The two passes of `image_tiles`, a warp's work: source rows to words of intermediate pixels, and those to results."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from octopus.backends.cuda.language import device
from octopus.kernels import images
from octopus.kernels.cuda import ptx as words
from octopus.kernels.cuda.image_kind import STEP, WEIGHT_BYTES, slot_bytes
from octopus.kernels.cuda.image_queue import turn

WORD_BYTES = 128  # of the ring: a word of each lane
# The intermediate pixel of the roundings in float is (value + 96) * 128, two bytes: steps of 1/128 level, and room for
# what the filters overshoot (Lanczos: 70 of 255).
OFFSET, FRACTION = 96, 7
LOST = 8  # bits that the second pass leaves out of a product of 22 + FRACTION
SCALE = images.FIXED_BITS + FRACTION - LOST  # fraction of a result


@device
def _sum(high, middle, low, i):
    """A sum of products from those of the three digits."""
    return np.int32(np.int32(np.int32(np.int32(high[i] << 8) + middle[i]) << 8) + low[i])


def first_pass(pillow: bool, funnel: Callable) -> Callable:
    """A device function: groups of 16 source rows, up to number `upto`, of 16 columns of the result to the ring.

    Group `q` is kept in slot `q & mask` of the ring: for each lane two words, bytes of 4 rows of a column in the
    left and in the right half of the 16; in the float roundings, two for the high bytes and two for the low ones.
    It takes and returns `done` (groups so far) and `state`, the queue's: see `image_queue`, also for `strip`.
    """
    if pillow:
        begin, shift = images.FIXED_HALF, images.FIXED_BITS
    else:
        shift = images.FIXED_BITS - FRACTION
        begin = (OFFSET << images.FIXED_BITS) + (1 << (shift - 1))

    per_slot = slot_bytes(pillow)

    @device
    def keep(left, right, at):
        """`left`, `right`: sums of rows 4t, 4t + 1 and 4t + 2, 4t + 3; 0, 1 of a column, 2, 3 of that 8 on."""
        if pillow:
            words.store1(at, (words.pack_bytes(left[0], left[1], right[0], right[1]),))
            words.store1(np.uint32(at + WORD_BYTES), (words.pack_bytes(left[2], left[3], right[2], right[3]),))
        else:
            a, b = words.pack_halves(left[0], left[1]), words.pack_halves(right[0], right[1])
            c, d = words.pack_halves(left[2], left[3]), words.pack_halves(right[2], right[3])
            words.store1(at, (words.high_bytes(a, b),))
            words.store1(np.uint32(at + WORD_BYTES), (words.high_bytes(c, d),))
            words.store1(np.uint32(at + 2 * WORD_BYTES), (words.low_bytes(a, b),))
            words.store1(np.uint32(at + 3 * WORD_BYTES), (words.low_bytes(c, d),))

    @device
    def pixels(at, shift):
        """Eight bytes of a row, which begin at any byte of the word at an address."""
        found = words.row3(at)
        return funnel(found[0], found[1], np.uint32(shift)), funnel(found[1], found[2], np.uint32(shift))

    @device
    def multiply(sums, at, strip, weights):
        """One more product: of 16 rows, and of the 32 bytes of each that lie at a place."""
        left2, left1, left0, right2, right1, right0 = sums
        upper, upper_shift, lower, lower_shift = strip[3]
        a, b = pixels(np.uint32(at + np.uint32(upper)), upper_shift)
        c, d = pixels(np.uint32(at + np.uint32(lower)), lower_shift)
        return (
            words.multiply(left2, weights[0], a, b), words.multiply(left1, weights[1], a, b),
            words.multiply(left0, weights[2], a, b), words.multiply(right2, weights[0], c, d),
            words.multiply(right1, weights[1], c, d), words.multiply(right0, weights[2], c, d),
        )  # fmt: skip

    @device
    def advance(ring, mask, bands, weights0, weights1, done, upto, queue, strip, state, steps):
        """`weights0`, `weights1`: of the first two products; the others' are loaded when they are due."""
        zero = (np.int32(0), np.int32(0), np.int32(0), np.int32(0))
        half = (np.int32(begin), np.int32(begin), np.int32(begin), np.int32(begin))
        while done <= upto:
            at, state = turn(queue, strip, state)
            left2, left1, left0, right2, right1, right0 = multiply(
                (zero, zero, half, zero, zero, half), at, strip, weights0
            )
            if steps > 1:
                left2, left1, left0, right2, right1, right0 = multiply(
                    (left2, left1, left0, right2, right1, right0), np.uint32(at + np.uint32(STEP)), strip, weights1
                )
            step, band = words.opaque(np.int32(2)), np.uint32(bands + np.uint32(2 * WEIGHT_BYTES))
            while step < steps:
                if step & 1:
                    at = np.uint32(at + np.uint32(STEP))
                else:
                    at, state = turn(queue, strip, state)
                step = words.opaque(np.int32(step + 1))
                left2, left1, left0, right2, right1, right0 = multiply(
                    (left2, left1, left0, right2, right1, right0), at, strip, words.load_weights(band)
                )
                band = np.uint32(band + np.uint32(WEIGHT_BYTES))
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
        return done, state

    return advance


def second_pass(pillow: bool) -> Callable:
    """A device function: 16 rows of the result of 16 columns, from groups `first` on, as two quads of sums.

    `start`, `start_b`: what the sums of rows g and g + 8 begin with.
    """
    per_slot = slot_bytes(pillow)
    load = words.ring2 if pillow else words.ring4

    @device
    def combine(high, middle, low):
        return (
            _sum(high, middle, low, 0),
            _sum(high, middle, low, 1),
            _sum(high, middle, low, 2),
            _sum(high, middle, low, 3),
        )

    @device
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

    @device
    def second(ring, mask, band, first, steps, start, start_b):
        zero = (np.int32(0), np.int32(0), np.int32(0), np.int32(0))
        begin = (start, start, start_b, start_b)
        a = load(np.uint32(ring + np.uint32(np.int32(first & mask) * per_slot)))
        b = load(np.uint32(ring + np.uint32(np.int32((first + 1) & mask) * per_slot)))
        left2, left1, left0, right2, right1, right0 = products(
            (zero, zero, begin, zero, zero, begin), a, b, words.load_weights(band)
        )
        steps = words.opaque(np.int32(steps - 1))
        while steps > 0:
            first = np.int32(first + 2)
            band = np.uint32(band + np.uint32(WEIGHT_BYTES))
            a = load(np.uint32(ring + np.uint32(np.int32(first & mask) * per_slot)))
            b = load(np.uint32(ring + np.uint32(np.int32((first + 1) & mask) * per_slot)))
            left2, left1, left0, right2, right1, right0 = products(
                (left2, left1, left0, right2, right1, right0), a, b, words.load_weights(band)
            )
            steps = words.opaque(np.int32(steps - 1))
        return combine(left2, left1, left0), combine(right2, right1, right0)

    return second
