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
    operation: str,
    source: ArrayView,
    out: ArrayView,
    made: BlockMap,
    parameters: Sequence[NDArray[np.float32]],
    sides: dict[str, NDArray[np.int32]],
    *,
    pack: int = PACK,
) -> None:
    """Do an operation on checked arrays.

    Parameters
    ----------
    operation : str
    source, out : ArrayView, (T,)
        Elements and results, contiguous and on the host.
    made : BlockMap
    parameters : sequence of ndarray (N,)
        As many as the operation has.
    sides : dict
        "widths" and "heights" of images, for operations that read neighbours.
    pack : int
        Elements for which `thread_search` searches once.
    """
    dtypes = (dtype_name(source.dtype), dtype_name(out.dtype), dtype_name(made.offsets.dtype))
    kernel = load(made.strategy, operation in STENCILS, *dtypes)
    total, items = source.shape[0], len(made.offsets) - 1
    blocks, size = -(-total // PART), PART
    if made.starts is not None:
        blocks, size = len(made.starts), made.threshold
    arrays = ((*parameters, None, None)[:2], (sides.get("widths"), sides.get("heights"), made.owner, made.starts))
    first, second, *others = (0 if array is None else array.ctypes.data for group in arrays for array in group)
    # Operations read both parameters, whether they use them or not.
    zeros = np.zeros(0 if second else items, np.float32)
    first, second = first or zeros.ctypes.data, second or zeros.ctypes.data
    threads.launch(
        kernel, blocks, OPERATIONS.index(operation), source.pointer, out.pointer, total, made.offsets.ctypes.data,
        items, first, second, *others, size, pack, threads=None if total > PART else 1,
    )  # fmt: skip


def load(strategy: str, stencil: bool, dtype: str, out_dtype: str, offset_dtype: str) -> Callable[[int], Any]:
    """The compiled kernel of a strategy, for stencils or for the other operations."""

    def build() -> Callable[..., None]:
        from octopus.kernels.cpu import ragged

        return ragged.build(strategy, stencil, dtype, out_dtype, offset_dtype)

    return compile.load(f"ragged-{'stencil-' * stencil}{strategy}-{dtype}-{out_dtype}-{offset_dtype}", build)
