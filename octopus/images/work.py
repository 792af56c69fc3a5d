"""A call on images: what it is once checked, which engine does it, and how the CPU does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any, NamedTuple
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from octopus import backends
from octopus.arrays import streams
from octopus.arrays.checks import check_known
from octopus.arrays.launch import PreparedLaunch, launch
from octopus.arrays.memo import UnreadableError, frozen, keep
from octopus.arrays.plan import Place
from octopus.arrays.results import maker
from octopus.arrays.views import ArrayView
from octopus.backends.cpu import get_num_threads
from octopus.errors import InputError
from octopus.images.found import Found
from octopus.images.options import OPERATIONS, Options, options_of
from octopus.images.sizes import Items, shapes_of, way_back
from octopus.images.sources import Geometry, Sources, geometry_of
from octopus.kernels.images import IMAGE
from octopus.ragged.check import integers

ADVICE = "use fewer images, smaller sizes or a narrower dtype"
MAX_CALLS = 64  # that are not alike, per thread

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

    @property
    def plain(self) -> bool:
        """Whether one launch does all of it, and images and result are of one library and side."""
        alike = self.model.family == self.sources.model.family and not self.staged
        return alike and self.pattern.alone and not self.options.boxed and self.options.most is None


class Pattern:
    """All of a call but where its images and its result lie: the next one that is alike needs no more than that.

    Parameters
    ----------
    found : Found
        The images that `geometry` is of.
    sizes
        As in `octopus.images.patch_rows`; None for an operation that takes none.
    geometry : Geometry
    options : Options
    engine : CpuEngine or CudaEngine
    model : ArrayView
        As of `Job`.

    Attributes
    ----------
    items : Items
    shapes : ndarray, (N, 3), int64, or None
        As `shapes_of` makes them.
    upload : Upload or None
        What goes to the GPU, once that is known.
    prepared : PreparedImages or None
        What a call needs whose images are all that it reads, once that is known.
    """

    def __init__(
        self, found: Found, sizes: Any, geometry: Geometry, options: Options, engine: Any, model: ArrayView
    ) -> None:
        self.geometry, self.options, self.engine = geometry, options, engine
        self.model = replace(model, after=None)  # that is of these images alone, whose views tell it
        wanted = sizes(geometry.sides.copy()) if callable(sizes) else sizes
        self.items = options.items(engine.spec, geometry.sides, wanted)
        self.shapes = shapes_of(engine.spec, self.items)
        self.alone = not found.broken and not found.views
        self.upload: Any = None
        self.prepared: PreparedImages | None = None

    def job(self, found: Found) -> Job:
        """Such a call."""
        sources = Sources(*found[:5], self.geometry)
        return Job(sources, self.items, self.engine, self.model, self.options, self)


class PreparedImages(NamedTuple):
    """What does a call whose images lie where it works, into new memory, on the stream of their library.

    Attributes
    ----------
    launch : PreparedLaunch
    order : ndarray or None
        Of which image each record of the table is, unless they are in order.
    there : tuple of int
        Addresses of the table behind that of the result.
    new, where, place
        As of `crop.kernel.PreparedCall`.
    """

    launch: PreparedLaunch
    order: Any
    there: tuple[int, ...]
    new: Callable[[int | None], tuple[Any, int]]
    where: Callable[[], int]
    place: Place

    def run(self, found: Found, geometry: Geometry) -> Any:
        """The result; None if the call is to go the long way."""
        stream, pointers = self.where(), found.pointers
        if stream != self.place.handle:
            return None
        if geometry.first is not None:
            pointers = pointers + geometry.first
        if self.order is not None:
            pointers = pointers[self.order]
        out, address = self.new(None)
        return None if self.launch(stream, (address, *self.there), pointers.tolist()) else out


def call_key(found: Found, sizes: Any) -> tuple[Any, ...]:
    """What a plan's calls differ in: images, and sizes or their rule."""
    if sizes is None:
        return found.key, sizes
    try:
        if callable(sizes):
            rule = ref(sizes)  # which may hold a batch, and must not stay for that
            return found.key, rule, hash(rule)
        given = integers(sizes, "sizes", 2)
    except (InputError, TypeError):  # sizes are none, or the rule has no hash
        return (object(),)  # which is no other call's
    return found.key, given.shape, given.tobytes()


class Results(NamedTuple):
    """Memory that a job writes; None for what is not wanted."""

    out: ArrayView
    transform: ArrayView | None = None
    mask: ArrayView | None = None


def pattern_of(
    operation: str, given: Mapping[str, Any], found: Found, sizes: Any, device: Any, library: str | None, key: Any
) -> Pattern:
    """Check all of a call, unless this thread has had one like it; arguments are as of `api.run`."""
    memo: dict[Any, Any] = _thread.__dict__.setdefault("memo", {})
    try:
        options = [key] if key is not None else [(name, frozen(name, value)) for name, value in given.items()]
        asked = operation, device if isinstance(device, str) else frozen("device", device), *options
        name = (*asked, library, call_key(found, sizes))
    except UnreadableError:
        return _look(operation, given, found, sizes, device, library)
    known: Pattern | None = memo.get(name)
    return known or keep(memo, name, _look(operation, given, found, sizes, device, library, memo, asked), MAX_CALLS)


def _look(
    operation: str, given: Mapping[str, Any], found: Found, sizes: Any, device: Any, library: str | None,
    memo: dict[Any, Any] | None = None, asked: tuple[Any, ...] = (),
) -> Pattern:  # fmt: skip
    """The long way: a pattern made anew, of an engine that may be that of other calls with such options."""
    check_known(operation, given, [field.name for field in fields(OPERATIONS[operation])])
    where = side_for(found.model, device)
    geometry = geometry_of(found, given.get("source"), given.get("channels", "RGB"))
    name = (*asked, where, geometry.dtype, geometry.channels)
    known = None if memo is None else memo.pop(name, None)
    if known is None:
        checked = options_of(operation, dict(given))
        known = checked, make_engine(checked, geometry, where)
    if memo is not None:  # as the newest: other images don't take its place
        keep(memo, name, known, MAX_CALLS)
    options, engine = known
    return Pattern(found, sizes, geometry, options, engine, result_model(found.model, where, library))


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
    prepared = job.engine.prepared(table, results.out)
    launch(prepared, (results.out.pointer,))
    if results.transform is not None:
        results.transform.numpy()[...] = way_back(job.sources.sides, job.items)
    if results.mask is not None:
        rows = job.items.rows * job.items.columns // job.engine.spec.patch**2
        results.mask.numpy()[...] = np.arange(job.items.shape[1]) < rows[:, None]
    if job.plain:
        new = maker(job.model, job.items.shape, job.engine.spec.dtype)
        place = Place(get_num_threads())
        job.pattern.prepared = PreparedImages(prepared, None, (), new, get_num_threads, place)
