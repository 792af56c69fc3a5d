"""Capture queued work as a CUDA graph, and launch it again as one piece."""

import weakref
from collections.abc import Callable
from typing import Any

from octopus.backends.cuda.device import driver
from octopus.backends.cuda.memory import check


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
