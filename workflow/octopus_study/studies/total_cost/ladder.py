"""The ladder of unfair baselines, shown as what it is: against these anything looks fast.

One thread per image, and a linear search by every thread, beside Octopus; and one block per image, which is fair until
one image is much larger than the others.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from octopus.arrays.checks import INT32_MAX
from octopus.ragged import blockmap
from octopus.ragged.plan import image_sides
from octopus_study.baselines.ragged_job import RaggedJob
from octopus_study.measure import Case, Row
from octopus_study.studies.comparison import BASE, Comparison, Part, compare
from octopus_study.studies.context import Context

SECONDS = 1.0  # once there is the least number of blocks
GIVE_UP_SECONDS = 60.0  # without it; one thread per image takes seconds per run
KERNELS = {"one-thread-per-image": "image_per_thread", "linear-search": "linear_search"}
# Elements per block of block metadata: with no limit every image is one block.
THRESHOLDS = {"block-metadata": blockmap.PUBLISHED_THRESHOLD, "block-per-image": INT32_MAX}
# The mixes on which what is slow because of one large image is compared with what isn't.
LADDERS = {"photos-500": (*KERNELS, "block-per-image"), "photos-500-8k": tuple(THRESHOLDS)}
THREADS = 256
BLOCKS_PER_SM = 8


def ladder_part(context: Context, case: Case, shapes: NDArray[np.int64], methods: tuple[str, ...]) -> Part:
    """Kernel times of Octopus and `methods` on uint8 images and 3x3 means, on a GPU."""
    case = case._replace(workload=f"{case.workload}-ladder", n=len(shapes))
    comparison = Comparison(case, "kernel", context.kernel_layer, (BASE, *methods))

    def measure(context: Context, part: Part) -> Iterator[Row]:
        job = RaggedJob("blur3x3", shapes, "uint8", context.device, context.seed)
        rungs = [job.method(BASE, job.kernel("block_search"))]
        rungs += [job.method(name, _kernel(job, name)) for name in methods]
        budget = replace(context.budget_within(SECONDS), give_up_seconds=GIVE_UP_SECONDS)
        yield from compare(context, comparison, rungs, job.check(rungs), budget=budget)
        yield part.case.row("batch", "deterministic", "elements", "count", job.total)

    return Part(measure, (comparison,))


def _kernel(job: RaggedJob, method: str) -> Callable[[], object]:
    if method in THRESHOLDS:
        return job.kernel("block_metadata", THRESHOLDS[method])
    from cuda.core import LaunchConfig, launch

    from octopus.backends.cuda import compile, stream_of
    from octopus.backends.cuda.device import current
    from octopus.backends.cuda.memory import upload
    from octopus_study.kernels.cuda import FOLDER
    from octopus_study.kernels.cuda.ragged_probes import kernel_of

    name, narrow = KERNELS[method], blockmap.narrowed(job.offsets)
    kernel = compile.load(
        f"ragged-probe-{name}-{narrow.dtype.name}", lambda: kernel_of(name, narrow.dtype.name), FOLDER
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
