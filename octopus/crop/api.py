"""Crop, resize and normalise many boxes of one frame, in one launch."""

from __future__ import annotations

import threading
from functools import partial
from sys import modules
from typing import Any, Literal, Unpack, overload

from octopus.arrays import streams
from octopus.arrays.boxes import boxes_view
from octopus.arrays.checks import INT32_MAX, check_apart, check_known, check_stream
from octopus.arrays.dynamo_disabled import TRACER, apart, marked
from octopus.arrays.memo import UnreadableError, frozen, keep, read_directly
from octopus.arrays.memory import Place
from octopus.arrays.results import check_host_memory, maker, new_view, result_memory, result_view
from octopus.arrays.views import ArrayView
from octopus.backends.cpu import get_num_threads
from octopus.backends.cuda.device import is_capturing
from octopus.crop.check import are_maps, check_box_shape, check_count, check_frame_index, check_gpu_boxes, kernel_dtype
from octopus.crop.cuda import TRANSFORM_BYTES
from octopus.crop.frame import frame_view, made_channels, pillow_frame
from octopus.crop.items import Items, items_of, own_normalisation
from octopus.crop.kernel import Asked, CropKernel, PreparedCall, read_call
from octopus.crop.launch import INSIDE, Call
from octopus.crop.options import CALL_OPTIONS, CallOptions, CropOptions, Size
from octopus.crop.plan import CropPlan
from octopus.errors import InputError
from octopus.kernels.cuda.tiles import MAX_ITEMS, MOST_BOXES_INSIDE

__all__ = ["CropPlan", "crop_resize"]

_thread = threading.local()  # a memo of prepared calls and kernels per thread, so that no call waits for another one's


@overload
def crop_resize(
    frame: Any, boxes: Any, size: Size = ..., *, letterbox: Literal[True], out: Any = ..., stream: Any = ...,
    **options: Unpack[CallOptions],
) -> tuple[Any, Any]: ...  # fmt: skip
@overload
def crop_resize(
    frame: Any, boxes: Any, size: Size = ..., *, letterbox: bool = ..., out: Any = ..., stream: Any = ...,
    **options: Unpack[CallOptions],
) -> Any: ...  # fmt: skip
@marked
def crop_resize(
    frame: Any, boxes: Any, size: Size = (224, 224), *, out: Any = None, stream: Any = None, **options: Any
) -> Any:
    """Cut boxes out of a frame, resize each to the same size, and normalise, in one launch.

    The result is that of `cv2.resize(crop, (width, height), interpolation=cv2.INTER_LINEAR)` on float32 for every
    box, then `(value - mean) / std`: half-pixel centres, no antialiasing, clamped at the box. `edge`, `antialias` and
    `letterbox` change that, each on its own or together.

    Parameters
    ----------
    frame : array, (H, W, C) or (F, H, W, C), uint8, uint16 or float32; or NV12 or P010
        One frame, or several of which `frame_index` chooses. C is 1 to 64; channels come last. NumPy, torch, CuPy,
        Numba, or anything with DLPack or `__cuda_array_interface__`; never copied where it already lies on the device
        that works. Rows may be further apart than their length. An image of Pillow is read in its memory, too: of the
        mode RGB three channels, of RGBA and RGBX four, of L and I;16 one. `octopus.NV12` and `octopus.P010` are frames
        of video, which count as three channels of uint8.
    boxes : array, (N, 4) or (N, 2, 3), integer or float
        `x1, y1, x2, y2` in pixels, a box covers `[x1, x2) x [y1, y2)`; on the host or on the GPU. What lies beyond the
        frame is cut off, see `outside`. Boxes are read as float32, whose numbers lie 1/16384 of a pixel apart at 1000
        pixels, 1/1024 at 10,000 and 1/16 at 1,000,000. A side may be up to 16384 pixels long, once the box is
        cut. On the host, a box that is empty, not finite, too large or wholly outside is an error. Boxes on the GPU are
        not read by the host, so that nothing waits for them: there a box that is empty, NaN or wholly outside gives an
        item of NaN (0 for uint8). With `outside="pad"` one that is infinite or too large gives NaN, too; without it an
        infinite coordinate is cut to the frame's edge, and a side that is too long is sampled less exactly. `[]` is no
        boxes. Torchvision's `BoundingBoxes` are converted by their format, and of objects with boxes in `xyxy`
        (supervision's `Detections`) these are taken.
        (N, 2, 3) are affine maps, one per item, from the result's pixel to the frame's, both counted from the centre of
        the first: what `cv2.warpAffine(frame, map, (width, height), flags=INTER_LINEAR | WARP_INVERSE_MAP)` takes;
        `octopus.rotated_boxes` makes them of rotated boxes. They take no `edge`, `antialias` and `letterbox`. Samples
        beyond the frame take its nearest pixel, or what `outside` says. A map is read as float32 and may reach up to
        2**24 pixels; one that does not, or is not finite, is an error on the host, and on the GPU gives an item of NaN
        (0 for uint8).
    size : (int, int) or int
        Height and width of the result in pixels, or the side of a square.
    mean, std : float or C floats, optional; or arrays (N, C)
        In units of the frame's values (0 to 255 for uint8), or with `scale` in units of 1; default 0 and 1. These and
        `scale` and `pad_value` may be lists or arrays on the host, of shape (C,), (C, 1, 1) or (1, C, 1, 1). Arrays of
        shape (N, C) are those of each item, both together; with boxes on the GPU also there, as float32, and then not
        read by the host.
    scale : float or C floats, optional
        The frame's value that counts as 1, such as 255: the result is `(value / scale - mean) / std`.
    dtype : {"float32", "float16", "bfloat16", "uint8"}
        uint8 rounds half to even and saturates; float16 overflows to infinity; bfloat16 is for tensors of torch. A GPU
        may round the weights of a row's pixels to 1/32768 for these three, so that a value is up to 0.004 levels off
        before it is rounded. Values of float32 frames are taken as they are; one that is not finite makes NaN of all
        that it has a part in.
    layout : {"NCHW", "NHWC"}
    edge : {"box", "image"}
        What lies beyond a box's edge: "box" repeats its border pixels; "image" reads the frame's pixels there, as far
        as the samples reach (one pixel without `antialias`), as torchvision's
        `roi_align(aligned=True, sampling_ratio=1)` does.
    antialias : bool
        When reducing, average all pixels that an output pixel covers, weighted by a triangle as wide as two output
        pixels, as PIL's `Image.resize(BILINEAR)` and torchvision's `resize(antialias=True)` do (with `edge="image"` as
        PIL does given a `box`). Enlarging is not changed.
    filter : {"bilinear", "nearest", "bicubic"}
        How a pixel is made of those around its place in the frame. "nearest": the one that this lies in, as PIL's
        `NEAREST`, OpenCV's `INTER_NEAREST_EXACT` and torch's "nearest-exact" do. "bicubic": four by four pixels by
        Keys' cubic with the slope -0.75, as OpenCV's `INTER_CUBIC` and torch's "bicubic" do; `edge` says what lies
        beyond a box. Its values may overshoot those of the frame. Both go without `antialias`.
    letterbox : bool
        Keep each box's aspect ratio: it fills the height or the width, in the middle of the item. Returns the transform
        that leads back to the frame, too.
    outside : {"clip", "error", "pad"}
        What happens to a box that reaches beyond its frame. "clip": it is cut to the frame. "error": it is refused;
        boxes on the GPU are then read back, which waits for the work before, and is refused while a graph is captured.
        "pad": it is not cut, may lie wholly outside, and `pad_mode` makes the pixels beyond the frame; `edge="box"`
        repeats the border pixels of the whole box, and the transform is that of the whole box. Coordinates may then
        be up to 2**24 pixels from the frame's corner. Of affine maps no box is cut: "clip" repeats the frame's nearest
        pixel, "error" refuses maps that take samples beyond it, "pad" makes pixels there as for boxes.
    pad_mode : {"constant", "edge", "reflect"}
        With `outside="pad"`, what lies beyond the frame: `pad_value`, the nearest pixel, or the frame mirrored without
        repeating its border pixels, as often as it takes (NumPy's "reflect", OpenCV's BORDER_REFLECT_101).
    pad_value : float or C floats, optional
        What fills the rest of a letterboxed item, and with `pad_mode="constant"` what lies beyond the frame; in units
        of the frame's values; default 114. Refused where it would fill nothing.
    channels : {"RGB", "BGR", "RGBA", "BGRA"}
        How the frame stores its channels. "RGB": any number of them, as they are. Else the result has red, green and
        blue, and `mean`, `std`, `scale` and `pad_value` are those of the result.
    frame_index : array, (N,), integer, optional
        Frame of each box; required for several frames. On the host, or with boxes on the GPU also there (int32 or
        int64): then it is not read by the host, and an index outside [0, F) gives an item of NaN (0 for uint8).
    flip : array, (N,), integer or bool, optional
        How each item is mirrored: 1 left and right, 2 above and below, 3 both; a letterboxed one with its padding, and
        its transform leads back all the same (a box comes back with its two sides exchanged). On the host, or with
        boxes on the GPU also there: then it is not read by the host, and only its last two bits count.
    count : int or array, () or (1,), integer, optional
        How many items are made: the first ones; what others have in the result is left as it is. On the GPU (int32 or
        int64), as a detector leaves it, it is not read by the host, unless the frame lies there or by
        `outside="error"`, which wait in any case. Up to 65535 boxes go with it, and fewer, if what each has of its own
        comes from the host: as many as travel at a time.
    out : array, optional
        Where to write; must have exactly the result's shape, dtype and device, and memory apart from what is read.
        Memory of uint16 takes the bits of bfloat16. Default: new memory at each call. For many calls, pass `out` or
        make a `CropPlan`.
    stream : optional
        A CUDA stream of any library; default: the current one of the frame's library. The call returns once the work
        is queued on it, except for a frame on the host, whose result is waited for. What it reads
        must live until the work is done, and a stream that isn't torch's must outlive the tensors that it works on.
        None where the CPU works.
    device : {"auto", "cpu", "cuda", "cuda:0", ...} or torch.device
        "auto" works where the frame lies; for a frame on the host, on the GPU if there is one. A number must be that of
        the GPU in use.

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
        If the result does not fit; says how much is needed and free. A host is asked for large results alone.

    Warns
    -----
    UserWarning
        Once per process: for `mean` and `std` that look as if in units of 1, and for uint16 frames whose values a
        result of uint8 or float16 can't hold, if neither `scale` nor `std` says so.

    Examples
    --------
    >>> import numpy as np
    >>> frame = np.zeros((1080, 1920, 3), np.uint8)
    >>> crop_resize(frame, [[10, 20, 60, 90], [5, 5, 6, 6]], mean=127.5, std=127.5, device="cpu").shape
    (2, 3, 224, 224)
    """
    crop = apart(_crop) if TRACER in modules else _crop
    return crop(frame, boxes, size, out, stream, options)


def _crop(frame: Any, boxes: Any, size: Size, out: Any, stream: Any, options: dict[str, Any]) -> Any:
    if type(frame) not in read_directly:
        frame = pillow_frame(frame, options)
    asked = read_call(frame, boxes, size, out, stream, options)
    known = _memo().get(asked[0])
    made = None if known is None else known.run(asked, out)
    return made if made is not None else _crop_anew(frame, boxes, out, stream, {"size": size, **options}, asked)


def _memo() -> dict[Any, Any]:
    memo: dict[Any, Any] = _thread.__dict__.setdefault("memo", {})
    return memo


def _crop_anew(frame: Any, boxes: Any, out: Any, stream: Any, options: dict[str, Any], asked: Asked) -> Any:
    """The long way of a call: look at all of it, and keep what the next such call needs."""
    check_known("crop_resize", options, ("size", *CALL_OPTIONS, "letterbox"))
    model, described = frame_view(frame), boxes_view(boxes)
    check_box_shape(described.shape, described.dtype)
    frame_index, flip, count = (options.pop(name, None) for name in ("frame_index", "flip", "count"))
    device = options.pop("device", "auto")
    own, channels = {}, made_channels(model, options.get("channels", "RGB"))
    if own_normalisation(options.get("mean"), options.get("std"), described.shape[0], channels):
        own = {name: options.pop(name) for name in ("mean", "std")}
    items, most = items_of(frame_index, flip, **own, count=count)
    where = streams.device_for(model, device)
    if where == "cuda" and model.device == "cpu":
        return _crop_staged(model, described, items, most, out, stream, device, options)
    check_stream(stream, where)
    queue = streams.stream_for(model, described, stream) if where == "cuda" else None
    kernel = _kernel_for(model, described, items, options, where, queue)
    spec, n = kernel.spec, described.shape[0]
    check_count(spec, n)
    kernel.check(model, described, items, most)
    letterbox = spec.options.letterbox
    if where == "cpu":
        check_host_memory(spec.nbytes(n) * (out is None) + TRANSFORM_BYTES * n * letterbox)
    result = out
    if out is None:
        result = result_memory(model, spec.shape(n), spec.dtype, queue)
        target = new_view(result, model, spec.shape(n), spec.dtype)
    else:
        target = result_view(out, "out")
        kernel.check_out(target, n)
        check_apart(target, frame=model, boxes=described, **items.named)
    transform = result_memory(model, (n, 4), "float32", queue) if letterbox else None
    written = None if transform is None else new_view(transform, model, (n, 4), "float32")
    if queue is not None and stream is None:
        streams.wait_for_other_families(queue, *model.planes, described, target, *items.arrays)
    call = Call(model, described, target, items, written)
    kernel.execute(call, most, queue)
    launch = None if asked[0] is None or most is not None else kernel.prepare(call)
    if launch is not None:
        now, place = (
            (get_num_threads, Place(get_num_threads())) if where == "cpu" else (streams.where(model.unowned), None)
        )
        if launch.uploads:
            place = Place(now() if stream is None else streams.handle_of(stream))
        make = partial(maker, model.unowned)
        new = make(spec.shape(n), spec.dtype), make((n, 4), "float32") if letterbox else None
        keep(_memo(), asked[0], PreparedCall(launch, now, place, None, new, letterbox))
    return result if transform is None else (result, transform)


def _crop_staged(
    model: ArrayView, boxes: ArrayView, items: Items, most: int | None, out: Any, stream: Any, device: Any,
    options: dict[str, Any],
) -> Any:  # fmt: skip
    """Of a frame that has to be brought to the GPU, by a plan of one run."""
    if boxes.device == "cuda":
        check_gpu_boxes(boxes)
    check_frame_index(items.frame_index, model, boxes.shape[0], boxes.device)
    plan = CropPlan(
        model, boxes.shape[0], device=device, allocate=out is None, box_dtype=kernel_dtype(boxes, "float32"),
        index_dtype=kernel_dtype(items.frame_index, "int32"), box_shape=boxes.shape[1:], **options,
    )  # fmt: skip
    return plan.run(
        model, boxes, frame_index=items.frame_index, flip=items.flip, mean=items.mean, std=items.std,
        count=items.counted if most is None else most, out=out, stream=stream,
    )  # fmt: skip


def _kernel_for(
    frame: ArrayView, boxes: ArrayView, items: Items, options: dict[str, Any], device: str, queue: Any
) -> CropKernel:
    """A kernel for any number of boxes, used in this thread, and on a GPU on `queue` alone.

    Raises
    ------
    InputError
        As `CropKernel`, and for boxes or an index that no kernel reads.
    """
    try:
        parts = [(name, frozen(name, value)) for name, value in options.items()]
    except UnreadableError:
        return _make_kernel(frame, boxes, items, options, device, queue)
    kind = type(frame), frame.family, frame.dtype, frame.shape[-1:], len(frame.shape), frame.ordinal
    key = (*kind, device, queue, *parts)
    known: CropKernel | None = _memo().pop(key, None)
    # As the newest: calls that differ in their arrays alone don't take its place.
    known = known or _make_kernel(frame, boxes, items, options, device, queue)
    keep(_memo(), key, known)
    return known


def _make_kernel(
    frame: ArrayView, boxes: ArrayView, items: Items, options: dict[str, Any], device: str, queue: Any
) -> CropKernel:
    if device == "cuda" and is_capturing(queue):
        raise InputError(
            "the first call of a kind on a stream reserves memory, which a graph can't capture; make it once before, "
            "or make a CropPlan"
        )
    if boxes.device == "cuda":
        check_gpu_boxes(boxes)
    check_frame_index(items.frame_index, frame, boxes.shape[0], boxes.device)
    maps = are_maps(boxes.shape)
    kernel = CropKernel(frame, CropOptions(**options), boxes.shape[0], device, maps)
    if device == "cuda":
        from_host = INSIDE if not maps and boxes.shape[0] <= MOST_BOXES_INSIDE else "float32"
        dtypes = kernel_dtype(boxes, from_host), kernel_dtype(items.frame_index, "int32")
        kernel.load(MAX_ITEMS, *dtypes, queue)
    kernel.max_boxes = INT32_MAX // kernel.spec.options.size[0]
    return kernel
