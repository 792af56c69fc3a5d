"""From the rows of a run to its numbers: medians for every study, and what only one study knows.

A new study gets its medians, comparisons and unavailable rows without a line here; register a function in
``EXTRAS`` for anything more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from octopus_study.report.derive.satellite import satellite_numbers
from octopus_study.report.derive.total_cost import total_cost_numbers
from octopus_study.report.numbers import Number
from octopus_study.report.runs import Run

EXTRAS: dict[str, Callable[[Run], Iterable[Number]]] = {
    "total_cost": total_cost_numbers,
    "satellite": satellite_numbers,
}
