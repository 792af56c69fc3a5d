"""Batches whose items differ in size, stored flat."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from octopus.errors import InputError


@dataclass(frozen=True, eq=False)
class RaggedBatch:
    """Items of different shapes, one after the other in one flat array (also: jagged, varlen).

    Attributes
    ----------
    values : ndarray, (T,)
        All elements of all items, each item in C order.
    offsets : ndarray, (N + 1,), int64
        Item `i` is `values[offsets[i]:offsets[i + 1]]` (`indptr`, `cu_seqlens`).
    shapes : ndarray, (N, D), int64
        Shape of each item; all have the same number of dimensions.

    Raises
    ------
    InputError
        If the three don't fit each other; the message names the first item that is wrong.

    Examples
    --------
    >>> import numpy as np
    >>> batch = RaggedBatch.from_list([np.ones((2, 3)), np.zeros((4, 1))])
    >>> len(batch), batch[1].shape, batch.offsets.tolist()
    (2, (4, 1), [0, 6, 10])
    """

    values: np.ndarray
    offsets: np.ndarray
    shapes: np.ndarray

    def __post_init__(self) -> None:
        object.__setattr__(self, "offsets", _integers(self.offsets, "offsets", 1))
        object.__setattr__(self, "shapes", _integers(self.shapes, "shapes", 2))
        _check(self.values, self.offsets, self.shapes)

    @classmethod
    def from_list(cls, items: Sequence[np.ndarray]) -> RaggedBatch:
        """Copy arrays of one dtype and one number of dimensions into a batch.

        Raises
        ------
        InputError
            For no items (the dtype would be unknown: use `from_arrays`), or items of different dtype or dimensions.
        """
        arrays = [np.asarray(item) for item in items]
        if not arrays:
            raise InputError("an empty list has no dtype; use RaggedBatch.from_arrays(values, shapes)")
        kinds = {(array.dtype.name, array.ndim) for array in arrays}
        if len(kinds) > 1:
            raise InputError(f"items must share dtype and dimensions, found {sorted(kinds)}")
        shapes = np.array([array.shape for array in arrays], np.int64).reshape(len(arrays), -1)
        return cls.from_arrays(np.concatenate([array.ravel() for array in arrays]), shapes)

    @classmethod
    def from_arrays(cls, values: np.ndarray, shapes: np.ndarray) -> RaggedBatch:
        """Wrap a flat array, without a copy; the offsets follow from the shapes."""
        shapes = _integers(shapes, "shapes", 2)
        offsets = np.zeros(len(shapes) + 1, np.int64)
        np.cumsum(shapes.prod(axis=1), out=offsets[1:])
        return cls(values, offsets, shapes)

    def __len__(self) -> int:
        return len(self.shapes)

    def __getitem__(self, index: int) -> np.ndarray:
        """A view of one item; writing to it writes to the batch."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"item {index} of a batch of {len(self)}")
        index = range(len(self))[index]
        start, stop = self.offsets[index], self.offsets[index + 1]
        return self.values[start:stop].reshape(tuple(self.shapes[index]))

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self[index] for index in range(len(self)))

    @property
    def dtype(self) -> np.dtype:
        """Type of the elements."""
        return self.values.dtype

    def to_list(self) -> list[np.ndarray]:
        """Views of all items."""
        return list(self)


def _integers(array: np.ndarray, name: str, dimensions: int) -> np.ndarray:
    array = np.asarray(array)
    if array.ndim != dimensions or (array.size and not np.issubdtype(array.dtype, np.integer)):
        raise InputError(
            f"{name} must be an integer array of {dimensions} dimension(s), found {array.dtype} of shape {array.shape}"
        )
    return array.astype(np.int64, copy=False)


def _check(values: np.ndarray, offsets: np.ndarray, shapes: np.ndarray) -> None:
    if not isinstance(values, np.ndarray) or values.ndim != 1:
        raise InputError(f"values must be a flat NumPy array, found {getattr(values, 'shape', type(values))}")
    if len(offsets) != len(shapes) + 1:
        raise InputError(f"{len(shapes)} shapes need {len(shapes) + 1} offsets, found {len(offsets)}")
    if (shapes < 0).any():
        raise InputError(f"item {int(np.argmax((shapes < 0).any(axis=1)))} has a negative side")
    if offsets[0] != 0 or offsets[-1] != values.size:
        raise InputError(
            f"offsets run from {offsets[0]} to {offsets[-1]}; they must run from 0 to the {values.size} values"
        )
    wrong = np.diff(offsets) != shapes.prod(axis=1)
    if wrong.any():
        item = int(np.argmax(wrong))
        raise InputError(
            f"item {item} has shape {tuple(shapes[item].tolist())} but {offsets[item + 1] - offsets[item]} values"
        )
