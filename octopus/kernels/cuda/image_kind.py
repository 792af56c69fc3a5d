"""What distinguishes the compiled kernels of `image_tiles`, and how their shared memory is laid out; without Numba."""

from typing import NamedTuple

MOST_WARPS = 8  # of a block
LINES = 16  # of a band of weights: columns or rows of the result
STEP = 32  # source bytes of one product
GROUP = 16  # source rows that become words of intermediate pixels at a time
DIGIT_BYTES = 512  # of a product's weights: one word quad per lane
WEIGHT_BYTES = 3 * DIGIT_BYTES  # the three digits of them
INFO_BYTES = 16  # of a band of rows: its first group, products, last group
START_BYTES = 4 * LINES  # of a band of rows: what each row's sums begin with
CHUNK = 16  # source bytes of one copy to shared memory
PIECE = 2 * STEP  # source bytes of a row that a warp copies at a time
NARROW, WIDE = 3, 5  # copies of a row, wherever it begins: of a strip of one product, of a piece
PLACES, NARROW_PLACES = 3, 4  # of a warp's pieces: one at work, the others on their way; of narrow ones
# Of `image_rows`: pixels of one product, bytes of its weights' two digits, of a group of source rows of a channel in
# the ring, of a piece (48 rows of 48 bytes, 16 of 112 or of 144), and what is a weight of 1.
PIXELS, TWO_DIGITS, CHANNEL_RING, FUSED_PIECE, FUSED_ONE = 32, 2 * DIGIT_BYTES, 512, 2304, 24576


class ImageKernel(NamedTuple):
    """What distinguishes the compiled kernels; see `ImageSpec`, and `kernels.images` for `filter`. `fused`: a warp
    makes three channels at once, see `image_rows`."""

    channels: int
    filter: int
    antialias: bool
    rounding: str
    dtype: str
    kind: str
    layout: str
    patch: int
    merge: int
    temporal: int
    zeros: int  # behind each row
    fused: bool = False

    @property
    def filled(self) -> int:
        """Elements of a patch row but the zeros behind it."""
        return self.channels * self.temporal * self.patch * self.patch

    @property
    def row_values(self) -> int:
        return self.filled + self.zeros

    @property
    def planar(self) -> bool:
        return self.layout in ("NCHW", "CTPP")

    @property
    def side(self) -> int:
        """Rows, and columns, that a warp makes at a time."""
        return self.patch if self.kind == "rows" else LINES

    @property
    def together(self) -> int:
        """Channels that it makes at a time: neighbours in the result."""
        return 1 if self.planar else self.channels

    @property
    def item(self) -> int:
        return 4 if self.rounding == "none" else 1

    @property
    def stage_bytes(self) -> int:
        """Of a warp, a multiple of 16; the last 32 are for what is no part of its block."""
        return -(-self.side * self.side * self.together * self.item // 16) * 16 + 32

    @property
    def ring_bytes(self) -> int:
        return slot_bytes(self.rounding == "pillow") * self.together


def slot_bytes(pillow: bool) -> int:
    return 256 if pillow else 512


def piece_bytes(steps: int) -> int:
    """Of a piece of a strip of so many products."""
    return GROUP * CHUNK * (NARROW if steps == 1 else WIDE)


def places(steps: int) -> int:
    """How many pieces of a strip of so many products a warp has in shared memory."""
    return NARROW_PLACES if steps == 1 else PLACES


def shared_bytes(kernel: ImageKernel, warps: int, bands: int, steps: int, row_steps: int, slots: int) -> int:
    """Shared memory of a block; the arguments are those of the launch."""
    if kernel.fused:
        weights, per_warp = TWO_DIGITS, 3 * slots * CHANNEL_RING + 2 * FUSED_PIECE
    else:
        weights = WEIGHT_BYTES
        per_warp = slots * kernel.ring_bytes + kernel.stage_bytes + places(steps) * piece_bytes(steps)
    weights *= warps * steps + bands * row_steps
    return weights + bands * (INFO_BYTES + START_BYTES) + warps * per_warp
