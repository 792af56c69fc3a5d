"""What a process of the study `concurrency` does: it builds a method, and runs it when it is told to.

`context` starts CUDA and nothing else, so that whoever watches the GPU's free memory sees what a context takes. `load`
brings the models there and runs the method until it is warm. `run` runs it once; `ended` says when each pipeline was
ready, on the clock that all processes of a machine share. `results` stores the arrays of a run on poisoned memory.
`trace` says what the profiler sees of some runs. `capture` tries to hold a stage in a CUDA graph: an attempt that fails
can leave PyTorch unable to go on, so that it is made where nothing else is measured.
"""

from __future__ import annotations

import gc
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from octopus.backends.cpu import set_num_threads
from octopus_study.studies.concurrency import models
from octopus_study.studies.concurrency.device import Device
from octopus_study.studies.concurrency.methods import PipelineMethod, make, pipelines_of
from octopus_study.studies.concurrency.pipeline import PlacedPipeline, Replay
from octopus_study.studies.concurrency.trace import Trace, record

WARM_UPS = 2
MPS_ENABLED = 133  # CU_DEVICE_ATTRIBUTE_MPS_ENABLED, which older bindings don't name


@dataclass(frozen=True)
class Order:
    """What a process is for."""

    method: str  # one of `methods.METHODS`
    frame: str  # an `.npy` of the frame, (H, W, 3) uint8
    seed: int
    threads: int = 1  # of the CPU, for PyTorch


class Answers:
    """Answers commands; its models are on the host until `load`."""

    def __init__(self, order: Order) -> None:
        self.order = order
        set_num_threads(order.threads)
        self.torch, zoo = models.load()
        names, frame = pipelines_of(order.method), np.load(order.frame)
        self.pipelines = models.build(names, frame, order.seed, self.torch, zoo)
        self.device = Device(self.torch)
        self._method: PipelineMethod | None = None

    @property
    def method(self) -> PipelineMethod:
        """What `load` has made."""
        if self._method is None:
            raise RuntimeError("a method is run after it was loaded")
        return self._method

    def context(self) -> bool | None:
        """Start CUDA; whether the driver says that its contexts are shared through MPS."""
        models.load(self.device.name)
        self.torch.zeros(1, device=self.device.name)
        self.device.synchronize()
        return _mps() if self.device.name == "cuda" else None

    def load(self, captured: list[str]) -> None:
        """Bring the models to the device and run until warm."""
        for pipeline in self.pipelines.values():
            pipeline.place(self.device.name)
        self._method = make(self.order.method, self.device, self.pipelines, captured)
        for _ in range(WARM_UPS):
            self._method.run()
        self.device.synchronize()

    def run(self) -> dict[str, int]:
        """One run, without Python's garbage collector: neither do the methods in the parent's process have it."""
        started = time.perf_counter_ns()
        gc.disable()
        try:
            latencies = self.method.run()
        finally:
            gc.enable()
        return {name: started + round(value * 1e6) for name, value in latencies.items()}

    def results(self, path: str) -> None:
        """Store the results as an `.npz`."""
        arrays: dict[str, Any] = self.method.check()
        np.savez(path, **arrays)

    def trace(self, times: int) -> list[Trace]:
        """What the GPU does in each of some runs."""
        return record(self.torch, self.method.run, times)

    def capture(self, stage: str) -> None:
        """Hold a stage in a graph, replay it, and compare."""
        for pipeline in self.pipelines.values():
            if stage in [one.name for one in pipeline.stages]:
                pipeline.place(self.device.name)
                _capture(self.device, PlacedPipeline(self.device, pipeline), stage)
                return
        raise ValueError(f"there is no stage {stage}")


def _capture(device: Device, placed: PlacedPipeline, name: str) -> None:
    """Run the stages before, then the one in question both ways."""
    placed.upload()
    placed.begin()
    for stage in placed.pipeline.stages:
        if stage.name == name:
            break
        placed.step(stage)
    given = placed.tensors(stage.takes)
    with device.torch.no_grad():
        expected = [tensor.clone() for tensor in stage.run(*given)]
        replayed = Replay(device, stage.run, given)(given)
        device.synchronize()
    for mine, theirs in zip(replayed, expected, strict=True):
        if not device.torch.equal(mine, theirs):
            raise RuntimeError("the graph gives other values than the model")


def _mps() -> bool | None:
    """Whether the driver says that contexts here are shared through MPS; None where it doesn't tell."""
    try:
        from cuda.bindings import driver

        attribute = driver.CUdevice_attribute(MPS_ENABLED)
        status, value = driver.cuDeviceGetAttribute(attribute, driver.cuDeviceGet(0)[1])
    except (ImportError, ValueError, RuntimeError, AttributeError):
        return None
    return None if status else bool(value)
