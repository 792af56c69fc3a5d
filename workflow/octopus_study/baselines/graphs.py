"""Methods that execute an ONNX graph: ONNX Runtime and TensorRT, on the same two files."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Protocol

import numpy as np

from octopus.backends.cache import cache_dir
from octopus_study.baselines.availability import require_room
from octopus_study.baselines.job import CropJob
from octopus_study.baselines.method import CropMethod
from octopus_study.baselines.onnx_models import BOXES, CROPS, FRAME, PADDED, grid_sample_model, padded_model
from octopus_study.baselines.padding import WHY_DIFFERENT, PaddedBatch
from octopus_study.baselines.tensors import Staged, Tensor, staging, tensor


class Runtime(Protocol):
    """Executes a model on memory that it is given once."""

    def __init__(self, model: Path, inputs: Sequence[Tensor], output: Tensor, on_gpu: bool) -> None: ...
    def execute(self) -> None: ...


class Graph(CropMethod):
    """A model, its inputs, and who executes it."""

    runtime: type[Runtime]

    def __init__(self, job: CropJob) -> None:
        super().__init__(job)
        path = write_model(self.model())
        self._executor = self.runtime(path, self.inputs(), tensor(CROPS, self.output()), job.on_gpu)

    def model(self) -> bytes:
        raise TypeError(f"{type(self).__name__} has no graph")

    def inputs(self) -> list[Tensor]:
        raise TypeError(f"{type(self).__name__} has no inputs")

    def kernels(self) -> None:
        self._executor.execute()


class PaddedGraph(Graph):
    """Crops padded on the host and uploaded, then resized and normalised by a graph."""

    why_different = WHY_DIFFERENT

    def model(self) -> bytes:
        return padded_model(self.job.size, self.job.mean, self.job.std)

    def inputs(self) -> list[Tensor]:
        self._batch = PaddedBatch(self.job)
        self._require_room()
        self._staged = Staged(self._batch.values, self.job.on_gpu)
        return [tensor(PADDED, self._staged.device)]

    def _require_room(self) -> None:
        if self.job.on_gpu:
            from octopus.backends.cuda.memory import free_bytes

            values = prod(self._batch.shape)
            # uint8, then float32 as converted, as planes, and as resized crops before the normalisation
            needed = values * (1 + 2 * 4) + self.job.out.nbytes
            require_room(self.name, "GPU", needed, free_bytes())

    def prepare(self) -> None:
        self._batch.fill()
        self._staged.send()


class GridSampleGraph(Graph):
    """Frame and boxes go in, crops come out: the same answer as Octopus."""

    def model(self) -> bytes:
        return grid_sample_model(self.job.size, self.job.mean, self.job.std)

    def inputs(self) -> list[Tensor]:
        self._boxes = staging((self.job.count, 4), np.float32, self.job.on_gpu)
        return [tensor(FRAME, self.job.working_frame), tensor(BOXES, self._boxes.device)]

    def prepare(self) -> None:
        self._boxes.host[...] = self.job.boxes
        self._boxes.send()


def write_model(model: bytes) -> Path:
    """Keep a model in the cache folder under its digest; returns its path."""
    path = cache_dir() / f"{hashlib.sha256(model).hexdigest()[:16]}.onnx"
    if not path.exists() or path.read_bytes() != model:
        part = path.with_suffix(".part")
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(model)
        part.replace(path)
    return path
