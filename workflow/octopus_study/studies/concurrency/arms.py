"""The arms of two pipelines on one GPU, and how those of one process run.

All do the same job: images of both pipelines lie on the host, and at the end the results of both are there. A run says
when each was ready, in milliseconds from the moment at which both images were there. So in `sequential` the second
pipeline's latency holds the first one's time, and the order is a decision.

* `visual-odometry-alone`, `satellite-matching-alone`: one pipeline and nothing else; their times bound all others.
* `sequential`: one stream, visual odometry first.
* `two-streams`: one thread issues the stages of both, each pipeline on a stream of its own. It begins with the
  satellite's first stage, for which the host never waits, where SuperPoint asks the GPU how many keypoints there are.
  For both second stages it waits; so LightGlue, the latency-critical one, comes before EfficientLoFTR.
* `two-threads`: a thread and a stream for each.
* `no-prefetch`, `prefetch`: as `sequential`, with the images in pageable memory; or with those of the next run copied
  from page-locked memory on a stream of their own while this run computes.
* `pipeline`: as `prefetch`, and another thread waits for results and finishes them, so that the second pipeline is
  queued at once behind the first.
* `two-processes`, `two-processes-mps`: each pipeline in a process of its own, the latter as clients of MPS.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus_study.studies.concurrency.models import NAMES, SATELLITE_MATCHING, VISUAL_ODOMETRY, Pipeline, Stage

POISON = -77  # where NaN can't be written
Latencies = dict[str, float]


class Device:
    """What the arms need of the GPU that PyTorch uses; tests have a stand-in."""

    name = "cuda"

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.stream, self.default_stream = torch.cuda.Stream, torch.cuda.default_stream
        self.event, self.synchronize = torch.cuda.Event, torch.cuda.synchronize

    def use(self, stream: Any) -> AbstractContextManager[Any]:
        """Let the work of this thread go to a stream."""
        context: AbstractContextManager[Any] = self.torch.cuda.stream(stream)
        return context

    def page_locked(self, tensor: Any) -> Any:
        """A copy on the host that the GPU reads and writes by itself."""
        return tensor.pin_memory()


class PlacedPipeline:
    """A pipeline with memory of its own on the device; two that share weights must not run at the same time. Its inputs
    have `sides` buffers, so that one can be filled while another is read. From ordinary, `pageable`, memory of the host
    a copy has to wait."""

    def __init__(
        self, device: Device, pipeline: Pipeline, stream: Any = None, sides: int = 1, pageable: bool = False
    ) -> None:
        self.device, self.pipeline = device, pipeline
        self.stream = device.default_stream() if stream is None else stream
        inputs, empty_like = pipeline.inputs, device.torch.empty_like
        self._host = {name: one if pageable else device.page_locked(one) for name, one in inputs.items()}
        self._sides = [
            {name: empty_like(one, device=device.name) for name, one in inputs.items()} for _ in range(sides)
        ]
        self._values: dict[str, Any] = {}
        self._results: dict[str, Any] = {}
        self._answer: NDArray[Any] | None = None  # what the host made of the last results
        self._done = device.event()

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
        taken = tuple(self._values[name] for name in stage.takes)
        # Both are states of the thread: whoever calls from another one would not have them otherwise.
        with self.device.torch.no_grad(), self.device.use(self.stream):
            made = stage.run(*taken)
        self._values.update(zip(stage.gives, made, strict=True))

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
        self._answer = self.pipeline.finish({name: tensor.numpy() for name, tensor in self._results.items()})

    def poison(self) -> None:
        """Fill inputs and results with what no model computes, so that a copy that is left out is seen."""
        inputs = [tensor for side in self._sides for tensor in side.values()]
        for tensor in [*self._results.values(), *inputs]:
            tensor.fill_(float("nan") if tensor.is_floating_point() else POISON)
        self._answer = None

    def results(self) -> dict[str, NDArray[Any]]:
        """Copies of what the last run brought to the host, and of what the host made of it."""
        results = {name: tensor.numpy().copy() for name, tensor in self._results.items()}
        return results | {"answer": np.array(self._answer)}

    def _result(self, name: str) -> Any:
        value, kept = self._values[name], self._results.get(name)
        if kept is None or kept.shape != value.shape:
            on_host = self.device.torch.empty(value.shape, dtype=value.dtype)
            kept = self._results[name] = self.device.page_locked(on_host)
        return kept


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


class InProcess:
    """An arm of one process, ready to run, with pipelines that are on the device."""

    def __init__(self, arm: Arm, device: Device, pipelines: Mapping[str, Pipeline]) -> None:
        self.arm, self.device, self.side, self._started = arm, device, 0, 0
        self.placed = {
            name: PlacedPipeline(
                device, pipelines[name], device.stream() if arm.streams else None,
                2 if arm.ahead else 1, arm.pageable,
            )
            for name in arm.pipelines
        }  # fmt: skip
        self.threads = {name: ThreadPoolExecutor(1, f"model-{name}") for name in arm.threads}
        self._copies, self._copied = device.stream() if arm.ahead else None, device.event()
        self._prime()

    def run(self) -> Latencies:
        """Do the job once; returns when each pipeline was ready."""
        self._started = time.perf_counter_ns()
        if not self.arm.ahead:
            return self.arm.run(self)
        self.copy_next()
        latencies = self.arm.run(self)
        self._copied.synchronize()  # a run is over when the next one's images are there
        self.side = 1 - self.side
        return latencies

    def check(self) -> dict[str, NDArray[Any]]:
        """The results, by pipeline and name, of two runs on poisoned memory: the second uses what the first copied."""
        self.device.synchronize()
        for pipeline in self.placed.values():
            pipeline.poison()
        self._prime()
        self.run()
        self.run()
        self.device.synchronize()
        return {
            f"{name}.{result}": value
            for name, pipeline in self.placed.items()
            for result, value in pipeline.results().items()
        }

    def close(self) -> None:
        """End its threads."""
        for thread in self.threads.values():
            thread.shutdown(cancel_futures=True)

    def elapsed(self) -> float:
        """Milliseconds since the run began."""
        return (time.perf_counter_ns() - self._started) / 1e6

    def whole(self, pipeline: PlacedPipeline) -> float:
        """All of a pipeline, from its images to when it is ready."""
        if not self.arm.ahead:
            pipeline.upload()
        pipeline.compute(self.side)
        pipeline.download()
        return self.finished(pipeline)

    def finished(self, pipeline: PlacedPipeline) -> float:
        """Wait for a pipeline, and say when it is ready."""
        pipeline.finish()
        return self.elapsed()

    def copy_next(self) -> None:
        """Queue the copies of the next run's images."""
        for pipeline in self.placed.values():
            pipeline.upload(1 - self.side, self._copies)
        with self.device.use(self._copies):
            self._copied.record()

    def _prime(self) -> None:
        """Copy what the run before would have copied."""
        if self.arm.ahead:
            for pipeline in self.placed.values():
                pipeline.upload(self.side)
            self.device.synchronize()


def _one_by_one(method: InProcess) -> Latencies:
    return {name: method.whole(pipeline) for name, pipeline in method.placed.items()}


def _two_streams(method: InProcess) -> Latencies:
    for pipeline in method.placed.values():
        pipeline.upload()
        pipeline.begin()
    critical, other = method.placed.values()
    first, second = critical.pipeline.stages, other.pipeline.stages
    for number, (mine, theirs) in enumerate(zip(first, second, strict=True)):
        turn = [(other, theirs), (critical, mine)]
        for pipeline, stage in turn[::-1] if number % 2 else turn:
            pipeline.step(stage)
    waiting, latencies = dict(method.placed), {}
    for pipeline in waiting.values():
        pipeline.download()
    while waiting:
        for name in [name for name, pipeline in waiting.items() if pipeline.ready()]:
            latencies[name] = method.finished(waiting.pop(name))
    return latencies


def _two_threads(method: InProcess) -> Latencies:
    futures = {name: method.threads[name].submit(method.whole, pipeline) for name, pipeline in method.placed.items()}
    return {name: future.result() for name, future in futures.items()}


def _results_behind(method: InProcess) -> Latencies:
    """Queue both, the latency-critical one first; the other thread takes the results."""
    futures = {}
    for name, pipeline in method.placed.items():
        pipeline.compute(method.side)
        pipeline.download()
        futures[name] = method.threads["results"].submit(method.finished, pipeline)
    return {name: future.result() for name, future in futures.items()}


@dataclass(frozen=True)
class Arm:
    """A way to run pipelines."""

    name: str
    run: Callable[[InProcess], Latencies] = _one_by_one
    pipelines: tuple[str, ...] = NAMES
    streams: bool = False  # whether each pipeline has a stream of its own
    threads: tuple[str, ...] = ()
    ahead: bool = False  # whether the next run's images are copied meanwhile
    pageable: bool = False
    processes: str = ""  # where each pipeline has a process of its own: the method of its context's rows


ARMS = {
    arm.name: arm
    for arm in (
        Arm("visual-odometry-alone", pipelines=(VISUAL_ODOMETRY,)),
        Arm("satellite-matching-alone", pipelines=(SATELLITE_MATCHING,)),
        Arm("sequential"),
        Arm("two-streams", _two_streams, streams=True),
        Arm("two-threads", _two_threads, streams=True, threads=NAMES),
        Arm("pipeline", _results_behind, ahead=True, threads=("results",)),
        Arm("prefetch", ahead=True),
        Arm("no-prefetch", pageable=True),
        Arm("two-processes", processes="process"),
        Arm("two-processes-mps", processes="process-mps"),
    )
}
ALONE = {name: arm.pipelines[0] for name, arm in ARMS.items() if len(arm.pipelines) == 1}
