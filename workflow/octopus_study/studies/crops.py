"""The right crops of any boxes, and the check of a job's methods against them on poisoned memory."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus_study.baselines.fused import Octopus
from octopus_study.baselines.job import CropJob, make_job
from octopus_study.baselines.opencv import ONE_THREAD
from octopus_study.data.distributions import padding_waste
from octopus_study.data.workload import sample_boxes
from octopus_study.measure import Case, Method, Row, check_answers
from octopus_study.reference import crops as reference
from octopus_study.status import Answer, different
from octopus_study.studies.comparison import Comparison, Part, compare
from octopus_study.studies.context import Context

Crops = NDArray[np.float32]
ONE_EACH = (Octopus, *ONE_THREAD)
CHECKED = 100  # crops of a batch that are compared with the reference at most, spread over all of it


class ReferenceCrops:
    """The right answer for any boxes of one frame, each box computed once by `reference.crops` in float64."""

    def __init__(
        self, frame: NDArray[np.uint8], size: tuple[int, int], mean: tuple[float, ...], std: tuple[float, ...]
    ) -> None:
        self._frame, self._size = frame, size
        self._mean, self._std = np.array(mean), np.array(std)
        self._crops: dict[tuple[bytes, str], NDArray[np.float32]] = {}

    def of(self, boxes: NDArray[np.int32], edge: str = "box") -> NDArray[np.float32]:
        """Crops of `boxes`, (N, C, height, width) float32, clamped at the edge of the "box" or of the "image"."""
        result = np.empty((len(boxes), self._frame.shape[2], *self._size), np.float32)
        for index, box in enumerate(boxes):
            result[index] = self._one(box, edge)
        return result

    def _one(self, box: NDArray[np.int32], edge: str) -> NDArray[np.float32]:
        key = box.tobytes(), edge
        if key not in self._crops:
            crop = reference.crop_resize(self._frame, box[None], self._size, self._mean, self._std, edge=edge)
            self._crops[key] = crop[0].astype(np.float32)
        return self._crops[key]


def reference_of(context: Context, frame: NDArray[np.uint8] | None = None) -> ReferenceCrops:
    """The right crops of a frame, by default the data set's, as the configuration normalises them."""
    crop = context.config.crop
    return ReferenceCrops(context.workload.frame if frame is None else frame, crop.size, crop.mean, crop.std)


def crop_job(context: Context, boxes: NDArray[np.int32], frame: NDArray[np.uint8] | None = None) -> CropJob:
    """The job of a batch as the configuration asks, on a frame, by default the data set's."""
    crop = context.config.crop
    frame = context.workload.frame if frame is None else frame
    return make_job(frame, boxes, crop.size, crop.mean, crop.std, context.device)


def checked_rows(
    context: Context,
    comparisons: Iterable[Comparison],
    job: CropJob,
    methods: Sequence[Method],
    expected: NDArray[np.float32],
    missing: Mapping[str, str] | None = None,
    every: int = 1,
    **options: Any,
) -> list[Row]:
    """Check the methods once, as :func:`check` does, then time them in each of the comparisons, with its `options`."""
    answers = check(job, methods, expected, every)
    compared = (compare(context, one, methods, answers, missing, **options) for one in comparisons)
    return [row for rows in compared for row in rows]


def check(job: CropJob, methods: Sequence[Method], expected: NDArray[np.float32], every: int = 1) -> dict[str, Answer]:
    """The answers of a job's methods, one by one; its memory is poisoned before each. With `every`, `expected` holds
    each `every`-th crop, and the others are not compared. A method without a result has the answer ``n/a``. One that
    writes into the job's inputs has another answer, and the next ones get them mended."""
    answers: dict[str, Answer] = {}
    job.mend()
    for method in methods:
        job.poison()
        answers |= check_answers([_thinned(method, every)], expected if method.result else None)
        if harmed := job.mend():
            answers[method.name] = different(f"it wrote into {harmed}")
    return answers


def _thinned(method: Method, every: int) -> Method:
    result = method.result
    return method if result is None else replace(method, result=lambda: result()[::every])


def every_checked(count: int, most: int = CHECKED) -> int:
    """Of so many crops each so-many-th is compared with the reference, `most` of them at most."""
    return max(-(-count // most), 1)


def padding_rows(case: Case, boxes: NDArray[np.int32]) -> list[Row]:
    """Bytes of the boxes' pixels as uint8, padded and not; exact."""
    waste = padding_waste(boxes)
    return [
        case.row("padding", "deterministic", "actual_bytes", "bytes", waste.actual_bytes),
        case.row("padding", "deterministic", "padded_bytes", "bytes", waste.padded_bytes),
        case.row("padding", "deterministic", "padding_waste", "fraction", waste.fraction),
    ]


def one_thread_part(case: Case, crops: ReferenceCrops, boxes: NDArray[np.int32] | None = None) -> Part:
    """Octopus beside OpenCV with one CPU thread each, on `case.n` boxes, without `boxes` of the pool."""
    comparison = Comparison(case, "end_to_end", "host", tuple(kind.name for kind in ONE_EACH))
    return Part(partial(_one_thread, crops=crops, boxes=boxes), (comparison,))


def _one_thread(context: Context, part: Part, crops: ReferenceCrops, boxes: NDArray[np.int32] | None) -> list[Row]:
    context.require_room(part.case.n)
    if boxes is None:
        boxes = sample_boxes(context.workload.pool, part.case.n, context.seed)
    job = crop_job(context, boxes)
    methods = [kind(job).timed() for kind in ONE_EACH]
    with context.threads(1):
        every = every_checked(part.case.n)
        right = crops.of(job.boxes[::every])
        return checked_rows(context, part.comparisons, job, methods, right, every=every)
