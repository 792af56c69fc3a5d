"""Octopus: the fused kernel in one launch, from `CropPlan`, from one call and in half precision, and in N launches."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus import CropPlan, crop_resize
from octopus.arrays.launch import PreparedLaunch
from octopus.arrays.views import view
from octopus.crop.check import Call, check_host_boxes
from octopus.kernels.cuda.tiles import MOST_BOXES_INSIDE
from octopus_study.baselines.job import CropJob, on_host
from octopus_study.baselines.method import CropMethod

LAUNCH_BOUND = "its launches come from the host more slowly than the device works; events would time the host"
HALF_ULP = 2.0**-11  # largest relative error of rounding to float16


class PreparedBoxes:
    """A plan's kernel for some of the boxes, which are float32 and checked, prepared once for each number of them.
    `call` holds arrays where the plan works, whose place others like them may take; an item of the result is a multiple
    of 16 bytes."""

    def __init__(self, plan: CropPlan, call: Call) -> None:
        self._engine, self.call, self._checked = plan.engine, call, plan.device == "cpu"
        self._launches: dict[int, PreparedLaunch] = {}

    def __call__(self, first: int, count: int, stream: Any = None) -> None:
        """The boxes from number `first` on; `stream` is of cuda.core where a GPU works."""
        prepared = self._launches.get(count)
        frame, boxes, out, *_ = self.call
        if prepared is None:
            given = {"checked": True} if self._checked else {}
            prepared = self._launches[count] = self._engine.prepare(self.call.part(0, count), **given)
        at = out.pointer + first * out.strides[0], frame.pointer, boxes.pointer + first * boxes.strides[0]
        if prepared(0 if stream is None else int(stream.handle), at):
            raise RuntimeError("the kernel was refused")


class Octopus(CropMethod):
    """One launch for all boxes, through the public `CropPlan`, which gets `options` beside the job's; `asked` is what
    each run is asked for beside boxes and memory."""

    name = "octopus"
    dtype = "float32"

    def __init__(self, job: CropJob, **options: Any) -> None:
        super().__init__(job)
        self.plan = CropPlan(
            self.frame,
            job.count,
            job.size,
            mean=job.mean,
            std=job.std,
            device=job.device,
            allocate=False,
            **({"dtype": self.dtype, "edge": self.edge} | options),
        )
        self._boxes: Any = None
        self.asked: dict[str, Any] = {}

    @property
    def frame(self) -> Any:
        return self.job.working_frame

    def prepare(self) -> None:
        if self.job.on_gpu:
            from octopus.backends.cuda.memory import upload

            self._boxes = upload(self.job.boxes.astype(np.float32))

    def kernels(self) -> None:
        boxes = self._boxes if self.job.on_gpu else self.job.boxes
        self.plan.run(self.frame, boxes, out=self.output(), **self.asked)

    def run(self) -> None:
        self.plan.run(self.frame, self.job.boxes, out=self.output(), **self.asked)

    def build(self) -> Any:
        return check_host_boxes(self.job.boxes, self.job.frame.shape[1], self.job.frame.shape[0])


class OctopusOnGpu(Octopus):
    """The same with its stages apart, upload and kernel, whose boxes are in device memory also where a run has them
    among its arguments."""

    def __init__(self, job: CropJob) -> None:
        super().__init__(job)
        from octopus.backends.cuda import stream_of
        from octopus.backends.cuda.memory import upload

        self._stream, self._frame = stream_of(None), view(job.device_frame, "frame")
        self._built = self.build()
        self._on_device = upload(self._built)
        boxes, out = view(self._on_device, "boxes"), view(job.out, "out")
        self._kernel = PreparedBoxes(self.plan, Call(self._frame, boxes, out))

    @property
    def uploads(self) -> bool:
        """Whether a run copies boxes to the device: a few are an argument of the launch."""
        return self.job.count > MOST_BOXES_INSIDE

    def upload(self) -> None:
        self._on_device.copy_from_host(self._built, self._stream)

    def kernels(self) -> None:
        """Stage: crop, resize and normalise boxes that are on the device, without the plan's checks."""
        self.launch(0, self.job.count)

    def launch(self, first: int, count: int) -> None:
        self._kernel(first, count, self._stream)


class OneCall(CropMethod):
    """`crop_resize` without a plan of one's own; the memory of the result is part of the call."""

    name = "octopus-one-call"
    why_no_device = "it is the same kernel; what it adds is the host's"

    def __init__(self, job: CropJob) -> None:
        super().__init__(job)
        self._result: Any = None

    def run(self) -> None:
        job = self.job
        self._result = None  # what a caller does who has used the result before
        self._result = crop_resize(
            job.working_frame, job.boxes, job.size, mean=job.mean, std=job.std, device=job.device
        )

    def result(self, every: int = 1) -> NDArray[np.float32]:
        return on_host(self._result, every)

    def output(self) -> Any:
        return self._result


class HalfPrecision(Octopus):
    """The same with a float16 result, which has half the bytes to write."""

    name = "octopus-fp16"
    dtype = "float16"

    def __init__(self, job: CropJob) -> None:
        super().__init__(job)
        self._out = _half_like(job)
        levels = np.array([[0.0], [255.0]])
        largest = np.abs((levels - job.mean) / job.std).max()
        self.tolerance += float(largest * HALF_ULP)

    def result(self, every: int = 1) -> NDArray[np.float32]:
        return on_host(self._out, every).astype(np.float32)

    def output(self) -> Any:
        return self._out


class ImageEdge(Octopus):
    """The same, clamped at the edge of the frame: beside methods that read what lies around a box."""

    name = "octopus-image"
    edge = "image"


class NLaunchesFused(CropMethod):
    """The fused kernel once per box: boxes are checked (and uploaded) together, then one launch or call per box. On a
    CPU a single box is cut into bands, so that all threads have work, where `octopus` gives them whole boxes."""

    name = "n-launches-fused"
    why_no_device = LAUNCH_BOUND

    def __init__(self, job: CropJob) -> None:
        super().__init__(job)
        self._all = OctopusOnGpu(job) if job.on_gpu else Octopus(job)

    def run(self) -> None:
        boxes = self._all.build()
        if isinstance(self._all, OctopusOnGpu):
            self._all.upload()
            for index in range(self.job.count):
                self._all.launch(index, 1)
            return
        frame, out = view(self.job.frame, "frame"), view(self.job.out, "out")
        kernel = PreparedBoxes(self._all.plan, Call(frame, view(boxes, "boxes"), out))
        for index in range(self.job.count):
            kernel(index, 1)


def _half_like(job: CropJob) -> Any:
    if not job.on_gpu:
        return np.zeros(job.out.shape, np.float16)
    from octopus.backends.cuda.memory import DeviceArray

    return DeviceArray(job.out.shape, np.float16)
