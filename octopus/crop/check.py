"""What one run of a plan is given: boxes, frame index and memory, checked before any work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from octopus.arrays.checks import INT32_MAX, check_choice, check_readable, is_count, of_dtype
from octopus.arrays.launch import Boxes, boxes_are_good
from octopus.arrays.views import ArrayView, dtype_name, view, view_of
from octopus.crop.frame import frame_spec
from octopus.crop.spec import CropSpec
from octopus.errors import InputError, shown
from octopus.kernels.geometry import MAX_BOX_SIDE, MAX_COORDINATE

BOX_DTYPES = ("int32", "int64", "float32", "float64")
BOX_NUMBERS = {np.dtype(name): number for number, name in enumerate(BOX_DTYPES)}  # in the machine's byte order
RULES = {"clip": 0, "error": 1, "pad": 2}  # `outside`, as `kernels.cpu.launches` knows it
INDEX_DTYPES = ("int32", "int64")
BOX_SHAPES = ((4,), (2, 3))  # of one box, and of one affine map


def check_host_boxes(boxes: np.ndarray | ArrayView, width: int, height: int, outside: str = "error") -> np.ndarray:
    """Boxes on the host as float32, a copy, not cut, after checking all of them.

    Parameters
    ----------
    boxes : ndarray or its view, (N, 4), integer or float
    width, height : int
        Of the frame in pixels.
    outside : {"clip", "error", "pad"}
        What happens to a box that reaches beyond it, see `octopus.crop_resize`.

    Raises
    ------
    InputError
        Names the first wrong box: not (N, 4), not a number, empty, too large, or further outside than it may be.
    """
    check_box_shape(boxes.shape, boxes.dtype)
    given = view(boxes, "boxes")
    if not is_readable(given):
        with np.errstate(over="ignore"):  # what is beyond float32 becomes infinite, and is refused as such
            given = view(given.numpy().astype(np.float32), "boxes")
    made = np.empty((given.shape[0], 4), np.float32)  # no other thread changes it while kernels read it
    if not boxes_are_good(given, BOX_NUMBERS[given.dtype], width, height, RULES[outside], made):
        raise InputError(_describe_bad_boxes(view(boxes, "boxes").numpy(), made, width, height, outside))
    return made


def is_readable(boxes: ArrayView) -> bool:
    """Whether compiled code reads boxes from the host as they are."""
    return boxes.dtype in BOX_NUMBERS and not boxes.pointer % boxes.dtype.itemsize


def _cut(columns: np.ndarray, width: int, height: int) -> np.ndarray:
    """Boxes (4, N) cut at the frame."""
    limits = np.array([[width], [height], [width], [height]], np.float32)
    result: np.ndarray = np.clip(columns, np.float32(0), limits)
    return result


def _too_large(columns: np.ndarray) -> np.ndarray:
    """Which boxes (4, N) have a side on which single precision is too coarse."""
    sides: np.ndarray = np.maximum(*(columns[2:] - columns[:2]))
    return sides > MAX_BOX_SIDE


def check_host_maps(
    maps: np.ndarray | ArrayView, width: int, height: int, size: tuple[int, int], outside: str = "clip"
) -> np.ndarray:
    """Affine maps on the host as float32, a copy, after checking all of them.

    Parameters
    ----------
    maps : ndarray or its view, (N, 2, 3), integer or float
        From a pixel of the result to one of the frame, both counted from the centre of the first.
    width, height : int
        Of the frame in pixels.
    size : (int, int)
        Height and width of the result.
    outside : {"clip", "error", "pad"}
        With "error" no sample may lie beyond the frame.

    Raises
    ------
    InputError
        Names the first wrong map: not a number, or with samples further outside than they may be.
    """
    check_box_shape(maps.shape, maps.dtype)
    given = view(maps, "boxes").numpy()
    with np.errstate(over="ignore", invalid="ignore"):
        result = np.array(given, np.float32, order="C")
        corners = np.array([[x, y, 1] for x in (0, size[1] - 1) for y in (0, size[0] - 1)], np.float64)
        sides = np.array([[width], [height]])
        positions = result.astype(np.float64) @ corners.T  # (N, 2, 4): a map's extremes are at the corners
        reached = (np.abs(result) * np.array([size[1] - 1, size[0] - 1, 1], np.float32)).sum(axis=2)
        reasons = [
            (~np.isfinite(result).all(axis=(1, 2)), "is not a number or infinite as float32"),
            (~(reached <= MAX_COORDINATE).all(axis=1), f"reaches further than {MAX_COORDINATE} pixels"),
        ]
        if outside == "error":
            beyond = (positions < -0.5) | (positions > sides - 0.5)
            why = f'takes samples outside the frame of {width}x{height} pixels; ask for outside="clip" or "pad"'
            reasons.append((beyond.any(axis=(1, 2)), why))
    bad = np.logical_or.reduce([found for found, _ in reasons])
    if bad.any():
        first = int(np.argmax(bad))
        why = next(words for found, words in reasons if found[first])
        numbers = ", ".join(f"{number:.9g}" for number in given[first].ravel().tolist())
        raise InputError(f"map {first} = ({numbers}) {why}; wrong maps: {int(bad.sum())} of {len(bad)}")
    return result


def are_maps(shape: tuple[int, ...]) -> bool:
    """Whether boxes of a good shape are affine maps."""
    return len(shape) == 3


def check_box_shape(shape: tuple[int, ...], dtype: np.dtype) -> None:
    """Boxes are (N, 4) numbers, affine maps (N, 2, 3)."""
    if shape[1:] not in BOX_SHAPES:
        raise InputError(f"boxes must have shape (N, 4), found {shape}; {_remedy(shape)}")
    if dtype.kind not in "iuf":
        raise InputError(f"boxes must be integers or floats, found {dtype}")


def _remedy(shape: tuple[int, ...]) -> str:
    if shape == (4,):
        return "a single box is boxes[None]"
    if len(shape) == 2 and shape[1] > 4:
        return "leave out what follows the corners: boxes[:, :4]"
    if shape == (2, 3):
        return "a single affine map is boxes[None]"
    return "affine maps have (N, 2, 3), no boxes are numpy.empty((0, 4))"


def check_box_dtype(name: str) -> None:
    """The kernel reads boxes of a few dtypes."""
    check_choice("box_dtype", name, BOX_DTYPES)


def check_one_shape(shape: Any) -> None:
    """A plan's first boxes are of one kind."""
    if not isinstance(shape, (tuple, list)) or tuple(shape) not in BOX_SHAPES:
        raise InputError(f"box_shape must be (4,) or, for affine maps, (2, 3), found {shown(shape)}")


def check_gpu_boxes(boxes: ArrayView) -> None:
    """Boxes that the host doesn't read must be contiguous and of a dtype that the kernel reads."""
    if not boxes.contiguous:
        raise InputError(f"boxes on the GPU must be contiguous, found strides {boxes.strides} bytes")
    if not of_dtype(boxes, BOX_DTYPES):
        raise InputError(f"boxes on the GPU must be one of {', '.join(BOX_DTYPES)}, found {boxes.dtype}")


def check_frame_index(index: ArrayView | None, frame: ArrayView, count: int, box_device: str) -> None:
    """Several frames need the number of one per box, a single frame takes none."""
    several = len(frame.shape) == 4
    if index is None and not several:
        return
    if index is None or not several:
        raise InputError(
            "several frames (F, H, W, C) need frame_index, the frame of each box, and a single frame takes none; found "
            f"{'none' if index is None else 'one'} for a frame of shape {frame.shape}"
        )
    if index.shape != (count,) or index.dtype.kind not in "iu":
        raise InputError(
            f"frame_index must hold one integer per box, shape ({count},), found {index.dtype} of shape {index.shape}"
        )
    if index.device == "cpu":
        return
    if box_device == "cpu":
        raise InputError("frame_index is on the GPU but the boxes are on the host; keep both on one side")
    check_readable(index, "frame_index", INDEX_DTYPES)


def check_host_index(index: np.ndarray, frames: int) -> np.ndarray:
    """A frame index on the host as int32, a copy, after checking all of it.

    Raises
    ------
    InputError
        Names the first that is not in [0, `frames`).
    """
    index = np.array(index)  # nobody changes it while it is checked, and read by the kernels
    good = (index >= 0) & (index < frames)
    if not good.all():
        first = int(np.argmin(good))
        raise InputError(
            f"frame_index[{first}] = {index[first]} but there are {frames} frames, counted from 0; "
            f"wrong entries: {int((~good).sum())} of {len(index)}"
        )
    return index.astype(np.int32, copy=False)


def check_index_dtype(name: str) -> None:
    """The kernel reads a frame index of a few dtypes."""
    check_choice("index_dtype", name, INDEX_DTYPES)


def _describe_bad_boxes(given: np.ndarray, boxes: np.ndarray, width: int, height: int, outside: str) -> str:
    """Names the first bad box, with the numbers as the caller gave them, and says how many there are."""
    with np.errstate(invalid="ignore", over="ignore"):
        reasons = _reasons(boxes.T, width, height, outside)
    bad = np.logical_or.reduce([found for found, _ in reasons])
    first = int(np.argmax(bad))
    why = next(words for found, words in reasons if found[first])
    x1, y1, x2, y2 = given[first].tolist()
    return (
        f"box {first} = ({x1:.9g}, {y1:.9g}, {x2:.9g}, {y2:.9g}) {why}; wrong boxes: {int(bad.sum())} of {len(boxes)}"
    )


def _reasons(columns: np.ndarray, width: int, height: int, outside: str) -> list[tuple[np.ndarray, str]]:
    """What may be wrong with boxes (4, N), the first that counts first: for which boxes it is so, and in words."""
    x1, y1, x2, y2 = columns
    frame = f"the frame of {width}x{height} pixels"
    beyond = (x1 < 0) | (y1 < 0) | (x2 > width) | (y2 > height)
    apart = (x1 >= width) | (y1 >= height) | (x2 <= 0) | (y2 <= 0)
    by_outside = {
        "error": (beyond, f'reaches outside {frame}; clip it first, or ask for outside="clip" or "pad"'),
        "clip": (apart, f'lies outside {frame}, all of it; leave it out, or ask for outside="pad"'),
        "pad": (abs(columns).max(axis=0) > MAX_COORDINATE, f"reaches further than {MAX_COORDINATE} pixels"),
    }
    side = _too_large(columns if outside == "pad" else _cut(columns, width, height))
    return [
        (~np.isfinite(columns).all(axis=0), "is not a number or infinite as float32"),
        (~((x1 < x2) & (y1 < y2)), "is empty as float32 (x1 < x2 and y1 < y2 are required)"),
        by_outside[outside],
        (
            side,
            f"has a side of more than {MAX_BOX_SIDE} pixels, which float32 can't sample exactly; pass several smaller "
            "boxes, or a reduced copy of the frame with boxes to match",
        ),
    ]


def check_count(spec: CropSpec, count: int) -> None:
    """The grid of a launch must stay within 32-bit arithmetic."""
    if count > INT32_MAX // spec.options.size[0]:
        raise InputError(f"{count} boxes are more than one launch can address; split the batch")


def check_planned_frame(frame: ArrayView, spec: CropSpec, model: ArrayView, staged: bool) -> None:
    """A frame must be like `model`, for which the plan was made; no larger where a copy goes to the GPU (`staged`)."""
    kind = frame_spec(frame, spec.options.channels)
    found = (frame.device, kind.dtype, kind.channels, len(frame.shape))
    planned = (model.device, spec.frame.dtype, spec.frame.channels, len(model.shape))
    if found != planned:
        raise InputError(f"the plan is for frames of (side, dtype, channels, dimensions) {planned}, found {found}")
    if staged and frame.nbytes > model.nbytes:
        raise InputError(
            f"the plan holds frames of up to {model.nbytes} bytes, found {frame.nbytes}; make a larger plan"
        )


def check_planned_boxes(boxes: ArrayView, max_boxes: int, device: str) -> None:
    """Boxes must be such as the plan's `device` reads, and no more than it has room for."""
    check_box_shape(boxes.shape, boxes.dtype)
    if boxes.shape[0] > max_boxes:
        raise InputError(f"the plan is for {max_boxes} boxes, found {boxes.shape[0]}; make a larger plan")
    if boxes.device == "cuda" and device == "cpu":
        raise InputError("boxes are on the GPU but the CPU was asked to work; copy them to the host")
    if boxes.device == "cuda":
        check_gpu_boxes(boxes)


def kernel_dtype(array: ArrayView | None, from_host: str) -> str:
    """The dtype in which the kernel will read checked boxes or a frame index."""
    return from_host if array is None or array.device == "cpu" else dtype_name(array.dtype)


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
    from octopus.kernels.cuda.tiles import MAX_ITEMS

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


class Call(NamedTuple):
    """The arrays of one launch, checked."""

    frame: ArrayView
    boxes: ArrayView
    out: ArrayView
    items: Items = NONE
    transform: ArrayView | None = None

    @property
    def arrays(self) -> list[ArrayView]:
        """Those that are given, in the order in which a prepared launch takes their addresses."""
        made = [self.out] if self.transform is None else [self.out, self.transform]
        return [*made, *self.frame.planes, self.boxes, *self.items.arrays]

    @property
    def addresses(self) -> list[int]:
        """Of these."""
        return [array.pointer for array in self.arrays]

    def head(self, count: int) -> Call:
        """The first items; what is behind them is left alone."""
        transform = self.transform and self.transform.head(count)
        return Call(self.frame, self.boxes.head(count), self.out.head(count), self.items.head(count), transform)

    def part(self, first: int, last: int) -> Call:
        """The items from number `first` to before `last`."""
        transform = self.transform and self.transform.part(first, last)
        boxes, out = self.boxes.part(first, last), self.out.part(first, last)
        return Call(self.frame, boxes, out, self.items.part(first, last), transform)


def host_boxes(call: Call, outside: str, to: int, there: int = 0) -> Boxes:
    """How a prepared launch checks and copies boxes from the host; see `Boxes`."""
    (height, width), number = call.frame.shape[-3:-1], len(call.arrays) - 1 - len(tuple(call.items.arrays))
    return Boxes(number, BOX_NUMBERS[call.boxes.dtype], call.boxes.shape[0], width, height, RULES[outside], to, there)
