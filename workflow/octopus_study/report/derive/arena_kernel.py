"""The arena's part about the kernel alone: what each step of it brings, which share of its own write bound each kind
of result reaches, and what limits it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from octopus_study.report.derive.comparisons import BOUND, SUBJECT, floor_of, share_of_bound, speedup
from octopus_study.report.derive.samples import AGAIN, Group, groups, origin, pivot
from octopus_study.report.labels import LADDER_STEPS, LADDER_WORKLOADS, RESULT_KINDS, human
from octopus_study.report.numbers import Number, make_number
from octopus_study.report.runs import Run
from octopus_study.report.text import quantity_text, significant, with_unit

if TYPE_CHECKING:
    import pandas as pd

KINDS = "kinds"
KERNEL_WORKLOADS = (*LADDER_WORKLOADS, KINDS)
SUBMIT, ALONE = "submit", "end_to_end_alone"  # Octopus with nobody beside it
# Types of results other than float32, as names of methods carry them.
_TYPES = ("fp16", "uint8")
# The rule: a kernel at this share of what filling its output reaches, or above, is limited by memory. Below it the
# result could be written faster and the frame lies in L2, so what is left is issuing instructions.
MEMORY_LIMITED_FROM = 0.7
MEMORY, INSTRUCTIONS = "memory", "issuing instructions"


def is_contest(group: Group) -> bool:
    """Say whether a group compares contenders, and not the kernel with itself."""
    return group.workload not in KERNEL_WORKLOADS and group.quantity not in (SUBMIT, ALONE)


def bound_of(method: str) -> str:
    """Return the write bound that a method is compared with: the one of its own output."""
    kind = next((name for name in _TYPES if name in method.split("-")), "")
    return f"{BOUND}-{kind}" if kind else BOUND


def limit_of(share: float) -> str:
    """Say what limits a kernel that reaches a share of its write bound."""
    return MEMORY if share >= MEMORY_LIMITED_FROM else INSTRUCTIONS


def kernel_numbers(run: Run) -> Iterator[Number]:
    """Yield each step's speed-up over the step before, and what limits Octopus; nothing on a machine without these
    rows."""
    known = False
    for group, rows in groups(run, unit="ms"):
        table = pivot(rows)
        if group.workload not in KERNEL_WORKLOADS or len(table) < 2:
            continue
        known = True
        if group.workload != KINDS:
            yield from _steps(run, group, table)
        yield from _limits(run, group, table)
    if known:
        key, where = f"{run.scope}.{run.study}.memory_limited_from", origin(run, "n/a")
        text = with_unit(significant(100 * MEMORY_LIMITED_FROM, 2), "percent")
        note = f"least share of the write bound that counts as limited by {MEMORY}"
        yield make_number(key, where, "a rule", "fraction", MEMORY_LIMITED_FROM, text=text, note=note)


def _steps(run: Run, group: Group, table: pd.DataFrame) -> Iterator[Number]:
    steps, floor = list(LADDER_STEPS), floor_of(table)
    for before, step in pairwise(steps):
        # The speed-ups of Octopus every study has.
        if step != SUBJECT and {before, step} <= set(table.columns):
            yield from speedup(run, group, table, (step, before), floor)


def _limits(run: Run, group: Group, table: pd.DataFrame) -> Iterator[Number]:
    """Yield what limits each kind of result, and a list of those that memory does not limit.

    Of the kernel in use alone: a slow step may wait for memory that it reads twice.
    """
    where, below = origin(run, group.dataset), []
    for method in table.columns:
        if not method.startswith(SUBJECT) or method.endswith(AGAIN):
            continue
        for number in share_of_bound(run, group, table, method, bound_of(method)):
            if ".share_of_" not in number.id:
                continue
            text, note = limit_of(number.value), f"by its share of the write bound, {number.text}"
            key = f"{group.prefix(run, method)}.limited_by"
            yield make_number(key, where, group.selector(method), "text", math.nan, text=text, note=note)
            if text != MEMORY:
                share = quantity_text(number.value, number.unit)
                below.append(f"{human(RESULT_KINDS, method)} ({share})")
    if group.workload == KINDS:
        key, text = f"{run.scope}.{run.study}.{KINDS}.n{group.n}.not_memory_limited", "; ".join(below)
        yield make_number(key, where, group.selector(), "text", math.nan, text=text or "none")
