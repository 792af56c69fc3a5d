"""What the GPU did during some runs, as PyTorch's profiler saw it: which kernels and copies, when, on which stream.

The profiler slows the host down, so its times stand for themselves; what they show is who worked beside whom. With it,
CUDA graphs and `cuda.core` in one process, some library frees the same memory twice while the interpreter ends (seen on
an H200 with PyTorch 2.11). So runs are recorded in a process of their own, which is killed behind it.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

KERNEL, UPLOAD = "kernel", "upload"
_US_PER_MS = 1e3


class Work(NamedTuple):
    """A kernel or an upload: its stream, and from when to when, in ms."""

    kind: str
    stream: int
    start: float
    end: float


class Trace(NamedTuple):
    """Shares of time.

    Attributes
    ----------
    kernels : int
        Kernels per run.
    busy : float
        Time in which at least one kernel ran, of the time from the first kernel's start to the last one's end, over
        the runs.
    overlap : float or None
        Time in which kernels of more than one stream ran, of the shortest stream's own kernel time; None with fewer
        than two streams.
    hidden : float or None
        Upload time during which a kernel ran, of all upload time; None without uploads.
    """

    kernels: int
    busy: float
    overlap: float | None
    hidden: float | None


def record(torch: Any, run: Callable[[], object], times: int = 3) -> Trace:
    """Profile some runs, each until the GPU is idle.

    Raises
    ------
    RuntimeError
        The profiler saw no kernel, or doesn't work on this machine.
    """
    activity = torch.profiler.ProfilerActivity
    with torch.profiler.profile(activities=[activity.CUDA]) as profiler:
        for _ in range(times):
            run()
            torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        return summary(works(json.loads(path.read_text(encoding="utf-8"))), times)


def works(trace: dict[str, Any]) -> list[Work]:
    """Kernels and uploads of a trace in Chrome's format."""
    items = []
    for event in trace["traceEvents"]:
        kind = _kind(event)
        if kind:
            start = event["ts"] / _US_PER_MS
            end = start + event["dur"] / _US_PER_MS
            items.append(Work(kind, int(event["args"]["stream"]), start, end))
    return items


def summary(items: Iterable[Work], times: int) -> Trace:
    """Shares of time of what some runs did."""
    items = list(items)
    kernels = [work for work in items if work.kind == KERNEL]
    if not kernels:
        raise RuntimeError("the profiler saw no kernel")
    streams = {
        stream: _union(work for work in kernels if work.stream == stream)
        for stream in {work.stream for work in kernels}
    }
    everything = _union(kernels)
    busy = _length(everything)
    uploads = [work for work in items if work.kind == UPLOAD]
    return Trace(
        kernels=round(len(kernels) / times),
        busy=busy / (everything[-1][1] - everything[0][0]),
        overlap=_overlap(list(streams.values()), busy) if len(streams) > 1 else None,
        hidden=_common(_union(uploads), everything) / _length(_union(uploads)) if uploads else None,
    )


def _kind(event: dict[str, Any]) -> str:
    if event.get("ph") != "X" or "stream" not in event.get("args", {}):
        return ""
    if event.get("cat") == "kernel":
        return KERNEL
    return UPLOAD if event.get("cat") == "gpu_memcpy" and "HtoD" in event.get("name", "") else ""


Spans = list[tuple[float, float]]


def _union(items: Iterable[Work]) -> Spans:
    """Spans in which at least one was under way, in order."""
    spans: Spans = []
    for start, end in sorted((work.start, work.end) for work in items):
        if spans and start <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((start, end))
    return spans


def _length(spans: Spans) -> float:
    return sum(end - start for start, end in spans)


def _common(left: Spans, right: Spans) -> float:
    """Time that lies in both; each in order and without overlaps of its own."""
    total, first, second = 0.0, 0, 0
    while first < len(left) and second < len(right):
        total += max(min(left[first][1], right[second][1]) - max(left[first][0], right[second][0]), 0.0)
        if left[first][1] < right[second][1]:
            first += 1
        else:
            second += 1
    return total


def _overlap(streams: list[Spans], busy: float) -> float:
    """Two streams: their common time. More: what is counted more than once, an upper bound of it."""
    lengths = [_length(spans) for spans in streams]
    shared = _common(*streams) if len(streams) == 2 else sum(lengths) - busy
    return min(shared / min(lengths), 1.0)
