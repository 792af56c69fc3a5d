"""One comparison of the arena: a workload, a number of boxes, and a layer, with everyone who can take part."""

from __future__ import annotations

import gc
import logging
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from octopus.arrays.views import view
from octopus.backends import cpu
from octopus.backends.cuda import memory as cuda_memory
from octopus_study.measure import Budget, Case, Clock, HostClock, Method, Row, check_answers, unavailable
from octopus_study.measure.bandwidth import fill
from octopus_study.measure.blocks import WARM_UP_RUNS
from octopus_study.measure.rows import describe
from octopus_study.peers import registry
from octopus_study.peers.availability import Unavailable
from octopus_study.peers.job import CropJob
from octopus_study.studies.arena.own import ON_THE_HOST, OWN, Contender, FusedPlan, HalfPrecision, OpenCvCrops
from octopus_study.studies.arena.pipeline import PageLocked
from octopus_study.studies.contest import BASE, TOLERANCE_LEVELS, Entry, compare
from octopus_study.studies.context import Context

log = logging.getLogger(__name__)

KERNELS, WHOLE = "crop_resize_normalize", "end_to_end"
NOT_BY_EVENTS = "its device work can't be seen by events on the default stream"
WRITE_BOUNDS = {
    "write-bound": FusedPlan.name,
    "write-bound-fp16": HalfPrecision.name,
}  # whose result is filled
KEPT = (BASE, OpenCvCrops.name)  # never left out for being slow: the base, and what most programs do
RESULTS_PER_METHOD = 2  # a method's own result, and about as much beside it


@dataclass
class Round:
    """The contenders of one batch.

    Attributes
    ----------
    context, case, job
    expected : ndarray
        Right answer of each `every`-th crop.
    every : int
    contenders : list
        Those that could be made.
    missing : dict
        Why the others could not.
    locked : PageLocked or None
        Memory of the layer `pipeline`.
    """

    context: Context
    case: Case
    job: CropJob
    expected: NDArray[np.float32]
    every: int
    locked: PageLocked | None = None
    contenders: list[Contender] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)

    @property
    def budget(self) -> Budget:
        """Limits of one comparison."""
        return self.context.budget_within(self.context.config.arena.max_seconds)


@dataclass(frozen=True)
class Task:
    """What one contender does in one layer."""

    name: str
    run: Callable[[], object]
    contender: Contender | None = None  # None for a write bound, which answers nothing
    result: Callable[[], NDArray[np.float32]] | None = None
    locked: PageLocked | None = None  # where the result goes in the end, if not where the contender left it


def names() -> list[str]:
    """All methods of the layers that time a whole way, in the order of the report."""
    own = [kind.name for kind in OWN]
    return [*own, *(name for name, _ in registry.ARENA if name not in own)]


def gather(found: Round) -> None:
    """Make every contender that can be made here, one after the other, while there is memory."""
    makers: dict[str, Callable[[], Contender]] = {kind.name: partial(kind, found.job) for kind in OWN}
    if found.locked is not None:
        makers[OpenCvCrops.name] = partial(OpenCvCrops, found.job, found.locked.result)
    for name in names():
        short = _no_room(found.job)
        if short:
            found.missing[name] = short
            continue
        try:
            make = makers.get(name) or partial(registry.make, name, found.job)
            found.contenders.append(make())
        except Unavailable as error:
            found.missing[name] = str(error)
        except Exception as error:  # any failure of a contender is a row, never the end of the study
            found.missing[name] = describe(error)


def release(found: Round) -> None:
    """Give back what the contenders held."""
    found.contenders.clear()
    empty_caches("cuda" if found.job.on_gpu else "cpu")


def empty_caches(device: str) -> None:
    """Collect garbage, and let torch give back what it keeps for later; its peak is counted anew."""
    gc.collect()
    torch = sys.modules.get("torch")
    if device == "cuda" and torch is not None and torch.cuda.is_initialized():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def device_rows(found: Round) -> list[Row]:
    """Device work alone, by events with a cold L2: views, grids, rois and padded batches are made outside."""
    missing, tasks = dict(found.missing), []
    for each in found.contenders:
        why = "" if each.device_layer else getattr(each, "why_no_device", NOT_BY_EVENTS)
        problem = why or _prepared(each)
        if problem:
            missing[each.name] = problem
        else:
            tasks.append(Task(each.name, each.kernels, each, each.result))
    for name, writer in WRITE_BOUNDS.items():
        output = next((each.output() for each in found.contenders if each.name == writer), None)
        if output is None:
            missing[name] = f"{writer} has no result here"
        else:
            tasks.append(Task(name, fill(output)))
    return _rows(found, found.context.kernel_clocks()[0], KERNELS, tasks, missing)


def host_rows(found: Round) -> list[Row]:
    """From the boxes on the host to the synchronised result, the frame where the work is done."""
    missing = dict(found.missing)
    missing |= {each.name: ON_THE_HOST for each in found.contenders if getattr(each, "on_host", False)}
    tasks = [
        Task(each.name, each.run, each, each.result) for each in found.contenders if each.name not in missing
    ]
    return _rows(found, found.context.host_clock(), WHOLE, tasks, missing)


def pipeline_rows(found: Round) -> list[Row]:
    """The same with the frame's upload and the result's download."""
    locked, host = found.locked, found.context.host_clock()
    clock = HostClock(host.synchronize, host.throttle, layer="pipeline")
    if locked is None:
        limit = found.context.config.arena.pipeline_max_count
        why = f"results of more than {limit} boxes are not brought to page-locked memory"
        return [unavailable(found.case, name, clock.layer, WHOLE, "ms", why) for name in names()]
    tasks = []
    for each in found.contenders:
        if getattr(each, "on_host", False):
            tasks.append(Task(each.name, each.run, each, each.result))
        else:
            result = partial(locked.downloaded, each)
            tasks.append(Task(each.name, locked.through(each), each, result, locked))
    return _rows(found, clock, WHOLE, tasks, found.missing)


def _rows(
    found: Round, clock: Clock, quantity: str, tasks: Sequence[Task], missing: Mapping[str, str]
) -> list[Row]:
    """Check, leave out what takes too long, and time the rest in paired blocks."""
    missing = dict(missing)
    seconds: dict[str, float] = {}
    answers = {task.name: _answer(found, task, clock, seconds) for task in tasks}
    missing |= too_slow(seconds, found.budget.min_blocks, found.context.config.arena.least_blocks_seconds)
    entries = [Entry(task.name, task.run) for task in tasks if task.name not in missing]
    gaps = [unavailable(found.case, name, clock.layer, quantity, "ms", why) for name, why in missing.items()]
    if not entries:
        return gaps
    return [*compare(found.context, found.case, quantity, entries, clock, answers, found.budget), *gaps]


def too_slow(seconds: Mapping[str, float], blocks: int, limit: float) -> dict[str, str]:
    """Which methods are left out, slowest first, so that the least number of blocks takes no longer than `limit`.

    Those of `KEPT` never are; the base counts twice.
    """
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


def _answer(found: Round, task: Task, clock: Clock, seconds: dict[str, float]) -> str:
    """Compare with the reference what a task writes where its result of a run before was; `seconds` gets its time."""
    each = task.contender
    if each is None:
        return check_answers([Method(task.name, task.run)], None)[task.name]

    def run() -> None:
        task.run()  # compiles, and allocates what is then poisoned
        poison(each.output())
        if task.locked is not None:
            task.locked.poison()
        clock.settle()
        started = time.perf_counter()
        task.run()
        clock.settle()
        runs = 2 if getattr(clock, "warm", False) else 1
        seconds[task.name] = runs * (time.perf_counter() - started)

    def result() -> NDArray[np.float32]:
        return task.result()[:: found.every]

    tolerance = TOLERANCE_LEVELS / max(found.job.std) if each.tolerance is None else each.tolerance
    method = Method(task.name, run, result, tolerance, each.why_different)
    return check_answers([method], found.expected)[task.name]


def poison(output: object) -> None:
    """Fill a result, wherever it is, with NaN; one that can't be written was not made by writing into it."""
    found = view(output, "output")
    if found.device == "cuda":
        cuda_memory.set_bytes(found.pointer, found.nbytes, 0xFF)
        return
    values = found.numpy()
    if values.flags.writeable:
        values.fill(np.nan)


def _prepared(each: Contender) -> str:
    """Prepare a contender; why it failed, or an empty text."""
    try:
        each.prepare()
    except Exception as error:  # any failure of a contender is a row, never the end of the study
        return describe(error)
    return ""


def _no_room(job: CropJob) -> str:
    """Why there is no memory for one more contender, or an empty text."""
    needed = RESULTS_PER_METHOD * job.out.nbytes
    free = cuda_memory.free_bytes() if job.on_gpu else cpu.free_bytes()
    if needed <= free:
        return ""
    return f"beside the other methods {needed:,} bytes are needed, {free:,} are free"


def layers(device: str) -> Iterator[Callable[[Round], list[Row]]]:
    """The layers of a machine: a CPU has no device beside its host."""
    if device == "cuda":
        yield device_rows
    yield host_rows
    if device == "cuda":
        yield pipeline_rows
