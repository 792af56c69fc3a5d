"""The images of a call as they are given: where each of them lies, read in one pass over the list."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from octopus.arrays.pillow import Raster, is_pillow, rasters
from octopus.arrays.views import ArrayView, address_of, torch_model, view
from octopus.errors import InputError, shown_type
from octopus.ragged.batch import RaggedBatch

Columns = NDArray[np.int64]

_dtype, _shape, _strides, _flags = map(attrgetter, ("dtype", "shape", "strides", "flags"))


class Found(NamedTuple):
    """Images of one dtype on one side, not checked further.

    Attributes
    ----------
    images : sequence or RaggedBatch
        As the caller gave them, but a `Raster` for each image of Pillow.
    model : ArrayView
        Like the first image: library, side, GPU and dtype; without the image.
    views : list of ArrayView
        Of images whose library is not the first one's, or says on which stream they are written; for streams.
    pointers : ndarray, (N,), int64
        Addresses of the first elements.
    shapes : list of tuple, or ndarray, (N, D)
        The latter of a `RaggedBatch`.
    strides : list of tuple, or None
        None if all are contiguous.
    unit : int
        Bytes that strides count.
    pillow : tuple of bool, or bool
        Which are `Raster`, whose channels come last, or whether all are.
    """

    images: Any
    model: ArrayView
    views: list[ArrayView]
    pointers: Columns
    shapes: Any
    strides: list[Any] | None
    unit: int
    pillow: Any = False

    @property
    def key(self) -> tuple[Any, ...]:
        """All but where the images lie, by which calls that are alike are known."""
        model, shapes, item = self.model, self.shapes, self.model.dtype.itemsize
        shapes = (shapes.shape, shapes.tobytes()) if type(shapes) is np.ndarray else tuple(shapes)
        odd = item > 1 and bool(np.count_nonzero(self.pointers % item))
        return (
            model.dtype, model.family, model.device, model.ordinal, self.unit, shapes,
            self.strides and tuple(self.strides), self.pillow, self.broken, odd, bool(self.views),
        )  # fmt: skip

    @property
    def broken(self) -> bool:
        """Whether the rows of an image of Pillow lie in several pieces."""
        return self.pillow is not False and any(type(i) is Raster and i.runs is not None for i in self.images)


def look(images: Any) -> Found:
    """Read all images of a call, once.

    Raises
    ------
    InputError
        For no images, or any that can't be read; names the first that is wrong.
    """
    if isinstance(images, RaggedBatch):
        return _of_batch(images)
    if is_pillow(type(images)):
        images = [images]
    if not isinstance(images, (list, tuple)):
        dimensions = getattr(images, "ndim", 0)
        remedy = "list(images)" if dimensions == 4 else "[images]" if dimensions in (2, 3) else "a list of arrays"
        raise InputError(f"images must be a list of images or a RaggedBatch, found {shown_type(images)}; pass {remedy}")
    if not images:
        raise InputError("there are no images: the list is empty, so that neither dtype nor library are known")
    kinds = set(map(type, images))
    if any(map(is_pillow, kinds)):
        images, kinds = _rastered(images)
    if kinds == {Raster}:
        return _of_rasters(images)
    if kinds == {np.ndarray}:
        return _of_arrays(images) or _of_any(images)
    torch = sys.modules.get("torch")
    if torch is not None and kinds == {torch.Tensor}:
        return _of_tensors(torch.Tensor, images) or _of_any(images)
    return _of_any(images)


def _rastered(images: Sequence[Any]) -> tuple[Sequence[Any], set[type]]:
    """The images with a `Raster` in place of each of Pillow's, all of which are decoded at once, and their types."""
    numbers = [number for number, image in enumerate(images) if is_pillow(type(image))]
    made = rasters([images[number] for number in numbers], "image", numbers)
    if len(made) == len(images):
        return made, {Raster}
    images = list(images)
    for number, raster in zip(numbers, made, strict=True):
        images[number] = raster
    return images, set(map(type, images))


def _of_rasters(images: Sequence[Raster]) -> Found:
    """Images of Pillow; their values count as NumPy's."""
    pointers, shapes, strides, dtypes, _, _ = zip(*images, strict=True)
    if len(set(dtypes)) > 1:
        return _of_any(images)  # which refuses them
    model = ArrayView(0, (), (), dtypes[0], "cpu", "numpy", None)
    return Found(images, model, [], np.array(pointers, np.int64), list(shapes), list(strides), 1, True)


def _of_arrays(images: Sequence[Any]) -> Found | None:
    """Images of NumPy; None if they need a closer look."""
    model = view(images[0], "image 0").unowned
    if len(set(map(_dtype, images))) > 1:
        return None
    pointers = list(map(address_of, images))
    dense = all(flags.c_contiguous for flags in map(_flags, images))
    strides = None if dense else list(map(_strides, images))
    return Found(images, model, [], np.array(pointers, np.int64), list(map(_shape, images)), strides, 1)


def _of_tensors(kind: Any, images: Sequence[Any]) -> Found | None:
    """Tensors; None if they need a closer look."""
    model = torch_model(images[0], "image 0")
    if len(set(map(_dtype, images))) > 1 or len(set(map(kind.get_device, images))) > 1:
        return None
    if model.dtype.kind == "f" and any(image.requires_grad or image.is_neg() for image in images):
        return None
    try:
        pointers = np.fromiter(map(kind.data_ptr, images), np.int64, len(images))
        strides = None if all(map(kind.is_contiguous, images)) else list(map(kind.stride, images))
    except RuntimeError:  # sparse, or without values in memory
        return None
    if not pointers.all():  # without values
        return None
    return Found(images, model, [], pointers, list(map(_shape, images)), strides, model.dtype.itemsize)


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
    pointers = np.array([found.pointer for found in views], np.int64)
    shapes, strides = [found.shape for found in views], [found.strides for found in views]
    # Of what DLPack exports the view is the owner.
    held = [found for found in views if found.device == "cuda" or found.family == "other"]
    pillow = tuple(type(image) is Raster for image in images)
    return Found(images, first.unowned, held, pointers, shapes, strides, 1, pillow)


def _side(image: ArrayView) -> str:
    return image.device if image.ordinal is None else f"{image.device}:{image.ordinal}"


def _of_batch(batch: RaggedBatch) -> Found:
    """Images that lie one after the other: nothing is looked at one by one."""
    values = view(batch.values, "values")
    if batch.shapes is None or batch.shapes.shape[1] not in (2, 3):
        found = "sequences" if batch.shapes is None else f"items of {batch.shapes.shape[1]} dimensions"
        raise InputError(f"a RaggedBatch of images has items (H, W), (H, W, C) or (C, H, W), found {found}")
    if not len(batch):
        raise InputError("there are no images: the batch is empty")
    sizes = batch.shapes.prod(axis=1)
    pointers = values.pointer + (np.cumsum(sizes) - sizes) * values.dtype.itemsize
    return Found(batch, values.unowned, [values], pointers, batch.shapes, None, 1)
