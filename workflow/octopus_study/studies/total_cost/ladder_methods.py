"""Baselines that nobody should be measured against alone: one thread per image, and a linear search per pixel."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from octopus.ragged import blockmap
from octopus.ragged.plan import image_sides
from octopus_study.peers.ragged_job import RaggedJob

THREADS = 256
BLOCKS_PER_SM = 8


def baselines(job: RaggedJob) -> dict[str, Callable[[], object]]:
    """The naive kernels for a batch of uint8 images and 3x3 means, by the names of their rows."""
    make = _on_cpu if job.device == "cpu" else _on_gpu
    return {
        "one-thread-per-image": make(job, "image_per_thread"),
        "linear-search": make(job, "linear_search"),
    }


def _on_cpu(job: RaggedJob, name: str) -> Callable[[], object]:
    from octopus_study.kernels.cpu import ragged_ladder

    heights, widths = np.ascontiguousarray(job.shapes.T)
    kernel = getattr(ragged_ladder, name)
    return lambda: kernel(job.values, job.out, job.offsets, widths, heights)


def _on_gpu(job: RaggedJob, name: str) -> Callable[[], object]:
    from cuda.core import LaunchConfig, launch

    from octopus.backends.cuda import compile, stream_of
    from octopus.backends.cuda.device import current
    from octopus.backends.cuda.memory import upload
    from octopus_study.kernels.cuda import FOLDER
    from octopus_study.kernels.cuda.ragged_probes import signature

    narrow = blockmap.narrowed(job.offsets)
    kernel = compile.load(
        f"ragged-probe-{name}-{narrow.dtype.name}", lambda: signature(name, narrow.dtype.name), FOLDER
    )
    sides = {side: upload(array) for side, array in image_sides(job.operation, job.batch).items()}
    offsets = upload(narrow)
    grid = -(-job.items // THREADS)
    if name == "linear_search":
        grid = BLOCKS_PER_SM * current().properties.multiprocessor_count
    config, stream = LaunchConfig(grid=grid, block=THREADS), stream_of(None)
    return lambda: launch(
        stream, config, kernel, job.values.pointer, job.out.pointer, offsets.pointer, np.int32(job.items),
        sides["widths"].pointer, sides["heights"].pointer,
    )  # fmt: skip
