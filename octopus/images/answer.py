"""What the operations on images return: memory for it, and the form in which the caller gets it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from octopus.arrays.results import check_out, itemsize, new_view, result_memory, result_view
from octopus.arrays.views import ArrayView, view
from octopus.errors import InputError
from octopus.images.sources import Sources
from octopus.images.work import Job, Pattern, Results
from octopus.ragged.batch import RaggedBatch


class Arrays(NamedTuple):
    """Arrays of the caller's library that a call writes; None for what is not asked for."""

    out: Any
    transform: Any = None
    mask: Any = None

    def views(self, job: Job, given: str) -> Results:
        """The same memory, as kernels see it.

        It must lie apart from the images, and is `given` in the error, unless that is "" for what is new. What is "out"
        is the caller's and is checked.
        """
        transform = None if self.transform is None else view(self.transform, "result")
        mask = None if self.mask is None else view(self.mask, "result")
        spec, shape = job.engine.spec, job.items.shape
        if given == "out":
            out = result_view(self.out, given)
            check_out(out, shape, spec.dtype, job.model.device)
        else:
            out = new_view(self.out, job.model, shape, spec.dtype)
        if given:
            _check_apart(out, job.sources, given)
        return Results(out, transform, mask)


def result_bytes(job: Job) -> int:
    """Bytes of a job's result."""
    return math.prod(job.items.shape) * itemsize(job.engine.spec.dtype)


def new_arrays(job: Job, out: Any, queue: Any) -> Arrays:
    """Memory for what a job makes; `out` may be the caller's."""
    model, count, options = job.model, len(job.sources), job.options
    if out is None:
        out = result_memory(model, job.items.shape, job.engine.spec.dtype, queue)
    transform = result_memory(model, (count, 4), "float32", queue) if options.boxed else None
    mask = result_memory(model, job.items.shape[:2], "int32", queue) if options.most else None
    return Arrays(out, transform, mask)


def answer(pattern: Pattern, arrays: Arrays) -> Any:
    """What the caller gets."""
    shapes = pattern.shapes
    if shapes is None:
        return arrays.out if arrays.transform is None else (arrays.out, arrays.transform)
    if pattern.engine.spec.kind == "each":
        return RaggedBatch.from_arrays(arrays.out, shapes)
    if arrays.mask is not None:
        return arrays.out, arrays.mask, _on_host(pattern.model, shapes[:, 1:].copy())
    return arrays.out, _on_host(pattern.model, shapes.copy())


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
    inside = sources.meeting(*out.extent)
    if np.count_nonzero(inside):
        raise InputError(
            f"{name} lies in the memory of image {int(np.argmax(inside))}, which is read while that is written; pass "
            "other memory"
        )
