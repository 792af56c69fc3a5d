"""Operations on ragged batches on a CUDA device: what is uploaded, which kernel, and its launch."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from octopus.arrays.launch import Cuda, PreparedLaunch, launch
from octopus.backends.cuda.compile import function_of
from octopus.backends.cuda.device import compute_capability, current
from octopus.backends.cuda.memory import DeviceArray, copy
from octopus.kernels.arguments import RAGGED
from octopus.kernels.cuda.ragged_tiles import Kind, Shape, shape_for

ALIGNMENT = 16
STAGED_BYTES = 1 << 20  # up to here a copy on the host costs less than a second transfer
POINTERS = ("offsets", "first", "second", "widths", "heights", "owner", "starts")


class CudaRagged:
    """Launches one operation on batches of one layout, by the kernel of `ragged_tiles.shape_for` or of a given shape.

    `aligned` says whether source and result lie at multiples of 16 bytes; `blocks` and `threshold` are those of
    `block_metadata`.
    """

    def __init__(
        self, operation: str, strategy: str, dtype: str, out_dtype: str, offset_dtype: str, total: int, items: int,
        *, aligned: bool = True, blocks: int = 0, threshold: int = 0, shape: Shape | None = None,
    ) -> None:  # fmt: skip
        processors = current().properties.multiprocessor_count
        self.shape = shape or shape_for(operation, strategy, dtype, total, items, processors, aligned)
        self._blocks = blocks if strategy == "block_metadata" else self.shape.blocks(total)
        kind = Kind(operation, strategy, dtype, out_dtype, offset_dtype, *self.shape)
        function = function_of(_kernel(kind, compute_capability()))
        cuda = Cuda(function, (self._blocks, 1, 1, self.shape.threads, 1, 1), current().device_id)
        words = RAGGED.words({"total": total, "items": items, "threshold": threshold})
        addresses = [(None, RAGGED.place(name)) for name in ("source", "out", *POINTERS)]
        self._prepared = PreparedLaunch(words, addresses, cuda)

    def launch(self, source: int, out: int, pointers: dict[str, int], stream: Any) -> None:
        """Queue the kernel; addresses are in device memory, those that its kind doesn't read may be missing."""
        launch(self._prepared, (source, out, *(pointers.get(name, 0) for name in POINTERS)), stream)


class Upload:
    """Host arrays in one block of device memory: small ones are brought there by one copy, large ones as they are."""

    def __init__(self, arrays: dict[str, np.ndarray], stream: Any) -> None:
        flat = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        starts, end, staged_end = {}, 0, 0
        for name in sorted(flat, key=lambda name: flat[name].nbytes > STAGED_BYTES):  # the small ones first
            starts[name] = end
            end += -(-flat[name].nbytes // ALIGNMENT) * ALIGNMENT
            staged_end = end if flat[name].nbytes <= STAGED_BYTES else staged_end
        self.memory = DeviceArray((end,), np.uint8, stream=stream)
        self.pointers = {name: self.memory.pointer + start for name, start in starts.items()}
        staged = np.empty(staged_end, np.uint8)
        for name, array in flat.items():
            if array.nbytes <= STAGED_BYTES:
                staged[starts[name] : starts[name] + array.nbytes] = array.view(np.uint8)
            else:
                copy(self.pointers[name], array.ctypes.data, array.nbytes, stream)
        copy(self.memory.pointer, staged.ctypes.data, staged_end, stream)


@cache
def _kernel(kind: Kind, capability: tuple[int, int]) -> Any:
    from octopus.backends.cuda import compile

    def build() -> Callable[..., Any]:
        from octopus.kernels.cuda import ragged

        return ragged.build(kind)

    return compile.load(kind.name, build)
