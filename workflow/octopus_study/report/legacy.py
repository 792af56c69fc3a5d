# ruff: noqa
"""Reports of the studies that are not converted yet. TODO of this branch: goes when every study has its file."""

from __future__ import annotations

from octopus_study.report.study import StudyReport

TABLES = {
    "total_cost": {
        "total_cost": "times",
        "total_gains": "gains",
        "amortisation": "reuse",
        "ladder": "ladder",
    },
    "satellite": {"satellite": "rules", "satellite_methods": "methods"},
}
FIGURES = {
    "total_cost": ["total_cost_stack", "amortisation"],
    "satellite": ["satellite_tiles", "satellite_pipeline"],
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
    )
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
        "total_cost": "claims_mapping",
        "sequences": "claims_mapping",
        "satellite": "claims_edge",
    }
    more = {
        "satellite": {
            "of_published": (edge_published.published_edge_numbers,),
            "indexed": INDEXED,
            "of_all": (against_published.pictures,),
        },
        "satellite": {
            "of_published": (edge_published.published_edge_numbers,),
            "indexed": INDEXED,
            "of_all": (against_published.pictures,),
        },
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
