"""The whole way of one batch by each strategy: make the map, bring it to the device, run, bring the result back."""

import numpy as np

from octopus.ragged.blockmap import BlockMap, narrowed
from octopus.ragged.plan import RaggedPlan, image_sides
from octopus_study.baselines.ragged_job import RaggedJob
from octopus_study.baselines.ragged_methods import ON_DEVICE, STRATEGIES, Run, StagedMethod, build_of, table_on_device

METHODS = (
    "octopus",
    "thread-search",
    "block-metadata",
    "block-metadata-published",
    "lookup-published",
    "lookup-vectorised",
)


def names(device: str) -> tuple[str, ...]:
    """All methods, Octopus first; the table is made on the device where there is one."""
    return METHODS if device == "cpu" else (*METHODS, ON_DEVICE)


def make(name: str, job: RaggedJob) -> StagedMethod:
    """One of `names` for a batch."""
    if name == ON_DEVICE:
        return _device_built(job)
    return (_on_cpu if job.device == "cpu" else _on_gpu)(job, name)


def _on_cpu(job: RaggedJob, name: str) -> StagedMethod:
    build = build_of(name, job.offsets)
    plan = RaggedPlan(job.operation, job.batch, strategy=STRATEGIES[name], device="cpu", made=build())

    def kernel() -> None:
        plan.run(job.batch, *job.parameters, out=job.out)

    def total() -> None:
        plan.map = build()
        kernel()

    return StagedMethod(name, build().nbytes, build, kernel, total)


def _on_gpu(job: RaggedJob, name: str) -> StagedMethod:
    from octopus.backends.cuda import stream_of
    from octopus.ragged.plan import Upload

    build, stream = build_of(name, job.offsets), stream_of(None)
    sides = image_sides(job.operation, job.batch)
    made = build()
    engine = job.engine(STRATEGIES[name], made)
    held = Upload(made.arrays | sides, stream)
    landing = np.empty(job.total, job.out_dtype)

    def upload(blockmap: BlockMap = made) -> Upload:
        return Upload(blockmap.arrays | sides, stream)

    def launch(there: Upload) -> None:
        engine.launch(job.values.pointer, job.out.pointer, there.pointers, stream)

    def download() -> None:
        job.out.copy_to_host(landing)

    def total() -> None:
        there = upload(build())
        launch(there)
        job.out.copy_to_host(landing)

    return StagedMethod(name, made.nbytes, build, lambda: launch(held), total, upload, download)


def _device_built(job: RaggedJob) -> StagedMethod:
    """The table is made by a kernel: setup is its launch, upload that of the offsets."""
    from octopus.backends.cuda import stream_of
    from octopus.backends.cuda.memory import DeviceArray
    from octopus.ragged.plan import Upload

    stream, narrow = stream_of(None), narrowed(job.offsets)
    arrays = {"offsets": narrow, **image_sides(job.operation, job.batch)}
    owner = DeviceArray((job.total,), np.int32)
    engine = job.engine("lookup", BlockMap("lookup", narrow))
    landing = np.empty(job.total, job.out_dtype)

    def upload() -> Upload:
        return Upload(arrays, stream)

    def fill(there: Upload) -> Run:
        offsets = DeviceArray(narrow.shape, narrow.dtype, buffer=there.memory, pointer=there.pointers["offsets"])
        return table_on_device(offsets, job.items, job.total, owner)

    def launch(there: Upload) -> None:
        engine.launch(job.values.pointer, job.out.pointer, there.pointers | {"owner": owner.pointer}, stream)

    def download() -> None:
        job.out.copy_to_host(landing)

    def total() -> None:
        there = upload()
        fill(there)()
        launch(there)
        job.out.copy_to_host(landing)

    held = upload()
    setup = fill(held)
    setup()
    nbytes = owner.nbytes + narrow.nbytes
    return StagedMethod(ON_DEVICE, nbytes, setup, lambda: launch(held), total, upload, download)
