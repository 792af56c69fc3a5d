"""Study `concurrency`: two pipelines of models on one GPU, run in every way that users try.

`makespan` is the time from two pairs of images on the host to both results on the host, in paired blocks over all
methods; `latency_<pipeline>` is, of the same runs, when each result was there. Outputs must be those of the pipelines
alone. That a method's mechanism was at work is shown, not assumed: MPS clients are those that its daemon lists, and a
trace of the GPU says which kernels and copies ran beside each other.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from octopus_study.measure import Budget, Method, PowerCapKept, Row, run_paired, unavailable
from octopus_study.measure.rows import describe
from octopus_study.peers.availability import Unavailable
from octopus_study.status import NO_ANSWER, Answer
from octopus_study.studies.comparison import Comparison, Part
from octopus_study.studies.concurrency import models
from octopus_study.studies.concurrency.comparisons import (
    ALL,
    BASE,
    MAKESPAN,
    PROCESSES_MPS,
    STAGE_TIME,
    BlockClock,
    Recorded,
    Runnable,
    comparisons,
    gaps,
    same,
)
from octopus_study.studies.concurrency.device import Device
from octopus_study.studies.concurrency.methods import ALONE, METHODS, make
from octopus_study.studies.concurrency.models import Pipeline
from octopus_study.studies.concurrency.pipeline import stage_runs
from octopus_study.studies.concurrency.pool import Pool
from octopus_study.studies.concurrency.worker import Order
from octopus_study.studies.context import Context

log = logging.getLogger(__name__)

NO_GPU = "two models on one GPU need a GPU"
GRAPHS = "cuda-graphs"
# Who runs beside whom, and how much of its time the GPU has work.
TRACE = {
    "kernels": "count",
    "kernel_busy": "fraction",
    "kernel_overlap": "fraction",
    "copies_hidden": "fraction",
    "kernel_time": "ms",
    "kernel_filled": "fraction",
}


def plan(context: Context) -> list[Part]:
    """One part, since one pool of processes serves all: two models by every method."""
    return [Part(_measure, tuple(comparisons(context.workload.dataset)))]


def _measure(context: Context, part: Part) -> Iterator[Row]:
    if context.device != "cuda":
        raise Unavailable(NO_GPU)
    torch, zoo = models.load(context.device)
    with tempfile.TemporaryDirectory() as folder:
        yield from _rows(context, list(part.comparisons), Device(torch), zoo, Path(folder))


def _rows(
    context: Context, compared: list[Comparison], device: Device, zoo: Any, folder: Path
) -> Iterator[Row]:
    frame = folder / "frame.npy"
    np.save(frame, context.workload.frame)
    order = Order(BASE, str(frame), context.seed)
    stages = next(comparison for comparison in compared if comparison.quantity == STAGE_TIME)
    times = [comparison for comparison in compared if comparison.layer == "host" and comparison != stages]
    memory = [comparison for comparison in compared if comparison.layer != "host"]
    with Pool(order, _free, context.config.concurrency.processes) as pool:
        pipelines = models.build(models.NAMES, context.workload.frame, context.seed, device.torch, zoo)
        yield from pool.work(memory)
        for pipeline in pipelines.values():
            pipeline.place(device.name)
        context.notes["two_models"] = _notes(device.torch, zoo, pool)
        session = _Session(context, times, device, pipelines, pool, folder)
        try:
            yield from session.rows()
        finally:
            session.close()
        yield from _stage_rows(context, stages, device, pipelines.values())


def _stage_rows(
    context: Context, compared: Comparison, device: Device, pipelines: Iterable[Pipeline]
) -> list[Row]:
    try:
        methods = [Method(name, run) for name, run in stage_runs(device, pipelines).items()]
        budget = replace(context.budget, max_blocks=context.budget.min_blocks)
        clock = BlockClock(device.synchronize, context.throttle)
        where = (compared.case, compared.quantity, compared.unit)
        return run_paired(*where, methods, clock, budget, NO_ANSWER, context.seed)
    except Exception as error:  # what was timed before stands without these
        log.warning("each model by itself: %s", describe(error))
        return compared.gaps(describe(error))


def _free() -> int:
    from octopus_study.measure.cuda import free_memory

    return free_memory()


def _notes(torch: Any, zoo: Any, pool: Pool) -> dict[str, Any]:
    return {
        "weights": "random",
        "torch": str(torch.__version__),
        "transformers": str(zoo.__version__),
        "float32_matmul": torch.get_float32_matmul_precision(),
        "tf32_convolutions": torch.backends.cudnn.allow_tf32,
        "not_in_a_cuda_graph": {stage: reason for stage, reason in pool.captured.items() if reason},
        **pool.notes,
    }


class _Session:
    """All methods, timed against each other."""

    def __init__(
        self,
        context: Context,
        times: list[Comparison],
        device: Device,
        pipelines: Mapping[str, Pipeline],
        pool: Pool,
        folder: Path,
    ) -> None:
        self.context, self.times, self.case, self.device = context, times, times[0].case, device
        self.pool, self.folder, self._pipelines = pool, folder, pipelines
        self.methods: dict[str, Runnable] = {}
        self.answers: dict[str, Answer] = {}
        self.missing = dict(pool.missing)
        self._expected: dict[str, Any] = {}

    def rows(self) -> list[Row]:
        """Times, latencies and traces."""
        for name in ALL:
            self._add(name)
        return [*self._with_latencies(self._timed()), *self._traces()]

    def close(self) -> None:
        """End all methods."""
        for method in self.methods.values():
            method.close()

    def _add(self, name: str) -> None:
        """Make a method ready, and check its answer; those alone come first and are what the others must give."""
        if name in self.missing:
            return
        try:
            method, results = self._ready(name)
            if name in ALONE:
                self._expected |= results
            if not set(results) <= set(self._expected):
                raise Unavailable("the pipelines alone gave no answer to compare its own with")
            self.answers[name] = same(results, self._expected)
            self.methods[name] = method
        except Exception as error:  # one method that can't run is a row, the others go on
            self.missing[name] = describe(error)
            log.warning("%s: %s", name, self.missing[name])

    def _ready(self, name: str) -> tuple[Runnable, dict[str, Any]]:
        if name not in METHODS:
            processes = self.pool.methods[name]
            return processes, processes.check(self.folder)
        captured = [stage for stage, reason in self.pool.captured.items() if not reason]
        if name == GRAPHS and not captured:
            reasons = "; ".join(f"{stage}: {reason}" for stage, reason in self.pool.captured.items())
            raise Unavailable(f"no stage can be captured: {reasons}")
        method = make(name, self.device, self._pipelines, captured)
        method.run()
        return method, method.check()

    def _timed(self) -> tuple[list[Row], dict[str, Recorded]]:
        """The makespans, and the methods with their latencies."""
        watch = PowerCapKept(self.context.throttle.rates)
        clock = BlockClock(self.device.synchronize, watch)
        recorded = {name: Recorded(method, clock) for name, method in self.methods.items()}
        methods = [Method(name, method.run) for name, method in recorded.items()]
        answers, base = dict(self.answers), BASE if BASE in self.methods else None
        if base:
            methods.append(Method(f"{base}-again", self.methods[base].run))
            answers[f"{base}-again"] = answers[base]
        if not methods:
            return [], recorded
        rows = run_paired(
            self.case, MAKESPAN, "ms", methods, clock, self._budget(), answers, self.context.seed, base
        )
        capped = self.case.row(MAKESPAN, clock.layer, "power_capped", "fraction", watch.capped_share())
        return self._trusted([*rows, capped]), recorded

    def _budget(self) -> Budget:
        """As many iterations as the percentiles of a latency need, not only until ratios are known."""
        settings, budget = self.context.config.concurrency, self.context.budget
        return replace(
            budget,
            max_blocks=max(settings.samples, budget.min_blocks),
            max_seconds=settings.max_seconds,
            target_halfwidth=0.0,
        )

    def _trusted(self, rows: list[Row]) -> list[Row]:
        """Without those of processes that are no longer clients of MPS."""
        try:
            reason = self.pool.still_attached()
        except Unavailable as error:
            reason = str(error)
        if not reason:
            return rows
        self.missing[PROCESSES_MPS] = reason
        return [row for row in rows if row.method != PROCESSES_MPS]

    def _with_latencies(self, timed: tuple[list[Row], dict[str, Recorded]]) -> list[Row]:
        rows, recorded = timed
        for name, method in recorded.items():
            own = [row for row in rows if row.method == name and row.quantity == MAKESPAN]
            failed = next((row.reason for row in own if row.value is None), "")
            if failed:
                rows += gaps(self.times[1:], name, failed)
            else:
                rows += method.rows(self.case, own)
        return [*rows, *(row for comparison in self.times for row in comparison.missing(self.missing))]

    def _traces(self) -> Iterator[Row]:
        """What the pool's processes saw of those that were timed; the rows' block is the run."""
        for name, traces in self.pool.traces.items():
            if name not in self.methods:
                continue
            if isinstance(traces, str):
                yield unavailable(self.case, name, "device", "kernel_busy", "fraction", traces)
                continue
            for run, trace in enumerate(traces):
                for (quantity, unit), value in zip(TRACE.items(), trace, strict=True):
                    if value is not None:
                        yield self.case.row(name, "device", quantity, unit, value, block=run)
