"""The images of a call: what they all are, and where each of them lies."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus.arrays.channels import ORDERS, check_order
from octopus.arrays.checks import check_choice, hint_once
from octopus.arrays.views import ArrayView, dtype_name, view
from octopus.backends.cpu import compile
from octopus.backends.cpu.threads import launch_telling, share
from octopus.errors import InputError
from octopus.images.check import CHANNELS, check_dtype, check_images, may_be_channels
from octopus.images.found import Columns, Found, look
from octopus.ragged.batch import RaggedBatch

LAYOUTS = ("HWC", "CHW")
ALIGNMENT = 128  # of images that are packed for an upload: a line of the cache
PIECE_BYTES = 1 << 19  # that a thread copies at a time
# To copy for each further thread: on an H200's host 6 MB take less time by two threads than by twelve, 25 MB by seven.
THREAD_BYTES = 1 << 22
MOST_COPYING = 12  # threads, which are enough for a host's memory
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
    def gapless(self) -> bool:
        """Whether each image takes its bytes and no others, in whatever order of its axes."""
        below, above = self.reach
        return self.dense or (
            not np.any(below) and np.array_equal(above, self.shapes.prod(axis=1) * self.item)
        )

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
    images, model, views, pointers
        As of `Found`.
    geometry : Geometry
        Perhaps that of other images, which differ in where they lie alone.
    """

    images: Any
    model: ArrayView
    views: list[ArrayView]
    pointers: Columns
    geometry: Geometry

    def __len__(self) -> int:
        return len(self.pointers)

    @property
    def sides(self) -> Columns:
        """Heights and widths, (N, 2)."""
        return self.geometry.sides

    def packed(self) -> tuple[Sources, int]:
        """The same images one after the other, `pointers` counted from 0, and the bytes that they take.

        Those without gaps keep the order of their axes.
        """
        shape = self.geometry
        if not shape.gapless:
            strides = _contiguous(shape.shapes, shape.item)
            steps, reach = _by_axes(strides, shape.last), _reach(shape.shapes, strides, shape.item, True)
            shape = replace(shape, strides=strides, steps=steps, dense=True, reach=reach)
        sizes = shape.reach[1]
        if not isinstance(self.images, RaggedBatch):
            sizes = -(-sizes // ALIGNMENT) * ALIGNMENT
        ends = np.cumsum(sizes)
        return Sources(self.images, self.model, [], ends - sizes, shape), int(ends[-1])

    def meeting(self, first: int, last: int) -> Any:
        """Which images have bytes from the address `first` to before `last`, (N,)."""
        below, above = self.geometry.reach
        return (self.pointers < last - below) & (self.pointers > first - above)

    def copy_to(
        self,
        memory: NDArray[np.uint8],
        begins: Columns,
        told: Callable[[int], Any] = lambda end: None,
        as_they_lie: bool = False,
    ) -> None:
        """Copy images on the host into bytes; `begins` says where each of them begins, in ascending order.

        Each becomes contiguous, or with `as_they_lie` what `packed` says of it.

        Much of it by several threads: one alone is slower than the bus to a GPU. Where bytes stay in their order `told`
        is then called now and then, in the calling thread, with the number of the first bytes that need not be waited
        for.
        """
        nbytes = int(self.geometry.shapes.prod(axis=1).sum()) * self.geometry.item
        threads = min(MOST_COPYING, 1 + nbytes // THREAD_BYTES)
        if self.geometry.dense or (as_they_lie and self.geometry.gapless):
            spans = self._spans(begins)
            if threads == 1:
                base = memory.ctypes.data
                for begin, pointer, size in zip(*(column.tolist() for column in spans), strict=True):
                    ctypes.memmove(base + begin, pointer, size)
                return
            goals, *others = table = _cut(*spans)
            ends, goals[:] = goals + table[2], goals + memory.ctypes.data
            addresses = (row.ctypes.data for row in (goals, *others))
            launch_telling(
                packing_kernel(), table.shape[1], *addresses, threads=threads,
                told=lambda done: told(int(ends[done - 1])),
            )  # fmt: skip
            return
        copies = []
        for image, begin, shape in zip(
            self.images, begins.tolist(), self.geometry.shapes.tolist(), strict=True
        ):
            pixels = view(image, "image").numpy()
            goal = memory[begin : begin + pixels.nbytes].view(pixels.dtype).reshape(shape[: pixels.ndim])
            copies.append(partial(np.copyto, goal, pixels))
        share(copies, threads)

    def _spans(self, begins: Columns) -> tuple[Columns, Columns, Columns]:
        """Where each image goes in memory, its address and its bytes, (N,); a batch is one span, here as there."""
        sizes, pointers = self.geometry.reach[1], self.pointers
        if isinstance(self.images, RaggedBatch):
            begins, pointers, sizes = begins[:1], pointers[:1], sizes.sum(keepdims=True)
        return begins, pointers, sizes


def _cut(begins: Columns, pointers: Columns, sizes: Columns) -> Columns:
    """The same of each part of a span, at most `PIECE_BYTES`; (3, P)."""
    counts = -(-sizes // PIECE_BYTES)
    first = np.cumsum(counts) - counts
    span = np.repeat(np.arange(len(sizes)), counts)
    start = (np.arange(len(span)) - first[span]) * PIECE_BYTES
    return np.stack(
        [begins[span] + start, pointers[span] + start, np.minimum(sizes[span] - start, PIECE_BYTES)]
    )


def packing_kernel() -> Callable[[int], Any]:
    """What packs images for an upload; loaded, or compiled once per machine."""

    def build() -> Callable[..., None]:
        from octopus.kernels.cpu import copies

        return copies.build()

    return compile.load("copies", build)


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
    return Sources(*found[:4], geometry_of(found, source, channels))


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
    ordered, steps = _by_axes(shapes, last), _by_axes(strides, last)
    number = check_images(shapes, ordered, steps, found.pointers, item, dense)
    return Geometry(
        dtype_name(found.model.dtype), item, check_order(channels, number, "images"), channels, shapes, last, strides,
        ordered[:, :2], steps, dense, _reach(shapes, strides, item, dense),
    )  # fmt: skip


def _columns(found: Found, item: int) -> tuple[Columns, Columns, Any]:
    """Shapes and strides in bytes, (N, 3) each; images (H, W) become (H, W, 1), and the third says which they are."""
    shapes, strides, flat = found.shapes, found.strides, _flat(found.shapes)
    if flat is not False:
        if strides is not None:
            strides = [(*s, item // found.unit) if len(s) == 2 else s for s in strides]
        if type(shapes) is np.ndarray:
            shapes = np.pad(shapes, ((0, 0), (0, 1)), constant_values=1)
        else:
            shapes = [(*s, 1) if len(s) == 2 else s for s in shapes]
    sides = _threes(shapes)
    return sides, _contiguous(sides, item) if strides is None else _threes(strides) * found.unit, flat


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


def _contiguous(shapes: Columns, item: int) -> Columns:
    """Strides of images without gaps, (N, 3), in bytes."""
    strides = np.empty((len(shapes), 3), np.int64)
    strides[:, 2] = item
    np.multiply(shapes[:, 2], item, out=strides[:, 1])
    np.multiply(shapes[:, 1], strides[:, 1], out=strides[:, 0])
    return strides


def _reach(shapes: Columns, strides: Columns, item: int, dense: bool) -> tuple[Any, Columns]:
    """As of `Geometry`."""
    if dense:
        return 0, shapes[:, 0] * strides[:, 0]
    spans = (shapes - 1) * strides
    return np.minimum(spans, 0).sum(axis=1), np.maximum(spans, 0).sum(axis=1) + item


def _channels_last(shapes: Columns, source: str | None, flat: Any) -> Any:
    """For which images channels come last; the same for all where that is so.

    Where both ends could be channels, as in three columns of pixels, the image is taken as the others of the list are.
    Of images of two dimensions (`flat`) the third was added last.
    """
    if flat is False:
        ends = set(shapes[:, 2].tolist())
        if source or ends.isdisjoint(CHANNELS):
            return source == "HWC"
        if ends.issubset(CHANNELS) and np.minimum.reduce(shapes[:, 0]) > max(CHANNELS):
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
