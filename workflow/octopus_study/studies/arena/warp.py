"""Affine maps of a frame, each turned and scaled as it likes: items of rotated boxes, in one launch and by others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import cv2
import numpy as np
from numpy.typing import NDArray

from octopus_study.measure import Method, Row
from octopus_study.measure.bandwidth import fill
from octopus_study.peers.availability import make_all
from octopus_study.peers.box_by_box import BoxByBox
from octopus_study.peers.fused import Octopus
from octopus_study.peers.job import CropJob
from octopus_study.peers.method import CropMethod
from octopus_study.peers.torch_method import TorchMethod
from octopus_study.reference import crops as reference
from octopus_study.studies.arena.workloads import arena_budget, case_of, shared_count
from octopus_study.studies.comparison import Comparison, Part, compare
from octopus_study.studies.context import Context
from octopus_study.studies.crops import check, crop_job

QUANTITY, WORKLOAD, BOUND = "kernel", "warp", "write-bound"
SCALES = (0.3, 3.0)  # pixels of the frame per pixel of the result, any between as likely by its logarithm
CHECKED = 50  # items that are compared with the reference
MOST_ON_CPU = 100


def rotated_maps(
    count: int, width: int, height: int, size: tuple[int, int], seed: int
) -> NDArray[np.float32]:
    """Maps from the pixels of results to those of a frame, by any angle, at a scale of `SCALES`, their middle anywhere.

    Returns
    -------
    (count, 2, 3) float32
        As `cv2.warpAffine` takes them with WARP_INVERSE_MAP: pixels are counted from their centres.
    """
    generator = np.random.default_rng(seed)
    angles = generator.uniform(0, 2 * np.pi, count)
    scales = np.exp(generator.uniform(*np.log(SCALES), count))
    middles = generator.random((count, 2)) * (width - 1, height - 1)
    across, down = scales * np.cos(angles), scales * np.sin(angles)
    turned = np.stack([across, -down, down, across], axis=1).reshape(-1, 2, 2)
    shift = middles - turned @ ((np.array(size[::-1]) - 1) / 2)
    return np.concatenate([turned, shift[:, :, None]], axis=2).astype(np.float32)


class AffineGrid(TorchMethod):
    """PyTorch's `affine_grid` of all maps, and `grid_sample` of the frame as normalised planes."""

    name = "affine-grid"

    def __init__(self, job: CropJob) -> None:
        super().__init__(job)
        height, width, channels = job.frame.shape
        self._planes = self.empty(1, channels, height, width)

    def prepare(self) -> None:
        """The maps in its units, to the device."""
        theta = in_its_units(self.job.boxes, self.job.size, self.job.frame.shape[:2])
        self._theta = self.torch.from_numpy(theta).to(self.device)

    def kernels(self) -> None:
        """Grid, planes and sampling."""
        job, functional = self.job, self.torch.nn.functional
        self._result = None  # its memory is free for the next
        grid = functional.affine_grid(self._theta, job.out.shape, align_corners=False)
        planes = self.planes(self._planes).expand(job.count, -1, -1, -1)
        self._result = functional.grid_sample(
            planes, grid, mode="bilinear", padding_mode="border", align_corners=False
        )


def in_its_units(
    maps: NDArray[np.float32], size: tuple[int, int], frame: tuple[int, int]
) -> NDArray[np.float32]:
    """Maps (N, 2, 3) between images that reach from -1 to 1, whose sides are `size` and `frame` (height and width)."""
    item, sides = np.array(size[::-1]), np.array(frame[::-1])[:, None]
    turned, shift = maps[:, :, :2].astype(np.float64), maps[:, :, 2]
    middle = turned @ ((item - 1) / 2) + shift
    return np.concatenate(
        [turned * item / sides, (2 * middle[:, :, None] + 1) / sides - 1], axis=2, dtype=np.float32
    )


class OpenCvWarp(BoxByBox):
    """`cv2.warpAffine` of the bytes, normalised by a table of all levels, split into the result; one thread."""

    name = "opencv-table"
    why_different = "rounds to uint8 before it normalises, and in older versions positions to 1/32 of a pixel"

    def __init__(self, job: CropJob) -> None:
        super().__init__(job)
        mean, inverse_std = job.affine
        self._table = (np.arange(256, dtype=np.float32)[:, None, None] - mean) * inverse_std
        self._item = np.empty((*job.size, job.frame.shape[2]), np.uint8)

    def run(self) -> None:
        """Without OpenCV's own threads."""
        cv2.setNumThreads(1)
        super().run()

    def crops(self, part: slice) -> None:
        """One item after the other."""
        job, how = self.job, cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
        for inverse, planes in zip(job.boxes[part], job.out[part], strict=True):
            cv2.warpAffine(
                job.frame, inverse, self._size, dst=self._item, flags=how, borderMode=cv2.BORDER_REPLICATE
            )
            cv2.split(cv2.LUT(self._item, self._table), list(planes))


KINDS: dict[str, tuple[type[CropMethod], ...]] = {"cuda": (Octopus, AffineGrid), "cpu": (Octopus, OpenCvWarp)}


def parts(context: Context) -> Iterator[Part]:
    """One part; on a CPU with fewer maps, on one thread."""
    names, count = tuple(kind.name for kind in KINDS[context.device]), shared_count(context)
    case, bounds = case_of(context, WORKLOAD, count), (BOUND,)
    if context.device == "cpu":
        case, bounds = case_of(context, f"{WORKLOAD}-1thread", min(count, MOST_ON_CPU)), ()
    yield Part(_measure, (Comparison(case, QUANTITY, context.kernel_layers[0], (*names, *bounds)),))


def _measure(context: Context, part: Part) -> list[Row]:
    (comparison,), count = part.comparisons, part.case.n
    context.require_room(2 * count)  # the grid is two thirds of a result
    frame, size = context.workload.frame, context.config.crop.size
    maps = rotated_maps(count, frame.shape[1], frame.shape[0], size, context.seed)
    job = replace(crop_job(context, np.zeros((count, 4), np.int32)), boxes=maps)
    every = -(-count // CHECKED)
    right = reference.warp(frame, maps[::every], size, np.array(job.mean), np.array(job.std))
    with context.threads(1 if context.device == "cpu" else context.thread_count):
        made, missing = make_all({kind.name: partial(_ready, kind, job) for kind in KINDS[context.device]})
        timed = [method.timed(method.kernels, every) for method in made.values()]
        if BOUND in comparison.methods:
            timed.append(Method(BOUND, fill(job.out)))
        answers = check(job, timed, right.astype(np.float32))
        return compare(context, comparison, timed, answers, missing, budget=arena_budget(context))


def _ready(kind: type[CropMethod], job: CropJob) -> CropMethod:
    """A method with all on the device that its kernels read."""
    method = kind(job)
    method.prepare()
    return method
