"""This machine's run beside the references, number by number."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from octopus_study.report.derive import derive_all
from octopus_study.report.frame import HERE
from octopus_study.report.numbers import Number, Numbers
from octopus_study.report.runs import load_runs

if TYPE_CHECKING:
    import pandas as pd


def compare_runs(results_dir: str | Path, reference_dir: str | Path) -> pd.DataFrame:
    """Return every number that this machine's run shares with a reference run.

    Parameters
    ----------
    results_dir, reference_dir : path
        As in :func:`octopus_study.report.runs.load_runs`.

    Returns
    -------
    DataFrame
        Columns ``number`` (id without scope), ``machine`` (of the reference), ``unit``, ``here``,
        ``reference``, ``ratio`` (here / reference) and ``intervals_overlap``. Unlike the ratios of a study
        these are not paired: the runs were made at different times on different machines.
    """
    import pandas as pd

    numbers = Numbers(derive_all(load_runs(results_dir, reference_dir)))
    here = {key: number for key, number in _unscoped(numbers) if number.role == HERE}
    records = [
        _record(key, here[key], number)
        for key, number in _unscoped(numbers)
        if number.role == "reference" and key in here
    ]
    columns = ["number", "machine", "unit", "here", "reference", "ratio", "intervals_overlap"]
    return pd.DataFrame(records, columns=columns)


def _unscoped(numbers: Numbers) -> list[tuple[str, Number]]:
    return [(number.id.partition(".")[2], number) for number in numbers if numbers.get(number.id) is not None]


def _record(key: str, here: Number, other: Number) -> tuple[object, ...]:
    ratio = here.value / other.value if other.value else (float("nan") if here.value else 1.0)
    overlap = here.low <= other.high and other.low <= here.high
    return key, other.machine, here.unit, here.value, other.value, ratio, overlap
