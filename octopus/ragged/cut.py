"""How a batch is cut into items, and whether another batch or a map is cut alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus.arrays.checks import INT32_MAX
from octopus.errors import InputError
from octopus.kernels.operations import STENCILS
from octopus.ragged import blockmap
from octopus.ragged.batch import RaggedBatch
from octopus.ragged.blockmap import BlockMap


@dataclass(frozen=True)
class Cut:
    """What a plan knows of the batches to come.

    Attributes
    ----------
    offsets : ndarray, (N + 1,), int64, or None
        None: they are in GPU memory, and those of the batch at hand are read there.
    shapes : ndarray, (N, 2), int64, or None
        Of the images of a stencil; other operations read no shapes.
    """

    offsets: NDArray[np.int64] | None
    shapes: NDArray[np.int64] | None

    def check(self, batch: RaggedBatch) -> None:
        """Raise `InputError` unless a batch of as many items and elements is cut alike; names the first item."""
        if self.shapes is not None and batch.shapes is not self.shapes:
            self._check_shapes(batch)
        if batch.offsets is self.offsets or (self.shapes is not None and not batch.offsets_on_host):
            return  # from the same batch, or made from the same shapes
        if (self.offsets is not None) != batch.offsets_on_host:
            raise InputError(
                f"the plan is for offsets {_side(self.offsets is not None)}, those of the batch are "
                f"{_side(batch.offsets_on_host)}; plan for such a batch, or use offsets_to_host()"
            )
        if self.offsets is not None:
            _check_offsets(batch.offsets, self.offsets, "the batch")

    def _check_shapes(self, batch: RaggedBatch) -> None:
        assert self.shapes is not None
        if batch.shapes is None or batch.shapes.shape != self.shapes.shape:
            raise InputError("the plan is for images (height, width), the batch has items of other dimensions")
        if not np.array_equal(batch.shapes, self.shapes):
            item = int(np.argmax((batch.shapes != self.shapes).any(axis=1)))
            found, planned = (tuple(shapes[item].tolist()) for shapes in (batch.shapes, self.shapes))
            raise InputError(f"item {item} of the batch has shape {found}, the plan is for {planned}")


def cut_of(operation: str, batch: RaggedBatch) -> Cut:
    """The offsets that are known to fit the values, and the shapes that matter.

    An operation that reads neighbours must not trust what nobody has checked: its offsets are made from the shapes.
    """
    shapes = batch.shapes if operation in STENCILS else None
    if batch.offsets_on_host or shapes is None:
        return Cut(batch.offsets if batch.offsets_on_host else None, shapes)
    offsets = blockmap.offsets_of(shapes)
    if offsets[-1] != batch.size:
        raise InputError(f"the shapes have {offsets[-1]} elements in all, the values {batch.size}")
    return Cut(offsets, shapes)


def checked_map(found: Any, strategy: str, offsets: NDArray[np.int64] | None) -> BlockMap:
    """The map, if it follows from these offsets: another would let the kernels read beyond the values."""
    if not isinstance(found, BlockMap) or found.strategy != strategy:
        told = f"of strategy {found.strategy}" if isinstance(found, BlockMap) else type(found).__name__
        raise InputError(f"made must be a BlockMap of strategy {strategy}, found one {told}")
    if offsets is None:
        raise InputError("the offsets are in GPU memory, where nobody sees whether made fits; leave it out")
    if len(found.offsets) != len(offsets) or found.offsets[-1] != offsets[-1]:
        raise InputError(
            f"the map is for {len(found.offsets) - 1} items and {found.offsets[-1]} elements; "
            f"{len(offsets) - 1} items and {offsets[-1]} elements was asked for"
        )
    _check_offsets(found.offsets, offsets, "the map")
    return found if found.checked else _made_sure(found, offsets)


def _check_offsets(found: NDArray[np.integer], planned: NDArray[np.integer], whose: str) -> None:
    if not np.array_equal(found, planned):
        item = int(np.argmax(found[1:] != planned[1:]))
        lengths = [int(offsets[item + 1] - offsets[item]) for offsets in (found, planned)]
        raise InputError(f"item {item} of {whose} has {lengths[0]} elements, the plan is for {lengths[1]}")


def _made_sure(found: BlockMap, offsets: NDArray[np.int64]) -> BlockMap:
    """The same map, made by `blockmap.build`."""
    right = blockmap.build(found.strategy, offsets, threshold=found.threshold or 1)
    for name, array in right.arrays.items():
        given = found.arrays.get(name)
        if given is None or not np.array_equal(given, array):
            raise InputError(f"{name} of the map doesn't follow from its offsets; blockmap.build makes it")
    return right


def image_sides(operation: str, batch: RaggedBatch) -> dict[str, NDArray[np.int32]]:
    """Widths and heights of the images that a stencil reads; nothing for other operations.

    Raises
    ------
    InputError
        If a stencil is to read sequences, or images larger than it can number.
    """
    if operation not in STENCILS:
        return {}
    if batch.shapes is None or batch.shapes.shape[1] != 2:
        found = "sequences" if batch.shapes is None else f"items of {batch.shapes.shape[1]} dimensions"
        raise InputError(f"{operation} works on images (height, width), found {found}")
    if len(batch) and batch.shapes.prod(axis=1).max() > INT32_MAX:
        raise InputError(f"{operation} takes images of up to 2**31 - 1 pixels; cut larger ones")
    if len(batch) and batch.shapes.max() > INT32_MAX:
        raise InputError(f"{operation} takes images with sides of up to 2**31 - 1 pixels")
    heights, widths = batch.shapes.T.astype(np.int32)
    return {"widths": np.ascontiguousarray(widths), "heights": np.ascontiguousarray(heights)}


def _side(on_host: bool) -> str:
    return "on the host" if on_host else "in GPU memory"
