"""Which kernel does a ragged batch, and how it cuts the work; read at launch, so it imports no compiler."""

from __future__ import annotations

from typing import NamedTuple

from octopus.kernels.operations import POINTWISE, STENCILS, result_dtype

# Elements on average; below, most packs of a stencil would cross a row's end and be done singly.
SMALL_ITEM = 512
BLOCKS_PER_SM = 4  # with fewer, one pack per thread spreads the work better than it costs
LEVELS = 256  # of a byte
TABLE_PACK = 16  # bytes
TABLE_ITEM = 1024  # bytes that a table must serve on average, or working them out one by one is quicker
FIXED_THREADS = 256  # of a block of `block_metadata`, as published


class Shape(NamedTuple):
    """What a thread and a block do.

    Attributes
    ----------
    values : int
        Neighbouring elements per load and store.
    packs : int
        Of these per thread.
    threads : int
        Of a block.
    """

    values: int
    packs: int
    threads: int

    @property
    def elements(self) -> int:
        """Of a block."""
        return self.values * self.packs * self.threads

    def blocks(self, total: int) -> int:
        """Blocks for a batch of that many elements."""
        return -(-total // self.elements)


class Kind(NamedTuple):
    """What distinguishes the kernels.

    Attributes
    ----------
    operation : str
    strategy : {"lookup", "thread_search", "block_metadata", "block_search"}
    dtype, out_dtype : {"float32", "uint8"}
    offset_dtype : {"int32", "int64"}
    values : {1, 4, 16}
        Elements per load and store, a pack; 16 for bytes that become bytes.
    packs : int
        Loads of a thread before it uses any.
    threads : int
        Of a block; `block_metadata` takes any number.
    """

    operation: str
    strategy: str
    dtype: str
    out_dtype: str
    offset_dtype: str
    values: int
    packs: int
    threads: int

    @property
    def name(self) -> str:
        """Unique among kernels."""
        return "ragged-" + "-".join(str(part) for part in self)


def by_table(operation: str, strategy: str, dtype: str, values: int = TABLE_PACK) -> bool:
    """Whether blocks look results up in a table that they make of each item (`ragged_table`)."""
    return (operation, strategy, dtype, values) == ("gamma", "block_search", "uint8", TABLE_PACK)


def is_bound_by_memory(operation: str, dtype: str) -> bool:
    """Whether an element takes longer to be read and written than to be worked out: of bytes no power does."""
    return operation in POINTWISE and (operation, dtype) != ("gamma", "uint8")


def shape_for(
    operation: str, strategy: str, dtype: str, total: int, items: int, processors: int, aligned: bool = True
) -> Shape:
    """The fastest of a sweep over values, packs and threads, for images of 100, 5000 and 93,000 elements on an H200.

    Parameters
    ----------
    operation, strategy, dtype : str
    total, items : int
        Elements and items of the batch.
    processors : int
        Streaming multiprocessors of the GPU.
    aligned : bool
        Whether source and result lie at multiples of 16 bytes.
    """
    bound_by_memory = is_bound_by_memory(operation, dtype)
    table = by_table(operation, strategy, dtype) and total >= TABLE_ITEM * items
    # Sixteen floats per thread would lie too far apart to be written together.
    values = 16 if table or (bound_by_memory and dtype == result_dtype(operation, dtype) == "uint8") else 4
    if not aligned or (operation in STENCILS and total < SMALL_ITEM * items):
        values = 1
    if strategy == "block_metadata":
        return Shape(values, 4 if bound_by_memory else 1, FIXED_THREADS)
    if strategy == "lookup":
        return Shape(values, 4 if values == 1 else 1, 256)
    full = Shape(values, 4 if bound_by_memory or values == 16 else 8, 128)
    return full if full.blocks(total) >= BLOCKS_PER_SM * processors else Shape(values, 1, 256)
