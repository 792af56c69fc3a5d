"""Crop, resize and normalise many boxes of one frame, in one launch."""

from __future__ import annotations

from typing import Any

from octopus.arrays import streams
from octopus.arrays.results import result_memory
from octopus.arrays.views import ArrayView, view, view_of
from octopus.crop.cache import kernel_for
from octopus.crop.check import check_box_shape, check_frame_index, check_gpu_boxes, kernel_dtype
from octopus.crop.plan import CropPlan

__all__ = ["CropPlan", "crop_resize"]


def crop_resize(
    frame: Any,
    boxes: Any,
    size: tuple[int, int] = (224, 224),
    *,
    mean: Any = None,
    std: Any = None,
    dtype: Any = "float32",
    layout: str = "NCHW",
    edge: str = "box",
    antialias: bool = False,
    letterbox: bool = False,
    outside: str = "clip",
    pad_mode: str = "constant",
    pad_value: Any = 114.0,
    frame_index: Any = None,
    out: Any = None,
    stream: Any = None,
    device: str = "auto",
) -> Any:
    """Cut boxes out of a frame, resize each to the same size, and normalise, in one launch.

    The result is that of `cv2.resize(crop, (width, height), interpolation=cv2.INTER_LINEAR)` on float32 for every
    box, then `(value - mean) / std`: half-pixel centres, no antialiasing, clamped at the box. `edge`, `antialias` and
    `letterbox` change that, each on its own or together.

    Parameters
    ----------
    frame : array, (H, W, C) or (F, H, W, C), uint8, uint16 or float32
        One frame, or several of which `frame_index` chooses. C is 1 to 64; channels come last. NumPy, torch, CuPy,
        Numba, or anything with DLPack or `__cuda_array_interface__`; never copied where it already lies on the device
        that works. Rows may be further apart than their length.
    boxes : array, (N, 4), integer or float
        `x1, y1, x2, y2` in pixels, a box covers `[x1, x2) x [y1, y2)`; on the host or on the GPU. What lies beyond the
        frame is cut off, see `outside`. Boxes are read as float32, whose numbers lie 1/16384 of a pixel apart at 1000
        pixels, 1/1024 at 10,000 and 1/16 at 1,000,000. A side may be up to 16384 pixels long. On the host, a box that
        is empty, not finite, too large or wholly outside is an error. Boxes on the GPU are not read by the host, so
        that nothing waits for them: there such a box gives an item of NaN (0 for uint8), but for infinite and large
        ones that are cut at the frame like any other.
    size : (int, int)
        Height and width of the result in pixels.
    mean, std : float or sequence of C floats, optional
        In units of the frame's values (0 to 255 for uint8); default 0 and 1.
    dtype : {"float32", "float16", "uint8"}
        uint8 rounds half to even and saturates; float16 overflows to infinity. Values of float32 frames are taken as
        they are; one that is not finite makes NaN of all that it has a part in.
    layout : {"NCHW", "NHWC"}
    edge : {"box", "image"}
        What lies beyond a box's edge: "box" repeats its border pixels; "image" reads the frame's pixels there, as far
        as the samples reach (one pixel without `antialias`), as torchvision's
        `roi_align(aligned=True, sampling_ratio=1)` does.
    antialias : bool
        When reducing, average all pixels that an output pixel covers, weighted by a triangle as wide as two output
        pixels, as PIL's `Image.resize(BILINEAR)` and torchvision's `resize(antialias=True)` do (with `edge="image"` as
        PIL does given a `box`). Enlarging is not changed.
    letterbox : bool
        Keep each box's aspect ratio: it fills the height or the width, in the middle of the item. Returns the transform
        that leads back to the frame, too.
    outside : {"clip", "error", "pad"}
        What happens to a box that reaches beyond its frame. "clip": it is cut to the frame. "error": it is refused;
        boxes on the GPU are then read back, which waits for the work before, and is refused while a graph is captured.
        "pad": it is not cut, may lie wholly outside, and `pad_mode` makes the pixels beyond the frame; `edge="box"`
        repeats the border pixels of the whole box, and the transform is that of the whole box. Coordinates may then
        be up to 2**24 pixels from the frame's corner.
    pad_mode : {"constant", "edge", "reflect"}
        With `outside="pad"`, what lies beyond the frame: `pad_value`, the nearest pixel, or the frame mirrored without
        repeating its border pixels, as often as it takes (NumPy's "reflect", OpenCV's BORDER_REFLECT_101).
    pad_value : float or sequence of C floats
        What fills the rest of a letterboxed item, and with `pad_mode="constant"` what lies beyond the frame; in units
        of the frame's values.
    frame_index : array, (N,), integer, optional
        Frame of each box; required for several frames. On the host, or with boxes on the GPU also there (int32 or
        int64): then it is not read by the host, and an index outside [0, F) gives an item of NaN (0 for uint8).
    out : array, optional
        Where to write; must have exactly the result's shape, dtype and device.
    stream : optional
        A CUDA stream of any library; default: the current one of the frame's library. The call returns once the work
        is queued on it, except for a frame on the host, whose result is waited for.
    device : {"auto", "cpu", "cuda"}
        "auto" works where the frame lies; for a frame on the host, on the GPU if there is one.

    Returns
    -------
    array, (N, C, height, width) or (N, height, width, C)
        On the frame's side and of its library; NumPy or `DeviceArray` where that offers DLPack or
        `__cuda_array_interface__` alone.
    transform : array, (N, 4), float32
        With `letterbox` only, then the result is a pair: `scale_x, scale_y, shift_x, shift_y` of each item, for
        `octopus.map_back`; on the same side, of the same library. NaN for an unusable box on the GPU.

    Raises
    ------
    InputError
        For bad input, before any work; the message says what was asked, what was found and what to do.
    DeviceError
        If `device="cuda"` and no GPU is usable.
    OutOfMemoryError
        If the result does not fit; says how much is needed and free.

    Examples
    --------
    >>> import numpy as np
    >>> frame = np.zeros((1080, 1920, 3), np.uint8)
    >>> crop_resize(frame, [[10, 20, 60, 90], [5, 5, 6, 6]], mean=127.5, std=127.5, device="cpu").shape
    (2, 3, 224, 224)
    """
    described = view_of(boxes, "boxes")
    model = view(frame, "frame")
    index = None if frame_index is None else view_of(frame_index, "frame_index")
    options = {
        "size": size, "mean": mean, "std": std, "dtype": dtype, "layout": layout, "edge": edge,
        "antialias": antialias, "letterbox": letterbox, "outside": outside, "pad_mode": pad_mode,
        "pad_value": pad_value,
    }  # fmt: skip
    if model.device == "cuda" and described.shape and streams.device_for(model, device) == "cuda":
        return _on_gpu(model, described, index, options, out, stream)
    check_box_shape(described.shape, described.dtype)
    if described.device == "cuda":
        check_gpu_boxes(described)
    check_frame_index(index, model, described.shape[0], described.device)
    plan = CropPlan(
        model, described.shape[0], device=device, allocate=out is None, box_dtype=kernel_dtype(described, "float32"),
        index_dtype=kernel_dtype(index, "int32"), **options,
    )  # fmt: skip
    return plan.run(model, described, frame_index=index, out=out, stream=stream)


def _on_gpu(
    frame: ArrayView,
    boxes: ArrayView,
    index: ArrayView | None,
    options: dict[str, Any],
    out: Any,
    stream: Any,
) -> Any:
    """A frame on the GPU: with a kernel that a call before may have loaded, into new memory."""
    queue = streams.stream_for(frame, boxes, stream)
    kernel = kernel_for(frame, boxes, index, options, queue)
    kernel.check(frame, boxes, index)
    spec, count = kernel.spec, boxes.shape[0]
    if out is None:
        out = result_memory(frame, spec.shape(count), spec.dtype, queue)
        target = view(out, "out")
    else:
        target = view(out, "out")
        kernel.check_out(target, count)
    transform = result_memory(frame, (count, 4), "float32", queue) if spec.options.letterbox else None
    if stream is None:
        streams.wait_for_other_families(queue, frame, boxes, target, *([] if index is None else [index]))
    kernel.execute(frame, boxes, index, target, transform, queue)
    return out if transform is None else (out, transform)
