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
from octopus.images.options import Options
from octopus.images.sizes import Items, way_back
from octopus.images.sources import Sources, sources_of
from octopus.kernels.images import IMAGE

ADVICE = "use fewer images, smaller sizes or a narrower dtype"
MAX_ENGINES = 16  # per thread; none holds device memory

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
    """

    sources: Sources
    items: Items
    engine: Any
    model: ArrayView

    @property
    def staged(self) -> bool:
        """Whether images on the host are to be brought to the GPU."""
        return self.sources.model.device != self.model.device


class Results(NamedTuple):
    """Memory that a job writes; None for what is not wanted."""

    out: ArrayView
    transform: ArrayView | None = None
    mask: ArrayView | None = None


def job_of(options: Options, images: Any, sizes: Any, device: Any) -> Job:
    """Look at the images and check all of a call."""
    sources = sources_of(images, options.source, options.channels)
    where = side_for(sources.model, device)
    engine = _engine_for(options, sources, where)
    items = options.items(engine.spec, sources.sides, sizes)
    return Job(sources, items, engine, result_model(sources.model, where))


def side_for(model: ArrayView, device: Any) -> str:
    """Where to work on such images: where they lie, unless another side is asked for."""
    if backends.kind_of(device)[0] == "auto":
        device = model.device
    return streams.device_for(model, device, "images")


def result_model(model: ArrayView, where: str) -> ArrayView:
    """What results are like: of the images' library, on the side that works."""
    if model.device == where:
        return model
    return replace(model, device=where, ordinal=backends.cuda.device.current().device_id)


def _engine_for(options: Options, sources: Sources, device: str) -> Any:
    """An engine that only this thread uses, perhaps of a call before."""
    known: OrderedDict[Any, Any] = _thread.__dict__.setdefault("engines", OrderedDict())
    try:
        key = (type(options), sources.dtype, sources.channels, device, *reading(options.named()))
    except UnreadableError:
        return make_engine(options, sources, device)
    engine = known.get(key)
    if engine is None:
        engine = known[key] = make_engine(options, sources, device)
        if len(known) > MAX_ENGINES:
            known.popitem(last=False)
    else:
        known.move_to_end(key)
    return engine


def make_engine(options: Options, sources: Sources, device: str) -> Any:
    """The engine for images like these."""
    spec = options.spec(sources.dtype, sources.channels)
    if device == "cpu":
        from octopus.images.cpu import CpuEngine

        return CpuEngine(spec)
    from octopus.images.cuda import CudaEngine

    return CudaEngine(spec)


def write(table: NDArray[Any], sources: Sources, items: Items) -> None:
    """Fill the records of a table (N,) of `IMAGE`, but for the tiles, which the engine knows."""
    pointers, steps = sources.records()
    longs, words = table.view(np.int64).reshape(-1, 8), table.view(np.int32).reshape(-1, 16)
    longs[:, 0], longs[:, 1], longs[:, 2] = pointers, items.out, steps[:, 2]
    words[:, 6:8] = steps[:, :2]
    words[:, 8:10] = sources.sides
    words[:, 10], words[:, 11], words[:, 12], words[:, 13] = items.rows, items.columns, items.top, items.left
    words[:, 14:] = 0


def run_on_host(job: Job, results: Results) -> None:
    """Do a job on the CPU."""
    table = np.zeros(len(job.sources), IMAGE)
    write(table, job.sources, job.items)
    job.engine.run(table, results.out, None)
    if results.transform is not None:
        results.transform.numpy()[...] = way_back(job.sources.sides, job.items)
    if results.mask is not None:
        rows = job.items.rows * job.items.columns // job.engine.spec.patch**2
        results.mask.numpy()[...] = np.arange(job.items.shape[1]) < rows[:, None]
