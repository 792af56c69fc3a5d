"""What the machine's memory allows, for studies that set times beside it."""

from __future__ import annotations

from octopus.backends import cpu
from octopus.backends.cuda import memory as cuda_memory
from octopus_study.measure import Row
from octopus_study.measure.bandwidth import MIB, bandwidth_rows
from octopus_study.studies.context import Context


def bandwidth(context: Context) -> list[Row]:
    """Write, read and copy bandwidth with buffers of many times the cache, within a quarter of the free memory."""
    on_gpu = context.device == "cuda"
    free = cuda_memory.free_bytes() if on_gpu else cpu.free_bytes()
    nbytes = min(1024 * MIB if on_gpu else 256 * MIB, free // 4 // MIB * MIB)
    return bandwidth_rows(
        context.study, context.workload.dataset, nbytes, context.device, context.clock(context.kernel_layers[0]),
        context.budget, context.seed,
    )  # fmt: skip
