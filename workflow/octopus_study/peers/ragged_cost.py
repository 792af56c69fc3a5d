"""The whole way of one batch by each strategy: make the map, bring it to the device, run, bring the result back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from octopus.ragged.blockmap import BlockMap, narrowed
from octopus.ragged.plan import RaggedPlan, image_sides
from octopus_study.peers.ragged_job import RaggedJob
from octopus_study.peers.ragged_maps import ON_DEVICE, STRATEGIES, THRESHOLDS, build_of, table_on_device

METHODS = ("octopus", "thread-search", "block-metadata", "lookup-published", "lookup-vectorised")
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


def methods_for(job: RaggedJob) -> list[CostedMethod]:
    """All methods for a batch, Octopus first; the table is made on the device where there is one."""
    if job.device == "cpu":
        return [_on_cpu(job, name) for name in METHODS]
    return [*(_on_gpu(job, name) for name in METHODS), _device_built(job)]


def _on_cpu(job: RaggedJob, name: str) -> CostedMethod:
    build = build_of(name, job.offsets)
    plan = RaggedPlan(
        job.operation, job.batch, strategy=STRATEGIES[name], threshold=THRESHOLDS.get(name), device="cpu"
    )

    def kernel() -> None:
        plan.run(job.batch, *job.parameters, out=job.out)

    def total() -> None:
        plan.map = build()
        kernel()

    return CostedMethod(name, build().nbytes, build, None, kernel, None, total)


def _on_gpu(job: RaggedJob, name: str) -> CostedMethod:
    from octopus.backends.cuda import stream_of
    from octopus.ragged.cuda import Upload

    build, stream = build_of(name, job.offsets), stream_of(None)
    sides = image_sides(job.operation, job.batch)
    made = build()
    engine = job.engine(STRATEGIES[name], made)
    held = Upload(made.arrays | sides, stream)
    landing = np.empty(job.total, job.out_dtype)

    def upload(found: BlockMap = made) -> Upload:
        return Upload(found.arrays | sides, stream)

    def launch(there: Upload) -> None:
        engine.launch(job.values.pointer, job.out.pointer, there.pointers, stream)

    def total() -> None:
        there = upload(build())
        launch(there)
        job.out.copy_to_host(landing)

    return CostedMethod(
        name, made.nbytes, build, upload, lambda: launch(held), lambda: job.out.copy_to_host(landing), total
    )


def _device_built(job: RaggedJob) -> CostedMethod:
    """The table is made by a kernel: setup is its launch, upload that of the offsets."""
    from octopus.backends.cuda import stream_of
    from octopus.backends.cuda.memory import DeviceArray
    from octopus.ragged.cuda import Upload

    stream, narrow = stream_of(None), narrowed(job.offsets)
    arrays = {"offsets": narrow, **image_sides(job.operation, job.batch)}
    owner = DeviceArray((job.total,), np.int32)
    engine = job.engine("lookup", BlockMap("lookup", narrow))
    held = Upload(arrays, stream)
    landing = np.empty(job.total, job.out_dtype)

    def fill(there: Upload) -> Run:
        offsets = DeviceArray(
            narrow.shape, narrow.dtype, buffer=there.memory, pointer=there.pointers["offsets"]
        )
        return table_on_device(offsets, job.items, job.total, owner)

    def launch(there: Upload) -> None:
        engine.launch(job.values.pointer, job.out.pointer, there.pointers | {"owner": owner.pointer}, stream)

    def total() -> None:
        there = Upload(arrays, stream)
        fill(there)()
        launch(there)
        job.out.copy_to_host(landing)

    setup = fill(held)
    setup()
    return CostedMethod(
        ON_DEVICE, owner.nbytes + narrow.nbytes, setup, lambda: Upload(arrays, stream), lambda: launch(held),
        lambda: job.out.copy_to_host(landing), total,
    )  # fmt: skip
