"""Study `mapping`: how does a thread find the item of its element, and what does each way cost?

Strategies against each other on images of three spreads of size, for operations that wait for memory and operations
that compute, with the kernels alone (cold L2 on a GPU), what must be built and uploaded for them, and their memory. All
elements of all strategies' results are compared bit for bit, a sample of items with the float64 reference.
"""

from __future__ import annotations

import logging

import numpy as np
from numpy.typing import NDArray

from octopus.backends import cpu
from octopus.backends.cuda import memory
from octopus.kernels.operations import result_dtype
from octopus.ragged import blockmap
from octopus_study.data.ragged import mapping_shapes
from octopus_study.measure import Case, Row, unavailable
from octopus_study.measure.rows import describe
from octopus_study.peers.ragged_job import RaggedJob
from octopus_study.studies.contest import BASE, Entry, compare
from octopus_study.studies.context import Context
from octopus_study.studies.machine_limits import bandwidth
from octopus_study.studies.mapping.maps import map_rows
from octopus_study.studies.mapping.tuner import tuner_rows

log = logging.getLogger(__name__)

STUDY = "mapping"
REAL = "visdrone"
# method -> strategy, threshold, one element per thread
METHODS: dict[str, tuple[str, int | None, bool]] = {
    BASE: ("block_search", None, False),
    "thread-search": ("thread_search", None, False),
    "thread-search-scalar": ("thread_search", None, True),
    "lookup": ("lookup", None, False),
    "lookup-scalar": ("lookup", None, True),
    "block-metadata": ("block_metadata", blockmap.PUBLISHED_THRESHOLD, False),
    "block-metadata-tuned": ("block_metadata", blockmap.DEFAULT_THRESHOLD, False),
}
GPU_ONLY = ("lookup-scalar",)  # on a CPU every way reads its owners one by one
COPY = "copy-bound"
SHARE_OF_FREE = 0.6  # of the free memory that one case may take


def rows(context: Context) -> list[Row]:
    """All rows of the study; progress goes to the log."""
    found = bandwidth(context)
    settings = context.config.mapping
    for distribution in settings.distributions:
        for count in _counts(context):
            found += _batch(context, distribution, count)
    found += tuner_rows(context, found)
    return found


def _counts(context: Context) -> list[int]:
    settings = context.config.mapping
    return settings.items if context.device == "cuda" else settings.items_cpu


def _batch(context: Context, distribution: str, count: int) -> list[Row]:
    shapes = mapping_shapes(distribution, count, context.workload.pool, context.seed)
    dataset = context.workload.dataset if distribution == REAL else "synthetic"
    offsets = blockmap.offsets_of(shapes)
    case = Case(STUDY, dataset, distribution, count)
    log.info("%s: %d items, %.1f million elements", distribution, count, offsets[-1] / 1e6)
    found = [case.row("batch", "deterministic", "elements", "count", int(offsets[-1]))]
    found += map_rows(context, case, offsets)
    for operation in context.config.mapping.operations:
        found += _operation(context, case, operation, shapes, "float32")
    if count == _counts(context)[0]:
        for operation in context.config.mapping.uint8_operations:
            found += _operation(context, case, operation, shapes, "uint8")
    return found


def _operation(
    context: Context, case: Case, operation: str, shapes: NDArray[np.int64], dtype: str
) -> list[Row]:
    suffix = "" if dtype == "float32" else f"-{dtype}"
    case = case._replace(workload=f"{case.workload}-{operation.replace('_', '-')}{suffix}")
    names = [name for name in METHODS if context.device == "cuda" or name not in GPU_ONLY]
    clock = context.kernel_clocks()[0]
    missing = _shortage(context, operation, shapes, dtype)
    if missing:
        return [unavailable(case, name, clock.layer, "kernel", "ms", missing) for name in names]
    job = RaggedJob(operation, shapes, dtype, context.device, context.seed)
    names += [COPY] * job.has_copy_bound
    entries, answers, failed = _entries(job, names)
    budget = context.budget_within(context.config.mapping.max_seconds)
    rows = compare(context, case, "kernel", entries, clock, answers, budget) if entries else []
    gaps = [unavailable(case, name, clock.layer, "kernel", "ms", why) for name, why in failed.items()]
    return [*rows, *gaps]


def _entries(job: RaggedJob, names: list[str]) -> tuple[list[Entry], dict[str, str], dict[str, str]]:
    """The contenders that could be made, their answers, and why the others could not."""
    entries: list[Entry] = []
    answers: dict[str, str] = {}
    failed: dict[str, str] = {}
    kept = None
    for name in names:
        if name == COPY:
            entries.append(Entry(COPY, job.copy_bound()))
            answers[COPY] = "n/a"
            continue
        try:
            run = job.kernel(*METHODS[name])
        except Exception as error:  # a strategy that has no room is a row, never the end of the study
            failed[name] = describe(error)
            continue
        answers[name], kept = job.check(run, kept)
        entries.append(Entry(name, run))
    return entries, answers, failed


def _shortage(context: Context, operation: str, shapes: NDArray[np.int64], dtype: str) -> str:
    """Why a case is left out, or an empty text."""
    total = int(shapes.prod(axis=1).sum())
    size = np.dtype(dtype).itemsize
    # Values, result and a copy of it for the comparison, the lookup table.
    needed = total * (size + 2 * np.dtype(result_dtype(operation, dtype)).itemsize + 4)
    on_gpu = context.device == "cuda"
    free = memory.free_bytes() if on_gpu else cpu.free_bytes()
    if needed > SHARE_OF_FREE * free:
        allowed = int(SHARE_OF_FREE * free)
        return f"{total:,} elements need {needed:,} bytes, {allowed:,} of the free memory may be taken"
    limits = context.config.mapping
    main = operation in limits.operations_large_cpu
    limit = limits.elements_cpu if main else limits.elements_cpu_all
    if not on_gpu and total > limit:
        return f"{total:,} elements of {operation} would take a CPU too long, the limit is {limit:,}"
    return ""
