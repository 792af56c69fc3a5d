"""Batches whose items differ in size, stored flat."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from octopus.arrays.memo import dynamo_disabled
from octopus.arrays.results import host_copy
from octopus.arrays.views import ArrayView, family, view
from octopus.errors import InputError, shown_type
from octopus.ragged import check, convert
from octopus.ragged.blockmap import offsets_of
from octopus.ragged.convert import Jagged


@dataclass(frozen=True, eq=False)
class RaggedBatch:
    """Items of different shapes, one after the other in one flat array (also: jagged, varlen).

    Attributes
    ----------
    values : array, (T,)
        All elements of all items, each item in C order: a NumPy array, a torch tensor, or any other C-contiguous array
        that Octopus takes, in host or GPU memory. Kept as given, never copied.
    offsets : array, (N + 1,)
        Item `i` is `values[offsets[i]:offsets[i + 1]]` (`indptr`, `cu_seqlens`). On the host they are copied to NumPy's
        int64, which is read-only: kernels rely on what was checked. In GPU memory (int32 or int64) they are kept as
        given; nothing waits for the GPU, so that what only their values can tell is not checked.
    shapes : ndarray, (N, D), int64, or None
        Shape of each item, on the host, a read-only copy; all have the same number of dimensions. None: the items are
        sequences, as long as the offsets say.
    jagged : Jagged or None
        What `to_torch` needs of the nested tensor that the batch was made from, set by `from_torch`; not for you.
    dtype, device, size
        Type of the elements (NumPy's), where they are ("cpu", "cuda"), and how many, T.

    Raises
    ------
    InputError
        If the parts don't fit each other; the message names the first item that is wrong. For values that require a
        gradient or are sparse. Methods raise it for what they don't take, as they say.
    MissingPackageError
        By methods that need torch or pyarrow, where it is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> batch = RaggedBatch.from_list([np.ones((2, 3)), np.zeros((4, 1))])
    >>> len(batch), batch[1].shape, batch.offsets.tolist()
    (2, (4, 1), [0, 6, 10])
    """

    values: Any
    offsets: Any
    shapes: np.ndarray | None = None
    jagged: Jagged | None = field(default=None, repr=False, kw_only=True)
    dtype: np.dtype = field(init=False, repr=False)
    device: str = field(init=False, repr=False)
    size: int = field(init=False, repr=False)

    @dynamo_disabled
    def __post_init__(self) -> None:
        values = check.flat_view(self.values)
        offsets = check.kept_offsets(self.offsets, values)
        shapes = None if self.shapes is None else check.kept(self.shapes, "shapes", 2)
        self.__dict__.update(offsets=offsets, shapes=shapes, **_facts(values))
        if shapes is not None:
            check.check_shapes(len(self), shapes)
        if self.offsets_on_host:
            check.check_offsets(self.size, offsets, shapes)
        elif shapes is not None and (elements := sum(shapes.prod(axis=1).tolist())) != self.size:
            raise InputError(f"items of these shapes have {elements} values together, found {self.size}")

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled and copied by way of the constructor, which checks the sizes anew and makes them read-only."""
        return partial(type(self), jagged=self.jagged), (self.values, self.offsets, self.shapes)

    @classmethod
    @dynamo_disabled
    def from_list(cls, items: Iterable[Any]) -> RaggedBatch:
        """Copy NumPy arrays, or torch tensors of one device, into a batch.

        Items must share their dtype, number of dimensions, library and device; tensors are taken without their
        gradients. An empty list has no dtype: use `from_arrays`.

        Returns
        -------
        RaggedBatch
            With `shapes`; values of NumPy, or of torch on the tensors' device.
        """
        values, shapes = convert.joined(items)
        return cls.from_arrays(values, shapes)

    @classmethod
    @dynamo_disabled
    def from_arrays(cls, values: Any, shapes: Any) -> RaggedBatch:
        """Wrap the values (T,) of items of these shapes (N, D), integers on the host; the values are not copied.

        Returns
        -------
        RaggedBatch
            Shares `values`; has a copy of `shapes`, and offsets made from them.
        """
        return cls(values, offsets_of(check.integers(shapes, "shapes", 2)), shapes)

    @classmethod
    @dynamo_disabled
    def from_offsets(cls, values: Any, offsets: Any) -> RaggedBatch:
        """Wrap sequences that lie one after the other: values (T,), integer offsets (N + 1,) on the host or the GPU.

        Offsets on the host must rise from 0 to the number of values.

        Returns
        -------
        RaggedBatch
            Shares `values`, and offsets in GPU memory; `shapes` is None.
        """
        return cls(values, offsets)

    @classmethod
    @dynamo_disabled
    def from_torch(cls, nested: Any) -> RaggedBatch:
        """Wrap a nested tensor of torch with the jagged layout, (N, j) or (N, j, ...), on the CPU or a GPU.

        The values are shared where they are contiguous. The offsets stay on their device, and nothing waits for it.
        Items have the shape (j, ...). No gradient passes through a batch. Refuses the strided layout, holes between
        the items, and another ragged side than the first.

        Returns
        -------
        RaggedBatch
            Flat values of torch; `shapes` is None, and `inner` has the sides after j.
        """
        values, offsets, jagged = convert.from_torch(nested)
        return cls(values, offsets, jagged=jagged)

    @classmethod
    @dynamo_disabled
    def from_arrow(cls, array: Any) -> RaggedBatch:
        """Wrap a list array of Arrow: list, large list or fixed-size list of integers or floats, without nulls.

        The values are shared; several chunks are joined, which copies them. Also takes what offers Arrow's C
        interface (`__arrow_c_array__`, `__arrow_c_stream__`).

        Returns
        -------
        RaggedBatch
            Read-only values of NumPy, as Arrow's memory is; `shapes` is None.
        """
        return cls(*convert.from_arrow(array))

    @dynamo_disabled
    def like(self, values: Any) -> RaggedBatch:
        """A batch of items of the same shapes with as many other values (T,), of any dtype.

        Returns
        -------
        RaggedBatch
            Shares `values`, and the offsets and shapes of this batch; offsets on the GPU need values there.
        """
        found = check.flat_view(values)
        if found.shape[0] != self.size:
            raise InputError(f"values must be {self.size} like those of the batch, found {found.shape[0]}")
        if not self.offsets_on_host:
            check.check_sides(found, view(self.offsets, "offsets"))
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, values=values, **_facts(found))
        return other

    @dynamo_disabled
    def to(self, device: Any, non_blocking: bool = False) -> RaggedBatch:
        """A batch of tensors with its values on another side: one copy, whatever the number of items.

        Parameters
        ----------
        device : torch.device, str or int
            As torch's `Tensor.to` takes it.
        non_blocking : bool
            Return when the copy from page-locked memory (`pin_memory`) to the GPU is queued. Use it only that way:
            torch doesn't wait for copies to the host either.

        Returns
        -------
        RaggedBatch
            Offsets on the host stay there; those in GPU memory are copied to the host for values on the host.
        """
        moved = self._tensor("to").to(device=device, non_blocking=non_blocking)
        return (self if moved.is_cuda else self.offsets_to_host()).like(moved)

    @dynamo_disabled
    def pin_memory(self) -> RaggedBatch:
        """A batch of tensors with its values in page-locked memory, from which a GPU copies by itself.

        A `DataLoader` with `pin_memory=True` calls this.

        Returns
        -------
        RaggedBatch
            Shares the values if they lie in such memory already.
        """
        return self.like(self._tensor("pin_memory").pin_memory())

    @dynamo_disabled
    def __len__(self) -> int:
        return int(self.offsets.shape[0]) - 1

    @dynamo_disabled
    def __getitem__(self, index: int) -> Any:
        """A view of one item, of the same library as the values; writing to it writes to the batch.

        Raises `IndexError` if there is no such item, and `InputError` for no integer or offsets in GPU memory.
        """
        index = check.item_number(index, len(self))
        offsets = self._host_offsets("an item")
        start, stop = int(offsets[index]), int(offsets[index + 1])
        if self.shapes is None:
            shape = ((stop - start) // math.prod(self.inner), *self.inner)
        else:
            shape = tuple(self.shapes[index].tolist())
        return convert.part(self.values, start, stop, shape)

    @dynamo_disabled
    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self)))

    @property
    @dynamo_disabled
    def offsets_on_host(self) -> bool:
        """Whether the offsets are a NumPy array; else they are in GPU memory."""
        return isinstance(self.offsets, np.ndarray)

    @property
    def inner(self) -> tuple[int, ...]:
        """The sides that all items of a batch without `shapes` share after their first: `(D,)` for items (j, D) of a
        nested tensor, see `from_torch`, and () for all other batches."""
        return () if self.jagged is None else self.jagged.shape[1:]

    @dynamo_disabled
    def offsets_to_host(self) -> RaggedBatch:
        """The same batch with offsets in host memory, checked: copied from the GPU, which is waited for.

        Returns
        -------
        RaggedBatch
            Shares the values; this batch itself if its offsets are on the host.
        """
        if self.offsets_on_host:
            return self
        return RaggedBatch(self.values, host_copy(self.offsets), self.shapes, jagged=self.jagged)

    @dynamo_disabled
    def to_list(self) -> list[Any]:
        """Views of all items.

        Returns
        -------
        list of arrays
            As `batch[i]` gives them, of the same library as the values.
        """
        return list(self)

    @dynamo_disabled
    def to_padded(self, fill: float = 0) -> Any:
        """A copy of a batch on the host as one array, `fill`, which its dtype must hold, where an item has no element.

        Returns
        -------
        array, (N, longest side, ...)
            Of the batch's dtype and library.

        Raises
        ------
        OutOfMemoryError
            If there is no room for it.
        """
        if self.device != "cpu":
            raise InputError("to_padded needs values in host memory; on a GPU use to_torch().to_padded_tensor(fill)")
        return convert.padded(view(self.values, "values"), self.offsets, self.shapes, self.inner, fill)

    @dynamo_disabled
    def to_torch(self) -> Any:
        """A nested tensor of torch with the jagged layout that shares the values of items that differ in one side.

        Of a batch from `from_torch` it has the very offsets of that tensor, so that torch can combine the two. Others
        are copied from the host to where the values are.

        Returns
        -------
        torch.Tensor
            Nested, (N, j) or (N, j, ...), on the side of the values.
        """
        return convert.to_torch(self.values, self.offsets, self.shapes, self.jagged)

    @dynamo_disabled
    def to_arrow(self, large: bool = False) -> Any:
        """A list array of Arrow that shares the values, integers or floats, of a batch of sequences on the host.

        `large` makes a large list, with 64-bit offsets, which more than 2^31 - 1 elements need.

        Returns
        -------
        pyarrow.ListArray or pyarrow.LargeListArray
            N lists.
        """
        sequences = self.inner == () if self.shapes is None else self.shapes.shape[1] == 1
        if not sequences:
            raise InputError("to_arrow needs items of one dimension: a list in Arrow has no shape")
        return convert.to_arrow(self.values, self._host_offsets("to_arrow"), large)

    def _tensor(self, what: str) -> Any:
        if family(self.values) != "torch":
            raise InputError(f"{what} takes a batch of tensors, found values that are {shown_type(self.values)}")
        return self.values

    def _host_offsets(self, what: str) -> Any:
        if not self.offsets_on_host:
            raise InputError(f"{what} needs the offsets on the host, they are in GPU memory; use offsets_to_host()")
        return self.offsets


def _facts(values: ArrayView) -> dict[str, Any]:
    return {"dtype": values.dtype, "device": values.device, "size": values.shape[0]}
