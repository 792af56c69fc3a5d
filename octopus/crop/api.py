"""Crop, resize and normalise many boxes of one frame, in one launch."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial
from sys import modules
from typing import Any, Literal, Unpack, overload

import numpy as np

from octopus.arrays import checks, streams
from octopus.arrays.launch import PreparedLaunch
from octopus.arrays.memo import TRACER, UnreadableError, apart, dynamo_disabled, frozen, keep, marked, read_directly
from octopus.arrays.plan import Place, Plan, Stage
from octopus.arrays.results import check_family, check_host_memory, check_memory, maker, result_memory
from octopus.arrays.views import ArrayView
from octopus.backends.cpu import get_num_threads
from octopus.backends.cuda.device import is_capturing
from octopus.crop import check, spec
from octopus.crop.check import Call, Items
from octopus.crop.frame import frame_view, made_channels, pillow_frame, upright
from octopus.crop.kernel import Asked, CropKernel, PreparedCall, read_call
from octopus.crop.spec import CallOptions, CropOptions, PlanOptions, RunOptions, Sizes
from octopus.errors import InputError, shown

TRANSFORM_BYTES = 16  # of an item


class CropPlan(Plan):
    """Memory and a compiled kernel for up to `max_boxes` boxes, made once and run many times.

    `run` allocates no device memory (but the first with a flip, mean or std from the host, for these) and launches once
    (boxes from the host: up to 240 are an argument of the launch, more are copied and take a launch per 64 KiB, which
    are 4096 boxes, 3276 with a frame index, or 2730 affine maps; on the GPU: once per 65535). With all on the GPU it
    neither copies nor waits, unless `outside="error"`, and can be captured in a CUDA graph. The result of a run is
    overwritten by the next, unless `out` is given. A plan may be used on several streams, but by one thread at a time;
    a second one is refused.

    Parameters
    ----------
    frame : array, (H, W, C), or NV12 or P010
        A frame like those to come: same library, side, dtype and channels; its pixels are not read. Later frames
        may have another height and width; only a frame that is copied from the host to the GPU must not have more bytes
        than this one. Several frames, of shape (F, H, W, C), make a plan whose runs name the frame of each box; F may
        change too.
    max_boxes : int
    size, mean, std, scale, dtype, layout, edge, antialias, filter, letterbox, return_transform, outside, pad_mode,
    pad_value, channels, pad_to, device
        As in `crop_resize`; sizes (max_boxes, 2) are those of the first boxes of each run, and a rule needs a
        `max_width`. A plan made with a list of frames takes lists. Where items have sizes, or there are lists or
        quadrilaterals, the GPU is told where they lie: runs with boxes on the GPU can be captured once such a run, with
        frames and boxes at the same addresses, was made before. Frames from the host have memory there during a run.
    allocate : bool
        False leaves the result's memory to the `out` of every run.
    box_dtype : {"float32", "int32", "int64", "float64"}
        Of boxes on the GPU to come; the kernel for another one is compiled or loaded at its first run. Boxes from the
        host always travel as float32.
    index_dtype : {"int32", "int64"}
        The same for a `frame_index` on the GPU; from the host it travels as int32.
    box_shape : {(4,), (2, 3), (4, 2)}
        Of one of the first boxes to come. A run takes boxes (N, 4) or affine maps (N, 2, 3), each with a kernel of its
        own; that for the other kind is compiled or loaded at its first run. One for quadrilaterals takes these alone.
    stream : optional
        A CUDA stream in whose order memory is reserved; the first run must then be on it. Without one the constructor
        waits until it has the memory, and runs may use any stream.

    Attributes
    ----------
    max_boxes : int
        Most boxes of a run.
    device : {"cpu", "cuda"}
        Where it works.
    spec : CropSpec
        What a run comes to: `spec.shape(count)`, `spec.nbytes(count)` and `spec.dtype` of its result.
    engine : CpuEngine or CudaEngine
        What does the work once all is checked, for measurements of it alone.

    Raises
    ------
    InputError, DeviceError, OutOfMemoryError
        As `crop_resize`.

    Examples
    --------
    >>> import numpy as np
    >>> frame = np.zeros((1080, 1920, 3), np.uint8)
    >>> plan = CropPlan(frame, 100, (32, 32), device="cpu")
    >>> plan.run(frame, [[10, 20, 60, 90]]).shape
    (1, 3, 32, 32)
    """

    @dynamo_disabled
    def __init__(
        self, frame: Any, max_boxes: int, size: Sizes = (224, 224), *, device: checks.Device = "auto",
        allocate: bool = True, box_dtype: str = "float32", index_dtype: str = "int32",
        box_shape: tuple[int, ...] = (4,), stream: Any = None, pad_to: Any = None, **options: Unpack[PlanOptions],
    ) -> None:  # fmt: skip
        if not checks.is_count(max_boxes) or max_boxes < 0:
            raise InputError(f"max_boxes must be a non-negative integer, found {shown(max_boxes)}")
        checks.check_known("CropPlan", options, spec.PLAN_OPTIONS)
        checks.check_choice("box_dtype", box_dtype, check.BOX_DTYPES)
        checks.check_choice("index_dtype", index_dtype, check.INDEX_DTYPES)
        if not isinstance(box_shape, (tuple, list)) or tuple(box_shape) not in check.KINDS:
            raise InputError(
                f"box_shape must be (4,), (2, 3) for affine maps or (4, 2) for quadrilaterals, found {shown(box_shape)}"
            )
        self._varied: Any = None
        if check.is_varied(frame, None, size, pad_to, tuple(box_shape)):
            from octopus.crop import varied

            more: dict[str, Any] = {**options, "pad_to": pad_to, "allocate": allocate, "stream": stream}
            given = varied.planned(frame, tuple(box_shape), more)
            plan = self._varied = varied.VariedPlan(given, int(max_boxes), size, device, **more)
            self.max_boxes, self.spec, self.device, self.engine = int(max_boxes), plan.spec, plan.device, plan.engine
            return
        model = upright(frame_view(frame), copied=False)
        checked, maps = CropOptions(size=size, **options), len(box_shape) == 2
        if allocate:
            check_family(model, checked.dtype)
        self.max_boxes = int(max_boxes)
        kernel = self._kernel = CropKernel(model, checked, self.max_boxes, streams.device_for(model, device), maps)
        self.spec = kernel.spec
        queue = self._begin(model, kernel.device, stream)
        self._check_free(allocate)
        self._out = self._new(self.spec.shape(self.max_boxes), self.spec.dtype) if allocate else None
        self._transform = self._new((self.max_boxes, 4), "float32") if checked.letterbox else None
        if queue is not None:
            from octopus.crop.cuda import INSIDE

            kernel.load(self.max_boxes, box_dtype, index_dtype, queue, self._memory)
            kernel.engine.preload(self._model, INSIDE, "int32", maps)
            if kernel.host_to_gpu:
                results = self.spec.nbytes(self.max_boxes), self._transform_bytes
                kernel.stage = Stage(self._model.nbytes, results, queue)
                self._memory.keep(*kernel.stage.owned)
        self.engine = kernel.engine
        self._hold()

    def _check_free(self, allocate: bool) -> None:
        """Refuse what can't fit. Torch and CuPy know best what they can give, and are asked by allocating."""
        result = (self.spec.nbytes(self.max_boxes) if allocate else 0) + self._transform_bytes
        if self._model.device == "cpu":
            check_host_memory(result)
        if self._kernel.host_to_gpu or (self.device == "cuda" and self._model.family not in ("torch", "cupy")):
            from octopus.backends.cuda.memory import free_bytes

            check_memory(self.gpu_bytes if self._kernel.host_to_gpu else result, free_bytes(), "the GPU")

    @property
    def _transform_bytes(self) -> int:
        return TRANSFORM_BYTES * self.max_boxes if self.spec.options.letterbox else 0

    @property
    def gpu_bytes(self) -> int:
        """Device memory that the plan holds at most, in bytes: result, boxes, and a host frame's copy."""
        if self.device == "cpu":
            return 0
        if self._varied is not None:
            return self._varied.gpu_bytes  # type: ignore[no-any-return]
        from octopus.crop.cuda import upload_bytes

        results = self.spec.nbytes(self.max_boxes) + self._transform_bytes
        frame = self._model.nbytes if self._kernel.host_to_gpu else 0
        return results + sum(upload_bytes(self.max_boxes, self.spec.frame.indexed)) + frame

    def __call__(self, frame: Any, boxes: Any, **given: Any) -> Any:
        """As `run`."""
        return self.run(frame, boxes, **given)

    @marked
    def run(self, frame: Any, boxes: Any, *, out: Any = None, stream: Any = None, **options: Unpack[RunOptions]) -> Any:
        """Crop and resize `boxes` out of `frame`; see `crop_resize` for all of these.

        Parameters
        ----------
        mean, std : array, (N, C), optional
            Of each item, where the plan was made without; on the side of the boxes, on the GPU as float32.
        frame_index, flip, count, out, stream
            As in `crop_resize`.

        Returns
        -------
        array, or with `return_transform` (array, transform)
            The first N items of the plan's memory, or `out`; the transform is always in the plan's memory.

        Raises
        ------
        InputError
            For bad input, more than `max_boxes` boxes, or while another thread is in a run of this plan.
        """
        run = apart(CropPlan._run) if TRACER in modules else CropPlan._run
        return run(self, frame, boxes, out, stream, options)

    def _run(self, frame: Any, boxes: Any, out: Any, stream: Any, options: Mapping[str, Any]) -> Any:
        if self._varied is not None:
            return self._varied.call(frame, boxes, out, stream, dict(options))
        free = self._alone.free  # as `with self._alone`, which takes 0.3 us more of 4
        try:
            free.pop()
        except IndexError:
            raise checks.at_work() from None
        try:
            asked = read_call(frame, boxes, 0, out, stream, options)
            known = self._memo.get(asked[0])
            made = None if known is None else known.run(asked, out)
            return made if made is not None else self._run_anew(frame, boxes, out, stream, options, asked)
        finally:
            free.append(True)

    def _run_anew(self, frame: Any, boxes: Any, out: Any, stream: Any, options: Mapping[str, Any], asked: Asked) -> Any:
        """The long way of a run: look at all of it, and keep what the next such run needs."""
        checks.check_known("run", options, spec.RUN_OPTIONS)
        given, described = frame_view(frame), checks.boxes_view(boxes)
        model = upright(given)
        items, most = check.items_of(*(options.get(name) for name in check.ITEM_NAMES), number=described.shape[0])
        checks.check_stream(stream, self.device)
        self._kernel.check(model, described, items, most)
        result = self._head(self._out, described.shape[0]) if out is None else out
        transform = None if self._transform is None else self._head(self._transform, described.shape[0])
        call = self._kernel.work(model, described, items, most, result, transform, stream, out is None)
        again = asked[0] is not None and most is None and model.pointer == given.pointer
        launch = self._kernel.prepare(call) if again else None
        if launch is not None:
            # A caller's `out` must not stay alive here.
            self._keep(asked, call, launch, result if out is None else None, transform)
        return (result, transform) if self.spec.options.return_transform else result

    def _keep(self, asked: Asked, call: Call, launch: PreparedLaunch, result: Any, transform: Any) -> None:
        """Let other runs like this one go the short way."""
        where: Callable[[], int] = get_num_threads
        place = Place(get_num_threads())
        if self.device == "cuda":
            where, place = streams.where(call.frame.unowned), self._memory
            if not self._memory.is_here:
                return
            place.handle = where() if asked[2] is None else asked[2]
        own = result, call.out.pointer
        its = (transform, 0 if call.transform is None else call.transform.pointer)
        makers = (lambda _: own), None if transform is None else (lambda _: its)
        prepared = PreparedCall(launch, where, place, *makers, self.spec.options.return_transform)
        keep(self._memo, asked[0], prepared)


class _Memo(threading.local):
    """Prepared calls and kernels: each thread has its own, so that no call waits for another one's."""

    def __init__(self) -> None:
        self.known: dict[Any, Any] = {}


_thread = _Memo()


@overload
def crop_resize(
    frame: Any, boxes: Any, size: Sizes = ..., *, return_transform: Literal[True], out: Any = ..., stream: Any = ...,
    **options: Unpack[CallOptions],
) -> tuple[Any, Any]: ...  # fmt: skip
@overload
def crop_resize(
    frame: Any, boxes: Any, size: Sizes = ..., *, return_transform: bool = ..., out: Any = ..., stream: Any = ...,
    **options: Unpack[CallOptions],
) -> Any: ...  # fmt: skip
@marked
def crop_resize(
    frame: Any, boxes: Any, size: Sizes = (224, 224), *, out: Any = None, stream: Any = None, **options: Any
) -> Any:
    """Cut boxes out of a frame, or of several, resize each, and normalise, in one launch.

    Each item is that of `cv2.resize(crop, (width, height), interpolation=cv2.INTER_LINEAR)` on float32, then
    `(value - mean) / std`: half-pixel centres, no antialiasing, clamped at the box. `edge`, `antialias` and `letterbox`
    change that, each on its own or together.

    Nothing waits for boxes, and what each has of its own, where these lie on the GPU: the host doesn't read them. What
    can't be cut out is an error on the host, see `invalid`; on the GPU its item is NaN (0 for uint8).

    Parameters
    ----------
    frame : array, (H, W, C) or (F, H, W, C), uint8, uint16 or float32; a list of (H, W, C); or NV12 or P010
        One frame, or several of which `frame_index` chooses, or a list of frames that differ in height and width: then
        `boxes` is a list of as many arrays, and items come in their order. C is 1 to 64; a grey frame may be (H, W).
        NumPy, torch, CuPy, Numba, or anything with DLPack or `__cuda_array_interface__`; never copied where it already
        lies on the device that works. Rows may be further apart than their length. On the host any strides are taken,
        and channels may come first, before a width of more than 64; that is copied, in 1 ms for 720p. Images of Pillow
        are read in their memory, of the modes RGB, RGBA, RGBX, L and I;16. `octopus.NV12` and `octopus.P010` are frames
        of video, which count as three channels of uint8.
    boxes : array, (N, 4), (N, 2, 3) or (N, 4, 2), integer or float, on the host or the GPU; or a list of such
        (N, 4) are boxes `x1, y1, x2, y2` in pixels, each of which covers `[x1, x2) x [y1, y2)` and is cut to the frame,
        see `outside`. They are read as float32, whose numbers lie 1/16384 of a pixel apart at 1000 pixels and 1/16 at
        1,000,000. A box can't be cut out that is empty, not finite or wholly outside, or has a side of more than 16384
        pixels once it is cut. On the GPU, but for `outside="pad"`, an infinite coordinate is cut to the frame's edge,
        and a side that is too long is sampled less exactly. `[]` is no boxes. Torchvision's `BoundingBoxes` are
        converted by their format, and of objects with boxes in `xyxy` (supervision's `Detections`) these are taken.
        (N, 2, 3) are affine maps from the result's pixel to the frame's, both counted from the centre of the first:
        what `cv2.warpAffine(frame, map, (width, height), flags=INTER_LINEAR | WARP_INVERSE_MAP)` takes;
        `octopus.rotated_boxes` makes them of rotated boxes. They take no `edge`, `antialias` and `letterbox`. Samples
        beyond the frame take its nearest pixel, or what `outside` says. A map can't be cut out that is not finite or
        reaches further than 2**24 pixels.
        (N, 4, 2) are quadrilaterals, points `x, y` that become the item's corners in turn: upper left, upper right,
        lower right, lower left. Upright ones are sampled where boxes are, others as `cv2.warpPerspective` does, but
        without its steps of 1/32 of a pixel; else they are as maps. One can't be cut out that is crossed, not convex or
        (all but) flat, either.
    size : (int, int) or int; or array (N, 2), or FitHeight
        Height and width of the result in pixels, or the side of a square; or those of each item, integers on the host,
        or a rule that makes them of boxes and quadrilaterals (which, on the GPU, it reads, and waits).
    mean, std : float or C floats, optional; or arrays (N, C)
        In units of the frame's values (0 to 255 for uint8), or with `scale` in units of 1; default 0 and 1. These and
        `scale` and `pad_value` may be lists or arrays on the host, of shape (C,), (C, 1, 1) or (1, C, 1, 1). Arrays of
        shape (N, C) are those of each item, both together; with boxes on the GPU also there, as float32.
    scale : float or C floats, optional
        The frame's value that counts as 1, such as 255 (not 1/255, which is refused of integers): the result is
        `(value / scale - mean) / std`.
    dtype : {"float32", "float16", "bfloat16", "uint8"}
        uint8 rounds half to even and saturates; float16 overflows to infinity; bfloat16 is for tensors of torch. A GPU
        may round the weights of a row's pixels to 1/32768 for these three, so that a value is up to 0.004 levels off
        before it is rounded. Of float32 frames one value that is not finite makes NaN of all that it has a part in.
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
        "nearest": the pixel in which a place in the frame lies, as PIL's `NEAREST`, OpenCV's `INTER_NEAREST_EXACT` and
        torch's "nearest-exact" do. "bicubic": four by four pixels by Keys' cubic with the slope -0.75, as OpenCV's
        `INTER_CUBIC` and torch's "bicubic" do, whose values may overshoot those of the frame. Both go without
        `antialias`.
    letterbox : bool
        Keep each box's aspect ratio: it fills the height or the width, in the middle of the item.
    return_transform : bool
        With `letterbox`, also return the transform that leads back to the frame.
    outside : {"clip", "error", "pad"}
        What happens to a box that reaches beyond its frame. "clip": it is cut to the frame. "error": it is refused;
        boxes on the GPU are then read back, which waits for the work before, and is refused while a graph is captured.
        "pad": it is not cut, may lie wholly outside, up to 2**24 pixels from the frame's corner, and `pad_mode` makes
        the pixels beyond the frame; `edge="box"` repeats the border pixels of the whole box, and the transform is that
        of the whole box. Maps and quadrilaterals are never cut and may lie outside: "clip" repeats the frame's nearest
        pixel, "error" refuses maps that take samples there, and quadrilaterals with a corner there, and "pad" is as for
        boxes.
    pad_mode : {"constant", "edge", "reflect"}
        With `outside="pad"`, what lies beyond the frame: `pad_value`, the nearest pixel, or the frame mirrored without
        repeating its border pixels, as often as it takes (NumPy's "reflect", OpenCV's BORDER_REFLECT_101).
    pad_value : float or C floats, optional
        What fills the rest of a letterboxed item, and with `pad_mode="constant"` what lies beyond the frame; in units
        of the frame's values. Default 114 of uint8 and video, else 114/255 of `scale`, and needed where there is none.
        Refused where it would fill nothing.
    channels : {"RGB", "BGR", "RGBA", "BGRA"}
        How the frame stores its channels. "RGB": any number of them, as they are. Else the result has red, green and
        blue, and `mean`, `std`, `scale` and `pad_value` are those of the result.
    invalid : {"error", "nan", "drop"}
        What happens to boxes, maps and quadrilaterals on the host that can't be cut out. "error": all are refused.
        "nan": their items, and transforms, are as of those on the GPU. "drop": they are left out, with what each had of
        its own, and the result is a pair: what it would be for the others, and their numbers.
    frame_index : array, (N,), integer, optional
        Frame of each box; required for several frames. On the host, or with boxes on the GPU also there (int32 or
        int64): then an index outside [0, F) gives an item of NaN (0 for uint8).
    flip : array, (N,), integer or bool, or one for all, optional
        How each item is mirrored: 1 left and right, 2 above and below, 3 both; a letterboxed one with its padding, and
        its transform leads back all the same (a box comes back with its two sides exchanged). On the host, or with
        boxes on the GPU also there: then only its last two bits count. This, `count`, `frame_index`, `mean` and `std`
        of each item, and video, go with boxes and maps of one size from one array.
    count : int or array, () or (1,), integer, optional
        How many items are made: the first ones; what others have in the result is left as it is. On the GPU (int32 or
        int64), as a detector leaves it, it is read by the host only if the frame lies there or by `outside="error"`,
        which wait in any case. Up to 65535 boxes go with it, and fewer, if what each has of its own comes from the
        host: as many as travel at a time.
    pad_to : (int, int), int or "largest", optional
        Height and width that each item is filled up to by `pad_value`, below and to the right; "largest" are those of
        the largest item.
    out : array, optional
        Where to write; must have exactly the result's shape, dtype and device, and memory apart from what is read.
        Memory of uint16 takes the bits of bfloat16. Default: new memory at each call. For many calls, pass `out` or
        make a `CropPlan`.
    stream : optional
        A CUDA stream of any library; default: the current one of the frame's library. The call returns once the work
        is queued on it, except for a frame on the host, whose result is waited for. What it reads must live until the
        work is done, and a stream that isn't torch's must outlive the tensors that it works on. None where the CPU
        works.
    device : {"auto", "cpu", "cuda", "cuda:0", ...} or torch.device
        "auto" works where the frame lies; for a frame on the host, on the GPU if there is one. A number must be that of
        the GPU in use.

    Returns
    -------
    array, (N, C, height, width) or (N, height, width, C)
        On the frame's side and of its library; NumPy or `DeviceArray` where that offers DLPack or
        `__cuda_array_interface__` alone. With sizes of their own `RaggedBatch` of such items, whose `values` are `out`;
        with `pad_to` a pair, of the array and the sizes (N, 2), int64 on the host.
    kept : ndarray, (N,), int64
        With `invalid="drop"` only, the second of a pair: numbers of the boxes that are in the result.
    transform : array, (N, 4), float32
        With `return_transform` only, then the result is a pair: `scale_x, scale_y, shift_x, shift_y` of each item, for
        `octopus.map_back`; on the same side, of the same library. NaN for what can't be cut out, on the GPU.

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
        Once per process for each likely mistake in units of `mean`, `std`, `scale` and `dtype`, and for boxes on the
        host that look like shares of the frame's sides; `docs/faq.md` has a table of them.

    Examples
    --------
    >>> import numpy as np
    >>> frame = np.zeros((1080, 1920, 3), np.uint8)
    >>> crop_resize(frame, [[10, 20, 60, 90], [5, 5, 6, 6]], mean=127.5, std=127.5, device="cpu").shape
    (2, 3, 224, 224)
    """
    crop = apart(_crop) if TRACER in modules else _crop
    return crop(frame, boxes, size, out, stream, options)


def _crop(frame: Any, boxes: Any, size: Sizes, out: Any, stream: Any, options: dict[str, Any]) -> Any:
    if type(frame) not in read_directly:
        frame = pillow_frame(frame, options)
    if "invalid" in options:
        return _crop_valid(frame, boxes, size, out, stream, options)
    asked = read_call(frame, boxes, size, out, stream, options)
    known = _thread.known.get(asked[0])
    made = None if known is None else known.run(asked, out)
    return made if made is not None else _crop_anew(frame, boxes, out, stream, {"size": size, **options}, asked)


def _crop_valid(frame: Any, boxes: Any, size: Sizes, out: Any, stream: Any, options: dict[str, Any]) -> Any:
    invalid, listed = options.pop("invalid"), isinstance(frame, (list, tuple))
    checks.check_choice("invalid", invalid, check.INVALID)
    call = partial(_crop, out=out, stream=stream)
    if invalid == "error":
        return call(frame, boxes, size, options=options)
    if listed and not (isinstance(boxes, (list, tuple)) and len(boxes) == len(frame)):
        return call(frame, boxes, size, options=options)  # which refuses it
    frames = [upright(frame_view(each), copied=False) for each in (frame if listed else [frame])]
    given = [checks.boxes_view(each) for each in (boxes if listed else [boxes])]
    there = any(each.device == "cuda" for each in given)
    if there and invalid == "drop":
        raise InputError(
            'invalid="drop" reads the boxes, which lie on the GPU; ask for "nan", or copy them to the host'
        )
    if there or not all(each.shape[1:] in check.KINDS for each in given) or any(len(f.shape) < 3 for f in frames):
        return call(frame, boxes, size, options=options)
    outside, side = options.get("outside", "clip"), (1, 1) if check.are_sizes(size) else checks.checked_size(size)
    good = [check.usable(b, f.shape[-3], f.shape[-2], outside, side) for b, f in zip(given, frames, strict=True)]
    kept, most = np.concatenate(good), check.items_of(count=options.get("count"))[1]
    most = len(kept) if most is None else most
    if invalid == "drop":
        held: list[Any] = [each.numpy()[usable] for each, usable in zip(given, good, strict=True)]
        for name, dimensions in (("frame_index", 1), ("flip", 1), ("mean", 2), ("std", 2)):
            options[name] = check.rows_of(options.get(name), kept, dimensions)
        if options.get("count") is not None and 0 <= most <= len(kept):
            options["count"] = int(kept[:most].sum())
        size = check.rows_of(size, kept, 2)
        return call(frame, held if listed else held[0], size, options=options), np.flatnonzero(kept)
    on_gpu = streams.device_for(frames[0], options.get("device", "auto")) == "cuda"
    held = [check.with_stand_ins(each, usable, on_gpu) for each, usable in zip(given, good, strict=True)]
    if on_gpu:  # where items of NaN become that, and the others are as inside as they are to be
        from octopus.backends.cuda.memory import upload

        held = [upload(each) for each in held]
        options["outside"] = "clip" if outside == "error" else outside
    made = call(frame, held if listed else held[0], size, options=options)
    if not on_gpu:
        check.fill_items(made, np.flatnonzero(~kept[:most]), bool(options.get("return_transform")))
    return made


def _crop_anew(frame: Any, boxes: Any, out: Any, stream: Any, options: dict[str, Any], asked: Asked) -> Any:
    """The long way of a call: look at all of it, and keep what the next such call needs."""
    checks.check_known("crop_resize", options, ("size", *spec.CALL_OPTIONS, "return_transform"))
    if check.is_varied(frame, boxes, options["size"], options.get("pad_to")):
        from octopus.crop import varied

        return varied.crop(frame, boxes, out, stream, options)
    options.pop("pad_to", None)
    original, described = frame_view(frame), checks.boxes_view(boxes)
    model = upright(original)
    check.check_box_shape(described.shape, described.dtype)
    n, device = described.shape[0], options.pop("device", "auto")
    given = {name: options.pop(name, None) for name in ("frame_index", "flip", "count")}
    channels = made_channels(model, options.get("channels", "RGB"))
    if check.own_normalisation(options.get("mean"), options.get("std"), n, channels):
        given |= {name: options.pop(name) for name in ("mean", "std")}
    items, most = check.items_of(**given, number=n)
    where = streams.device_for(model, device)
    if where == "cuda" and model.device == "cpu":  # by a plan of one run
        _check_kind(model, described, items)
        plan = CropPlan(
            model, n, device=device, allocate=out is None, box_dtype=check.kernel_dtype(described, "float32"),
            index_dtype=check.kernel_dtype(items.frame_index, "int32"), box_shape=described.shape[1:], **options,
        )  # fmt: skip
        return plan.run(model, described, out=out, stream=stream, **given)
    checks.check_stream(stream, where)
    queue = streams.stream_for(model, described, stream) if where == "cuda" else None
    kernel = _kernel_for(model, described, items, options, where, queue)
    shape, dtype, letterbox = kernel.spec.shape(n), kernel.spec.dtype, kernel.spec.options.letterbox
    both = kernel.spec.options.return_transform
    check.check_count(kernel.spec, n)
    kernel.check(model, described, items, most)
    if where == "cpu":
        check_host_memory(kernel.spec.nbytes(n) * (out is None) + TRANSFORM_BYTES * n * letterbox)
    result = result_memory(model, shape, dtype, queue) if out is None else out
    transform = result_memory(model, (n, 4), "float32", queue) if letterbox else None
    call = kernel.work(model, described, items, most, result, transform, stream, out is None)
    again = asked[0] is not None and most is None and model.pointer == original.pointer
    launch = kernel.prepare(call) if again else None
    if launch is not None:
        now, place = (
            (get_num_threads, Place(get_num_threads())) if where == "cpu" else (streams.where(model.unowned), None)
        )
        if launch.uploads:
            place = Place(now() if stream is None else streams.handle_of(stream))
        make = partial(maker, model.unowned)
        makers = make(shape, dtype), make((n, 4), "float32") if letterbox else None
        keep(_thread.known, asked[0], PreparedCall(launch, now, place, *makers, both))
    return (result, transform) if both else result


def _check_kind(frame: ArrayView, boxes: ArrayView, items: Items) -> None:
    if boxes.device == "cuda":
        check.check_gpu_boxes(boxes)
    check.check_frame_index(items.frame_index, frame, boxes.shape[0], boxes.device)


def _kernel_for(
    frame: ArrayView, boxes: ArrayView, items: Items, options: dict[str, Any], device: str, queue: Any
) -> CropKernel:
    """A kernel for any number of boxes, used in this thread, and on a GPU on `queue` alone."""
    make = partial(_make_kernel, frame, boxes, items, options, device, queue)
    try:
        parts = [(name, frozen(name, value)) for name, value in options.items()]
    except UnreadableError:
        return make()
    kind = type(frame), frame.family, frame.dtype, frame.shape[-1:], len(frame.shape), frame.ordinal
    key = (*kind, device, queue, *parts)
    known: CropKernel | None = _thread.known.pop(key, None)
    # As the newest: calls that differ in their arrays alone don't take its place.
    return keep(_thread.known, key, known or make())  # type: ignore[no-any-return]


def _make_kernel(
    frame: ArrayView, boxes: ArrayView, items: Items, options: dict[str, Any], device: str, queue: Any
) -> CropKernel:
    if device == "cuda" and is_capturing(queue):
        raise InputError(
            "the first call of a kind on a stream reserves memory, which a graph can't capture; make it once before, "
            "or make a CropPlan"
        )
    _check_kind(frame, boxes, items)
    maps = check.are_maps(boxes.shape)
    kernel = CropKernel(frame, CropOptions(**options), boxes.shape[0], device, maps)
    if device == "cuda":
        from octopus.crop.cuda import INSIDE
        from octopus.kernels.cuda.tiles import MAX_ITEMS, MOST_BOXES_INSIDE

        from_host = INSIDE if not maps and boxes.shape[0] <= MOST_BOXES_INSIDE else "float32"
        dtypes = check.kernel_dtype(boxes, from_host), check.kernel_dtype(items.frame_index, "int32")
        kernel.load(MAX_ITEMS, *dtypes, queue)
    kernel.max_boxes = checks.INT32_MAX // kernel.spec.options.size[0]
    return kernel
