"""Octopus as a contender: the fused kernel, in one launch and in one launch per box."""

from __future__ import annotations

from typing import Any

from octopus import CropPlan
from octopus.cropspec import check_host_boxes
from octopus.interop import view
from octopus.peers.job import CropJob


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

        self._engine = self.plan.engine
        self._stream = stream_of(None)
        self._frame = view(job.device_frame, "frame")
        self._built = self.build()
        self._uploaded = self._engine.upload_boxes(self._built, self._stream)

    def upload(self) -> None:
        """Stage: the boxes' way to the device."""
        self._engine.upload_boxes(self._built, self._stream)

    def kernel(self) -> None:
        """Stage: crop, resize and normalise boxes that are on the device."""
        self._launch(0, self.job.count)

    def _launch(self, first: int, count: int) -> None:
        item = self.job.out.nbytes // max(self.job.count, 1)
        self._engine.launch(
            self._frame,
            self._uploaded + 16 * first,
            "float32",
            count,
            self.job.out.pointer + item * first,
            self._stream,
        )


class NLaunchesFused:
    """The fused kernel once per box: what separate launches cost when nothing else is different."""

    name = "n-launches-fused"

    def __init__(self, job: CropJob) -> None:
        self.job = job
        self._all = OctopusOnGpu(job) if job.on_gpu else None
        self._one = None if job.on_gpu else self._plan_for_one()

    def _plan_for_one(self) -> CropPlan:
        job = self.job
        return CropPlan(job.frame, 1, job.size, mean=job.mean, std=job.std, device="cpu", allocate=False)

    def run(self) -> None:
        """Boxes are checked and uploaded once; then one launch (on the CPU one call) per box."""
        if self._all is None:
            for index in range(self.job.count):
                one = slice(index, index + 1)
                self._one.run(self.job.frame, self.job.boxes[one], out=self.job.out[one])
            return
        self._all.build()
        self._all.upload()
        for index in range(self.job.count):
            self._all._launch(index, 1)
