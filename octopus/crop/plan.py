"""Memory and a compiled kernel for many runs of the same crop-and-resize call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from sys import modules
from typing import Any, Unpack

import numpy as np

from octopus.arrays import streams
from octopus.arrays.boxes import boxes_view
from octopus.arrays.checks import Device, at_work, check_apart, check_known, check_stream
from octopus.arrays.dynamo_disabled import TRACER, apart, dynamo_disabled, marked
from octopus.arrays.launch import PreparedLaunch
from octopus.arrays.memo import keep
from octopus.arrays.memory import Place, Stage, check_memory
from octopus.arrays.plan import Plan
from octopus.arrays.results import check_family, check_host_memory, result_view
from octopus.backends.cpu import get_num_threads
from octopus.crop.check import BOX_SHAPES, check_box_dtype, check_index_dtype, check_one_shape
from octopus.crop.cuda import INDEX_BYTES, TRANSFORM_BYTES, upload_bytes, upload_capacity
from octopus.crop.frame import frame_view
from octopus.crop.items import items_of
from octopus.crop.kernel import ITEM_NAMES, Asked, CropKernel, PreparedCall, read_call
from octopus.crop.launch import INSIDE, Call
from octopus.crop.options import PLAN_OPTIONS, RUN_OPTIONS, CropOptions, PlanOptions, RunOptions, Size
from octopus.crop.spec import CropSpec
from octopus.errors import InputError, shown


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
    size, mean, std, scale, dtype, layout, edge, antialias, filter, letterbox, outside, pad_mode, pad_value, channels,
    device
        As in `crop_resize`.
    allocate : bool
        False leaves the result's memory to the `out` of every run.
    box_dtype : {"float32", "int32", "int64", "float64"}
        Of boxes on the GPU to come; the kernel for another one is compiled or loaded at its first run. Boxes from the
        host always travel as float32.
    index_dtype : {"int32", "int64"}
        The same for a `frame_index` on the GPU; from the host it travels as int32.
    box_shape : {(4,), (2, 3)}
        Of one of the first boxes to come. A run takes boxes (N, 4) or affine maps (N, 2, 3), each with a kernel of its
        own; that for the other kind is compiled or loaded at its first run.
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
        self,
        frame: Any,
        max_boxes: int,
        size: Size = (224, 224),
        *,
        device: Device = "auto",
        allocate: bool = True,
        box_dtype: str = "float32",
        index_dtype: str = "int32",
        box_shape: tuple[int, ...] = (4,),
        stream: Any = None,
        **options: Unpack[PlanOptions],
    ) -> None:
        if not isinstance(max_boxes, (int, np.integer)) or isinstance(max_boxes, bool) or max_boxes < 0:
            raise InputError(f"max_boxes must be a non-negative integer, found {shown(max_boxes)}")
        check_known("CropPlan", options, PLAN_OPTIONS)
        model = frame_view(frame)
        check_box_dtype(box_dtype)
        check_index_dtype(index_dtype)
        check_one_shape(box_shape)
        checked = CropOptions(size=size, **options)
        if allocate:
            check_family(model, checked.dtype)
        maps = tuple(box_shape) == BOX_SHAPES[1]
        kernel = CropKernel(model, checked, int(max_boxes), streams.device_for(model, device), maps)
        self._kernel = kernel
        queue = self._begin(model, kernel.device, stream)
        self._check_free(allocate)
        self._out = self._new(self.spec.shape(self.max_boxes), self.spec.dtype) if allocate else None
        self._transform = self._new((self.max_boxes, 4), "float32") if checked.letterbox else None
        if queue is not None:
            kernel.load(self.max_boxes, box_dtype, index_dtype, queue, self._memory)
            kernel.engine.preload(self._model, INSIDE, "int32", maps)
            if kernel.host_to_gpu:
                results = self.spec.nbytes(self.max_boxes), self._transform_bytes
                kernel.stage = Stage(self._model.nbytes, results, queue)
                self._memory.keep(*kernel.stage.owned)
        self._hold()

    def _check_free(self, allocate: bool) -> None:
        """Refuse what can't fit. Torch and CuPy know best what they can give, and are asked by allocating."""
        from octopus.backends.cuda import memory

        result = (self.spec.nbytes(self.max_boxes) if allocate else 0) + self._transform_bytes
        if self._model.device == "cpu":
            check_host_memory(result)
        if self._kernel.host_to_gpu:
            check_memory(self.gpu_bytes, memory.free_bytes(), "the GPU")
        elif self.device == "cuda" and result and self._model.family not in ("torch", "cupy"):
            check_memory(result, memory.free_bytes(), "the GPU")

    @property
    def spec(self) -> CropSpec:
        """What a run comes to."""
        return self._kernel.spec

    @property
    def engine(self) -> Any:
        """What does the work once all is checked."""
        return self._kernel.engine

    @property
    def max_boxes(self) -> int:
        """Most boxes of a run."""
        return self._kernel.max_boxes

    @property
    def _transform_bytes(self) -> int:
        return TRANSFORM_BYTES * self.max_boxes if self.spec.options.letterbox else 0

    @property
    def gpu_bytes(self) -> int:
        """Device memory that the plan holds at most, in bytes: result, boxes, and a host frame's copy."""
        if self.device == "cpu":
            return 0
        frame, indexed = self._model.nbytes if self._kernel.host_to_gpu else 0, self.spec.frame.indexed
        boxes = upload_bytes(self.max_boxes, indexed)
        boxes += INDEX_BYTES * indexed * upload_capacity(self.max_boxes, indexed)
        return self.spec.nbytes(self.max_boxes) + self._transform_bytes + boxes + frame

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
        array, or with `letterbox` (array, transform)
            The first N items of the plan's memory, or `out`; the transform is always in the plan's memory.

        Raises
        ------
        InputError
            For bad input, more than `max_boxes` boxes, or while another thread is in a run of this plan.
        """
        run = apart(CropPlan._run) if TRACER in modules else CropPlan._run
        return run(self, frame, boxes, out, stream, options)

    def _run(self, frame: Any, boxes: Any, out: Any, stream: Any, options: Mapping[str, Any]) -> Any:
        free = self._alone.free
        try:
            free.pop()
        except IndexError:
            raise at_work() from None
        try:
            asked = read_call(frame, boxes, 0, out, stream, options)
            known = self._memo.get(asked[0])
            made = None if known is None else known.run(asked, out)
            return made if made is not None else self._run_anew(frame, boxes, out, stream, options, asked)
        finally:
            free.append(True)

    def _run_anew(self, frame: Any, boxes: Any, out: Any, stream: Any, options: Mapping[str, Any], asked: Asked) -> Any:
        """The long way of a run: look at all of it, and keep what the next such run needs."""
        check_known("run", options, RUN_OPTIONS)
        pixels, described = frame_view(frame), boxes_view(boxes)
        items, most = items_of(*(options.get(name) for name in ITEM_NAMES))
        check_stream(stream, self.device)
        kernel, n = self._kernel, described.shape[0]
        kernel.check(pixels, described, items, most)
        if out is None:
            result = self._head(self._out, n)
            target = result_view(result, "out")
            check_apart(target, "the plan's result", frame=pixels)  # which may be that of the run before
        else:
            result, target = out, result_view(out, "out")
            kernel.check_out(target, n)
            check_apart(target, frame=pixels, boxes=described, **items.named)
        transform, written = None, None
        if self._transform is not None:
            transform = self._head(self._transform, n)
            written = result_view(transform, "out")
        call = Call(pixels, described, target, items, written)
        kernel.execute(call, most, stream)
        launch = None if asked[0] is None or most is not None else kernel.prepare(call)
        if launch is not None:
            self._keep(asked, call, launch, None if out is not None else (result, target.pointer), transform)
        return result if transform is None else (result, transform)

    def _keep(
        self, asked: Asked, call: Call, launch: PreparedLaunch, result: tuple[Any, int] | None, transform: Any
    ) -> None:
        """Let other runs like this one go the short way."""
        where: Callable[[], int] = get_num_threads
        place = Place(get_num_threads())
        if self.device == "cuda":
            where, place = streams.where(call.frame.unowned), self._memory
            if not self._memory.is_here:
                return
            place.handle = where() if asked[2] is None else asked[2]
        own = result, None if call.transform is None else (transform, call.transform.pointer)
        keep(self._memo, asked[0], PreparedCall(launch, where, place, own, None, transform is not None))
