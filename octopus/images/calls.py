"""A call on images: what is known of it and of all that are alike, what it returns, and how the CPU does it."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple
from weakref import ref

import numpy as np

from octopus import backends
from octopus.arrays import streams
from octopus.arrays.checks import check_known
from octopus.arrays.launch import PreparedLaunch, launch
from octopus.arrays.memo import UnreadableError, frozen, keep
from octopus.arrays.plan import Place
from octopus.arrays.results import check_out, host_memory, itemsize, maker, new_view, result_memory, result_view
from octopus.arrays.views import ArrayView, view
from octopus.backends.cpu import get_num_threads
from octopus.errors import InputError
from octopus.images.sizes import Items, items_of, shapes_of, vertical_first, way_back
from octopus.images.sources import Columns, Found, Geometry, by_axes, contiguous_strides, geometry_of, reach_of
from octopus.images.spec import OPTIONS, make_spec
from octopus.kernels.images import IMAGE
from octopus.ragged.batch import RaggedBatch
from octopus.ragged.check import integers

ADVICE = "use fewer images, smaller sizes or a narrower dtype"
MAX_CALLS = 64  # that are not alike, per thread

_thread = threading.local()


class Results(NamedTuple):
    """Memory that a call writes; None for what is not wanted."""

    out: Any
    transform: Any = None
    mask: Any = None


class Pattern:
    """All of a call but where its images and its result lie: the next one that is alike needs no more than that.
    `model` is like the result: library, side and GPU. `staged`: images on the host are to be brought to the GPU.
    `plain`: one launch does all of it, on images that are all that it reads, of the library and side of the result."""

    def __init__(self, found: Found, sizes: Any, geometry: Geometry, engine: Any, model: ArrayView) -> None:
        self.geometry, self.engine, self.spec = geometry, engine, engine.spec
        self.model = replace(model, after=None)  # that is of these images alone, whose views tell it
        self.items = items_of(self.spec, geometry.sides, sizes)
        self.shapes, self.sides = shapes_of(self.spec, self.items), geometry.sides
        self.tall = vertical_first(self.spec, geometry.sides, self.items)
        self.passes: tuple[Pattern, Pattern] | None = None  # of `vertical_pass`, once these are known
        self.staged = found.model.device != model.device
        single = not (self.spec.return_transform or self.spec.max_rows or found.runs or found.views or len(self.tall))
        self.plain = single and not self.staged and found.model.family == model.family
        self.upload: Any = None  # what goes to the GPU, once that is known
        self.prepared: PreparedImages | None = None  # what a plain call needs, once that is known

    @property
    def nbytes(self) -> int:
        return math.prod(self.items.shape) * itemsize(self.spec.dtype)

    def new(self, out: Any, queue: Any) -> Results:
        model, count, shape = self.model, len(self.geometry.sides), self.items.shape
        if out is None:
            out = result_memory(model, shape, self.spec.dtype, queue)
        transform = result_memory(model, (count, 4), "float32", queue) if self.spec.return_transform else None
        return Results(out, transform, result_memory(model, shape[:2], "int32", queue) if self.spec.max_rows else None)

    def views(self, arrays: Results, found: Found, given: str) -> Results:
        """The same memory, as kernels see it; not that of images, unless it is new: then `given`, its name, is ""."""
        if given == "out":  # the caller's
            out = result_view(arrays.out, given)
            check_out(out, self.items.shape, self.spec.dtype, self.model.device)
        else:
            out = new_view(arrays.out, self.model, self.items.shape, self.spec.dtype)
        if given and not self.staged:
            inside = self.geometry.meeting(found.pointers, *out.extent)
            if np.count_nonzero(inside):
                raise InputError(
                    f"{given} lies in the memory of image {int(np.argmax(inside))}, which is read while that is "
                    "written; pass other memory"
                )
        return Results(out, *(None if array is None else view(array, "result") for array in arrays[1:]))

    def answer(self, arrays: Results) -> Any:
        out, transform, mask = arrays
        if self.shapes is None:
            return out if transform is None else (out, transform)
        if self.spec.kind == "each":
            return RaggedBatch.from_arrays(out, self.shapes)
        grid = self.shapes.copy() if mask is None else self.shapes[:, 1:].copy()
        if self.model.family == "torch":
            import torch

            grid = torch.from_numpy(grid)  # on the host
        return (out, grid) if mask is None else (out, mask, grid)


class PreparedImages(NamedTuple):
    """What does a plain call into new memory, on the stream of the images' library; see `crop.kernel.PreparedCall`."""

    launch: PreparedLaunch
    order: Any  # of which image each record of the table is, unless they are in order
    there: tuple[int, ...]  # addresses of the table, behind that of the result
    new: Callable[[int | None], tuple[Any, int]]
    where: Callable[[], int]
    place: Place

    def run(self, found: Found, geometry: Geometry) -> Any:
        stream = self.where()
        if stream != self.place.handle:
            return None
        pointers = geometry.firsts(found.pointers)
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
        memo, asked, name = {}, (), ()
    known: Pattern | None = memo.get(name)
    if known is not None:
        return known
    check_known(operation, given, OPTIONS[operation])
    where = side_for(found.model, device)
    geometry = geometry_of(found, given.get("source"), given.get("channels", "RGB"))
    alike = (*asked, where, geometry.dtype, geometry.channels)
    engine = memo.pop(alike, None) or make_engine(operation, given, geometry, where)
    keep(memo, alike, engine, MAX_CALLS)  # as the newest: other images don't take its place
    made = Pattern(found, sizes, geometry, engine, result_model(found.model, where, library))
    return keep(memo, name, made, MAX_CALLS)  # type: ignore[no-any-return]


def side_for(model: ArrayView, device: Any) -> str:
    if backends.kind_of(device)[0] == "auto":
        device = model.device
    return streams.device_for(model, device, "images")


def result_model(model: ArrayView, where: str, library: str | None = None) -> ArrayView:
    """What results are like: of the images' library unless another is named, on the side that works."""
    family = library or model.family
    if model.device == where:
        return model if family == model.family else replace(model, family=family)
    return replace(model, device=where, family=family, ordinal=backends.cuda.device.current().device_id)


def make_engine(operation: str, given: Mapping[str, Any], geometry: Geometry, device: str) -> Any:
    spec = make_spec(geometry.dtype, geometry.channels, operation, **given)
    if device == "cpu":
        from octopus.images.cpu import CpuEngine

        return CpuEngine(spec)
    from octopus.images.cuda import CudaEngine

    if spec.rounding == "torch":  # which resizes in float on a GPU
        spec = replace(spec, rounding="uint8")
    return CudaEngine(spec)


def vertical_pass(
    pattern: Pattern, found: Found, run: Callable[[Pattern, Found, Results], Any], new: Callable[[int], ArrayView]
) -> tuple[Pattern, Found]:
    """Do the vertical pass of tall images by `run`, in `new` memory of so many bytes; what is left of the call. Images
    that a GPU works on are dealt with where they lie: the host's answer is the same, and less is uploaded."""
    if not len(pattern.tall):
        return pattern, found
    if pattern.staged:
        run, new = run_on_host, _host_bytes
    found = found.joined()
    part = found._replace(images=(), views=[], pointers=found.pointers[pattern.tall], pillow=False)
    first, rest = pattern.passes = pattern.passes or _passes(pattern, part)
    out, images, pointers = new(first.items.shape[0]), list(found.images), found.pointers.copy()
    run(first, part, Results(out))
    pointers[pattern.tall] = out.pointer + first.items.out
    for number in pattern.tall.tolist():
        images[number] = out.owner  # which must outlive the call
    return rest, found._replace(images=images, pointers=pointers)


def _host_bytes(count: int) -> ArrayView:
    return view(host_memory((count,), np.uint8), "memory")


def _passes(pattern: Pattern, part: Found) -> tuple[Pattern, Pattern]:
    """A call that makes each tall image as high as it becomes, (H, W, C), and the call on all behind it."""
    whole, tall = pattern.geometry, pattern.tall
    below, above = whole.reach
    sides, last = whole.sides[tall], whole.last if isinstance(whole.last, bool) else whole.last[tall]
    heights = np.broadcast_to(pattern.items.rows, len(whole.sides))[tall]
    sizes = np.column_stack([heights, sides[:, 1]])
    geometry = replace(
        whole, channels=whole.held, order="RGB", shapes=whole.shapes[tall], last=last, strides=whole.strides[tall],
        sides=sides, steps=whole.steps[tall], reach=(below if np.isscalar(below) else below[tall], above[tall]),
    )  # fmt: skip
    options = {"filter": pattern.spec.filter, "rounding": "pillow12", "dtype": "uint8", "layout": "NHWC"}
    where = part.model.device
    engine = make_engine("resize_each", options, geometry, where)
    first = Pattern(part, sizes, geometry, engine, result_model(part.model, where))
    made, rest = np.column_stack([sizes, np.full(len(tall), whole.held)]), copy(pattern)
    shapes, strides, steps, sides = map(np.copy, (whole.shapes, whole.strides, whole.steps, whole.sides))
    sides[tall], steps[tall] = sizes, contiguous_strides(made, 1)
    shapes[tall], strides[tall] = by_axes(made, last, True), by_axes(steps[tall], last, True)
    rest.geometry = replace(
        whole, shapes=shapes, strides=strides, steps=steps, sides=sides, dense=False,
        reach=reach_of(shapes, strides, 1, False),
    )  # fmt: skip
    rest.tall, rest.upload = tall[:0], None
    return first, rest


def table_of(geometry: Geometry, items: Items, pointers: Columns, count: int = 0) -> np.ndarray:
    """The table of `IMAGE` of images at `pointers`, but for the tiles, which the engine knows. It has `count` records
    if these are more; those behind the images are zeros."""
    table, planes = np.zeros(max(count, len(pointers)), IMAGE), geometry.steps[:, 2]
    planes = planes if geometry.order[0] == "R" else -planes
    longs, words = (np.ndarray((len(pointers), 64 // size), f"i{size}", table) for size in (8, 4))
    longs[:, 0], longs[:, 1], longs[:, 2] = geometry.firsts(pointers), items.out, planes
    words[:, 6:8] = geometry.steps[:, :2]
    words[:, 8:10] = geometry.sides
    words[:, 10], words[:, 11], words[:, 12], words[:, 13] = items.rows, items.columns, items.top, items.left
    return table


def run_on_host(pattern: Pattern, found: Found, results: Results) -> None:
    pattern, found = vertical_pass(pattern, found, run_on_host, _host_bytes)
    spec, items, joined = pattern.spec, pattern.items, found.joined()
    table = table_of(pattern.geometry, items, joined.pointers)
    prepared = pattern.engine.prepared(table, results.out)
    launch(prepared, (results.out.pointer,))
    if results.transform is not None:
        results.transform.numpy()[...] = way_back(pattern.sides, items)
    if results.mask is not None:
        rows = items.rows * items.columns // spec.patch**2
        results.mask.numpy()[...] = np.arange(items.shape[1]) < rows[:, None]
    if pattern.plain:
        new = maker(pattern.model, items.shape, spec.dtype)
        pattern.prepared = PreparedImages(prepared, None, (), new, get_num_threads, Place(get_num_threads()))
