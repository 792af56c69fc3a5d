"""What the operations on images return: memory for it, and the form in which the caller gets it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from octopus.arrays.results import itemsize, result_memory, result_view
from octopus.arrays.views import ArrayView, view
from octopus.errors import InputError
from octopus.images.check import check_out
from octopus.images.options import Options
from octopus.images.sources import Sources
from octopus.images.work import Job, Results
from octopus.ragged.batch import RaggedBatch


class Arrays(NamedTuple):
    """Arrays of the caller's library that a call writes; None for what is not asked for."""

    out: Any
    transform: Any = None
    mask: Any = None

    def views(self, job: Job, given: str) -> Results:
        """The same memory, as kernels see it; checked under the name `given`, unless that is "" for what is new."""
        transform, mask = (
            None if array is None else view(array, "result") for array in (self.transform, self.mask)
        )
        out = result_view(self.out, "out")
        if given:
            check_out(job.engine.spec, out, job.items.shape, job.model.device)
            _check_apart(out, job.sources, given)
        return Results(out, transform, mask)


def result_bytes(job: Job) -> int:
    """Bytes of a job's result."""
    return math.prod(job.items.shape) * itemsize(job.engine.spec.dtype)


def new_arrays(options: Options, job: Job, out: Any, queue: Any) -> Arrays:
    """Memory for what a job makes; `out` may be the caller's."""
    model, count = job.model, len(job.sources)
    if out is None:
        out = result_memory(model, job.items.shape, job.engine.spec.dtype, queue)
    transform = result_memory(model, (count, 4), "float32", queue) if options.boxed else None
    mask = result_memory(model, job.items.shape[:2], "int32", queue) if options.most else None
    return Arrays(out, transform, mask)


def answer(job: Job, arrays: Arrays) -> Any:
    """What the caller gets."""
    spec, items = job.engine.spec, job.items
    if spec.kind == "batch":
        return arrays.out if arrays.transform is None else (arrays.out, arrays.transform)
    sides = np.column_stack([items.rows, items.columns])
    if spec.kind == "each":
        channels = np.full(len(sides), spec.channels)
        parts = [channels, sides] if spec.layout == "NCHW" else [sides, channels]
        return RaggedBatch.from_arrays(arrays.out, np.column_stack(parts))
    grid = sides // spec.patch
    if arrays.mask is not None:
        return arrays.out, arrays.mask, _on_host(job.model, grid)
    return arrays.out, _on_host(job.model, np.column_stack([np.ones(len(grid), np.int64), grid]))


def _on_host(model: ArrayView, numbers: np.ndarray) -> Any:
    """Integers on the host, of the caller's library where that has arrays there."""
    if model.family != "torch":
        return numbers
    import torch

    return torch.from_numpy(numbers)


def _check_apart(out: ArrayView, sources: Sources, name: str) -> None:
    """The result must not lie in memory of an image."""
    if sources.model.device != out.device:
        return
    reach = (sources.shapes - 1) * sources.strides
    begins = sources.pointers + np.minimum(reach, 0).sum(axis=1)
    ends = sources.pointers + np.maximum(reach, 0).sum(axis=1) + sources.model.dtype.itemsize
    first, last = out.extent
    inside = (begins < last) & (ends > first)
    if inside.any():
        raise InputError(
            f"{name} lies in the memory of image {int(np.argmax(inside))}, which is read while that is written; pass "
            "other memory"
        )
