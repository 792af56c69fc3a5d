"""Study `concurrency`: two pipelines of models on one GPU, run in every way that users try; and two networks, of which
ONNX Runtime runs one or both.

`makespan` is the time from two pairs of images on the host to both results on the host, in paired blocks over all arms;
`latency_<pipeline>` is, of the same runs, when each result was there. Outputs must be those of the pipelines alone.
That an arm's mechanism was at work is shown, not assumed: MPS clients are those that its daemon lists, and a trace of
the GPU says which kernels and copies ran beside each other.
"""

import logging
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from octopus.errors import InputError
from octopus_study.baselines.availability import Unavailable
from octopus_study.measure import Case, HostClock, Method, PowerCapKept, Row, again, check_answers, run_paired
from octopus_study.measure.recorded import BlockClock, Recorded
from octopus_study.measure.rows import describe
from octopus_study.status import NO_ANSWER, SAME, Answer, different
from octopus_study.studies.comparison import Comparison, Part, compare
from octopus_study.studies.concurrency import models, sessions
from octopus_study.studies.concurrency.arms import ALONE, ARMS, Device, InProcess, stage_runs
from octopus_study.studies.concurrency.models import NAMES, STAGES, Pipeline
from octopus_study.studies.concurrency.processes import PROCESSES_MPS, Order, Pool
from octopus_study.studies.context import Context

log = logging.getLogger(__name__)

STUDY, BASE = "concurrency", "sequential"
NO_GPU = "two models on one GPU need a GPU"
# All arms run the same kernels on the same weights and images, so that the bits are the same; less is asked, since a
# library may add up in another order where it finds another amount of memory.
TOLERANCE = 1e-4
PAIR_TOLERANCE = 1e-3  # each session of ONNX Runtime chooses its convolutions' algorithms anew, by their times
Answers = Mapping[str, NDArray[Any]]


def comparisons(dataset: str) -> Iterator[Comparison]:
    """Times and memory of two models by all arms, and each model's own time."""
    case = Case(STUDY, dataset, "two-models", 2)
    yield Comparison(case, "makespan", "host", tuple(ARMS))
    for pipeline in NAMES:
        arms = tuple(name for name, arm in ARMS.items() if pipeline in arm.pipelines)
        yield Comparison(case, f"latency_{pipeline}", "host", arms)
    yield Comparison(case, "stage_time", "host", STAGES)
    yield Comparison(case, "device_delta", "memory", tuple(ARMS), "bytes")
    contexts = tuple(arm.processes for arm in ARMS.values() if arm.processes)
    yield Comparison(case, "process_context", "memory", contexts, "bytes")


def plan(context: Context) -> list[Part]:
    """Two models by every arm, one part, since one pool of processes serves all; and each pair of networks."""
    dataset = context.workload.dataset
    pairs = (
        Comparison(Case(STUDY, dataset, name, 2), "makespan", "host", sessions.WAYS[name]) for name in sessions.PAIRS
    )
    return [Part(_measure, tuple(comparisons(dataset))), *(Part(_measure_pair, (pair,)) for pair in pairs)]


def _measure_pair(context: Context, part: Part) -> list[Row]:
    if context.device != "cuda":
        raise Unavailable(NO_GPU)
    return timed_pair(context, part.comparisons[0])


def timed_pair(context: Context, compared: Comparison, scale: int = 1) -> list[Row]:
    """Makespans of two networks by every way; `scale` makes their images smaller, for a look at all of it on a CPU."""
    on_gpu, settings = context.device == "cuda", context.config.concurrency
    share = sessions.Share(compared.case.workload, (), context.workload.frame, context.seed, on_gpu, scale)
    made, missing = dict[str, Runnable](), dict[str, str]()
    with ExitStack() as stack:
        makers = sessions.makers(share, settings.processes, stack)
        answers = _checked(makers, sessions.ALONE, made, missing, PAIR_TOLERANCE)
        clock = HostClock(throttle=PowerCapKept() if on_gpu else context.throttle, warm=True)
        methods, budget = (
            [Method(name, made[name].run) for name in answers],
            context.budget_within(settings.max_seconds),
        )
        return compare(context, compared, methods, answers, missing, clock=clock, budget=budget, base=BASE)


def _measure(context: Context, part: Part) -> Iterator[Row]:
    if context.device != "cuda":
        raise Unavailable(NO_GPU)
    from octopus_study.measure.cuda import free_memory

    torch, zoo = models.load(context.device)
    device, frame = Device(torch), context.workload.frame
    order = Order(BASE, frame, context.seed)
    makespan, *latencies, stages, memory, contexts = part.comparisons
    with Pool(order, free_memory, context.config.concurrency.processes) as pool:
        pipelines = models.build(NAMES, frame, context.seed, torch, zoo)
        yield from pool.work([memory, contexts])
        for pipeline in pipelines.values():
            pipeline.place(device.name)
        context.notes["two_models"] = {
            "weights": "random",
            "torch": str(torch.__version__),
            "transformers": str(zoo.__version__),
            "float32_matmul": torch.get_float32_matmul_precision(),
            "tf32_convolutions": torch.backends.cudnn.allow_tf32,
            **pool.notes,
        }
        yield from _timed(context, [makespan, *latencies], device, pipelines, pool)
        yield from _stage_rows(context, stages, device, pipelines.values())


def _stage_rows(context: Context, compared: Comparison, device: Device, pipelines: Iterable[Pipeline]) -> list[Row]:
    try:
        methods = [Method(name, run) for name, run in stage_runs(device, pipelines).items()]
        budget = replace(context.budget, max_blocks=context.budget.min_blocks)
        clock = BlockClock(device.synchronize, context.throttle)
        where = (compared.case, compared.quantity, compared.unit)
        return run_paired(*where, methods, clock, budget, NO_ANSWER, context.seed)
    except Exception as error:  # what was timed before stands without these
        log.warning("each model by itself: %s", describe(error))
        return compared.gaps(describe(error))


class Runnable(Protocol):
    """An arm, in this process or in two others."""

    def run(self) -> dict[str, float]: ...
    def check(self) -> dict[str, NDArray[Any]]: ...
    def close(self) -> None: ...


def _timed(
    context: Context, times: list[Comparison], device: Device, pipelines: Mapping[str, Pipeline], pool: Pool
) -> list[Row]:
    """Makespans and latencies of all arms, timed against each other."""
    missing = dict(pool.missing)
    methods: dict[str, Runnable] = {}
    makers = {
        name: partial(pool.methods.__getitem__, name) if arm.processes else partial(InProcess, arm, device, pipelines)
        for name, arm in ARMS.items()
        if name not in missing
    }
    try:
        answers = _checked(makers, ALONE, methods, missing)
        rows = _paired(context, times[0], device, {name: methods[name] for name in answers}, answers)
        lost = pool.still_attached() if PROCESSES_MPS in answers else ""
    finally:
        for method in methods.values():
            method.close()
    if lost:
        missing[PROCESSES_MPS] = lost
        rows = [row for row in rows if row.method != PROCESSES_MPS]
    return [*rows, *(row for comparison in times for row in comparison.missing(missing))]


def _checked(
    makers: Mapping[str, Callable[[], Runnable]],
    alone: Container[str],
    made: dict[str, Runnable],
    missing: dict[str, str],
    part: float = TOLERANCE,
) -> dict[str, Answer]:
    """Make every way and run it; its answer must be that of those alone, which come first, within `part` of it."""
    answers: dict[str, Answer] = {}
    expected: dict[str, NDArray[Any]] = {}
    for name, make in makers.items():
        try:
            made[name] = make()
            made[name].run()
            results = made[name].check()
            if name in alone:
                expected |= results
            if not set(results) <= set(expected):
                raise Unavailable("what runs alone gave no answer to compare its own with")
            answers[name] = same(results, expected, part)
        except Exception as error:  # one way that can't run is a row, the others go on
            missing[name] = describe(error)
            log.warning("%s: %s", name, missing[name])
    return answers


def _paired(
    context: Context, makespan: Comparison, device: Device, runnable: Mapping[str, Runnable], answers: dict[str, Answer]
) -> list[Row]:
    """The makespans in paired blocks, and the latencies of the same runs."""
    if not runnable:
        return []
    clock = BlockClock(device.synchronize, PowerCapKept())
    latencies = {name: {pipeline: f"latency_{pipeline}" for pipeline in ARMS[name].pipelines} for name in runnable}
    recorded = {name: Recorded(method.run, clock, latencies[name]) for name, method in runnable.items()}
    methods = {name: Method(name, method.run) for name, method in recorded.items()}
    base = BASE if BASE in methods else None
    entered = list(methods.values())
    if base:
        entered.append(replace(again(methods[base]), run=runnable[base].run))
        answers = {**answers, entered[-1].name: answers[base]}
    settings, budget = context.config.concurrency, context.budget
    budget = replace(  # as many iterations as the median of a latency needs, not only until ratios are known
        budget,
        max_blocks=max(settings.samples, budget.min_blocks),
        max_seconds=settings.max_seconds,
        target_halfwidth=0.0,
    )
    where = (makespan.case, makespan.quantity, makespan.unit)
    rows = run_paired(*where, entered, clock, budget, answers, context.seed, base)
    return [*rows, *(row for name, method in recorded.items() for row in method.rows(name, rows))]


def same(results: Answers, expected: Answers, part: float = TOLERANCE) -> Answer:
    """The answer of an arm whose arrays must be those of `expected` with the same names."""
    for name, array in results.items():
        reference = expected[name]
        exact = reference.dtype.kind not in "fc"
        tolerance = 0.0 if exact else part * float(np.abs(reference).max(initial=0.0))
        try:
            method = Method("array", lambda: None, lambda array=array: array, tolerance)
            verdict = check_answers([method], reference)["array"]
        except InputError as error:  # one that can't be judged is different
            verdict = different(describe(error))
        if verdict != SAME:
            return Answer(verdict.status, f"{name}: {verdict.reason}", verdict.error)
    return SAME
