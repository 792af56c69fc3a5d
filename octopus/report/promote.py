"""Copying a vetted run into the reference results."""

from __future__ import annotations

import shutil
from pathlib import Path

from octopus.errors import DataError, MeasureError
from octopus.measure.rows import validate_rows
from octopus.report.derive.machines import fact
from octopus.report.runs import read_provenance

DIRTY_PATHS = ("git.dirty", "dirty")


def promote(results_dir: str | Path, reference_dir: str | Path) -> Path:
    """Copy ``results_dir`` to ``reference_dir/<machine>``, when it may stand as a reference.

    Parameters
    ----------
    results_dir : path
        ``data/results/<machine>``.
    reference_dir : path
        ``data/reference``.

    Returns
    -------
    Path
        The folder of the machine under `reference_dir`.

    Raises
    ------
    DataError
        There is nothing to promote, or a study may not be a reference: it rests on synthetic objects, comes from
        uncommitted code, lacks its provenance, or breaks the schema. Nothing is copied then.
    """
    folder = Path(results_dir)
    files = sorted(folder.glob("*.csv"))
    if not files:
        raise DataError(f"No results to promote in {folder}: expected one <study>.csv per study.")
    reasons = [f"{path.name}: {reason}" for path in files if (reason := refusal(path))]
    if reasons:
        raise DataError(f"{folder} can't become a reference. " + "; ".join(reasons) + ".")
    target = Path(reference_dir) / folder.name
    target.mkdir(parents=True, exist_ok=True)
    for path in files:
        shutil.copyfile(path, target / path.name)
        shutil.copyfile(path.with_suffix(".json"), target / path.with_suffix(".json").name)
    return target


def refusal(rows_path: Path) -> str:
    """Say why one study may not become a reference; empty when it may."""
    import pandas as pd

    provenance = read_provenance(rows_path)
    if not provenance:
        return f"it has no provenance ({rows_path.with_suffix('.json').name})"
    dirty = fact(provenance, DIRTY_PATHS)
    if dirty != "False":
        return "its code was not committed (the git tree was dirty)" if dirty else "its git state is unknown"
    try:
        validate_rows(rows_path)
    except MeasureError as error:
        return str(error)
    datasets = pd.read_csv(rows_path, usecols=["dataset"])["dataset"].unique()
    stand_ins = sorted(name for name in datasets if name.startswith("synthetic-"))
    return f"it rests on synthetic data ({', '.join(stand_ins)})" if stand_ins else ""
