"""Boxes of a frame as a video decoder gives it, in NV12: converted in the launch, before it, or by others.

The frame is the data set's, coded in BT.601. On a GPU in the full range, the only one that `cuframe` reads; on a CPU,
where all have one thread, in the limited one, as OpenCV does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

import octopus
from octopus_study.baselines.availability import Unavailable, make_all
from octopus_study.baselines.fused import Octopus
from octopus_study.baselines.job import TOLERANCE_LEVELS, CropJob
from octopus_study.baselines.method import CropMethod
from octopus_study.baselines.native_methods import CuFrame, RoiConvertNv12, from_nv12, to_nv12
from octopus_study.baselines.opencv import OpenCvTable
from octopus_study.measure import Method, Row
from octopus_study.measure.bandwidth import fill
from octopus_study.reference import crops as reference
from octopus_study.studies.arena.workloads import VISDRONE, arena_budget, boxes_of, case_of
from octopus_study.studies.comparison import Comparison, Part, compare
from octopus_study.studies.context import Context
from octopus_study.studies.crops import check, crop_job

QUANTITY, WORKLOAD, BOUND = "kernel", "nv12", "write-bound"
LEVELS = {"cuda": "full", "cpu": "limited"}
CHECKED = 50  # crops that are compared with the reference
WORD = 4  # columns of a frame that the conversion ahead reads at once
ROUNDED = 0.5 + TOLERANCE_LEVELS  # levels, for who reads a frame of whole levels


class Nv12(Octopus):
    """One launch on both planes."""

    def __init__(self, job: CropJob, nv12: NDArray[np.uint8]) -> None:
        self._nv12, height = nv12, len(job.frame)
        planes = nv12[:height], nv12[height:]
        if job.on_gpu:
            from octopus.backends.cuda.memory import upload

            planes = tuple(map(upload, planes))
        self._planes = octopus.NV12(*planes, matrix="bt601", range=LEVELS[job.device])
        super().__init__(job)

    @property
    def frame(self) -> Any:
        return self._planes


class OfRgb(Octopus):
    """The frame in RGB, as if a decoder gave it so."""

    name = "octopus-rgb"

    def __init__(self, job: CropJob, nv12: NDArray[np.uint8]) -> None:
        super().__init__(job)
        self.tolerance = ROUNDED / max(job.std)


class Converted(OfRgb):
    """The frame converted by a kernel of its own, at the speed of a copy, or on a CPU by OpenCV; then the crops."""

    name = "octopus-converted"

    def __init__(self, job: CropJob, nv12: NDArray[np.uint8]) -> None:
        self._nv12: Any = nv12
        self._rgb: Any = np.empty_like(job.frame)
        if job.on_gpu:
            from cuda.core import LaunchConfig

            from octopus.backends.cuda import stream_of
            from octopus.backends.cuda.compile import load
            from octopus.backends.cuda.memory import DeviceArray, upload
            from octopus_study.kernels.cuda import FOLDER, video

            height, width, _ = job.frame.shape
            self._nv12, self._rgb = upload(nv12), DeviceArray(job.frame.shape, np.uint8)
            self._kernel, self._stream = load("nv12-to-rgb", lambda: video.SIGNATURE, FOLDER), stream_of(None)
            blocks = -(-width // (WORD * video.THREADS)), height // 2
            self._config = LaunchConfig(grid=blocks, block=video.THREADS)
        super().__init__(job, nv12)

    @property
    def frame(self) -> Any:
        return self._rgb

    def kernels(self) -> None:
        self.convert()
        super().kernels()

    def run(self) -> None:
        self.convert()
        super().run()

    def convert(self) -> None:
        """The frame in RGB."""
        if not self.job.on_gpu:
            cv2.cvtColor(self._nv12, cv2.COLOR_YUV2RGB_NV12, dst=self._rgb)
            return
        from cuda.core import launch

        luma, rgb = self._nv12.pointer, self._rgb.pointer
        height, width, _ = self.job.frame.shape
        planes = luma, luma + height * width
        launch(self._stream, self._config, self._kernel, *planes, np.int32(width // WORD), rgb)


class OpenCvNv12(OpenCvTable):
    """The frame converted by OpenCV, then its fastest form for boxes that are enlarged; one thread."""

    stages = 1

    def __init__(self, job: CropJob, nv12: NDArray[np.uint8]) -> None:
        super().__init__(replace(job, frame=np.empty_like(job.frame)))
        self._nv12, self.tolerance = nv12, ROUNDED / max(job.std)

    def begin(self, stage: int) -> None:
        cv2.cvtColor(self._nv12, cv2.COLOR_YUV2RGB_NV12, dst=self.job.frame)


KINDS: dict[str, tuple[type[CropMethod], ...]] = {
    "cuda": (Nv12, OfRgb, Converted, RoiConvertNv12, CuFrame),
    "cpu": (Nv12, OfRgb, Converted, OpenCvNv12),
}


def parts(context: Context) -> Iterator[Part]:
    """One part for each number of boxes; on a CPU for the fewest, on one thread."""
    names = tuple(kind.name for kind in KINDS[context.device])
    counts = context.config.arena.counts
    for count in counts if context.device == "cuda" else [min(counts)]:
        bounds, threads = ((BOUND,), "") if context.device == "cuda" else ((), "-1thread")
        case = case_of(context, f"{WORKLOAD}{threads}", count)
        layer = context.kernel_layer
        yield Part(_measure, (Comparison(case, QUANTITY, layer, (*names, *bounds)),))


def _measure(context: Context, part: Part) -> list[Row]:
    (comparison,), count = part.comparisons, part.case.n
    context.require_room(count)
    nv12, exact = coded(context.workload.frame, LEVELS[context.device])
    job = crop_job(context, boxes_of(context, VISDRONE, count), np.rint(exact).astype(np.uint8))
    with context.threads(1 if context.device == "cpu" else context.thread_count):
        made, missing = make_all({kind.name: partial(_ready, kind, job, nv12) for kind in KINDS[context.device]})
        timed, answers, every = [], {}, -(-count // CHECKED)
        affine = np.array(job.mean), np.array(job.std)
        for method in made.values():
            right = reference.crop_resize(exact, job.boxes[::every], job.size, *affine, edge=method.edge)
            timed.append(method.timed(method.kernels, every))
            answers |= check(job, timed[-1:], right.astype(np.float32))
        if BOUND in comparison.methods:
            timed.append(Method(BOUND, fill(job.out)))
            answers |= check(job, timed[-1:], None)
        return compare(context, comparison, timed, answers, missing, budget=arena_budget(context))


def coded(frame: NDArray[np.uint8], levels: str) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
    """A frame as NV12 in one array, and what red, green and blue are then, not rounded.

    Raises
    ------
    Unavailable
        The frame's sides are odd, or its width no multiple of four.
    """
    height, width, _ = frame.shape
    if height % 2 or width % WORD:
        raise Unavailable(f"NV12 has even sides and the conversion ahead reads words; the frame is {width} x {height}")
    nv12 = to_nv12(frame, levels)
    return nv12, from_nv12(nv12, levels)


def _ready(kind: Callable[..., CropMethod], job: CropJob, nv12: NDArray[np.uint8]) -> CropMethod:
    """A method with all on the device that its kernels read."""
    method = kind(job, nv12)
    method.prepare()
    return method
