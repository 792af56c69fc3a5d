"""The two passes of `image_tiles`, a warp's work: source rows to words of intermediate pixels, and those to results."""

from collections.abc import Callable

import numpy as np

from octopus.backends.cuda.language import device
from octopus.kernels import images
from octopus.kernels.cuda import ptx
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


@device
def _sums(high, middle, low, shift):
    return (
        np.int32(_sum(high, middle, low, 0) >> shift), np.int32(_sum(high, middle, low, 1) >> shift),
        np.int32(_sum(high, middle, low, 2) >> shift), np.int32(_sum(high, middle, low, 3) >> shift),
    )  # fmt: skip


def first_pass(pillow: bool) -> Callable:
    """A device function: groups of 16 source rows, up to number `upto`, of 16 columns of the result to the ring. Group
    `q` is kept in slot `q & mask` of the ring: for each lane two words, bytes of 4 rows of a column in the left and in
    the right half of the 16; in the float roundings, two for the high bytes and two for the low ones. It takes and
    returns `done` (groups so far) and `state`, the queue's: see `image_queue`, also for `strip`."""
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
            ptx.store1(at, (ptx.pack_bytes(left[0], left[1], right[0], right[1]),))
            ptx.store1(np.uint32(at + WORD_BYTES), (ptx.pack_bytes(left[2], left[3], right[2], right[3]),))
        else:
            a, b = ptx.pack_halves(left[0], left[1]), ptx.pack_halves(right[0], right[1])
            c, d = ptx.pack_halves(left[2], left[3]), ptx.pack_halves(right[2], right[3])
            ptx.store1(at, (ptx.high_bytes(a, b),))
            ptx.store1(np.uint32(at + WORD_BYTES), (ptx.high_bytes(c, d),))
            ptx.store1(np.uint32(at + 2 * WORD_BYTES), (ptx.low_bytes(a, b),))
            ptx.store1(np.uint32(at + 3 * WORD_BYTES), (ptx.low_bytes(c, d),))

    @device
    def pixels(at, shift):
        """Eight bytes of a row, which begin at any byte of the word at an address."""
        found = ptx.row3(at)
        return ptx.funnel(found[0], found[1], np.uint32(shift)), ptx.funnel(found[1], found[2], np.uint32(shift))

    @device
    def multiply(sums, at, strip, weights):
        """One more product: of 16 rows, and of the 32 bytes of each that lie at a place."""
        left2, left1, left0, right2, right1, right0 = sums
        upper, upper_shift, lower, lower_shift = strip[3]
        a, b = pixels(np.uint32(at + np.uint32(upper)), upper_shift)
        c, d = pixels(np.uint32(at + np.uint32(lower)), lower_shift)
        return (
            ptx.multiply(left2, weights[0], a, b), ptx.multiply(left1, weights[1], a, b),
            ptx.multiply(left0, weights[2], a, b), ptx.multiply(right2, weights[0], c, d),
            ptx.multiply(right1, weights[1], c, d), ptx.multiply(right0, weights[2], c, d),
        )  # fmt: skip

    @device
    def advance(ring, mask, bands, weights0, weights1, done, upto, queue, strip, state, steps):
        """`weights0`, `weights1`: of the first two products; the others' are loaded when they are due."""
        zero = (np.int32(0), np.int32(0), np.int32(0), np.int32(0))
        half = (np.int32(begin), np.int32(begin), np.int32(begin), np.int32(begin))
        while done <= upto:
            at, state = turn(queue, strip, state)
            l2, l1, l0, r2, r1, r0 = multiply((zero, zero, half, zero, zero, half), at, strip, weights0)
            if steps > 1:
                behind = np.uint32(at + np.uint32(STEP))
                l2, l1, l0, r2, r1, r0 = multiply((l2, l1, l0, r2, r1, r0), behind, strip, weights1)
            step, band = ptx.opaque(np.int32(2)), np.uint32(bands + np.uint32(2 * WEIGHT_BYTES))
            while step < steps:
                if step & 1:
                    at = np.uint32(at + np.uint32(STEP))
                else:
                    at, state = turn(queue, strip, state)
                step = ptx.opaque(np.int32(step + 1))
                l2, l1, l0, r2, r1, r0 = multiply((l2, l1, l0, r2, r1, r0), at, strip, ptx.load_weights(band))
                band = np.uint32(band + np.uint32(WEIGHT_BYTES))
            left, right = _sums(l2, l1, l0, shift), _sums(r2, r1, r0, shift)
            keep(left, right, np.uint32(ring + np.uint32(np.int32(done & mask) * per_slot)))
            done = ptx.opaque(np.int32(done + 1))
        return done, state

    return advance


def second_pass(pillow: bool) -> Callable:
    """A device function: 16 rows of the result of 16 columns, from groups `first` on, as two quads of sums. `start`,
    `start_b`: what the sums of rows g and g + 8 begin with."""
    per_slot = slot_bytes(pillow)
    load = ptx.ring2 if pillow else ptx.ring4

    @device
    def multiply(sums, ring, mask, first, band):
        """Sums of the left 8 columns and of the right ones, highest digits first, and one more product of each."""
        left2, left1, left0, right2, right1, right0 = sums
        a = load(np.uint32(ring + np.uint32(np.int32(first & mask) * per_slot)))
        b = load(np.uint32(ring + np.uint32(np.int32((first + 1) & mask) * per_slot)))
        weights = ptx.load_weights(band)
        left2 = ptx.multiply(left2, weights[0], a[0], b[0])
        right2 = ptx.multiply(right2, weights[0], a[1], b[1])
        left1 = ptx.multiply(left1, weights[1], a[0], b[0])
        right1 = ptx.multiply(right1, weights[1], a[1], b[1])
        left0 = ptx.multiply(left0, weights[2], a[0], b[0])
        right0 = ptx.multiply(right0, weights[2], a[1], b[1])
        if not pillow:  # high bytes times the digits, above; low bytes times digits, but for the lowest
            left1 = ptx.multiply(left1, weights[0], a[2], b[2])
            right1 = ptx.multiply(right1, weights[0], a[3], b[3])
            left0 = ptx.multiply(left0, weights[1], a[2], b[2])
            right0 = ptx.multiply(right0, weights[1], a[3], b[3])
        return left2, left1, left0, right2, right1, right0

    @device
    def second(ring, mask, band, first, steps, start, start_b):
        zero = (np.int32(0), np.int32(0), np.int32(0), np.int32(0))
        begin = (start, start, start_b, start_b)
        l2, l1, l0, r2, r1, r0 = multiply((zero, zero, begin, zero, zero, begin), ring, mask, first, band)
        steps = ptx.opaque(np.int32(steps - 1))
        while steps > 0:
            first = np.int32(first + 2)
            band = np.uint32(band + np.uint32(WEIGHT_BYTES))
            l2, l1, l0, r2, r1, r0 = multiply((l2, l1, l0, r2, r1, r0), ring, mask, first, band)
            steps = ptx.opaque(np.int32(steps - 1))
        return _sums(l2, l1, l0, 0), _sums(r2, r1, r0, 0)

    return second
