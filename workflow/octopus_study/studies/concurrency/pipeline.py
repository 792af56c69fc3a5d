"""A pipeline that runs: its buffers on the device, the stream on which it works, and its results on the host."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus_study.studies.concurrency.device import Device
from octopus_study.studies.concurrency.models import Pipeline, Stage

POISON = -77  # where NaN can't be written


class PlacedPipeline:
    """A pipeline with memory of its own; two that share weights must not run at the same time.

    Parameters
    ----------
    pipeline : Pipeline
        Its weights must be on the device.
    stream : optional
        On which it uploads, computes and downloads; without one, the default stream.
    sides : int
        Buffers for its inputs, so that one can be filled while another is read.
    pageable : bool
        Whether its inputs on the host are in ordinary memory, from which a copy has to wait.
    captured : iterable of str
        Stages that are replayed from a CUDA graph.

    Attributes
    ----------
    answer : ndarray or None
        What the host made of the last results.
    """

    def __init__(
        self,
        device: Device,
        pipeline: Pipeline,
        stream: Any = None,
        *,
        sides: int = 1,
        pageable: bool = False,
        captured: Iterable[str] = (),
    ) -> None:
        self.device, self.pipeline = device, pipeline
        self.stream = device.default_stream() if stream is None else stream
        self.answer: NDArray[Any] | None = None
        self._host = {
            name: tensor if pageable else device.page_locked(tensor)
            for name, tensor in pipeline.inputs.items()
        }
        empty_like = device.torch.empty_like
        self._sides = [
            {name: empty_like(tensor, device=device.name) for name, tensor in pipeline.inputs.items()}
            for _ in range(sides)
        ]
        self._values: dict[str, Any] = {}
        self._results: dict[str, Any] = {}
        self._done = device.event()
        self._captured = set(captured)
        self._graphs: dict[str, Replay] = {}

    def upload(self, side: int = 0, stream: Any = None) -> None:
        """Queue the copy of the inputs into a buffer."""
        with self.device.use(self.stream if stream is None else stream):
            for name, tensor in self._sides[side].items():
                tensor.copy_(self._host[name], non_blocking=True)

    def begin(self, side: int = 0) -> None:
        """Start a run that reads a buffer."""
        self._values = dict(self._sides[side])

    def step(self, stage: Stage) -> None:
        """Queue one model."""
        given = self.tensors(stage.takes)
        # Both are states of the thread: whoever calls from another one would not have them otherwise.
        with self.device.torch.no_grad(), self.device.use(self.stream):
            made = self._replay(stage, given) if stage.name in self._captured else stage.run(*given)
        self._values.update(zip(stage.gives, made, strict=True))

    def tensors(self, names: Iterable[str]) -> tuple[Any, ...]:
        """What the inputs and the stages so far have given."""
        return tuple(self._values[name] for name in names)

    def compute(self, side: int = 0) -> None:
        """Queue all models."""
        self.begin(side)
        for stage in self.pipeline.stages:
            self.step(stage)

    def download(self) -> None:
        """Queue the copy of the results, and a mark behind it."""
        with self.device.use(self.stream):
            for name in self.pipeline.results:
                self._result(name).copy_(self._values[name], non_blocking=True)
            self._done.record()

    def ready(self) -> bool:
        """Whether the results are on the host."""
        return bool(self._done.query())

    def finish(self) -> None:
        """Wait for the results and do the host's part."""
        self._done.synchronize()
        self.answer = self.pipeline.finish({name: tensor.numpy() for name, tensor in self._results.items()})

    def poison(self) -> None:
        """Fill inputs and results with what nobody computes, so that a copy that is left out is seen."""
        inputs = [tensor for side in self._sides for tensor in side.values()]
        for tensor in [*self._results.values(), *inputs]:
            tensor.fill_(float("nan") if tensor.is_floating_point() else POISON)
        self.answer = None

    def results(self) -> dict[str, NDArray[Any]]:
        """Copies of what the last run brought to the host, and of what the host made of it."""
        results = {name: tensor.numpy().copy() for name, tensor in self._results.items()}
        return results | {"answer": np.array(self.answer)}

    def _result(self, name: str) -> Any:
        value, kept = self._values[name], self._results.get(name)
        if kept is None or kept.shape != value.shape:
            on_host = self.device.torch.empty(value.shape, dtype=value.dtype)
            kept = self._results[name] = self.device.page_locked(on_host)
        return kept

    def _replay(self, stage: Stage, given: tuple[Any, ...]) -> tuple[Any, ...]:
        graph = self._graphs.get(stage.name)
        if graph is None:
            graph = self._graphs[stage.name] = Replay(self.device, stage.run, given)
        return graph(given)


def stage_runs(device: Device, pipelines: Iterable[Pipeline]) -> dict[str, Callable[[], None]]:
    """What runs each model by itself, on what the models before it have given."""
    runs: dict[str, Callable[[], None]] = {}
    for pipeline in pipelines:
        placed = PlacedPipeline(device, pipeline)
        placed.upload()
        placed.compute()
        runs |= {stage.name: partial(placed.step, stage) for stage in pipeline.stages}
    device.synchronize()
    return runs


class Replay:
    """A stage in a CUDA graph, with fixed memory for what it takes."""

    def __init__(self, device: Device, run: Callable[..., tuple[Any, ...]], given: tuple[Any, ...]) -> None:
        self._taken = tuple(tensor.clone() for tensor in given)
        self._replay, self._written = device.capture(run, self._taken)

    def __call__(self, given: tuple[Any, ...]) -> tuple[Any, ...]:
        """Replay on other values; a tensor of another shape is an error."""
        for mine, tensor in zip(self._taken, given, strict=True):
            mine.copy_(tensor)
        self._replay()
        return self._written
