"""Study `concurrency`: two pipelines of models on one GPU, run in every way that users try, and crops beside a model.

`makespan` is the time from two pairs of images on the host to both results on the host, in paired blocks over all arms;
`latency_<pipeline>` is, of the same runs, when each result was there. Outputs must be those of the pipelines alone.
That an arm's mechanism was at work is shown, not assumed: streams, threads and processes are counted, MPS clients are
those that its daemon lists, and a trace of the GPU says which kernels and copies ran beside each other.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from octopus_study.measure import Budget, Case, Method, PowerCapKept, Row, run_paired, unavailable
from octopus_study.measure.rows import describe
from octopus_study.peers.availability import Unavailable
from octopus_study.studies.concurrency import crops as concurrency_crops
from octopus_study.studies.concurrency import models as two_models
from octopus_study.studies.concurrency import trace as two_models_trace
from octopus_study.studies.concurrency.arms import ALONE, ARMS, Arm, make
from octopus_study.studies.concurrency.device import Device, device_of
from octopus_study.studies.concurrency.models import SATELLITE_MATCHING, SIZES, Pipeline
from octopus_study.studies.concurrency.rows import (
    ALL,
    BASE,
    BESIDE,
    MAKESPAN,
    PAIR,
    PROCESSES_MPS,
    STUDY,
    ArmClock,
    Contender,
    Recorded,
    arm_gaps,
    crop_gaps,
    gaps,
    latency_gaps,
    same,
)
from octopus_study.studies.concurrency.team import Team
from octopus_study.studies.concurrency.worker import Order
from octopus_study.studies.context import Context

log = logging.getLogger(__name__)

NO_GPU = "two models on one GPU need a GPU"
SIZE = "full"
# Arms whose traces answer something: who runs beside whom, and how much of its time the GPU has work.
TRACED = (*ALONE, BASE, "two-streams", "two-threads", "cuda-graphs", "no-prefetch", "prefetch", "pipeline")
TRACE = ("kernels", "kernel_busy", "kernel_overlap", "copies_hidden")


def rows(context: Context) -> list[Row]:
    """All rows of the study; progress goes to the log."""
    dataset = context.workload.dataset
    case, beside = (
        Case(STUDY, dataset, PAIR, 2),
        Case(STUDY, dataset, BESIDE, context.config.concurrency.crops),
    )
    if context.device != "cuda":
        return gaps(case, beside, NO_GPU)
    try:
        torch, zoo = two_models.load(context.device)
    except Unavailable as error:
        return gaps(case, beside, str(error))
    device = device_of(context.device, torch)
    with tempfile.TemporaryDirectory() as folder:
        return _measured(context, case, beside, device, zoo, Path(folder))


def _measured(
    context: Context, case: Case, beside: Case, device: Device, zoo: Any, folder: Path
) -> list[Row]:
    frame = folder / "frame.npy"
    np.save(frame, context.workload.frame)
    order = Order(BASE, device.name, str(frame), SIZE, context.seed)
    with Team(order, _free, context.config.concurrency.processes) as team:
        pipelines = two_models.build(
            two_models.NAMES, context.workload.frame, SIZES[SIZE], context.seed, device.torch, zoo
        )
        found = team.work(case)
        for pipeline in pipelines.values():
            pipeline.place(device.name)
        context.notes["two_models"] = _notes(device.torch, zoo, team)
        session = _Session(context, case, device, pipelines, team, folder)
        try:
            found += session.rows()
        finally:
            session.close()
    return found + _crops(context, beside, device, pipelines[SATELLITE_MATCHING])


def _free() -> int:
    from octopus_study.measure.cuda import free_memory

    return free_memory()


def _notes(torch: Any, zoo: Any, team: Team) -> dict[str, Any]:
    """What the numbers depend on beside the code."""
    return {
        "weights": "random",
        "torch": str(torch.__version__),
        "transformers": str(zoo.__version__),
        "float32_matmul": torch.get_float32_matmul_precision(),
        "tf32_convolutions": torch.backends.cudnn.allow_tf32,
        "not_in_a_cuda_graph": {stage: why for stage, why in team.captured.items() if why},
        **team.notes,
    }


def _crops(context: Context, beside: Case, device: Device, pipeline: Pipeline) -> list[Row]:
    log.info("crops beside a model")
    missing = context.shortage(beside.n)
    if missing:
        return crop_gaps(beside, missing)
    try:
        return concurrency_crops.rows(context, beside, device, pipeline)
    except Exception as error:  # the models' own rows stand without these
        log.warning("crops beside a model: %s", describe(error))
        return crop_gaps(beside, describe(error))


class _Session:
    """All arms, timed against each other."""

    def __init__(
        self,
        context: Context,
        case: Case,
        device: Device,
        pipelines: Mapping[str, Pipeline],
        team: Team,
        folder: Path,
    ) -> None:
        self.context, self.case, self.device = context, case, device
        self.team, self.folder, self._pipelines = team, folder, pipelines
        self.arms: dict[str, Contender] = {}
        self.answers: dict[str, str] = {}
        self.missing = dict(team.missing)
        self._expected: dict[str, Any] = {}

    def rows(self) -> list[Row]:
        """Times, latencies, proofs and traces."""
        for name in ALL:
            self._add(name)
        found = self._timed()
        return [*found, *self._proofs(), *self._graphs(), *self._traces()]

    def close(self) -> None:
        """End all arms."""
        for arm in self.arms.values():
            arm.close()

    def _add(self, name: str) -> None:
        """Make an arm ready, and check its answer; those alone come first and are what the others must give."""
        if name in self.missing:
            return
        try:
            arm, found = self._ready(name)
            if name in ALONE:
                self._expected |= found
            if not set(found) <= set(self._expected):
                raise Unavailable("the pipelines alone gave no answer to compare its own with")
            self.answers[name] = same(found, self._expected)
            self.arms[name] = arm
        except Exception as error:  # one arm that can't run is a row, the others go on
            self.missing[name] = str(error) if isinstance(error, Unavailable) else describe(error)
            log.warning("%s: %s", name, self.missing[name])

    def _ready(self, name: str) -> tuple[Contender, dict[str, Any]]:
        if name not in ARMS:
            processes = self.team.arms[name]
            return processes, processes.check(self.folder)
        captured = [stage for stage, why in self.team.captured.items() if not why]
        if name == "cuda-graphs" and not captured:
            raise Unavailable(f"no stage can be captured: {self._reasons()}")
        arm = make(name, self.device, self._pipelines, captured)
        arm.run()
        return arm, arm.check()

    def _reasons(self) -> str:
        return "; ".join(f"{stage}: {why}" for stage, why in self.team.captured.items() if why)

    def _timed(self) -> list[Row]:
        watch = PowerCapKept()
        clock = ArmClock(self.device.synchronize, watch)
        recorded = {name: Recorded(arm, clock) for name, arm in self.arms.items()}
        methods = [Method(name, each.run) for name, each in recorded.items()]
        answers = dict(self.answers)
        base = BASE if BASE in self.arms else None
        if base:
            methods.append(Method(f"{base}-again", self.arms[base].run))
            answers[f"{base}-again"] = answers[base]
        found: list[Row] = []
        if methods:
            found = run_paired(
                self.case, MAKESPAN, "ms", methods, clock, self._budget(), answers, self.context.seed, base
            )
            found.append(
                self.case.row(MAKESPAN, clock.layer, "power_capped", "fraction", watch.capped_share())
            )
        return self._with_latencies(self._trusted(found), recorded)

    def _budget(self) -> Budget:
        """As many iterations as the percentiles of a latency need, not only until ratios are known."""
        settings, budget = self.context.config.concurrency, self.context.budget
        return replace(
            budget,
            max_blocks=max(settings.samples, budget.min_blocks),
            max_seconds=settings.max_seconds,
            target_halfwidth=0.0,
        )

    def _trusted(self, found: list[Row]) -> list[Row]:
        """Without those of processes that are no longer clients of MPS."""
        try:
            why = self.team.still_attached()
        except Unavailable as error:
            why = str(error)
        if not why:
            return found
        self.missing[PROCESSES_MPS] = why
        return [row for row in found if row.method != PROCESSES_MPS]

    def _with_latencies(self, found: list[Row], recorded: Mapping[str, Recorded]) -> list[Row]:
        for name, each in recorded.items():
            own = [row for row in found if row.method == name and row.quantity == MAKESPAN]
            failed = next((row.answer for row in own if row.value is None), "")
            if failed:
                found += latency_gaps(self.case, name, failed.removeprefix("unavailable: "))
            else:
                found += each.rows(self.case, own)
        for name, why in self.missing.items():
            found += arm_gaps(self.case, name, why)
        return found

    def _proofs(self) -> list[Row]:
        """What each arm that was timed counts of its mechanism."""
        return [
            self.case.row(name, "deterministic", quantity, "count", count)
            for name, arm in self.arms.items()
            if name not in self.missing
            for quantity, count in arm.proofs().items()
        ]

    def _graphs(self) -> list[Row]:
        """How many stages are replayed, and which are not and why."""
        captured = self.team.captured
        found = (
            []
            if "cuda-graphs" in self.missing
            else [self._count("graphs", len(captured) - len(self._held()))]
        )
        for stage, why in captured.items():
            name = f"captured_{stage}"
            if why:
                found.append(unavailable(self.case, "cuda-graphs", "deterministic", name, "count", why))
            else:
                found.append(self._count(name, 1))
        return found

    def _held(self) -> list[str]:
        return [stage for stage, why in self.team.captured.items() if why]

    def _count(self, quantity: str, value: int) -> Row:
        return self.case.row("cuda-graphs", "deterministic", quantity, "count", value)

    def _traces(self) -> list[Row]:
        """The profiler is last: what it leaves behind slows nothing that is timed."""
        found: list[Row] = []
        for name in TRACED:
            arm = self.arms.get(name)
            if isinstance(arm, Arm):
                found += self._trace(name, arm.run)
        return found

    def _trace(self, name: str, run: Callable[[], object]) -> list[Row]:
        try:
            trace = two_models_trace.record(self.device.torch, run)
        except Exception as error:  # the profiler needs more of a machine than the models do
            why = describe(error)
            return [unavailable(self.case, name, "device", "kernel_busy", "fraction", why)]
        units = ("count", "fraction", "fraction", "fraction")
        return [
            self.case.row(name, "device", quantity, unit, value)
            for quantity, unit, value in zip(TRACE, units, trace, strict=True)
            if value is not None
        ]
