"""What the methods need of a device: streams, events, page-locked memory. A CPU has stand-ins for them, so that the
methods' logic can be tested where there is no GPU."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any


class Cuda:
    """The GPU that PyTorch uses."""

    name = "cuda"
    warm_ups = 3  # libraries load kernels and reserve workspaces before a capture, not in it

    def __init__(self, torch: Any) -> None:
        self.torch = torch

    def stream(self) -> Any:
        """A stream of its own, which doesn't wait for the default stream."""
        return self.torch.cuda.Stream()

    def default_stream(self) -> Any:
        """The stream on which PyTorch works unless told otherwise."""
        return self.torch.cuda.default_stream()

    def use(self, stream: Any) -> AbstractContextManager[Any]:
        """Let the work of this thread go to a stream."""
        context: AbstractContextManager[Any] = self.torch.cuda.stream(stream)
        return context

    def event(self) -> Any:
        """A mark in a stream's work, with its time."""
        return self.torch.cuda.Event(enable_timing=True)

    def page_locked(self, tensor: Any) -> Any:
        """A copy on the host that the GPU reads and writes by itself."""
        return tensor.pin_memory()

    def handle(self, stream: Any) -> int:
        """The stream as CUDA names it."""
        return int(stream.cuda_stream)

    def synchronize(self) -> None:
        """Wait for all work."""
        self.torch.cuda.synchronize()

    def capture(self, run: Callable[..., tuple], tensors: tuple) -> tuple[Callable[[], None], tuple]:
        """Capture `run` on `tensors` in a graph; returns what replays it, and the tensors that it writes."""
        cuda = self.torch.cuda
        aside = cuda.Stream()
        aside.wait_stream(cuda.current_stream())
        with self.torch.no_grad():
            with cuda.stream(aside):
                for _ in range(self.warm_ups):
                    run(*tensors)
            cuda.current_stream().wait_stream(aside)
            graph = cuda.CUDAGraph()
            with cuda.graph(graph):
                written = run(*tensors)
        return graph.replay, written


class Cpu:
    """The host: everything is done at once, in order."""

    name = "cpu"

    def __init__(self, torch: Any) -> None:
        self.torch = torch

    def stream(self) -> Any:
        """Something with an identity."""
        return object()

    def default_stream(self) -> Any:
        """None stands for it."""
        return None

    def use(self, stream: Any) -> AbstractContextManager[Any]:
        """Nothing changes."""
        return nullcontext()

    def event(self) -> Any:
        """What is marked is done already."""
        return _Done()

    def page_locked(self, tensor: Any) -> Any:
        """A copy."""
        return tensor.clone()

    def handle(self, stream: Any) -> int:
        """What tells one from the other."""
        return id(stream)

    def synchronize(self) -> None:
        """Nothing is under way."""

    def capture(self, run: Callable[..., tuple], tensors: tuple) -> tuple[Callable[[], None], tuple]:
        """There are no graphs here: `run` again, into the same tensors."""
        written = run(*tensors)

        def replay() -> None:
            for target, value in zip(written, run(*tensors), strict=True):
                target.copy_(value)

        return replay, written


class _Done:
    def __init__(self) -> None:
        self._at = 0

    def record(self, stream: Any = None) -> None:
        """Nothing is under way, so it is reached now."""
        self._at = time.perf_counter_ns()

    def elapsed_time(self, later: _Done) -> float:
        """Milliseconds from this event to a later one."""
        return (later._at - self._at) / 1e6

    def query(self) -> bool:
        """It is over."""
        return True

    def synchronize(self) -> None:
        """It is over."""


Device = Cuda | Cpu


def device_of(name: str, torch: Any) -> Device:
    """The device of that name."""
    return Cuda(torch) if name == "cuda" else Cpu(torch)
