"""Octopus as a contender: the fused kernel, in one launch and in one launch per box."""

from __future__ import annotations

from typing import Any

from octopus import CropPlan
from octopus.arrays.views import view
from octopus.crop.check import check_host_boxes
from octopus_study.peers.job import CropJob


class Octopus:
    """One launch for all boxes, through the public `CropPlan`."""

    name = "octopus"

    def __init__(self, job: CropJob) -> None:
        self.job = job
        self.plan = CropPlan(
            job.working_frame,
            job.count,
            job.size,
            mean=job.mean,
            std=job.std,
            device="cuda" if job.on_gpu else "cpu",
            allocate=False,
        )

    def run(self) -> None:
        """From the boxes on the host to the result."""
        self.plan.run(self.job.working_frame, self.job.boxes, out=self.job.out)

    def build(self) -> Any:
        """Stage: the boxes as the kernel takes them."""
        return check_host_boxes(self.job.boxes, self.job.frame.shape[1], self.job.frame.shape[0])


class OctopusOnGpu(Octopus):
    """The same with its stages apart: upload and kernel."""

    def __init__(self, job: CropJob) -> None:
        super().__init__(job)
        from octopus.backends.cuda import stream_of
        from octopus.backends.cuda.memory import upload

        self._engine = self.plan.engine
        self._stream = stream_of(None)
        self._frame = view(job.device_frame, "frame")
        self._built = self.build()
        self._on_device = upload(self._built)

    def upload(self) -> None:
        """Stage: the boxes' way to the device."""
        self._on_device.copy_from_host(self._built, self._stream)

    def kernel(self) -> None:
        """Stage: crop, resize and normalise boxes that are on the device."""
        self.launch(0, self.job.count)

    def launch(self, first: int, count: int) -> None:
        """The kernel for `count` boxes from `first` on."""
        item = self.job.out.nbytes // max(self.job.count, 1)
        self._engine.launch(
            self._frame,
            self._on_device.pointer + 16 * first,
            "float32",
            count,
            self.job.out.pointer + item * first,
            self._stream,
        )


class NLaunchesFused:
    """The fused kernel once per box: boxes are checked (and uploaded) together, then one launch or call per box.

    On a CPU a single box is cut into bands, so that all threads have work, where `octopus` gives them whole boxes.
    """

    name = "n-launches-fused"

    def __init__(self, job: CropJob) -> None:
        self.job = job
        self._all = OctopusOnGpu(job) if job.on_gpu else Octopus(job)

    def run(self) -> None:
        """From the boxes on the host to the result."""
        boxes = self._all.build()
        if isinstance(self._all, OctopusOnGpu):
            self._all.upload()
            for index in range(self.job.count):
                self._all.launch(index, 1)
            return
        engine, frame, out = self._all.plan.engine, self.job.frame, self.job.out
        for index in range(self.job.count):
            one = slice(index, index + 1)
            engine.run(frame, boxes[one], out[one])
