"""The images of a call: where each of them lies, read in one pass over the list, and what they all are, checked."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from octopus.arrays.checks import INT32_MAX, MAX_SIDE, ORDERS, check_choice, check_order, hint_once, of_dtype
from octopus.arrays.pillow import Raster, is_pillow, rasters
from octopus.arrays.views import ArrayView, address_of, dtype_name, torch_model, view
from octopus.errors import InputError, shown_type
from octopus.ragged.batch import RaggedBatch

Columns = NDArray[np.int64]

DTYPES, CHANNELS, LAYOUTS = ("uint8", "uint16", "float32"), (1, 3, 4), ("HWC", "CHW")
# Of an image with channels last, first: rows, columns, channels; and of these the image's own axes.
_AXES, _OWN_AXES = np.array([[0, 1, 2], [1, 2, 0]]), np.array([[0, 1, 2], [2, 0, 1]])

_dtype, _shape, _strides, _flags = map(attrgetter, ("dtype", "shape", "strides", "flags"))


class Found(NamedTuple):
    """Images of one dtype on one side, not checked further."""

    images: Any  # as the caller gave them, but a `Raster` for each image of Pillow
    model: ArrayView  # like the first image: library, side, GPU and dtype; without the image
    views: list[ArrayView]  # of those that another library has, or that say on which stream they are written
    pointers: Columns  # addresses of the first elements, (N,)
    shapes: Any  # a list of tuples, or of a `RaggedBatch` an array (N, D)
    strides: list[Any] | None  # in units of `unit` bytes; None if all are contiguous
    unit: int
    pillow: Any = False  # which are a `Raster`, whose channels come last, or whether all are

    @property
    def key(self) -> tuple[Any, ...]:
        """All but where the images lie, by which calls that are alike are known."""
        model, shapes, item = self.model, self.shapes, self.model.dtype.itemsize
        shapes = (shapes.shape, shapes.tobytes()) if type(shapes) is np.ndarray else tuple(shapes)
        odd = item > 1 and bool(np.count_nonzero(self.pointers % item))
        return (
            model.dtype, model.family, model.device, model.ordinal, self.unit, shapes,
            self.strides and tuple(self.strides), self.pillow, bool(self.runs), odd, bool(self.views),
        )  # fmt: skip

    @property
    def runs(self) -> dict[int, tuple[Columns, Columns]]:
        """Addresses and bytes of the pieces of each image of Pillow whose rows lie in several."""
        if self.pillow is False:
            return {}
        return {n: i.runs for n, i in enumerate(self.images) if type(i) is Raster and i.runs is not None}

    def joined(self) -> Found:
        """The same images, with a copy of each whose rows lie in several pieces."""
        if not self.runs:
            return self
        images, pointers = list(self.images), self.pointers.copy()
        for number in self.runs:
            images[number] = images[number].array
            pointers[number] = address_of(images[number])
        return self._replace(images=images, pointers=pointers)


@dataclass
class Geometry:
    """All of images but where they lie."""

    dtype: str
    item: int  # bytes of a value
    channels: int
    order: str  # of the images' channels, one of `ORDERS`
    shapes: Columns  # (N, 3), as the images have them; of those of two dimensions the third side is 1
    last: Any  # whether an image's channels come last, (N,), or of all
    strides: Columns  # in bytes, as `shapes`
    sides: Columns  # heights and widths, (N, 2)
    steps: Columns  # bytes from row to row, pixel to pixel, channel to channel, (N, 3)
    dense: bool  # whether all are known to be contiguous
    reach: tuple[Any, Columns]  # bytes from an image's address to its first, 0 or (N,), and behind its last, (N,)

    @property
    def held(self) -> int:
        """Values of a pixel in memory: a fourth one that is left out, too."""
        return len(self.order) if self.channels == 3 else self.channels

    def firsts(self, pointers: Columns) -> Columns:
        """Addresses of the first channel of the result in images at these addresses, (N,)."""
        return pointers if self.order[0] == "R" else pointers + 2 * self.steps[:, 2]

    def meeting(self, pointers: Columns, first: int, last: int) -> Any:
        """Which images at these addresses have bytes from the address `first` to before `last`, (N,)."""
        below, above = self.reach
        return (pointers < last - below) & (pointers > first - above)


def look(images: Any) -> Found:
    """Read all images of a call, once; `InputError` names the first that can't be read."""
    if isinstance(images, RaggedBatch):
        return _of_batch(images)
    if is_pillow(type(images)):
        images = [images]
    if not isinstance(images, (list, tuple)):
        dimensions = getattr(images, "ndim", 0)
        if dimensions not in (2, 3, 4):
            raise InputError(f"images must be a list of images, an array or a RaggedBatch, found {shown_type(images)}")
        images = list(images) if dimensions == 4 else [images]
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
    images = list(images)
    for number, raster in zip(numbers, rasters([images[n] for n in numbers], "image", numbers), strict=True):
        images[number] = raster
    return images, set(map(type, images))


def _of_rasters(images: Sequence[Raster]) -> Found:
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


def geometry_of(found: Found, source: Any = None, channels: Any = "RGB") -> Geometry:
    """Check images (`InputError` names the first that is wrong), and tell all of them but where they lie.

    That is the same for others with the same `key`. Arguments are as in `octopus.images.resize`.
    """
    check_choice("channels", channels, ORDERS)
    if source is not None:
        check_choice("source", source, LAYOUTS)
    if not of_dtype(found.model, DTYPES):
        raise InputError(
            f"images must be uint8, uint16 or float32 in the machine's byte order, found {found.model.dtype}; "
            "convert them"
        )
    item = found.model.dtype.itemsize
    shapes, strides, flat = _columns(found, item)
    dense = found.strides is None
    last = _channels_last(shapes, source, flat)
    ordered, steps = by_axes(shapes, last), by_axes(strides, last)
    number = _checked_channels(found.shapes, shapes, ordered, steps, found.pointers, item, dense)
    return Geometry(
        dtype_name(found.model.dtype), item, check_order(channels, number, "images"), channels, shapes, last, strides,
        ordered[:, :2], steps, dense, reach_of(shapes, strides, item, dense),
    )  # fmt: skip


def _columns(found: Found, item: int) -> tuple[Columns, Columns, Any]:
    """Shapes and strides in bytes, (N, 3) each, (H, W) as (H, W, 1); and of which images channels come last anyway.

    These are images (H, W) and Pillow's: (N,), True for all, or False if there are none.
    """
    shapes, strides = found.shapes, found.strides
    flat: Any = False
    if type(shapes) is np.ndarray:
        flat = shapes.shape[1] == 2
        sides = np.pad(shapes, ((0, 0), (0, 1)), constant_values=1) if flat else shapes
        return sides, contiguous_strides(sides, item), flat
    dimensions = list(map(len, shapes))
    if not {2, 3}.issuperset(dimensions):
        number = next(i for i, dimension in enumerate(dimensions) if dimension not in (2, 3))
        raise InputError(
            f"an image has the shape (H, W), (H, W, C) or (C, H, W), found image {number} of {tuple(shapes[number])}"
        )
    if 2 in dimensions:
        flat = np.array(dimensions) == 2
        shapes = [(*s, 1)[:3] for s in shapes]
        strides = strides and [(*s, item // found.unit)[:3] for s in strides]
    if np.any(found.pillow):
        flat = flat | np.array(found.pillow)
    sides = _threes(shapes)
    return sides, contiguous_strides(sides, item) if strides is None else _threes(strides) * found.unit, flat


def _threes(numbers: list[Any]) -> Columns:
    return np.fromiter(chain.from_iterable(numbers), np.int64, 3 * len(numbers)).reshape(-1, 3)


def contiguous_strides(shapes: Columns, item: int) -> Columns:
    """Strides of images without gaps, (N, 3), in bytes."""
    strides = np.empty((len(shapes), 3), np.int64)
    strides[:, 2] = item
    np.multiply(shapes[:, 2], item, out=strides[:, 1])
    np.multiply(shapes[:, 1], strides[:, 1], out=strides[:, 0])
    return strides


def reach_of(shapes: Columns, strides: Columns, item: int, dense: bool) -> tuple[Any, Columns]:
    if dense:
        return 0, shapes[:, 0] * strides[:, 0]
    spans = (shapes - 1) * strides
    return np.minimum(spans, 0).sum(axis=1), np.maximum(spans, 0).sum(axis=1) + item


def by_axes(columns: Columns, last: Any, back: bool = False) -> Columns:
    """Columns in the order rows, columns, channels, or `back` from that to the images'."""
    axes = _OWN_AXES if back else _AXES
    if isinstance(last, bool):
        return columns if last else columns[:, axes[1]]
    return np.take_along_axis(columns, axes[np.where(last, 0, 1)], axis=1)


def _may_be_channels(sides: Columns) -> Any:
    return (sides == 3) | (sides == 1) | (sides == 4)


def _channels_last(shapes: Columns, source: str | None, flat: Any) -> Any:
    """For which images channels come last; the same for all where that is so. Of some (`flat`) it is known.

    Where both ends could be channels, as in three columns of pixels, the image is taken as the others of the list are.
    """
    if flat is False:
        ends = set(shapes[:, 2].tolist())
        if source or ends.isdisjoint(CHANNELS):
            return source == "HWC"
        if ends.issubset(CHANNELS) and np.minimum.reduce(shapes[:, 0]) > max(CHANNELS):
            return True
    last = np.full(len(shapes), source == "HWC") if source else _may_be_channels(shapes[:, 2])
    first = _may_be_channels(shapes[:, 0])
    both = last & first & np.logical_not(flat)
    unsaid = last & ~first & np.logical_not(flat)
    if source is None and both.any() and not unsaid.any():
        if (first & ~last).any():
            last = last & ~both
        else:
            number = int(np.argmax(both))
            hint_once(
                "images-source",
                f"image {number} of shape {tuple(shapes[number].tolist())} has what could be channels at both ends, "
                'and is read as (H, W, C). Say source="HWC" or "CHW"',
            )
    last = last | flat
    if last.all():
        return True
    return last if last.any() else False


def _checked_channels(
    said: Any, given: Columns, shapes: Columns, steps: Columns, pointers: Columns, item: int, dense: bool
) -> int:
    """The number of channels, after checking all images at once; `given` shapes are in the images' order of axes."""
    channels = int(shapes[0, 2])
    good = (
        channels in CHANNELS
        and not np.count_nonzero(shapes[:, 2] != channels)
        and np.minimum.reduce(given, None) > 0
        and np.maximum.reduce(given, None) <= MAX_SIDE
        and (dense or np.abs(steps[:, :2]).max() <= INT32_MAX)  # whose steps are good if their sides are
        and (item == 1 or not ((pointers % item).any() or (not dense and (steps % item).any())))
    )
    if not good:
        raise InputError(_describe(said, shapes, steps, pointers, item))
    return channels


def _describe(said: Any, shapes: Columns, steps: Columns, pointers: Columns, item: int) -> str:
    channels, sides = shapes[0, 2], shapes[:, :2]
    wrong = np.stack([
        ((sides < 1) | (sides > MAX_SIDE)).any(axis=1), ~_may_be_channels(shapes[:, 2]), shapes[:, 2] != channels,
        (np.abs(steps[:, :2]) > INT32_MAX).any(axis=1), (pointers % item != 0) | (steps % item != 0).any(axis=1),
    ])  # fmt: skip
    number = int(np.argmax(wrong.any(axis=0)))
    own, others = (f"{count} channel{'' if count == 1 else 's'}" for count in (shapes[number, 2], channels))
    words = (
        f"sides must lie between 1 and {MAX_SIDE} pixels",
        'channels must be 1, 3 or 4, last or first; source="HWC" or "CHW" says where they are',
        f"it has {own} and image 0 has {others}; make them alike, a grey one by numpy.dstack([image] * 3), those of "
        'Pillow by image.convert("RGB"), or say by source= where channels are',
        "its rows or pixels lie too far apart; pass a contiguous copy",
        f"its values don't lie at multiples of {item} bytes; pass a contiguous copy",
    )
    return f"image {number} of shape {tuple(int(n) for n in said[number])}: {words[int(np.argmax(wrong[:, number]))]}"
