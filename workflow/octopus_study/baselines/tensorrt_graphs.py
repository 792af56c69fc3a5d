"""TensorRT on the two graphs that ONNX Runtime executes too."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from octopus_study.baselines.graphs import GridSampleGraph, PaddedGraph
from octopus_study.baselines.job import CropJob, on_host
from octopus_study.baselines.onnx_models import padded_model
from octopus_study.baselines.padding import WHY_DIFFERENT
from octopus_study.baselines.tensorrt_engine import TensorRtEngine, require_tensorrt

if TYPE_CHECKING:
    from octopus.backends.cuda.memory import DeviceArray


class TensorRtPadded(PaddedGraph):
    """The published comparison's method: crops padded on the host, resized together by an engine."""

    name = "tensorrt-padded"
    runtime = TensorRtEngine

    def __init__(self, job: CropJob) -> None:
        require_tensorrt(job.on_gpu)  # before a model is written
        super().__init__(job)


class TensorRtPaddedHalf(TensorRtPadded):
    """The same engine in half precision: it converts to float16, computes in it and answers in it."""

    name = "tensorrt-padded-fp16"
    why_different = f"{WHY_DIFFERENT}, in half precision"

    def model(self) -> bytes:
        return padded_model(self.job.size, self.job.mean, self.job.std, "float16")

    @cached_property
    def _half(self) -> DeviceArray:
        from octopus.backends.cuda.memory import DeviceArray

        return DeviceArray(self.job.out.shape, np.float16)

    def output(self) -> DeviceArray:
        return self._half

    def result(self, every: int = 1) -> NDArray[np.float32]:
        return on_host(self._half, every).astype(np.float32)


class TensorRtGridSample(GridSampleGraph):
    """An engine with the same answer as Octopus."""

    name = "tensorrt-gridsample"
    runtime = TensorRtEngine

    def __init__(self, job: CropJob) -> None:
        require_tensorrt(job.on_gpu)
        super().__init__(job)
