"""How long a denoiser takes to cover a square image with patches, by their side and by how many go at a time, and the
memory that one batch of them takes."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus_study.measure import Case, Clock, Method, Row, check_answers
from octopus_study.names import AS_PUBLISHED
from octopus_study.status import different
from octopus_study.studies.comparison import Comparison, compare
from octopus_study.studies.context import Context
from octopus_study.studies.image_shape.child import capped
from octopus_study.studies.image_shape.denoisers import Denoiser

log = logging.getLogger(__name__)

# Of the result's greatest value: TF32 has 10 bits, and cuDNN's algorithm differs with the batch.
TOLERANCE = 0.01


class Cover:
    """All patches of one side, so many at a time; they lie on the device and what becomes of them is not put together.

    Parameters
    ----------
    run : callable
        Takes (B, 3, side, side) to the same shape.
    batches : sequence of tensor
        The batches in order.
    """

    def __init__(self, run: Callable[[Any], Any], batches: Sequence[Any]) -> None:
        self._run, self._batches = run, batches

    def __call__(self) -> None:
        for batch in self._batches:
            self._run(batch)

    def peak(self, gpu: Any) -> int:
        """Bytes that PyTorch's allocator holds at most for the first batch, beside what lay there before."""
        gpu.synchronize()
        gpu.empty_cache()
        gpu.reset_peak_memory_stats()
        before = gpu.memory_allocated()
        self._run(self._batches[0])
        gpu.synchronize()
        return int(gpu.max_memory_allocated() - before)

    def first(self) -> NDArray[np.float32]:
        """The first patch of the first batch, denoised, (3, side, side)."""
        return np.asarray(self._run(self._batches[0])[0].cpu().numpy())


def comparisons(context: Context, model: str) -> tuple[Comparison, Comparison]:
    """Every side and batch against each other: time, and memory of one batch."""
    settings = context.config.image_shape
    case, names = (
        Case(context.study, context.workload.dataset, f"{model}-patches", settings.height),
        sizes(context),
    )
    return (
        Comparison(case, "cover", "device", tuple(names)),
        Comparison(case, "batch_peak", "memory", tuple(names), "bytes"),
    )


def rows(context: Context, compared: Sequence[Comparison], model: str, image: NDArray[np.uint8]) -> list[Row]:
    """All sides and batches in paired blocks; the base is the published best: small and many."""
    log.info("patches, %s", model)
    denoiser = Denoiser(model, context.device, context.seed)
    rows = _compared(context, compared, denoiser, image)
    gc.collect()  # the patches, so that the next model finds the GPU empty
    denoiser.torch.cuda.empty_cache()
    return rows


def _compared(
    context: Context, compared: Sequence[Comparison], denoiser: Denoiser, image: NDArray[np.uint8]
) -> list[Row]:
    settings, (times, memory) = context.config.image_shape, compared
    covers = _covers(context, denoiser, image)
    answers: dict[str, str] = {}
    for side in settings.patch_sides:
        answers |= _checked({name: cover for name, (size, cover) in covers.items() if size == side})
    methods = [Method(name, cover) for name, (_, cover) in covers.items()]
    budget = context.budget_within(settings.max_seconds)
    budget = replace(budget, give_up_seconds=min(budget.give_up_seconds, 3 * settings.max_seconds))
    base = f"{settings.patch_sides[0]}x{settings.patch_batches[-1]}"

    def timing(clock: Clock) -> list[Row]:
        return compare(context, times, methods, answers, clock=clock, budget=budget, base=base)

    # Each batch has run once for its answer: what cuDNN takes to try algorithms out is no part of its memory.
    peaks = [
        memory.case.row(name, memory.layer, memory.quantity, memory.unit, cover.peak(denoiser.torch.cuda))
        for name, (_, cover) in covers.items()
    ]
    return [*peaks, *capped(times.case, times.quantity, timing)]


def sizes(context: Context) -> dict[str, tuple[int, int]]:
    """Side and batch by the name of the method."""
    settings = context.config.image_shape
    return {
        f"{side}x{batch}": (side, batch) for side in settings.patch_sides for batch in settings.patch_batches
    }


def patches(image: NDArray[np.uint8], side: int) -> list[NDArray[np.uint8]]:
    """The patches that cover an image, row by row; the last ones overlap where the side doesn't divide."""
    tops, lefts = (range(0, length, side) for length in image.shape[:2])
    height, width = image.shape[:2]
    starts = [
        (max(min(top, height - side), 0), max(min(left, width - side), 0)) for top in tops for left in lefts
    ]
    return [image[top : top + side, left : left + side] for top, left in starts]


def _covers(context: Context, denoiser: Denoiser, image: NDArray[np.uint8]) -> dict[str, tuple[int, Cover]]:
    """Side and cover by the name of the method; the patches of one side are uploaded once."""
    run, whole, covers = denoiser.by(AS_PUBLISHED), {}, {}
    for name, (side, batch) in sizes(context).items():
        if side not in whole:
            uploaded = [denoiser.upload(patch) for patch in patches(image, side)]
            whole[side] = denoiser.torch.cat(uploaded)
        covers[name] = (side, Cover(run, whole[side].split(batch)))
    return covers


def _checked(covers: dict[str, Cover]) -> dict[str, str]:
    """Whether the first patch comes out the same in every batch of one side."""
    expected = next(iter(covers.values())).first()
    if not np.isfinite(expected).all():
        return dict.fromkeys(covers, different("the first patch has values that are NaN or infinite"))
    tolerance = TOLERANCE * float(np.abs(expected).max())
    methods = [Method(name, lambda: None, cover.first, tolerance) for name, cover in covers.items()]
    return check_answers(methods, expected)
