"""From the rows of a run to its numbers: medians for every study, and what only one study knows.

A new study gets its medians, comparisons and unavailable rows without a line here; register a function in
``EXTRAS`` for anything more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from octopus_study.report.derive.arena import arena_numbers
from octopus_study.report.derive.concurrency import concurrency_numbers
from octopus_study.report.derive.image_shape import image_shape_numbers
from octopus_study.report.derive.power import power_numbers
from octopus_study.report.derive.stage_timing import stage_timing_numbers
from octopus_study.report.numbers import Number
from octopus_study.report.runs import Run

EXTRAS: dict[str, Callable[[Run], Iterable[Number]]] = {
    "stage_timing": stage_timing_numbers,
    "arena": arena_numbers,
    "power": power_numbers,
    "concurrency": concurrency_numbers,
    "image_shape": image_shape_numbers,
}
