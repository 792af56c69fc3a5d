"""One batch of the arena in its layers, with every method that can take part."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from octopus.arrays.views import ArrayView, view
from octopus.backends.cuda.device import driver
from octopus.backends.cuda.memory import check
from octopus.errors import InputError
from octopus_study.baselines.availability import make_all, require_room
from octopus_study.baselines.fused import ImageEdge
from octopus_study.baselines.job import CropJob
from octopus_study.baselines.method import ON_THE_HOST, CropMethod
from octopus_study.baselines.opencv import OpenCv
from octopus_study.baselines.registry import make
from octopus_study.measure import Case, Clock, HostClock, Method, Row, check_answers
from octopus_study.measure.bandwidth import fill
from octopus_study.measure.blocks import WARM_UP_RUNS
from octopus_study.names import arena_methods
from octopus_study.status import different
from octopus_study.studies.arena.workloads import arena_budget
from octopus_study.studies.comparison import BASE, Comparison, compare
from octopus_study.studies.context import Context, empty_caches

KERNELS, WHOLE = "crop_resize_normalize", "end_to_end"
WRITE_BOUNDS = {"write-bound": "octopus", "write-bound-fp16": "octopus-fp16"}  # whose result is filled
# Never left out for being slow: what the others are compared with, and what most programs do.
KEPT = (BASE, ImageEdge.name, OpenCv.name)
RESULTS_PER_METHOD = 2  # a method's own result, and about as much beside it
SERIES = 16  # batches in a row
IN_SERIES = (
    "octopus", "octopus-image", "cvcuda", "cvcuda-views", "cvcuda-rounded", "roiconvert", "dali", "dali-pipeline",
    "roi-align", "grid-sample", "grid-sample-compiled", "grid-sample-graph",
)  # fmt: skip


@dataclass
class Batch:
    """The methods of one batch."""

    context: Context
    job: CropJob
    # Right answers of each `every`-th crop, by the edge at which they are clamped
    expected: Mapping[str, NDArray[np.float32]]
    every: int
    locked: PageLocked | None = None  # memory of the layer `pipeline`
    methods: list[CropMethod] = field(default_factory=list)  # those that could be made
    missing: dict[str, str] = field(default_factory=dict)  # why the others could not

    def gather(self, chosen: Sequence[str] | None = None) -> None:
        """Make every method, or each of those that are named, that can be made here, while there is memory."""
        self.job.mend()
        chosen = names() if chosen is None else chosen
        made, self.missing = make_all({name: partial(_made, name, self.job) for name in chosen})
        self.methods = list(made.values())

    def release(self) -> None:
        """Give back what the methods held."""
        self.methods.clear()
        empty_caches(self.job.device)

    def rows(self, comparison: Comparison) -> list[Row]:
        """The rows of a comparison, by its layer."""
        layers = {
            "device": device_rows, "host": host_rows, "pipelined": series_rows, "pipeline": pipeline_rows,
        }  # fmt: skip
        return layers[comparison.layer](self, comparison)


def names() -> tuple[str, ...]:
    """All methods of the layers that time a whole way, in the order of the report."""
    return tuple(arena_methods())


def layers(case: Case, device: str) -> tuple[Comparison, ...]:
    """The comparisons of a batch; a CPU has no device beside its host."""
    host = Comparison(case, WHOLE, "host", names())
    if device == "cpu":
        return (host,)
    kernels = Comparison(case, KERNELS, "device", (*names(), *WRITE_BOUNDS))
    in_series = Comparison(case, WHOLE, "pipelined", tuple(name for name in names() if name in IN_SERIES))
    return kernels, host, in_series, Comparison(case, WHOLE, "pipeline", names())


def device_rows(batch: Batch, comparison: Comparison) -> list[Row]:
    """Device work alone, by events with a cold L2: views, grids, rois and padded batches are made outside."""
    missing, methods = dict(batch.missing), []
    for method in batch.methods:
        reason = method.why_no_device or _prepared(method)
        if reason:
            missing[method.name] = reason
        else:
            methods.append(method.timed(method.kernels, batch.every))
    for name, writer in WRITE_BOUNDS.items():
        output = next((method.output() for method in batch.methods if method.name == writer), None)
        if output is None:
            missing[name] = f"{writer} has no result here"
        else:
            methods.append(Method(name, fill(output)))
    return _rows(batch, comparison, methods, missing, batch.context.clock(comparison.layer))


def host_rows(batch: Batch, comparison: Comparison) -> list[Row]:
    """From the boxes on the host to the synchronised result, the frame where the work is done."""
    missing = batch.missing | {method.name: ON_THE_HOST for method in batch.methods if method.on_host}
    methods = [method.timed(every=batch.every) for method in batch.methods if not method.on_host]
    return _rows(batch, comparison, methods, missing, batch.context.host_clock())


class SeriesClock(HostClock):
    """Host time of one batch out of a series; the last one is waited for."""

    def time(self, run: Callable[[], object]) -> float:
        return super().time(run) / SERIES


def series_rows(batch: Batch, comparison: Comparison) -> list[Row]:
    """Batch after batch from the boxes on the host, waiting for the last alone, or as a library works ahead itself."""
    methods = [
        method.timed(partial(method.series, SERIES), batch.every)
        for method in batch.methods
        if method.name in comparison.methods
    ]
    clock = batch.context.host_clock(SeriesClock, layer=comparison.layer)
    return _rows(batch, comparison, methods, batch.missing, clock)


def pipeline_rows(batch: Batch, comparison: Comparison) -> list[Row]:
    """The same with the frame's upload and the result's download."""
    locked = batch.locked
    if locked is None:
        limit = batch.context.config.arena.pipeline_max_count
        return comparison.gaps(f"results of more than {limit} boxes are not brought to page-locked memory")
    methods = [
        method.timed(every=batch.every)
        if method.on_host
        else replace(method.timed(locked.through(method)), result=partial(locked.downloaded, method, batch.every))
        for method in batch.methods
    ]
    clock = batch.context.host_clock(layer=comparison.layer)
    return _rows(batch, comparison, methods, batch.missing, clock)


def _rows(
    batch: Batch, comparison: Comparison, methods: Sequence[Method], missing: Mapping[str, str], clock: Clock
) -> list[Row]:
    """Check, leave out what takes too long, and time the rest in paired blocks."""
    context, seconds = batch.context, dict[str, float]()
    batch.job.mend()  # what a method wrote while it was timed before is not the next one's
    methods = [method for method in methods if context.measures(comparison.key, method.name)]
    answers = {method.name: _answer(batch, method, clock, seconds) for method in methods}
    limit = context.config.arena.least_blocks_seconds
    budget = arena_budget(context)
    # A further process measures what the first one did.
    slow = {} if context.process else too_slow(seconds, budget.min_blocks, limit)
    timed = [method for method in methods if method.name not in slow]
    return compare(context, comparison, timed, answers, {**missing, **slow}, clock=clock, budget=budget)


def too_slow(seconds: Mapping[str, float], blocks: int, limit: float) -> dict[str, str]:
    """Which methods are left out, slowest first, so that the least number of blocks takes no longer than `limit`. Those
    of `KEPT` never are; the base counts twice."""
    runs = blocks + WARM_UP_RUNS
    left, total = {}, sum(seconds.values()) + seconds.get(BASE, 0.0)
    for name in sorted(seconds, key=lambda name: -seconds[name]):
        if total * runs <= limit:
            break
        if name in KEPT:
            continue
        total -= seconds[name]
        left[name] = (
            f"one batch takes {seconds[name]:.2g} s: too slow for {blocks} blocks beside the others "
            f"(arena.least_blocks_seconds = {limit:g})"
        )
    return left


def _answer(batch: Batch, method: Method, clock: Clock, seconds: dict[str, float]) -> str:
    """Compare with the reference what a method writes where its result of a run before was; `seconds` gets its time."""
    if method.result is None:  # a write bound
        return check_answers([method], None)[method.name]
    made = next(each for each in batch.methods if each.name == method.name)

    def run() -> None:
        method.run()  # compiles, and allocates what is then poisoned
        poison(made.output())
        if clock.layer == "pipeline":
            batch.locked.poison()
        clock.settle()
        started = time.perf_counter()
        method.run()
        clock.settle()
        taken = time.perf_counter() - started
        seconds[method.name] = taken * (clock.runs(1e3 * taken) if isinstance(clock, HostClock) else 1)

    answer = check_answers([replace(method, run=run)], batch.expected[made.edge])[method.name]
    harmed = batch.job.mend()
    return different(f"it wrote into {harmed}") if harmed else answer


def poison(output: object) -> None:
    """Fill a result, wherever it is, with NaN; one that can't be written was not made by writing into it."""
    array = view(output, "output")
    if array.device == "cuda":
        check(driver().cuMemsetD8Async(array.pointer, 0xFF, array.nbytes, 0))  # on the default stream
        return
    values = array.numpy()
    if values.flags.writeable:
        values.fill(np.nan)


def _prepared(method: CropMethod) -> str:
    """Prepare a method; why it failed, or an empty text."""
    return make_all({method.name: method.prepare})[1].get(method.name, "")


def _made(name: str, job: CropJob) -> CropMethod:
    require_room(name, job.device, RESULTS_PER_METHOD * job.out.nbytes)
    return make(name, job)


class PageLocked:
    """Page-locked memory for one frame and one result of a job on the GPU."""

    def __init__(self, job: CropJob) -> None:
        from octopus.backends.cuda.memory import pinned

        self.job = job
        self.frame = pinned(job.frame.shape, np.uint8)
        self.frame[...] = job.frame
        self.result = pinned(job.out.shape, np.float32)

    def through(self, method: CropMethod) -> Callable[[], None]:
        """The method's way with the frame's upload before it and the result's download behind it."""
        from octopus.backends.cuda.memory import copy

        frame, target = self.job.device_frame, self.result.ctypes.data

        def run() -> None:
            copy(frame.pointer, self.frame.ctypes.data, self.frame.nbytes)
            method.run()
            result = self._described(method)
            copy(target, result.pointer, result.nbytes)

        return run

    def downloaded(self, method: CropMethod, every: int = 1) -> NDArray[np.float32]:
        """Each `every`-th crop that the last run left in the page-locked memory, as float32."""
        from octopus_study.measure.cuda import synchronize

        synchronize()
        result = self._described(method)
        values = self.result.reshape(-1).view(np.uint8)[: result.nbytes].view(result.dtype)
        return values.reshape(result.shape)[::every].astype(np.float32, copy=False)

    def poison(self) -> None:
        """Fill the host's side with NaN."""
        self.result.fill(np.nan)

    def _described(self, method: CropMethod) -> ArrayView:
        array = view(method.output(), "output")
        if not array.contiguous or array.nbytes > self.result.nbytes:
            raise InputError(
                f"the result of {method.name} can't be copied in one piece: shape {array.shape}, "
                f"strides {array.strides}, {array.nbytes} bytes"
            )
        return array
