"""What the methods need of a GPU: streams, events, page-locked memory, graphs. Tests have stand-ins for them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any


class Device:
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
        """A mark in a stream's work."""
        return self.torch.cuda.Event()

    def page_locked(self, tensor: Any) -> Any:
        """A copy on the host that the GPU reads and writes by itself."""
        return tensor.pin_memory()

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
