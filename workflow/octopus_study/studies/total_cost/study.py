"""Study `total_cost`: setup, upload, kernel and download of one batch of images, and what reuse changes.

The published comparison leaves the setup of both, of the table and of block metadata, to loops on the host. Here both
are also made as a good engineer would make them: the table by one vectorised call and by a kernel on the device, block
metadata by compiled code, so that the answer doesn't hang on a slow baseline, nor on a slow method of the source.
The whole way is timed end to end, beside its stages. The images lie where they are processed.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from octopus_study.baselines.ragged_job import RaggedJob
from octopus_study.baselines.ragged_methods import stage
from octopus_study.data.ragged import photo_shapes
from octopus_study.measure import Case, Row
from octopus_study.status import NO_ANSWER
from octopus_study.studies.comparison import Comparison, Part, compare
from octopus_study.studies.context import Context
from octopus_study.studies.total_cost.ladder import LADDERS, ladder_part
from octopus_study.studies.total_cost.methods import make, names

KERNELS = {"light": "blur3x3", "heavy": "blur5x5_sobel"}
FIRST_KERNEL = "light"
MIXES_CPU = ("photos-500",)
SAME_TABLE = "lookup-vectorised"  # to upload it takes what the published one takes
DOWNLOADING = ("octopus", "lookup-published")  # enough to see that the result's way back is the same for all


def plan(context: Context) -> Iterator[Part]:
    """A part for each mix and kernel: stages on the host, the whole way, and on a GPU the kernel by itself."""
    settings = context.config.total_cost
    on_gpu = context.device == "cuda"
    for mix in settings.mixes if on_gpu else MIXES_CPU:
        shapes = photo_shapes(mix, context.seed, settings.long_side)
        for kernel in settings.kernels if on_gpu else (FIRST_KERNEL,):
            case = context.case(f"{mix}-{kernel}", len(shapes), dataset="synthetic")
            comparisons = tuple(_comparisons(context, case, kernel))
            yield Part(partial(_measure, KERNELS[kernel], shapes), comparisons)
            if mix in LADDERS and kernel == FIRST_KERNEL and settings.ladder and on_gpu:
                yield ladder_part(context, case, shapes, LADDERS[mix])


def _comparisons(context: Context, case: Case, kernel: str) -> Iterator[Comparison]:
    """Setup and copies are those of the mix, whatever the kernel: measured once."""
    everyone = names(context.device)
    uploading = tuple(name for name in everyone if name != SAME_TABLE)
    stages = {"setup": everyone, "upload": uploading, "kernel": everyone, "download": DOWNLOADING}
    if context.device == "cpu":  # where nothing is copied
        del stages["upload"], stages["download"]
    for quantity in stages if kernel == FIRST_KERNEL else ("kernel",):
        yield Comparison(case, quantity, "host", stages[quantity])
    yield Comparison(case, "total", "host", everyone)
    if context.device == "cuda":
        yield Comparison(case, "kernel", context.kernel_layer, everyone)


def _measure(operation: str, shapes: NDArray[np.int64], context: Context, part: Part) -> Iterator[Row]:
    job = RaggedJob(operation, shapes, "uint8", context.device, context.seed)
    yield part.case.row("batch", "deterministic", "elements", "count", job.total)
    methods = [make(name, job) for name in names(context.device)]
    answers = job.check([job.method(method.name, method.total) for method in methods])
    for method in methods:
        yield part.case.row(method.name, "deterministic", "map_bytes", "bytes", method.bytes)
    budget = context.budget_within(context.config.total_cost.max_seconds)
    for comparison in part.comparisons:
        chosen = [method for method in methods if method.name in comparison.methods]
        staged = comparison.layer == "host" and comparison.quantity != "total"
        verdicts = NO_ANSWER if staged else answers
        timed = stage(chosen, comparison.quantity)
        yield from compare(context, comparison, timed, verdicts, budget=budget)
