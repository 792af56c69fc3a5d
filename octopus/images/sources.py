"""The images of a call: what they all are, and where each of them lies."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus.arrays.checks import ORDERS, check_choice, check_order, hint_once
from octopus.arrays.pillow import Raster
from octopus.arrays.views import ArrayView, dtype_name, view
from octopus.errors import InputError
from octopus.images.check import CHANNELS, check_dtype, check_images, may_be_channels
from octopus.images.found import Columns, Found, look
from octopus.ragged.batch import RaggedBatch

LAYOUTS = ("HWC", "CHW")
# Which axes of an image are its rows, its columns and its channels.
_AXES = np.array([[0, 1, 2], [1, 2, 0]])


@dataclass
class Geometry:
    """All of images but where they lie.

    Attributes
    ----------
    dtype : str
    item : int
        Bytes of a value.
    channels : int
    order : str
        Of the images' channels, one of `ORDERS`.
    shapes : ndarray, (N, 3), int64
        As the images have them; of two-dimensional ones the third side is 1.
    last : ndarray, (N,), bool, or bool
        Whether an image's channels come last.
    strides : ndarray, (N, 3), int64
        In bytes, as `shapes`.
    sides : ndarray, (N, 2), int64
        Heights and widths.
    steps : ndarray, (N, 3), int64
        Bytes from row to row, pixel to pixel, channel to channel.
    dense : bool
        Whether all images are known to be contiguous.
    reach : pair of ndarray
        Bytes from an image's address to its first one, 0 for all or (N,), and to the one after its last, (N,).
    """

    dtype: str
    item: int
    channels: int
    order: str
    shapes: Columns
    last: Any
    strides: Columns
    sides: Columns
    steps: Columns
    dense: bool
    reach: tuple[Any, Columns]

    @property
    def compact(self) -> Any:
        """Which images lie within as many bytes as they have values, in whatever order of their axes, (N,) or True."""
        below, above = self.reach
        return self.dense or (below == 0) & (above <= self.shapes.prod(axis=1) * self.item)

    @property
    def spread(self) -> NDArray[np.bool_]:
        """Which images are three values in pixels of four bytes and nothing else, as Pillow stores RGB, (N,)."""
        apart = (self.steps[:, 1:] == (4, 1)).all(axis=1) & (self.steps[:, 0] == 4 * self.sides[:, 1])
        found: NDArray[np.bool_] = apart & (self.channels == 3 and self.item == 1)
        return found

    @property
    def held(self) -> int:
        """Values of a pixel in memory: a fourth one that is left out, too."""
        return len(self.order) if self.channels == 3 else self.channels

    @property
    def first(self) -> Columns | None:
        """Bytes from an image's address to its first channel, (N,); None if it lies there."""
        return None if self.order[0] == "R" else 2 * self.steps[:, 2]

    @property
    def planes(self) -> Columns:
        """Bytes from channel to channel in the order of the result, (N,)."""
        planes: Columns = self.steps[:, 2] if self.order[0] == "R" else -self.steps[:, 2]
        return planes


@dataclass(slots=True)
class Sources:
    """Images of one dtype and number of channels, on one side.

    Attributes
    ----------
    images, model, views, pointers, shapes
        As of `Found`.
    geometry : Geometry
        Perhaps that of other images, which differ in where they lie alone.
    """

    images: Any
    model: ArrayView
    views: list[ArrayView]
    pointers: Columns
    shapes: Any
    geometry: Geometry

    def __len__(self) -> int:
        return len(self.pointers)

    @property
    def sides(self) -> Columns:
        """Heights and widths, (N, 2)."""
        return self.geometry.sides

    def joined(self) -> Sources:
        """The same images, with a copy of each of Pillow's whose rows lie in several pieces."""
        broken = self.broken()
        if not broken:
            return self
        images, pointers = list(self.images), self.pointers.copy()
        for number in broken:
            images[number] = images[number].array
            pointers[number] = view(images[number], "image").pointer
        return replace(self, images=images, pointers=pointers)

    def broken(self) -> dict[int, tuple[Columns, Columns]]:
        """Addresses and bytes of the pieces of each image of Pillow whose rows lie in several."""
        if isinstance(self.images, RaggedBatch):
            return {}
        rasters = ((number, image) for number, image in enumerate(self.images) if type(image) is Raster)
        return {number: image.runs for number, image in rasters if image.runs is not None}

    def meeting(self, first: int, last: int) -> Any:
        """Which images have bytes from the address `first` to before `last`, (N,)."""
        below, above = self.geometry.reach
        return (self.pointers < last - below) & (self.pointers > first - above)


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
    found = look(images)
    return Sources(*found[:5], geometry_of(found, source, channels))


def geometry_of(found: Found, source: Any = None, channels: Any = "RGB") -> Geometry:
    """Check images, and tell all of them but where they lie; the same for others with the same `key`.

    Raises
    ------
    InputError
        As `sources_of`.
    """
    check_choice("channels", channels, ORDERS)
    if source is not None:
        check_choice("source", source, LAYOUTS)
    check_dtype(found.model)
    item = found.model.dtype.itemsize
    shapes, strides, flat = _columns(found, item)
    dense = found.strides is None
    last = _channels_last(shapes, source, flat)
    ordered, steps = by_axes(shapes, last), by_axes(strides, last)
    number = check_images(shapes, ordered, steps, found.pointers, item, dense)
    return Geometry(
        dtype_name(found.model.dtype), item, check_order(channels, number, "images"), channels, shapes, last, strides,
        ordered[:, :2], steps, dense, reach_of(shapes, strides, item, dense),
    )  # fmt: skip


def _columns(found: Found, item: int) -> tuple[Columns, Columns, Any]:
    """Shapes and strides in bytes, (N, 3) each; images (H, W) become (H, W, 1).

    Third, as of `_flat`, of which images it is known that channels come last: of these, and of Pillow's.
    """
    shapes, strides, flat = found.shapes, found.strides, _flat(found.shapes)
    if flat is not False:
        if strides is not None:
            strides = [(*s, item // found.unit) if len(s) == 2 else s for s in strides]
        if type(shapes) is np.ndarray:
            shapes = np.pad(shapes, ((0, 0), (0, 1)), constant_values=1)
        else:
            shapes = [(*s, 1) if len(s) == 2 else s for s in shapes]
    rasters = [] if isinstance(found.images, RaggedBatch) else [type(image) is Raster for image in found.images]
    flat = flat | np.array(rasters) if any(rasters) else flat
    sides = _threes(shapes)
    return sides, contiguous_strides(sides, item) if strides is None else _threes(strides) * found.unit, flat


def _flat(shapes: Any) -> Any:
    """Which images have two dimensions, (N,), or True for all; False if none has."""
    if type(shapes) is np.ndarray:
        return shapes.shape[1] == 2
    dimensions = set(map(len, shapes))
    if dimensions == {3}:
        return False
    if not dimensions <= {2, 3}:
        number = next(i for i, shape in enumerate(shapes) if len(shape) not in (2, 3))
        raise InputError(
            f"an image has the shape (H, W), (H, W, C) or (C, H, W), found image {number} of {tuple(shapes[number])}"
        )
    return np.array([len(shape) == 2 for shape in shapes])


def _threes(numbers: Any) -> Columns:
    """Tuples of three integers as rows."""
    if type(numbers) is np.ndarray:
        return numbers
    count = len(numbers)
    return np.fromiter(chain.from_iterable(numbers), np.int64, 3 * count).reshape(count, 3)


def contiguous_strides(shapes: Columns, item: int) -> Columns:
    """Strides of images without gaps, (N, 3), in bytes."""
    strides = np.empty((len(shapes), 3), np.int64)
    strides[:, 2] = item
    np.multiply(shapes[:, 2], item, out=strides[:, 1])
    np.multiply(shapes[:, 1], strides[:, 1], out=strides[:, 0])
    return strides


def reach_of(shapes: Columns, strides: Columns, item: int, dense: bool) -> tuple[Any, Columns]:
    """As of `Geometry`."""
    if dense:
        return 0, shapes[:, 0] * strides[:, 0]
    spans = (shapes - 1) * strides
    return np.minimum(spans, 0).sum(axis=1), np.maximum(spans, 0).sum(axis=1) + item


def _channels_last(shapes: Columns, source: str | None, flat: Any) -> Any:
    """For which images channels come last; the same for all where that is so.

    Where both ends could be channels, as in three columns of pixels, the image is taken as the others of the list are.
    Of some (`flat`) it is known.
    """
    if flat is False:
        ends = set(shapes[:, 2].tolist())
        if source or ends.isdisjoint(CHANNELS):
            return source == "HWC"
        if ends.issubset(CHANNELS) and np.minimum.reduce(shapes[:, 0]) > max(CHANNELS):
            return True
    last = np.full(len(shapes), source == "HWC") if source else may_be_channels(shapes[:, 2])
    first = may_be_channels(shapes[:, 0])
    both = last & first & np.logical_not(flat)
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


def by_axes(columns: Columns, last: Any) -> Columns:
    """Columns in the order rows, columns, channels."""
    if isinstance(last, bool):
        return columns if last else columns[:, _AXES[1]]
    return np.take_along_axis(columns, _AXES[np.where(last, 0, 1)], axis=1)
