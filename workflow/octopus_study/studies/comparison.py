"""What a study compares: declared once, so that the run and the rows of what is missing follow from one list.

A study's ``plan(context)`` gives its parts. A part measures the comparisons that share one batch of inputs; whatever of
them gets no row, since the inputs have no room or a package is missing, becomes a row that says so.
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from octopus.errors import InputError
from octopus_study.baselines.availability import Unavailable, make_all
from octopus_study.measure import Budget, Case, Clock, Method, Row, again, run_paired, unavailable
from octopus_study.measure.dependence import PROCESS_BLOCKS
from octopus_study.status import NO_ANSWER
from octopus_study.studies.context import Context

log = logging.getLogger(__name__)

# Rows of a part, and what the context held behind it: `shared` and `notes`.
_Kept = tuple[list[Row], dict[tuple, list[str]], dict[str, Any]]

BASE = "octopus"


@dataclass(frozen=True)
class Comparison:
    """Methods that are measured against each other."""

    case: Case
    quantity: str
    layer: str
    methods: tuple[str, ...]  # names of all that take part where nothing is missing
    unit: str = "ms"

    @property
    def key(self) -> tuple:
        """What tells it from the others of its study."""
        return (*self.case, self.quantity, self.layer)

    def gaps(self, reason: str, methods: Iterable[str] | None = None) -> list[Row]:
        """One `unavailable` row for each of `methods`, by default for all."""
        names = self.methods if methods is None else methods
        return [unavailable(self.case, name, self.layer, self.quantity, self.unit, reason) for name in names]

    def missing(self, reasons: Mapping[str, str]) -> list[Row]:
        """One `unavailable` row for each of its methods that has a reason."""
        return [row for name in self.methods if name in reasons for row in self.gaps(reasons[name], [name])]


@dataclass(frozen=True)
class Part:
    """Comparisons on the same inputs, and the function that measures them."""

    # Takes the context and the part, and gives rows, one after the other. It may raise `Unavailable` at any time: what
    # then has no row gets the reason.
    measure: Callable[[Context, Part], Iterable[Row]]
    comparisons: tuple[Comparison, ...] = ()  # empty where no method is compared
    # Is given the part's rows where an earlier process measured them; for parts on which later ones rest
    recall: Callable[[list[Row]], object] = list

    @property
    def case(self) -> Case:
        """That of the first comparison."""
        return self.comparisons[0].case

    def of(self, *quantities: str) -> list[Comparison]:
        """The comparisons of these quantities, in the order of the plan."""
        return [comparison for comparison in self.comparisons if comparison.quantity in quantities]

    def rows(self, context: Context) -> list[Row]:
        """What could be measured, and a row with the reason for each method that could not."""
        rows: list[Row] = []
        if context.process and not any(context.measures(comparison.key) for comparison in self.comparisons):
            return rows
        try:
            for row in self.measure(context, self):
                rows.append(row)
        except Unavailable as error:
            log.info("%s", error)
            rows += self._gaps(str(error), rows)
        return rows

    def _gaps(self, reason: str, rows: Sequence[Row]) -> Iterator[Row]:
        present = {(*row.case, row.layer, row.quantity, row.method) for row in rows}
        for comparison in self.comparisons:
            key = (*comparison.case, comparison.layer, comparison.quantity)
            yield from comparison.gaps(reason, [name for name in comparison.methods if (*key, name) not in present])


def compare(
    context: Context,
    comparison: Comparison,
    methods: Sequence[Method],
    answers: Mapping[str, str] | str = NO_ANSWER,
    missing: Mapping[str, str] | None = None,
    *,
    clock: Clock | None = None,
    budget: Budget | None = None,
    base: str = BASE,
) -> list[Row]:
    """Time `methods`, those of the comparison that are available here, in paired blocks; the base, to which the others
    are compared, is entered twice for the noise floor, where it takes part. `missing` says why the others aren't.

    On the host a process takes its share of the blocks; those after the first one only measure what that one could.
    `answers` are from `check` or `check_answers`, or one word for all where there is nothing to check. Clock and budget
    are those of the comparison's layer and of the context, unless given.
    """
    # What is missing, the first process has said.
    gaps = [] if context.process else comparison.missing(_reasons(comparison, methods, missing or {}))
    methods = [method for method in methods if context.measures(comparison.key, method.name)]
    if not methods:
        return gaps
    verdicts = answers if isinstance(answers, str) else dict(answers)
    clock = clock or context.clock(comparison.layer)
    processes = context.processes(clock.layer)
    base_methods = [method for method in methods if method.name == base]
    if base_methods:
        methods.append(again(base_methods[0]))
        if not isinstance(verdicts, str):
            verdicts[methods[-1].name] = verdicts[base]
    rows = run_paired(
        comparison.case, comparison.quantity, comparison.unit, methods,
        clock, (budget or context.budget).shared_by(processes), verdicts, context.seed + context.process,
        base if base_methods else None,
    )  # fmt: skip
    if context.process:
        return [row._replace(block=row.block + context.process * PROCESS_BLOCKS) for row in rows]
    if processes > 1:
        timed = {row.method for row in rows if row.value is not None}
        context.shared[comparison.key] = [name for name in comparison.methods if name in timed]
    return [*rows, *gaps]


def counted(comparison: Comparison, counts: Mapping[str, Callable[[], float]]) -> Iterator[Row]:
    """Rows of what is counted, not timed, and the reason where it can't be."""
    found, missing = make_all(counts)
    for name, count in found.items():
        yield comparison.case.row(name, comparison.layer, comparison.quantity, comparison.unit, count)
    yield from comparison.missing(missing)


def _reasons(comparison: Comparison, methods: Sequence[Method], missing: Mapping[str, str]) -> dict[str, str]:
    """Why each method of the comparison that isn't among `methods` is missing."""
    names = [method.name for method in methods]
    absent = [name for name in comparison.methods if name not in names]
    strange = sorted({*names} - {*comparison.methods} | {*absent} - {*missing})
    if strange:
        raise InputError(
            f"{comparison.quantity} of {comparison.case} plans {', '.join(comparison.methods)}; "
            f"neither a method nor a reason fits {', '.join(strange)}"
        )
    return {name: missing[name] for name in absent}


def measure_plan(context: Context, plan: Iterable[Part], kept: Path | None = None) -> list[Row]:
    """All rows of a study; progress goes to the log. With `kept`, each part that is complete is written to that file,
    and what is there already is not measured again."""
    known = [] if kept is None else _kept_parts(kept)
    rows: list[Row] = []
    for index, part in enumerate(plan):
        if index < len(known):
            found, shared, notes = known[index]
            part.recall(found)
            context.shared.update(shared)
            context.notes.update(notes)
        else:
            if part.comparisons:
                log.info("workload, items: %s", part.case)
            found = part.rows(context)
            if kept is not None:
                with kept.open("ab") as file:
                    file.write(pickle.dumps((found, context.shared, context.notes)))
        rows += found
    return rows


def _kept_parts(kept: Path) -> list[_Kept]:
    """Parts in their order; one that was cut off while it was written is taken off the file."""
    parts: list[_Kept] = []
    kept.touch()
    with kept.open("r+b") as file:
        while True:
            whole = file.tell()
            try:
                parts.append(pickle.load(file))
            except (EOFError, pickle.UnpicklingError):
                file.truncate(whole)
                return parts
