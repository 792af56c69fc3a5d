"""What the parts of the study `concurrency` share: its arms and quantities, its clock, and how answers are compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from octopus.errors import InputError
from octopus_study.measure import Case, HostClock, Method, Row, check_answers, unavailable
from octopus_study.measure.rows import SAME, describe
from octopus_study.studies.concurrency.arms import ARMS, pipelines_of
from octopus_study.studies.concurrency.models import NAMES

STUDY = "concurrency"
PAIR, BESIDE = "two-models", "crops-beside-model"
BASE = "sequential"
PROCESSES, PROCESSES_MPS = "two-processes", "two-processes-mps"
# In a process of its own each arm's memory is measured.
OWN_MEMORY = tuple(ARMS)
ALL = (*OWN_MEMORY, PROCESSES, PROCESSES_MPS)
CONTEXTS = {PROCESSES: "process", PROCESSES_MPS: "process-mps"}
# All arms run the same kernels on the same weights and images, so that the bits are the same; less is asked, since a
# library may add up in another order where it finds another amount of memory.
TOLERANCE = 1e-4
MAKESPAN = "makespan"
# Of crops beside a model: who has a time of the model, who one of the crops.
MODEL_METHODS = ("model-alone", "model-alone-again", "crops-first", "crops-beside")
CROPS_METHODS = ("crops-alone", "crops-alone-again", "crops-beside")
Answers = Mapping[str, NDArray[Any]]


class Contender(Protocol):
    """An arm, in this process or in two others."""

    def run(self) -> dict[str, float]: ...
    def proofs(self) -> dict[str, int]: ...
    def close(self) -> None: ...


class ArmClock(HostClock):
    """Wall time, with no run before it: an arm's threads, streams and processes are warm from the block before.

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
        """Begin a block."""
        super().settle()
        self.block += 1


class ToldClock(HostClock):
    """For runs that return their milliseconds themselves, since they go on beyond what is timed."""

    def time(self, run: Callable[[], Any]) -> float:
        """Run between two synchronisations, and return what it says."""
        self.synchronize()
        elapsed = float(run())
        self.synchronize()
        return elapsed


class Recorded:
    """An arm whose latencies are kept by block."""

    def __init__(self, arm: Contender, clock: ArmClock) -> None:
        self.arm, self._clock = arm, clock
        self._latencies: dict[int, dict[str, float]] = {}

    def run(self) -> None:
        """Run the arm once."""
        self._latencies[self._clock.block] = self.arm.run()

    def rows(self, case: Case, makespans: Iterable[Row]) -> list[Row]:
        """The latencies of the blocks that count, of which `makespans` are the arm's own rows."""
        return [
            case.row(
                row.method, row.layer, f"latency_{name}", row.unit, value, block=row.block, answer=row.answer
            )
            for row in makespans
            for name, value in self._latencies[row.block].items()
        ]


def same(found: Answers, expected: Answers) -> str:
    """The answer of an arm whose arrays must be those of `expected` with the same names."""
    for name, array in found.items():
        reference = expected[name]
        exact = reference.dtype.kind not in "fc"
        tolerance = 0.0 if exact else TOLERANCE * float(np.abs(reference).max(initial=0.0))
        try:
            method = Method(name, lambda: None, lambda array=array: array, tolerance)  # type: ignore[misc]
            said = check_answers([method], reference)[name]
        except InputError as error:
            said = f"different: {describe(error)}"
        if said != SAME:
            kind, _, why = said.partition(": ")
            return f"{kind}: {name}: {why}"
    return SAME


def pipelines(arm: str) -> tuple[str, ...]:
    """The pipelines that an arm runs."""
    return pipelines_of(arm) if arm in ARMS else NAMES


def latency_gaps(case: Case, arm: str, why: str) -> list[Row]:
    """One `unavailable` row per latency."""
    return [unavailable(case, arm, "host", f"latency_{name}", "ms", why) for name in pipelines(arm)]


def arm_gaps(case: Case, arm: str, why: str) -> list[Row]:
    """One `unavailable` row for each time of an arm."""
    return [unavailable(case, arm, "host", MAKESPAN, "ms", why), *latency_gaps(case, arm, why)]


def memory_gap(case: Case, arm: str, why: str) -> list[Row]:
    """What an arm's memory, and for processes their contexts, would have been."""
    found = [unavailable(case, arm, "memory", "device_delta", "bytes", why)]
    if arm in CONTEXTS:
        found.append(unavailable(case, CONTEXTS[arm], "memory", "process_context", "bytes", why))
    if arm == PROCESSES_MPS:
        found.append(unavailable(case, arm, "deterministic", "mps_clients", "count", why))
    return found


def crop_gaps(case: Case, why: str) -> list[Row]:
    """All rows of crops beside a model."""
    both = (("latency_model", MODEL_METHODS), ("latency_crops", CROPS_METHODS))
    return [
        unavailable(case, method, "host", quantity, "ms", why)
        for quantity, methods in both
        for method in methods
        if not method.endswith("-again")
    ]


def gaps(case: Case, beside: Case, why: str) -> list[Row]:
    """Every row of the study, where nothing of it can run."""
    times = [row for arm in ALL for row in arm_gaps(case, arm, why)]
    memory = [row for arm in ALL for row in memory_gap(case, arm, why)]
    return [*times, *memory, *crop_gaps(beside, why)]
