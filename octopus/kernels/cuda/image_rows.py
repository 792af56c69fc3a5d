"""Patch rows of three channels: a warp makes all of a patch at once, and its sums go from registers to memory.

What `image_tiles` does channel by channel through a stage in shared memory, a warp does here for three channels side
by side: their products and sums don't wait for each other, and interleaved pixels are copied and read once instead of
three times. Results are whole levels, so weights have two digits of base 256 instead of three, in units of 1/24576
(the largest weight of a filter cut at an image's border is 1.29), and intermediate pixels steps of 1/96 level: in 14
million random pixels, by all filters and scales, no value was more than 0.026 levels off before it was rounded.

A product's lines are in another order than the columns they stand for (`column_place`), so that a lane holds four
neighbours of a row: a patch of 16 columns is written by four lanes, 512 bytes of bfloat16 by two stores of a warp.
`docs/kernels.md` has its steps, measured.
"""

from collections.abc import Callable

import numpy as np

from octopus.backends.cuda.language import address, cuda, device
from octopus.kernels.cuda import ptx
from octopus.kernels.cuda.image_kind import (
    CHANNEL_RING,
    CHUNK,
    FUSED_ONE,
    GROUP,
    INFO_BYTES,
    PIXELS,
    TWO_DIGITS,
    ImageKernel,
)  # fmt: skip
from octopus.kernels.cuda.image_queue import TURN, copy_at_edge, row_of
from octopus.kernels.cuda.image_stores import zeros_store

STEPS = FUSED_ONE // 256  # of an intermediate pixel, per level: two bytes, the higher one signed
BEGIN = 128  # of the first pass' sums, whose last byte is cut off
UNIT = np.float32(1.0 / (FUSED_ONE * STEPS * 256))  # a result's share of 256 levels; exact for halves of levels
LEVELS = np.float32(256.0)
MAGIC, MOST = ptx.MAGIC_VALUE, np.float32(8388608.0 + 255.0)


@device
def column_place(line):
    """Which line of the first product is a column: lane `t` of four gets columns `4 * t` to `4 * t + 3`."""
    return np.int32(8 * ((line >> 1) & 1) + 2 * (line >> 2) + (line & 1))


@device
def _copied(number, start, row_step, plane, pixel, need):
    """Where copy `number` of a piece reads, as in `image_queue`; -1 if no piece wants it."""
    if pixel == 3:  # number // 7, // 3 or // 9
        place, chunks = np.int32(np.int32(number * 147) >> 10), np.int32(7)
    elif pixel == 1:
        place, chunks = np.int32(np.int32(number * 171) >> 9), np.int32(3)
    else:
        place, chunks = np.int32(np.int32(number * 57) >> 9), np.int32(9)
    along = np.int32(CHUNK * np.int32(number - place * chunks))
    at = np.int32(start + np.int32(row_of(np.int32(place & 15)) * row_step) + np.int32(place >> 4) * plane)
    wanted = along < np.int32(np.int32(at & (CHUNK - 1)) + need)
    wanted = wanted and place < np.int32(GROUP if pixel > 1 else 3 * GROUP)
    return np.int32(np.int32(at & -CHUNK) + along) if wanted else np.int32(-1)


@device
def _strip_of(lane, memory, start, row_step, plane, pixel, need, products, last):
    """As of `image_queue`, of rows whose pixels lie `pixel` bytes apart, or if that is 1 of three planes of them."""
    chunks = np.int32((PIXELS * pixel + 2 * CHUNK - 2) >> 4)
    offsets = (
        _copied(lane, start, row_step, plane, pixel, need),
        _copied(np.int32(lane + 32), start, row_step, plane, pixel, need),
        _copied(np.int32(lane + 64), start, row_step, plane, pixel, need),
        _copied(np.int32(lane + 96), start, row_step, plane, pixel, need),
        _copied(np.int32(lane + 128), start, row_step, plane, pixel, need),
    )
    pitch, place = np.int32(CHUNK * chunks), np.int32(lane >> 2)
    upper = np.int32(start + np.int32(row_of(place) * row_step))
    at = np.int32(np.int32(place * pitch + 8 * pixel * (lane & 3)) - CHUNK * lane)
    # The last bits of where the lane's rows begin, and of the step from plane to plane, in one register.
    lows = np.int32((upper & 15) + 16 * (np.int32(upper + 2 * row_step) & 15) + 256 * (plane & 15))
    reach = np.int32(2 * plane) if pixel == 1 else np.int32(0)
    first = np.int32(memory[1] + CHUNK - 1 - start - min(reach, np.int32(0)))
    step = np.int32(PIXELS * pixel)
    end = np.int32(np.int32(np.int32(GROUP * last) * row_step) + step * (products - 1))
    inner = np.int64(memory[2]) - np.int64(start) - np.int64(max(reach, np.int32(0))) - np.int64(pitch)
    inner = np.int32(max(min(inner - (GROUP - 1) * np.int64(row_step), np.int64(end)), np.int64(-1)))
    down = np.int32(np.int32(GROUP * row_step) - step * products)
    return memory, offsets, (at, lows, pixel), (first, inner, end, products, down)


@device
def _if_inside(memory, run, offset):
    at = np.int32(run + offset)
    return offset if at >= memory[1] and at <= np.int32(memory[2] - CHUNK) else np.int32(-1)


@device
def _copy_some(at, strip, run):
    """A piece of which some copies reach out of the image's memory, or lie behind it."""
    memory, (a, b, c, d, e), _, _ = strip
    inside = (
        _if_inside(memory, run, a), _if_inside(memory, run, b), _if_inside(memory, run, c),
        _if_inside(memory, run, d), _if_inside(memory, run, e),
    )  # fmt: skip
    ptx.copy_pieces(at, memory[0], run, inside)
    turn = np.int32(0)
    while turn < 5:
        offset = a
        if turn == 1:
            offset = b
        elif turn == 2:
            offset = c
        elif turn == 3:
            offset = d
        elif turn == 4:
            offset = e
        if offset >= 0:
            copy_at_edge(np.uint32(at + np.uint32(turn * TURN)), memory, np.int32(run + offset))
        turn = ptx.opaque(np.int32(turn + 1))


@device
def _ask(at, strip, run, piece):
    """Have a piece copied to `at`, if there is one; the next one's run and number."""
    memory, offsets, (_, _, pixel), (first, inner, end, products, down) = strip
    if first <= run and run <= inner:
        ptx.copy_pieces(at, memory[0], run, offsets)
    elif run <= end:
        _copy_some(at, strip, run)
    ptx.commit()
    run, piece = np.int32(run + PIXELS * pixel), np.int32(piece + 1)
    if piece == products:
        run, piece = np.int32(run + down), np.int32(0)
    return run, piece


@device
def _turn(places, strip, state):
    """Where the piece asked for lies, and the next one on its way to the other of two places, of this sum."""
    at, run, piece = state
    other = np.uint32(places - at)
    cuda.syncwarp()  # all lanes have read what lies there
    run, piece = _ask(other, strip, run, piece)
    ptx.wait_but_one()
    cuda.syncwarp()
    return at, (other, run, piece)


@device
def _aligned3(at, low):
    """Eight bytes from any byte on: `low` are the last bits of their address in the image."""
    found = ptx.row3(np.uint32(at + np.uint32(low & 12)))
    shift = np.uint32(low << 3)
    return ptx.funnel(found[0], found[1], shift), ptx.funnel(found[1], found[2], shift)


@device
def _planes(at, low, plane):
    return (
        _aligned3(at, low), _aligned3(np.uint32(at + np.uint32(16 * 48)), np.int32((low + plane) & 15)),
        _aligned3(np.uint32(at + np.uint32(32 * 48)), np.int32((low + 2 * plane) & 15)),
    )  # fmt: skip


@device
def _apart(a, b, c):
    """The channels of four pixels that are the bytes of three words."""
    return (
        ptx.permute(ptx.permute(a, b, np.uint32(0x0630)), c, np.uint32(0x5210)),
        ptx.permute(ptx.permute(a, b, np.uint32(0x0741)), c, np.uint32(0x6210)),
        ptx.permute(ptx.permute(a, b, np.uint32(0x0052)), c, np.uint32(0x7410)),
    )  # fmt: skip


@device
def _triples(at, low):
    f, shift = ptx.row7(np.uint32(at + np.uint32(low & 12))), np.uint32(low << 3)
    left = _apart(ptx.funnel(f[0], f[1], shift), ptx.funnel(f[1], f[2], shift), ptx.funnel(f[2], f[3], shift))
    right = _apart(ptx.funnel(f[3], f[4], shift), ptx.funnel(f[4], f[5], shift), ptx.funnel(f[5], f[6], shift))
    return (left[0], right[0]), (left[1], right[1]), (left[2], right[2])


@device
def _first_three(a, b, c, d):
    low, high = ptx.permute(a, b, np.uint32(0x5140)), ptx.permute(c, d, np.uint32(0x5140))
    ab, cd = ptx.permute(a, b, np.uint32(0x0062)), ptx.permute(c, d, np.uint32(0x0062))
    return (
        ptx.permute(low, high, np.uint32(0x5410)), ptx.permute(low, high, np.uint32(0x7632)),
        ptx.permute(ab, cd, np.uint32(0x5410)),
    )  # fmt: skip


@device
def _quads(at, low):
    """Eight pixels of four bytes, of which the last is no channel."""
    f, shift = ptx.row9(np.uint32(at + np.uint32(low & 12))), np.uint32(low << 3)
    left = _first_three(
        ptx.funnel(f[0], f[1], shift), ptx.funnel(f[1], f[2], shift), ptx.funnel(f[2], f[3], shift),
        ptx.funnel(f[3], f[4], shift),
    )  # fmt: skip
    right = _first_three(
        ptx.funnel(f[4], f[5], shift), ptx.funnel(f[5], f[6], shift), ptx.funnel(f[6], f[7], shift),
        ptx.funnel(f[7], f[8], shift),
    )  # fmt: skip
    return (left[0], right[0]), (left[1], right[1]), (left[2], right[2])


@device
def _add(sums, upper, lower, weights):
    """A channel's sums of a product more: of 8 source rows and of those two behind each pair of them."""
    return (
        ptx.multiply(sums[0], weights[0], upper[0], upper[1]), ptx.multiply(sums[1], weights[1], upper[0], upper[1]),
        ptx.multiply(sums[2], weights[0], lower[0], lower[1]), ptx.multiply(sums[3], weights[1], lower[0], lower[1]),
    )  # fmt: skip


@device
def _product(sums, at, strip, weights):
    """One more product of all channels, of the 32 pixels of each of 16 rows that lie at a place."""
    base, lows, pixel = strip[2]
    above, upper, lower = np.uint32(at + np.uint32(base)), np.int32(lows & 15), np.int32((lows >> 4) & 15)
    if pixel == 3:  # rows of 112 bytes, of 48, of 144
        a, b = _triples(above, upper), _triples(np.uint32(above + np.uint32(8 * 112)), lower)
    elif pixel == 1:
        plane = np.int32(lows >> 8)
        a, b = _planes(above, upper, plane), _planes(np.uint32(above + np.uint32(8 * 48)), lower, plane)
    else:
        a, b = _quads(above, upper), _quads(np.uint32(above + np.uint32(8 * 144)), lower)
    return (
        _add(sums[0], a[0], b[0], weights), _add(sums[1], a[1], b[1], weights), _add(sums[2], a[2], b[2], weights)
    )  # fmt: skip


@device
def _both(high, low, i):
    return np.uint32(np.int32(high[i] << 8) + low[i])


@device
def _keep(at, sums):
    """Intermediate pixels of a group, of columns g and g + 8, four rows a word: first their high bytes, then the low. A
    sum's middle bytes are the pixel."""
    a = ptx.permute(_both(sums[0], sums[1], 0), _both(sums[0], sums[1], 1), np.uint32(0x6251))
    b = ptx.permute(_both(sums[2], sums[3], 0), _both(sums[2], sums[3], 1), np.uint32(0x6251))
    c = ptx.permute(_both(sums[0], sums[1], 2), _both(sums[0], sums[1], 3), np.uint32(0x6251))
    d = ptx.permute(_both(sums[2], sums[3], 2), _both(sums[2], sums[3], 3), np.uint32(0x6251))
    ptx.store4(at, (
        ptx.permute(a, b, np.uint32(0x7632)), ptx.permute(c, d, np.uint32(0x7632)),
        ptx.permute(a, b, np.uint32(0x5410)), ptx.permute(c, d, np.uint32(0x5410)),
    ))  # fmt: skip


@device
def _advance(ring, mask, bands, weights, done, upto, places, strip, state, steps):
    """The first pass: groups of 16 source rows, up to number `upto`, to the ring; as `image_passes.first_pass`."""
    zero = (np.int32(0), np.int32(0), np.int32(0), np.int32(0))
    begin = (np.int32(BEGIN), np.int32(BEGIN), np.int32(BEGIN), np.int32(BEGIN))
    one = (zero, begin, zero, begin)
    while done <= upto:
        at, state = _turn(places, strip, state)
        sums = _product((one, one, one), at, strip, weights)
        step, band = ptx.opaque(np.int32(1)), np.uint32(bands + np.uint32(TWO_DIGITS))
        while step < steps:
            at, state = _turn(places, strip, state)
            sums = _product(sums, at, strip, ptx.load_two(band))
            step, band = ptx.opaque(np.int32(step + 1)), np.uint32(band + np.uint32(TWO_DIGITS))
        slot = np.uint32(ring + np.uint32(np.int32(done & mask) * (3 * CHANNEL_RING)))
        _keep(slot, sums[0])
        _keep(np.uint32(slot + np.uint32(CHANNEL_RING)), sums[1])
        _keep(np.uint32(slot + np.uint32(2 * CHANNEL_RING)), sums[2])
        done = ptx.opaque(np.int32(done + 1))
    return done, state


@device
def _multiply(sums, ring, mask, first, band):
    """One more product of the second pass, of the left four lanes' columns and of the right: digits, highest first."""
    left2, left1, left0, right2, right1, right0 = sums
    a = ptx.load4(np.uint32(ring + np.uint32(np.int32(first & mask) * (3 * CHANNEL_RING))))
    b = ptx.load4(np.uint32(ring + np.uint32(np.int32((first + 1) & mask) * (3 * CHANNEL_RING))))
    weights = ptx.load_two(band)
    left2 = ptx.multiply_signed(left2, weights[0], a[0], b[0])
    right2 = ptx.multiply_signed(right2, weights[0], a[1], b[1])
    left1 = ptx.multiply_signed(left1, weights[1], a[0], b[0])
    right1 = ptx.multiply_signed(right1, weights[1], a[1], b[1])
    left0 = ptx.multiply(left0, weights[1], a[2], b[2])
    right0 = ptx.multiply(right0, weights[1], a[3], b[3])
    left1 = ptx.multiply(left1, weights[0], a[2], b[2])
    right1 = ptx.multiply(right1, weights[0], a[3], b[3])
    return left2, left1, left0, right2, right1, right0


@device
def _level(high, middle, low, i):
    """A value in whole levels, rounded half to even, and `MAGIC` more."""
    total = np.int32(np.int32(np.int32(np.int32(high[i] << 8) + middle[i]) << 8) + low[i])
    share = ptx.saturated(np.float32(total), UNIT, np.float32(0.0))
    return min(share * LEVELS + MAGIC, MOST)


@device
def ask_first(lane, at, memory, start, row_step, plane, pixel, need, products, last):
    """A warp's strip, and its queue when the first piece is on its way to an address."""
    strip = _strip_of(lane, memory, start, row_step, plane, pixel, need, products, last)
    run, piece = _ask(at, strip, np.int32(0), np.int32(0))
    return strip, (at, run, piece)


def fused(kernel: ImageKernel) -> Callable:
    """A device function: a warp's work of `image_tiles`, once its block's weights are there."""
    side, copies, row_values = kernel.side, kernel.temporal, kernel.row_values
    area, merge, zeros, put_zeros = side * side, kernel.merge, kernel.zeros, zeros_store(kernel)
    count = 2 if side % 4 else 4
    fits, bytes4 = row_values % count == 0, kernel.dtype in ("uint8", "int8") and count == 4 and copies == 1
    flip = np.uint32(0x80808080 if kernel.dtype == "int8" else 0)
    size = {"float32": 4, "float16": 2, "bfloat16": 2}.get(kernel.dtype, 1)
    store1, store2, store4 = (ptx.streaming_store(kernel.dtype, number, True, True) for number in (1, 2, 4))

    @device
    def put(out, at, values, columns):
        """Up to four neighbours of a row, of each copy, one by one."""
        for copy in range(copies):
            to = at + np.int64(copy * area)
            if columns >= 2:
                store1(out, to, (values[0],))
                store1(out, to + 1, (values[1],))
            if columns >= 4:
                store1(out, to + 2, (values[2],))
                store1(out, to + 3, (values[3],))

    @device
    def put_whole(out, at, values, columns):
        """The same at multiples of four, or two, elements."""
        for copy in range(copies):
            to = at + np.int64(copy * area)
            if count == 4:
                if columns >= 4:
                    store4(out, to, values)
            else:
                if columns >= 2:
                    store2(out, to, (values[0], values[1]))
                if columns >= 4:
                    store2(out, to + 2, (values[2], values[3]))

    @device
    def levels(sums, first):
        return (
            _level(sums[0], sums[1], sums[2], first), _level(sums[0], sums[1], sums[2], first + 1),
            _level(sums[3], sums[4], sums[5], first), _level(sums[3], sums[4], sums[5], first + 1),
        )  # fmt: skip

    @device
    def normal(found, gain, bias):
        return (
            (found[0] - MAGIC) * gain + bias, (found[1] - MAGIC) * gain + bias, (found[2] - MAGIC) * gain + bias,
            (found[3] - MAGIC) * gain + bias,
        )  # fmt: skip

    @device
    def finish(out, to, sums, gain, bias, inside, inside_b, whole):
        a, b, below = levels(sums, 0), levels(sums, 2), to + np.int64(8 * side)
        if bytes4 and whole and gain == np.float32(1.0) and bias == np.float32(0.0):
            if inside >= 4:
                ptx.store_word(out, to, (ptx.pack(a[0], a[1], a[2], a[3]) ^ flip,))
            if inside_b >= 4:
                ptx.store_word(out, below, (ptx.pack(b[0], b[1], b[2], b[3]) ^ flip,))
            return
        a, b = normal(a, gain, bias), normal(b, gain, bias)
        if whole:
            put_whole(out, to, a, inside)
            put_whole(out, below, b, inside_b)
        else:
            put(out, to, a, inside)
            put(out, below, b, inside_b)

    @device
    def second(ring, mask, group, weights, products):
        """The second pass of more than one product."""
        zero = (np.int32(0), np.int32(0), np.int32(0), np.int32(0))
        sums = _multiply((zero, zero, zero, zero, zero, zero), ring, mask, group, weights)
        while products > 1:
            group, weights = np.int32(group + 2), np.uint32(weights + np.uint32(TWO_DIGITS))
            sums = _multiply(sums, ring, mask, group, weights)
            products = ptx.opaque(np.int32(products - 1))
        return sums

    @device
    def make(
        out, base_out, gains, biases, lane, ring, slots, bands_x, row_bands, row_band_bytes, infos, places, strip,
        state, products_x, band_count, y0, x, columns,
    ):  # fmt: skip
        zero = (np.int32(0), np.int32(0), np.int32(0), np.int32(0))
        mask, done = np.int32(slots - 1), np.int32(0)
        weights = ptx.load_two(bands_x)
        grid_width = ptx.quotient(columns, np.int32(side * merge))
        px, py = ptx.quotient(x, np.int32(side)), np.uint32(ptx.quotient(y0, np.int32(side)))
        column = np.int32(np.uint32(px) // np.uint32(merge) * (merge * merge))
        first_row = base_out + np.int64(np.int32(column + np.uint32(px) % np.uint32(merge)))
        whole = fits and (address(out) & (count * size - 1)) == 0
        g, across = np.int32(lane >> 2), np.int32(4 * (lane & 3))
        inside, inside_b = np.int32(0), np.int32(0)  # columns of the lane's that are the patch's, in both its rows
        if g < side:
            inside = np.int32(side - across)
        if g + 8 < side:
            inside_b = np.int32(side - across)
        lane_at = np.int64(np.int32(g * side + across))
        band = np.int32(0)
        while band < band_count:
            info = ptx.load4(np.uint32(infos + np.uint32(band * INFO_BYTES)))
            group, products, upto = np.int32(info[0]), np.int32(info[1]), np.int32(info[2])
            row_band = np.uint32(row_bands + np.uint32(band * row_band_bytes) + np.uint32(16 * lane))
            done, state = _advance(ring, mask, bands_x, weights, done, upto, places, strip, state, products_x)
            number = np.int32(np.uint32(py // np.uint32(merge)) * np.uint32(grid_width * (merge * merge)))
            number = np.int32(number + np.int32(py % np.uint32(merge)) * merge)
            to = (first_row + np.int64(number)) * np.int64(row_values) + lane_at
            b_ring, c_ring = np.uint32(ring + np.uint32(CHANNEL_RING)), np.uint32(ring + np.uint32(2 * CHANNEL_RING))
            middle = np.int64(copies * area)
            if products == 1:  # without a loop the compiler mixes the channels' work
                a = _multiply((zero, zero, zero, zero, zero, zero), ring, mask, group, row_band)
                b = _multiply((zero, zero, zero, zero, zero, zero), b_ring, mask, group, row_band)
                finish(out, to, a, gains[0], biases[0], inside, inside_b, whole)
                c = _multiply((zero, zero, zero, zero, zero, zero), c_ring, mask, group, row_band)
                finish(out, to + middle, b, gains[1], biases[1], inside, inside_b, whole)
                finish(out, to + 2 * middle, c, gains[2], biases[2], inside, inside_b, whole)
            else:
                a = second(ring, mask, group, row_band, products)
                finish(out, to, a, gains[0], biases[0], inside, inside_b, whole)
                b = second(b_ring, mask, group, row_band, products)
                finish(out, to + middle, b, gains[1], biases[1], inside, inside_b, whole)
                c = second(c_ring, mask, group, row_band, products)
                finish(out, to + 2 * middle, c, gains[2], biases[2], inside, inside_b, whole)
            if zeros:
                put_zeros(out, to - lane_at + np.int64(3 * copies * area), lane)
            py = np.uint32(py + np.uint32(1))
            band = ptx.opaque(np.int32(band + 1))

    return make
