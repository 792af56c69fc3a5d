"""Memory and a compiled kernel for many runs of the same crop-and-resize call."""

from __future__ import annotations

from typing import Any

import numpy as np

from octopus.arrays import streams
from octopus.arrays.boxes import boxes_view
from octopus.arrays.checks import Device, OneAtATime, check_apart, check_stream
from octopus.arrays.memory import Stage, check_memory
from octopus.arrays.results import check_family, check_host_memory, result_memory, result_view
from octopus.arrays.untraced import untraced
from octopus.arrays.views import ArrayView, head_of
from octopus.crop.check import BOX_SHAPES, check_box_dtype, check_index_dtype, check_one_shape
from octopus.crop.cuda import INDEX_BYTES, TRANSFORM_BYTES, upload_bytes, upload_capacity
from octopus.crop.frame import frame_view
from octopus.crop.items import Items, items_of
from octopus.crop.kernel import CropKernel
from octopus.crop.launch import INSIDE
from octopus.crop.options import Channels, CropOptions, Dtype, Edge, Filter, Layout, Outside, PadMode, Size
from octopus.crop.spec import CropSpec
from octopus.errors import InputError, shown

KNOWN_HEADS = 256  # different numbers of boxes whose part of the result a plan remembers


class CropPlan:
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

    @untraced
    def __init__(
        self,
        frame: Any,
        max_boxes: int,
        size: Size = (224, 224),
        *,
        mean: Any = None,
        std: Any = None,
        scale: Any = None,
        dtype: Dtype = "float32",
        layout: Layout = "NCHW",
        edge: Edge = "box",
        antialias: bool = False,
        filter: Filter = "bilinear",
        letterbox: bool = False,
        outside: Outside = "clip",
        pad_mode: PadMode = "constant",
        pad_value: Any = None,
        channels: Channels = "RGB",
        device: Device = "auto",
        allocate: bool = True,
        box_dtype: str = "float32",
        index_dtype: str = "int32",
        box_shape: tuple[int, ...] = (4,),
        stream: Any = None,
    ) -> None:
        if not isinstance(max_boxes, (int, np.integer)) or isinstance(max_boxes, bool) or max_boxes < 0:
            raise InputError(f"max_boxes must be a non-negative integer, found {shown(max_boxes)}")
        model = frame_view(frame)
        check_box_dtype(box_dtype)
        check_index_dtype(index_dtype)
        check_one_shape(box_shape)
        options = CropOptions(
            size=size, mean=mean, std=std, scale=scale, dtype=dtype, layout=layout, edge=edge, antialias=antialias,
            letterbox=letterbox, outside=outside, pad_mode=pad_mode, pad_value=pad_value, channels=channels,
            filter=filter,
        )  # fmt: skip
        if allocate:
            check_family(model, options.dtype)
        maps = tuple(box_shape) == BOX_SHAPES[1]
        self._kernel = CropKernel(model, options, int(max_boxes), streams.device_for(model, device), maps)
        self._model, self._alone = self._kernel.model, OneAtATime()
        self._heads: dict[int, tuple[Any, ArrayView]] = {}
        self._check_free(allocate)
        if self.device == "cpu":
            check_stream(stream, self.device)
            self._reserve(allocate, None)
        else:
            self._reserve_gpu(allocate, box_dtype, index_dtype, stream, maps)

    def _reserve(self, allocate: bool, stream: Any) -> None:
        """Memory for what runs return, of the frame's library."""
        spec, model = self.spec, self._model
        self._out = self._transform = None
        if allocate:
            self._out = result_memory(model, spec.shape(self.max_boxes), spec.dtype, stream)
        if spec.options.letterbox:
            self._transform = result_memory(model, (self.max_boxes, 4), "float32", stream)

    def _reserve_gpu(self, allocate: bool, box_dtype: str, index_dtype: str, stream: Any, maps: bool) -> None:
        """Allocate all that runs will need on the GPU."""
        queue = streams.stream_for(self._model, None, stream)
        self._reserve(allocate, None if stream is None else queue)
        kernel = self._kernel
        kernel.load(self.max_boxes, box_dtype, index_dtype, queue)
        kernel.engine.preload(self._model, INSIDE, "int32", maps)
        kernel.memory.keep(self._out, self._transform)
        if kernel.host_to_gpu:
            results = self.spec.nbytes(self.max_boxes), self._transform_bytes
            kernel.stage = Stage(self._model.nbytes, results, queue)
            kernel.memory.keep(*kernel.stage.owned)
        if stream is None:
            queue.sync()

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
    def device(self) -> str:
        """Where it works: "cpu" or "cuda"."""
        return self._kernel.device

    def __getstate__(self) -> dict[str, Any]:
        """All but what is found anew: descriptions of memory that a copy in another process doesn't have."""
        return self.__dict__ | {"_heads": {}}

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

    @untraced
    def run(
        self, frame: Any, boxes: Any, *, frame_index: Any = None, flip: Any = None, mean: Any = None, std: Any = None,
        count: Any = None, out: Any = None, stream: Any = None,
    ) -> Any:  # fmt: skip
        """Crop and resize `boxes` out of `frame`; see `crop_resize` for all of these.

        Parameters
        ----------
        mean, std : array, (N, C), optional
            Of each item, where the plan was made without; on the side of the boxes, on the GPU as float32.

        Returns
        -------
        array, or with `letterbox` (array, transform)
            The first N items of the plan's memory, or `out`; the transform is always in the plan's memory.

        Raises
        ------
        InputError
            For bad input, more than `max_boxes` boxes, or while another thread is in a run of this plan.
        """
        pixels, described = frame_view(frame), boxes_view(boxes)
        items, most = items_of(frame_index, flip, mean, std, count)
        check_stream(stream, self.device)
        with self._alone:
            return self._run(pixels, described, items, most, out, stream)

    def _run(
        self, frame: ArrayView, boxes: ArrayView, items: Items, most: int | None, out: Any, stream: Any
    ) -> Any:
        kernel = self._kernel
        kernel.check(frame, boxes, items, most)
        count = boxes.shape[0]
        if out is None:
            result, target = self._head(count)
            if frame.dtype == target.dtype:  # it may be the result of the run before
                check_apart(target, "the plan's result", frame=frame)
        else:
            result, target = out, result_view(out, "out")
            kernel.check_out(target, count)
            check_apart(target, frame=frame, boxes=boxes, **items.named)
        transform = head_of(self._transform, count) if self._transform is not None else None
        kernel.execute(frame, boxes, items, most, target, transform, stream)
        return result if transform is None else (result, transform)

    def _head(self, count: int) -> tuple[Any, ArrayView]:
        """The first items of the plan's own memory, and their description."""
        known = self._heads.get(count)
        if known is None:
            if self._out is None:
                raise InputError(
                    "this plan was made with allocate=False and has no memory of its own; pass out="
                )
            head = head_of(self._out, count)
            if len(self._heads) >= KNOWN_HEADS:
                self._heads.clear()
            known = self._heads[count] = (head, result_view(head, "out"))
        return known
