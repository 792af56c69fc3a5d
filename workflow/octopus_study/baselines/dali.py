"""NVIDIA DALI: `resize` with a region of interest per box, then `crop_mirror_normalize`, in its dynamic mode and in the
pipeline that its makers recommend, which is built once and works ahead of what asks for batches."""

from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus.backends.cpu import get_num_threads
from octopus_study.baselines.availability import need
from octopus_study.baselines.job import CropJob
from octopus_study.baselines.method import NOT_BY_EVENTS, CropMethod, blocking_stream

INSTALL = "pip install -e './workflow[arena-cuda13]'"
AHEAD = 2  # batches that are on their way at once, DALI's own choice


@cache
def dali_stream() -> Any:
    """One stream for the whole process: DALI gives memory back on it long after a method is gone."""
    return blocking_stream()


def corners_of(job: CropJob) -> dict[str, NDArray[np.float32]]:
    """Both corners of each box, as DALI takes them: rows first."""
    corners = job.boxes.astype(np.float32)
    return {"start": np.ascontiguousarray(corners[:, [1, 0]]), "end": np.ascontiguousarray(corners[:, [3, 2]])}


class Dali(CropMethod):
    """One frame, broadcast over a batch of regions, resized without antialiasing to float, normalised to planes. Its
    operators are queued from a thread of its own, while events on the default stream are recorded by ours; so its
    device work can't be told from its host work, and it has no device layer."""

    name = "dali"
    why_no_device = NOT_BY_EVENTS
    edge = "image"

    def __init__(self, job: CropJob) -> None:
        super().__init__(job)
        self.dali = need("nvidia.dali.experimental.dynamic", "NVIDIA DALI", INSTALL)
        self.device = "gpu" if job.on_gpu else "cpu"
        self.frame = self.dali.as_tensor(self._storage(), layout="HWC")
        if job.on_gpu:
            self.dali.set_current_stream(int(dali_stream().handle))
        self._result: Any = None

    def _storage(self) -> Any:
        """The frame in a form that DALI takes without a copy."""
        if not self.job.on_gpu:
            return self.job.frame
        tensors = need("nvidia.dali.tensors", "NVIDIA DALI", INSTALL)
        return tensors.TensorGPU(self.job.device_frame, layout="HWC")

    def run(self) -> None:
        """Both operators, queued, the first with all items in one launch instead of 32 each; arguments are uploaded."""
        region = {f"roi_{side}": self.dali.as_batch(values) for side, values in corners_of(self.job).items()}
        resized = self.dali.resize(
            self.frame, size=list(self.job.size), antialias=False, dtype=self.dali.float32, device=self.device,
            minibatch_size=max(self.job.count, 1), **region,
        )  # fmt: skip
        planes = self.dali.crop_mirror_normalize(
            resized, mean=list(self.job.mean), std=list(self.job.std), dtype=self.dali.float32,
            output_layout="CHW", device=self.device,
        )  # fmt: skip
        self._result = self.dali.as_tensor(planes).evaluate()

    def output(self) -> Any:
        return self._result if self.job.on_gpu else self.result()

    def result(self, every: int = 1) -> NDArray[np.float32]:
        return np.asarray(self._result.cpu())[::every]


class DaliPipeline(CropMethod):
    """`resize` with a region per box, then `crop_mirror_normalize`, as one graph. Frame and boxes are fed from outside;
    all items share one frame, without a copy. A single `run` waits for its own batch; in a `series` the next batches
    are fed before one is asked for."""

    name = "dali-pipeline"
    edge = "image"
    why_no_device = NOT_BY_EVENTS

    def __init__(self, job: CropJob) -> None:
        super().__init__(job)
        self._dali = need("nvidia.dali", "NVIDIA DALI", INSTALL)
        self._pipeline = self._built()
        self._outputs: Any = None
        self._start()

    def _built(self) -> Any:
        job, fn, types = self.job, self._dali.fn, self._dali.types
        pipeline = self._dali.Pipeline(
            max(job.count, 1), get_num_threads(), 0 if job.on_gpu else None, prefetch_queue_depth=AHEAD
        )
        place = "gpu" if job.on_gpu else "cpu"
        with pipeline:
            frames = fn.external_source(name="frames", device=place, layout="HWC", no_copy=True)
            region = {f"roi_{side}": fn.external_source(name=side) for side in ("start", "end")}
            resized = fn.resize(
                frames, size=list(job.size), antialias=False, dtype=types.FLOAT,
                minibatch_size=max(job.count, 1), **region,
            )  # fmt: skip
            planes = fn.crop_mirror_normalize(
                resized, mean=list(job.mean), std=list(job.std), dtype=types.FLOAT, output_layout="CHW"
            )
            pipeline.set_outputs(planes)
        pipeline.build()
        return pipeline

    @cached_property
    def _frames(self) -> Any:
        tensors = need("nvidia.dali.tensors", "NVIDIA DALI", INSTALL)
        kind = "GPU" if self.job.on_gpu else "CPU"
        frame = getattr(tensors, f"Tensor{kind}")(self.job.working_frame, layout="HWC")
        return getattr(tensors, f"TensorList{kind}")([frame] * self.job.count, layout="HWC", contiguous=False)

    def _start(self) -> None:
        """DALI's first order is for as many batches as it works ahead; they are thrown away."""
        for _ in range(AHEAD):
            self._feed()
        self._pipeline.schedule_run()
        for _ in range(AHEAD):
            self._receive()

    def _feed(self) -> None:
        self._pipeline.feed_input("frames", self._frames, **({"cuda_stream": 0} if self.job.on_gpu else {}))
        for side, values in corners_of(self.job).items():
            self._pipeline.feed_input(side, values)

    def _order(self) -> None:
        self._feed()
        self._pipeline.schedule_run()

    def _receive(self) -> None:
        """Wait for the oldest batch; its memory is DALI's until the next is asked for."""
        self._outputs = None
        self._pipeline.release_outputs()
        (self._outputs,) = self._pipeline.share_outputs()

    def run(self) -> None:
        self._order()
        self._receive()

    def series(self, count: int) -> None:
        for number in range(count + AHEAD):
            if number >= AHEAD:
                self._receive()
            if number < count:
                self._order()

    def output(self) -> Any:
        return self._outputs.as_tensor() if self.job.on_gpu else self.result()

    def result(self, every: int = 1) -> NDArray[np.float32]:
        batch = self._outputs.as_cpu() if self.job.on_gpu else self._outputs
        return batch.as_array()[::every]
