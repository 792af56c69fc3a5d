"""Boxes of a frame as a video decoder gives it, in NV12: converted in the launch, before it, or by others.

The frame is the data set's, coded in BT.601 in the full range, the only one that `cuframe` reads. On GPUs alone.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import octopus
from octopus_study.baselines.availability import Unavailable, make_all
from octopus_study.baselines.fused import Octopus
from octopus_study.baselines.job import TOLERANCE_LEVELS, CropJob
from octopus_study.baselines.method import CropMethod
from octopus_study.baselines.native_methods import CuFrame, RoiConvertNv12, from_nv12, to_nv12
from octopus_study.measure import Method, Row
from octopus_study.measure.bandwidth import fill
from octopus_study.reference import crops as reference
from octopus_study.studies.arena.workloads import CHECKED, VISDRONE, arena_budget, boxes_of
from octopus_study.studies.comparison import Comparison, Part, compare
from octopus_study.studies.context import Context
from octopus_study.studies.crops import check, crop_job, every_checked

QUANTITY, WORKLOAD, BOUND = "kernel", "nv12", "write-bound"
WORD = 4  # columns of a frame that the conversion ahead reads at once
ROUNDED = 0.5 + TOLERANCE_LEVELS  # levels, where a frame of whole levels is read


class Nv12(Octopus):
    """One launch on both planes."""

    def __init__(self, job: CropJob, nv12: NDArray[np.uint8]) -> None:
        from octopus.backends.cuda.memory import upload

        height = len(job.frame)
        self._planes = octopus.NV12(upload(nv12[:height]), upload(nv12[height:]), matrix="bt601", range="full")
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
    """The frame converted by a kernel of its own, at the speed of a copy; then the crops."""

    name = "octopus-converted"

    def __init__(self, job: CropJob, nv12: NDArray[np.uint8]) -> None:
        from cuda.core import LaunchConfig

        from octopus.backends.cuda import stream_of
        from octopus.backends.cuda.compile import load
        from octopus.backends.cuda.memory import DeviceArray, upload
        from octopus_study.kernels.cuda import FOLDER, video

        height, width, _ = job.frame.shape
        self._nv12, self._rgb = upload(nv12), DeviceArray(job.frame.shape, np.uint8)
        self._kernel, self._stream = load("nv12-to-rgb", lambda: video.to_rgb, FOLDER), stream_of(None)
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
        from cuda.core import launch

        luma, (height, width, _) = self._nv12.pointer, self.job.frame.shape
        planes = luma, luma + height * width
        launch(self._stream, self._config, self._kernel, *planes, np.int32(width // WORD), self._rgb.pointer)


KINDS: tuple[type[CropMethod], ...] = (Nv12, OfRgb, Converted, RoiConvertNv12, CuFrame)


def parts(context: Context) -> Iterator[Part]:
    """One part for each number of boxes."""
    names = (*(kind.name for kind in KINDS), BOUND)
    for count in context.config.arena.counts:
        comparison = Comparison(context.case(WORKLOAD, count), QUANTITY, "device", names)
        yield Part(_measure, (comparison,))


def _measure(context: Context, part: Part) -> list[Row]:
    (comparison,), count = part.comparisons, part.case.n
    context.require_room(count)
    nv12, exact = coded(context.workload.frame)
    job = crop_job(context, boxes_of(context, VISDRONE, count), np.rint(exact).astype(np.uint8))
    made, missing = make_all({kind.name: partial(_ready, kind, job, nv12) for kind in KINDS})
    timed, answers, every = [], {}, every_checked(count, CHECKED)
    affine = np.array(job.mean), np.array(job.std)
    for method in made.values():
        right = reference.crop_resize(exact, job.boxes[::every], job.size, *affine, edge=method.edge)
        timed.append(method.timed(method.kernels, every))
        answers |= check(job, timed[-1:], right.astype(np.float32))
    timed.append(Method(BOUND, fill(job.out)))
    answers |= check(job, timed[-1:], None)
    return compare(context, comparison, timed, answers, missing, budget=arena_budget(context))


def coded(frame: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
    """A frame as NV12 in one array, and what red, green and blue are then, not rounded; `Unavailable` where its sides
    are odd, or its width no multiple of four."""
    height, width, _ = frame.shape
    if height % 2 or width % WORD:
        raise Unavailable(f"NV12 has even sides and the conversion ahead reads words; the frame is {width} x {height}")
    nv12 = to_nv12(frame)
    return nv12, from_nv12(nv12)


def _ready(kind: Callable[..., CropMethod], job: CropJob, nv12: NDArray[np.uint8]) -> CropMethod:
    """A method with all on the device that its kernels read."""
    method = kind(job, nv12)
    method.prepare()
    return method
