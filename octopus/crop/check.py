"""What one run is given: boxes, what each item has of its own, and memory; checked before any work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from octopus.arrays.checks import INT32_MAX, boxes_view, check_readable, hint_once, is_count, of_dtype
from octopus.arrays.launch import Boxes, boxes_are_good
from octopus.arrays.views import ArrayView, dtype_name, view, view_of
from octopus.crop.frame import frame_spec
from octopus.crop.spec import CropSpec, FitHeight
from octopus.errors import InputError, shown
from octopus.kernels.geometry import FLAT, MAX_BOX_SIDE, MAX_COORDINATE

BOX_DTYPES = ("int32", "int64", "float32", "float64")
BOX_NUMBERS = {np.dtype(name): number for number, name in enumerate(BOX_DTYPES)}  # in the machine's byte order
RULES = {"clip": 0, "error": 1, "pad": 2}  # `outside`, as `kernels.cpu.launches` knows it
INDEX_DTYPES = ("int32", "int64")  # of a frame index and a count that the GPU reads
ITEM_NAMES = ("frame_index", "flip", "mean", "std", "count")  # of the fields of `Items`, as the caller calls them
BOX_SHAPES = ((4,), (2, 3))  # of one box, and of one affine map
QUAD_SHAPE = (4, 2)  # of a quadrilateral, which is an item with a record of its own
NAN_BITS = 0x7FC0  # of bfloat16 in memory of uint16
INVALID = ("error", "nan", "drop")  # what becomes of boxes that can't be cut out
KINDS: dict[tuple[int, ...], str] = {(4,): "boxes", (2, 3): "maps", QUAD_SHAPE: "quads"}
FLIPS = 4  # none, left and right, above and below, both


class Items(NamedTuple):
    """The arrays of a run, one entry per item: `mean` and `std` are (N, C), `counted` is of all, on the GPU."""

    frame_index: ArrayView | None = None
    flip: ArrayView | None = None
    mean: ArrayView | None = None
    std: ArrayView | None = None
    counted: ArrayView | None = None

    @property
    def named(self) -> dict[str, ArrayView]:
        return {name: array for name, array in zip(ITEM_NAMES, self, strict=True) if array is not None}

    @property
    def arrays(self) -> Iterator[ArrayView]:
        return (array for array in self if array is not None)

    @property
    def names(self) -> tuple[str, ...]:
        """Keyword arguments, which are to be True, of the GPU's kernel for what lies there."""
        given = {"counted": self.counted, "flipped": self.flip, "own": self.mean}
        return tuple(name for name, array in given.items() if array is not None)

    def part(self, first: int, last: int) -> Items:
        """Those of the items from number `first` to before `last`; a count is for all."""
        if self == NONE:
            return self
        parts = (array and array.part(first, last) for array in self[:4])
        return Items(*parts)._replace(counted=self.counted)


NONE = Items()


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
        return [array.pointer for array in self.arrays]

    def part(self, first: int, last: int) -> Call:
        """The items from number `first` to before `last`; what is behind them is left alone."""
        transform = self.transform and self.transform.part(first, last)
        boxes, out = self.boxes.part(first, last), self.out.part(first, last)
        return Call(self.frame, boxes, out, self.items.part(first, last), transform)

    def host_boxes(self, outside: str, to: int, there: int = 0) -> Boxes:
        """How a prepared launch checks and copies boxes from the host; see `Boxes`."""
        (height, width), number = self.frame.shape[-3:-1], len(self.arrays) - 1 - len(tuple(self.items.arrays))
        dtype = BOX_NUMBERS[self.boxes.dtype]
        return Boxes(number, dtype, self.boxes.shape[0], width, height, RULES[outside], to, there)


class HostItems(NamedTuple):
    """What of `Items` lies on the host, as the kernels read it: copies, so that no caller changes them."""

    frame_index: np.ndarray | None = None
    flip: np.ndarray | None = None
    mean: np.ndarray | None = None
    std: np.ndarray | None = None


NOTHING = HostItems()


def items_of(
    frame_index: Any = None, flip: Any = None, mean: Any = None, std: Any = None, count: Any = None, *, number: int = 0
) -> tuple[Items, int | None]:
    """The arrays of a call on a `number` of boxes, and a count that is known to the host."""
    if isinstance(flip, bool) or is_count(flip):
        flip = np.full(number, flip)
    items = Items(*(None if value is None else view_of(value, name)
                    for name, value in zip(ITEM_NAMES, (frame_index, flip, mean, std), strict=False)))  # fmt: skip
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
    """Whether means and standard deviations are those of each item: both or none."""
    mean_is, std_is = (value is not None and _are_of_items(value, count, channels) for value in (mean, std))
    if mean_is != std_is:
        raise InputError(
            f"mean and std of each item go together, two arrays of shape ({count}, {channels}); found only "
            f"{'mean' if mean_is else 'std'} to be one"
        )
    return mean_is


def _are_of_items(value: Any, count: int, channels: int) -> bool:
    """Whether there is a row for each item; a single row on the host is that of all."""
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
    count = boxes.shape[0]
    check_frame_index(items.frame_index, frame, count, boxes.device)
    for name, array in items.named.items():
        if array.device == "cuda" and boxes.device == "cpu":
            where = "the CPU works" if device == "cpu" else "the boxes are on the host"
            raise InputError(f"{name} is on the GPU but {where}; keep both on one side")
    if (flip := items.flip) is not None:
        foreign = flip.device == "cuda" and not flip.dtype.isnative
        if flip.shape != (count,) or flip.dtype.kind not in "biu" or foreign:
            raise InputError(
                f"flip must hold one integer per box, shape ({count},), found {flip.dtype} of shape {flip.shape}"
            )
        if flip.device == "cuda" and flip.strides[0] < 0:
            raise InputError(f"flip on the GPU must lie forwards, found a stride of {flip.strides[0]} bytes")
    if (items.mean is None) != (items.std is None):
        raise InputError("mean and std of each item go together; give both")
    for name, rows in (("mean", items.mean), ("std", items.std)):
        if rows is not None and (rows.shape != (count, channels) or rows.dtype.kind not in "iuf"):
            raise InputError(
                f"{name} of each item must have shape ({count}, {channels}), numbers, found {rows.dtype} of shape "
                f"{rows.shape}"
            )
        if rows is not None and rows.device == "cuda":
            check_readable(rows, name, ("float32",))
    if (counted := items.counted) is not None:
        from octopus.kernels.cuda.tiles import MAX_ITEMS

        if counted.shape not in ((), (1,)):
            raise InputError(f"count must be one integer, found an array of shape {counted.shape}")
        check_readable(counted, "count", INDEX_DTYPES)
        if count > MAX_ITEMS:
            raise InputError(f"a count on the GPU is for up to {MAX_ITEMS} boxes, found {count}; split the batch")


def check_frame_index(index: ArrayView | None, frame: ArrayView, count: int, box_device: str) -> None:
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
    if index.device == "cuda" and box_device == "cpu":
        raise InputError("frame_index is on the GPU but the boxes are on the host; keep both on one side")
    if index.device == "cuda":
        check_readable(index, "frame_index", INDEX_DTYPES)


def on_host(items: Items, frames: int) -> HostItems:
    """The arrays of a run that lie on the host, after checking all of their values."""
    index, flip, mean, std = (None if array is None or array.device != "cpu" else array.numpy() for array in items[:4])
    if index is not None:
        index = np.array(index)  # a copy, so that no caller changes it while it is checked and read
        right = f"but there are {frames} frames, counted from 0"
        _check_values("frame_index", index, (index >= 0) & (index < frames), right)
        index = index.astype(np.int32, copy=False)
    if flip is not None:
        _check_values("flip", flip, (flip >= 0) & (flip < FLIPS), "must be 0, 1, 2 or 3")
        flip = flip.astype(np.uint8)
    if mean is None and std is None:
        return HostItems(index, flip)
    with np.errstate(over="ignore", divide="ignore"):
        if mean is not None:
            mean = mean.astype(np.float32)
            _check_values("mean", mean, np.isfinite(mean), "must be finite as float32")
        if std is not None:
            std = std.astype(np.float32)
            good = np.isfinite(1 / std) & (std > 0) & (std < np.inf)
            _check_values("std", std, good, "must be positive as float32")
        if mean is not None and std is not None:
            _check_values("mean", mean, np.isfinite(mean / std), "must be within float32 once divided by std")
    return HostItems(index, flip, mean, std)


def _check_values(name: str, values: np.ndarray, good: np.ndarray, right: str) -> None:
    if not good.all():
        first = tuple(int(i) for i in np.argwhere(~good)[0])
        place, wrong = ", ".join(map(str, first)), int((~good).sum())
        raise InputError(f"{name}[{place}] = {values[first]} {right}; wrong entries: {wrong} of {values.size}")


def check_host_boxes(boxes: np.ndarray | ArrayView, width: int, height: int, outside: str = "error") -> np.ndarray:
    """Boxes (N, 4) of any numbers on the host as float32, a copy, not cut, after checking all of them."""
    check_box_shape(boxes.shape, boxes.dtype)
    given = view(boxes, "boxes")
    if not is_readable(given):
        with np.errstate(over="ignore"):  # what is beyond float32 becomes infinite, and is refused as such
            given = view(given.numpy().astype(np.float32), "boxes")
    made = np.empty((given.shape[0], 4), np.float32)  # no other thread changes it while kernels read it
    if not boxes_are_good(given, BOX_NUMBERS[given.dtype], width, height, RULES[outside], made):
        _refuse("boxes", view(boxes, "boxes").numpy(), box_faults(made, width, height, outside))
    hint_at_fractions(made, width, height)
    return made


def hint_at_fractions(boxes: np.ndarray, width: int, height: int) -> None:
    """Warn, once per process, of boxes that look like shares of the frame's sides."""
    if boxes.size and boxes.max() <= 1 and boxes.min() >= 0 and (boxes % 1).any() and min(width, height) > 2:
        hint_once(
            "fractions",
            "all boxes lie between 0 and 1, but they are in pixels, so that each crop is of one pixel; multiply boxes "
            f"that are shares of the frame's sides by (width, height, width, height), here by ({width}, {height}, "
            f"{width}, {height})",
        )


Faults = list[tuple[np.ndarray, str]]  # for which it is so, and in words; the first that counts first
FINITE = "has a number that is NaN, or infinite as float32"


def _frame(width: int, height: int) -> str:
    return f"the frame, {height} pixels high and {width} wide"


@np.errstate(invalid="ignore", over="ignore")
def box_faults(boxes: np.ndarray, width: int, height: int, outside: str) -> Faults:
    x1, y1, x2, y2 = columns = boxes.T
    beyond = (x1 < 0) | (y1 < 0) | (x2 > width) | (y2 > height)
    apart = (x1 >= width) | (y1 >= height) | (x2 <= 0) | (y2 <= 0)
    frame = _frame(width, height)
    by_outside = {
        "error": (beyond, f'reaches outside {frame}; clip it first, or ask for outside="clip" or "pad"'),
        "clip": (apart, f'lies outside {frame}, all of it; leave it out, or ask for outside="pad"'),
        "pad": (abs(columns).max(axis=0, initial=0) > MAX_COORDINATE, f"reaches further than {MAX_COORDINATE} pixels"),
    }
    limits = np.array([[width], [height], [width], [height]], np.float32)
    cut = columns if outside == "pad" else np.clip(columns, np.float32(0), limits)
    return [
        (~np.isfinite(columns).all(axis=0), FINITE),
        (
            (x2 < x1) | (y2 < y1),
            "ends before it begins: boxes are x1, y1, x2, y2; to x, y, width, height add the corner: "
            "boxes[:, 2:] += boxes[:, :2]",
        ),
        (~((x1 < x2) & (y1 < y2)), "is empty as float32 (x1 < x2 and y1 < y2 are required)"),
        by_outside[outside],
        (
            np.maximum(*(cut[2:] - cut[:2])) > MAX_BOX_SIDE,
            f"has a side of more than {MAX_BOX_SIDE} pixels, which float32 can't sample exactly; pass several smaller "
            "boxes, or a reduced copy of the frame with boxes to match",
        ),
    ]


@np.errstate(invalid="ignore", over="ignore")
def map_faults(maps: np.ndarray, width: int, height: int, outside: str, size: tuple[int, int]) -> Faults:
    corners = np.array([[x, y, 1] for x in (0, size[1] - 1) for y in (0, size[0] - 1)], np.float64)
    positions = maps.astype(np.float64) @ corners.T  # (N, 2, 4): a map's extremes are at the corners
    reached = (np.abs(maps) * np.array([size[1] - 1, size[0] - 1, 1], np.float32)).sum(axis=2)
    faults = [
        (~np.isfinite(maps).all(axis=(1, 2)), FINITE),
        (~(reached <= MAX_COORDINATE).all(axis=1), f"reaches further than {MAX_COORDINATE} pixels"),
    ]
    if outside == "error":
        beyond = (positions < -0.5) | (positions > np.array([[width], [height]]) - 0.5)
        why = f'takes samples outside {_frame(width, height)}; ask for outside="clip" or "pad"'
        faults.append((beyond.any(axis=(1, 2)), why))
    return faults


@np.errstate(invalid="ignore", over="ignore")
def quad_faults(quads: np.ndarray, width: int, height: int, outside: str) -> Faults:
    corners = quads.astype(np.float64)
    onward, backward = (np.roll(corners, by, axis=1) - corners for by in (-1, 1))
    turns = onward[..., 0] * backward[..., 1] - backward[..., 0] * onward[..., 1]
    diagonals = corners[:, 2:] - corners[:, :2]
    flat = FLAT * (diagonals**2).sum(axis=(1, 2))[:, None]
    faults = [
        (~np.isfinite(quads).all(axis=(1, 2)), FINITE),
        (abs(quads).max(axis=(1, 2), initial=0) > MAX_COORDINATE, f"reaches further than {MAX_COORDINATE} pixels"),
        (
            ~((turns > flat).all(axis=1) | (turns < -flat).all(axis=1)),
            "is not convex: four corners in turn, upper left, upper right, lower right, lower left, no three on a line",
        ),
    ]
    if outside == "error":
        beyond = (quads < 0) | (quads > np.array([width, height]))
        why = f'reaches outside {_frame(width, height)}; ask for outside="clip" or "pad"'
        faults.append((beyond.any(axis=(1, 2)), why))
    return faults


FAULTS: dict[str, Any] = {"boxes": box_faults, "maps": map_faults, "quads": quad_faults}
NAMES = {"boxes": ("box", "boxes"), "maps": ("map", "maps"), "quads": ("quadrilateral", "quadrilaterals")}


def check_host_items(
    kind: str, items: np.ndarray | ArrayView, width: int, height: int, outside: str, size: tuple[int, int]
) -> np.ndarray:
    """Boxes, maps or quadrilaterals of any numbers on the host as float32, a copy, after checking all of them."""
    if kind == "boxes":
        return check_host_boxes(items, width, height, outside)
    given = view(items, "boxes").numpy()
    result = as_floats(given)
    _refuse(kind, given, FAULTS[kind](result, width, height, outside, *[size] * (kind == "maps")))
    if kind == "quads":
        hint_at_fractions(result, width, height)
    return result


def usable(boxes: ArrayView, height: int, width: int, outside: str, size: tuple[int, int]) -> NDArray[np.bool_]:
    """Which of boxes, maps or quadrilaterals on the host can be cut out, (N,)."""
    kind = KINDS[boxes.shape[1:]]
    values = as_floats(boxes.numpy())
    faults = FAULTS[kind](values, width, height, outside, *[size] * (kind == "maps"))
    good: NDArray[np.bool_] = ~np.logical_or.reduce([found for found, _ in faults])
    return good


def rows_of(value: Any, kept: NDArray[np.bool_], dimensions: int) -> Any:
    """Of an array of so many dimensions that has a row for each item those of the items `kept`; else the value."""
    try:
        rows = np.asarray(value)
    except (TypeError, ValueError, RuntimeError):  # which the call refuses
        return value
    return rows[kept] if rows.ndim == dimensions and len(rows) == len(kept) else value


def with_stand_ins(boxes: ArrayView, good: NDArray[np.bool_], nan: bool) -> NDArray[np.float32]:
    """The boxes, maps or quadrilaterals, with `nan` or a pixel in place of each that can't be cut out."""
    pixel = {"boxes": [0, 0, 1, 1], "maps": [[1, 0, 0], [0, 1, 0]], "quads": [[0, 0], [1, 0], [1, 1], [0, 1]]}
    values = as_floats(boxes.numpy())
    values[~good] = np.nan if nan else pixel[KINDS[boxes.shape[1:]]]
    return values


def fill_items(made: Any, numbers: NDArray[np.int64], both: bool) -> None:
    """Make items of a result on the host NaN, or 0 of uint8, and their transforms if it is of `both`."""
    for array in made if both else (made[0] if isinstance(made, tuple) else made,):
        for number in numbers.tolist():
            item = array[number]
            item[...] = {"uint8": 0, "uint16": NAN_BITS}.get(str(item.dtype).removeprefix("torch."), np.nan)


def as_floats(boxes: np.ndarray) -> np.ndarray:
    """A copy as float32; numbers beyond it become infinite."""
    if boxes.dtype.kind not in "iuf":
        raise InputError(f"boxes must be integers or floats, found {boxes.dtype}")
    with np.errstate(over="ignore"):
        return np.array(boxes, np.float32, order="C")


def _refuse(kind: str, given: np.ndarray, faults: Faults) -> None:
    """Name the first that is bad, with the numbers as the caller gave them, if any is."""
    bad = np.logical_or.reduce([found for found, _ in faults])
    if bad.any():
        first = int(np.argmax(bad))
        why = next(words for found, words in faults if found[first])
        numbers = ", ".join(f"{number:.9g}" for number in given[first].ravel().tolist())
        one, several = NAMES[kind]
        raise InputError(
            f"{one} {first} = ({numbers}) {why}; wrong {several}: {int(bad.sum())} of {len(bad)}, which "
            'crop_resize leaves out with invalid="drop"'
        )


def is_varied(frame: Any, boxes: Any, size: Any, pad_to: Any, box_shape: tuple[int, ...] | None = None) -> bool:
    """Whether a call's items need records of their own; a plan has no boxes yet, and tells the shape of one."""
    if pad_to is not None or isinstance(frame, (list, tuple)) or are_sizes(size):
        return True
    return (boxes_view(boxes).shape[1:] if box_shape is None else box_shape) == QUAD_SHAPE


def are_sizes(size: Any) -> bool:
    if isinstance(size, (list, tuple)) and not isinstance(size, FitHeight):
        return bool(size) and all(isinstance(each, (list, tuple, np.ndarray)) for each in size)
    return isinstance(size, FitHeight) or getattr(size, "ndim", 0) == 2


def is_readable(boxes: ArrayView) -> bool:
    """Whether compiled code reads boxes from the host as they are."""
    return boxes.dtype in BOX_NUMBERS and not boxes.pointer % boxes.dtype.itemsize


def are_maps(shape: tuple[int, ...]) -> bool:
    return len(shape) == 3


def check_box_shape(shape: tuple[int, ...], dtype: np.dtype) -> None:
    if shape[1:] not in BOX_SHAPES:
        remedy = "affine maps have (N, 2, 3), no boxes are numpy.empty((0, 4))"
        if shape in BOX_SHAPES:
            remedy = f"a single {'box' if shape == (4,) else 'affine map'} is boxes[None]"
        elif shape == QUAD_SHAPE:
            remedy = "a single quadrilateral is boxes[None]"
        elif shape[1:] == QUAD_SHAPE:
            remedy = "a plan for quadrilaterals has box_shape=(4, 2)"
        elif len(shape) == 2 and shape[1] > 4:
            remedy = "leave out what follows the corners: boxes[:, :4]"
            remedy += "; of rotated boxes octopus.rotated_boxes makes affine maps" if shape[1] == 5 else ""
        raise InputError(f"boxes must have shape (N, 4), found {shape}; {remedy}")
    if dtype.kind not in "iuf":
        raise InputError(f"boxes must be integers or floats, found {dtype}")


def check_gpu_boxes(boxes: ArrayView) -> None:
    if not boxes.contiguous:
        raise InputError(f"boxes on the GPU must be contiguous, found strides {boxes.strides} bytes")
    if not of_dtype(boxes, BOX_DTYPES):
        raise InputError(f"boxes on the GPU must be one of {', '.join(BOX_DTYPES)}, found {boxes.dtype}")


def check_count(spec: CropSpec, count: int) -> None:
    """The grid of a launch must stay within 32-bit arithmetic."""
    if count > INT32_MAX // spec.options.size[0]:
        raise InputError(f"{count} boxes are more than one launch can address; split the batch")


def check_planned_frame(frame: ArrayView, spec: CropSpec, model: ArrayView, staged: bool) -> None:
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
    check_box_shape(boxes.shape, boxes.dtype)
    check_room(boxes.shape[0], max_boxes, boxes.device, device)
    if boxes.device == "cuda":
        check_gpu_boxes(boxes)


def check_room(count: int, max_boxes: int, side: str, device: str) -> None:
    """Boxes on a side must be no more than a plan has memory for, and not on the GPU where the CPU works."""
    if count > max_boxes:
        raise InputError(f"there is room for max_boxes={max_boxes}, found {count} boxes; make it larger")
    if side == "cuda" and device == "cpu":
        raise InputError("boxes are on the GPU but the CPU was asked to work; copy them to the host")


def kernel_dtype(array: ArrayView | None, from_host: str) -> str:
    """The dtype in which the kernel will read checked boxes or a frame index."""
    return from_host if array is None or array.device == "cpu" else dtype_name(array.dtype)
