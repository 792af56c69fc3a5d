"""How a warp of `image_tiles` gets its source: pieces of 16 rows, copied to shared memory by all lanes together.

A piece is a group of 16 rows, up to 64 bytes (two products) of each, of the warp's strip. Copies are of 16 bytes, from
multiples of 16 on: a row that begins `m` bytes behind one takes up to five of them, or three where the strip is one
product; copy `i` of a piece is made by lane `i % 32`. What is copied but is no part of the strip meets weights of zero,
and so does what a place held before where nothing is copied: beyond the image's memory, beyond the last row. Rows lie
in a piece in the order in which `image_passes` reads them, of two lots of eight rows at a time::

    0  1  4  5  8  9  12  13        2  3  6  7  10  11  14  15        rows of lanes 0 to 3, 4 to 7, ... 28 to 31

Rows are 80 or 48 bytes apart, both odd multiples of 16: the six loads of a product take 8 to 15 turns at the banks, 12
where rows begin anywhere. `m` is the same for rows 16 apart, and so is all that a lane works out of it: it does so once
a channel (`strip_of`).
"""

import numpy as np

from octopus.backends.cuda.language import cuda, device
from octopus.kernels.cuda import ptx
from octopus.kernels.cuda.image_kind import CHUNK, GROUP, NARROW, NARROW_PLACES, PIECE, WIDE

TURN = 32 * CHUNK  # bytes of a copy of all lanes


@device
def row_of(place):
    """The row of a group that lies in one of the 16 places of a piece."""
    return np.int32(4 * ((place & 7) >> 1) + (place & 1) + 2 * (place >> 3))


@device
def _copied(number, wide, start, row_step, need):
    """Where copy `number` of a piece reads, and how many pieces of a group want it; `start`: of the group's row 0."""
    place = np.int32(np.int32(number * (103 if wide else 171)) >> 9)  # number // 5 or // 3
    along = np.int32(CHUNK * np.int32(number - place * np.int32(WIDE if wide else NARROW)))
    row = np.int32(start + np.int32(row_of(place) * row_step))
    left = np.int32(np.int32(row & (CHUNK - 1)) + need - along)
    wanted = np.int32(np.int32(left + PIECE - 1) >> 6) if place < GROUP and left > 0 else np.int32(0)
    return np.int32(np.int32(row & -CHUNK) + along), wanted


@device
def strip_of(lane, memory, start, row_step, need, products, last):
    """What a lane knows of a channel's strip of rows of `need` bytes, the first at offset `start`. An image's memory is
    known by `base`, a multiple of 16, and the offsets `low` and `high` at which it begins and ends. A piece is known by
    `run`, the bytes from group 0 to it; `end` is that of the last piece of group `last`. All of its copies lie in the
    memory where `first <= run <= inner`."""
    wide = products > 1
    pitch = np.int32(CHUNK * (WIDE if wide else NARROW))
    a, a_wanted = _copied(lane, wide, start, row_step, need)
    b, b_wanted = _copied(np.int32(lane + 32), wide, start, row_step, need)
    c, c_wanted = _copied(np.int32(lane + 64), wide, start, row_step, need)
    place, along = np.int32(lane >> 2), np.int32(8 * (lane & 3))
    upper = np.int32(start + np.int32(row_of(place) * row_step))
    lower = np.int32(upper + 2 * row_step)
    at = np.int32(np.int32(place * pitch + along) - CHUNK * lane)  # from where the lane's first copy goes to
    reads = (
        np.int32(at + (upper & 12)), ptx.opaque(np.int32(upper << 3)),
        np.int32(at + 8 * pitch + (lower & 12)), ptx.opaque(np.int32(lower << 3)),
    )  # fmt: skip
    pieces = np.int32(np.int32(products + 1) >> 1)
    first = np.int32(memory[1] + CHUNK - 1 - start)
    end = np.int32(np.int32(np.int32(GROUP * last) * row_step) + PIECE * (pieces - 1))
    inner = np.int64(memory[2]) - np.int64(start) - np.int64(pitch) - (GROUP - 1) * np.int64(row_step)
    inner = np.int32(max(min(inner, np.int64(end)), np.int64(-1)))
    down = np.int32(np.int32(GROUP * row_step) - PIECE * pieces)
    return memory, (a, b, c), (a_wanted, b_wanted, c_wanted), reads, (first, inner, end), (pieces, down)


@device
def _if_inside(memory, offset, wanted):
    return wanted if offset >= memory[1] and offset <= np.int32(memory[2] - CHUNK) else np.int32(0)


@device
def copy_at_edge(at, memory, offset):
    """A copy that is only in part of the image's memory, byte by byte: seldom needed, so small rather than fast."""
    i = np.int32(max(np.int32(memory[1] - offset), np.int32(0)))
    stop = np.int32(min(np.int32(memory[2] - offset), np.int32(CHUNK)))
    if np.int32(stop - i) < CHUNK:
        while i < stop:
            found = ptx.load_byte(memory[0], np.int32(offset + i))
            ptx.store_byte(np.uint32(at + np.uint32(i)), (found,))
            i = ptx.opaque(np.int32(i + 1))


@device
def _copy_some(at, strip, run, piece):
    """A piece of which some copies reach out of the image's memory, or lie behind it."""
    memory, (a, b, c), wanted, _, _, _ = strip
    inside = (
        _if_inside(memory, np.int32(run + a), wanted[0]),
        _if_inside(memory, np.int32(run + b), wanted[1]),
        _if_inside(memory, np.int32(run + c), wanted[2]),
    )
    ptx.copy_piece(at, memory[0], run, piece, (a, b, c), inside)
    turn = np.int32(0)
    while turn < 3:
        if piece < (wanted[2] if turn == 2 else (wanted[1] if turn == 1 else wanted[0])):
            offset = np.int32(run + (c if turn == 2 else (b if turn == 1 else a)))
            copy_at_edge(np.uint32(at + np.uint32(turn * TURN)), memory, offset)
        turn = ptx.opaque(np.int32(turn + 1))


@device
def _ask(at, strip, run, piece):
    """Have a piece copied to `at`, if there is one; the next one's run and number."""
    memory, offsets, wanted, _, (first, inner, end), (pieces, down) = strip
    if first <= run and run <= inner:
        ptx.copy_piece(at, memory[0], run, piece, offsets, wanted)
        ptx.commit()
    else:
        if run <= end:
            _copy_some(at, strip, run, piece)
        ptx.commit()
    run, piece = np.int32(run + PIECE), np.int32(piece + 1)
    if piece == pieces:
        run, piece = np.int32(run + down), np.int32(0)
    return run, piece


@device
def ask_first(queue, strip, row_step, group):
    """Ask for the first pieces, from `group` on. `queue`: where the lane's first copy to the first place goes, the
    bytes from one place to the next, and places."""
    ptx.wait_all()  # where rows are no step apart, pieces beyond the last are asked for
    cuda.syncwarp()  # all lanes are done with what they asked for before
    free, ahead = np.uint32(queue[0]), np.int32(1)
    run, piece = np.int32(np.int32(group * GROUP) * row_step), np.int32(0)
    while ahead < queue[2]:
        run, piece = _ask(free, strip, run, piece)
        free, ahead = np.uint32(free + queue[1]), ptx.opaque(np.int32(ahead + 1))
    return np.uint32(queue[0]), free, run, piece


@device
def turn(queue, strip, state):
    """Where the oldest piece asked for lies, and one more on its way, in the place of the one before."""
    at, free, run, piece = state
    if queue[2] == NARROW_PLACES:
        ptx.wait_narrow()
    else:
        ptx.wait()
    cuda.syncwarp()
    run, piece = _ask(free, strip, run, piece)
    behind = np.uint32(at + queue[1])
    if behind == np.uint32(queue[0] + np.uint32(queue[2]) * queue[1]):
        behind = np.uint32(queue[0])
    return at, (behind, at, run, piece)
