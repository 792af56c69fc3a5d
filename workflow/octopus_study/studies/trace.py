"""What a call asks of the driver, as PyTorch's profiler records it, whichever library asks."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from octopus_study.peers.availability import Unavailable, need_torch

CALLS = 10  # in whose trace waits are counted
GPU_WAITS = "Stream Wait Event"  # one of its streams for another; the host goes on
_MARK = "octopus: calls"


def count_launches(run: Callable[[], object]) -> int:
    """Kernels that PyTorch's profiler sees on the GPU, whoever launches them.

    Raises
    ------
    Unavailable
        There is no PyTorch, or its profiler sees nothing on this machine.
    """
    torch: Any = need_torch("cuda", "peers")
    run()
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        run()
        torch.cuda.synchronize()
    on_gpu = [
        event.name for event in profiler.events() if event.device_type == torch.autograd.DeviceType.CUDA
    ]
    count = sum(not name.startswith(("Memcpy", "Memset")) for name in on_gpu)
    if not count:
        raise Unavailable("the profiler saw no kernel")
    return count


def count_waits(run: Callable[[], object]) -> float:
    """How often the host waits for the GPU in a call: for a stream, an event, or all of its work.

    By CUPTI's records of synchronisation, which know of every wait in the driver.

    Raises
    ------
    Unavailable
        There is no PyTorch, or its profiler doesn't even see the wait behind the calls.
    """
    torch: Any = need_torch("cuda", "peers")
    activities = torch.profiler.ProfilerActivity
    options = torch._C._profiler._ExperimentalConfig(enable_cuda_sync_events=True)
    run()
    torch.cuda.synchronize()
    with torch.profiler.profile(
        activities=[activities.CPU, activities.CUDA], experimental_config=options
    ) as profiler:
        with torch.profiler.record_function(_MARK):
            for _ in range(CALLS):
                run()
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder, "trace.json")
        profiler.export_chrome_trace(str(trace))
        events = json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]
    return waits_in(events) / CALLS


def waits_in(events: list[dict[str, Any]]) -> int:
    """The waits of a trace that began within the calls."""
    waits = [event for event in events if event.get("cat") == "cuda_sync"]
    begun = [event["ts"] for event in waits if event["name"] != GPU_WAITS]
    (calls,) = (e for e in events if e.get("name") == _MARK and e.get("cat") == "user_annotation")
    end = calls["ts"] + calls["dur"]
    if not any(time >= end for time in begun):
        raise Unavailable("the profiler saw no wait")
    return sum(calls["ts"] <= time < end for time in begun)
