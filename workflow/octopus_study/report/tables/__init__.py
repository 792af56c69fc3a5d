"""The tables, written as Typst, LaTeX and Markdown; ``NAMES`` lists them.

A table is a function from the numbers to a :class:`octopus_study.report.tables.writers.Table`. To add one, write
the function and enter it in ``_TABLES``.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from octopus_study.measure._files import atomic_text
from octopus_study.report.claims import read_claims
from octopus_study.report.numbers import Numbers
from octopus_study.report.tables import (
    arena,
    arena_kernel,
    concurrency,
    detector,
    distribution,
    drone,
    image_shape,
    mapping,
    mapping_model,
    overview,
    parity,
    power,
    satellite,
    sequences,
    stage_timing,
    total_cost,
)
from octopus_study.report.tables.writers import WRITERS, Table

_TABLES: dict[str, Callable[[Numbers], Table]] = {
    "machines": overview.machines,
    "stage_timing": stage_timing.stages,
    "speedups": stage_timing.speedups,
    "padding_waste": distribution.padding_waste,
    "distribution_speed": distribution.speed,
    "limits": stage_timing.limits,
    "memory": stage_timing.memory,
    "launch_overhead": stage_timing.launch_overhead,
    "arena": arena.times,
    "arena_uniform": arena.times_uniform,
    "arena_cpu": arena.times_cpu,
    "arena_counts": arena.by_count,
    "arena_memory": arena.memory,
    "arena_padding": arena.padding,
    "arena_ladder": arena_kernel.ladder,
    "arena_kinds": arena_kernel.kinds,
    "arena_submit": arena_kernel.submit,
    "parity": parity.parity,
    "power": power.energy,
    "power_decomposition": power.decomposition,
    "power_checks": power.checks,
    "power_paced": power.paced,
    "mapping": mapping.kernels,
    "mapping_maps": mapping.maps,
    "mapping_model": mapping_model.model,
    "mapping_targets": mapping.targets,
    "tuner": mapping.tuner,
    "total_cost": total_cost.times,
    "total_gains": total_cost.gains,
    "amortisation": total_cost.reuse,
    "ladder": total_cost.ladder,
    "sequences": sequences.table,
    "satellite": satellite.rules,
    "satellite_methods": satellite.methods,
    "drone": drone.frames,
    "drone_stream": drone.streams,
    "detector": detector.stages,
    "concurrency": concurrency.arms,
    "concurrency_proof": concurrency.proof,
    "concurrency_rule": concurrency.rule,
    "concurrency_crops": concurrency.crops,
    "shape_cause": image_shape.cause,
    "shape_widths": image_shape.widths,
    "shape_lines": image_shape.lines,
    "shape_patches": image_shape.patches,
}
NAMES = (*_TABLES, "claims", "claims_mapping", "claims_edge", "claims_companions")


def build_tables(numbers: str | Path, claims: str | Path, out_dir: str | Path) -> list[Path]:
    """Write every table in every format and return the paths.

    Parameters
    ----------
    numbers : path
        ``numbers.csv``.
    claims : path
        ``claims.csv``.
    out_dir : path
        Folder that gets ``<name>.typ``, ``<name>.tex`` and ``<name>.md`` for each name in ``NAMES``.
    """
    known = Numbers.read(numbers)
    tables = [make(known) for make in _TABLES.values()]
    judgements = read_claims(claims)
    judged = (overview.claims, overview.claims_mapping, overview.claims_edge, overview.claims_companions)
    tables += [make(known, judgements) for make in judged]
    return [_write(table, suffix, Path(out_dir)) for table in tables for suffix in WRITERS]


def _write(table: Table, suffix: str, folder: Path) -> Path:
    path = folder / f"{table.name}{suffix}"
    with atomic_text(path) as stream:
        stream.write(WRITERS[suffix](table))
    return path
