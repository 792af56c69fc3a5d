"""Clocks, probes and graphs for a CUDA device: event times with a cold L2 cache, empty launches, free memory.

A device time: the L2 is rewritten, a waiting kernel gives the host a head start, so that the device never waits for the
next launch, and events before and after the method's work give the time on the device. What submission costs the host
is a matter of the layer `host`.
"""

import weakref
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from octopus.backends.cuda import compile, stream_of
from octopus.backends.cuda.device import current, driver
from octopus.backends.cuda.memory import allocate, check, free_bytes

HEAD_START_US = 300
MIN_FLUSH_BYTES = 1 << 24

__all__ = ["CudaEventClock", "Graph", "LaunchProbe", "free_memory", "l2_bytes", "probe_kernel", "synchronize"]


def synchronize() -> None:
    """Wait for the device."""
    current().sync()


def l2_bytes() -> int:
    """Size of the L2 cache."""
    return int(current().properties.l2_cache_size)


def free_memory() -> int:
    """Free device memory in bytes, after deferred frees are done."""
    synchronize()
    try:
        from numba import cuda

        cuda.current_context().deallocations.clear()
    except ImportError:  # without Numba nothing is deferred
        pass
    return free_bytes()


def probe_kernel(name: str) -> Any:
    """A compiled kernel of `octopus_study.kernels.cuda.probes`."""

    from octopus_study.kernels.cuda import FOLDER

    def build() -> Callable:
        from octopus_study.kernels.cuda import probes

        return probes.KERNELS[name]

    return compile.load(f"probe-{name}", build, FOLDER)


class CudaEventClock:
    """Time between two events on the default stream, before which a buffer of twice the L2's size is rewritten."""

    layer = "device"

    def __init__(self, throttle: Callable[[], str | None] | None = None) -> None:
        from cuda.core import EventOptions

        self.throttle = throttle
        self.watches_throttling = bool(getattr(throttle, "readable", throttle is not None))
        device = current()
        self._stream = stream_of(None)
        self._events = [device.create_event(EventOptions(timing_enabled=True)) for _ in range(2)]
        self._wait = LaunchProbe("wait", np.int32(HEAD_START_US))
        self._writes = 0

    @cached_property
    def _flush(self) -> Any:
        return allocate(max(2 * l2_bytes(), MIN_FLUSH_BYTES))

    def time(self, run: Callable[[], object]) -> float:
        """Milliseconds on the device for what `run` queues on the default stream."""
        start, stop = self._events
        self._writes += 1
        self._flush.fill(self._writes % 256, stream=self._stream)
        self._wait()
        self._stream.record(start)
        run()
        self._stream.record(stop)
        stop.sync()
        return float(stop - start)

    def settle(self) -> None:
        """Wait for what is queued."""
        synchronize()

    def throttled(self) -> str | None:
        """Ask the watcher that the clock was made with."""
        return self.throttle() if self.throttle else None


class LaunchProbe:
    """Launches one thread of a kernel of `octopus_study.kernels.cuda.probes` through `cuda.core`; integers among the
    arguments are `np.int32`."""

    def __init__(self, name: str, *arguments: Any) -> None:
        from cuda.core import LaunchConfig, launch

        self._launch = launch
        self._config = LaunchConfig(grid=1, block=1)
        self._kernel = probe_kernel(name)
        self._stream = stream_of(None)
        self._arguments = arguments

    def __call__(self) -> None:
        """Queue one launch."""
        self._launch(self._stream, self._config, self._kernel, *self._arguments)


class Graph:
    """Work that is queued by one call of the driver; the memory that it names must outlive the graph. `work` queues all
    of it once on `stream`, which can't be the default one; nothing is done yet."""

    def __init__(self, stream: Any, work: Callable[[], object]) -> None:
        api = driver()
        # The stricter modes end a capture with an error when Python frees memory of the GPU at that moment.
        mode = api.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        check(api.cuStreamBeginCapture(stream.handle, mode))
        try:
            work()
        except BaseException:
            status, graph = api.cuStreamEndCapture(stream.handle)
            if not status:
                api.cuGraphDestroy(graph)
            raise
        graph = check(api.cuStreamEndCapture(stream.handle))[0]
        try:
            self._executable = check(api.cuGraphInstantiate(graph, 0))[0]
        finally:
            api.cuGraphDestroy(graph)
        # At the end of the process the driver frees it; by then its library may be gone.
        weakref.finalize(self, api.cuGraphExecDestroy, self._executable).atexit = False

    def launch(self, stream: Any) -> None:
        """Queue the work on a stream (of cuda.core), which may be the default one."""
        check(driver().cuGraphLaunch(self._executable, stream.handle))
