"""The images of a call: where each of them lies, in one pass over the list, and what they all are."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus.arrays.checks import check_choice, hint_once
from octopus.arrays.views import ArrayView, dtype_name, view
from octopus.errors import InputError, shown_type
from octopus.images.check import CHANNELS, check_dtype, check_images, may_be_channels
from octopus.ragged.batch import RaggedBatch

Columns = NDArray[np.int64]
# The first image, views for streams, then of all: addresses, shapes, strides, which have two dimensions, and whether
# all are contiguous.
Found = tuple[ArrayView, list[ArrayView], Columns, Columns, Columns, Any, bool]

LAYOUTS = ("HWC", "CHW")
ORDERS = ("RGB", "BGR", "RGBA", "BGRA")
ALIGNMENT = 128  # of images that are packed for an upload: a line of the cache
# Which axes of an image are its rows, its columns and its channels.
_AXES = np.array([[0, 1, 2], [1, 2, 0]])

_ADDRESS_AT = 40  # of an array's memory in the struct of NumPy's array interface for C, on 64-bit machines
_struct_of = ctypes.PYFUNCTYPE(ctypes.c_ssize_t, ctypes.py_object, ctypes.c_void_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_word_at = ctypes.c_int64.from_address
_dtype, _shape, _strides, _flags, _struct = map(
    attrgetter, ("dtype", "shape", "strides", "flags", "__array_struct__")
)


@dataclass(slots=True)
class Sources:
    """Images of one dtype and number of channels, on one side.

    Attributes
    ----------
    images : sequence or RaggedBatch
        As the caller gave them.
    model : ArrayView
        Like the first image: library, side and GPU.
    views : list of ArrayView
        Of images whose library is not the first one's, or says on which stream they are written; for streams.
    dtype : str
    channels : int
    shapes : ndarray, (N, 3), int64
        As the images have them; of two-dimensional ones the third side is 1.
    last : ndarray, (N,), bool, or bool
        Whether an image's channels come last.
    order : str
        Of the images' channels, one of `ORDERS`.
    pointers : ndarray, (N,), int64
        Addresses of row 0, column 0, channel 0.
    strides : ndarray, (N, 3), int64
        In bytes, as `shapes`.
    sides : ndarray, (N, 2), int64
        Heights and widths.
    steps : ndarray, (N, 3), int64
        Bytes from row to row, pixel to pixel, channel to channel.
    dense : bool
        Whether all images are known to be contiguous.
    """

    images: Any
    model: ArrayView
    views: list[ArrayView]
    dtype: str
    channels: int
    shapes: Columns
    last: Any
    order: str
    pointers: Columns
    strides: Columns
    sides: Columns
    steps: Columns
    dense: bool

    def __len__(self) -> int:
        return len(self.pointers)

    def records(self) -> tuple[Columns, Columns]:
        """Addresses of first channels, (N,), and steps from row to row, pixel to pixel, channel to channel, (N, 3)."""
        if self.order[0] == "R":
            return self.pointers, self.steps
        planes = self.steps[:, 2]
        return self.pointers + 2 * planes, np.column_stack([self.steps[:, :2], -planes])

    @property
    def held(self) -> int:
        """Values of a pixel in memory: a fourth one that is left out, too."""
        return len(self.order) if self.channels == 3 else self.channels

    def packed(self) -> tuple[Sources, int]:
        """The same images one after the other, `pointers` counted from 0, and the bytes that they take."""
        strides = self.strides if self.dense else _contiguous(self.shapes, self.model.dtype.itemsize)
        sizes = _sizes(self.shapes, strides)
        if not isinstance(self.images, RaggedBatch):
            sizes = -(-sizes // ALIGNMENT) * ALIGNMENT
        ends = np.cumsum(sizes)
        steps = self.steps if self.dense else _by_axes(strides, self.last)
        packed = Sources(
            self.images, self.model, [], self.dtype, self.channels, self.shapes, self.last, self.order, ends - sizes,
            strides, self.sides, steps, True,
        )  # fmt: skip
        return packed, int(ends[-1])

    def meeting(self, first: int, last: int) -> Any:
        """Which images have bytes from the address `first` to before `last`, (N,)."""
        if self.dense:
            ends = self.pointers + _sizes(self.shapes, self.strides)
            return (self.pointers < last) & (ends > first)
        steps = (self.shapes - 1) * self.strides
        begins = self.pointers + np.minimum(steps, 0).sum(axis=1)
        ends = self.pointers + np.maximum(steps, 0).sum(axis=1) + self.model.dtype.itemsize
        return (begins < last) & (ends > first)

    def copy_to(self, memory: NDArray[np.uint8], begins: Columns) -> None:
        """Copy images on the host into bytes; `begins` says where each of them begins."""
        if self.dense:
            sizes = _sizes(self.shapes, self.strides)
            if isinstance(self.images, RaggedBatch):  # here as there one after the other
                begins, sizes = begins[:1], sizes.sum(keepdims=True)
            goals = (begins + memory.ctypes.data).tolist()
            for goal, pointer, size in zip(goals, self.pointers.tolist(), sizes.tolist(), strict=False):
                ctypes.memmove(goal, pointer, size)
            return
        for image, begin, shape in zip(self.images, begins.tolist(), self.shapes.tolist(), strict=True):
            pixels = view(image, "image").numpy()
            end = begin + pixels.size * pixels.itemsize
            np.copyto(memory[begin:end].view(pixels.dtype).reshape(shape[: pixels.ndim]), pixels)


def sources_of(images: Any, source: Any = None, channels: Any = "RGB") -> Sources:
    """Look at all images of a call, once.

    Parameters
    ----------
    images, source, channels
        As in `octopus.images.resize`.

    Raises
    ------
    InputError
        For no images, or any that can't be read; names the first that is wrong.
    """
    check_choice("channels", channels, ORDERS)
    if source is not None:
        check_choice("source", source, LAYOUTS)
    found = _of_batch(images) if isinstance(images, RaggedBatch) else _of_list(images)
    model, views, pointers, shapes, strides, flat, dense = found
    check_dtype(model)
    last = _channels_last(shapes, source, flat)
    ordered, steps = _by_axes(shapes, last), _by_axes(strides, last)
    number = check_images(shapes, ordered, steps, pointers, model.dtype.itemsize, dense)
    if channels != "RGB" and number != len(channels):
        raise InputError(f'channels="{channels}" is for images of {len(channels)} channels, found {number}')
    number = number if channels == "RGB" else 3
    dtype = dtype_name(model.dtype)
    return Sources(
        images, model.unowned, views, dtype, number, shapes, last, channels, pointers, strides, ordered[:, :2], steps,
        dense,
    )  # fmt: skip


def _of_list(images: Any) -> Found:
    if not isinstance(images, (list, tuple)):
        dimensions = getattr(images, "ndim", 0)
        remedy = (
            "list(images)" if dimensions == 4 else "[images]" if dimensions in (2, 3) else "a list of arrays"
        )
        raise InputError(
            f"images must be a list of images or a RaggedBatch, found {shown_type(images)}; pass {remedy}"
        )
    if not images:
        raise InputError(
            "there are no images: the list is empty, so that neither dtype nor library are known"
        )
    kinds = set(map(type, images))
    if kinds == {np.ndarray}:
        return _of_arrays(images) or _of_any(images)
    torch = sys.modules.get("torch")
    if torch is not None and kinds == {torch.Tensor}:
        return _of_tensors(torch.Tensor, images) or _of_any(images)
    return _of_any(images)


def _of_arrays(images: Sequence[Any]) -> Found | None:
    """Images of NumPy; None if they need a closer look."""
    first = view(images[0], "image 0")
    if len(set(map(_dtype, images))) > 1:
        return None
    structs = list(map(_struct, images))  # alive until they are read
    pointers = [_word_at(_struct_of(struct, None) + _ADDRESS_AT).value for struct in structs]
    dense = all(flags.c_contiguous for flags in map(_flags, images))
    strides = None if dense else list(map(_strides, images))
    return _columns(first, [], pointers, list(map(_shape, images)), strides, 1)


def _of_tensors(kind: Any, images: Sequence[Any]) -> Found | None:
    """Tensors; None if they need a closer look."""
    first = view(images[0], "image 0")
    if len(set(map(_dtype, images))) > 1 or len(set(map(kind.get_device, images))) > 1:
        return None
    if first.dtype.kind == "f" and any(image.requires_grad or image.is_neg() for image in images):
        return None
    try:
        pointers = list(map(kind.data_ptr, images))
        strides = None if all(map(kind.is_contiguous, images)) else list(map(kind.stride, images))
    except RuntimeError:  # sparse, or without values in memory
        return None
    if 0 in pointers:  # without values
        return None
    return _columns(first, [], pointers, list(map(_shape, images)), strides, first.dtype.itemsize)


def _of_any(images: Sequence[Any]) -> Found:
    """Images of any libraries, one by one."""
    views = [view(image, f"image {number}") for number, image in enumerate(images)]
    first = views[0]
    for number, found in enumerate(views):
        if (found.device, found.ordinal or 0) != (first.device, first.ordinal or 0):
            raise InputError(
                "images must lie on one side, the host or one GPU; found image 0 on "
                f"{_side(first)} and image {number} on {_side(found)}"
            )
        if found.dtype != first.dtype:
            raise InputError(
                f"images must be of one dtype, found image 0 of {first.dtype} and image {number} of {found.dtype}"
            )
    pointers, shapes, strides = (
        [getattr(v, name) for v in views] for name in ("pointer", "shape", "strides")
    )
    # Of what DLPack exports the view is the owner.
    held = [found for found in views if found.device == "cuda" or found.family == "other"]
    return _columns(first, held, pointers, shapes, strides, 1)


def _side(image: ArrayView) -> str:
    return image.device if image.ordinal is None else f"{image.device}:{image.ordinal}"


def _columns(
    first: ArrayView,
    views: list[ArrayView],
    pointers: list[int],
    shapes: list[Any],
    strides: list[Any] | None,
    unit: int,
) -> Found:
    """What was found as columns; images (H, W) become (H, W, 1). Without strides all are contiguous."""
    dimensions = set(map(len, shapes))
    flat: Any = False
    if dimensions != {3}:
        if not dimensions <= {2, 3}:
            number = next(i for i, shape in enumerate(shapes) if len(shape) not in (2, 3))
            raise InputError(
                "an image has the shape (H, W), (H, W, C) or (C, H, W), found image "
                f"{number} of {tuple(shapes[number])}"
            )
        flat = np.array([len(shape) == 2 for shape in shapes])
        step = first.dtype.itemsize // unit
        strides = strides and [(*s, step) if len(s) == 2 else s for s in strides]
        shapes = [(*s, 1) if len(s) == 2 else s for s in shapes]
    sides = _threes(shapes)
    steps = _contiguous(sides, first.dtype.itemsize) if strides is None else _threes(strides) * unit
    return first, views, np.array(pointers, np.int64), sides, steps, flat, strides is None


def _threes(numbers: list[Any]) -> Columns:
    """Tuples of three integers as rows."""
    count = len(numbers)
    return np.fromiter(chain.from_iterable(numbers), np.int64, 3 * count).reshape(count, 3)


def _of_batch(batch: RaggedBatch) -> Found:
    """Images that lie one after the other: nothing is looked at one by one."""
    values = view(batch.values, "values")
    if batch.shapes is None or batch.shapes.shape[1] not in (2, 3):
        found = "sequences" if batch.shapes is None else f"items of {batch.shapes.shape[1]} dimensions"
        raise InputError(f"a RaggedBatch of images has items (H, W), (H, W, C) or (C, H, W), found {found}")
    if not len(batch):
        raise InputError("there are no images: the batch is empty")
    shapes = batch.shapes
    flat = shapes.shape[1] == 2
    if flat:
        shapes = np.column_stack([shapes, np.ones(len(shapes), np.int64)])
    sizes = shapes.prod(axis=1)
    pointers = values.pointer + (np.cumsum(sizes) - sizes) * values.dtype.itemsize
    return values, [values], pointers, shapes, _contiguous(shapes, values.dtype.itemsize), flat, True


def _contiguous(shapes: Columns, item: int) -> Columns:
    """Strides of images without gaps, (N, 3), in bytes."""
    strides = np.empty((len(shapes), 3), np.int64)
    strides[:, 2] = item
    np.multiply(shapes[:, 2], item, out=strides[:, 1])
    np.multiply(shapes[:, 1], strides[:, 1], out=strides[:, 0])
    return strides


def _sizes(shapes: Columns, strides: Columns) -> Columns:
    """Bytes of images without gaps, (N,)."""
    sizes: Columns = shapes[:, 0] * strides[:, 0]
    return sizes


def _channels_last(shapes: Columns, source: str | None, flat: Any) -> Any:
    """For which images channels come last; the same for all where that is so.

    Where both ends could be channels, as in three columns of pixels, the image is taken as the others of the list are.
    Of images of two dimensions (`flat`) the third was added last.
    """
    if flat is False:
        ends = set(shapes[:, 2].tolist())
        if source or ends.isdisjoint(CHANNELS):
            return source == "HWC"
        if ends.issubset(CHANNELS) and set(shapes[:, 0].tolist()).isdisjoint(CHANNELS):
            return True
    last = np.full(len(shapes), source == "HWC") if source else may_be_channels(shapes[:, 2])
    first = may_be_channels(shapes[:, 0])
    both = last & first
    unsaid = last & ~first & np.logical_not(flat)
    if source is None and both.any() and (first & ~last).any() and not unsaid.any():
        last = last & ~both
    elif source is None and both.any() and not (unsaid.any() or (first & ~last).any()):
        number = int(np.argmax(both))
        hint_once(
            "images-source",
            f"image {number} of shape {tuple(shapes[number].tolist())} has what could be channels at both ends, and is "
            'read as (H, W, C). Say source="HWC" or "CHW"',
        )
    last = last | flat
    if last.all():
        return True
    return last if last.any() else False


def _by_axes(columns: Columns, last: Any) -> Columns:
    """Columns in the order rows, columns, channels."""
    if isinstance(last, bool):
        return columns if last else columns[:, _AXES[1]]
    return np.take_along_axis(columns, _AXES[np.where(last, 0, 1)], axis=1)
