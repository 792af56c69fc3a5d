"""The kernels that a call launches, as PyTorch's profiler sees them, whichever library launches them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from octopus_study.baselines.availability import Unavailable, need_torch


def count_launches(run: Callable[[], object]) -> int:
    """Kernels that PyTorch's profiler sees on the GPU, whoever launches them.

    Raises
    ------
    Unavailable
        There is no PyTorch, or its profiler sees nothing on this machine.
    """
    torch: Any = need_torch("cuda", "baselines")
    run()
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        run()
        torch.cuda.synchronize()
    on_gpu = [event.name for event in profiler.events() if event.device_type == torch.autograd.DeviceType.CUDA]
    count = sum(not name.startswith(("Memcpy", "Memset")) for name in on_gpu)
    if not count:
        raise Unavailable("the profiler saw no kernel")
    return count
