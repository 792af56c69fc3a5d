"""Power runs that the results linter refuses lose their numbers before anything is derived from them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from octopus_study.measure.rows import COLUMNS, one_line
from octopus_study.power.lint import lint_file
from octopus_study.report.runs import Run

if TYPE_CHECKING:
    import pandas as pd

STUDY = "power"
LAYERS = ("back_to_back", "paced")


def vetted(run: Run) -> Run:
    """Return the run as it is, or, where the linter refuses it, with one unavailable row per arm that says why.

    No row of a refused file survives, so that neither a figure nor a sentence can show a part of it.
    """
    if run.study != STUDY:
        return run
    findings = lint_file(run.source)
    if not findings:
        return run
    first = f"{findings[0].check}: {findings[0].message}"
    more = f" ({len(findings) - 1} more)" if len(findings) > 1 else ""
    return replace(
        run, rows=_without_numbers(run.rows, one_line(f"refused by the results linter, {first}{more}"))
    )


def _without_numbers(rows: pd.DataFrame, why: str) -> pd.DataFrame:
    arms = rows[rows["layer"].isin(LAYERS)].drop_duplicates(["dataset", "workload", "n", "method", "layer"])
    kept = {"quantity": "energy_per_frame", "unit": "mJ", "block": 0, "value": float("nan")}
    return arms.assign(**kept, answer=f"unavailable: {why}")[list(COLUMNS)].reset_index(drop=True)
