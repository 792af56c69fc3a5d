"""Operations on ragged batches on the CPU: which kernel, and its arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus.arrays.views import ArrayView, dtype_name
from octopus.backends.cpu import compile, threads
from octopus.kernels.operations import OPERATIONS, STENCILS
from octopus.ragged.blockmap import BlockMap

PACK = 4  # elements for which a thread searches once in `thread_search`
PART = 1 << 14  # elements of a part, of which a thread takes one after the other


def run(
    operation: str, source: ArrayView, out: ArrayView, made: BlockMap, parameters: Sequence[Any],
    sides: dict[str, NDArray[np.int32]], *, pack: int = PACK,
) -> None:  # fmt: skip
    """Do an operation on checked arrays (T,) of the host; `sides` are "widths" and "heights" of a stencil's images."""
    dtypes = (dtype_name(source.dtype), dtype_name(out.dtype), dtype_name(made.offsets.dtype))
    kernel = load(made.strategy, operation in STENCILS, *dtypes)
    total, items = source.shape[0], len(made.offsets) - 1
    blocks, size = -(-total // PART), PART
    if made.starts is not None:
        blocks, size = len(made.starts), made.threshold
    zeros = np.zeros(items, np.float32)  # operations read both parameters, whether they use them or not
    first, second = (*parameters, zeros, zeros)[:2]
    arrays = (first, second, sides.get("widths"), sides.get("heights"), made.owner, made.starts)
    threads.launch(
        kernel, blocks, OPERATIONS.index(operation), source.pointer, out.pointer, total, made.offsets.ctypes.data,
        items, *(0 if array is None else array.ctypes.data for array in arrays), size, pack,
        threads=None if total > PART else 1,
    )  # fmt: skip


def load(strategy: str, stencil: bool, dtype: str, out_dtype: str, offset_dtype: str) -> Callable[[int], Any]:
    """The compiled kernel of a strategy, for stencils or for the other operations."""

    def build() -> Callable[..., None]:
        from octopus.kernels.cpu import ragged

        return ragged.build(strategy, stencil, dtype, out_dtype, offset_dtype)

    return compile.load(f"ragged-{'stencil-' * stencil}{strategy}-{dtype}-{out_dtype}-{offset_dtype}", build)
