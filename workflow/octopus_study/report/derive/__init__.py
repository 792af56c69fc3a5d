"""From the rows of a run to its numbers: medians for every study, and what only one study knows.

A new study gets its medians, comparisons and unavailable rows without a line here; register a function in
``EXTRAS`` for anything more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from octopus_study.report.derive.arena import arena_numbers
from octopus_study.report.derive.drone import drone_numbers
from octopus_study.report.derive.mapping import mapping_numbers
from octopus_study.report.derive.power import power_numbers
from octopus_study.report.derive.satellite import satellite_numbers
from octopus_study.report.derive.stage_timing import stage_timing_numbers
from octopus_study.report.derive.total_cost import total_cost_numbers
from octopus_study.report.numbers import Number
from octopus_study.report.runs import Run

EXTRAS: dict[str, Callable[[Run], Iterable[Number]]] = {
    "stage_timing": stage_timing_numbers,
    "arena": arena_numbers,
    "power": power_numbers,
    "mapping": mapping_numbers,
    "total_cost": total_cost_numbers,
    "satellite": satellite_numbers,
    "drone": drone_numbers,
}
