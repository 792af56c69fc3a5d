"""What one run of a plan is given: boxes, frame index and memory, checked before any work."""

from __future__ import annotations

import numpy as np

from octopus.arrays.checks import INT32_MAX, check_choice, check_readable, of_dtype
from octopus.arrays.views import ArrayView, dtype_name
from octopus.crop.frame import frame_spec
from octopus.crop.spec import CropSpec
from octopus.errors import InputError

BOX_DTYPES = ("int32", "int64", "float32", "float64")
INDEX_DTYPES = ("int32", "int64")
MAX_BOX_SIDE = 2**14  # up to here a float32 position within a box is good to 1/1000 of a pixel


def check_host_boxes(boxes: np.ndarray, width: int, height: int) -> np.ndarray:
    """Boxes on the host as float32, after checking all of them.

    Raises
    ------
    InputError
        Names the first wrong box: not (N, 4), not a number, empty, or not inside the frame.
    """
    check_box_shape(boxes.shape, boxes.dtype)
    result = np.ascontiguousarray(boxes, np.float32)
    if len(result) and not _inside(result, width, height):
        x1, y1, x2, y2 = result.T
        good = (x1 >= 0) & (y1 >= 0) & (x2 <= width) & (y2 <= height) & (x1 < x2) & (y1 < y2)
        if max(width, height) > MAX_BOX_SIDE:
            good &= (x2 - x1 <= MAX_BOX_SIDE) & (y2 - y1 <= MAX_BOX_SIDE)
        raise InputError(_describe_bad_box(result, int(np.argmin(good)), int((~good).sum()), width, height))
    return result


def _inside(boxes: np.ndarray, width: int, height: int) -> bool:
    """Whether all boxes are good; False if any value is NaN, since every comparison with it is."""
    x1, y1, x2, y2 = boxes.T
    least, most = np.minimum.reduce, np.maximum.reduce
    wide, high = x2 - x1, y2 - y1
    return (
        least(x1) >= 0
        and least(y1) >= 0
        and most(x2) <= width
        and most(y2) <= height
        and least(wide) > 0
        and least(high) > 0
        and (max(width, height) <= MAX_BOX_SIDE or max(most(wide), most(high)) <= MAX_BOX_SIDE)
    )


def check_box_shape(shape: tuple[int, ...], dtype: np.dtype) -> None:
    """Boxes are (N, 4) numbers."""
    if len(shape) != 2 or shape[1] != 4:
        raise InputError(f"boxes must have shape (N, 4), found {shape}; no boxes are numpy.empty((0, 4))")
    if dtype.kind not in "iuf":
        raise InputError(f"boxes must be integers or floats, found {dtype}")


def check_box_dtype(name: str) -> None:
    """The kernel reads boxes of a few dtypes."""
    check_choice("box_dtype", name, BOX_DTYPES)


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
    """A frame index on the host as int32, after checking all of it.

    Raises
    ------
    InputError
        Names the first that is not in [0, `frames`).
    """
    good = (index >= 0) & (index < frames)
    if not good.all():
        first = int(np.argmin(good))
        raise InputError(
            f"frame_index[{first}] = {index[first]} but there are {frames} frames, counted from 0; "
            f"{int((~good).sum())} of {len(index)} are wrong"
        )
    return np.ascontiguousarray(index, np.int32)


def check_index_dtype(name: str) -> None:
    """The kernel reads a frame index of a few dtypes."""
    check_choice("index_dtype", name, INDEX_DTYPES)


def _describe_bad_box(boxes: np.ndarray, index: int, count: int, width: int, height: int) -> str:
    x1, y1, x2, y2 = boxes[index].tolist()
    if not np.isfinite(boxes[index]).all():
        why = "is not a number or infinite"
    elif not (x1 < x2 and y1 < y2):
        why = "is empty (x1 < x2 and y1 < y2 are required)"
    elif max(x2 - x1, y2 - y1) > MAX_BOX_SIDE:
        why = f"has a side of more than {MAX_BOX_SIDE} pixels, where single precision ends; cut it in parts"
    else:
        why = f"reaches outside the frame of {width}x{height} pixels; clip it first"
    return f"box {index} = ({x1:g}, {y1:g}, {x2:g}, {y2:g}) {why}; {count} of {len(boxes)} boxes are wrong"


def check_count(spec: CropSpec, count: int) -> None:
    """The grid of a launch must stay within 32-bit arithmetic."""
    if count > INT32_MAX // spec.options.size[0]:
        raise InputError(f"{count} boxes are more than one launch can address; split the batch")


def check_planned_frame(frame: ArrayView, spec: CropSpec, model: ArrayView, staged: bool) -> None:
    """A frame must be like `model`, for which the plan was made; no larger where a copy goes to the GPU (`staged`)."""
    kind = frame_spec(frame)
    found = (frame.device, kind.dtype, kind.channels, len(frame.shape))
    planned = (model.device, spec.frame.dtype, spec.frame.channels, len(model.shape))
    if found != planned:
        raise InputError(
            f"the plan is for frames of (side, dtype, channels, dimensions) {planned}, found {found}"
        )
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


def check_out(spec: CropSpec, out: ArrayView, count: int, device: str) -> None:
    """`out` must be exactly the array that the call would have made."""
    expected = spec.shape(count)
    if (
        out.shape != expected
        or not of_dtype(out, (spec.dtype,))
        or out.device != device
        or not out.contiguous
    ):
        layout = "contiguous" if out.contiguous else "not contiguous"
        raise InputError(
            f"out must be a contiguous {spec.dtype} array of shape {expected} on {device}, "
            f"found {out.dtype} of shape {out.shape} on {out.device}, {layout}"
        )
    if device == "cpu" and not out.numpy().flags.writeable:
        raise InputError("out is read-only; pass an array that may be written")


def kernel_dtype(array: ArrayView | None, from_host: str) -> str:
    """The dtype in which the kernel will read checked boxes or a frame index."""
    return from_host if array is None or array.device == "cpu" else dtype_name(array.dtype)
