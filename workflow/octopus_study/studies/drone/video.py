"""A video, frames with boxes of their own that come from the host one after the other, and methods on it, each on the
frame to which the `Video` was turned."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus import CropPlan
from octopus.arrays.views import view
from octopus.backends.cuda import memory, stream_of
from octopus.crop.check import Call, check_host_boxes
from octopus_study.baselines.fused import PreparedBoxes
from octopus_study.baselines.job import CropJob
from octopus_study.baselines.method import JobMethod
from octopus_study.baselines.opencv import OpenCv, OpenCvTable, OpenCvTableThreads
from octopus_study.baselines.published import WHY_DIFFERENT, NLaunches
from octopus_study.studies.crops import ReferenceCrops


@dataclass(frozen=True)
class Footage:
    """Frames that come over and over, and what makes the right crops of each."""

    ring: NDArray[np.uint8]
    references: list[ReferenceCrops]

    def crops(self, number: int, boxes: NDArray[np.int32]) -> NDArray[np.float32]:
        """The right crops of the frame of that number."""
        return self.references[number % len(self.ring)].of(boxes)


class Video:
    """Frames on the host, in page-locked memory beside a GPU, the boxes of each, and memory for the crops of one. The
    frames of `ring`, (R, H, W, C) uint8, come over and over; `boxes` has one array (N, 4) per frame, on the host.
    `number` is that of the frame that is worked on; set it to turn to another one."""

    def __init__(
        self,
        ring: NDArray[np.uint8],
        boxes: Sequence[NDArray[np.int32]],
        size: tuple[int, int],
        mean: tuple[float, ...],
        std: tuple[float, ...],
        device: str,
    ) -> None:
        self.number, self.device = 0, device
        self.most, self.frames = max(map(len, boxes)), len(boxes)
        shape = (self.most, ring.shape[3], *size)
        self.ring, self.device_frame = ring, None
        if self.on_gpu:
            self.ring = memory.pinned(ring.shape, np.uint8)
            self.ring[...] = ring
            self.device_frame = memory.DeviceArray(ring.shape[1:], np.uint8)
        self._out: Any = memory.DeviceArray(shape, np.float32) if self.on_gpu else np.zeros(shape, np.float32)
        self._addresses = [int(frame.ctypes.data) for frame in self.ring]
        self.jobs = [
            CropJob(self.ring[index % len(ring)], part, size, mean, std, self._head(len(part)), self.device_frame)
            for index, part in enumerate(boxes)
        ]
        for job in self.jobs:
            _ = job.affine  # else the first run of each frame would work it out

    def _head(self, count: int) -> Any:
        return self._out.head(count) if self.on_gpu else self._out[:count]

    @property
    def on_gpu(self) -> bool:
        """Whether the crops are made on the GPU."""
        return self.device == "cuda"

    @property
    def job(self) -> CropJob:
        """Frame, boxes and result of the frame that is worked on."""
        return self.jobs[self.number]

    def turn(self, number: int) -> None:
        """Go to another frame."""
        self.number = number

    def upload(self, stream: Any = None) -> None:
        """Queue the frame's way to `device_frame`; nothing on a CPU."""
        if self.device_frame is not None:
            source = self._addresses[self.number % len(self._addresses)]
            memory.copy(self.device_frame.pointer, source, self.device_frame.nbytes, stream)

    def plan(self) -> CropPlan:
        """A plan for frames like these, which writes into memory that it is given."""
        job = self.jobs[0]
        return CropPlan(
            job.working_frame, self.most, job.size, mean=job.mean, std=job.std, device=self.device, allocate=False
        )


class FrameMethod(JobMethod):
    """From a frame on the host to its crops; the job is that of the frame to which the video was turned."""

    def __init__(self, video: Video) -> None:
        self.video = video
        self.tolerance = video.job.tolerance

    @property
    def job(self) -> CropJob:  # type: ignore[override]
        """Frame, boxes and result of the frame that is worked on."""
        return self.video.job

    def result(self, every: int = 1) -> Any:
        return self.job.result(every)


class OctopusFrames(FrameMethod):
    """`CropPlan.run` per frame."""

    name = "octopus"

    def __init__(self, video: Video) -> None:
        super().__init__(video)
        self._plan = video.plan()

    def run(self) -> None:
        self.video.upload()
        job = self.job
        self._plan.run(job.working_frame, job.boxes, out=job.out)


class SeparateFrames(FrameMethod):
    """The fused kernel once per box; the boxes of a frame are checked and uploaded together."""

    name = "n-launches"

    def __init__(self, video: Video) -> None:
        super().__init__(video)
        self._plan = video.plan()
        self._kernel: PreparedBoxes | None = None
        self._queue, self._on_device = None, None
        if video.on_gpu:
            self._queue, self._on_device = stream_of(None), memory.DeviceArray((video.most, 4), np.float32)

    def run(self) -> None:
        job, there = self.job, self._on_device
        height, width, _ = job.frame.shape
        boxes = check_host_boxes(job.boxes, width, height)
        if there is not None:
            self.video.upload()
            memory.copy(there.pointer, boxes.ctypes.data, boxes.nbytes, self._queue)
        frame = view(job.frame if there is None else self.video.device_frame, "frame")
        call = Call(frame, view(boxes if there is None else there, "boxes"), view(job.out, "out"))
        self._kernel = self._kernel or PreparedBoxes(self._plan, call)
        self._kernel.call = call
        for index in range(job.count):
            self._kernel(index, 1, self._queue)


class PublishedFrames(FrameMethod):
    """The published passes, launched once per box each."""

    name = "n-launches-published"
    why_different = WHY_DIFFERENT

    def __init__(self, video: Video) -> None:
        super().__init__(video)
        self._passes = NLaunches(max(video.jobs, key=lambda job: job.count))

    def run(self) -> None:
        self.video.upload()
        self._passes.take(self.job)
        self._passes.run()


class OpenCvFrames(FrameMethod):
    """A form of OpenCV's usual lines: the frame is where it is, and so are its crops."""

    def __init__(self, form: type[OpenCv], video: Video) -> None:
        super().__init__(video)
        job, self._video = video.job, video
        if video.on_gpu:
            boxes = [one.boxes for one in video.jobs]
            self._video = Video(video.ring, boxes, job.size, job.mean, job.std, "cpu")
        self.name, self._crops = form.name, form(self._video.jobs[0])

    @property
    def job(self) -> CropJob:
        return self._video.jobs[self.video.number]

    def run(self) -> None:
        self._crops.job = self.job
        self._crops.run()


# OpenCV's usual lines, and the form that is fastest for boxes as small as these, on one thread and on all.
FRAME_METHODS: dict[str, Callable[[Video], FrameMethod]] = {
    **{kind.name: kind for kind in (OctopusFrames, SeparateFrames, PublishedFrames)},
    **{form.name: partial(OpenCvFrames, form) for form in (OpenCv, OpenCvTable, OpenCvTableThreads)},
}
