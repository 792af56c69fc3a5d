"""Mean brightness of the tiles of an image, and which of them are worth keeping."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus.arrays import streams
from octopus.arrays.checks import Device, boxes_view, check_stream
from octopus.arrays.launch import Cuda, PreparedLaunch, launch
from octopus.arrays.memo import dynamo_disabled, keep
from octopus.arrays.plan import Plan, Stage
from octopus.arrays.results import check_memory
from octopus.arrays.views import ArrayView, dtype_name, view
from octopus.backends.cpu import compile, threads
from octopus.backends.cuda import compile as cuda_compile
from octopus.backends.cuda import memory
from octopus.backends.cuda.compile import function_of
from octopus.backends.cuda.device import compute_capability, current, is_capturing
from octopus.errors import InputError, OutOfMemoryError
from octopus.kernels import built
from octopus.kernels.arguments import TILES
from octopus.kernels.cuda.tile_grid import CHUNK, THREADS, Grid, Kind, grid_for, grid_of, share_of
from octopus.tiles import check
from octopus.tiles.check import ImageSpec, image_view
from octopus.tiles.rules import best_within, otsu_threshold

__all__ = ["TilePlan", "best_within", "keep_tiles", "otsu_threshold", "tile_means"]

MOST_LAUNCHES = 1 << 16  # that are kept, for images and thresholds that differ
WORD = 8  # bytes in which the blocks of a tile meet
PART = 1 << 16  # values per part of a thread: large beside the cost of handing it out, small beside a tile of a scene


class CudaTiles:
    """Launches the kernel for tiles that stay the same: `host`, checked, or None for `tiles` that lie on the GPU."""

    def __init__(
        self, spec: ImageSpec, host: NDArray[np.int32] | None, tiles: ArrayView, nodata: int | None, stream: Any
    ) -> None:
        self._nodata, self._count = nodata, tiles.shape[0]
        processors = int(current().properties.multiprocessor_count)
        share = share_of(spec.values * np.dtype(spec.dtype).itemsize, processors)
        if host is None:
            self.grid = grid_for(self._count, spec.width, spec.height, spec.pixel, share)
        else:
            self.grid = grid_of(host, spec.pixel, share)
        words: NDArray[Any] = np.zeros((2 if nodata is not None else 1, self._count), np.int64)
        arrays = [array for array in (words, host, self.grid.work) if array is not None]
        needed, free = sum(array.nbytes for array in arrays), memory.free_bytes()
        if needed > free:  # before memory is taken for them
            raise OutOfMemoryError(
                f"{self._count:,} tiles need {needed:,} bytes on the GPU, {free:,} are free; use fewer tiles at once"
            )
        self.owned = [memory.DeviceArray(a.shape, a.dtype, stream=stream).copy_from_host(a, stream) for a in arrays]
        self._words, *uploaded = (array.pointer for array in self.owned)
        self._tiles, self._work = uploaded or (tiles.pointer, 0)
        dtype = "int32" if host is not None else dtype_name(tiles.dtype)
        self._tile_bytes = 4 * np.dtype(dtype).itemsize
        kind = Kind(spec.dtype, dtype, nodata is not None)
        self._function = function_of(_cuda_kernel(kind, compute_capability()))
        self._launches: dict[Any, PreparedLaunch] = {}

    def launch(
        self, spec: ImageSpec, image: int, scale: float, threshold: float, means: int, flags: int, stream: Any,
        *, grid: Grid | None = None, first: int = 0,
    ) -> None:  # fmt: skip
        """Queue the kernel for all tiles, or those of a grid from number `first` on; addresses are in device memory."""
        grid, head = grid or self.grid, image % CHUNK
        key = head, spec, scale, threshold, id(grid), first
        prepared = self._launches.get(key) or keep(
            self._launches, key, self._prepare(*key[:4], grid, first), MOST_LAUNCHES
        )
        launch(prepared, (flags + first, means + 8 * first, image - head), stream)

    def _prepare(
        self, head: int, spec: ImageSpec, scale: float, threshold: float, grid: Grid, first: int
    ) -> PreparedLaunch:
        words = self._words + WORD * first
        values = {
            "head": head, "pitch": spec.pitch, "width": spec.width, "height": spec.height, "pixel": spec.pixel,
            "tiles": self._tiles + self._tile_bytes * first, "work": self._work, "listed": grid.work is not None,
            "share": grid.share, "words": words, "absent": words + WORD * self._count, "nodata": self._nodata or 0,
            "scale": scale, "threshold": threshold,
        }  # fmt: skip
        cuda = Cuda(self._function, (*grid.shape, 1, THREADS, 1, 1), current().device_id)
        addresses = [(None, TILES.place(name)) for name in ("flags", "means", "source")]
        return PreparedLaunch(TILES.words(values), addresses, cuda, held=grid)


@cache
def _cuda_kernel(kind: Kind, capability: tuple[int, int]) -> Any:
    return cuda_compile.load(kind.name, partial(built, "cuda.tile_sums", kind))


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
    device, scale, nodata
        Where it works, what counts as 1, and the value that is left out, or None.
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
        self.spec = check.image_spec(model)
        self.scale = check.checked_scale(scale, self.spec.dtype)
        self.nodata = check.checked_nodata(nodata, self.spec.dtype)
        described = boxes_view(tiles, "tiles")
        check.check_tile_form(described)
        where = streams.device_for(model, device, "image")
        self.count = described.shape[0]
        self._tiles: ArrayView | None = None
        host = None
        if described.device == "cpu":
            host = check.host_tiles(described.numpy(), self.spec)
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
            self._parts = _parts_of(host, self.spec.channels)
            _cpu_kernel(self.spec.dtype)  # now, rather than at the first run
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
            If an argument doesn't fit the plan, or it is at work in another thread.
        """
        pixels = image_view(image)
        spec = self._check(pixels)
        level = check.number("threshold", threshold)
        if math.isnan(level):
            raise InputError("threshold is not a number")
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
        spec = check.image_spec(image)
        found = (image.device, image.shape, spec.dtype)
        planned = (self._model.device, self._model.shape, self.spec.dtype)
        if found != planned:
            raise InputError(f"the plan is for images of (side, shape, dtype) {planned}, found {found}")
        return spec

    def _run_cpu(self, image: ArrayView, spec: ImageSpec, threshold: float) -> None:
        begin, *arrays = self._parts
        parts = len(arrays[0])
        total, count = np.empty(parts, np.uint64), np.empty(parts, np.uint64)
        threads.launch(
            _cpu_kernel(spec.dtype), parts, image.pointer, spec.pitch // image.dtype.itemsize,
            *(array.ctypes.data for array in arrays), self.nodata is not None, self.nodata or 0, total.ctypes.data,
            count.ctypes.data, threads=None if parts > 1 else 1,
        )  # fmt: skip
        sums, counts = (np.add.reduceat(each, begin).astype(np.float64) for each in (total, count))
        means, flags = (target.numpy() for target in self._targets)
        with np.errstate(invalid="ignore"):  # no value but no data: 0 / 0
            np.divide(sums, counts, out=means)
        means /= self.scale
        np.greater(means, threshold, out=flags)

    def _run_cuda(self, image: ArrayView, spec: ImageSpec, threshold: float, stream: Any) -> None:
        arrays = (image,) if self._tiles is None else (image, self._tiles)
        queue = self._memory.enter(stream, arrays, self._tiles)
        from_host = self._model.device == "cpu"
        if from_host and is_capturing(queue):
            raise InputError("the image must be on the GPU while a graph is captured")
        if from_host:  # where its rows will lie next to each other
            spec = replace(self.spec, pitch=self.spec.width * self.spec.pixel)

        def submit(pixels: int, means: int, flags: int) -> None:
            self.engine.launch(spec, pixels, self.scale, threshold, means, flags, queue)

        if from_host:
            self._stage.run(image.planes, self._targets, queue, submit)
        else:
            submit(image.pointer, *(target.pointer for target in self._targets))


@dynamo_disabled
def keep_tiles(
    image: Any, tiles: Any, threshold: float, *, scale: float | None = None, nodata: int | None = None,
    device: Device = "auto", stream: Any = None,
) -> tuple[Any, Any]:  # fmt: skip
    """Which tiles of an image are brighter than a threshold, all of them in one launch.

    A tile's brightness is that of NumPy's `image[y1:y2, x1:x2].mean() / scale`, bit for bit, on the CPU as on the GPU:
    sums of integers are exact whatever their order.

    Parameters
    ----------
    image : array, (H, W) or (H, W, C), uint8 or uint16
        NumPy, torch, CuPy, Numba, or anything with DLPack or `__cuda_array_interface__`; never copied where it already
        lies on the device that works. Rows may be further apart than their length. All channels count alike.
    tiles : array, (N, 4), integer
        `x1, y1, x2, y2` in pixels, a tile covers `[x1, x2) x [y1, y2)`; they may overlap. Also [], and the other forms
        that boxes of `octopus.crop_resize` may have. On the host, or with the image on the GPU also there (int32 or
        int64). Tiles on the GPU are not read by the host: each is clipped to the image, and one that is then empty has
        a mean of NaN.
    threshold : float
        A tile is kept if its brightness is above it; in units of `scale`.
    scale : float, optional
        What counts as 1; by default the largest value of the dtype, 255 or 65535. For the digital numbers of Sentinel-2
        give 10000.
    nodata : int, optional
        Values equal to it, in any channel, don't count. A tile without any other has a mean of NaN and is not kept.
    device : {"auto", "cpu", "cuda"}
        "auto" works where the image lies; for an image on the host, on the GPU if there is one.
    stream : optional
        A CUDA stream of any library, for work on a GPU only; default: the current one of the image's library. The call
        returns once the work is queued on it, except for an image on the host, whose result is waited for.

    Returns
    -------
    flags : array (N,) bool
    means : array (N,) float64
        The brightness in units of `scale`. Both on the image's side and of its library: tensors for a tensor.

    Raises
    ------
    InputError
        For bad input, before any work: an empty tile or one outside the image, a wrong shape, dtype or side, a stream
        for work on the CPU.
    DeviceError
        If `device="cuda"` and no GPU is usable.
    OutOfMemoryError
        If an image from the host, or what the tiles need, does not fit on the GPU.

    Examples
    --------
    >>> import numpy as np
    >>> image = np.array([[10, 30, 200], [20, 40, 220]], np.uint8)
    >>> flags, means = keep_tiles(image, [[0, 0, 2, 2], [2, 0, 3, 2]], 0.5, scale=250, device="cpu")
    >>> flags.tolist(), means.tolist()
    ([False, True], [0.1, 0.84])
    """
    return _run(image, tiles, threshold, stream, scale=scale, nodata=nodata, device=device)


@dynamo_disabled
def tile_means(
    image: Any, tiles: Any, *, scale: float | None = None, nodata: int | None = None, device: Device = "auto",
    stream: Any = None,
) -> Any:  # fmt: skip
    """Brightness of each tile of an image; arguments and errors are those of `keep_tiles`.

    Returns
    -------
    array (N,) float64
        In units of `scale`, on the image's side and of its library; NaN for a tile without data.

    Examples
    --------
    >>> import numpy as np
    >>> tile_means(np.array([[0, 51, 255]], np.uint8), [[0, 0, 2, 1], [2, 0, 3, 1]], device="cpu").tolist()
    [0.1, 1.0]
    """
    return _run(image, tiles, -math.inf, stream, scale=scale, nodata=nodata, device=device)[1]


def _run(image: Any, tiles: Any, threshold: float, stream: Any, **options: Any) -> tuple[Any, Any]:
    """By a plan, run once on the stream on which its memory is reserved, so that nothing waits for that."""
    model, queue = image_view(image), stream
    if streams.device_for(model, options["device"], "image") == "cuda":
        queue = streams.stream_for(model, None, stream)
    return TilePlan(image, tiles, stream=queue, **options).run(image, threshold, stream=stream)


def _parts_of(tiles: NDArray[np.int32], channels: int) -> list[NDArray[np.int64]]:
    """Tiles cut into parts of rows for the threads of a CPU, all int64: number of each tile's first part; of each part
    its tile, first row and the row behind its last; of each tile the first value of a row and the one behind its last.
    """
    left, top, right, bottom = tiles.T.astype(np.int64)
    left, right = left * channels, right * channels
    rows = np.maximum(PART // (right - left), 1)
    parts = -(-(bottom - top) // rows)
    owner = np.repeat(np.arange(len(tiles), dtype=np.int64), parts)
    begin = np.cumsum(parts) - parts
    first = top[owner] + (np.arange(len(owner)) - begin[owner]) * rows[owner]
    return [begin, owner, first, np.minimum(first + rows[owner], bottom[owner]), left, right]


def _cpu_kernel(dtype: str) -> Callable[[int], Any]:
    return compile.load(f"tiles-{dtype}", partial(built, "cpu.tile_sums", dtype))
