"""Octopus, the published method, separate launches and OpenCV, in the form in which the arena runs every peer.

The other opponents come from `octopus_study.peers.registry`, in the same form.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from octopus import CropPlan, crop_resize
from octopus_study.peers.fused import NLaunchesFused, Octopus
from octopus_study.peers.job import CropJob
from octopus_study.peers.published import WHY_DIFFERENT, NLaunches, Published

LAUNCH_BOUND = "its launches come from the host more slowly than the device works; events would time the host"
ON_THE_HOST = "works on the host; the way of its frame and its result is the layer pipeline"
HALF_ULP = 2.0**-11  # largest relative error of rounding to float16


class Contender(Protocol):
    """What the arena asks of an opponent.

    `prepare` does everything up to the kernels, `kernels` only device work on the default stream, `run` the whole way
    from the job's boxes on the host. `output` is the result where it was made, `result` a float32 copy on the host.
    """

    name: str
    device_layer: bool
    why_different: str
    tolerance: float | None

    def prepare(self) -> None: ...
    def kernels(self) -> None: ...
    def run(self) -> None: ...
    def result(self) -> NDArray[np.float32]: ...
    def output(self) -> Any: ...


class Own:
    """A contender that writes into the job's result."""

    name = ""
    device_layer = True
    why_no_device = ""
    on_host = False
    why_different = ""
    tolerance: float | None = None

    def __init__(self, job: CropJob) -> None:
        self.job = job

    def prepare(self) -> None:
        """Nothing is left to do after the constructor."""

    def kernels(self) -> None:
        """Without a device the kernels are the whole way."""
        self.run()

    def run(self) -> None:
        """A subclass says how."""
        raise TypeError(f"{type(self).__name__} has no way to run")

    def result(self) -> NDArray[np.float32]:
        """The job's result on the host."""
        return self.job.result()

    def output(self) -> Any:
        """The job's result where it was made."""
        return self.job.out


class FusedPlan(Own):
    """`CropPlan` in one launch: boxes from the host (`run`), or boxes that lie on the device (`kernels`)."""

    name = "octopus"

    def __init__(self, job: CropJob) -> None:
        super().__init__(job)
        self.plan = self._make_plan()
        self._boxes_in_place: Any = job.boxes.astype(np.float32)
        if job.on_gpu:
            from octopus.backends.cuda.memory import upload

            self._boxes_in_place = upload(self._boxes_in_place)

    def _make_plan(self) -> CropPlan:
        return Octopus(self.job).plan

    def kernels(self) -> None:
        """One launch."""
        self.plan.run(self.job.working_frame, self._boxes_in_place, out=self.output())

    def run(self) -> None:
        """Boxes checked, uploaded, one launch."""
        self.plan.run(self.job.working_frame, self.job.boxes, out=self.output())


class OneCall(Own):
    """`crop_resize` without a plan of one's own; the memory of the result is part of the call."""

    name = "octopus-one-call"
    device_layer, why_no_device = False, "it is the same kernel; what it adds is the host's"

    def __init__(self, job: CropJob) -> None:
        super().__init__(job)
        self._result: Any = None

    def run(self) -> None:
        """Everything from the arguments on."""
        job = self.job
        self._result = None  # what a caller does who has used the result before
        self._result = crop_resize(
            job.working_frame,
            job.boxes,
            job.size,
            mean=job.mean,
            std=job.std,
            device="cuda" if job.on_gpu else "cpu",
        )

    def result(self) -> NDArray[np.float32]:
        """The last call's result on the host."""
        return self._result.copy_to_host() if self.job.on_gpu else self._result

    def output(self) -> Any:
        """The last call's result."""
        return self._result


class HalfPrecision(FusedPlan):
    """The same with a float16 result, which has half the bytes to write."""

    name = "octopus-fp16"

    def __init__(self, job: CropJob) -> None:
        super().__init__(job)
        self._out = _half_like(job)
        levels = np.array([[0.0], [255.0]])
        largest = np.abs((levels - job.mean) / job.std).max()
        self.tolerance = float(0.255 / max(job.std) + largest * HALF_ULP)

    def _make_plan(self) -> CropPlan:
        job = self.job
        return CropPlan(
            job.working_frame, job.count, job.size, mean=job.mean, std=job.std, dtype="float16", allocate=False,
            device="cuda" if job.on_gpu else "cpu",
        )  # fmt: skip

    def result(self) -> NDArray[np.float32]:
        """The result as float32 on the host."""
        found = self._out.copy_to_host() if self.job.on_gpu else self._out
        return found.astype(np.float32)

    def output(self) -> Any:
        """Its own memory."""
        return self._out


class PublishedPasses(Own):
    """The published method; its device time is that of both passes."""

    name = "published"
    why_different = WHY_DIFFERENT
    kind: type[Published] = Published

    def __init__(self, job: CropJob) -> None:
        super().__init__(job)
        self._passes = self.kind(job)

    def kernels(self) -> None:
        """Both passes, metadata in place."""
        self._passes.kernels()

    def run(self) -> None:
        """Metadata, its upload, both passes."""
        self._passes.run()


class SeparateLaunches(PublishedPasses):
    """The published passes, one launch per box and pass."""

    name = "n-launches"
    device_layer, why_no_device = False, LAUNCH_BOUND
    kind = NLaunches


class SeparateFusedLaunches(Own):
    """The fused kernel, one launch per box."""

    name = "n-launches-fused"
    device_layer, why_no_device = False, LAUNCH_BOUND

    def __init__(self, job: CropJob) -> None:
        super().__init__(job)
        self.run = NLaunchesFused(job).run  # type: ignore[method-assign]


class OpenCvCrops(Own):
    """OpenCV on one thread; beside a GPU it reads and writes host memory, and no layer but `pipeline` sees that.

    Parameters
    ----------
    job : CropJob
    host_out : ndarray, optional
        Where it writes when the job's own result is on the GPU.
    """

    name = "opencv"
    device_layer, why_no_device = False, ON_THE_HOST

    def __init__(self, job: CropJob, host_out: NDArray[np.float32] | None = None) -> None:
        from octopus_study.peers.opencv import OpenCv

        self.on_host = job.on_gpu
        if job.on_gpu:
            out = np.empty(job.out.shape, np.float32) if host_out is None else host_out
            job = replace(job, out=out, device_frame=None)
        super().__init__(job)
        self.run = OpenCv(job).run  # type: ignore[method-assign]


def _half_like(job: CropJob) -> Any:
    if not job.on_gpu:
        return np.zeros(job.out.shape, np.float16)
    from octopus.backends.cuda.memory import DeviceArray

    return DeviceArray(job.out.shape, np.float16)


OWN: tuple[type[Own], ...] = (
    FusedPlan,
    OneCall,
    HalfPrecision,
    PublishedPasses,
    SeparateLaunches,
    SeparateFusedLaunches,
    OpenCvCrops,
)
