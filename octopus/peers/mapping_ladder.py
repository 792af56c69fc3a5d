"""Baselines that nobody should be measured against alone: one thread per image, and a linear search per pixel."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from octopus import blockmap
from octopus.peers.mapping import Arena

THREADS = 256
BLOCKS_PER_SM = 8


def baselines(arena: Arena) -> dict[str, Callable[[], object]]:
    """The naive kernels for a batch of uint8 images and 3x3 means, by the names of their rows."""
    make = _on_cpu if arena.device == "cpu" else _on_gpu
    return {
        "one-thread-per-image": make(arena, "image_per_thread"),
        "linear-search": make(arena, "linear_search"),
    }


def _on_cpu(arena: Arena, name: str) -> Callable[[], object]:
    from octopus.kernels.cpu import ragged_ladder

    heights, widths = np.ascontiguousarray(arena.shapes.T)
    kernel = getattr(ragged_ladder, name)
    return lambda: kernel(arena.values, arena.out, arena.offsets, widths, heights)


def _on_gpu(arena: Arena, name: str) -> Callable[[], object]:
    from cuda.core import LaunchConfig, launch

    from octopus.backends.cuda import compile, stream_of
    from octopus.backends.cuda.device import current
    from octopus.backends.cuda.memory import upload
    from octopus.kernels.cuda.ragged_probes import signature

    narrow = blockmap.narrowed(arena.offsets)
    kernel = compile.load(
        f"ragged-probe-{name}-{narrow.dtype.name}", lambda: signature(name, narrow.dtype.name)
    )
    heights, widths = (upload(np.ascontiguousarray(side.astype(np.int32))) for side in arena.shapes.T)
    offsets = upload(narrow)
    grid = -(-arena.items // THREADS)
    if name == "linear_search":
        grid = BLOCKS_PER_SM * current().properties.multiprocessor_count
    config, stream = LaunchConfig(grid=grid, block=THREADS), stream_of(None)
    return lambda: launch(
        stream, config, kernel, arena.values.pointer, arena.out.pointer, offsets.pointer, np.int32(arena.items),
        widths.pointer, heights.pointer,
    )  # fmt: skip
