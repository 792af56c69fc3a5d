"""Where the companion studies could measure, and what the other machines lack."""

from __future__ import annotations

import math
from collections.abc import Iterator

from octopus_study.report.derive.samples import origin
from octopus_study.report.frame import HERE
from octopus_study.report.machines import dataset_names, device_name
from octopus_study.report.numbers import Number, make_number
from octopus_study.report.runs import Run
from octopus_study.report.text import reason

# Study -> layers whose rows need the GPU; what is counted without one is no measurement.
LAYERS = {"concurrency": ("host", "memory", "device"), "image_shape": ("memory", "device")}


def companions_shown(runs: list[Run]) -> Iterator[Number]:
    """Yield ``shown.<study>.measured`` and ``shown.<study>.missing``: machines, data and days, and why others have no
    numbers."""
    for study in {run.study for run in runs}:
        chosen = [run for run in runs if run.study == study]
        ran = [run for run in chosen if measured_something(run)]
        lacking = [run for run in chosen if not measured_something(run)]
        texts = {
            "measured": "; ".join(
                f"{_place(run)}, {dataset_names(run)}, {run.measured_on or 'unknown date'}" for run in ran
            ),
            "missing": "; ".join(f"{_place(run)}: {_why(run)}" for run in lacking),
        }
        for name, text in texts.items():
            if text:
                where = (chosen[0].role, chosen[0].machine, "", chosen[0].source)
                key = f"shown.{study}.{name}"
                yield make_number(key, where, "all runs of the study", "text", math.nan, text=text)


def power_capped(run: Run) -> Iterator[Number]:
    """Yield ``<scope>.<study>.power_capped.<what>``: how many blocks were at the power limit, which these studies keep,
    since large convolutions reach it by themselves."""
    rows = run.rows[(run.rows["quantity"] == "power_capped") & run.rows["value"].notna()]
    for what, some in rows.groupby("method", sort=False):
        key, selector = (
            f"{run.scope}.{run.study}.power_capped.{what}",
            f"quantity=power_capped, method={what}",
        )
        where = (origin(run, some["dataset"].iloc[0]), selector)
        note = f"mean share of blocks over {len(some)} comparisons, their warm-up as one"
        yield make_number(key, *where, "fraction", float(some["value"].mean()), note=note)


def measured_something(run: Run) -> bool:
    """Say whether any row that needs the GPU has a number."""
    rows = run.rows[run.rows["layer"].isin(LAYERS[run.study]) & (run.rows["quantity"] != "discarded_blocks")]
    return bool(rows["value"].notna().any())


def _why(run: Run) -> str:
    """Return the reason that most rows without a number give."""
    rows = run.rows[run.rows["value"].isna()]
    said = rows["answer"].value_counts()
    return reason(str(said.index[0])) if len(said) else "no row says why"


def _place(run: Run) -> str:
    return f"{device_name(run)}{' (this machine)' if run.scope == HERE else ''}"
