"""This machine's run beside the references, number by number."""

from pathlib import Path

import pandas as pd

from octopus_study.report.build import derive_all, vetted
from octopus_study.report.frame import HERE, Frame, Number
from octopus_study.report.runs import load_runs


def compare_runs(results_dir: str | Path, reference_dir: str | Path) -> pd.DataFrame:
    """Return every number that this machine's run shares with a reference run.

    A data frame of ``number`` (id without scope), ``machine`` (of the reference), ``unit``, ``here``, ``reference``,
    ``ratio`` (here / reference) and ``intervals_overlap``. Unlike the ratios of a study these are not paired: the runs
    were made at different times on different machines.
    """
    return compared(Frame(derive_all(vetted(load_runs(results_dir, reference_dir)))))


def compared(frame: Frame) -> pd.DataFrame:
    """Return the same of all numbers of the runs."""
    records = [
        _record(here, number)
        for number in frame
        if number.role == "reference" and number.known and (here := frame.get(number.key.but(machine=HERE)))
    ]
    columns = ["number", "machine", "unit", "here", "reference", "ratio", "intervals_overlap"]
    return pd.DataFrame(records, columns=columns)


def _record(here: Number, other: Number) -> tuple[object, ...]:
    name = other.id.removeprefix(f"{other.machine}.")
    ratio = here.value / other.value if other.value else (float("nan") if here.value else 1.0)
    overlap = here.low <= other.high and other.low <= here.high
    return name, other.machine, here.unit, here.value, other.value, ratio, overlap
