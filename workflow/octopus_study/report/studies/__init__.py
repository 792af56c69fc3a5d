"""What each study shows, one file per study; a file is found by its name, that of the study."""

import pkgutil
from functools import cache
from importlib import import_module

from octopus_study.names import in_order
from octopus_study.report.study import StudyReport


@cache
def reports() -> dict[str, StudyReport]:
    """Return the reports by study. Files without a ``REPORT`` are a second file of a study."""
    modules = {info.name: import_module(f"{__name__}.{info.name}") for info in pkgutil.iter_modules(__path__)}
    found = {name: module.REPORT for name, module in modules.items() if hasattr(module, "REPORT")}
    return {name: found[name] for name in in_order(found)}


def report_of(study: str) -> StudyReport:
    """Return the report of a study; one that has no file shows its medians and comparisons alone."""
    return reports().get(study, StudyReport())
