"""How long a denoiser takes to cover a square image with patches, by their side and by how many go at a time, and the
memory that one batch of them takes."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus_study.measure import Method, Row, check_answers
from octopus_study.names import AS_PUBLISHED
from octopus_study.status import different
from octopus_study.studies.comparison import Comparison, compare
from octopus_study.studies.context import Context
from octopus_study.studies.image_shape import forwards
from octopus_study.studies.image_shape.denoisers import Denoiser

log = logging.getLogger(__name__)


class Cover:
    """All patches of one side, so many at a time, on the device; what becomes of them is not put together."""

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
    case = context.case(f"{model}-patches", settings.height)
    names = tuple(f"{side}x{batch}" for side in settings.patch_sides for batch in settings.patch_batches)
    return Comparison(case, "cover", "device", names), Comparison(case, "batch_peak", "memory", names, "bytes")


def rows(context: Context, compared: Sequence[Comparison], model: str, image: NDArray[np.uint8]) -> list[Row]:
    """All sides and batches in paired blocks; the base is the published best: small and many."""
    log.info("patches, %s", model)
    denoiser = Denoiser(model, context.device, context.seed)
    settings, (times, memory) = context.config.image_shape, compared
    run, covers, answers = denoiser.by(AS_PUBLISHED), {}, {}
    for side in settings.patch_sides:  # whose patches are uploaded once
        whole = denoiser.torch.cat([denoiser.upload(patch) for patch in patches(image, side)])
        of_side = {f"{side}x{batch}": Cover(run, whole.split(batch)) for batch in settings.patch_batches}
        answers |= _checked(of_side)
        covers |= of_side
    # Each batch has run once for its answer: what cuDNN takes to try algorithms out is no part of its memory.
    where = (memory.layer, memory.quantity, memory.unit)
    peaks = [memory.case.row(name, *where, cover.peak(denoiser.torch.cuda)) for name, cover in covers.items()]
    budget = context.budget_within(settings.max_seconds)
    budget = replace(budget, give_up_seconds=min(budget.give_up_seconds, 3 * settings.max_seconds))
    base = f"{settings.patch_sides[0]}x{settings.patch_batches[-1]}"
    methods = [Method(name, cover) for name, cover in covers.items()]
    clock = forwards.clock()
    return [*peaks, *compare(context, times, methods, answers, clock=clock, budget=budget, base=base)]


def patches(image: NDArray[np.uint8], side: int) -> list[NDArray[np.uint8]]:
    """The patches that cover an image, row by row; the last ones overlap where the side doesn't divide."""
    tops, lefts = (
        [max(min(start, length - side), 0) for start in range(0, length, side)] for length in image.shape[:2]
    )
    return [image[top : top + side, left : left + side] for top in tops for left in lefts]


def _checked(covers: dict[str, Cover]) -> dict[str, str]:
    """Whether the first patch comes out the same in every batch of one side; cuDNN's algorithm differs with it."""
    expected = next(iter(covers.values())).first()
    if not np.isfinite(expected).all():
        return dict.fromkeys(covers, different("the first patch has values that are NaN or infinite"))
    tolerance = forwards.TOLERANCE * float(np.abs(expected).max())
    methods = [Method(name, lambda: None, cover.first, tolerance) for name, cover in covers.items()]
    return check_answers(methods, expected)
