"""Which kernel does a ragged batch, and how it cuts the work; read at launch, so it imports no compiler."""

from typing import NamedTuple

from octopus.kernels.operations import POINTWISE, result_dtype

# Elements on average; below, most packs of a stencil would cross a row's end and be done singly.
SMALL_ITEM = 512
BLOCKS_PER_SM = 4  # with fewer, one pack per thread spreads the work better than it costs
FIXED_THREADS = 256  # of a block of `block_metadata`, as published


class Shape(NamedTuple):
    """Neighbouring elements per load and store, of these per thread, and threads of a block."""

    values: int
    packs: int
    threads: int

    def blocks(self, total: int) -> int:
        return -(-total // (self.values * self.packs * self.threads))


class Kind(NamedTuple):
    """What distinguishes the kernels: the operation, its strategy and dtypes, and what a thread and a block do."""

    operation: str
    strategy: str
    dtype: str
    out_dtype: str
    offset_dtype: str
    values: int  # 1, 4, or 16 for bytes that become bytes
    packs: int  # loads of a thread before it uses any
    threads: int  # `block_metadata` takes any number

    @property
    def name(self) -> str:
        return "ragged-" + "-".join(str(part) for part in self)


def shape_for(
    operation: str, strategy: str, dtype: str, total: int, items: int, processors: int, aligned: bool = True
) -> Shape:
    """The fastest of a sweep over values, packs and threads, for images of 100, 5000 and 93,000 elements on an H200.
    `aligned` says whether source and result lie at multiples of 16 bytes."""
    pointwise = operation in POINTWISE
    # Sixteen floats per thread would lie too far apart to be written together.
    values = 16 if pointwise and dtype == result_dtype(operation, dtype) == "uint8" else 4
    if not aligned or (not pointwise and total < SMALL_ITEM * items):
        values = 1
    if strategy == "block_metadata":
        return Shape(values, 4 if pointwise else 1, FIXED_THREADS)
    if strategy == "lookup":
        return Shape(values, 4 if values == 1 else 1, 256)
    full = Shape(values, 4 if pointwise else 8, 128)
    return full if full.blocks(total) >= BLOCKS_PER_SM * processors else Shape(values, 1, 256)
