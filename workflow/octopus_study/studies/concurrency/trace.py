"""What the GPU did in each of some runs, as PyTorch's profiler saw it: which kernels and copies, when, on which stream.

The profiler slows the host down, so its times stand for themselves; what they show is who worked beside whom. With it,
CUDA graphs (an earlier arm) and `cuda.core` in one process, some library frees the same memory twice while the
interpreter ends (seen on an H200 with PyTorch 2.11). So runs are recorded in a process that is killed behind it.
"""

import json
import tempfile
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

KERNEL, UPLOAD = "kernel", "upload"
PAUSE = 0.05  # seconds between runs: longer than the GPU ever waits within one
# The same run starts the same kernels; parts that differ by more were not cut between runs.
UNEVEN = 1.5
_US_PER_MS = 1e3


class Work(NamedTuple):
    """A kernel or an upload: its stream, and from when to when, in ms; of a kernel also its thread blocks."""

    kind: str
    stream: int
    start: float
    end: float
    blocks: int = 0


class Trace(NamedTuple):
    """What one run's rows say of the GPU."""

    # Time in which at least one kernel ran, of the time from the first kernel's start to the last one's end
    kernel_busy: float
    # Time in which kernels of more than one stream ran, of the shortest stream's own kernel time; None with fewer than
    # two streams
    kernel_overlap: float | None
    # Upload time during which a kernel ran, of all upload time; None without uploads
    copies_hidden: float | None
    kernel_time: float  # milliseconds in which at least one kernel ran
    # Of these, the share in which one ran that has a thread block for every multiprocessor: a kernel with fewer leaves
    # multiprocessors idle. None where the profiler doesn't tell the blocks.
    kernel_filled: float | None


UNITS = {name: "ms" if name == "kernel_time" else "fraction" for name in Trace._fields}


def record(torch: Any, run: Callable[[], object], times: int) -> list[Trace]:
    """Profile some runs, each until the GPU is idle."""
    activity = torch.profiler.ProfilerActivity
    with torch.profiler.profile(activities=[activity.CUDA]) as profiler:
        for _ in range(times):
            run()
            torch.cuda.synchronize()
            time.sleep(PAUSE)
    processors = torch.cuda.get_device_properties(0).multi_processor_count
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        items = works(json.loads(path.read_text(encoding="utf-8")))
    return [summary(part, processors) for part in runs_of(items, times)]


def works(trace: dict[str, Any]) -> list[Work]:
    """Kernels and uploads of a trace in Chrome's format."""
    items = []
    for event in trace["traceEvents"]:
        if kind := _kind(event):
            start, end = event["ts"] / _US_PER_MS, (event["ts"] + event["dur"]) / _US_PER_MS
            blocks = prod(event["args"].get("grid", (0,)))
            items.append(Work(kind, int(event["args"]["stream"]), start, end, blocks))
    return items


def runs_of(items: Iterable[Work], times: int) -> list[list[Work]]:
    """Cut what some runs did into runs: at the longest pauses, which lie between them."""
    items = sorted(items, key=lambda work: work.start)
    spans = _union(items)
    longest = sorted(range(1, len(spans)), key=lambda place: spans[place - 1][1] - spans[place][0])
    starts = sorted(spans[place][0] for place in longest[: times - 1])
    parts: list[list[Work]] = [[] for _ in range(len(starts) + 1)]
    for work in items:
        parts[bisect_right(starts, work.start)].append(work)
    counts = [sum(work.kind == KERNEL for work in part) for part in parts]
    if not any(counts):
        raise RuntimeError("the profiler saw no kernel")
    if len(parts) != times or max(counts) > UNEVEN * min(counts):
        raise RuntimeError(f"{times} runs can't be told apart in the trace: kernels by part {counts}")
    return parts


def summary(items: Iterable[Work], processors: int) -> Trace:
    """Shares of time of what one run did on a GPU with so many multiprocessors."""
    items = list(items)
    kernels = [work for work in items if work.kind == KERNEL]
    if not kernels:
        raise RuntimeError("the profiler saw no kernel")
    streams = [
        _length(work for work in kernels if work.stream == stream) for stream in {work.stream for work in kernels}
    ]
    uploads = [work for work in items if work.kind == UPLOAD]
    busy, uploading = _length(kernels), _length(uploads)
    # What lies in both is what is counted twice; with more than two streams that is an upper bound.
    shared = min((sum(streams) - busy) / min(streams), 1.0) if len(streams) > 1 else None
    hidden = (uploading + busy - _length([*uploads, *kernels])) / uploading if uploads else None
    filling = _length(work for work in kernels if work.blocks >= processors)
    spans = _union(kernels)
    return Trace(
        kernel_busy=busy / (spans[-1][1] - spans[0][0]),
        kernel_overlap=shared,
        copies_hidden=hidden,
        kernel_time=busy,
        kernel_filled=filling / busy if all(work.blocks for work in kernels) else None,
    )


def _kind(event: dict[str, Any]) -> str:
    if event.get("ph") != "X" or "stream" not in event.get("args", {}):
        return ""
    if event.get("cat") == "kernel":
        return KERNEL
    return UPLOAD if event.get("cat") == "gpu_memcpy" and "HtoD" in event.get("name", "") else ""


def _union(items: Iterable[Work]) -> list[tuple[float, float]]:
    """Spans in which at least one was under way, in order."""
    spans: list[tuple[float, float]] = []
    for start, end in sorted((work.start, work.end) for work in items):
        if spans and start <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((start, end))
    return spans


def _length(items: Iterable[Work]) -> float:
    """Time in which at least one was under way."""
    return sum(end - start for start, end in _union(items))
