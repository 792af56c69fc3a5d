"""What the study `concurrency` compares, its clocks, and how answers are compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from octopus.errors import InputError
from octopus_study.measure import Case, HostClock, Method, Row, check_answers
from octopus_study.measure.rows import describe
from octopus_study.status import SAME, Answer, different
from octopus_study.studies.comparison import Comparison
from octopus_study.studies.concurrency.methods import METHODS, pipelines_of
from octopus_study.studies.concurrency.models import NAMES, STAGES

STUDY = "concurrency"
PAIR = "two-models"
BASE = "sequential"
PROCESSES, PROCESSES_MPS = "two-processes", "two-processes-mps"
ALL = (*METHODS, PROCESSES, PROCESSES_MPS)
CONTEXTS = {PROCESSES: "process", PROCESSES_MPS: "process-mps"}
# All methods run the same kernels on the same weights and images, so that the bits are the same; less is asked, since a
# library may add up in another order where it finds another amount of memory.
TOLERANCE = 1e-4
MAKESPAN, STAGE_TIME = "makespan", "stage_time"
Answers = Mapping[str, NDArray[Any]]


def comparisons(dataset: str) -> Iterator[Comparison]:
    """Times and memory of two models by all methods, and each model's own time."""
    case = Case(STUDY, dataset, PAIR, 2)
    yield Comparison(case, MAKESPAN, "host", ALL)
    for pipeline in NAMES:
        yield Comparison(
            case, f"latency_{pipeline}", "host", tuple(name for name in ALL if pipeline in pipelines(name))
        )
    yield Comparison(case, STAGE_TIME, "host", tuple(STAGES))
    yield Comparison(case, "device_delta", "memory", ALL, "bytes")
    yield Comparison(case, "process_context", "memory", tuple(CONTEXTS.values()), "bytes")


def gaps(compared: Iterable[Comparison], name: str, reason: str) -> list[Row]:
    """One `unavailable` row in each comparison for a method, and for the contexts of its processes."""
    reasons = dict.fromkeys((name, CONTEXTS.get(name, name)), reason)
    return [row for comparison in compared for row in comparison.missing(reasons)]


def pipelines(name: str) -> tuple[str, ...]:
    """The pipelines that a method runs."""
    return pipelines_of(name) if name in METHODS else NAMES


class Runnable(Protocol):
    """A method, in this process or in two others."""

    def run(self) -> dict[str, float]: ...
    def close(self) -> None: ...


class BlockClock(HostClock):
    """Wall time, with no run before it: a method's threads, streams and processes are warm from the block before.

    Attributes
    ----------
    block : int
        The number of the block that is being measured, negative before the first.
    """

    def __init__(
        self,
        synchronize: Callable[[], object] | None = None,
        throttle: Callable[[], str | None] | None = None,
    ) -> None:
        super().__init__(synchronize, throttle)
        self.block = -2  # the warm-up settles too

    def settle(self) -> None:
        super().settle()
        self.block += 1


class Recorded:
    """A method whose latencies are kept by block."""

    def __init__(self, method: Runnable, clock: BlockClock) -> None:
        self._run, self._clock = method.run, clock
        self._latencies: dict[int, dict[str, float]] = {}

    def run(self) -> None:
        """Run the method once."""
        self._latencies[self._clock.block] = self._run()

    def rows(self, case: Case, makespans: Iterable[Row]) -> list[Row]:
        """The latencies of the blocks that count, of which `makespans` are the method's own rows."""
        return [
            case.row(
                row.method, row.layer, f"latency_{name}", row.unit, value, block=row.block, answer=row.answer
            )
            for row in makespans
            for name, value in self._latencies[row.block].items()
        ]


def same(results: Answers, expected: Answers) -> Answer:
    """The answer of a method whose arrays must be those of `expected` with the same names."""
    for name, array in results.items():
        reference = expected[name]
        exact = reference.dtype.kind not in "fc"
        tolerance = 0.0 if exact else TOLERANCE * float(np.abs(reference).max(initial=0.0))
        verdict = checked(array, reference, tolerance)
        if verdict != SAME:
            return Answer(verdict.status, f"{name}: {verdict.reason}", verdict.error)
    return SAME


def checked(array: NDArray[Any], expected: NDArray[Any], tolerance: float) -> Answer:
    """The answer of one array; one that can't be judged is different."""
    try:
        return check_answers([Method("array", lambda: None, lambda: array, tolerance)], expected)["array"]
    except InputError as error:
        return different(describe(error))
