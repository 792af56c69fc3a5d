"""What each item of a run may have of its own beside its box: a frame, a flip, a normalisation; and how many count."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from octopus.arrays.checks import check_readable, is_count
from octopus.arrays.views import ArrayView, dtype_name, view, view_of
from octopus.crop.check import check_frame_index, check_host_index
from octopus.errors import InputError, shown
from octopus.kernels.cuda.tiles import MAX_ITEMS

COUNT_DTYPES = ("int32", "int64")
NAMES = ("flip", "mean", "std", "count")
FLIPS = 4  # none, left and right, above and below, both


class Items(NamedTuple):
    """The arrays of a run, one entry per item.

    Attributes
    ----------
    frame_index : ArrayView, (N,), integer
        Frame of each.
    flip : ArrayView, (N,), integer or bool
    mean, std : ArrayView, (N, C), float
    counted : ArrayView, () or (1,), int32 or int64
        How many of them are made; on the GPU.
    """

    frame_index: ArrayView | None = None
    flip: ArrayView | None = None
    mean: ArrayView | None = None
    std: ArrayView | None = None
    counted: ArrayView | None = None

    @property
    def own(self) -> bool:
        """Whether the kernel has to be one that knows of more than an index."""
        return self is not NONE and any(array is not None for array in self[1:])

    @property
    def named(self) -> dict[str, ArrayView | None]:
        """By what the caller calls them."""
        return {} if self is NONE else {"frame_index": self.frame_index, **dict(zip(NAMES, self[1:], strict=True))}

    @property
    def arrays(self) -> Iterator[ArrayView]:
        """Those that are given."""
        return (array for array in self if array is not None)

    @property
    def names(self) -> tuple[str, ...]:
        """Keyword arguments, which are to be True, of the GPU's kernel for what lies there."""
        given = {"counted": self.counted, "flipped": self.flip, "own": self.mean}
        return tuple(name for name, array in given.items() if array is not None)

    @property
    def index_dtype(self) -> str:
        """In which the GPU's kernel reads the frame index."""
        index = self.frame_index
        return "int32" if index is None or index.device == "cpu" else dtype_name(index.dtype)

    def part(self, first: int, last: int) -> Items:
        """Those of the items from number `first` to before `last`; a count is for all."""
        if self is NONE:
            return self
        parts = self._replace(counted=None)._asdict().items()
        made = {name: None if array is None else array.part(first, last) for name, array in parts}
        return Items(**made | {"counted": self.counted})

    def head(self, count: int) -> Items:
        """Those of the first items."""
        if self is NONE:
            return self
        first = {name: None if array is None else array.head(count) for name, array in self._asdict().items()}
        return Items(**first | {"counted": self.counted})


NONE = Items()


def items_of(
    frame_index: Any, flip: Any = None, mean: Any = None, std: Any = None, count: Any = None
) -> tuple[Items, int | None]:
    """The arrays of a call, and a count that is known to the host.

    Raises
    ------
    InputError
        If one is no array.
    """
    if frame_index is None and flip is None and mean is None and std is None and count is None:
        return NONE, None
    given = {"frame_index": frame_index, "flip": flip, "mean": mean, "std": std}
    arrays = {name: None if value is None else view_of(value, name) for name, value in given.items()}
    items = Items(**arrays)
    if count is None or is_count(count):
        return items, None if count is None else int(count)
    if isinstance(count, (bool, float)):
        raise InputError(f"count must be one integer, found {shown(count)}")
    counted = view(count, "count")
    if counted.device == "cuda":
        return items._replace(counted=counted), None
    known = counted.numpy()
    if known.size != 1 or known.dtype.kind not in "iu":
        raise InputError(f"count must be one integer, found {shown(count)}")
    return items, int(known.ravel()[0])


def own_normalisation(mean: Any, std: Any, count: int, channels: int) -> bool:
    """Whether means and standard deviations are those of each item.

    Raises
    ------
    InputError
        If only one of them is.
    """
    mean_is, std_is = (value is not None and _are_of_items(value, count, channels) for value in (mean, std))
    if mean_is != std_is:
        raise InputError(
            f"mean and std of each item go together, two arrays of shape ({count}, {channels}); found only "
            f"{'mean' if mean_is else 'std'} to be one"
        )
    return mean_is


def _are_of_items(value: Any, count: int, channels: int) -> bool:
    """Whether means or standard deviations have a row for each item; a single row on the host is that of all."""
    if isinstance(value, (list, tuple)):
        try:
            return count > 1 and len(value) == count and all(np.shape(row) == (channels,) for row in value)
        except ValueError:  # a row holds lists of different length
            return False
    shape = getattr(value, "shape", None)
    if shape is None or tuple(shape) != (count, channels):
        return False
    return count != 1 or view_of(value, "mean").device == "cuda"


def check_items(items: Items, frame: ArrayView, boxes: ArrayView, channels: int, device: str) -> None:
    """Refuse what doesn't fit the boxes, or lies where it can't be read.

    Raises
    ------
    InputError
        Says which of the arrays is wrong, and what it should be.
    """
    count = boxes.shape[0]
    check_frame_index(items.frame_index, frame, count, boxes.device)
    if not items.own:
        return
    for name, array in zip(NAMES, items[1:], strict=True):
        if array is not None and array.device == "cuda" and boxes.device == "cpu":
            where = "the CPU works" if device == "cpu" else "the boxes are on the host"
            raise InputError(f"{name} is on the GPU but {where}; keep both on one side")
    if items.flip is not None:
        _check_flip(items.flip, count)
    if (items.mean is None) != (items.std is None):
        raise InputError("mean and std of each item go together; give both")
    for name, array in (("mean", items.mean), ("std", items.std)):
        if array is None:
            continue
        if array.shape != (count, channels) or array.dtype.kind not in "iuf":
            raise InputError(
                f"{name} of each item must have shape ({count}, {channels}), numbers, found {array.dtype} of shape "
                f"{array.shape}"
            )
        if array.device == "cuda":
            check_readable(array, name, ("float32",))
    if items.counted is not None:
        _check_count(items.counted, count)


def _check_flip(flip: ArrayView, count: int) -> None:
    foreign = flip.device == "cuda" and not flip.dtype.isnative
    if flip.shape != (count,) or flip.dtype.kind not in "biu" or foreign:
        raise InputError(
            f"flip must hold one integer per box, shape ({count},), found {flip.dtype} of shape {flip.shape}"
        )
    if flip.device == "cuda" and flip.strides[0] < 0:
        raise InputError(f"flip on the GPU must lie forwards, found a stride of {flip.strides[0]} bytes")


def _check_count(counted: ArrayView, most: int) -> None:
    if counted.shape not in ((), (1,)):
        raise InputError(f"count must be one integer, found an array of shape {counted.shape}")
    check_readable(counted, "count", COUNT_DTYPES)
    if most > MAX_ITEMS:
        raise InputError(f"a count on the GPU is for up to {MAX_ITEMS} boxes, found {most}; split the batch")


def check_known_count(count: int, most: int) -> None:
    """A count on the host is of the boxes."""
    if not 0 <= count <= most:
        raise InputError(f"count must lie between 0 and the {most} boxes, found {count}")


class HostItems(NamedTuple):
    """What of `Items` lies on the host, as the kernels read it: copies that nobody changes, or None."""

    frame_index: np.ndarray | None
    flip: np.ndarray | None
    mean: np.ndarray | None
    std: np.ndarray | None

    @property
    def any(self) -> bool:
        """Whether anything does."""
        return self is not NOTHING and any(array is not None for array in self)


NOTHING = HostItems(None, None, None, None)


def on_host(items: Items, frames: int) -> HostItems:
    """The arrays of a run that lie on the host, after checking all of their values.

    Parameters
    ----------
    frames : int
        Of which `items.frame_index` chooses.

    Raises
    ------
    InputError
        Names the first value that is wrong.
    """
    if items is NONE:
        return NOTHING
    index, flip, mean, std = (None if array is None or array.device != "cpu" else array.numpy() for array in items[:4])
    if index is not None:
        index = check_host_index(index, frames)
    if flip is not None:
        _check_values("flip", flip, (flip >= 0) & (flip < FLIPS), "0, 1, 2 or 3")
        flip = flip.astype(np.uint8)
    if mean is not None:
        with np.errstate(over="ignore"):
            mean = mean.astype(np.float32)
        _check_values("mean", mean, np.isfinite(mean), "finite as float32")
    if std is not None:
        with np.errstate(over="ignore", divide="ignore"):
            std = std.astype(np.float32)
            _check_values("std", std, np.isfinite(1 / std) & (std > 0) & (std < np.inf), "positive as float32")
    if mean is not None and std is not None:
        with np.errstate(over="ignore"):
            _check_values("mean", mean, np.isfinite(mean / std), "within float32 once divided by std")
    return HostItems(index, flip, mean, std)


def _check_values(name: str, values: np.ndarray, good: np.ndarray, right: str) -> None:
    if not good.all():
        first = tuple(int(i) for i in np.argwhere(~good)[0])
        place = ", ".join(map(str, first))
        raise InputError(
            f"{name}[{place}] = {values[first]} must be {right}; wrong entries: {int((~good).sum())} of {values.size}"
        )
