# ruff: noqa
"""Reports of the studies that are not converted yet. TODO of this branch: goes when every study has its file."""

from __future__ import annotations

from octopus_study.report.study import StudyReport

TABLES = {
    "stage_timing": {
        "stage_timing": "stages",
        "speedups": "speedups",
        "limits": "limits",
        "memory": "memory",
        "launch_overhead": "launch_overhead",
    },
    "arena": {
        "arena": "times",
        "arena_uniform": "times_uniform",
        "arena_cpu": "times_cpu",
        "arena_counts": "by_count",
        "arena_memory": "memory",
        "arena_padding": "padding",
        "arena_ladder": "arena_kernel.ladder",
        "arena_kinds": "arena_kernel.kinds",
        "arena_submit": "arena_kernel.submit",
    },
    "power": {
        "power": "energy",
        "power_decomposition": "decomposition",
        "power_checks": "checks",
        "power_paced": "paced",
    },
    "mapping": {
        "mapping": "kernels",
        "mapping_maps": "maps",
        "mapping_model": "mapping_model.model",
        "mapping_targets": "targets",
        "tuner": "tuner",
    },
    "total_cost": {
        "total_cost": "times",
        "total_gains": "gains",
        "amortisation": "reuse",
        "ladder": "ladder",
    },
    "satellite": {"satellite": "rules", "satellite_methods": "methods"},
    "drone": {"drone": "frames", "drone_stream": "streams"},
}
FIGURES = {
    "stage_timing": ["stage_breakdown", "scaling", "published_comparison", "launch_overhead"],
    "arena": ["arena_device", "arena_end_to_end", "arena_memory", "arena_scaling", "arena_bound_share"],
    "power": ["power_traces", "energy_per_frame", "power_pareto", "power_decomposition"],
    "mapping": ["mapping_heatmap", "mapping_scaling", "mapping_memory"],
    "total_cost": ["total_cost_stack", "amortisation"],
    "satellite": ["satellite_tiles", "satellite_pipeline"],
    "drone": ["drone_frames"],
}
PER_OBJECT = ("end_to_end", "build_metadata", "crop_resize_normalize")


def reports() -> dict[str, StudyReport]:
    from importlib import import_module

    from octopus_study.report import numbers  # noqa: F401
    from octopus_study.report.charts.spec import Chart
    from octopus_study.report.derive import (
        EXTRAS,
        against_published,
        edge_published,
        power_published,
    )
    from octopus_study.report.derive import stage_timing_cross
    from octopus_study.report.derive.power import power_shown
    from octopus_study.report.derive.power_vetting import vetted
    from octopus_study.report.derive.satellite_picture import INDEXED

    def table(study, name):
        module, _, function = name.rpartition(".")
        return getattr(import_module(f"octopus_study.report.tables.{module or study}"), function)

    def chart(name):
        module = import_module(f"octopus_study.report.figures.{name}")
        keys = {
            "CAPTION": "caption",
            "NO_RUN": "absent",
            "WITHOUT_RUN": "published",
            "footer": "footer",
            "synthetic": "synthetic",
            "REAL_DATA": "real",
        }
        return Chart(
            module.figure, **{key: getattr(module, old) for old, key in keys.items() if hasattr(module, old)}
        )

    groups = {
        "mapping": "claims_mapping",
        "total_cost": "claims_mapping",
        "sequences": "claims_mapping",
        "satellite": "claims_edge",
        "drone": "claims_edge",
    }
    more = {
        "power": {
            "of_runs": (power_shown,),
            "of_published": (power_published.published_power_numbers,),
            "windows": True,
            "vetted": vetted,
            "indexed": ("trace", "window_start"),
        },
        "drone": {"of_published": (edge_published.published_edge_numbers,)},
        "stage_timing": {
            "of_published": (stage_timing_cross.bounds,),
            "of_all": (stage_timing_cross.cached_bounds,),
        },
        "satellite": {"indexed": INDEXED, "of_all": (against_published.pictures,)},
        "mapping": {"of_all": (against_published.model_predictions,)},
        "total_cost": {"of_all": (against_published.cost_numbers,)},
    }
    return {
        study: StudyReport(
            tables={name: table(study, function) for name, function in TABLES.get(study, {}).items()},
            figures={name: chart(name) for name in FIGURES.get(study, [])},
            numbers=(EXTRAS[study],),
            claims=groups.get(study, "claims"),
            per_object=PER_OBJECT,
            **more.get(study, {}),
        )
        for study in EXTRAS
    }
