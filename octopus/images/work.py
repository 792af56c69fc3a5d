"""A call on images: what it is once checked, which engine does it, and how the CPU does."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from octopus import backends
from octopus.arrays import streams
from octopus.arrays.reading import UnreadableError, reading
from octopus.arrays.views import ArrayView
from octopus.images.found import Found, look
from octopus.images.options import Options, options_of
from octopus.images.sizes import Items, shapes_of, way_back
from octopus.images.sources import Geometry, Sources, geometry_of
from octopus.kernels.images import IMAGE
from octopus.ragged.check import integers

ADVICE = "use fewer images, smaller sizes or a narrower dtype"
MAX_CALLS = 16  # with other arguments, per thread; none holds device memory

_thread = threading.local()


class Job(NamedTuple):
    """A checked call.

    Attributes
    ----------
    sources : Sources
    items : Items
    engine : CpuEngine or CudaEngine
    model : ArrayView
        Like the result: library, side and GPU.
    options : Options
    pattern : Pattern
    """

    sources: Sources
    items: Items
    engine: Any
    model: ArrayView
    options: Options
    pattern: Pattern

    @property
    def staged(self) -> bool:
        """Whether images on the host are to be brought to the GPU."""
        return self.sources.model.device != self.model.device


class Pattern:
    """All of a call but where its images and its result lie: the next one that is alike needs no more than that.

    Parameters
    ----------
    found : Found
        The images that `geometry` is of.
    sizes
        As in `octopus.images.patch_rows`; None for an operation that takes none.

    Attributes
    ----------
    items : Items
    shapes : ndarray, (N, 3), int64, or None
        As `shapes_of` makes them.
    upload : Upload or None
        What goes to the GPU, once that is known.
    """

    def __init__(self, found: Found, sizes: Any, geometry: Geometry, options: Options, engine: Any) -> None:
        self.geometry, self.options, self.engine = geometry, options, engine
        wanted = sizes(geometry.sides.copy()) if callable(sizes) else sizes
        self.items = options.items(engine.spec, geometry.sides, wanted)
        self.shapes = shapes_of(engine.spec, self.items)
        self._key, self._sizes = found.key, _asked(sizes)
        self.upload: Any = None

    def fits(self, found: Found, sizes: Any) -> bool:
        """Whether all checks and numbers of a call are these."""
        if found.key != self._key or (sizes is None) != (self._sizes is None) or _asked(sizes) != self._sizes:
            return False
        item = self.geometry.item
        return item == 1 or not np.count_nonzero(found.pointers % item)

    def job(self, found: Found, model: ArrayView) -> Job:
        """Such a call, whose result is like `model`."""
        sources = Sources(*found[:5], self.geometry)
        return Job(sources, self.items, self.engine, model, self.options, self)


def _asked(sizes: Any) -> tuple[Any, ...] | None:
    """Sizes or their rule, to be compared with those of other calls."""
    if sizes is None:
        return None
    if callable(sizes):
        return (sizes,)
    found = integers(sizes, "sizes", 2)
    return found.shape, found.tobytes()


class Results(NamedTuple):
    """Memory that a job writes; None for what is not wanted."""

    out: ArrayView
    transform: ArrayView | None = None
    mask: ArrayView | None = None


class Calls:
    """What a thread's calls with the same arguments share: engines, and the pattern of the last of them."""

    def __init__(self) -> None:
        self.engines: dict[Any, tuple[Options, Any]] = {}
        self.last: Pattern | None = None


def job_of(
    operation: str, given: dict[str, Any], images: Any, sizes: Any, device: Any, library: str | None = None,
    key: Any = None,
) -> Job:  # fmt: skip
    """Look at the images and check all of a call; arguments are as of `api.run`."""
    found = look(images)
    where = side_for(found.model, device)
    calls = _calls(operation, given, where, key)
    pattern = calls.last
    if pattern is None or not pattern.fits(found, sizes):
        geometry = geometry_of(found, given["source"], given["channels"])
        kind = geometry.dtype, geometry.channels
        if kind not in calls.engines:
            options = options_of(operation, given)
            calls.engines[kind] = options, make_engine(options, geometry, where)
        pattern = calls.last = Pattern(found, sizes, geometry, *calls.engines[kind])
    return pattern.job(found, result_model(found.model, where, library))


def side_for(model: ArrayView, device: Any) -> str:
    """Where to work on such images: where they lie, unless another side is asked for."""
    if backends.kind_of(device)[0] == "auto":
        device = model.device
    return streams.device_for(model, device, "images")


def result_model(model: ArrayView, where: str, library: str | None = None) -> ArrayView:
    """What results are like: of the images' library unless another is named, on the side that works."""
    family = library or model.family
    if model.device == where:
        return model if family == model.family else replace(model, family=family)
    return replace(model, device=where, family=family, ordinal=backends.cuda.device.current().device_id)


def _calls(operation: str, given: dict[str, Any], where: str, key: Any) -> Calls:
    """What this thread has of calls with these arguments, for which `key` may stand."""
    known: OrderedDict[Any, Calls] = _thread.__dict__.setdefault("calls", OrderedDict())
    try:
        key = (operation, where, key) if key is not None else (operation, where, *reading(given.items()))
    except UnreadableError:
        return Calls()
    made = known.get(key)
    if made is None:
        made = known[key] = Calls()
        if len(known) > MAX_CALLS:
            known.popitem(last=False)
    else:
        known.move_to_end(key)
    return made


def make_engine(options: Options, geometry: Geometry, device: str) -> Any:
    """The engine for images like these."""
    spec = options.spec(geometry.dtype, geometry.channels)
    if device == "cpu":
        from octopus.images.cpu import CpuEngine

        return CpuEngine(spec)
    from octopus.images.cuda import CudaEngine

    if spec.rounding == "torch":  # which resizes in float on a GPU
        spec = replace(spec, rounding="uint8")
    return CudaEngine(spec)


def write(table: NDArray[Any], sources: Sources, items: Items) -> None:
    """Fill the records of a table (N,) of `IMAGE` of zeros, but for the tiles, which the engine knows."""
    geometry, count, pointers = sources.geometry, len(table), sources.pointers
    if geometry.first is not None:
        pointers = pointers + geometry.first
    longs, words = np.ndarray((count, 8), np.int64, table), np.ndarray((count, 16), np.int32, table)
    longs[:, 0], longs[:, 1], longs[:, 2] = pointers, items.out, geometry.planes
    words[:, 6:8] = geometry.steps[:, :2]
    words[:, 8:10] = geometry.sides
    words[:, 10], words[:, 11], words[:, 12], words[:, 13] = items.rows, items.columns, items.top, items.left


def run_on_host(job: Job, results: Results) -> None:
    """Do a job on the CPU."""
    sources = job.sources.joined()
    table = np.zeros(len(sources), IMAGE)
    write(table, sources, job.items)
    job.engine.run(table, results.out, None)
    if results.transform is not None:
        results.transform.numpy()[...] = way_back(job.sources.sides, job.items)
    if results.mask is not None:
        rows = job.items.rows * job.items.columns // job.engine.spec.patch**2
        results.mask.numpy()[...] = np.arange(job.items.shape[1]) < rows[:, None]
