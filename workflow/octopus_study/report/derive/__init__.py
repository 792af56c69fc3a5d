"""From the rows of a run to its numbers: medians for every study, and what only one study knows.

A new study gets its medians, comparisons and unavailable rows without a line here; register a function in
``EXTRAS`` for anything more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from octopus_study.report.derive.arena import arena_numbers
from octopus_study.report.derive.companions import companions_shown
from octopus_study.report.derive.comparisons import comparisons
from octopus_study.report.derive.concurrency import concurrency_numbers
from octopus_study.report.derive.detector import detector_numbers
from octopus_study.report.derive.distribution import distribution_numbers
from octopus_study.report.derive.drone import drone_numbers
from octopus_study.report.derive.image_shape import image_shape_numbers
from octopus_study.report.derive.machines import aliases, cached_bounds, machine_facts, shown_runs
from octopus_study.report.derive.mapping import mapping_numbers
from octopus_study.report.derive.medians import medians
from octopus_study.report.derive.parity import parity_numbers
from octopus_study.report.derive.power import power_numbers, power_shown
from octopus_study.report.derive.power_vetting import vetted
from octopus_study.report.derive.satellite import satellite_numbers
from octopus_study.report.derive.sequences import sequences_numbers
from octopus_study.report.derive.stage_timing import stage_timing_numbers
from octopus_study.report.derive.total_cost import total_cost_numbers
from octopus_study.report.numbers import Number
from octopus_study.report.runs import Run

EXTRAS: dict[str, Callable[[Run], Iterable[Number]]] = {
    "stage_timing": stage_timing_numbers,
    "distribution": distribution_numbers,
    "arena": arena_numbers,
    "parity": parity_numbers,
    "power": power_numbers,
    "mapping": mapping_numbers,
    "total_cost": total_cost_numbers,
    "sequences": sequences_numbers,
    "satellite": satellite_numbers,
    "drone": drone_numbers,
    "detector": detector_numbers,
    "concurrency": concurrency_numbers,
    "image_shape": image_shape_numbers,
}
# Few long windows instead of many blocks: these studies have ratios of their own.
OWN_RATIOS = ("power",)


def derive_all(runs: list[Run]) -> Iterator[Number]:
    """Yield every number of the runs, study by study, then the facts about machines and runs."""
    runs = [vetted(run) for run in runs]
    derived: list[Number] = []
    for run in runs:
        yield from medians(run)
        if run.study not in OWN_RATIOS:
            yield from comparisons(run)
        extra = list(EXTRAS[run.study](run)) if run.study in EXTRAS else []
        derived += extra
        yield from extra
    yield from machine_facts(runs)
    yield from shown_runs(runs)
    yield from power_shown(runs)
    yield from companions_shown(runs)
    yield from cached_bounds(runs, derived)
    yield from aliases(runs)
