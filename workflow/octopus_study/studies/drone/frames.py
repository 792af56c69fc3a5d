"""Methods on a video, each on the frame to which the `Video` was turned."""

from __future__ import annotations

from typing import Any

import numpy as np

from octopus.arrays.views import view
from octopus.crop.check import check_host_boxes
from octopus.crop.launch import Call
from octopus_study.peers.availability import Unavailable
from octopus_study.peers.fused import PreparedBoxes
from octopus_study.peers.job import CropJob
from octopus_study.peers.method import JobMethod
from octopus_study.peers.opencv import OpenCv, OpenCvTable, OpenCvTableThreads
from octopus_study.peers.published import WHY_DIFFERENT, NLaunches
from octopus_study.studies.drone.video import Video

NEEDS_GPU = "needs a CUDA GPU"


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
        self._plan = video.plan(video.most)

    def run(self) -> None:
        self.video.upload()
        job = self.job
        self._plan.run(job.working_frame, job.boxes, out=job.out)


class OctopusGraphs(FrameMethod):
    """The same as one CUDA graph per frame: uploads of frame and boxes, and the launch.

    A graph holds what it was captured with, so that there is one for each number of boxes and each buffer from which
    a frame comes; all are made in advance.
    """

    name = "octopus-graph"

    def __init__(self, video: Video) -> None:
        super().__init__(video)
        if not video.on_gpu:
            raise Unavailable(NEEDS_GPU)
        from octopus.backends.cuda import stream_of
        from octopus.backends.cuda.device import current
        from octopus.backends.cuda.memory import DeviceArray, pinned

        self._plan = video.plan(video.most)
        self._boxes = pinned((video.most, 4), np.float32)
        self._device_boxes = DeviceArray((video.most, 4), np.float32)
        self._queue, self._used = stream_of(None), current().create_event()
        self._graphs: dict[tuple[int, int], Any] = {}
        self._capture_all(current().create_stream())

    def _capture_all(self, stream: Any) -> None:
        from octopus.backends.cuda.graph import Graph

        self._boxes[...] = (0, 0, 1, 1)
        self._device_boxes.copy_from_host(self._boxes)
        self._queue.sync()
        before = self.video.number
        for number in range(self.video.frames):
            self.video.turn(number)
            if self._key not in self._graphs:
                self._work(self._queue)  # loads what a capture could not
                self._graphs[self._key] = Graph(stream, lambda: self._work(stream))
        self.video.turn(before)
        self._queue.sync()

    @property
    def _key(self) -> tuple[int, int]:
        return self.video.number % len(self.video.ring), self.job.count

    def _work(self, stream: Any) -> None:
        """Queue a frame's work; its boxes come from page-locked memory."""
        from octopus.backends.cuda.memory import copy

        job = self.job
        boxes = self._device_boxes.head(job.count)
        self.video.upload(stream=stream)
        copy(boxes.pointer, self._boxes.ctypes.data, boxes.nbytes, stream)
        self._plan.run(job.device_frame, boxes, out=job.out, stream=stream)

    def run(self) -> None:
        """Boxes checked and written where the graph reads them, one launch of the graph."""
        job = self.job
        height, width, _ = job.frame.shape
        checked = check_host_boxes(job.boxes, width, height)
        self._used.sync()
        self._boxes[: job.count] = checked
        self._graphs[self._key].launch(self._queue)
        self._queue.record(self._used)


class SeparateFrames(FrameMethod):
    """The fused kernel once per box; the boxes of a frame are checked and uploaded together."""

    name = "n-launches"

    def __init__(self, video: Video) -> None:
        super().__init__(video)
        self._plan, self._on_device, self._queue = video.plan(video.most), None, None
        self._kernel: PreparedBoxes | None = None
        if video.on_gpu:
            from octopus.backends.cuda import stream_of
            from octopus.backends.cuda.memory import DeviceArray

            self._queue, self._on_device = stream_of(None), DeviceArray((video.most, 4), np.float32)

    def run(self) -> None:
        job, there = self.job, self._on_device
        height, width, _ = job.frame.shape
        boxes = check_host_boxes(job.boxes, width, height)
        if there is not None:
            from octopus.backends.cuda.memory import copy

            self.video.upload()
            copy(there.pointer, boxes.ctypes.data, boxes.nbytes, self._queue)
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
    """OpenCV's usual lines on one thread: the frame is where it is, and so are its crops."""

    form: type[OpenCv] = OpenCv
    name = form.name

    def __init__(self, video: Video) -> None:
        super().__init__(video)
        self._video = video
        if video.on_gpu:
            job = video.jobs[0]
            boxes = [one.boxes for one in video.jobs]
            self._video = Video(video.ring, boxes, job.size, job.mean, job.std, "cpu")
        self._crops = self.form(self._video.jobs[0])

    @property
    def job(self) -> CropJob:
        return self._video.jobs[self.video.number]

    def run(self) -> None:
        self._crops.job = self.job
        self._crops.run()


class OpenCvTableFrames(OpenCvFrames):
    """The form that is fastest for boxes as small as these, on one thread."""

    form = OpenCvTable
    name = form.name


class OpenCvThreadsFrames(OpenCvFrames):
    """The same form on all threads."""

    form = OpenCvTableThreads
    name = form.name


FRAME_METHODS: tuple[type[FrameMethod], ...] = (
    OctopusFrames,
    OctopusGraphs,
    SeparateFrames,
    PublishedFrames,
    OpenCvFrames,
    OpenCvTableFrames,
    OpenCvThreadsFrames,
)
