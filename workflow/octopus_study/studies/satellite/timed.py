"""How long it takes to judge the tiles of a scene: the kernel beside the time to read the scene, and end to end.

Beside a GPU the scene lies in page-locked memory on the host, for all methods.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from octopus_study.measure import Case, Clock, Method, Row, again, check_answers, run_paired, unavailable
from octopus_study.measure.bandwidth import drain
from octopus_study.measure.rows import describe
from octopus_study.studies.context import Context
from octopus_study.studies.satellite.host_methods import Integral, NumPy, OpenCv
from octopus_study.studies.satellite.methods import NLaunches, Octopus, OctopusCpu, OnDevice, Padded, TileJob

KERNEL, WHOLE = "keep_tiles", "end_to_end"
BASE = "octopus"
BOUND = "read-bound"
LARGE = (
    1 << 25
)  # bytes of a scene that takes milliseconds: no method then needs an untimed run before each timed one
ON_HOST = (NumPy, OpenCv, Integral)


def placed(image: NDArray[Any], device: str) -> NDArray[Any]:
    """A scene as the methods find it: page-locked where a GPU reads it."""
    if device == "cpu":
        return image
    from octopus.backends.cuda.memory import pinned

    copy = pinned(image.shape, image.dtype)
    copy[...] = image
    return copy


def rows(context: Context, case: Case, job: TileJob) -> list[Row]:
    """Rows of both comparisons; a method that can't take part gives one that says why."""
    kernel_clock, host_clock = context.kernel_clocks()[0], context.host_clock()
    host_clock.warm = host_clock.warm and job.image.nbytes < LARGE
    kinds = (OnDevice, NLaunches, Padded) if job.on_gpu else (Octopus, Padded)
    contenders, gaps = _made(job, kinds)
    methods = [_method(each, getattr(each, "kernel", None) or each.run) for each in contenders]
    if job.on_gpu:
        methods.append(Method(BOUND, drain(job.device_image)))
    found = _compared(context, case, job, KERNEL, methods, kernel_clock)
    found += [unavailable(case, name, kernel_clock.layer, KERNEL, "ms", why) for name, why in gaps.items()]
    kinds = (Octopus, OctopusCpu, NLaunches, Padded) if job.on_gpu else (Octopus, Padded)
    contenders, gaps = _made(job, (*kinds, *ON_HOST))
    methods = [_method(each, each.run) for each in contenders]
    found += _compared(context, case, job, WHOLE, methods, host_clock)
    return found + [unavailable(case, name, "host", WHOLE, "ms", why) for name, why in gaps.items()]


def _made(job: TileJob, kinds: tuple[Any, ...]) -> tuple[list[Any], dict[str, str]]:
    """Those that can be had here, and why the others can't."""
    contenders, gaps = [], {}
    for kind in kinds:
        try:
            contenders.append(kind(job))
        except Exception as error:  # a lack of memory is a row, never the end of the study
            gaps[kind.name] = describe(error)
    return contenders, gaps


def _method(contender: Any, run: Callable[[], object]) -> Method:
    return Method(contender.name, run, lambda: contender.flags)


def _compared(
    context: Context, case: Case, job: TileJob, quantity: str, methods: list[Method], clock: Clock
) -> list[Row]:
    """Check every contender's flags, then time them; the base is entered twice for the noise floor."""
    answers = check_answers(methods, job.expected)
    base = next((method for method in methods if method.name == BASE), None)
    if base is not None:
        methods = [*methods, again(base)]
        answers[methods[-1].name] = answers[BASE]
    budget = context.budget_within(context.config.satellite.max_seconds)
    name = None if base is None else BASE
    return run_paired(case, quantity, "ms", methods, clock, budget, answers, context.seed, name)
