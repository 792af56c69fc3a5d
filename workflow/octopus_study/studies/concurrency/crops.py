"""Octopus cropping beside a model: does the preparation of the next images delay the model that works on these?

The model is DINOv2, for which the host waits nowhere. It is queued first and the crops behind it on a stream of their
own, so that they begin while it works; `beside` is the share of runs in which they lay within it, on the GPU's own
clock. Against that stand the crops first, on the model's stream.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from octopus import CropPlan
from octopus_study.data.workload import sample_boxes
from octopus_study.measure import Method, PowerCapKept, Row, again, run_paired
from octopus_study.measure.rows import SAME
from octopus_study.peers.job import TOLERANCE_LEVELS
from octopus_study.studies.comparison import Comparison
from octopus_study.studies.concurrency.comparisons import MODEL, TOLERANCE, ToldClock, checked
from octopus_study.studies.concurrency.device import Device
from octopus_study.studies.concurrency.models import Pipeline
from octopus_study.studies.context import Context
from octopus_study.studies.crops import reference_of

CHECKED = 20  # every so many crops are compared with the reference


class Beside:
    """A model and crops, each on a stream, and their times.

    Parameters
    ----------
    pipeline : Pipeline
        Its first stage is the model; its weights are on the device.
    """

    def __init__(self, context: Context, device: Device, pipeline: Pipeline) -> None:
        torch, crop = device.torch, context.config.crop
        self.device, self._stage = device, pipeline.stages[0]
        self._given = tuple(pipeline.inputs[name].to(device.name) for name in self._stage.takes)
        self.boxes = sample_boxes(context.workload.pool, context.config.concurrency.crops, context.seed)
        self._frame = torch.from_numpy(np.array(context.workload.frame)).to(device.name)
        channels = self._frame.shape[2]
        self._out = torch.empty((len(self.boxes), channels, *crop.size), device=device.name)
        # A plan that changes streams waits for its own work on the other: here each stream has its own.
        self._streams = {"first": device.default_stream(), "beside": device.stream()}
        options: dict[str, Any] = {**crop.model_dump(), "device": device.name, "allocate": False}
        self._plans = {place: CropPlan(self._frame, len(self.boxes), **options) for place in self._streams}
        self._events = {name: device.event() for name in ("base", "model", "crops_start", "crops")}
        self._features: Any = None
        self._right: Any = None
        self._within: list[bool] = []
        self.expected = reference_of(context).of(self.boxes[::CHECKED])
        self.tolerance = TOLERANCE_LEVELS / max(crop.std)

    def runs(self, quantity: str) -> dict[str, Callable[[], float]]:
        """What gives the milliseconds of a quantity, by method."""
        if quantity == MODEL:
            return {
                "model-alone": self.model_alone,
                "crops-first": self.crops_first,
                "crops-beside": self.crops_beside,
            }
        return {"crops-alone": self.crops_alone, "crops-beside": self.crops_beside_time}

    def model_alone(self) -> float:
        """Milliseconds until the model's result is there."""
        started = time.perf_counter_ns()
        self._model()
        return self._until("model", started)

    def crops_first(self) -> float:
        """The same behind crops on the model's stream."""
        started = time.perf_counter_ns()
        self._crops("first")
        self._model()
        return self._until("model", started)

    def crops_beside(self) -> float:
        """The same with crops on another stream."""
        started = time.perf_counter_ns()
        self._mark("base", None)
        self._model()
        self._crops("beside")
        elapsed = self._until("model", started)
        self._events["crops"].synchronize()
        self._within.append(self._lay_within())
        return elapsed

    def crops_alone(self) -> float:
        """Milliseconds of boxes' upload and crops, by the GPU's clock."""
        self._crops("beside")
        self._events["crops"].synchronize()
        return self._crops_time()

    def crops_beside_time(self) -> float:
        """The same beside the model."""
        self.crops_beside()
        return self._crops_time()

    def beside(self) -> float:
        """Share of the runs beside the model in which the crops began and ended within its work."""
        return float(np.mean(self._within))

    def answer(self, run: Callable[[], float], model: bool, crops: bool) -> str:
        """Check what a run leaves behind, on poisoned memory."""
        if self._right is None:
            self._model()
            self.device.synchronize()
            self._right = self._features.cpu().numpy()
        self._features = None
        self._out.fill_(float("nan"))
        self.device.synchronize()
        run()
        self.device.synchronize()
        verdicts = []
        if model:
            tolerance = TOLERANCE * float(np.abs(self._right).max())
            verdicts.append(checked(self._features.cpu().numpy(), self._right, tolerance))
        if crops:
            verdicts.append(checked(self._out[::CHECKED].cpu().numpy(), self.expected, self.tolerance))
        return next((verdict for verdict in verdicts if verdict != SAME), SAME)

    def _model(self) -> None:
        with self.device.torch.no_grad():
            (self._features,) = self._stage.run(*self._given)
        self._mark("model", None)

    def _crops(self, place: str) -> None:
        stream = self._streams[place]
        self._mark("crops_start", stream)
        self._plans[place].run(self._frame, self.boxes, out=self._out, stream=stream)
        self._mark("crops", stream)

    def _mark(self, event: str, stream: Any) -> None:
        with self.device.use(self._streams["first"] if stream is None else stream):
            self._events[event].record()

    def _until(self, event: str, started: int) -> float:
        self._events[event].synchronize()
        return (time.perf_counter_ns() - started) / 1e6

    def _crops_time(self) -> float:
        return float(self._events["crops_start"].elapsed_time(self._events["crops"]))

    def _lay_within(self) -> bool:
        base = self._events["base"]
        start, end, model = (
            base.elapsed_time(self._events[name]) for name in ("crops_start", "crops", "model")
        )
        return bool(start >= 0 and end <= model)


def crop_rows(context: Context, compared: list[Comparison], device: Device, pipeline: Pipeline) -> list[Row]:
    """Latency of the model and of the crops, alone and beside each other; the first of each is entered twice."""
    beside = Beside(context, device, pipeline)
    watch = PowerCapKept(context.throttle.rates)
    clock = ToldClock(device.synchronize, watch)
    settings = context.config.concurrency
    budget = context.budget_within(settings.max_seconds)
    budget = replace(budget, max_blocks=max(settings.samples, budget.min_blocks))
    rows: list[Row] = []
    for comparison in compared:
        case, quantity = comparison.case, comparison.quantity
        runs = beside.runs(quantity)
        first, *others = (Method(name, runs[name]) for name in comparison.methods)
        answers = {
            name: beside.answer(runs[name], model=quantity == MODEL, crops="crops" in name)
            for name in comparison.methods
        }
        twice = again(first)
        answers[twice.name] = answers[first.name]
        rows += run_paired(
            case, quantity, "ms", [first, twice, *others], clock, budget, answers, context.seed, first.name
        )
        rows.append(case.row(quantity, clock.layer, "power_capped", "fraction", watch.capped_share()))
    return [*rows, compared[0].case.row("crops-beside", "device", "beside", "fraction", beside.beside())]
