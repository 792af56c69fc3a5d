"""Memory and a compiled kernel for many calls on images of different size."""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from octopus.arrays.checks import Device, check_choice, check_stream, check_tensor
from octopus.arrays.memo import dynamo_disabled, keep
from octopus.arrays.plan import Plan
from octopus.arrays.results import check_host_memory, check_memory, itemsize
from octopus.arrays.staging import Slot, Staging
from octopus.backends.cuda import device as gpu
from octopus.backends.cuda import memory
from octopus.errors import InputError
from octopus.images import calls
from octopus.images.calls import Pattern, Results
from octopus.images.cuda import Launch
from octopus.images.sources import Found, geometry_of, look
from octopus.images.spec import OPTIONS, ImageSpec, capacity_of
from octopus.images.upload import Upload, packing_kernel, room_for, tell_torch, upload_of, vertical_pass_on
from octopus.kernels.images import IMAGE
from octopus.ragged.check import whole


class ImagePlan(Plan):
    """Memory and a compiled kernel for calls on up to `max_images` images, made once and run many times.

    On a GPU `run` allocates nothing: it writes a table of 64 bytes per image into page-locked memory, uploads it in one
    piece, together with images that come from the host, and launches once (with `max_rows` a second time, for what
    fills the rest). Letterboxed items take one more copy, of 16 bytes each. A run costs the host least if its images
    have the sides of those of the run before, in the same order, and become as large. The result of a run is
    overwritten by the next, unless `out` is given. A plan may be used on several streams, but by one thread at a time;
    a second one is refused.

    One run with images on the GPU can be captured in a CUDA graph. The graph uploads the plan's table anew at each
    replay, and `update` writes other images and sizes into it between two replays. The plan must outlive the graph.
    There is one such table: a second capture is refused, so make a plan for each graph. With `rounding="pillow"` images
    whose vertical pass comes first take memory and a launch of their own in each run, and are refused in a capture.

    Parameters
    ----------
    operation : {"resize", "resize_each", "patch_rows"}
        Of `octopus.images`.
    image : array, list of arrays, or RaggedBatch
        Like those to come: same library, side, dtype and channels; their sizes and pixels don't matter.
    max_images : int
        Most images of a run.
    result_pixels : int, optional
        For "resize_each": most pixels that the items of a run have together.
    result_rows : int, optional
        For "patch_rows" without `max_rows`: most rows of a run.
    source_pixels : int, optional
        For images on the host that a GPU works on: most pixels that those of a run have together.
    allocate, stream
        As in `octopus.CropPlan`.
    device, **options
        As in the operation, but for sizes of each image and `out`.

    Attributes
    ----------
    spec : ImageSpec
        What a run comes to.
    engine : CpuEngine or CudaEngine
        What does the work once all is checked, for measurements of it alone: on a GPU `engine.again(stream)` queues
        the launch before once more.
    device : {"cpu", "cuda"}
        Where it works.
    max_images : int
        Most images of a run.
    table_bytes : int
        Of the table of the last run.

    Raises
    ------
    InputError, DeviceError, OutOfMemoryError
        As the operation; also for a capacity that is missing, or that the operation doesn't have.

    Examples
    --------
    >>> import numpy as np
    >>> images = [np.zeros((480, 640, 3), np.uint8), np.zeros((200, 100, 3), np.uint8)]
    >>> plan = ImagePlan("patch_rows", images, 16, result_rows=16_384, scale=255, mean=0.5, std=0.5)
    >>> rows, grid = plan.run(images, [[476, 644], [196, 112]])
    >>> rows.shape, grid.tolist()
    ((1676, 1176), [[1, 34, 46], [1, 14, 8]])
    """

    @dynamo_disabled
    def __init__(
        self, operation: str, image: Any, max_images: int, *, result_pixels: int | None = None,
        result_rows: int | None = None, source_pixels: int | None = None, allocate: bool = True, stream: Any = None,
        device: Device = "auto", **options: Any,
    ) -> None:  # fmt: skip
        check_choice("operation", operation, tuple(OPTIONS))
        for name in options:
            check_choice(f"an option of {operation}", name, tuple(OPTIONS[operation]))
        if operation == "resize" and "size" not in options:
            raise InputError("resize needs size=")
        images = image if isinstance(image, (list, tuple)) or hasattr(image, "offsets_on_host") else [image]
        found, self._read = look(images), (options.get("source"), options.get("channels", "RGB"))
        geometry, model = geometry_of(found, *self._read), found.model
        self.max_images, where = whole("max_images", max_images), calls.side_for(model, device)
        self._like = (model.family, model.device, geometry.dtype, geometry.channels), model.ordinal
        queue = self._begin(replace(calls.result_model(model, where), pointer=0), where, stream)
        self.engine = calls.make_engine(operation, options, geometry, where)
        spec: ImageSpec = self.engine.spec
        self.spec, self._staged = spec, where != model.device
        self._shape = capacity_of(operation, spec, self.max_images, result_pixels, result_rows)
        if self._staged == (source_pixels is None):
            verb = "needs" if self._staged else "doesn't take"
            raise InputError(f"this plan {verb} source_pixels, which is for images on the host that a GPU works on")
        self._pixels = whole("source_pixels", source_pixels) if self._staged else 0
        if self._staged:
            packing_kernel()
        self.table_bytes = 0
        self._captured: tuple[Launch, Any, int] | None = None  # the launch, where it writes, and how many items
        needed = math.prod(self._shape) * itemsize(spec.dtype) * allocate
        if queue is None:
            check_host_memory(needed, "the host for the result", calls.ADVICE)
        else:
            own = model.family in ("torch", "cupy")  # they know best what they can give
            self._room = room_for(self.max_images, self._pixels * geometry.held * geometry.item)
            check_memory(self._room + needed * (not own), memory.free_bytes(), "the GPU", calls.ADVICE)
        out = self._new(self._shape, spec.dtype) if allocate else None
        transform = self._new((self.max_images, 4), "float32") if spec.return_transform else None
        self._arrays = Results(out, transform, self._new(self._shape[:2], "int32") if spec.max_rows else None)
        if queue is not None:
            self._staging = Staging(2, self._room)
            self._table = memory.DeviceArray((self._room,), np.uint8, stream=queue)
            # What a captured run reads at each replay: a table in memory that no other run writes.
            size = room_for(self.max_images + 1, 0)
            self._graph_slot, self._graph_table = Slot(size), memory.DeviceArray((size,), np.uint8, stream=queue)
            self.engine.load(padding=spec.max_rows is not None)
            self._hold(self._table, self._graph_table)

    @dynamo_disabled
    def run(self, images: Any, sizes: Any = None, *, out: Any = None, stream: Any = None) -> Any:
        """Do the operation; see it for what `images`, `sizes`, `out` and `stream` are, and for what is returned.

        Returns
        -------
        array, RaggedBatch or tuple
            As the operation, in the first part of the plan's memory, or in `out`; transforms and masks are always in
            the plan's memory.

        Raises
        ------
        InputError
            For bad input, more than the plan has room for, or while another thread is in a run of this plan.
        """
        check_stream(stream, self.device)
        check_tensor(out, "out")
        with self._alone:
            found, pattern = self._pattern(images, sizes)
            arrays = self._heads(pattern, out)
            results = pattern.views(arrays, found, "the plan's result" if out is None else "out")
            self.table_bytes = len(found.pointers) * IMAGE.itemsize
            if self.device == "cpu":
                calls.run_on_host(pattern, found, results)
            else:
                self._run_gpu(pattern, found, results, arrays.out, stream)
            return pattern.answer(arrays)

    @dynamo_disabled
    def update(self, images: Any, sizes: Any = None) -> Any:
        """Write other images and sizes into the table that captured graphs read at their next replays; queue nothing.

        Wait for the replay before, which may not have read its table yet. Images on the GPU and sizes are as in `run`;
        they may be fewer or smaller than in the run that was captured. The graph has as many blocks, and room for as
        many images, rows or values, as that run: capture one of the largest images and sizes to come.

        Returns
        -------
        array, RaggedBatch or tuple
            What `run` would return: where a replay leaves its answer, the first part of what was captured.

        Raises
        ------
        InputError
            As `run`; also if no run was captured, or one of fewer blocks or a smaller result.
        """
        if self._captured is None:
            raise InputError("no run of this plan has been captured in a graph; capture one first")
        with self._alone:
            found, pattern = self._pattern(images, sizes)
            (launch, out, most), count = self._captured, pattern.items.shape[0]
            if count > most:  # a replay would write past the end
                spec = self.spec
                unit = "images" if spec.max_rows else {"batch": "images", "each": "values"}.get(spec.kind, "rows")
                raise InputError(
                    f"the captured run has room for {most:,} {unit}, found {count:,}; capture a run of the largest "
                    "images and sizes to come"
                )
            self._graph_upload(pattern, found, launch)
            return pattern.answer(self._heads(pattern, out if count == most else self._head(out, count)))

    def _graph_upload(self, pattern: Pattern, found: Found, like: Launch | None = None) -> Upload:
        """Write a table for replays; nothing is written if the launch that is captured can't do it."""
        if len(pattern.tall):
            raise InputError(
                f"image {pattern.tall[0]} loses so many rows that Pillow begins with the vertical pass, for which a "
                'captured graph has no launch; ask for rounding="pillow12", the order of passes of Pillow up to 12'
            )
        upload = Upload(pattern, found, self.max_images + 1, like)
        upload.write(found, self._graph_slot, self._graph_table.pointer)
        return upload

    def _pattern(self, images: Any, sizes: Any) -> tuple[Found, Pattern]:
        found = look(images)
        key = self.engine, *calls.call_key(found, sizes)
        return found, self._memo.get(key) or keep(self._memo, key, self._checked(found, sizes), calls.MAX_CALLS)

    def _checked(self, found: Found, sizes: Any) -> Pattern:
        """What the plan has not seen before; the images must be such as it was made for."""
        model, geometry = found.model, geometry_of(found, *self._read)
        (planned, ordinal), count = self._like, len(geometry.sides)
        given = model.family, model.device, geometry.dtype, geometry.channels
        if given != planned:
            raise InputError(f"the plan is for images of (library, side, dtype, channels) {planned}, found {given}")
        if None not in (model.ordinal, ordinal) and model.ordinal != ordinal:
            raise InputError(f"the plan is for images on GPU {ordinal}, found GPU {model.ordinal}")
        if count > self.max_images:
            raise InputError(f"the plan is for {self.max_images} images, found {count}; make a larger plan")
        pixels = int(geometry.sides.prod(axis=1).sum()) if self._staged else 0
        if pixels > self._pixels:
            raise InputError(
                f"the plan is for images of {self._pixels:,} pixels together, found {pixels:,}; make a larger plan"
            )
        pattern = Pattern(found, sizes, geometry, self.engine, self._model)
        needed, room = pattern.items.shape[0], self._shape[0]
        if needed > room:
            unit = "values" if self.spec.kind == "each" else "rows"
            raise InputError(f"the plan has room for {room:,} {unit}, found {needed:,}; make a larger plan")
        return pattern

    def _heads(self, pattern: Pattern, out: Any) -> Results:
        own, count = self._arrays, len(pattern.geometry.sides)
        beside = (None if array is None else self._head(array, count) for array in own[1:])
        return Results(self._head(own.out, pattern.items.shape[0]) if out is None else out, *beside)

    def _run_gpu(self, pattern: Pattern, found: Found, results: Results, out: Any, stream: Any) -> None:
        queue = self._memory.enter(stream, [self._model, results.out, *found.views], results.out)
        if stream is not None:
            tell_torch(found, results.out, queue)
        if not gpu.is_capturing(queue):
            pattern, found = vertical_pass_on(queue, pattern, found)
            upload, slot = upload_of(pattern, found), self._staging.take(self._room)
            upload.send(pattern, found, slot, self._table.pointer, results, queue)
            return
        if self._staged:
            raise InputError("images must be on the GPU while a graph is captured")
        if self._captured is not None:
            raise InputError(
                "a run of this plan has been captured in a graph, which reads the plan's table at each replay; make "
                "another plan for another graph"
            )
        upload, table = self._graph_upload(pattern, found), self._graph_table.pointer
        memory.copy(table, self._graph_slot.address, upload.nbytes, queue)
        upload.launch_on(pattern, self._graph_slot, table, results, queue)
        self._captured = upload.launch, out, pattern.items.shape[0]
