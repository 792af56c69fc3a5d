"""How the kernels cut an item into blocks; read at launch, so it imports no compiler."""

from functools import lru_cache
from typing import NamedTuple

ROWS = 12  # output rows per block of the plain kernel
SCALAR_CHANNELS = 4  # up to which the plain kernel takes gains and biases as arguments of their own
MAX_COLUMNS = 256  # threads per block of the plain kernel at most, one per output column

# Of the kernel for items that differ: threads of a block, rows of one at most, and values of one in a row of a result.
UNITS, BAND, COLUMNS = 128, 8, 2
WARP = 32
STREAM_BLOCKS = 7  # that a processor has registers for

BLOCKS_PER_SM = 6.5  # with fewer, shorter bands spread the work better than they cost
FEW_BLOCKS_PER_SM = 2  # with fewer still, every row that can go elsewhere should
SHORT_BAND = 4  # rows; each band reads its first two source rows anew
MAX_ITEMS = 65535  # of one launch, the limit of a grid's second side
MOST_BOXES_INSIDE = 240  # among the arguments of a launch, of which every driver takes 4 KiB

IMAGE_ROWS, IMAGE_COLUMNS = 8, 32  # pixels of a tile of the simple kernel for whole images, one per thread
PAD_BLOCKS, PAD_THREADS = 16, 256  # for each image of the kernel that fills up patch rows


class Shape(NamedTuple):
    """What a thread and a block of the streaming kernel do."""

    values: int  # neighbouring ones of an output row per thread, written by one store
    rows: int  # of the result per thread
    threads: int  # per block to aim at


# The fastest of a sweep over values, rows and threads with 28 to 1000 VisDrone boxes and, for float32, 1000 boxes of
# 320 x 320 on an H200; bfloat16 has those of float16. The fewer bytes a row has, the more rows must pay for what a
# band does before its first.
SHAPES = {
    ("float32", True): Shape(2, 7, 256),
    ("float16", True): Shape(4, 14, 128),
    ("bfloat16", True): Shape(4, 14, 128),
    ("uint8", True): Shape(4, 28, 128),
    ("float32", False): Shape(4, 14, 256),
    ("float16", False): Shape(4, 56, 256),
    ("bfloat16", False): Shape(4, 56, 256),
    ("uint8", False): Shape(4, 56, 256),
}
# In fixed point, from frames that can be read in words. 1000 boxes of VisDrone, uint8: 72 to 64 us (NHWC, whose stores
# grow from four bytes to sixteen, 99 to 67); of 320 x 320 155 to 122 (225 to 144), float16 147 to 127.
FIXED_SHAPES: dict[tuple[str, bool], Shape] = {
    **{(dtype, True): SHAPES[dtype, True] for dtype in ("float16", "bfloat16", "uint8")},
    ("uint8", False): Shape(16, 28, 128),
}
# Under a filter (`antialias=True`); a thread makes all channels of its columns.
FILTER_THREADS, FILTER_ROWS, FILTER_COLUMNS = 256, 20, 2


def filter_shape(channels: int, planar: bool) -> Shape:
    return Shape(FILTER_COLUMNS if planar else channels, FILTER_ROWS, FILTER_THREADS)


class Tiling(NamedTuple):
    """Grid and block of a launch, and the rows per thread."""

    grid: tuple[int, int, int]  # bands, items, strips
    block: tuple[int, int, int]  # threads along a row, bands side by side
    rows: int


@lru_cache(maxsize=512)
def tiling(shape: Shape, items: int, height: int, row_values: int, processors: int) -> Tiling:
    """The launch for at most `MAX_ITEMS` items of so many rows, of one channel for NCHW, and values per row."""
    along = -(-row_values // shape.values)
    threads = min(along, shape.threads)
    strips = -(-along // threads)
    if strips > 1:  # as even as whole warps allow
        threads = -(-along // (32 * strips)) * 32
    beside, rows = max(1, shape.threads // threads), min(shape.rows, height)
    # Bands as even as can be, and none without rows: 1000 boxes of VisDrone to 32 x 32 14.6 to 11.2 us (float16 30 to
    # 14, uint8 44 to 14), to 96 x 96 34 as before (31 to 26, 38 to 29), to 224 x 224 as before.
    rows = max(-(-height // (-(-height // (rows * beside)) * beside)), min(SHORT_BAND, rows))
    beside = min(beside, -(-height // rows))

    def blocks() -> int:
        return -(-height // (rows * beside)) * items * strips

    while rows > SHORT_BAND and blocks() < BLOCKS_PER_SM * processors:
        rows = max(rows // 2, SHORT_BAND)
    while rows > 1 and blocks() < FEW_BLOCKS_PER_SM * processors:
        rows //= 2
    return Tiling((-(-height // (rows * beside)), items, strips), (threads, beside, 1), rows)
