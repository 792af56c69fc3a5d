"""Means and flags of the tiles of many images that are cut alike."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from octopus.arrays import streams
from octopus.arrays.checks import Device, boxes_view, check_stream
from octopus.arrays.memo import dynamo_disabled
from octopus.arrays.plan import Plan, Stage
from octopus.arrays.results import check_memory
from octopus.arrays.views import ArrayView, view
from octopus.backends.cuda import memory
from octopus.backends.cuda.device import is_capturing
from octopus.errors import InputError
from octopus.tiles.check import (
    ImageSpec,
    check_tile_form,
    checked_nodata,
    checked_scale,
    checked_threshold,
    host_tiles,
    image_spec,
    image_view,
)
from octopus.tiles.cpu import TileParts
from octopus.tiles.cuda import CudaTiles


class TilePlan(Plan):
    """Memory and a compiled kernel for the tiles of images that are cut alike, made once and run many times.

    `run` allocates no device memory and launches once. With image and tiles on the GPU it neither copies nor waits and
    can be captured in a CUDA graph. The result of a run is overwritten by the next. A plan may be used on several
    streams; a second thread that runs it at the same time is refused.

    Sums are made in memory that all runs share, so that runs wait for each other. The plan doesn't see when a captured
    graph is launched: make sure that no run is under way beside a graph, nor one graph beside another. Otherwise both
    add to the same sums, and later results are wrong, too.

    Parameters
    ----------
    image : array, (H, W) or (H, W, C), uint8 or uint16
        An image like those to come: same library, side, dtype and shape; its pixels are not read.
    tiles : array, (N, 4), integer
        As in `keep_tiles`. From the host they are read now; on the GPU at each run.
    scale, nodata, device
        As in `keep_tiles`.
    stream : optional
        A CUDA stream in whose order memory is reserved; the first run must then be on it. Without one the constructor
        waits until it has the memory, and runs may use any stream.

    Attributes
    ----------
    count : int
        N, the number of tiles.
    device : {"cpu", "cuda"}
        Where it works.
    scale : float
        What counts as 1.
    nodata : int or None
        The value that is left out.
    spec : ImageSpec
        The form of the planned image.
    engine : CudaTiles
        On a GPU, with tiles: what does the work once all is checked, for measurements of it alone.

    Raises
    ------
    InputError, DeviceError, OutOfMemoryError
        As `keep_tiles`.

    Examples
    --------
    >>> import numpy as np
    >>> image = np.full((100, 200), 51, np.uint8)
    >>> plan = TilePlan(image, [[0, 0, 100, 100], [100, 0, 200, 100]], device="cpu")
    >>> flags, means = plan.run(image, 0.1)
    >>> flags.tolist(), means.tolist()
    ([True, True], [0.2, 0.2])
    """

    @dynamo_disabled
    def __init__(
        self, image: Any, tiles: Any, *, scale: float | None = None, nodata: int | None = None, device: Device = "auto",
        stream: Any = None,
    ) -> None:  # fmt: skip
        model = image_view(image)
        self.spec = image_spec(model)
        self.scale = checked_scale(scale, self.spec.dtype)
        self.nodata = checked_nodata(nodata, self.spec.dtype)
        described = boxes_view(tiles, "tiles")
        check_tile_form(described)
        where = streams.device_for(model, device, "image")
        self.count = described.shape[0]
        self._tiles: ArrayView | None = None
        host = None
        if described.device == "cpu":
            host = host_tiles(described.numpy(), self.spec)
        elif where == "cpu" or model.device == "cpu":
            raise InputError("tiles are on the GPU but the image is on the host; keep both on one side")
        else:
            self._tiles = described  # its owner keeps the memory alive
        queue = self._begin(model, where, stream, None if host is not None else described)
        from_host = where != model.device
        image_bytes = self.spec.height * self.spec.width * self.spec.pixel if from_host else 0
        results = 8 * self.count, self.count  # means and flags; `CudaTiles` looks after the rest
        if queue is not None:
            needed = image_bytes + sum(results)
            check_memory(needed, memory.free_bytes(), "the GPU", "use a smaller image or fewer tiles")
        self._means, self._flags = self._new((self.count,), "float64"), self._new((self.count,), "bool")
        self._targets = [view(array, "result") for array in (self._means, self._flags)]
        if queue is None:
            assert host is not None
            self._parts = TileParts(host, self.spec)
            return
        if from_host:
            self._stage = Stage(image_bytes, results, queue)
            self._memory.keep(*self._stage.owned)
        if self.count:
            self.engine = CudaTiles(self.spec, host, described, self.nodata, queue)
            self._memory.keep(*self.engine.owned)
        self._hold()

    @dynamo_disabled
    def run(self, image: Any, threshold: float = -math.inf, *, stream: Any = None) -> tuple[Any, Any]:
        """Flags and means of an image's tiles; see `keep_tiles`.

        Returns
        -------
        (array (N,) bool, array (N,) float64)
            In the plan's memory: on the side of the planned image, of its library.

        Raises
        ------
        InputError
            If the image is not like the planned one, the threshold is not a number, a stream is given for work on the
            CPU, or the plan is at work in another thread.
        """
        pixels = image_view(image)
        spec = self._check(pixels)
        level = checked_threshold(threshold)
        check_stream(stream, self.device)
        with self._alone:
            if self.count and self.device == "cpu":
                self._run_cpu(pixels, spec, level)
            elif self.count:
                self._run_cuda(pixels, spec, level, stream)
        return self._flags, self._means

    def _check(self, image: ArrayView) -> ImageSpec:
        if image.layout == self._model.layout and not image.pointer % image.dtype.itemsize:
            return self.spec
        spec = image_spec(image)
        found = (image.device, image.shape, spec.dtype)
        planned = (self._model.device, self._model.shape, self.spec.dtype)
        if found != planned:
            raise InputError(f"the plan is for images of (side, shape, dtype) {planned}, found {found}")
        return spec

    def _run_cpu(self, image: ArrayView, spec: ImageSpec, threshold: float) -> None:
        sums, counts = self._parts.sums(image, spec, self.nodata)
        means, flags = (target.numpy() for target in self._targets)
        with np.errstate(invalid="ignore"):  # no value but no data: 0 / 0
            np.divide(sums.astype(np.float64), counts.astype(np.float64), out=means)
        means /= self.scale
        np.greater(means, threshold, out=flags)

    def _run_cuda(self, image: ArrayView, spec: ImageSpec, threshold: float, stream: Any) -> None:
        arrays = (image,) if self._tiles is None else (image, self._tiles)
        queue = self._memory.enter(stream, arrays, self._tiles)
        if self._model.device == "cpu":
            self._run_from_host(image, threshold, queue)
            return
        means, flags = self._targets
        self.engine.launch(spec, image.pointer, self.scale, threshold, means.pointer, flags.pointer, queue)

    def _run_from_host(self, image: ArrayView, threshold: float, queue: Any) -> None:
        if is_capturing(queue):
            raise InputError("the image must be on the GPU while a graph is captured")
        packed = replace(self.spec, pitch=self.spec.width * self.spec.pixel)

        def submit(pixels: int, means: int, flags: int) -> None:
            self.engine.launch(packed, pixels, self.scale, threshold, means, flags, queue)

        self._stage.run(image, self._targets, queue, submit)
