"""Methods that execute an ONNX graph: ONNX Runtime and TensorRT, on the same two graphs."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from octopus.arrays.views import view
from octopus_study.baselines.availability import require_room
from octopus_study.baselines.job import CropJob
from octopus_study.baselines.method import CropMethod
from octopus_study.baselines.onnx_models import BOXES, CROPS, FRAME, PADDED, grid_sample_model, padded_model

WHY_DIFFERENT = "resizes the padded image, not the crop"


@dataclass(frozen=True)
class Tensor:
    """Memory that a graph reads or writes."""

    name: str  # in the graph
    pointer: int
    shape: tuple[int, ...]
    dtype: np.dtype
    owner: Any  # keeps the memory alive


def tensor(name: str, array: Any) -> Tensor:
    """Describe an array under a graph's name for it."""
    described = view(array, name)
    return Tensor(name, described.pointer, described.shape, described.dtype, array)


class Staged:
    """An input's memory, allocated once and not initialised: on the host, page-locked where a GPU reads it, and its
    copy on the GPU; on a CPU both are the same."""

    def __init__(self, shape: tuple[int, ...], dtype: Any, on_gpu: bool) -> None:
        self._on_gpu = on_gpu
        self.host: NDArray[Any]
        self.device: Any
        if on_gpu:
            from octopus.backends.cuda.memory import DeviceArray, pinned

            self.host, self.device = pinned(shape, dtype), DeviceArray(shape, dtype)
        else:
            self.host = self.device = np.empty(shape, dtype)

    def send(self) -> None:
        """Queue the copy to the device on the default stream."""
        if self._on_gpu:
            self.device.copy_from_host(self.host)


class Runtime(Protocol):
    """Executes a model on memory that it is given once."""

    def __init__(self, model: bytes, inputs: Sequence[Tensor], output: Tensor, on_gpu: bool) -> None: ...
    def execute(self) -> None: ...


class Graph(CropMethod):
    """A model, its inputs, and the runtime that executes it."""

    runtime: type[Runtime]

    def __init__(self, job: CropJob) -> None:
        super().__init__(job)
        self._executor = self.runtime(self.model(), self.inputs(), tensor(CROPS, self.output()), job.on_gpu)

    def model(self) -> bytes:
        raise TypeError(f"{type(self).__name__} has no graph")

    def inputs(self) -> list[Tensor]:
        raise TypeError(f"{type(self).__name__} has no inputs")

    def kernels(self) -> None:
        self._executor.execute()


def padded_shape(job: CropJob) -> tuple[int, int, int, int]:
    """The shape of all crops padded to the largest; `Unavailable` where the host has too little memory for them."""
    width, height = (job.boxes[:, 2:] - job.boxes[:, :2]).max(axis=0, initial=1).tolist()
    shape = (job.count, height, width, job.frame.shape[2])
    require_room("the padded batch", "cpu", prod(shape))
    return shape


def pad(job: CropJob, values: NDArray[np.uint8]) -> None:
    """Clear the memory, since other boxes were in it, and copy each crop to the upper left corner of its item."""
    values.fill(0)
    for item, (x1, y1, x2, y2) in zip(values, job.boxes.tolist(), strict=True):
        item[: y2 - y1, : x2 - x1] = job.frame[y1:y2, x1:x2]


class PaddedGraph(Graph):
    """Crops padded on the host and uploaded, then resized and normalised by a graph."""

    why_different = WHY_DIFFERENT

    def model(self) -> bytes:
        return padded_model(self.job.size, self.job.mean, self.job.std)

    def inputs(self) -> list[Tensor]:
        job = self.job
        shape = padded_shape(job)
        if job.on_gpu:
            # uint8, then float32 as converted, as planes, and as resized crops before the normalisation
            require_room(self.name, "cuda", prod(shape) * (1 + 2 * 4) + job.out.nbytes)
        self.batch = Staged(shape, np.uint8, job.on_gpu)
        return [tensor(PADDED, self.batch.device)]

    def prepare(self) -> None:
        pad(self.job, self.batch.host)
        self.batch.send()


class GridSampleGraph(Graph):
    """Frame and boxes go in, crops come out: the same answer as Octopus."""

    def model(self) -> bytes:
        return grid_sample_model(self.job.size, self.job.mean, self.job.std)

    def inputs(self) -> list[Tensor]:
        self._boxes = Staged((self.job.count, 4), np.float32, self.job.on_gpu)
        return [tensor(FRAME, self.job.working_frame), tensor(BOXES, self._boxes.device)]

    def prepare(self) -> None:
        self._boxes.host[...] = self.job.boxes
        self._boxes.send()
