"""Study `scaling`: crops and ragged images on all GPUs of one host, by processes and by threads.

Weak scaling gives each GPU a block's work, strong scaling shares it. Data lie on the GPUs already (`resident`), or
are uploaded from page-locked memory, batch by batch, within the timed region (`uploaded`), on the stream that then
works on them. A block's time is from the first worker's begin to the last one's end, by the host's clock, so that
what the common begin costs a host is in it. Beside them stand copies alone, which say where the host or the bus ends
it, and each GPU alone, in the same paired blocks, which says how equal the GPUs are.

A CPU takes no part: its cores share one memory, and say nothing about GPUs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import cache, partial
from typing import NamedTuple

import numpy as np

from octopus_study.measure import Case, Method, Row, check_answers
from octopus_study.peers.availability import Unavailable
from octopus_study.studies.comparison import Comparison, Part, compare
from octopus_study.studies.context import Context
from octopus_study.studies.scaling.gpu import Gpu, visible_names
from octopus_study.studies.scaling.team import PROCESSES, WAYS, Make, Team
from octopus_study.studies.scaling.work import Work, checked, copies_of, crops_of, images_of

ALONE = "alone"
UPLOADED = "weak_uploaded"
QUANTITIES = ("weak_resident", UPLOADED, "strong_resident", "strong_uploaded")
NEEDS = "several GPUs of one host are asked for, and this machine has none"
WORKS: dict[Callable[[Context], Work], tuple[str, ...]] = {
    crops_of: QUANTITIES,
    images_of: QUANTITIES,
    copies_of: (UPLOADED,),
}


class Together(NamedTuple):
    """GPUs of a method: by which way, and the batches of each."""

    way: str
    shares: dict[int, Sequence[int]]


def plan(context: Context) -> Iterator[Part]:
    """Each work in all of its quantities, and on each GPU alone."""
    visible = visible_names() if context.device == "cuda" else []
    context.notes["gpus"] = visible
    for make, quantities in WORKS.items():
        work = make(context)
        case = Case(context.study, context.workload.dataset, work.name, work.items)
        counts = sorted({*context.config.scaling.gpus, len(visible)} - {0})
        together = tuple(f"{way}-{count}" for way in WAYS for count in counts)
        alone = tuple(f"gpu-{rank}" for rank in range(max(2, len(visible))))
        planned = [Comparison(case, quantity, "host", together) for quantity in quantities]
        measure = partial(rows_of, visible=len(visible), make=Gpu)
        yield Part(
            partial(_measure, measure=partial(measure, work=work)),
            (*planned, Comparison(case, ALONE, "host", alone)),
        )


def _measure(context: Context, part: Part, measure: Callable[..., Iterator[Row]]) -> Iterator[Row]:
    if context.device == "cpu":
        raise Unavailable(NEEDS)
    yield from measure(context, part)


def rows_of(context: Context, part: Part, work: Work, visible: int, make: Make) -> Iterator[Row]:
    """Rows of a work on so many devices, each made by `make` in its worker."""
    right = cache(work.right)
    with ExitStack() as stack:
        teams = {way: stack.enter_context(Team(way, visible, work, make)) for way in WAYS}
        for comparison in part.comparisons:
            upload = work.always_uploads or comparison.quantity.endswith("uploaded")
            methods, answers, missing = [], {}, {}
            for name in comparison.methods:
                together = members(name, comparison.quantity, work.count)
                if max(together.shares) >= visible:
                    missing[name] = seen(visible)
                elif not all(together.shares.values()):
                    missing[name] = f"{work.count} batches are too few for all GPUs"
                elif context.measures(comparison.key, name):
                    method = _method(name, teams[together.way], together.shares, upload, work.tolerance)
                    shares = together.shares.values()
                    expected = [right(index) for share in shares for index in checked(share, work.held)]
                    answers |= check_answers([method], np.concatenate(expected))
                    methods.append(method)
            yield from compare(
                context, comparison, methods, answers, missing, clock=TeamClock(context, teams[PROCESSES]),
                budget=context.budget_within(context.config.scaling.max_seconds), base=comparison.methods[0],
            )  # fmt: skip


def members(name: str, quantity: str, count: int) -> Together:
    """The GPUs of a method, and of `count` batches those that each of them does."""
    way, number = name.rsplit("-", 1)
    if quantity == ALONE:
        return Together(PROCESSES, {int(number): range(count)})
    gpus = int(number)
    if quantity.startswith("strong"):
        # Neighbours, so that each GPU goes through all that it holds, as one alone does, and no cache holds its part.
        ends = [rank * count // gpus for rank in range(gpus + 1)]
        return Together(way, {rank: range(ends[rank], ends[rank + 1]) for rank in range(gpus)})
    return Together(way, dict.fromkeys(range(gpus), range(count)))


def seen(visible: int) -> str:
    """How many GPUs there are, as a reason for not having more."""
    return "one GPU is visible" if visible == 1 else f"{visible} GPUs are visible"


def _method(
    name: str, team: Team, shares: dict[int, Sequence[int]], upload: bool, tolerance: float
) -> Method:
    run, answers = partial(team.block, shares, upload), partial(team.answers, shares, upload)
    return Method(name, run, answers, tolerance)


class TeamClock:
    """Takes the milliseconds that a block of a team says; all GPUs are watched by the processes, each its own."""

    layer = "host"

    def __init__(self, context: Context, watchers: Team) -> None:
        self._own, self._watchers = context.throttle, watchers
        self.watches_throttling = context.throttle.readable

    def time(self, run: Callable[[], object]) -> float:
        """What the block says."""
        return float(run())  # type: ignore[arg-type]

    def settle(self) -> None:
        """Teams are at rest when a block ends."""

    def throttled(self) -> str | None:
        """Ask this process's watcher, which also reads the clocks, then those of all GPUs."""
        own, others = self._own(), self._watchers.throttled()
        return others or own
