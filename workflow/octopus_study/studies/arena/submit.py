"""What calls cost when nobody else is there: a run's host time with boxes on the GPU, a whole batch of a detector, and
a call with arrays of each library.

In the arena's large comparisons the methods' threads and caches are alive beside each other; here Octopus is alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import octopus
from octopus import CropPlan
from octopus.arrays.results import host_copy
from octopus_study.measure import HostClock, Method, Row, check_answers
from octopus_study.peers.availability import make_all, need, need_torch
from octopus_study.peers.fused import Octopus, OneCall
from octopus_study.peers.job import CropJob
from octopus_study.studies.arena.workloads import VISDRONE, arena_budget, boxes_of, case_of
from octopus_study.studies.comparison import Comparison, Part, compare
from octopus_study.studies.context import Context
from octopus_study.studies.crops import crop_job, reference_of

QUANTITY, ALONE, CALL = "submit", "end_to_end_alone", "submit_call"
TORCH = "octopus-torch"
DOORS = (Octopus.name, TORCH, "octopus-operator", "octopus-cupy", "octopus-interface", "octopus-dlpack")
SERIES = 32  # calls in a row, few enough that the driver's queue never fills


class SubmitClock(HostClock):
    """Host time of one call out of a series; the GPU's work is waited for outside."""

    def time(self, run: Callable[[], object]) -> float:
        """Milliseconds per call."""
        self.synchronize()
        start = time.perf_counter_ns()
        for _ in range(SERIES):
            run()
        elapsed = time.perf_counter_ns() - start
        self.synchronize()
        return elapsed / SERIES / 1e6


def parts(context: Context) -> Iterator[Part]:
    """One part for each number of boxes."""
    for count in context.config.arena.counts:
        case = case_of(context, VISDRONE, count)
        yield Part(
            _measure,
            (
                Comparison(case, QUANTITY, "host", (Octopus.name, TORCH)),
                Comparison(case, ALONE, "host", (Octopus.name, OneCall.name)),
            ),
        )
    least = case_of(context, VISDRONE, min(context.config.arena.counts))
    yield Part(_measure_doors, (Comparison(least, CALL, "host", DOORS),))


def _measure(context: Context, part: Part) -> list[Row]:
    context.require_room(2 * part.case.n)
    job = crop_job(context, boxes_of(context, VISDRONE, part.case.n))
    runs, missing = make_all({name: partial(_run, job, name) for name in (Octopus.name, TORCH)})
    methods = [Method(name, run) for name, run in runs.items()]
    host, budget = context.host_clock(), arena_budget(context)
    submit, alone = part.comparisons
    clock = SubmitClock(host.synchronize, host.throttle)
    rows = compare(context, submit, methods, missing=missing, clock=clock, budget=budget)
    # From boxes on the host to the synchronised result, by a plan and by `crop_resize` itself.
    whole = [Method(kind.name, kind(job).run) for kind in (Octopus, OneCall)]
    return [*rows, *compare(context, alone, whole, clock=host, budget=budget)]


def _measure_doors(context: Context, part: Part) -> list[Row]:
    """A call of `crop_resize`, memory of its result included, by who the arrays are of."""
    context.require_room(len(DOORS) * part.case.n)
    job = crop_job(context, boxes_of(context, VISDRONE, part.case.n))
    calls, missing = make_all({name: partial(_door, job, name) for name in DOORS})
    host, budget = context.host_clock(), arena_budget(context)
    clock = SubmitClock(host.synchronize, host.throttle)
    methods = [Method(name, call) for name, call in calls.items()]
    checked = [_returning(name, call, job.tolerance) for name, call in calls.items()]
    answers = check_answers(checked, reference_of(context).of(job.boxes))
    return compare(
        context, part.comparisons[0], methods, answers, missing=missing, clock=clock, budget=budget
    )


def _returning(name: str, call: Callable[[], Any], tolerance: float) -> Method:
    """A call whose result is memory of its own, to be checked; it is timed without being kept."""
    made: list[Any] = []
    return Method(name, lambda: made.append(call()), lambda: host_copy(made.pop()), tolerance)


def _door(job: CropJob, name: str) -> Callable[[], object]:
    """A call with frame and boxes as one of `DOORS` has them.

    Raises
    ------
    Unavailable
        If a library is missing.
    """
    frame, boxes = _arrays(job, name)
    normal = {"mean": list(job.mean), "std": list(job.std)}
    if name != "octopus-operator":
        return partial(octopus.crop_resize, frame, boxes, job.size, **normal)
    need("octopus.torch", "PyTorch")
    operator = need_torch("cuda", "peers").ops.octopus.crop_resize.default
    return partial(operator, frame, boxes, list(job.size), **normal)


def _arrays(job: CropJob, name: str) -> tuple[Any, Any]:
    from octopus.backends.cuda.memory import upload

    own = job.device_frame, upload(job.boxes.astype(np.float32))
    if name == Octopus.name:
        return own
    if name == "octopus-cupy":
        cupy = need("cupy", "CuPy")
        return tuple(cupy.asarray(array) for array in own)
    if name == "octopus-interface":
        return tuple(map(_Interface, own))
    torch = need_torch("cuda", "peers")
    tensors = tuple(torch.as_tensor(array, device="cuda") for array in own)
    return tuple(map(_Exported, tensors)) if name == "octopus-dlpack" else tensors


class _Interface:
    """An array that offers `__cuda_array_interface__` and nothing else."""

    def __init__(self, array: Any) -> None:
        self._array = array

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self._array.__cuda_array_interface__


class _Exported:
    """A tensor that offers DLPack and nothing else."""

    def __init__(self, tensor: Any) -> None:
        self._tensor = tensor

    def __dlpack__(self, **asked: Any) -> Any:
        return self._tensor.__dlpack__(**asked)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._tensor.__dlpack_device__()


def _run(job: CropJob, name: str) -> Callable[[], object]:
    """A run of a plan, with frame and boxes as one of `DOORS` has them."""
    frame, boxes = _arrays(job, name)
    plan = CropPlan(frame, job.count, job.size, mean=job.mean, std=job.std)
    return lambda: plan.run(frame, boxes)
