"""Study `mapping`: how does a thread find the item of its element, and what does each strategy cost?

Strategies against each other on images of three spreads of size, for operations that wait for memory and operations
that compute, with the kernels alone (cold L2 on a GPU), and the memory of what they need; what it takes to build and
upload that is in the study `total_cost`. All elements of all strategies' results are compared bit for bit, a sample of
items with the float64 reference.
"""

import logging
from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from octopus.kernels.operations import result_dtype
from octopus.ragged import blockmap, tuner
from octopus_study.baselines.availability import free_bytes, make_all
from octopus_study.baselines.ragged_job import RaggedJob, is_copy_like
from octopus_study.baselines.ragged_methods import build_of
from octopus_study.data.ragged import mapping_shapes
from octopus_study.measure import Case, Method, Row
from octopus_study.measure.statistics import MIN_BLOCKS
from octopus_study.studies.comparison import BASE, Comparison, Part, compare
from octopus_study.studies.context import Context

log = logging.getLogger(__name__)

REAL = "visdrone"
# method -> strategy, threshold, one element per thread
METHODS: dict[str, tuple[str, int | None, bool]] = {
    BASE: ("block_search", None, False),
    "thread-search": ("thread_search", None, False),
    "thread-search-scalar": ("thread_search", None, True),
    "lookup": ("lookup", None, False),
    "lookup-scalar": ("lookup", None, True),
    "block-metadata": ("block_metadata", blockmap.PUBLISHED_THRESHOLD, False),
    "block-metadata-scalar": ("block_metadata", blockmap.PUBLISHED_THRESHOLD, True),
    "block-metadata-tuned": ("block_metadata", blockmap.DEFAULT_THRESHOLD, False),
}
# On a CPU a search alone differs by how many elements it is for; owners are read one by one.
GPU_ONLY = ("lookup-scalar", "block-metadata-scalar")
MAPS = ("octopus", "thread-search", "block-metadata", "block-metadata-tuned", "lookup")
COPY = "copy-bound"
USES = 1000  # of a batch for which the tuner chooses: the kernels alone are compared here
# The method whose kernel a strategy of the tuner is.
CHOSEN = {
    "block_search": BASE,
    "thread_search": "thread-search",
    "block_metadata": "block-metadata-tuned",
    "lookup": "lookup",
}
# Elements of the largest batch on a CPU by some operations, and by the others.
CPU_ELEMENTS, CPU_ELEMENTS_ALL, CPU_LARGE = 30_000_000, 6_000_000, ("multiply", "blur3x3")
SHARE_OF_FREE = 0.6  # of the free memory that one case may take


def plan(context: Context) -> Iterator[Part]:
    """Per batch its maps, its operations and what the tuner chooses; behind them what the tuner's probes take."""
    for distribution in context.config.mapping.distributions:
        for count in _counts(context):
            yield from _batch(context, distribution, count)
    yield Part(_probes)


def _choices(case: Case, shapes: NDArray[np.int64], context: Context, part: Part) -> Iterator[Row]:
    """Which strategy the tuner takes for a batch that stays in place: the method of a row is its choice."""
    for block in range(MIN_BLOCKS):
        tuning = tuner.tune(context.device, sizes=shapes, uses=USES, keep=False)
        for group, strategy in tuning.choice.items():
            quantity = f"choice_{group.removesuffix('_small')}"
            yield case.row(CHOSEN[strategy], "host", quantity, "count", 1, block=block)


def _probes(context: Context, part: Part) -> Iterator[Row]:
    case = context.case("tuner", tuner.ELEMENTS[context.device], dataset="synthetic")
    for block in range(MIN_BLOCKS):
        probe = tuner.tune(context.device, keep=False).probe_ms
        yield case.row("tuner", "host", "tuner_probe", "ms", probe, block=block)


def _counts(context: Context) -> list[int]:
    settings = context.config.mapping
    return settings.items if context.device == "cuda" else settings.items_cpu


def _batch(context: Context, distribution: str, count: int) -> Iterator[Part]:
    shapes = mapping_shapes(distribution, count, context.workload.pool, context.seed)
    dataset = context.workload.dataset if distribution == REAL else "synthetic"
    offsets = blockmap.offsets_of(shapes)
    case = context.case(distribution, count, dataset=dataset)
    log.info("%s: %d items, %.1f million elements", distribution, count, offsets[-1] / 1e6)
    yield Part(partial(_maps, case, offsets))
    yield Part(partial(_choices, case, shapes))
    settings = context.config.mapping
    operations = [(operation, "float32") for operation in settings.operations]
    if count == _counts(context)[0]:
        operations += [(operation, "uint8") for operation in settings.uint8_operations]
    for operation, dtype in operations:
        suffix = "" if dtype == "float32" else f"-{dtype}"
        named = case._replace(workload=f"{distribution}-{operation.replace('_', '-')}{suffix}")
        names = [name for name in METHODS if context.device == "cuda" or name not in GPU_ONLY]
        names += [COPY] * is_copy_like(operation, dtype)
        comparison = Comparison(named, "kernel", context.kernel_layer, tuple(names))
        yield Part(partial(_operation, operation, shapes, dtype), (comparison,))


def _maps(case: Case, offsets: NDArray[np.int64], context: Context, part: Part) -> Iterator[Row]:
    """Elements of a batch, and bytes of all that each strategy's kernel reads to find owners."""
    yield case.row("batch", "deterministic", "elements", "count", int(offsets[-1]))
    for name in MAPS:
        # A table may be larger than the memory, so it isn't built.
        table = 4 * int(offsets[-1]) if name == "lookup" else 0
        built = blockmap.narrowed(offsets).nbytes if table else build_of(name, offsets)().nbytes
        yield case.row(name, "deterministic", "map_bytes", "bytes", table + built)


def _operation(operation: str, shapes: NDArray[np.int64], dtype: str, context: Context, part: Part) -> Iterator[Row]:
    (comparison,) = part.comparisons
    strategies = [name for name in comparison.methods if name != COPY]
    reason = _shortage(context, operation, shapes, dtype)
    if reason:
        yield from comparison.gaps(reason, strategies)
        return
    job = RaggedJob(operation, shapes, dtype, context.device, context.seed)
    # A strategy that has no room is a row.
    runs, missing = make_all({name: partial(job.kernel, *METHODS[name]) for name in strategies})
    methods = [job.method(name, run) for name, run in runs.items()]
    if COPY in comparison.methods:
        methods.append(Method(COPY, job.copy_bound()))
    budget = context.budget_within(context.config.mapping.max_seconds)
    yield from compare(context, comparison, methods, job.check(methods), missing, budget=budget)


def _shortage(context: Context, operation: str, shapes: NDArray[np.int64], dtype: str) -> str:
    total = int(shapes.prod(axis=1).sum())
    size = np.dtype(dtype).itemsize
    # Values, result and a copy of it for the comparison, the lookup table.
    needed = total * (size + 2 * np.dtype(result_dtype(operation, dtype)).itemsize + 4)
    on_gpu = context.device == "cuda"
    allowed = SHARE_OF_FREE * free_bytes(context.device)
    if needed > allowed:
        return f"{total:,} elements need {needed:,} bytes, {int(allowed):,} of the free memory may be taken"
    limit = CPU_ELEMENTS if operation in CPU_LARGE else CPU_ELEMENTS_ALL
    if not on_gpu and total > limit:
        return f"{total:,} elements of {operation} would take a CPU too long, the limit is {limit:,}"
    return ""
