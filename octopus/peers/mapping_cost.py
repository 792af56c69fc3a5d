"""The whole way of one batch by each strategy: make the map, bring it to the device, run, bring the result back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from octopus import blockmap
from octopus.peers.mapping import Arena, build_of, table_on_device
from octopus.raggedplan import RaggedPlan

STRATEGIES = {
    "octopus": "block_search",
    "thread-search": "thread_search",
    "block-metadata": "block_metadata",
    "lookup-published": "lookup",
    "lookup-vectorised": "lookup",
}
ON_DEVICE = "lookup-device"
Run = Callable[[], object]


@dataclass(frozen=True)
class CostedMethod:
    """A method's stages, each a function, and all of them in a row.

    `upload` and `download` are None on a CPU, where nothing is copied.
    """

    name: str
    map_bytes: int
    setup: Run
    upload: Run | None
    kernel: Run
    download: Run | None
    total: Run


def methods_for(arena: Arena) -> list[CostedMethod]:
    """All methods for a batch, Octopus first; the table is made on the device where there is one."""
    if arena.device == "cpu":
        return [_on_cpu(arena, name) for name in STRATEGIES]
    return [*(_on_gpu(arena, name) for name in STRATEGIES), _device_built(arena)]


def _threshold(name: str) -> int | None:
    return blockmap.PUBLISHED_THRESHOLD if name == "block-metadata" else None


def _on_cpu(arena: Arena, name: str) -> CostedMethod:
    build = build_of(name, arena.offsets)
    plan = RaggedPlan(
        arena.operation, arena.batch, strategy=STRATEGIES[name], threshold=_threshold(name), device="cpu"
    )

    def kernel() -> None:
        plan.run(arena.batch, *arena.parameters, out=arena.out)

    def total() -> None:
        plan.map = build()
        kernel()

    return CostedMethod(name, build().nbytes, build, None, kernel, None, total)


def _on_gpu(arena: Arena, name: str) -> CostedMethod:
    from octopus.backends.cuda import stream_of
    from octopus.raggedcuda import CudaRagged, Upload

    build, stream = build_of(name, arena.offsets), stream_of(None)
    sides = _sides(arena)
    made = build()
    engine = CudaRagged(
        arena.operation, STRATEGIES[name], arena.dtype.name, arena.out_dtype.name, made.offsets.dtype.name, arena.total,
        arena.items, blocks=made.blocks or 0, threshold=made.threshold,
    )  # fmt: skip
    held = Upload(made.arrays | sides, stream)
    landing = np.empty(arena.total, arena.out_dtype)

    def upload(found: Any = made) -> Any:
        return Upload(found.arrays | sides, stream)

    def launch(pointers: dict[str, int]) -> None:
        engine.launch(arena.values.pointer, arena.out.pointer, pointers, stream)

    def total() -> None:
        there = upload(build())
        launch(there.pointers)
        arena.out.copy_to_host(landing)

    return CostedMethod(
        name, made.nbytes, build, upload, lambda: launch(held.pointers), lambda: arena.out.copy_to_host(landing), total
    )  # fmt: skip


def _device_built(arena: Arena) -> CostedMethod:
    """The table is made by a kernel: setup is its launch, upload that of the offsets."""
    from octopus.backends.cuda import stream_of
    from octopus.backends.cuda.memory import DeviceArray
    from octopus.raggedcuda import CudaRagged, Upload

    stream, narrow = stream_of(None), blockmap.narrowed(arena.offsets)
    arrays = {"offsets": narrow, **_sides(arena)}
    owner = DeviceArray((arena.total,), np.int32)
    offset_dtype = narrow.dtype.name
    engine = CudaRagged(
        arena.operation,
        "lookup",
        arena.dtype.name,
        arena.out_dtype.name,
        offset_dtype,
        arena.total,
        arena.items,
    )
    held = Upload(arrays, stream)
    landing = np.empty(arena.total, arena.out_dtype)

    def fill(there: Any) -> Run:
        offsets = DeviceArray(
            narrow.shape, narrow.dtype, buffer=there.memory, pointer=there.pointers["offsets"]
        )
        return table_on_device(offsets, arena.items, arena.total, owner)

    def launch(there: Any) -> None:
        engine.launch(
            arena.values.pointer, arena.out.pointer, there.pointers | {"owner": owner.pointer}, stream
        )

    def total() -> None:
        there = Upload(arrays, stream)
        fill(there)()
        launch(there)
        arena.out.copy_to_host(landing)

    setup = fill(held)
    setup()
    return CostedMethod(
        ON_DEVICE, owner.nbytes + narrow.nbytes, setup, lambda: Upload(arrays, stream), lambda: launch(held),
        lambda: arena.out.copy_to_host(landing), total,
    )  # fmt: skip


def _sides(arena: Arena) -> dict[str, np.ndarray]:
    heights, widths = arena.shapes.T.astype(np.int32)
    return {"widths": np.ascontiguousarray(widths), "heights": np.ascontiguousarray(heights)}
