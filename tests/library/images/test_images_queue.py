"""How a warp gets its source (`kernels.cuda.image_queue`): every lane gets its bytes, from an image alone.

The device functions run as Python, a lane after the other, over memory of which only an image's bytes may be read; a
copy's bytes are in shared memory once it was waited for, and something else before.
"""

from functools import partialmethod
from types import SimpleNamespace

import numpy as np
import pytest
from images_case import plain

pytest.importorskip("numba_cuda")

from octopus.kernels.cuda import image_queue, image_rows
from octopus.kernels.cuda.image_kind import FUSED_PIECE, GROUP, NARROW_PLACES, PIECE, PLACES, STEP, piece_bytes, places

BASE, POISON = 4096, 0xEE
ROWS = ([0, 1, 4, 5, 8, 9, 12, 13], [2, 3, 6, 7, 10, 11, 14, 15])


class Memory:
    """Global memory from `BASE` on, shared memory, and the copies of each lane that are on their way."""

    def __init__(self, cells, low, high):
        self.cells, self.low, self.high = cells, low, high
        self.shared = np.full(PLACES * piece_bytes(2), POISON, np.uint8)
        self.open, self.sent = [], [[] for _ in range(32)]
        self.lane = 0

    def load_byte(self, base, offset):
        assert base == BASE and self.low <= offset < self.high
        return self.cells[offset]

    def store_byte(self, at, values):
        self.shared[at] = values[0]

    def copy_piece(self, at, base, run, piece, offsets, wanted):
        for turn, (offset, pieces) in enumerate(zip(offsets, wanted, strict=True)):
            if piece < pieces:
                first, place = run + offset, int(at) + 512 * turn
                assert first % 16 == place % 16 == 0 and self.low <= first <= self.high - 16
                self.shared[place : place + 16] = POISON
                self.open.append((place, self.cells[first : first + 16]))

    def copy_pieces(self, at, base, run, offsets):
        self.copy_piece(at, base, run, 0, offsets, [offset >= 0 for offset in offsets])

    def commit(self):
        self.sent[self.lane].append(self.open)
        self.open = []

    def wait(self, left=PLACES - 2):
        while len(self.sent[self.lane]) > left:
            for place, found in self.sent[self.lane].pop(0):
                self.shared[place : place + 16] = found

    wait_but_one, wait_narrow = partialmethod(wait, 1), partialmethod(wait, NARROW_PLACES - 2)
    wait_all = partialmethod(wait, 0)


@pytest.fixture
def run_as_python(monkeypatch):
    """The modules' functions without a compiler; the memory that they use is what it is called with."""
    for module in (image_queue, image_rows):
        plain(module, monkeypatch)
        monkeypatch.setattr(module, "cuda", SimpleNamespace(syncwarp=lambda: None))

    def use(memory):
        memory.opaque = lambda value: value
        monkeypatch.setattr(image_queue, "ptx", memory)
        monkeypatch.setattr(image_rows, "ptx", memory)
        return memory

    return use


def warp(memory, need, row_step, start, last):
    """The strips, queues and states of a warp's lanes that have asked for their first pieces."""
    known = (BASE, np.int32(memory.low), np.int32(memory.high))
    products, lanes = -(-need // STEP), []
    for number in range(32):
        memory.lane = number
        lane, first, step, *others = map(np.int32, (number, start, row_step, need, products, last))
        queue = (np.uint32(16 * number), np.uint32(piece_bytes(products)), np.int32(places(products)))
        strip = image_queue.strip_of(lane, known, first, step, *others)
        lanes.append([queue, strip, image_queue.ask_first(queue, strip, step, np.int32(0))])
    return lanes


def turn_of(memory, lanes):
    """The places at which the lanes find their next piece."""
    found = []
    for memory.lane, lane in enumerate(lanes):
        at, lane[2] = image_queue.turn(*lane)
        found.append(int(at))
    return found


@pytest.mark.parametrize("need", [1, 17, 32, 33, 55, 64, 65, 91, 130])
@pytest.mark.parametrize(("height", "row_step"), [(1, 130), (18, 137), (48, 130), (33, 144), (70, 133), (40, 0)])
def test_each_lane_reads_the_bytes_of_its_rows(run_as_python, need, height, row_step):
    """The strip at the beginning of each row, then that at its end, of an image that lies anywhere."""
    rng = np.random.default_rng(need + height)
    low, width = int(rng.integers(16)), row_step or 200
    cells = rng.integers(0, 256, low + (height - 1) * row_step + width, dtype=np.uint8)
    memory = run_as_python(Memory(cells, low, len(cells)))
    last = (height - 1) // GROUP
    for start in (low, low + width - need):
        lanes = warp(memory, need, row_step, start, last)
        for group, piece in np.ndindex(last + 1, -(-need // PIECE)):
            at = turn_of(memory, lanes)
            for lane, half, product in np.ndindex(32, 2, 2):
                begin = piece * PIECE + product * STEP + 8 * (lane % 4)
                row, count = GROUP * group + ROWS[half][lane // 4], min(8, need - begin)
                if row < height and count > 0:
                    reads, shift = lanes[lane][1][3][2 * half : 2 * half + 2]
                    found = at[lane] + int(reads) + STEP * product + (int(shift) >> 3 & 3)
                    wanted = cells[start + row * row_step + begin :][:count]
                    np.testing.assert_array_equal(memory.shared[found : found + count], wanted)


PITCH = {1: 48, 3: 112, 4: 144}  # of a row of a piece, by the bytes of a pixel


@pytest.mark.parametrize("pixel", PITCH)
@pytest.mark.parametrize("count", [1, 9, 20, 32, 33, 50, 70])
@pytest.mark.parametrize(("height", "spare"), [(1, 0), (18, 7), (33, 14), (70, 3)])
def test_each_lane_reads_the_pixels_of_its_rows(run_as_python, pixel, count, height, spare):
    """Of `image_rows`: three planes, or pixels of 3 or 4 bytes; `spare` bytes lie between rows."""
    rng = np.random.default_rng(count + height)
    planes = 3 if pixel == 1 else 1
    low, width = int(rng.integers(16)), 80 * pixel
    row_step = width + spare
    plane = (height * row_step + int(rng.integers(40))) if pixel == 1 else 1
    cells = rng.integers(0, 256, low + (planes - 1) * plane + (height - 1) * row_step + width, dtype=np.uint8)
    memory = run_as_python(Memory(cells, low, len(cells)))
    memory.shared = np.full(2 * FUSED_PIECE, POISON, np.uint8)
    last, products, known = (height - 1) // GROUP, -(-count // 32), (BASE, np.int32(low), np.int32(len(cells)))
    need, sides = count * pixel, np.int32((pixel, products, last, row_step, plane))
    for start in (low, low + width - need):
        lanes = []
        for memory.lane in range(32):
            lane, first, bytes_needed = map(np.int32, (memory.lane, start, need))
            strip, state = image_rows.ask_first(
                lane, np.uint32(16 * lane), known, first, sides[3], sides[4], sides[0], bytes_needed, sides[1], sides[2]
            )
            lanes.append([np.uint32(32 * lane + FUSED_PIECE), strip, state])
        for group, piece in np.ndindex(last + 1, products):
            found = []
            for memory.lane, lane in enumerate(lanes):
                at, lane[2] = image_rows._turn(*lane)
                found.append(int(at))
            for lane, half, number in np.ndindex(32, 2, planes):
                base, lows, _ = lanes[lane][1][2]
                begin = piece * 32 * pixel + 8 * pixel * (lane % 4)
                row, size = GROUP * group + ROWS[half][lane // 4], min(8 * pixel, need - begin)
                if row < height and size > 0:
                    shift = (int(lows >> (4 * half)) & 15) + number * (int(lows) >> 8)
                    at = found[lane] + int(base) + 8 * half * PITCH[pixel] + 16 * number * PITCH[pixel] + shift % 16
                    wanted = cells[start + number * plane + row * row_step + begin :][:size]
                    np.testing.assert_array_equal(memory.shared[at : at + size], wanted)
