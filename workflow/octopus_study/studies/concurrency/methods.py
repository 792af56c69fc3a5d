"""Methods to run two pipelines on one GPU within one process.

All do the same job: images of both pipelines lie on the host, and at the end the results of both are there.
`run` says when each was ready, in milliseconds from the moment at which both images were there. So in `sequential` the
second pipeline's latency holds the first one's time, and the order is a decision.

* `visual-odometry-alone`, `satellite-matching-alone`: one pipeline and nothing else; their times bound all others.
* `sequential`: one stream, visual odometry first.
* `two-streams`: one thread issues the stages of both, each pipeline on a stream of its own. It begins with the
  satellite's first stage, for which the host never waits, where SuperPoint asks the GPU how many keypoints there are.
  For both second stages it waits; so LightGlue, the latency-critical one, comes before EfficientLoFTR.
* `two-threads`: a thread and a stream for each.
* `cuda-graphs`: as `sequential`, with those stages replayed from CUDA graphs that can be captured.
* `no-prefetch`, `prefetch`: as `sequential`, with the images in pageable memory; or with those of the next run copied
  from page-locked memory on a stream of their own while this run computes.
* `pipeline`: as `prefetch`, and another thread waits for results and finishes them, so that the second pipeline is
  queued at once behind the first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from numpy.typing import NDArray

from octopus_study.studies.concurrency.device import Device
from octopus_study.studies.concurrency.models import NAMES, SATELLITE_MATCHING, VISUAL_ODOMETRY, Pipeline
from octopus_study.studies.concurrency.pipeline import PlacedPipeline

ALONE = {"visual-odometry-alone": VISUAL_ODOMETRY, "satellite-matching-alone": SATELLITE_MATCHING}
Latencies = dict[str, float]


class PipelineMethod:
    """Pipelines and an order to run them in: one after the other, unless a subclass says otherwise."""

    pageable = False
    sides = 1

    def __init__(
        self, device: Device, pipelines: Mapping[str, Pipeline], captured: Iterable[str] = ()
    ) -> None:
        self.device = device
        self._started = 0
        options: dict[str, Any] = {"sides": self.sides, "pageable": self.pageable, "captured": captured}
        self.pipelines = {
            name: PlacedPipeline(device, pipeline, self._stream(), **options)
            for name, pipeline in pipelines.items()
        }

    def run(self) -> Latencies:
        """Do the job once; returns when each pipeline was ready."""
        self.start()
        return {name: self._alone(pipeline) for name, pipeline in self.pipelines.items()}

    def check(self) -> dict[str, NDArray[Any]]:
        """The results, by pipeline and name, of two runs on poisoned memory: the second uses what the first copied."""
        self.device.synchronize()
        for pipeline in self.pipelines.values():
            pipeline.poison()
        self.prime()
        self.run()
        self.run()
        self.device.synchronize()
        return {
            f"{name}.{result}": value
            for name, pipeline in self.pipelines.items()
            for result, value in pipeline.results().items()
        }

    def prime(self) -> None:
        """Do what the run before would have done for this one."""

    def close(self) -> None:
        """End its threads."""

    def start(self) -> None:
        """The images are there."""
        self._started = time.perf_counter_ns()

    def elapsed(self) -> float:
        """Milliseconds since `start`."""
        return (time.perf_counter_ns() - self._started) / 1e6

    def _stream(self) -> Any:
        return None

    def _alone(self, pipeline: PlacedPipeline) -> float:
        pipeline.upload()
        pipeline.compute()
        return self._finished(pipeline)

    def _finished(self, pipeline: PlacedPipeline) -> float:
        pipeline.download()
        pipeline.finish()
        return self.elapsed()


class NoPrefetch(PipelineMethod):
    """From pageable memory."""

    pageable = True


class TwoStreams(PipelineMethod):
    """One thread, two streams."""

    def _stream(self) -> Any:
        return self.device.stream()

    def run(self) -> Latencies:
        self.start()
        for pipeline in self.pipelines.values():
            pipeline.upload()
            pipeline.begin()
        critical, other = self.pipelines.values()
        first, second = critical.pipeline.stages, other.pipeline.stages
        for number, (mine, theirs) in enumerate(zip(first, second, strict=True)):
            turn = [(other, theirs), (critical, mine)]
            for pipeline, stage in turn[::-1] if number % 2 else turn:
                pipeline.step(stage)
        waiting, latencies = dict(self.pipelines), {}
        for pipeline in waiting.values():
            pipeline.download()
        while waiting:
            for name in [name for name, pipeline in waiting.items() if pipeline.ready()]:
                waiting.pop(name).finish()
                latencies[name] = self.elapsed()
        return latencies


class TwoThreads(PipelineMethod):
    """Two threads, two streams."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._threads = {name: ThreadPoolExecutor(1, f"model-{name}") for name in self.pipelines}

    def _stream(self) -> Any:
        return self.device.stream()

    def run(self) -> Latencies:
        self.start()
        futures = {
            name: self._threads[name].submit(self._alone, pipeline)
            for name, pipeline in self.pipelines.items()
        }
        return {name: future.result() for name, future in futures.items()}

    def close(self) -> None:
        for thread in self._threads.values():
            thread.shutdown(cancel_futures=True)


class Prefetch(PipelineMethod):
    """The next images are copied while these are worked on."""

    sides = 2

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._copies = self.device.stream()
        self._copied = self.device.event()
        self._side = 0
        self.prime()

    def prime(self) -> None:
        for pipeline in self.pipelines.values():
            pipeline.upload(self._side)
        self.device.synchronize()

    def run(self) -> Latencies:
        self.start()
        self._copy_next()
        latencies = {name: self._computed(pipeline) for name, pipeline in self.pipelines.items()}
        self._swap()
        return latencies

    def _copy_next(self) -> None:
        for pipeline in self.pipelines.values():
            pipeline.upload(1 - self._side, self._copies)
        with self.device.use(self._copies):
            self._copied.record()

    def _swap(self) -> None:
        """The next run reads what was copied, and a run is over when that is there."""
        self._copied.synchronize()
        self._side = 1 - self._side

    def _computed(self, pipeline: PlacedPipeline) -> float:
        pipeline.compute(self._side)
        return self._finished(pipeline)


class AsyncPipeline(Prefetch):
    """Copies ahead, results behind, in between one model after the other."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._behind = ThreadPoolExecutor(1, "results")

    def run(self) -> Latencies:
        """Queue both, the latency-critical one first; the other thread takes the results."""
        self.start()
        self._copy_next()
        futures = {}
        for name, pipeline in self.pipelines.items():
            pipeline.compute(self._side)
            pipeline.download()
            futures[name] = self._behind.submit(self._taken, pipeline)
        latencies = {name: future.result() for name, future in futures.items()}
        self._swap()
        return latencies

    def close(self) -> None:
        self._behind.shutdown(cancel_futures=True)

    def _taken(self, pipeline: PlacedPipeline) -> float:
        pipeline.finish()
        return self.elapsed()


METHODS: dict[str, Callable[..., PipelineMethod]] = {
    **dict.fromkeys(ALONE, PipelineMethod),
    "sequential": PipelineMethod,
    "two-streams": TwoStreams,
    "two-threads": TwoThreads,
    "cuda-graphs": PipelineMethod,
    "pipeline": AsyncPipeline,
    "prefetch": Prefetch,
    "no-prefetch": NoPrefetch,
}


def pipelines_of(name: str) -> tuple[str, ...]:
    """The pipelines that a method of one process runs."""
    return (ALONE[name],) if name in ALONE else NAMES


def make(
    name: str, device: Device, pipelines: Mapping[str, Pipeline], captured: Iterable[str] = ()
) -> PipelineMethod:
    """The method of that name.

    Parameters
    ----------
    name : str
        One of `METHODS`.
    pipelines : mapping
        At least those that it runs, on the device.
    captured : iterable of str
        Stages that CUDA graphs can hold; only `cuda-graphs` looks at it.
    """
    chosen = {pipeline: pipelines[pipeline] for pipeline in pipelines_of(name)}
    return METHODS[name](device, chosen, captured if name == "cuda-graphs" else ())
