"""Comparisons on the host are measured by several processes, one after the other.

A host's times differ between processes by more than the blocks of one tell. So each process takes its share of the
blocks of every comparison; the first one is the study itself, which says what the others measure again.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from octopus.errors import OctopusError
from octopus_study.errors import MeasureError
from octopus_study.measure import Row
from octopus_study.measure.dependence import PROCESS_BLOCKS
from octopus_study.measure.rows import describe, one_line
from octopus_study.measure.worker import Worker, WorkerError
from octopus_study.studies.comparison import Part
from octopus_study.studies.context import Context, empty_caches, make_context

log = logging.getLogger(__name__)

Plan = Callable[[Context], Iterable[Part]]  # of a study; the other processes get it by its name
MEASURE = "octopus_study.studies.processes:measure"
LEAST_SECONDS = 300  # what a process may always take; else twice the time of the first one


def further_rows(context: Context, manifest: Path, plan: Plan) -> list[Row]:
    """Rows of the further processes; what fails in one is logged and noted in the provenance, and has none there."""
    count = context.config.measure.processes if context.shared else 1
    empty_caches(context.device)
    rows: list[Row] = []
    lost, failed = 0, list[str]()
    limit = max(LEAST_SECONDS, 2 * (datetime.now(UTC) - context.started).total_seconds())
    for process in range(1, count):
        try:
            found, why = _measured(context, _task(context, manifest, plan, process), limit)
            rows += found
            failed += why
        except MeasureError as error:
            log.warning("%s", error)
            failed.append(str(error))
            lost += 1
    if context.shared:
        context.notes["processes"] = {"measured": count - lost, "failed": failed}
    return rows


def _measured(context: Context, task: dict[str, Any], limit: float) -> tuple[list[Row], list[str]]:
    """Have a fresh Python measure the shared comparisons within `limit` seconds; also what failed of them."""
    process, started = task["process"], time.monotonic()
    log.info("%s: process %d measures %d comparisons", context.study, process, len(context.shared))
    try:
        with Worker(f"process {process}") as worker:
            rows, failed = worker.ask(MEASURE, task, seconds=limit)
            said = worker.words()
    except OctopusError as error:
        what = "" if isinstance(error, WorkerError) else f"process {process}: "
        raise MeasureError(f"{what}{error}") from error
    log.info("process %d took %.0f s%s", process, time.monotonic() - started, ":" if said else "")
    for line in said:
        log.warning("process %d: %s", process, line)
    return rows, [f"process {process}, {line}" for line in failed]


def _task(context: Context, manifest: Path, plan: Plan, process: int) -> dict[str, Any]:
    of_context = {"study": context.study, "config": context.config, "shared": context.shared}
    return {**of_context, "manifest": manifest, "plan": plan, "process": process}


def measure(task: dict[str, Any]) -> tuple[list[Row], list[str]]:
    """Measure, in a further process, what the first one asks for; what fails here is left out, and said."""
    context = make_context(task["study"], task["config"], task["manifest"])
    context = replace(context, process=task["process"], shared=task["shared"])
    rows: list[Row] = []
    failed: list[str] = []
    for part in task["plan"](context):
        try:
            found = part.rows(context)
        except Exception as error:  # whatever it is, the other parts go on
            failed.append(f"{part.case}: {one_line(describe(error))}")
        else:
            rows += [row for row in found if row.value is not None and row.block >= PROCESS_BLOCKS]
            failed += _lacking(part, found, task["shared"])
    for why in failed:
        log.warning("%s", why)
    return rows, failed


def _lacking(part: Part, rows: Sequence[Row], shared: Mapping[tuple, Sequence[str]]) -> Iterator[str]:
    """The methods of a part that the first process measured and this one could not, with the reason if there is one."""
    for comparison in part.comparisons:
        of_it = [row for row in rows if (*row.case, row.quantity, row.layer) == comparison.key]
        for name in shared.get(comparison.key, ()):
            of_method = [row for row in of_it if row.method == name]
            if all(row.value is None for row in of_method):
                why = of_method[0].answer if of_method else "no row"
                yield f"{comparison.case}, {comparison.quantity}: {name}: {why}"
